"""What work takes on this machine: a few short probes, kept in the user's cache, and an estimate for every cell."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

from unseen.config import digest
from unseen.engine.evaluate import examples_drawn
from unseen.engine.lengths import typical
from unseen.engine.probe import best_size, longer_tests, sizes, time_sizes
from unseen.engine.specialize import sampled_examples
from unseen.studies.cell import Cell
from unseen.studies.cost import cost, counts
from unseen.studies.crowd import Crowd
from unseen.studies.plan import shape
from unseen.studies.rates_cache import Rate, RatesCache
from unseen.studies.slice import job
from unseen.tasks.base import Task

SELECTIONS = 2
"""A finished run is evaluated twice: its best weights and its last."""
_ANOTHER_MODEL, _NEARLY_NOTHING = 10.0, 0.01
"""How far kinds of two models are from each other, and kinds of equal FLOPs, on the scale of the logarithm of FLOPs."""
_UNKNOWN = Rate({1: 1e-3}, {1: 1e-6}, 1.0, 0.0, 0.0, 1, 1)
"""Where nothing could be tried."""


@dataclass(frozen=True)
class Kind:
    """What determines the time of a step: the model's options, the task's spec, the batch."""

    key: str
    model: str
    flops: float
    batch: int = 1

    def distance(self, other: Kind) -> tuple[bool, float]:
        """How badly the rate of another kind serves for this one: another model is worse than any other size."""
        return self.model != other.model, abs(math.log(max(self.flops, 1) / max(other.flops, 1)))


class Rates:
    """Estimates from measured rates. A kind that was not measured takes what the nearest does that was, and for the
    FLOPs that it has more, what the fastest takes for so many.

    Members that stop early or diverge make a run shorter than estimated.
    """

    def __init__(self, known: Mapping[Kind, Rate]) -> None:
        self._known = dict(known)
        self._found: dict[Kind, Rate] = {}

    @staticmethod
    def measure(
        cells: Iterable[Cell],
        *,
        also: Iterable[Cell] = (),
        probes: int = 10,
        seconds: float = 20.0,
        workers: int = 1,
        cache: Path | None = None,
        device: str = "cpu",
        on_probe: Callable[[str], object] = lambda said: None,
    ) -> Rates:
        """Rates for the kinds of step that carry most FLOPs, from the cache or by training some throw-away steps.

        At most so many probes and about so many seconds: no probe is begun after that, and each ends its share early.
        With no probes there is what the cache has. `also` are cells to be priced and not run: their kinds get the
        probes that are left. Where there will be several workers, as many processes probe at once. `cache` is a file
        (default: `rates.json` in the user's cache directory); `on_probe` hears what is being measured.
        """
        store = RatesCache(cache, device)
        work = [_Work(cells), _Work(also)]
        chosen: dict[Kind, _Work] = {}
        for part in work:
            chosen |= dict.fromkeys(_choose(part.carried, probes - len(chosen), chosen), part)
        tried = {kind: sizes(max(part.most.get(kind, 0) for part in work)) for kind in chosen}
        missing = [kind for kind in chosen if not store.covers(kind.key, tried[kind][-1], workers)]
        with Crowd(workers if missing else 1) as crowd:
            deadline = time.monotonic() + seconds
            for i, kind in enumerate(missing):
                left = deadline - time.monotonic()
                if i and left <= 0:
                    break
                on_probe(f"probe {i + 1} of {len(missing)}: {kind.model}")
                asked = (chosen[kind].example[kind], tried[kind], left / (len(missing) - i), device)
                with suppress(Exception):  # a model that can't be tried: its cells will fail, and say why
                    store.add(kind.key, crowd.probe(*asked) or replace(probe(*asked), crowd=workers))
        store.save()
        counts().save()
        kinds = {kind for part in work for kind in part.carried}
        return Rates({kind: store.known[kind.key] for kind in kinds if kind.key in store.known})

    def measured(self, cells: Iterable[Cell]) -> tuple[int, int]:
        """How many of the kinds of step of these cells were measured, and how many kinds there are."""
        kinds = {kind_of(cell) for cell in cells}
        return len(kinds & self._known.keys()), len(kinds)

    def size(self, cell: Cell) -> int:
        """How many members of this kind to stack at most."""
        return best_size(self._rate(kind_of(cell)).steps)

    def seconds(self, cell: Cell) -> float:
        """Core seconds of the whole cell, in a stack of the best size."""
        members = self.size(cell)
        return self._stack_seconds(cell, members, members, 1) / members

    def stack_seconds(self, cells: Sequence[Cell]) -> float:
        """Core seconds of a stack: building it, drawing the data, steps, validations, and the evaluation of the best
        and the last weights with its analyses."""
        sources = {(c.task.as_json, c.data_seed) for c in cells}
        return self._stack_seconds(cells[0], len(cells), len(sources), len({task for task, _ in sources}))

    def _stack_seconds(self, cell: Cell, members: int, sources: int, tasks: int) -> float:
        task, recipe, rate = cell.task, cell.recipe, self._rate(kind_of(cell))
        validated = _drawn(task, task.validation, recipe.validation_examples)
        validations = 1 + math.ceil(recipe.steps / recipe.validate_every)
        evaluated = SELECTIONS * examples_drawn(task, cell.evaluation)
        # Members on one instance of the task are evaluated together, on examples drawn once for all of them.
        alike = math.ceil(members / tasks)
        by_itself = SELECTIONS * sampled_examples(cell.model, task, cell.evaluation)
        each = (
            recipe.steps * rate.step(members)
            + validations * validated * rate.answer(members)
            + evaluated * rate.answer(alike) * rate.tests
            + by_itself * (rate.answer(1) + rate.draw)
            + (1 + SELECTIONS) * rate.build
        )
        trained = task.size("train") or recipe.steps * recipe.batch
        tested = SELECTIONS * examples_drawn(task, cell.evaluation, math.ceil(sources / tasks))
        return members * each + rate.draw * (sources * trained + tasks * (validated + tested * rate.tests))

    def _rate(self, kind: Kind) -> Rate:
        if kind not in self._found and not self._known:
            self._found[kind] = _UNKNOWN
        elif kind not in self._found:
            nearest = min(self._known, key=lambda known: (known != kind, *kind.distance(known)))
            more = (kind.flops - nearest.flops) * self._per_flop
            self._found[kind] = self._known[nearest].longer(more, kind.batch / nearest.batch)
        return self._found[kind]

    @cached_property
    def _per_flop(self) -> float:
        """The least seconds per FLOP that were measured. Small steps take longer for each, but what they take besides
        does not grow with them.
        """
        return min(min(rate.steps.values()) / max(kind.flops, 1) for kind, rate in self._known.items())


class _Work:
    """Cells by kind: the FLOPs each kind carries, the largest stack it allows, and one cell of it."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        self.carried, self.most, self.example = dict[Kind, float](), dict[Kind, int](), dict[Kind, Cell]()
        shapes = Counter[str]()
        for cell in cells:
            kind, own = kind_of(cell), shape(cell)
            shapes[own] += 1
            self.carried[kind] = self.carried.get(kind, 0.0) + kind.flops * cell.recipe.steps
            self.most[kind] = max(self.most.get(kind, 0), shapes[own])
            self.example.setdefault(kind, cell)


_KINDS: dict[tuple[str, str, bool, int], Kind] = {}


def kind_of(cell: Cell) -> Kind:
    """The kind of a cell's steps, made once for each."""
    by_length, batch = cell.recipe.batches == "lengths", cell.recipe.batch
    key = (cell.model.as_json, cell.task.as_json, by_length, batch)
    if key not in _KINDS:
        spec = typical(cell.task, by_length)
        name = digest([cell.model.identity(), asdict(spec), batch])
        _KINDS[key] = Kind(name, cell.model.name, cost(cell).flops, batch)
    return _KINDS[key]


def _choose(carried: Mapping[Kind, float], count: int, probed: Iterable[Kind] = ()) -> list[Kind]:
    """The kinds that carry most FLOPs, spread: each next one is the first by what it carries times how far it is from
    the nearest that will be measured. What the cache holds does not matter, so that a second look wants the same.
    """
    near = list(probed)
    rest = [kind for kind in carried if kind not in near]

    def gain(kind: Kind) -> float:
        other, far = min((kind.distance(n) for n in near), default=(True, 0.0))
        return carried[kind] * (_ANOTHER_MODEL * other + far + _NEARLY_NOTHING)

    chosen: list[Kind] = []
    while rest and len(chosen) < count:
        best = max(rest, key=gain)
        rest.remove(best)
        near.append(best)
        chosen.append(best)
    return chosen


def probe(cell: Cell, tried: Sequence[int], seconds: float, device: str) -> Rate:
    """Try stacks of a cell's kind in this process."""
    one = job([cell], device)
    found = time_sizes(one, tried, seconds)
    return Rate(
        {size: pace.step for size, pace in found.items()},
        {size: pace.answer for size, pace in found.items()},
        longer_tests(one),
        _draw_seconds(cell.task),
        min(pace.build for pace in found.values()),
        max(tried),
        1,
    )


def _draw_seconds(task: Task) -> float:
    """Seconds per example to draw training data: the better of two tries, since the first sets things up."""
    n = _drawn(task, "train", 4 * task.block)
    tries = []
    for _ in range(2):
        began = time.process_time()
        task.sample("train", n)
        tries.append(time.process_time() - began)
    return min(tries) / n


def _drawn(task: Task, condition: str, n: int) -> int:
    """How many examples there are when n are asked for."""
    return min(n, task.size(condition) or n)
