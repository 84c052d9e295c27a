"""Fresh questions, and pools: questions that are drawn once and then asked repeatedly, each time with a new grid."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unseen.randomness import Draws, Ints, RandomStream
from unseen.tasks.gcog.generate_clean import ask_clean_questions, draw_clean_questions, generate_clean
from unseen.tasks.gcog.generate_released import ask_released_questions, draw_released_questions, generate_released
from unseen.tasks.gcog.plan import QuestionPlan, QuestionRecords, QuestionRows, deal_operators
from unseen.tasks.gcog.schema import PresetName

_BLOCK = 1024

RecordsOfPlan = tuple[QuestionPlan, Ints, QuestionRecords]
"""A plan, the rows that its questions have in the block, and these questions."""

_DRAW_QUESTIONS: dict[PresetName, Callable[[QuestionPlan, int, Draws], QuestionRows]] = {
    "clean": draw_clean_questions,
    "released": draw_released_questions,
}
_ASK_QUESTIONS: dict[PresetName, Callable[[QuestionPlan, Any, Draws], QuestionRecords]] = {
    "clean": ask_clean_questions,
    "released": ask_released_questions,
}


def draw_fresh_records(
    plans: Sequence[QuestionPlan], preset: PresetName, count: int, balanced: bool, draws: Draws
) -> Iterator[RecordsOfPlan]:
    """Draw `count` new questions with their grids, plan by plan; every plan is equally likely.

    If `balanced`, the preset `clean` deals the operators at which paths end evenly instead of drawing them, so that
    every run of a test set has equally many of each.
    """
    plan_of_row = draws.integers(len(plans), count) if len(plans) > 1 else np.zeros(count, np.int64)
    dealt: Ints | None = None
    if balanced and preset == "clean":
        leaf_codes: set[int] = set()
        leaf_codes = leaf_codes.union(*(plan.leaf_codes for plan in plans))
        dealt = deal_operators(sorted(leaf_codes), count, draws)
    for number, plan in enumerate(plans):
        rows = np.flatnonzero(plan_of_row == number)
        if preset == "clean":
            yield plan, rows, generate_clean(plan, len(rows), None if dealt is None else dealt[rows], draws)
        else:
            yield plan, rows, generate_released(plan, len(rows), draws)


@dataclass(frozen=True)
class QuestionPool:
    """`size` questions. Question q is number `index[q]` among the `questions` of plan number `plan_of[q]`."""

    plans: tuple[QuestionPlan, ...]
    preset: PresetName
    size: int
    plan_of: NDArray[np.uint8]
    index: Ints
    questions: tuple[QuestionRows, ...]

    def draw_records(self, count: int, draws: Draws) -> Iterator[RecordsOfPlan]:
        """Draw `count` questions from the whole pool and new grids for them, plan by plan."""
        chosen = draws.integers(self.size, count)
        for number, plan in enumerate(self.plans):
            rows = np.flatnonzero(self.plan_of[chosen] == number)
            if len(rows):
                questions = self.questions[number].take(self.index[chosen[rows]])
                yield plan, rows, _ASK_QUESTIONS[self.preset](plan, questions, draws)


# A pool of a million trees takes some 60 MB; a stack may train on 16 data seeds at a time.
@lru_cache(maxsize=16)
def make_pool(
    plans: tuple[QuestionPlan, ...], preset: PresetName, size: int, named_stream: RandomStream
) -> QuestionPool:
    """Return the first `size` questions of a stream in which every plan is equally likely.

    Question q depends on the stream and on q alone, because blocks are drawn whole: a larger pool begins with a smaller.
    """
    blocks: list[list[QuestionRows]] = [[] for _ in plans]
    plan_numbers: list[NDArray[np.uint8]] = []
    for block in range(-(-size // _BLOCK)):
        draws = named_stream.block(block)
        drawn_plans = draws.integers(len(plans), _BLOCK)
        plan_numbers.append(drawn_plans.astype(np.uint8))
        for number, plan in enumerate(plans):
            count = int((drawn_plans == number).sum())
            blocks[number].append(_DRAW_QUESTIONS[preset](plan, count, draws))
    plan_of = np.concatenate(plan_numbers)
    index = np.zeros(len(plan_of), np.int64)
    for number in range(len(plans)):
        rows = plan_of == number
        index[rows] = np.arange(rows.sum())
    questions = tuple(type(of_plan[0]).join(of_plan) for of_plan in blocks)
    return QuestionPool(plans, preset, size, plan_of, index, questions)
