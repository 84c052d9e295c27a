"""R6 against a plain loop, and on planted one-feature guessers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from unseen.metrics import favoured_feature, pooled


def by_loop(planted, trace):
    """All measures of R6 for one run, by dictionaries and loops."""
    factors, weights = planted.factors, trace["decoder.attention"].astype(float)
    different = [i for i in range(len(planted)) if factors["scenario"][i] == "yes/diff"]
    sums: dict[int, list[float]] = {}
    for i in different:
        a, b = factors["positions"][i]
        total = sums.setdefault(int(factors["query_id"][i]), [0.0, 0.0])
        total[0] += weights[i][a]
        total[1] += weights[i][b]
    favourite = {query: int(total[1] > total[0]) for query, total in sums.items()}
    favoured, other, agreement, errs = [], [], [], []
    for i in different:
        slot = favourite[int(factors["query_id"][i])]
        favoured.append(weights[i][factors["positions"][i][slot]])
        other.append(weights[i][factors["positions"][i][1 - slot]])
    low = {}
    for i in range(len(planted)):
        query = int(factors["query_id"][i])
        if query not in favourite:
            continue
        slot = favourite[query]
        low[query] = factors["relevant"][i][slot] < 18
        rule = factors["occurrences"][i][slot] > 0
        agrees = (trace["prediction"][i, 0] >= 0) == rule
        agreement.append(agrees)
        if rule != planted.targets[i, 0]:
            errs.append(agrees)
    return {
        "favoured": favoured,
        "other": other,
        "agreement": agreement,
        "agreement where the rule errs": errs,
        "low favoured": list(low.values()),
    }


# With 40 examples some queries have no positive across tokens, hence no favourite.
@pytest.mark.parametrize("n", [400, 40])
def test_favoured_feature_agrees_with_a_loop(plant, n):
    planted = plant("T4", n=n)
    runs = [("T-Pos-Att", 0), ("T+Pos-Att", 0), ("T+Pos-Att", 1)]
    traces = {run: planted.random_trace(k) for k, run in enumerate(runs)}
    table = favoured_feature(traces, planted.targets, planted.factors)
    found = {run: by_loop(planted, traces[run]) for run in runs}
    for row in table.itertuples():
        mine = [run for run in runs if row.variant in ("all", run[0]) and (row.scope != "seed" or run[1] == row.seed)]
        items = [float(value) for run in mine for value in found[run][row.measure]]
        assert row.n == len(items)
        assert row.value == pytest.approx(np.mean(items), abs=1e-6)


def guesser(planted, slots):
    """A model that looks at, and answers by, the feature in slot `slots[query]` of the pair."""
    slot = [slots[query] for query in planted.factors["query_id"]]
    places = [int(pair[s]) for pair, s in zip(planted.factors["positions"], slot, strict=True)]
    return planted.looking_at(places, [place >= 0 for place in places])


def test_a_one_feature_guesser_is_recognised(plant):
    planted = plant("T4", n=600)
    # Queries 0–4 watch their low feature (slot 0 in even queries, 1 in odd ones), query 5 its high one.
    trace = guesser(planted, [0, 1, 0, 1, 0, 0])
    found = pooled(favoured_feature({("T+Pos-Att", 0): trace}, planted.targets, planted.factors))
    assert found == {
        "favoured": 1.0,
        "other": 0.0,
        "agreement": 1.0,
        "agreement where the rule errs": 1.0,
        "low favoured": pytest.approx(5 / 6),
    }


def test_a_perfect_model_agrees_only_where_the_rule_is_right(plant):
    planted = plant("T4", n=600)
    looks = guesser(planted, [0] * 6)
    right = {**looks, "prediction": np.where(planted.targets == 1, 1.0, -1.0)}
    found = pooled(favoured_feature({("T+Pos-Att", 0): right}, planted.targets, planted.factors))
    fooled = np.mean(planted.factors["scenario"] == "no/a-only")
    assert found["agreement"] == pytest.approx(1 - fooled)
    assert found["agreement where the rule errs"] == 0.0


def test_without_positives_across_tokens_there_is_no_favourite(plant):
    planted = plant("T4")
    factors = {**planted.factors, "scenario": np.full(len(planted), "yes/same")}
    table = favoured_feature({("T+Pos-Att", 0): planted.random_trace(0)}, planted.targets, factors)
    assert all(math.isnan(value) for value in pooled(table).values())
    assert (table["n"] == 0).all()
