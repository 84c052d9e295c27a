"""The gCOG tasks: questions about coloured letters on a grid, and four ways to ask for what was never trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import Field as Option
from pydantic import field_validator, model_validator

from unseen.errors import UsageError
from unseen.randomness import Draws, stream
from unseen.spec import Field, Grid, Spec, Stream, Target
from unseen.tasks.base import Array, Artefact, Condition, DataSeed, Examples, Judgement, Shortcut, Task
from unseen.tasks.gcog.artefacts import task_artefacts
from unseen.tasks.gcog.ceilings import generic_ceilings
from unseen.tasks.gcog.codings import CODINGS, CodingName
from unseen.tasks.gcog.drawing import picture
from unseen.tasks.gcog.examples import Block, ask_examples, build_examples
from unseen.tasks.gcog.judge import judge_file
from unseen.tasks.gcog.operators import STANDARD
from unseen.tasks.gcog.pixels import CELL, Image, render
from unseen.tasks.gcog.plan import Group, Plan
from unseen.tasks.gcog.pool import make_pool
from unseen.tasks.gcog.presets import PRESETS, PresetName
from unseen.tasks.gcog.records import operator_count
from unseen.tasks.gcog.schema import FEATURES, Feature, Schema
from unseen.tasks.gcog.sentences import FORM_NAMES, FormName, write_sentence
from unseen.tasks.gcog.shortcuts import task_shortcuts
from unseen.tasks.gcog.solver import Ties, solve
from unseen.tasks.gcog.splits import all_operators
from unseen.tasks.gcog.tokens import Tokens, read_things, read_tree, rule_length
from unseen.tasks.gcog.tree import thing_data, tree_data
from unseen.tasks.gcog.views import View, describe

Share = Annotated[float, Option(ge=0, le=1)]
Count = Annotated[int, Option(ge=0)]
Range = tuple[Count, Count]


TRAIN = Condition("train", "training data")
IID = Condition("iid", "fresh examples distributed as the training data")


@dataclass(frozen=True)
class Setting:
    """A condition and what its questions are drawn from: plans of different depths are equally frequent."""

    condition: Condition
    plans: tuple[Plan, ...]


class Gcog(Task):
    """A question about objects on a grid; the answer is true or false, one of 100 places, a letter or a colour.

    Objects are letters in ten colours on a grid of 10 × 10 cells; those that nobody asks about are distractors. An
    operator asks about one object and has depth 1. A boolean one may stand above a conditional, whose two branches are
    questions again, of which its answer chooses one; that adds 2 to the depth:

        red a at (1, 3), green b at (0, 0)

        Is there a red a?                                              → True
        Is the sum of the coordinates of the red a even?               → True
        If so, name the color of the b, otherwise say where it is.     → green
    """

    report_by: ClassVar[tuple[str, ...]] = ("operator", "answer_kind")
    amounts: ClassVar[frozenset[str]] = frozenset({"train_size", "pool"})
    readings: ClassVar[frozenset[str]] = frozenset({"coding", "ties"})
    alike: ClassVar[bool] = True

    preset: PresetName = Option(
        "clean",
        description="sound data (questions have one answer, booleans are balanced, distractors are as many "
        "as asked for), or what the published code does",
    )
    coding: CodingName = Option(
        "integer",
        description="how tokens are written: codes as numbers, as rows with a one, or as categories; the "
        "examples are the same",
    )
    distractors: Range | None = Option(
        None, description="fewest and most of them in training; None: as the preset says"
    )
    operators: tuple[str, ...] = Option(
        STANDARD, description="the operators in use; there are more than the paper's eight"
    )
    two_objects: Share | None = Option(
        None, description="how often a parity operator of a tree is about two objects; None: as the preset says"
    )
    constant_count: bool = Option(
        False, description="an absent object is made up for by a distractor, so that counting does not betray it"
    )
    features: tuple[Feature, ...] = Option(
        FEATURES,
        description="what objects are made of: shape and colour first, then any other features with their values",
    )
    grid: tuple[int, int] = Option((10, 10), description="columns and rows")
    task_shapes: Annotated[int, Option(ge=2, le=26)] | None = Option(
        None,
        description="preset released: questions are about the first so many letters only (10 in the published "
        "demonstrations)",
    )
    train_size: Annotated[int, Option(ge=1)] | None = Option(
        None, description="examples of a finite training set; None: endless"
    )
    pool: Annotated[int, Option(ge=1)] | None = Option(
        None,
        description="training asks so many questions again and again, each time with a fresh grid, as "
        "published; None: all are fresh",
    )
    ties: Ties | None = Option(
        None,
        description="for foreign examples: several objects that fit are an error, or the smallest (x, y) "
        "counts; None: as the preset says",
    )

    @field_validator("features", mode="before")
    @classmethod
    def _pairs(cls, value: object) -> object:
        """Features may be given as a table, name by name."""
        return tuple(value.items()) if isinstance(value, Mapping) else value

    @model_validator(mode="after")
    def _check(self) -> Self:
        low, high = self._distractors
        if low > high:
            raise ValueError(f"distractors: expected the lowest and the highest number, got {low}, {high}")
        if self.pool is not None and self.train_size is not None:
            raise ValueError("pool, train_size: take a pool of questions or a finite training set, not both")
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
                raise ValueError(f"{', '.join(changed)}: the preset released is what it is; use the preset clean")
        elif self.task_shapes is not None:
            raise ValueError("task_shapes belongs to the preset released; the preset clean takes other features")
        _ = self.settings  # made here, so that a condition without room is refused at once
        return self

    @cached_property
    def domain(self) -> Schema:
        """Features, grid, operators and answers."""
        return Schema(self.features, *self.grid, self.operators)

    @cached_property
    def settings(self) -> Mapping[str, Setting]:
        """The conditions by name, each with its plans."""
        return {setting.condition.name: setting for setting in self._settings()}

    def _settings(self) -> Sequence[Setting]:
        raise NotImplementedError

    @property
    def _ties(self) -> Ties:
        return PRESETS[self.preset].ties if self.ties is None else self.ties

    @property
    def _distractors(self) -> tuple[int, int]:
        return PRESETS[self.preset].distractors if self.distractors is None else self.distractors

    @property
    def _mixed_distractors(self) -> tuple[int, int]:
        return PRESETS[self.preset].mixed_distractors if self.distractors is None else self.distractors

    def _plan(
        self,
        depth: int,
        distractors: tuple[int, int] | None = None,
        groups: tuple[Group, ...] | None = None,
        named: tuple[tuple[str, tuple[int, ...]], ...] = (),
    ) -> Plan:
        """Questions of one depth; where nothing else is said, of all operators and with the usual distractors."""
        distractors = self._distractors if distractors is None else distractors
        _check_room(self.domain, depth, distractors[1])
        released = self.preset == "released"
        two = PRESETS[self.preset].two_objects if self.two_objects is None else self.two_objects
        shapes = self.task_shapes
        if shapes is not None and operator_count(depth) > shapes * self.domain.sizes[1]:
            raise ValueError(
                f"task_shapes = {shapes}: questions of depth {depth} have {operator_count(depth)} "
                f"operators, and there are only {shapes * self.domain.sizes[1]} objects to ask about"
            )
        return Plan(
            schema=self.domain,
            depth=depth,
            groups=all_operators(self.domain, depth) if groups is None else groups,
            distractors=distractors,
            two_objects=0.0 if released and depth == 1 else two,
            constant_count=self.constant_count,
            named=named,
            task_objects=None
            if shapes is None
            else tuple(
                number for number in range(int(np.prod(self.domain.sizes))) if number % self.domain.sizes[0] < shapes
            ),
        )

    @property
    def conditions(self) -> Mapping[str, Condition]:
        found = {name: setting.condition for name, setting in self.settings.items()}
        if self.pool is not None:
            summary = f"{found['train'].summary}; {self.pool} of them, asked again and again with fresh grids"
            found["train"] = replace(found["train"], summary=summary, pooled=True)
        return found

    @property
    def answer_kinds(self) -> Array:
        return self.domain.answer_kinds

    def size(self, condition: str) -> int | None:
        return self.train_size if self.condition(condition).name == "train" else None

    @cached_property
    def two(self) -> bool:
        """Whether some question of some condition may be about two objects."""
        return any(plan.two for setting in self.settings.values() for plan in setting.plans)

    @cached_property
    def spec(self) -> Spec:
        masks = [Field("rule_mask", "mask", along="rule")] if PRESETS[self.preset].masked else []
        length = max(rule_length(plan.depth) for plan in self.settings["train"].plans)
        return Spec(
            (Stream("rule", length), Stream("stimulus", self.domain.cells + 1, Grid(*self.grid))),
            (*CODINGS[self.coding].fields(self.domain, self.two), *masks),
            Target("category", len(self.domain.answers)),
        )

    def generate(self, condition: str, draws: Draws) -> Examples:
        plans = self.settings[condition].plans
        return self._examples(build_examples(plans, self.preset, self.block, condition != "train", draws))

    def blocks(self, condition: str, data_seed: DataSeed) -> Callable[[int], Examples]:
        pooled = self._pooled(condition)
        if pooled is None:
            return super().blocks(condition, data_seed)
        drawn_by = self.drawn_by()
        pool = make_pool(self.settings[condition].plans, self.preset, pooled, stream("pool", drawn_by, data_seed))
        # Which questions are asked when, and their grids, differ from pool to pool.
        named = stream("pooled", drawn_by, pooled, data_seed)
        return lambda block: self._examples(ask_examples(pool, self.block, named.block(block)))

    def _pooled(self, condition: str) -> int | None:
        """How many questions there are in the pool of a condition; None: all are fresh."""
        return self.pool if condition == "train" else None

    def _examples(self, block: Block) -> Examples:
        """Tokens in the coding of this task."""
        tokens, targets, factors = block
        inputs = CODINGS[self.coding].write(self.domain, self.two, tokens)
        if PRESETS[self.preset].masked:
            inputs["rule_mask"] = tokens.mask
        return Examples(inputs, targets, factors)

    def tokens(self, examples: Examples) -> Tokens:
        """The tokens behind the inputs, whatever their coding."""
        return CODINGS[self.coding].read(self.domain, examples.inputs)

    def solve(self, examples: Examples) -> Array:
        tokens = self.tokens(examples)
        return np.array(
            [
                solve(
                    self.domain, read_tree(self.domain, rule.tolist()), read_things(self.domain, grid), self._ties
                ).answer
                for rule, grid in zip(tokens.rule, tokens.grid, strict=True)
            ],
            np.int64,
        )

    def view(self, examples: Examples, index: int) -> View:
        """One example as a tree, objects and a path."""
        tokens = self.tokens(examples[index : index + 1])
        tree, things = read_tree(self.domain, tokens.rule[0].tolist()), read_things(self.domain, tokens.grid[0])
        solution = solve(self.domain, tree, things, self._ties)
        return View(self.name, self.domain, tree, things, solution, int(examples.targets[index]))

    def sentences(self, examples: Examples, form: FormName = "english") -> list[str]:
        """The questions in words."""
        return [
            write_sentence(self.domain, read_tree(self.domain, rule.tolist()), form)
            for rule in self.tokens(examples).rule
        ]

    def pixels(self, examples: Examples, cell: int = CELL) -> Image:
        """The grids as pictures of red, green and blue, (B, height, width, 3), with cells of that many pixels."""
        return render(self.domain, self.tokens(examples).grid, cell)

    def describe(self, examples: Examples, index: int) -> str:
        return describe(self.view(examples, index))

    def picture(self, examples: Examples, index: int) -> str:
        return picture(self.view(examples, index))

    def record(self, examples: Examples, index: int) -> dict[str, Any]:
        view = self.view(examples, index)
        return {
            "tree": tree_data(self.domain, view.tree),
            "objects": [thing_data(self.domain, thing) for thing in view.things],
            "target": view.target,
            "answer": self.domain.answer_name(view.target),
            "path": [step.value for step in view.solution.steps[:-1]],
            "sentences": {form: write_sentence(self.domain, view.tree, form) for form in FORM_NAMES},
            **{key: value for key, value in super().record(examples, index).items() if key != "target"},
        }

    def judge(self, path: Path, **companions: Path) -> Judgement:
        if companions:
            raise UsageError(f"{self.name}: examples stand for themselves; leave {', '.join(companions)} away")
        return judge_file(path, self.domain, self._ties)

    def shortcuts(self, condition: str) -> Sequence[Shortcut]:
        self.condition(condition)
        return task_shortcuts(
            self.settings[condition].plans, self.tokens, self.preset == "released", self._pooled(condition)
        )

    def ceilings(self, condition: str) -> Mapping[str, float]:
        self.condition(condition)
        return generic_ceilings(self.settings[condition].plans, self.preset == "released", self._pooled(condition))

    def artefacts(self, condition: str) -> Sequence[Artefact]:
        self.condition(condition)
        return task_artefacts(
            self.settings[condition].plans, self.tokens, self.preset == "released", self._pooled(condition)
        )


def check_standard(task: Gcog) -> None:
    """Refuse other operators where it is the paper's eight that are divided."""
    if task.operators != STANDARD:
        raise ValueError(f"operators: {task.name} divides the eight operators of the paper; leave the option away")


def _check_room(schema: Schema, depth: int, distractors: int) -> None:
    """Refuse questions with more objects than there are cells or different objects."""
    nodes = operator_count(depth)
    most = f"questions of depth {depth} have {nodes} operators and up to {distractors} distractors"
    if nodes + distractors > schema.cells:
        raise ValueError(
            f"{most}, but the grid has only {schema.cells} cells; take smaller depths, fewer distractors "
            "or a larger grid"
        )
    if nodes + distractors > np.prod(schema.sizes):
        raise ValueError(
            f"{most}, but there are only {np.prod(schema.sizes)} different objects; take smaller depths, "
            "fewer distractors or more features"
        )
