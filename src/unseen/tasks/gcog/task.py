"""The gCOG task: questions about coloured letters on a grid (Ito et al., ICLR 2024). Its variants are in `variants.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import Field as Option
from pydantic import field_validator, model_validator

from unseen.errors import UsageError
from unseen.randomness import Draws, stream
from unseen.spec import Field, GridShape, Spec, Stream, Target
from unseen.tasks.base import Array, Artefact, DataSeed, Examples, Expressions, ForeignFileReport, Shortcut, Split, Task
from unseen.tasks.gcog.audit import compute_ceilings, list_artefacts, list_shortcuts
from unseen.tasks.gcog.encode import (
    CODINGS,
    CodingName,
    GcogTokens,
    encode_block,
    get_rule_length,
    read_objects,
    read_tree,
)
from unseen.tasks.gcog.foreign_files import judge_file
from unseen.tasks.gcog.plan import OperatorGroup, QuestionPlan, allow_all_operators, count_operators
from unseen.tasks.gcog.pools import RecordsOfPlan, draw_fresh_records, make_pool
from unseen.tasks.gcog.render import CELL_PIXELS, Image, draw_example, render
from unseen.tasks.gcog.schema import FEATURES, PRESETS, STANDARD, Feature, GcogPreset, PresetName, Schema, Ties
from unseen.tasks.gcog.solver import solve
from unseen.tasks.gcog.text import FORM_NAMES, ExampleView, FormName, describe_example, write_sentence
from unseen.tasks.gcog.tree import find_function, object_to_json, tree_to_json
from unseen.tasks.gcog.variables import Question, answer_with, list_variables
from unseen.tasks.variables import Variables

Share = Annotated[float, Option(ge=0, le=1)]
Count = Annotated[int, Option(ge=0)]

TRAIN = Split("train", "training data")
IID = Split("iid", "fresh examples from the training distribution")


@dataclass(frozen=True)
class PlannedSplit:
    """A split and the plans of its questions, which are equally likely."""

    split: Split
    plans: tuple[QuestionPlan, ...]


class GcogTask(Task):
    """Answer a question about coloured letters on a grid.

    Objects are letters in ten colours on a grid of 10 × 10 cells, at most one object per cell. The letter is also called
    the shape. Objects that the question is not about are distractors. A question is an operator about one object, or a
    tree: a boolean operator and two further questions, of which its value selects one (IF-THEN-ELSE). The depth of a
    question counts the operators and conditionals on a path: 1 for a single operator, 3 for one conditional, 5, 7, …

    Operators: Exist (is the object on the grid?), GetLocation, GetColor (of the letter), GetShape (of the object in this
    colour), SumEven, SumOdd, ProductEven and ProductOdd (parity of the sum or product of the object's coordinates).

    - Input: two streams, `rule` (the tree in level order, then an end token) and `stimulus` (the cells, then an end
      token).
    - Output: one of 138 classes: True, False, 100 locations, 26 letters, 10 colours.

    Examples, for a red a at (1, 3) and a green b at (0, 0), where x is the column and y the row:

        ProductOdd(red a)                                              1 · 3 = 3 is odd → True
        if SumEven(red a) then GetColor(b) else GetLocation(green b)   1 + 3 = 4 is even → green

    Edge cases: zero is even, so ProductEven(green b) is True. Only the operators on the path determine the answer, but
    in the preset `clean` every operator of the tree has exactly one matching object, except that the object of an Exist
    may be absent.

    >>> from unseen.tasks.gcog.tree import Conditional, GridObject, Query
    >>> a, b = ("a", "red"), ("b", "green")
    >>> grid = [GridObject(a, 1, 3), GridObject(b, 0, 0)]
    >>> tree = Conditional(Query("SumEven", (a,)), Query("GetColor", (("b", None),)), Query("GetLocation", (b,)))
    >>> questions = Query("ProductOdd", (a,)), tree, Query("ProductEven", (b,))
    >>> [Schema().answers[solve(Schema(), question, grid).answer] for question in questions]
    [True, ('color', 'green'), True]
    """

    # Subclasses define the splits in `_plan_splits`.
    report_by: ClassVar[tuple[str, ...]] = ("operator", "answer_kind")
    size_options: ClassVar[frozenset[str]] = frozenset({"train_size", "pool"})
    interpretation_options: ClassVar[frozenset[str]] = frozenset({"coding", "ties"})
    shares_file_format: ClassVar[bool] = True

    preset: PresetName = Option(
        "clean",
        description="clean: unambiguous questions, balanced booleans and exact numbers of distractors; released: what "
        "the published code does",
    )
    coding: CodingName = Option(
        "integer", description="how tokens are coded: as numbers, one-hot, or as categories; the examples are the same"
    )
    distractors: tuple[Count, Count] | None = Option(
        None, description="lowest and highest number of distractors in training; None: that of the preset"
    )
    operators: tuple[str, ...] = Option(STANDARD, description="the operators in use; default: the paper's eight")
    two_objects: Share | None = Option(
        None, description="how often a parity operator of a tree is about two objects; None: that of the preset"
    )
    constant_count: bool = Option(
        False, description="replace every absent object by a distractor, so that counting does not reveal its absence"
    )
    features: tuple[Feature, ...] = Option(
        FEATURES, description="the features of objects with their values: shape and color, then any others"
    )
    grid: tuple[int, int] = Option((10, 10), description="columns and rows")
    task_shapes: Annotated[int, Option(ge=2, le=26)] | None = Option(
        None,
        description="preset released: questions are only about this many letters, the first of the alphabet (10 in the "
        "published demonstrations)",
    )
    train_size: Annotated[int, Option(ge=1)] | None = Option(
        None, description="examples of a finite training set; None: endless"
    )
    pool: Annotated[int, Option(ge=1)] | None = Option(
        None,
        description="train on a fixed pool of this many questions, each time with a fresh grid, as published; None: "
        "all questions are fresh",
    )
    ties: Ties | None = Option(
        None,
        description="for foreign examples: if several objects match, report an error or take the smallest (x, y); "
        "None: as in the preset",
    )

    @field_validator("features", mode="before")
    @classmethod
    def _accept_mapping(cls, value: object) -> object:
        return tuple(value.items()) if isinstance(value, Mapping) else value

    @model_validator(mode="after")
    def _check(self) -> Self:
        low, high = self._distractors
        if low > high:
            raise ValueError(f"distractors: expected the lowest and the highest number, got {low}, {high}")
        if self.pool is not None and self.train_size is not None:
            raise ValueError("pool, train_size: choose a pool of questions or a finite training set, not both")
        if self.preset == "released":
            fixed = {
                "operators": STANDARD,
                "two_objects": None,
                "constant_count": False,
                "features": FEATURES,
                "grid": (10, 10),
            }
            changed = [option for option, value in fixed.items() if getattr(self, option) != value]
            if changed:
                raise ValueError(f"{', '.join(changed)}: fixed in the preset released; use the preset clean")
        elif self.task_shapes is not None:
            raise ValueError("task_shapes: only for the preset released; use features in the preset clean")
        _ = self.settings  # built here, so that a split without enough room is refused at once
        return self

    @cached_property
    def domain(self) -> Schema:
        """Features, grid, operators and answers."""
        return Schema(self.features, *self.grid, self.operators)

    @cached_property
    def settings(self) -> Mapping[str, PlannedSplit]:
        """The splits by name, each with its plans."""
        return {planned.split.name: planned for planned in self._plan_splits()}

    def _plan_splits(self) -> Sequence[PlannedSplit]:
        raise NotImplementedError

    @property
    def _preset(self) -> GcogPreset:
        return PRESETS[self.preset]

    @property
    def _ties(self) -> Ties:
        return self._preset.ties if self.ties is None else self.ties

    @property
    def _distractors(self) -> tuple[int, int]:
        return self._preset.distractors if self.distractors is None else self.distractors

    @property
    def _mixed_distractors(self) -> tuple[int, int]:
        return self._preset.mixed_distractors if self.distractors is None else self.distractors

    def _make_plan(
        self,
        depth: int,
        distractors: tuple[int, int] | None = None,
        groups: tuple[OperatorGroup, ...] | None = None,
        allowed_objects: tuple[tuple[str, tuple[int, ...]], ...] = (),
    ) -> QuestionPlan:
        """Return a plan for questions of one depth, by default with the distractors of training and all operators."""
        schema = self.domain
        nodes = count_operators(depth)
        distractors = self._distractors if distractors is None else distractors
        objects = nodes + distractors[1]
        needed = f"questions of depth {depth} have {nodes} operators and up to {distractors[1]} distractors"
        if objects > schema.cells:
            raise ValueError(
                f"{needed}, but the grid has only {schema.cells} cells; use smaller depths, fewer distractors or a "
                "larger grid"
            )
        if objects > schema.object_count:
            raise ValueError(
                f"{needed}, but there are only {schema.object_count} different objects; use smaller depths, fewer "
                "distractors or more features"
            )
        two_objects = self._preset.two_objects if self.two_objects is None else self.two_objects
        if self.preset == "released" and depth == 1:
            two_objects = 0.0
        task_objects: tuple[int, ...] | None = None
        if self.task_shapes is not None:
            # In the number of an object, the shape runs fastest.
            shapes = schema.sizes[0]
            task_objects = tuple(n for n in range(schema.object_count) if n % shapes < self.task_shapes)
            if nodes > len(task_objects):
                raise ValueError(
                    f"task_shapes = {self.task_shapes}: questions of depth {depth} have {nodes} operators, but there "
                    f"are only {len(task_objects)} objects to ask about"
                )
        return QuestionPlan(
            schema=schema,
            depth=depth,
            groups=allow_all_operators(schema, depth) if groups is None else groups,
            distractors=distractors,
            two_objects=two_objects,
            constant_count=self.constant_count,
            allowed_objects=allowed_objects,
            task_objects=task_objects,
        )

    @property
    def splits(self) -> Mapping[str, Split]:
        splits = {name: planned.split for name, planned in self.settings.items()}
        if self.pool is not None:
            summary = f"{splits['train'].summary}; a pool of {self.pool} questions, repeated with fresh grids"
            splits["train"] = replace(splits["train"], summary=summary, pooled=True)
        return splits

    @property
    def answer_kinds(self) -> Array:
        return self.domain.answer_kinds

    @cached_property
    def two(self) -> bool:
        """Whether a question of any split may be about two objects."""
        return any(plan.two for planned in self.settings.values() for plan in planned.plans)

    @cached_property
    def spec(self) -> Spec:
        length = max(get_rule_length(plan.depth) for plan in self.settings["train"].plans)
        fields = CODINGS[self.coding].fields(self.domain, self.two)
        if self._preset.masked:
            fields.append(Field("rule_mask", "mask", along="rule"))
        return Spec(
            (Stream("rule", length), Stream("stimulus", self.domain.cells + 1, GridShape(*self.grid))),
            tuple(fields),
            Target("category", len(self.domain.answers)),
        )

    def generate(self, split: str, draws: Draws) -> Examples:
        plans = self.settings[split].plans
        records = draw_fresh_records(plans, self.preset, self.block, split != "train", draws)
        return self._make_examples(plans, records)

    def blocks(self, split: str, data_seed: DataSeed) -> Callable[[int], Examples]:
        pool_size = self._get_pool_size(split)
        if pool_size is None:
            return super().blocks(split, data_seed)
        plans = self.settings[split].plans
        drawn_by = self.drawn_by()
        pool = make_pool(plans, self.preset, pool_size, stream("pool", drawn_by, data_seed))
        # Which questions are asked when, and their grids, differ between pools of different sizes.
        data_stream = stream("pooled", drawn_by, pool_size, data_seed)
        return lambda block: self._make_examples(plans, pool.draw_records(self.block, data_stream.block(block)))

    def _get_pool_size(self, split: str) -> int | None:
        """Return the number of questions in the pool of a split; None if all questions are fresh."""
        return self.pool if split == "train" else None

    def _make_examples(self, plans: Sequence[QuestionPlan], records: Iterable[RecordsOfPlan]) -> Examples:
        tokens, targets, factors = encode_block(plans, self._preset.unnamed_code, records)
        inputs = CODINGS[self.coding].write(self.domain, self.two, tokens)
        if self._preset.masked:
            inputs["rule_mask"] = tokens.mask
        return Examples(inputs, targets, factors)

    def tokens(self, examples: Examples) -> GcogTokens:
        """Return the tokens behind the inputs, independently of the coding."""
        return CODINGS[self.coding].read(self.domain, examples.inputs)

    def solve(self, examples: Examples) -> Array:
        questions = self._read_questions(examples)
        return np.array([solve(self.domain, tree, grid, self._ties).answer for tree, grid in questions], np.int64)

    def variables(self, examples: Examples) -> Variables:
        return list_variables(self.domain, self._read_questions(examples), self._ties)

    def answer_with(self, examples: Examples, name: str, values: Array) -> Array:
        return answer_with(self.domain, self._read_questions(examples), self._ties, name, values, self.solve(examples))

    def expressions(self, examples: Examples) -> Expressions | None:
        trees = [read_tree(self.domain, rule) for rule in self.tokens(examples).rule.tolist()]
        return Expressions(trees, [find_function(self.domain, tree) for tree in trees])

    def _read_questions(self, examples: Examples) -> list[Question]:
        """The tree of each example and the objects on its grid."""
        tokens = self.tokens(examples)
        pairs = zip(tokens.rule, tokens.grid, strict=True)
        return [(read_tree(self.domain, rule.tolist()), read_objects(self.domain, grid)) for rule, grid in pairs]

    def view(self, examples: Examples, index: int) -> ExampleView:
        """Return one example as a tree, objects and a solution."""
        ((tree, objects),) = self._read_questions(examples[index : index + 1])
        solution = solve(self.domain, tree, objects, self._ties)
        return ExampleView(self.name, self.domain, tree, objects, solution, int(examples.targets[index]))

    def sentences(self, examples: Examples, form: FormName = "english") -> list[str]:
        """Return the questions in words."""
        rules = self.tokens(examples).rule.tolist()
        return [write_sentence(self.domain, read_tree(self.domain, rule), form) for rule in rules]

    def pixels(self, examples: Examples, cell: int = CELL_PIXELS) -> Image:
        """Return the grids as RGB images, (B, height, width, 3), with cells of this many pixels."""
        return render(self.domain, self.tokens(examples).grid, cell)

    def describe(self, examples: Examples, index: int) -> str:
        return describe_example(self.view(examples, index))

    def picture(self, examples: Examples, index: int) -> str:
        return draw_example(self.view(examples, index))

    def record(self, examples: Examples, index: int) -> dict[str, Any]:
        view = self.view(examples, index)
        return {
            "tree": tree_to_json(self.domain, view.tree),
            "objects": [object_to_json(self.domain, grid_object) for grid_object in view.objects],
            "target": view.target,
            "answer": self.domain.answer_name(view.target),
            "path": [step.value for step in view.solution.steps[:-1]],
            "sentences": {form: write_sentence(self.domain, view.tree, form) for form in FORM_NAMES},
            **{key: value for key, value in super().record(examples, index).items() if key != "target"},
        }

    def judge(self, path: Path, **companions: Path) -> ForeignFileReport:
        if companions:
            raise UsageError(f"{self.name}: examples need no companion files; omit {', '.join(companions)}")
        return judge_file(path, self.domain, self._ties)

    def shortcuts(self, split: str) -> Sequence[Shortcut]:
        self.get_split(split)
        pool_size = self._get_pool_size(split)
        return list_shortcuts(self.settings[split].plans, self.tokens, self.preset == "released", pool_size)

    def ceilings(self, split: str) -> Mapping[str, float]:
        self.get_split(split)
        pool_size = self._get_pool_size(split)
        return compute_ceilings(self.settings[split].plans, self.preset == "released", pool_size)

    def artefacts(self, split: str) -> Sequence[Artefact]:
        self.get_split(split)
        pool_size = self._get_pool_size(split)
        return list_artefacts(self.settings[split].plans, self.tokens, self.preset == "released", pool_size)
