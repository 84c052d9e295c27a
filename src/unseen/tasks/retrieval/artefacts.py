"""The regularities A1–A7 of the released data, each as a number measured on examples.

`clean` removes A1, A2, A3, A4 and A6. A5 cannot vanish for both a query-blind and a query-aware observer, because
relevant features are absent more often in negatives; A7 follows from the order itself.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from unseen.randomness import Bools, Ints
from unseen.tasks.base import Artefact, Examples
from unseen.tasks.retrieval.formulas import FORMULAS, Or, columns_of
from unseen.tasks.retrieval.presets import Balance, PresetName

_WHY_A5 = " (relevant ones are absent more often in negatives: no balance hides that from everybody)"


def task_artefacts(
    kind: str, preset: PresetName, balance: Balance, single: bool, pairs_share: bool, never: tuple[float | None, float]
) -> list[Artefact]:
    """The artefacts of a task to measure on data with (`single`) or without single occurrences of the chosen pair.

    `pairs_share`: some query's two pairs share a feature, so counting slots sees that feature twice. `never`: what A5
    comes to by the design, blind to the query (if that has a closed form) and aware of it.
    """
    clean, released, aware = preset == "clean", preset == "released", balance == "aware"
    found = [
        Artefact(
            "A5 (query-blind)",
            f"best threshold on the number of features that never occur{_WHY_A5}",
            best_threshold,
            0.5,
            0.01,
            True,
            never[0],
        ),
        Artefact(
            "A5 (query-aware)",
            f"best threshold on that number among features that are not relevant{_WHY_A5}",
            partial(best_threshold, only_irrelevant=True),
            0.5,
            0.01,
            not aware,
            never[1],
        ),
    ]
    if kind == "T2":
        found.append(
            Artefact(
                "A1",
                "accuracy of 'the first-named feature is present' minus that of the second-named",
                first_named_advantage,
                0.0,
                0.002,
                released,
            )
        )
    if kind == "T5":
        found.append(
            Artefact(
                "A2",
                "accuracy of 'at least 3 of the 4 slots are present'",
                three_of_four,
                0.75,
                0.002,
                not clean or pairs_share,
            )
        )
    if kind == "T7":
        found.append(
            Artefact(
                "A3",
                "share of forced tokens that the other pair enters, positives minus negatives",
                avoided_tokens,
                0.0,
                0.002,
                released,
            )
        )
    if kind in ("T5", "T7"):
        found.append(
            Artefact(
                "A4",
                "share of positives in which both pairs answer yes",
                partial(both_pairs, kind),
                0.0,
                0.002,
                released and not single,
            )
        )
        if single:
            found.append(
                Artefact(
                    "A6",
                    "share of positives in which a feature of the other pair repeats",
                    other_pair_repeats,
                    0.0,
                    0.002,
                    not clean,
                )
            )
    if kind in ("T6", "T7") and not single:
        found.append(
            Artefact(
                "A7",
                "one occurrence of the first feature: wrong-order negatives minus positives "
                "(extra ones that would set the right order are dropped)",
                fewer_extras,
                0.0,
                0.002,
                True,
            )
        )
    return found


def best_threshold(examples: Examples, only_irrelevant: bool = False) -> float:
    """Accuracy of the best rule "at least t (or fewer than t) features never occur"."""
    never = np.logical_not(examples.inputs["sequence"].any(axis=1))
    if only_irrelevant:
        np.put_along_axis(never, examples.factors["relevant"], False, axis=1)
    count, answer = never.sum(axis=1), examples.targets[:, 0].astype(np.bool_)
    size = never.shape[1] + 1
    yes, no = (np.bincount(count[answer == value], minlength=size) for value in (True, False))
    right = np.concatenate([[0], np.cumsum(no - yes)]) + yes.sum()  # "no" below the threshold, "yes" from it on
    return float(np.maximum(right, len(answer) - right).max() / len(answer))


def first_named_advantage(examples: Examples) -> float:
    """How much better the first-named feature of a T2 query predicts the answer than the second-named."""
    present = columns_of(examples.inputs["sequence"], examples.factors["named"]).any(axis=2)
    right = (present == examples.targets.astype(np.bool_)).mean(axis=0)
    return float(right[0] - right[1])


def three_of_four(examples: Examples) -> float:
    """Accuracy of "at least three of the four slots are present"."""
    count = (examples.factors["occurrences"] > 0).sum(axis=1)
    return float(((count >= 3) == examples.targets[:, 0]).mean())


def avoided_tokens(examples: Examples) -> float:
    """How much more often, in positives, the other pair enters a forced token of the chosen one."""
    examples = examples[_four_distinct(examples)]
    columns = columns_of(examples.inputs["sequence"], _other_pair(examples)).any(axis=1)
    positions, answer = examples.factors["positions"], examples.targets.astype(np.bool_)
    entered, forced = np.take_along_axis(columns, np.maximum(positions, 0), axis=1), positions >= 0
    return _mean(entered[forced & answer]) - _mean(entered[forced & ~answer])


def both_pairs(kind: str, examples: Examples) -> float:
    """Share of positives whose two pairs both satisfy the query (queries with four distinct features)."""
    examples = examples[_four_distinct(examples) & (examples.targets[:, 0] == 1)]
    formula = FORMULAS[kind]
    assert isinstance(formula, Or)
    columns = columns_of(examples.inputs["sequence"], examples.factors["relevant"])
    return _mean(np.logical_and.reduce([part.holds(columns) for part in formula.parts]))


def other_pair_repeats(examples: Examples) -> float:
    """Share of positives in which a feature of the other pair occurs more than once."""
    examples = examples[examples.targets[:, 0] == 1]
    columns = columns_of(examples.inputs["sequence"], _other_pair(examples))
    return _mean((columns.sum(axis=2) > 1).any(axis=1))


def fewer_extras(examples: Examples) -> float:
    """How much more often the first feature occurs once in wrong-order negatives than in positives."""
    rows, chosen = np.arange(len(examples)), examples.factors["chosen"]
    once = examples.factors["occurrences"][rows, 2 * chosen] == 1
    scenario = examples.factors["scenario"]
    return _mean(once[scenario == "no/wrong-order"]) - _mean(once[scenario == "yes"])


def _four_distinct(examples: Examples) -> Bools:
    ordered = np.sort(examples.factors["relevant"], axis=1)
    return np.asarray((ordered[:, 1:] != ordered[:, :-1]).all(axis=1))


def _other_pair(examples: Examples) -> Ints:
    relevant, chosen = examples.factors["relevant"], examples.factors["chosen"]
    return np.where(chosen[:, None] == 0, relevant[:, 2:], relevant[:, :2])


def _mean(values: Bools) -> float:
    """The share of true values; 0 of none."""
    return float(values.mean()) if values.size else 0.0
