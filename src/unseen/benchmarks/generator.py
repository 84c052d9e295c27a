"""How fast the generators are: examples per second on one core."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count

from unseen.benchmarks.timing import medians
from unseen.tasks import TASKS, task

Row = dict[str, object]
_ENDLESS: Row = {"train_size": None, "evaluation_size": None}


def generator(quick: bool = False) -> Iterator[Row]:
    """Rows (task, options, condition, examples per second): 16 blocks at a time, median of 5."""
    yield from _retrieval(quick)
    yield from _rules(quick)
    yield from _ctl(quick)
    yield from _gcog(quick)


def _retrieval(quick: bool) -> Iterator[Row]:
    names = [e.name for e in TASKS if e.name.startswith("retrieval/")]
    for name in names[:1] if quick else names:
        for length in (10,) if quick else (5, 10, 30):
            for preset in ("clean", "released"):
                shown: Row = {"preset": preset, "length": length}
                yield from _rows(name, shown, _ENDLESS, ("train", "ood/single"), quick)


def _rules(quick: bool) -> Iterator[Row]:
    """The training data of the papers' grid; a training step takes 256 examples."""
    for name in ("rules/mlp", "rules/mha", "rules/rnn"):
        for rules in (8,) if quick else (2, 8, 32):
            for setting in ("classification", "regression"):
                yield from _rows(name, {"setting": setting, "rules": rules}, {}, ("train",), quick)


def _ctl(quick: bool) -> Iterator[Row]:
    """Finite sets, drawn whole: the training set of A and S with all that is held out and all test sets."""
    for name in ("ctl/A",) if quick else ("ctl/A", "ctl/S"):
        for preset in ("clean",) if quick else ("clean", "released"):
            data_seeds = count()  # a set that was drawn is kept: every round needs another

            def draw(name: str = name, preset: str = preset, data_seeds: Iterator[int] = data_seeds) -> int:
                made, data_seed = task(name, preset=preset), next(data_seeds)
                return sum(len(made.sample(c, made.size(c) or 0, data_seed=data_seed)) for c in made.conditions)

            seconds = medians({"all": draw}, rounds=1 if quick else 5)["all"]
            yield {"task": name, "preset": preset, "condition": "all", "seconds": round(seconds, 3),
                   "examples_per_second": round(draw() / seconds)}


def _gcog(quick: bool) -> Iterator[Row]:
    """Single questions and trees, among 1 to 5 distractors and among 40, everything fresh."""
    for coding in ("integer",) if quick else ("integer", "onehot", "embedding"):
        for distractors in ((1, 5), (40, 40)):
            shown: Row = {"coding": coding, "distractors": distractors}
            deeper = () if quick else ("train", "ood/depth=5", "ood/depth=7")
            yield from _rows("gcog/productive", shown, {}, ("iid/depth=1", "iid/depth=3", *deeper), quick)
    if not quick:
        yield from _rows("gcog/productive", {"preset": "released"}, {}, ("iid/depth=1", "iid/depth=3"), quick)


def _rows(name: str, shown: Row, more: Row, conditions: tuple[str, ...], quick: bool) -> Iterator[Row]:
    made = task(name, **shown, **more)
    many = 16 * made.block
    found = medians({c: partial(made.sample, c, many) for c in conditions}, rounds=1 if quick else 5)
    for condition, seconds in found.items():
        yield {"task": name, **shown, "condition": condition, "examples_per_second": round(many / seconds)}
