"""R1, R4, R5, R7 and R9 against plain loops, and on planted strategies."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from unseen.metrics import (
    attention_by_correctness,
    focus,
    later_minus_earlier,
    pooled,
    strategy_switch,
    target_attention,
)

RUNS = [("T-Pos+Att", 0), ("T-Pos+Att", 1), ("T+Pos+Att", 0), ("T+Pos+Att", 1)]


def weigh_right_and_wrong(planted, trace, i):
    if planted.targets[i, 0]:
        said = trace["prediction"][i, 0] >= 0
        place = planted.factors["positions"][i][0]
        yield ("correct" if said else "wrong"), trace["decoder.attention"][i][place]


def lead(planted, trace, i):
    second, first = sorted(trace["decoder.attention"][i].tolist())[-2:]
    yield "all", first - second
    if planted.factors["scenario"][i] == "yes/diff":
        yield "yes/diff", first - second


def on_target(planted, trace, i):
    weights = trace["decoder.attention"][i]
    first, second = planted.factors["positions"][i]
    match planted.factors["scenario"][i]:
        case "yes/a-only":
            found, kind = weights[first], "one feature"
        case "yes/b-only":
            found, kind = weights[second], "one feature"
        case "yes/both-same":
            found, kind = weights[first], "both features"
        case _:
            return
    yield kind, found
    yield "target", found


def difference(planted, trace, i):
    weights, (first, second) = trace["decoder.attention"][i], planted.factors["positions"][i]
    kind = {"yes": "positive", "yes/diff": "positive", "no/wrong-order": "wrong order"}
    scenario = planted.factors["scenario"][i]
    if scenario in kind:
        ordered = (first, second) if first < second else (second, first)
        yield kind[scenario], float(weights[ordered[1]]) - float(weights[ordered[0]])


def against_uniform(planted, trace, i):
    if planted.targets[i, 0]:
        weight = float(trace["decoder.attention"][i][planted.factors["positions"][i][0]])
        yield "target", weight
        yield "target - uniform", weight - 1 / planted.length


CASES = [
    ("T1", attention_by_correctness, weigh_right_and_wrong),
    ("T2", focus, lead),
    ("T3", target_attention, on_target),
    ("T5", later_minus_earlier, difference),
    ("T6", later_minus_earlier, difference),
    ("T7", later_minus_earlier, difference),
    ("T1", strategy_switch, against_uniform),
]


@pytest.mark.parametrize(("task", "recipe", "loop"), CASES, ids=[f"{t}-{r.__name__}" for t, r, _ in CASES])
def test_recipes_agree_with_a_loop_over_examples(plant, task, recipe, loop):
    planted = plant(task)
    traces = {run: planted.random_trace(k) for k, run in enumerate(RUNS)}
    table = recipe(traces, planted.targets, planted.factors)
    for row in table.itertuples():
        runs = [run for run in RUNS if row.variant in ("all", run[0]) and (row.scope != "seed" or run[1] == row.seed)]
        per_run = [
            [value for i in range(len(planted)) for name, value in loop(planted, traces[run], i) if name == row.measure]
            for run in runs
        ]
        items = [float(value) for values in per_run for value in values]
        assert row.n == len(items)
        if not items:
            assert task == "T5" and row.measure == "wrong order" and math.isnan(row.value)
            continue
        assert row.value == pytest.approx(sum(items) / len(items), abs=1e-6)
        if len(runs) > 1:
            spread = np.std([np.mean(values) for values in per_run], ddof=1)
            assert row.spread == pytest.approx(spread, abs=1e-6)


def test_attention_follows_correctness_in_a_model_that_is_right_where_it_looks(plant):
    planted = plant("T1")
    places = [
        int(p) if i % 3 else (int(p) + 1) % planted.length for i, p in enumerate(planted.factors["positions"][:, 0])
    ]
    trace = planted.looking_at(places, [bool(i % 3) for i in range(len(planted))])
    table = attention_by_correctness({("T+Pos+Att", 0): trace}, planted.targets, planted.factors)
    assert pooled(table) == {"correct": 1.0, "wrong": 0.0}


def test_a_model_without_wrong_answers_has_nothing_to_average_there(plant):
    planted = plant("T1")
    trace = planted.looking_at([-1] * len(planted), planted.targets[:, 0].astype(bool).tolist())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = attention_by_correctness({("T+Pos+Att", 0): trace}, planted.targets, planted.factors)
    wrong = table[table["measure"] == "wrong"]
    assert wrong["value"].isna().all() and (wrong["n"] == 0).all() and (wrong["runs"] == 0).all()
    assert table["spread"].isna().all()


@pytest.mark.parametrize(("look", "expected"), [("later", 1.0), ("earlier", -1.0)])
def test_a_model_that_looks_at_one_end_of_the_pair(plant, look, expected):
    planted = plant("T7")
    choose = max if look == "later" else min
    places = [choose(pair) for pair in planted.factors["positions"].tolist()]
    trace = planted.looking_at(places, [True] * len(planted))
    table = later_minus_earlier({("T-Pos+Att", 0): trace}, planted.targets, planted.factors)
    assert pooled(table) == {"positive": expected, "wrong order": expected}


def test_a_model_that_looks_at_the_second_feature_shows_its_sign_in_wrong_order(plant):
    planted = plant("T6")
    trace = planted.looking_at([b for _, b in planted.factors["positions"].tolist()], [True] * len(planted))
    table = later_minus_earlier({("T-Pos+Att", 0): trace}, planted.targets, planted.factors)
    assert pooled(table) == {"positive": 1.0, "wrong order": -1.0}


def test_seeds_of_opposite_strategy_have_a_mean_of_nothing_and_a_large_spread(plant):
    planted = plant("T6")
    pairs = planted.factors["positions"].tolist()
    traces = {
        ("T+Pos+Att", seed): planted.looking_at([choose(pair) for pair in pairs], [True] * len(pairs))
        for seed, choose in enumerate([max, min])
    }
    table = later_minus_earlier(traces, planted.targets, planted.factors).set_index(["scope", "measure"])
    row = table.loc[("variant", "positive")]
    assert row["value"].item() == 0.0
    assert row["spread"].item() == pytest.approx(math.sqrt(2))


def test_the_switch_from_uniform_to_focused_reading(plant):
    tables = []
    for length, focused in ((5, False), (30, True)):
        planted = plant("T1", length=length)
        places = planted.factors["positions"][:, 0].tolist() if focused else [-1] * len(planted)
        trace = planted.looking_at(places, [True] * len(planted))
        tables.append(strategy_switch({("LSTM-attention", 0): trace}, planted.targets, planted.factors))
    assert [set(table["length"]) for table in tables] == [{5}, {30}]
    assert [pooled(table)["target"] for table in tables] == pytest.approx([0.2, 1.0])
    assert [pooled(table)["target - uniform"] for table in tables] == pytest.approx([0.0, 1 - 1 / 30])
