"""How times grow: of training steps over batch, width, length, rules and S, of generators and metrics over their sizes.

Each curve is measured in interleaved rounds of all its sizes, by the CPU's clock on one thread, and has its exponent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from time import process_time
from typing import Any

from benchmarks.alignment import METRICS
from benchmarks.rows import Asked, Row
from benchmarks.scaling_fit import exponents
from benchmarks.timing import Timed, calibrated, pinned, repeated, rounds_of
from unseen.running.chunk import make_job
from unseen.studies.grid import Grid
from unseen.tasks import task
from unseen.training.process import one_thread
from unseen.training.trainer import Trainer

Options = Mapping[str, Any]
Settings = Mapping[str, Options]
Work = Callable[[], object]
_LEAST = 0.05
"""Seconds that a round of a size takes at least: short work is repeated."""


@dataclass(frozen=True)
class Curve:
    """Work of several sizes: `what` over `over`."""

    what: str
    over: str
    sizes: Sequence[int]
    make: Callable[[int], Work]

    @property
    def case(self) -> str:
        """What it is called in the rows."""
        return f"{self.what} over {self.over}"


def growth(asked: Asked) -> Iterator[Row]:
    """A row for each point of each curve, and the exponent over its larger sizes, and over all of them.

    Quick: the three smallest sizes, twice.
    """
    for curve in asked.among(CURVES, lambda curve: curve.case):
        sizes = curve.sizes[:3] if asked.quick else curve.sizes
        found = _timed(curve, sizes, 2 if asked.quick else 5, 0.0 if asked.quick else _LEAST)
        for n, each in found.items():
            yield Row(
                curve.case,
                f"{curve.over}={n}",
                1e3 * each.seconds,
                "ms",
                "less",
                1e3 * each.low,
                1e3 * each.high,
                each.rounds,
            )
        yield from exponents(curve.case, {n: each.seconds for n, each in found.items()})


def _timed(curve: Curve, sizes: Sequence[int], rounds: int, least: float) -> dict[int, Timed]:
    """The CPU seconds of one piece of work of each size."""
    with one_thread(), pinned():
        works = {n: curve.make(n) for n in sizes}
        times = {n: calibrated(work, least)[0] for n, work in works.items()}
        contenders = {str(n): repeated(work, times[n]) for n, work in works.items()}
        found = rounds_of(contenders, rounds, process_time, warm=True)
    return {n: Timed.of([seconds / times[n] for seconds in found[str(n)]]) for n in sizes}


def _of(part: str, option: str) -> Callable[[int], Settings]:
    return lambda n: {part: {option: n}}


_BATCH, _WIDTH, _LENGTH, _RULES = (
    _of("recipe", "batch"),
    _of("model", "width"),
    _of("task", "length"),
    _of("task", "rules"),
)
_EIGHTS = (8, 16, 32, 64, 128, 256)


def _training(
    model: str, base: Settings, over: str, settings: Callable[[int], Settings], sizes: Sequence[int]
) -> Curve:
    """A step of training, data drawn in it, of a model with the published recipe but for the steps."""
    return Curve(model, over, sizes, lambda n: _step(_merged({"model": {"name": model}}, base, settings(n))))


def _stacking(model: str, base: Settings, sizes: Sequence[int] = (1, 2, 4, 8, 16, 32)) -> Curve:
    """A step of a stack of several members."""
    return Curve(model, "S", sizes, lambda n: _step(_merged({"model": {"name": model}}, base), members=n))


def _step(settings: Settings, members: int = 1) -> Work:
    # It never ends, never validates and never diverges.
    endless = {"steps": 10**9, "validate_every": 10**9, "learning_rate": 1e-9}
    grid = Grid({}, _merged(settings, {"recipe": endless}), range(members))
    trainer = Trainer(make_job([entry.trial for entry in grid.entries()]))
    return partial(trainer.advance, steps=1)


def _merged(*settings: Settings) -> dict[str, dict[str, Any]]:
    """Settings over each other, the last on top."""
    parts = dict.fromkeys(part for one in settings for part in one)
    return {part: {k: v for one in settings for k, v in one.get(part, {}).items()} for part in parts}


def _drawing(
    name: str, over: str, options: Callable[[int], Options], sizes: Sequence[int], examples: int = 4096
) -> Curve:
    """Drawing training examples; over their own number, as many as the size says."""
    return Curve(name, over, sizes, lambda n: _draw(name, options(n), n if over == "examples" else examples))


def _draw(name: str, options: Options, examples: int) -> Work:
    """The task is made anew and the data are other ones each time, so that nothing of the last time is left."""
    data_seeds = count()
    return lambda: task(name, **options).sample("train", examples, data_seed=next(data_seeds))


_RETRIEVAL: Settings = {"task": {"name": "retrieval/T6", "train_size": 2_000}, "recipe": {"batch": 10}}
_MLP: Settings = {"task": {"name": "rules/mlp"}, "recipe": {"name": "rules-mlp-paper"}}
_RNN: Settings = {"task": {"name": "rules/rnn"}, "recipe": {"name": "rules-rnn-paper", "batch": 64}}
_CTL: Settings = {
    "task": {"name": "ctl/A", "train_size": 2_000},
    "recipe": {"name": "ctl-transformer-paper", "batch": 64, "batches": "shuffled"},
}
_GCOG: Settings = {"task": {"name": "gcog/distractor"}, "recipe": {"name": "gcog-distractor-paper", "batch": 64}}

TRAINING = (
    _training("retrieval-transformer", _RETRIEVAL, "batch", _BATCH, _EIGHTS),
    _training("retrieval-transformer", _RETRIEVAL, "width", _WIDTH, (32, 64, 128, 256, 512)),
    _training("retrieval-transformer", _RETRIEVAL, "length", _LENGTH, (5, 10, 20, 40, 80, 160)),
    _stacking("retrieval-transformer", _RETRIEVAL, (1, 2, 4, 8, 16, 32, 64)),
    _training("rules-mlp", _MLP, "batch", _BATCH, (32, 64, 128, 256, 512, 1024)),
    _training("rules-mlp", _MLP, "width", _WIDTH, (32, 64, 128, 256, 512)),
    _training("rules-mlp", _MLP, "rules", _RULES, (2, 4, 8, 16, 32)),
    _stacking("rules-mlp", _MLP, (1, 2, 4, 8, 16, 32, 64)),
    _training("rules-rnn", _RNN, "batch", _BATCH, _EIGHTS),
    _training("rules-rnn", _RNN, "width", _WIDTH, (32, 64, 128, 256)),
    _training("rules-rnn", _RNN, "length", _LENGTH, (5, 10, 20, 40)),
    _training("rules-rnn", _RNN, "rules", _RULES, (2, 4, 8, 16, 32)),
    _stacking("rules-rnn", _RNN),
    _training("ctl-transformer", _CTL, "batch", _BATCH, _EIGHTS),
    _training(
        "ctl-transformer", _CTL, "width", lambda n: {"model": {"width": n, "feedforward": 2 * n}}, (32, 64, 128, 256)
    ),
    _training("ctl-transformer", _CTL, "length", _of("task", "max_length"), (4, 8, 16, 32)),
    _stacking("ctl-transformer", _CTL, (1, 2, 4, 8)),
    _training("gcog-single-stream", _GCOG, "batch", _BATCH, _EIGHTS),
    _training(
        "gcog-single-stream", _GCOG, "width", lambda n: {"model": {"width": n, "hidden": 2 * n}}, (32, 64, 128, 256)
    ),
    _training("gcog-single-stream", _GCOG, "length", lambda n: {"task": {"grid": (n // 10, 10)}}, (50, 100, 200, 400)),
    _stacking("gcog-single-stream", _GCOG, (1, 2, 4, 8, 16)),
)
"""A model of each family. The length of gcog is that of the stimulus: the places of its grid."""

_MANY, _COUNTS = (1024, 4096, 16384, 65536), (2, 4, 8, 16, 32)
DRAWING = (
    _drawing("retrieval/T6", "examples", lambda n: {"train_size": None}, _MANY),
    _drawing("retrieval/T6", "length", lambda n: {"length": n, "train_size": None}, (5, 10, 20, 40, 80)),
    _drawing("rules/mlp", "examples", lambda n: {}, _MANY),
    _drawing("rules/mlp", "rules", lambda n: {"rules": n}, _COUNTS),
    _drawing("rules/mha", "rules", lambda n: {"rules": n}, _COUNTS),
    _drawing("rules/rnn", "rules", lambda n: {"rules": n}, _COUNTS),
    _drawing("rules/rnn", "length", lambda n: {"length": n}, (5, 10, 20, 40)),
    _drawing("ctl/A", "examples", lambda n: {"train_size": n}, (4_000, 16_000, 64_000, 256_000)),
    _drawing("ctl/A", "length", lambda n: {"max_length": n, "train_size": 20_000}, (4, 8, 16, 32), 20_000),
    _drawing("gcog/distractor", "examples", lambda n: {}, _MANY),
    _drawing("gcog/distractor", "distractors", lambda n: {"distractors": (n, n)}, (5, 10, 20, 40)),
    _drawing("gcog/productive", "depth", lambda n: {"train_depths": (n,)}, (1, 3, 5, 7)),
)
"""Generators. A finite set (ctl) is drawn whole; the others give 4 096 examples, unless their number is what grows."""

ANALYSES = tuple(
    Curve(name, METRICS[name].of, sizes, METRICS[name].make)
    for name, sizes in (
        ("alignment, routing at random", (64, 128, 256, 512, 1024)),
        ("alignment, routing half decided", (64, 128, 256, 512, 1024)),
        ("linear CKA", (100, 200, 400, 800, 1600)),
        ("Procrustes", (100, 200, 400, 800)),
        ("RSA", (100, 200, 400, 800, 1600)),
        ("RSA by ranks", (100, 200, 400, 800, 1600)),
        ("gap of groups", (16, 32, 64, 128)),
        ("clusters", (32, 64, 128, 256)),
        ("gain of groups", (16, 32, 64, 128)),
    )
)

CURVES = (*TRAINING, *DRAWING, *ANALYSES)
