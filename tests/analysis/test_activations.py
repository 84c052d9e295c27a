from __future__ import annotations

import math

import numpy as np
import pytest

from unseen.analysis.activations import Mean, forced_positions, mean_of, pooled_values, tabulate
from unseen.errors import UsageError

TARGETS = np.zeros((2, 1))


def table_of(means):
    """A table from given run means, the run being recognised by its one logit."""
    run_activations = {run: {"prediction": np.full((2, 1), k)} for k, run in enumerate(means)}
    found = list(means.values())
    return tabulate(run_activations, TARGETS, ["prediction"], lambda t: {"m": found[int(t["prediction"][0, 0])]})


def test_values_are_weighted_by_n_and_the_spread_is_over_runs():
    table = table_of({("A", 0): Mean(1.0, 10), ("A", 4): Mean(2.0, 30), ("B", 0): Mean(6.0, 20)})
    assert table["scope"].tolist() == ["pooled", "variant", "variant", "seed", "seed", "seed"]
    assert table["variant"].tolist() == ["all", "A", "B", "A", "A", "B"]
    assert table["seed"].isna().tolist() == [True] * 3 + [False] * 3
    assert table["seed"].dropna().tolist() == [0, 4, 0]
    assert table["value"].tolist() == pytest.approx([190 / 60, 1.75, 6.0, 1.0, 2.0, 6.0])
    assert table["spread"].tolist()[:2] == pytest.approx([np.std([1, 2, 6], ddof=1), np.std([1, 2], ddof=1)])
    assert table["spread"].isna().tolist() == [False, False, True, True, True, True]
    assert table["runs"].tolist() == [3, 2, 1, 1, 1, 1]
    assert table["n"].tolist() == [60, 40, 20, 10, 30, 20]
    assert pooled_values(table) == {"m": pytest.approx(190 / 60)}


def test_a_run_with_nothing_to_measure_is_nan_and_left_out():
    table = table_of({("A", 0): mean_of(np.array([])), ("A", 1): Mean(0.3, 3), ("B", 0): mean_of(np.array([]))})
    by = table[table["scope"] != "seed"].set_index("variant")[["value", "runs", "n"]]
    assert by.loc["all"].tolist() == by.loc["A"].tolist() == [0.3, 1, 3]
    assert by.loc["B"].tolist() == pytest.approx([math.nan, 0, 0], nan_ok=True)


@pytest.mark.parametrize(
    ("run_activations", "targets", "said"),
    [
        ({}, TARGETS, "no activations"),
        ({("A", 3): {"prediction": np.zeros((2, 1))}}, TARGETS, "A, seed 3: no 'decoder.attention'"),
        ({("A", 3): {"decoder.attention": np.zeros((5, 4))}}, TARGETS, "has 5 examples, the targets have 2"),
        ({("A", 3): {"decoder.attention": np.zeros((2, 4))}}, np.zeros(2), r"\(N, 1\), got \(2,\)"),
    ],
)
def test_wrong_use_is_answered(run_activations, targets, said):
    with pytest.raises(UsageError, match=said):
        tabulate(run_activations, targets, ["decoder.attention"], lambda activations: {})


def test_positions_are_refused_where_the_queried_feature_repeats():
    positions = np.array([[0, 1], [2, 0]])
    repeated = {"positions": positions, "occurrences": np.array([[1, 1], [1, 2]])}
    with pytest.raises(UsageError, match="repeat in 1 of 2 examples"):
        forced_positions(repeated)
    with pytest.raises(UsageError, match="no factor 'occurrences'"):
        forced_positions({"positions": positions})


def test_the_other_pair_may_repeat():
    factors = {
        "positions": np.array([[0, 1], [2, 0]]),
        "chosen": np.array([0, 1]),
        "occurrences": np.array([[1, 1, 4, 0], [0, 3, 1, 1]]),
    }
    assert forced_positions(factors).tolist() == [[0, 1], [2, 0]]
    with pytest.raises(UsageError):
        forced_positions({**factors, "chosen": np.array([1, 1])})
