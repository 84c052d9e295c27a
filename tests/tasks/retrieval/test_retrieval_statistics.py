"""The released preset against what was measured on the released data."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from support.retrieval_cases import answers, chosen_columns, make, other_features
from support.retrieval_tables import EXCLUDED, OCCURRENCES, SHARES
from unseen.tasks.base import Examples
from unseen.tasks.retrieval.formulas import Before, columns_of

SETTINGS = [("train", 5), ("ood/single", 5), ("ood/single", 10)]


@cache
def released(kind: str, split: str, length: int) -> Examples:
    return make(kind, preset="released", length=length).sample(split, 20_000)


def measure(examples: Examples, kind: str) -> dict[str, float]:
    """The quantities of the measured table, by name."""
    yes, scenario = answers(examples), examples.factors["scenario"]
    pair = chosen_columns(examples)
    present, counts = pair.any(axis=2), pair.sum(axis=2)
    found: dict[str, float] = {}
    if kind == "T1":
        for k in range(1, 6):
            found[f"T1 occurrences {k}"] = (counts[yes, 0] == k).mean()
        return found
    common = (pair[:, 0] & pair[:, 1]).any(axis=1)
    both, a_only, b_only = present.all(axis=1), present[:, 0] & ~present[:, 1], ~present[:, 0] & present[:, 1]
    none = ~present.any(axis=1)
    found[f"{kind} positives common token"] = common[yes].mean()
    for name, rows in (
        ("none", none),
        ("one", a_only | b_only),
        ("a only", a_only),
        ("b only", b_only),
        ("wrong", both),
    ):
        found[f"{kind} negatives {name}"] = rows[~yes].mean()
    if kind == "T2":
        once = (counts[yes] == 1).all(axis=1)
        found["T2 positives both once"] = once.mean()
        found["T2 positives both once, same token"] = (once & common[yes]).mean()
        found["T2 positives both once, different"] = (once & ~common[yes]).mean()
    if kind == "T3":
        for name, rows in (("both", both), ("a only", a_only), ("b only", b_only)):
            found[f"T3 positives {name}"] = rows[yes].mean()
        found["T3 both: common token"] = common[yes & both].mean()
    if kind == "T6":
        wrong, even = scenario == "no/wrong-order", examples.factors["query_id"] % 2 == 0
        found["T6 wrong order, common token, even ids"] = common[wrong & even].mean()
        found["T6 wrong order, common token, odd ids"] = common[wrong & ~even].mean()
    if kind in ("T5", "T7"):
        found |= measure_two_pairs(examples, kind, yes)
    return found


def measure_two_pairs(examples: Examples, kind: str, yes: np.ndarray) -> dict[str, float]:
    ordered = np.sort(examples.factors["relevant"], axis=1)
    four = (ordered[:, 1:] != ordered[:, :-1]).all(axis=1)
    other = columns_of(examples.inputs["sequence"], other_features(examples))
    columns = columns_of(examples.inputs["sequence"], examples.factors["relevant"])
    shown = other.any(axis=2).sum(axis=1)
    per_pair = np.sort(columns.any(axis=2).reshape(-1, 2, 2).sum(axis=2), axis=1)
    right = Before(0, 1).holds(other)
    mixed = ((columns[:, 0] | columns[:, 1]) & (columns[:, 2] | columns[:, 3])).any(axis=1)
    found = {
        f"{kind} positives, other {word}": (shown == k)[yes & four].mean()
        for k, word in enumerate(("none", "one", "both"))
    }
    for low, high, name in ((0, 0, "none+none"), (0, 1, "none+one"), (1, 1, "one+one")):
        found[f"{kind} negatives {name}"] = (per_pair == [low, high]).all(axis=1)[~yes & four].mean()
    found[f"{kind} positives, other right"] = right[yes & four].mean()
    found[f"{kind} positives, other wrong"] = ((shown == 2) & ~right)[yes & four].mean()
    found[f"{kind} negatives, a pair complete"] = (per_pair[:, 1] == 2)[~yes & four].mean()
    for name, rows in (("positives", yes), ("negatives", ~yes)):
        found[f"{kind} {name}, token with both pairs"] = mixed[rows & four].mean()
    return found


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("kind", ["T1", "T2", "T3", "T4", "T5", "T6", "T7"])
def test_measured_shares(kind: str, place: int) -> None:
    examples = released(kind, *SETTINGS[place])
    found, tolerance = measure(examples, kind), 0.03 if kind in ("T5", "T7") else 0.02
    for name, measured in SHARES.items():
        if name.startswith(kind) and measured[place] is not None:
            assert abs(found[name] - measured[place]) < tolerance, (name, found[name], measured[place])
            if measured[place] in (0.0, 1.0):
                assert found[name] == measured[place], name


@pytest.mark.parametrize("name", OCCURRENCES)
def test_measured_occurrences(name: str) -> None:
    kind, _, which = name.partition(" ")
    examples = released(kind, "train", 5)
    scenario, counts = examples.factors["scenario"], chosen_columns(examples).sum(axis=2)
    chosen = {
        "positives": counts[answers(examples)],
        "wrong order, a": counts[scenario == "no/wrong-order", 0],
        "wrong order, b": counts[scenario == "no/wrong-order", 1],
        "one feature": np.concatenate([counts[scenario == "no/a-only", 0], counts[scenario == "no/b-only", 1]]),
    }[which]
    for k, share in enumerate(OCCURRENCES[name], 1):
        assert abs((chosen == k).mean() - share) < 0.02, (k, (chosen == k).mean(), share)


@pytest.mark.parametrize("kind", EXCLUDED)
def test_measured_exclusion(kind: str) -> None:
    for place, (split, length) in enumerate((("train", 5), ("ood/single", 10))):
        examples = released(kind, split, length)
        never = ~examples.inputs["sequence"].any(axis=1)
        np.put_along_axis(never, examples.factors["relevant"], False, axis=1)
        ordered = np.sort(examples.factors["relevant"], axis=1)
        others = 36 - 1 - (ordered[:, 1:] != ordered[:, :-1]).sum(axis=1)
        silent = 0.8**length  # how often a feature that is not excluded never occurs
        excluded = (never.sum(axis=1) - others * silent) / (1 - silent)
        for name, measured in EXCLUDED[kind].items():
            found = excluded[_rows(examples.factors["scenario"], name)].mean()
            assert abs(found - measured[place]) < 0.15, (name, found, measured[place])


def _rows(scenario: np.ndarray, name: str) -> np.ndarray:
    if name.endswith("/one"):
        return np.isin(scenario, [f"{name[:-4]}/a-only", f"{name[:-4]}/b-only"])
    return np.char.startswith(scenario, name)


@pytest.mark.parametrize("kind", ["T1", "T2", "T3", "T4", "T5", "T6", "T7"])
def test_measured_density(kind: str) -> None:
    ranges = ((0.181, 0.186), (0.175, 0.182), (0.171, 0.180))
    for (split, length), (low, high) in zip(SETTINGS, ranges, strict=True):
        bits = released(kind, split, length).inputs["sequence"]
        assert low - 0.002 < bits.mean() < high + 0.002
        assert (bits.sum(axis=2) == 0).mean() < 0.002
