"""R2, R3 and R8 against plain loops and SciPy, and on planted profiles."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from unseen.errors import UsageError
from unseen.metrics import accuracy_by_position, error_profile, length_curves, pooled, position_effect

VARIANTS = ("T-Pos-Att", "T+Pos-Att", "T-Pos+Att", "T+Pos+Att")
RUNS = [(variant, seed) for variant in VARIANTS for seed in range(3)]


def points_by_loop(planted, traces, run):
    """(position, accuracy on positives) for one run, counted by hand."""
    found = []
    for position in range(planted.length):
        logits, places = traces[run]["prediction"][:, 0], planted.factors["positions"][:, 0]
        here = [i for i in range(len(planted)) if planted.targets[i, 0] and places[i] == position]
        hits = [logits[i] >= 0 for i in here]
        if hits:
            found.append((position, sum(hits) / len(hits)))
    return found


def test_position_effect_is_pearson_over_runs_and_positions(plant):
    planted = plant("T1")
    traces = {run: planted.random_trace(k) for k, run in enumerate(RUNS)}
    table = position_effect(traces, planted.targets, planted.factors)
    assert table["scope"].value_counts().to_dict() == {"pooled": 2, "variant": 4, "seed": 12}
    for row in table.itertuples():
        runs = [run for run in RUNS if run[0].endswith(row.variant) and (row.scope != "seed" or run[1] == row.seed)]
        points = [point for run in runs for point in points_by_loop(planted, traces, run)]
        expected = stats.pearsonr(*zip(*points, strict=True))
        assert (row.n, row.r, row.p) == (len(points), pytest.approx(expected[0]), pytest.approx(expected[1]))
    assert table[table["scope"] == "pooled"]["n"].tolist() == [2 * 3 * planted.length] * 2


def test_points_are_those_counted_by_hand(plant):
    planted = plant("T1", n=60)
    traces = {("LSTM", 0): planted.random_trace(0)}
    found = accuracy_by_position(traces, planted.targets, planted.factors)
    expected = points_by_loop(planted, traces, ("LSTM", 0))
    assert found["position"].tolist() == [position for position, _ in expected]
    assert found["value"].tolist() == pytest.approx([value for _, value in expected])
    assert found["n"].sum() == planted.targets.sum()


def test_a_planted_decline_with_position_only_with_self_attention(plant):
    """With self-attention every second example from position 3 on is missed; without it nothing is."""
    planted = plant("T1", n=2000)
    place = planted.factors["positions"][:, 0]
    always = planted.looking_at([-1] * len(place), [True] * len(place))
    misses = planted.looking_at([-1] * len(place), [not (p >= 3 and i % 2) for i, p in enumerate(place)])
    traces = {("T−Pos+Att", 0): misses, ("T-Pos-Att", 0): always, ("LSTM", 0): misses}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = position_effect(traces, planted.targets, planted.factors)
    table = table.set_index(["scope", "variant"])
    assert table.loc[("pooled", "+Att"), "r"] < -0.8 and table.loc[("pooled", "+Att"), "p"] < 0.05
    assert math.isnan(table.loc[("pooled", "-Att"), "r"]) and math.isnan(table.loc[("pooled", "-Att"), "p"])
    assert table.loc[("variant", "LSTM"), "r"] == table.loc[("pooled", "+Att"), "r"]
    assert set(table.loc["pooled"].index) == {"+Att", "-Att"}


@pytest.mark.parametrize("task", ["T2", "T4"])
def test_error_profile_agrees_with_counting(plant, task):
    planted = plant(task)
    traces = {run: planted.random_trace(k) for k, run in enumerate(RUNS)}
    table = error_profile(traces, planted.targets, planted.factors)

    def share(run, names):
        logits, scenario = traces[run]["prediction"][:, 0], planted.factors["scenario"]
        here = [i for i in range(len(planted)) if scenario[i] in names]
        hits = [(logits[i] >= 0) == planted.targets[i, 0] for i in here]
        return sum(hits) / len(hits)

    one = ("no/a-only", "no/b-only")
    expected = {
        "yes/same": [share(run, ["yes/same"]) for run in RUNS],
        "yes/diff": [share(run, ["yes/diff"]) for run in RUNS],
        "no/none": [share(run, ["no/none"]) for run in RUNS],
        "no/one": [share(run, one) for run in RUNS],
        "yes/diff - yes/same": [share(run, ["yes/diff"]) - share(run, ["yes/same"]) for run in RUNS],
        "no/one - no/none": [share(run, one) - share(run, ["no/none"]) for run in RUNS],
    }
    for name, values in expected.items():
        rows = table[table["measure"] == name]
        assert rows[rows["scope"] == "seed"]["value"].tolist() == pytest.approx(values)
        assert rows[rows["scope"] == "pooled"]["value"].item() == pytest.approx(np.mean(values))
        assert rows[rows["scope"] == "pooled"]["spread"].item() == pytest.approx(np.std(values, ddof=1))


def test_a_model_that_needs_the_pair_in_one_token(plant):
    planted = plant("T2")
    answers = [name == "yes/same" for name in planted.factors["scenario"]]
    trace = planted.looking_at([-1] * len(planted), answers)
    found = pooled(error_profile({("T-Pos-Att", 0): trace}, planted.targets, planted.factors))
    assert found == {
        "yes/same": 1,
        "yes/diff": 0,
        "no/none": 1,
        "no/one": 1,
        "yes/diff - yes/same": -1,
        "no/one - no/none": 0,
    }


def test_a_comparison_without_one_side_is_nan(plant):
    planted = plant("T2")
    scenario = planted.factors["scenario"]
    factors = {"scenario": np.where(scenario == "no/none", "elsewhere", scenario)}
    table = error_profile({("T-Pos-Att", 0): planted.random_trace(0)}, planted.targets, factors)
    rows = table[table["measure"].isin(["no/none", "no/one - no/none"])]
    assert rows["value"].isna().all() and (rows["n"] == 0).all()


def test_length_curves_are_mean_and_spread_over_seeds():
    rows = [("T", 0, 10, 0.5), ("T", 1, 10, 0.9), ("T", 0, 5, 1.0), ("A", 2, 5, 0.7)]
    curves = length_curves(pd.DataFrame(rows, columns=["variant", "seed", "length", "accuracy"]))
    found = curves[["variant", "length", "runs"]].to_numpy().tolist()
    assert found == [["T", 5, 1], ["T", 10, 2], ["A", 5, 1]]
    assert curves["value"].tolist() == pytest.approx([1.0, 0.7, 0.7])
    assert curves["spread"].tolist() == pytest.approx([math.nan, math.sqrt(0.08), math.nan], nan_ok=True)


def test_length_curves_refuse_what_they_cannot_read():
    records = pd.DataFrame({"variant": ["T", "T"], "seed": [0, 0], "length": [5, 5], "accuracy": [0.1, 0.2]})
    with pytest.raises(UsageError, match="T, seed 0, length 5 has more than one record"):
        length_curves(records)
    with pytest.raises(UsageError, match="missing: accuracy"):
        length_curves(records.drop(columns="accuracy"))
