"""The four gCOG tasks. Each holds something else out of training: numbers of distractors, combinations or depths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import product
from typing import Annotated, Literal, Self

from pydantic import Field as Option
from pydantic import field_validator, model_validator

from unseen.randomness import stream
from unseen.tasks.base import Artefact, Split
from unseen.tasks.gcog.audit import measure_leak
from unseen.tasks.gcog.plan import OperatorGroup, QuestionPlan, number_objects
from unseen.tasks.gcog.schema import STANDARD, HoldOut, Schema
from unseen.tasks.gcog.task import IID, TRAIN, Count, GcogTask, PlannedSplit

Depth = Annotated[int, Option(ge=1, le=99)]


class Distractor(GcogTask):
    """Distractor generalization: single operators among 1 to 5 distractors, tested among more, up to 40 and beyond.

    No value of a factor is unseen; only the number of distractors shifts.

    Examples of training, with one distractor and with two, where x is the column and y the row:

        GetColor(k)        cyan k (5, 1), cyan z (6, 0)                     → cyan
        SumEven(blue o)    green c (1, 6), blue o (8, 4), cyan k (9, 1)     8 + 4 = 12 is even → True

    Edge case: an operator that names the shape alone, like the first, must have no distractor of that shape (in the
    preset `clean`), so its distractors are drawn from the other shapes only.

    >>> from unseen.tasks.gcog.solver import solve
    >>> from unseen.tasks.gcog.schema import Schema
    >>> from unseen.tasks.gcog.tree import GridObject, Query
    >>> k, z, c, o = (("k", "cyan"), ("z", "cyan"), ("c", "green"), ("o", "blue"))
    >>> grid = [GridObject(k, 5, 1), GridObject(z, 6, 0)], [GridObject(c, 1, 6), GridObject(o, 8, 4), GridObject(k, 9, 1)]
    >>> Schema().answers[solve(Schema(), Query("GetColor", (("k", None),)), grid[0]).answer]
    ('color', 'cyan')
    >>> Schema().answers[solve(Schema(), Query("SumEven", (o,)), grid[1]).answer]
    True
    """

    name: Literal["gcog/distractor"] = "gcog/distractor"
    ood_distractors: tuple[Count, ...] = Option(
        (10, 20, 30, 40), description="tested numbers of distractors; those not above training are ignored"
    )

    def _plan_splits(self) -> Sequence[PlannedSplit]:
        low, high = self._distractors
        trained = self._make_plan(1)
        splits = [PlannedSplit(TRAIN, (trained,)), PlannedSplit(IID, (trained,))]
        # The lowest number of training, but at least 1, and the highest; once if they are equal.
        for n in dict.fromkeys((min(max(low, 1), high), high)):
            split = Split(f"iid/distractors={n}", f"{n} distractors, a number that occurs in training")
            splits.append(PlannedSplit(split, (self._make_plan(1, (n, n)),)))
        ranges = [(n, n) for n in self.ood_distractors if n > high]
        # The paper compares representations on a range of 10 above the highest number. At most as many distractors
        # fit as there are cells besides that of the object, and objects with another value of the feature it is found by.
        highest = max((n for n, _ in ranges), default=0)
        objects = self.domain.object_count
        room = min(self.domain.cells - 1, *(objects - objects // size for size in self.domain.sizes))
        if 0 < highest < min(highest + 10, room):
            ranges.append((highest, min(highest + 10, room)))
        for first, last in ranges:
            numbers = (str(first),) if first == last else (str(first), str(last))
            summary = f"{' to '.join(numbers)} distractors; only their number shifts"
            split = Split(f"ood/distractors={'-'.join(numbers)}", summary)
            splits.append(PlannedSplit(split, (self._make_plan(1, (first, last)),)))
        return splits


class Productive(GcogTask):
    """Productive generalization: trees of some depths, equally likely, tested on deeper ones.

    The grid must have a cell for every operator, which limits the depth.

    Examples, on a grid with a cyan l at (2, 5), a purple r at (5, 3) and a white p at (5, 9):

        depth 1   GetColor(r)                                                           → purple
        depth 3   if SumEven(cyan l) then GetColor(r) else GetLocation(white p)         2 + 5 = 7 is odd → (5, 9)

    Edge case: a deeper tree has more branches that are not taken. Only the operators on the path count, so a tree of
    depth 5 with three conditionals is answered by two tests and one question.

    >>> from unseen.tasks.gcog.solver import solve
    >>> from unseen.tasks.gcog.schema import Schema
    >>> from unseen.tasks.gcog.tree import Conditional, GridObject, Query
    >>> l, r, p = ("l", "cyan"), ("r", "purple"), ("p", "white")
    >>> grid = [GridObject(l, 2, 5), GridObject(r, 5, 3), GridObject(p, 5, 9)]
    >>> shallow = Conditional(Query("SumEven", (l,)), Query("GetColor", (("r", None),)), Query("GetLocation", (p,)))
    >>> deep = Conditional(Query("Exist", (l,)), shallow, shallow)
    >>> [Schema().answers[solve(Schema(), tree, grid).answer] for tree in (shallow.then, shallow, deep)]
    [('color', 'purple'), (5, 9), (5, 9)]
    >>> len(solve(Schema(), deep, grid).steps)
    3
    """

    name: Literal["gcog/productive"] = "gcog/productive"
    train_depths: tuple[Depth, ...] = Option((1, 3), description="depths of the training questions, equally likely")
    depths: tuple[Depth, ...] = Option((1, 3, 5, 7), description="tested depths")

    @field_validator("train_depths", "depths", mode="before")
    @classmethod
    def _accept_text(cls, value: object) -> object:
        """Depths may be given as "1,3" or, if there is only one, as a number."""
        if isinstance(value, str):
            return tuple(depth.strip() for depth in value.split(","))
        return (value,) if isinstance(value, int) else value

    @field_validator("train_depths", "depths")
    @classmethod
    def _check_odd(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if not value or any(depth % 2 == 0 for depth in value) or list(value) != sorted(set(value)):
            raise ValueError("expected different odd numbers in ascending order, such as 1,3")
        return value

    def _plan_splits(self) -> Sequence[PlannedSplit]:
        mixed = len(self.train_depths) > 1
        # In the preset released, mixing depths changes the number of distractors.
        trained_distractors = self._mixed_distractors if mixed else self._distractors
        train = {depth: self._make_plan(depth, trained_distractors) for depth in self.train_depths}
        plans = tuple(train.values())
        depths = " and ".join(map(str, self.train_depths))
        splits = [
            PlannedSplit(Split("train", f"training data: questions of depth {depths}"), plans),
            PlannedSplit(IID, plans),
        ]
        for depth in sorted({*self.train_depths, *self.depths}):
            if depth not in train:
                split = Split(
                    f"ood/depth={depth}", f"questions of depth {depth}, which training does not have", ("depth",)
                )
                splits.append(PlannedSplit(split, (self._make_plan(depth),)))
            elif mixed:  # with a single training depth, this would be `iid` again
                split = Split(f"iid/depth={depth}", f"fresh questions of depth {depth}")
                splits.append(PlannedSplit(split, (self._make_plan(depth, self._mixed_distractors),)))
        return splits


def _check_standard(task: GcogTask) -> None:
    if task.operators != STANDARD:
        raise ValueError(f"operators: {task.name} divides the eight operators of the paper; omit this option")


Portion = Literal["train", "test"]
ObjectValues = tuple[int, ...]
"""An object as the indices of its values, feature by feature."""
Combination = tuple[str, ObjectValues]
"""An operator and an object."""

OPERATORS_A = ("Exist", "SumEven", "ProductEven", "GetShape")
OPERATORS_B = ("SumOdd", "ProductOdd", "GetLocation", "GetColor")


@lru_cache(maxsize=32)
def divide_objects(
    sizes: tuple[int, ...], hold_out: HoldOut, portion: Portion
) -> Mapping[str, tuple[ObjectValues, ...]]:
    """Return the objects of each operator in training or in test.

    - `released`: the operators of group A train with the first half of the colours, those of group B with the second
      half of the shapes; tests exchange the two. They overlap in a quarter of all objects, so half of the test
      combinations of operator and object are also training combinations.
    - `released-minus-leak`: the same, but tests leave out the overlap.
    - `clean`: a checkerboard of halves, with every colour and every shape in training and in test. An operator that
      names one feature only is divided by that feature.

    Args:
        sizes: the number of values of each feature, shape and colour first.
        hold_out: the way in which objects are divided.
        portion: training or test.
    """
    objects = tuple(product(*map(range, sizes)))

    def select(test: Callable[[bool, bool], bool]) -> tuple[ObjectValues, ...]:
        """Return objects by whether their shape and their colour are in the second half of the values."""
        selected = []
        for values in objects:
            if test(2 * values[0] >= sizes[0], 2 * values[1] >= sizes[1]):
                selected.append(values)
        return tuple(selected)

    early_colors = select(lambda late_shape, late_color: not late_color)
    late_shapes = select(lambda late_shape, late_color: late_shape)
    first, second = early_colors, late_shapes
    if hold_out == "clean":
        first = select(lambda late_shape, late_color: late_shape == late_color)
        second = select(lambda late_shape, late_color: late_shape != late_color)
    if portion == "test":
        first, second = second, first
        if hold_out == "released-minus-leak":
            first = select(lambda late_shape, late_color: late_shape and late_color)
            second = select(lambda late_shape, late_color: not late_shape and not late_color)
    divided = dict.fromkeys(OPERATORS_A, first) | dict.fromkeys(OPERATORS_B, second)
    if hold_out == "clean" and portion == "train":
        divided |= {"GetShape": early_colors, "GetColor": late_shapes}
    elif hold_out == "clean":
        divided["GetShape"] = select(lambda late_shape, late_color: late_color)
        divided["GetColor"] = select(lambda late_shape, late_color: not late_shape)
    return divided


def list_instructions(schema: Schema, combinations: Iterable[Combination]) -> set[Combination]:
    """Return the pairs of an operator and the codes it states, with 0 for a feature that it does not state."""
    instructions: set[Combination] = set()
    for name, values in combinations:
        codes = [0] * len(values)
        for feature in schema.operators[name].named_features:
            codes[feature] = values[feature] + 1
        instructions.add((name, tuple(codes)))
    return instructions


class SystematicOperators(GcogTask):
    """Systematic generalization of operators: each is trained with some objects and tested with others.

    The option `split` selects the hold-out, see `divide_objects`. With the hold-outs clean and released-minus-leak,
    training and test share no combination of operator and object; with the published one they share half of them. `coverage`
    moves a share of the test combinations of every operator into training, so that fewer are left to be tested.

    Examples: if training asks `GetLocation` about the red a and `SumEven` about the green b, a test may ask

        SumEven(red a)          red a (1, 3), green b (0, 0)     1 + 3 = 4 is even → True
        GetLocation(green b)    the same grid                    → (0, 0)

    Edge case: an operator that names one feature alone, like GetColor(b), is divided by that feature in the hold-out
    `clean`: its shapes are in training or in the test, with every colour.

    >>> from unseen.tasks.gcog.solver import solve
    >>> from unseen.tasks.gcog.schema import Schema
    >>> from unseen.tasks.gcog.tree import GridObject, Query
    >>> a, b = ("a", "red"), ("b", "green")
    >>> grid = [GridObject(a, 1, 3), GridObject(b, 0, 0)]
    >>> [Schema().answers[solve(Schema(), Query(*q), grid).answer] for q in (("SumEven", (a,)), ("GetLocation", (b,)))]
    [True, (0, 0)]
    """

    name: Literal["gcog/systematic-operators"] = "gcog/systematic-operators"
    split: HoldOut | None = Option(
        None, description="the hold-out: how objects are divided between training and test; None: that of the preset"
    )
    coverage: float = Option(
        0.0,
        ge=0,
        lt=1,
        description="share of the test combinations of operator and object that are in training instead; hold-out clean only",
    )

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        _check_standard(self)
        if self.coverage and (self.preset == "released" or self._hold_out != "clean"):
            raise ValueError("coverage: the other hold-outs share combinations already; use the hold-out clean")
        if self.two_objects:
            raise ValueError("two_objects: a combination is one operator and one object; omit this option")
        return self

    @property
    def _hold_out(self) -> HoldOut:
        return self._preset.hold_out if self.split is None else self.split

    def _divide_objects(self, portion: Portion) -> Mapping[str, tuple[ObjectValues, ...]]:
        shapes, *other_sizes = self.domain.sizes
        divide = partial(divide_objects, (self.task_shapes or shapes, *other_sizes), self._hold_out)
        if not self.coverage:
            return divide(portion)
        divided: dict[str, tuple[ObjectValues, ...]] = {}
        for name, tested in divide("test").items():
            covered, remaining = self._cover(name, tested)
            divided[name] = remaining if portion == "test" else (*divide("train")[name], *covered)
        return divided

    def _cover(
        self, name: str, tested: Sequence[ObjectValues]
    ) -> tuple[tuple[ObjectValues, ...], tuple[ObjectValues, ...]]:
        """The test objects of an operator that `coverage` puts into training, and those that stay in the test."""
        # An operator that names the colour alone gets whole colours: all shapes of one are the same question.
        objects_by_question: dict[tuple[int, ...], list[ObjectValues]] = {}
        for values in tested:
            question = tuple(values[feature] for feature in self.domain.operators[name].named_features)
            objects_by_question.setdefault(question, []).append(values)
        questions = sorted(objects_by_question)
        # A larger coverage keeps the questions of a smaller one and adds others. At least one stays unseen.
        count = min(round(self.coverage * len(questions)), len(questions) - 1)
        order = stream("gcog coverage", name, self.domain.sizes).block().permutation(len(questions))
        covered = {questions[index] for index in order[:count].tolist()}
        in_training: list[ObjectValues] = []
        remaining: list[ObjectValues] = []
        for question, objects in objects_by_question.items():
            if question in covered:
                in_training += objects
            else:
                remaining += objects
        return tuple(in_training), tuple(remaining)

    def combinations(self, portion: Portion) -> set[Combination]:
        """Return the pairs of operator and object that occur in training or in test."""
        combinations: set[Combination] = set()
        for name, objects in self._divide_objects(portion).items():
            combinations.update((name, values) for values in objects)
        return combinations

    def _plan_splits(self) -> Sequence[PlannedSplit]:
        trained, tested = self.combinations("train"), self.combinations("test")
        shared = len(trained & tested)
        leak = f"{shared} of them training combinations" if shared else "none of them in training"
        train = Split("train", f"training data: {len(trained)} combinations of operator and object")
        test = Split(
            "ood/operators",
            f"{len(tested)} combinations of operator and object, {leak}",
            () if shared else ("operator", "object"),
        )
        train_plan = self._make_restricted_plan("train")
        return [
            PlannedSplit(train, (train_plan,)),
            PlannedSplit(IID, (train_plan,)),
            PlannedSplit(test, (self._make_restricted_plan("test"),)),
        ]

    def _make_restricted_plan(self, portion: Portion) -> QuestionPlan:
        # The published code divides whole objects, including the feature that a Get operator asks for.
        whole = self.preset == "released"
        allowed = []
        for name, objects in self._divide_objects(portion).items():
            allowed.append((name, number_objects(self.domain, name, objects, whole)))
        return self._make_plan(1, allowed_objects=tuple(allowed))

    def artefacts(self, split: str) -> Sequence[Artefact]:
        artefacts = list(super().artefacts(split))
        if split == "ood/operators":
            trained, tested = self.combinations("train"), self.combinations("test")
            trained_instructions = list_instructions(self.domain, trained)
            tested_instructions = list_instructions(self.domain, tested)
            artefacts.append(
                Artefact(
                    "leak",
                    "share of questions whose operator was trained with the same stated values "
                    f"({len(trained & tested)} of {len(tested)} combinations, "
                    f"{len(trained_instructions & tested_instructions)} of {len(tested_instructions)} instructions)",
                    partial(measure_leak, trained_instructions),
                    absent=0.0,
                    tolerance=0.0,
                    known=self._hold_out == "released",
                )
            )
        return artefacts


ROOTS_A = ("Exist", "SumEven", "ProductEven")
ROOTS_B = ("SumOdd", "ProductOdd")
LEAVES_A = ("SumEven", "ProductEven", "GetColor", "GetShape")
LEAVES_B = ("Exist", "SumOdd", "ProductOdd", "GetLocation")

TREE_GROUPS: dict[str, tuple[OperatorGroup, ...]] = {
    "train": ((ROOTS_A, LEAVES_A, LEAVES_A), (ROOTS_B, LEAVES_B, LEAVES_B)),
    "test": ((ROOTS_A, LEAVES_B, LEAVES_B), (ROOTS_B, LEAVES_A, LEAVES_A)),
    "mixed-leaves": ((ROOTS_A + ROOTS_B, LEAVES_A, LEAVES_B), (ROOTS_A + ROOTS_B, LEAVES_B, LEAVES_A)),
}


class SystematicTrees(GcogTask):
    """Systematic generalization of trees: trees of three operators that training does not combine.

    In training, the tests Exist, SumEven and ProductEven select between questions of one group (SumEven, ProductEven,
    GetColor, GetShape), and SumOdd and ProductOdd between those of another (Exist, SumOdd, ProductOdd, GetLocation).
    Test splits exchange the two groups (`ood/trees`), or take one question from each (`ood/mixed-leaves`).

    Examples, on a grid with a green z at (0, 0), a pink i at (4, 6) and a yellow b at (3, 7):

        train       if SumOdd(green z) then Exist(pink i) else GetLocation(yellow b)      0 is even → (3, 7)
        ood/trees   if SumOdd(green z) then ProductEven(pink i) else GetShape(yellow)     0 is even → b

    Edge case: a tree of `ood/mixed-leaves` may take the path to the question that training combines with its test; it
    counts as unseen all the same, because the tree does.

    >>> from unseen.tasks.gcog.solver import solve
    >>> from unseen.tasks.gcog.schema import Schema
    >>> from unseen.tasks.gcog.tree import Conditional, GridObject, Query
    >>> z, i, b = ("z", "green"), ("i", "pink"), ("b", "yellow")
    >>> grid = [GridObject(z, 0, 0), GridObject(i, 4, 6), GridObject(b, 3, 7)]
    >>> test = Query("SumOdd", (z,))
    >>> train = Conditional(test, Query("Exist", (i,)), Query("GetLocation", (b,)))
    >>> unseen = Conditional(test, Query("ProductEven", (i,)), Query("GetShape", ((None, "yellow"),)))
    >>> [Schema().answers[solve(Schema(), tree, grid).answer] for tree in (train, unseen)]
    [(3, 7), ('shape', 'b')]
    """

    name: Literal["gcog/systematic-trees"] = "gcog/systematic-trees"

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        _check_standard(self)
        return self

    def _plan_splits(self) -> Sequence[PlannedSplit]:
        mixed = self._mixed_distractors
        train = (self._make_plan(1, mixed), self._make_plan(3, mixed, TREE_GROUPS["train"]))
        exchanged = self._make_plan(3, groups=TREE_GROUPS["test"])
        mixed_leaves = self._make_plan(3, groups=TREE_GROUPS["mixed-leaves"])
        unseen = ("operators",)
        return [
            PlannedSplit(Split("train", "training data: single operators, and trees of 80 operator triples"), train),
            PlannedSplit(IID, train),
            PlannedSplit(Split("iid/depth=3", "fresh trees of the 80 training triples"), train[1:]),
            PlannedSplit(
                Split("ood/trees", "trees of 80 other triples: roots with the leaves of the other group", unseen),
                (exchanged,),
            ),
            PlannedSplit(
                Split("ood/mixed-leaves", "trees whose two leaves come from different groups", unseen), (mixed_leaves,)
            ),
        ]
