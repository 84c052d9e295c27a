"""Rules that answer without doing the task, and the accuracy each can reach.

A ceiling is worked out from the scenario probabilities, so it holds for every length; where extra occurrences or the
released data's other pair leave no closed form, the rule's accuracy is only shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from unseen.randomness import Bools, Floats
from unseen.tasks.base import Array, Examples, Shortcut
from unseen.tasks.retrieval.formulas import columns_of
from unseen.tasks.retrieval.scenarios import Scenario

Decide = Callable[[Bools], Bools]
"""An answer, (B,), from which slots' features are present, (B, m)."""


@dataclass(frozen=True)
class Law:
    """How often each set of present slots goes with each answer: `present` (K, m), `answer` (K,), `share` (K,)."""

    present: Bools
    answer: Bools
    share: Floats

    def accuracy(self, decide: Decide) -> float:
        """The share of right answers."""
        return float(self.share[decide(self.present) == self.answer].sum())


def presence_law(scenarios: Sequence[Scenario], two_pairs: bool, other_shown: float) -> Law:
    """The law of presence. `other_shown`: how often the other pair of T5 and T7 shows one feature; never two."""
    rows: list[tuple[tuple[bool, ...], bool, float]] = []
    for scenario in scenarios:
        share = scenario.weight / 2
        if not two_pairs:
            rows.append((scenario.present, scenario.answer, share))
        else:
            for state, part in (
                ((True, False), other_shown / 2),
                ((False, True), other_shown / 2),
                ((False, False), 1 - other_shown),
            ):
                rows.append((scenario.present + state, scenario.answer, share * part / 2))
                rows.append((state + scenario.present, scenario.answer, share * part / 2))
    present, answer, shares = zip(*rows, strict=True)
    return Law(np.array(present), np.array(answer), np.array(shares))


def one_slot(slot: int, present: Bools) -> Bools:
    """Yes if the feature of one slot is present."""
    return present[:, slot]


def _any(present: Bools) -> Bools:
    return np.asarray(present.any(axis=1))


def _complete(present: Bools) -> Bools:
    return np.asarray((present[:, 0::2] & present[:, 1::2]).any(axis=1))


def _first_pair(present: Bools) -> Bools:
    return present[:, 0] & present[:, 1]


def _one_per_pair(present: Bools) -> Bools:
    return present[:, 0] | present[:, 2]


def _at_least(count: int, present: Bools) -> Bools:
    return np.asarray(present.sum(axis=1) >= count)


_ONE_FEATURE: dict[str, Decide] = {
    "one feature: a present": partial(one_slot, 0),
    "one feature: b present": partial(one_slot, 1),
}
_ANY: dict[str, Decide] = {"any relevant feature present": _any}
_ORDER_IGNORED: dict[str, Decide] = {"a pair complete, order ignored": _complete}
_HALF_OF_IT: dict[str, Decide] = {
    "one feature per pair, either present": _one_per_pair,
    "first pair complete": _first_pair,
}

PRESENCE_RULES: dict[str, dict[str, Decide]] = {
    "T1": {},
    "T2": _ONE_FEATURE | _ANY,
    "T3": _ONE_FEATURE,
    "T4": _ONE_FEATURE | _ANY,
    "T5": _ANY
    | _HALF_OF_IT
    | {
        "at least 2 of 4 present": partial(_at_least, 2),
        "at least 3 of 4 present": partial(_at_least, 3),
    },
    "T6": _ONE_FEATURE | _ANY | _ORDER_IGNORED,
    "T7": _ANY | _ORDER_IGNORED | _HALF_OF_IT,
}
"""The rules that look at presence alone, task by task. A rule that is the task itself is not among them."""


def task_shortcuts(
    kind: str, scenarios: Sequence[Scenario], length: int, single: bool, other_shown: float | None
) -> list[Shortcut]:
    """The rules of a task with their ceilings. `single`: on data with single occurrences of the chosen pair.

    `other_shown`: how often the other pair of T5 and T7 shows one feature (it never shows two); None: no closed form.
    """
    two_pairs = kind in ("T5", "T7")
    law = None if two_pairs and other_shown is None else presence_law(scenarios, two_pairs, other_shown or 0.0)
    found = [
        Shortcut(name, partial(answer_by_presence, decide), law.accuracy(decide) if law else None)
        for name, decide in PRESENCE_RULES[kind].items()
    ]
    if kind in ("T2", "T4", "T5"):
        same = sum(s.weight for s in scenarios if s.placement == "same")
        found.append(Shortcut("a pair in one token", pair_in_one_token, (same + 1) / 2 if single else None))
    if kind == "T6":
        yes, accuracy = position_rule(scenarios, length)
        found.append(Shortcut("position of a", partial(answer_by_position, yes), accuracy if single else None))
    return found


def answer_by_presence(decide: Decide, examples: Examples) -> Array:
    """The answers, (B, 1), of a rule that looks at presence alone."""
    present = np.asarray(columns_of(examples.inputs["sequence"], examples.factors["relevant"]).any(axis=2))
    return _as_targets(decide(present))


def pair_in_one_token(examples: Examples) -> Array:
    """Yes if some token carries both features of a pair."""
    columns = columns_of(examples.inputs["sequence"], examples.factors["relevant"])
    together = columns[:, 0::2] & columns[:, 1::2]
    return _as_targets(np.asarray(together.any(axis=(1, 2))))


def answer_by_position(yes: Bools, examples: Examples) -> Array:
    """The answers, (B, 1), of a rule that looks at the first token with feature a; `yes` (n,): the rule."""
    column = columns_of(examples.inputs["sequence"], examples.factors["relevant"])[:, 0]
    return _as_targets(yes[column.argmax(axis=1)] & column.any(axis=1))


def _as_targets(answer: Bools) -> Array:
    return answer.astype(np.uint8)[:, None]


def position_rule(scenarios: Sequence[Scenario], length: int) -> tuple[Bools, float]:
    """The best answer for each position of a T6 query's first feature, and its accuracy on single occurrences.

    >>> from unseen.tasks.retrieval.scenarios import scenarios
    >>> [round(100 * position_rule(scenarios("T6", 0.0), n)[1], 1) for n in (5, 10, 15, 20, 25, 30)]
    [80.0, 77.5, 76.8, 76.4, 76.2, 76.1]
    """
    token = np.arange(length)
    falling = 2 * (length - 1 - token) / (length * (length - 1))
    law = {"in-order": falling, "reversed": falling[::-1], "first": np.full(length, 1 / length)}
    shares = {True: np.zeros(length), False: np.zeros(length)}
    for scenario in scenarios:
        if scenario.present[0]:
            shares[scenario.answer] += scenario.weight / 2 * law[scenario.placement]
    absent = sum(s.weight / 2 for s in scenarios if not s.present[0])
    yes = shares[True] > shares[False]
    return yes, float(np.maximum(shares[True], shares[False]).sum() + absent)
