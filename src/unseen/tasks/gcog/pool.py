"""Pools: questions that are drawn once and then asked again and again, each time with a fresh grid."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unseen.randomness import Draws, Ints, Stream
from unseen.tasks.gcog.clean_questions import ask_clean, draw_clean
from unseen.tasks.gcog.plan import Plan
from unseen.tasks.gcog.presets import PresetName
from unseen.tasks.gcog.records import Records, Rows
from unseen.tasks.gcog.released import ask_released, draw_released

_BLOCK = 1024

Draw = Callable[[Plan, int, Draws], Rows]
Ask = Callable[[Plan, Any, Draws], Records]
_GENERATORS: dict[PresetName, tuple[Draw, Ask]] = {
    "clean": (draw_clean, ask_clean),
    "released": (draw_released, ask_released),
}


@dataclass(frozen=True)
class Pool:
    """`size` questions: number q is at `place[q]` among the `questions` of plan `plan[q]`."""

    plans: tuple[Plan, ...]
    preset: PresetName
    size: int
    plan: NDArray[np.uint8]
    place: Ints
    questions: tuple[Rows, ...]

    def ask(self, count: int, draws: Draws) -> Iterator[tuple[Plan, Ints, Records]]:
        """`count` questions, each drawn from the whole pool, with fresh grids: by plan, and their places among all."""
        chosen = draws.integers(self.size, count)
        for number, plan in enumerate(self.plans):
            mine = np.flatnonzero(self.plan[chosen] == number)
            if len(mine):
                questions = self.questions[number].take(self.place[chosen[mine]])
                yield plan, mine, _GENERATORS[self.preset][1](plan, questions, draws)


@lru_cache(maxsize=16)  # of a million trees each some 60 MB; a stack may train on as many data seeds at a time
def make_pool(plans: tuple[Plan, ...], preset: PresetName, size: int, named: Stream) -> Pool:
    """The first `size` questions of a stream, in which every plan is equally likely.

    Question q depends on the stream and on q alone: blocks are drawn whole, so a larger pool begins with a smaller one.
    """
    draw, parts, which = _GENERATORS[preset][0], [list[Rows]() for _ in plans], []
    for block in range(-(-size // _BLOCK)):
        draws = named.block(block)
        drawn = draws.integers(len(plans), _BLOCK)
        which.append(drawn.astype(np.uint8))
        for number, plan in enumerate(plans):
            parts[number].append(draw(plan, int((drawn == number).sum()), draws))
    plan_of = np.concatenate(which)
    place = np.zeros(len(plan_of), np.int64)
    for number in range(len(plans)):
        mine = plan_of == number
        place[mine] = np.arange(mine.sum())
    return Pool(plans, preset, size, plan_of, place, tuple(type(part[0]).join(part) for part in parts))
