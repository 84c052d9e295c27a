"""How fast the generators are: examples per second on one core, and their share of the step they feed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

from benchmarks.cases import Case, rules_case
from benchmarks.rows import Asked, Row
from benchmarks.timing import Timed, calibrated, pinned, ratio, repeated, rounds_of
from unseen.tasks import TASKS, task
from unseen.tasks.base import Task
from unseen.training.process import one_thread

WHOLE = "all"
"""In place of a split: a finite set with everything that belongs to it."""
_STREAM = {"train_size": None, "evaluation_size": None}
"""A retrieval task without end, so that nothing is drawn but what is asked for."""
_BLOCKS = 16
STACKED = {"rules/mlp": 16, "rules/mha": 4, "rules/rnn": 4}
"""The members whose step is compared with drawing their batches: about as many as make it shortest."""
FIGURE = "examples per second"


@dataclass(frozen=True)
class Drawn:
    """What is drawn: a task with options, of which `setting` is not in the name, and a split."""

    task: str
    split: str
    options: Mapping[str, Any] = field(default_factory=dict)
    setting: Mapping[str, Any] = field(default_factory=dict)
    quick: bool = False

    @property
    def name(self) -> str:
        """The task, its options, the split."""
        shown = [
            f"{key}={'-'.join(map(str, value)) if isinstance(value, tuple) else value}"
            for key, value in self.options.items()
        ]
        return " ".join([self.task, *shown, f"split={self.split}"])

    def make(self) -> Task:
        """The task."""
        return task(self.task, **{**self.options, **self.setting})


def _table() -> list[Drawn]:
    retrieval = [
        Drawn(
            entry.name,
            split,
            {"preset": preset, "length": length},
            _STREAM,
            quick=(entry.name, length, preset, split) == ("retrieval/T6", 10, "clean", "train"),
        )
        for entry in TASKS
        if entry.name.startswith("retrieval/")
        for preset in ("clean", "released")
        for length in ((5, 10, 30) if entry.name == "retrieval/T6" else (10,))
        for split in ("train", "ood/single")
    ]
    rules = [
        Drawn(
            f"rules/{kind}",
            "train",
            {"setting": setting, "rules": rules},
            quick=(setting, rules) == ("classification", 2),
        )
        for kind in ("mlp", "mha", "rnn")
        for setting in ("classification", "regression")
        for rules in (2, 8, 32)
    ]
    ctl = [
        Drawn(f"ctl/{variant}", WHOLE, {"preset": preset}, quick=(variant, preset) == ("lengths", "clean"))
        for variant in ("A", "R", "S", "lengths")
        for preset in ("clean", "released")
    ]
    gcog = [
        Drawn(
            "gcog/productive",
            split,
            {"coding": coding, "distractors": distractors},
            {"distractors": (distractors, distractors)} if isinstance(distractors, int) else {},
            quick=(coding, distractors, split) == ("integer", (1, 5), "iid/depth=1"),
        )
        for coding in ("integer", "onehot", "embedding")
        for distractors in ((1, 5), 40)
        for split in ("iid/depth=1", "iid/depth=3", *(("ood/depth=7",) if coding == "integer" else ()))
    ]
    others = [Drawn(f"gcog/{name}", "train") for name in ("distractor", "systematic-operators", "systematic-trees")]
    groups = [Drawn(f"groups/{name}", "train") for name in ("Z2", "S3", "A5", "S5", "own")]
    return [*retrieval, *rules, *ctl, *gcog, *others, *groups, Drawn("recall/mqar", "train")]


TABLE = tuple(_table())


def generators(asked: Asked) -> Iterator[Row]:
    """Rows `examples per second`, in CPU time: 16 blocks at a time, and for finite sets (`split=all`) all there is,
    with its `seconds`. For the rules family also `share of a step MODEL`: what drawing a batch takes of a step of the
    model without gating and with joint gating, stacked.
    """
    effort = (0.01, 2) if asked.quick else (0.2, 5)
    for drawn in asked.among([one for one in TABLE if one.quick or not asked.quick], lambda one: one.name):
        with one_thread(), pinned():
            yield from list(_whole(drawn, effort[1]) if drawn.split == WHOLE else _rate(drawn, *effort))


def _whole(drawn: Drawn, rounds: int) -> Iterator[Row]:
    """A set that was drawn is kept: every round needs another data seed."""
    seeds, sizes = count(), list[int]()

    def draw() -> None:
        made, seed = drawn.make(), next(seeds)
        sizes.append(sum(len(made.sample(c, made.size(c) or 0, data_seed=seed)) for c in made.splits))

    found = rounds_of({"all": draw}, rounds, time.process_time)["all"]
    yield _row(drawn, "seconds", Timed.of(found), "s", "less")
    rates = [size / took for size, took in zip(sizes[1:], found, strict=True)]
    yield _row(drawn, FIGURE, Timed.of(rates), "1/s", "more")


def _rate(drawn: Drawn, seconds: float, rounds: int) -> Iterator[Row]:
    made = drawn.make()
    many = _BLOCKS * made.block
    work: dict[str, Callable[[], object]] = {"draw": partial(made.sample, drawn.split, many)}
    steps = _fed(drawn)
    members = STACKED.get(drawn.task, 1)
    work |= {case.name: partial(case.trainer(members).advance, 1) for case in steps}
    times = {name: calibrated(one, seconds)[0] for name, one in work.items()}
    found = rounds_of(
        {name: repeated(one, times[name]) for name, one in work.items()}, rounds, time.process_time, warm=True
    )
    yield _row(drawn, FIGURE, Timed.of([times["draw"] * many / took for took in found["draw"]]), "1/s", "more")
    for case in steps:
        of_a_batch = members * case.batch / many * times[case.name] / times["draw"]
        share = ratio(found, "draw", case.name, of_a_batch)
        yield _row(drawn, f"share of a step gating={case.options['gating']}", share, "", "less")


def _fed(drawn: Drawn) -> list[Case]:
    """The models whose step is compared: those of the rules family, as narrow as they come."""
    if drawn.options.get("setting") != "classification":
        return []
    kind = drawn.task.removeprefix("rules/")
    return [rules_case(kind, 32, drawn.options["rules"], gating) for gating in ("none", "joint")]


def _row(drawn: Drawn, figure: str, found: Timed, unit: str, better: Any) -> Row:
    return Row(drawn.name, figure, found.seconds, unit, better, found.low, found.high, found.rounds)
