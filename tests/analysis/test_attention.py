"""R1 to R9 against plain loops and SciPy, and on planted strategies."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from unseen.analysis import (
    ANALYSES,
    accuracy_by_position,
    attention_by_correctness,
    error_profile,
    favoured_feature,
    focus,
    later_minus_earlier,
    length_curves,
    pooled_values,
    position_effect,
    strategy_switch,
    target_attention,
)
from unseen.errors import UsageError
from unseen.tasks import TASKS


def test_the_table_is_complete_and_names_registered_tasks():
    assert list(ANALYSES) == [f"R{k}" for k in range(1, 10)]
    assert len({recipe.function for recipe in ANALYSES.values()}) == 9
    for recipe in ANALYSES.values():
        assert all(task in TASKS for task in recipe.tasks)
        assert all(printed.task in recipe.tasks for printed in recipe.published)


@pytest.mark.parametrize("name", [name for name in ANALYSES if name != "R8"])
def test_every_published_number_is_a_value_of_the_table_it_is_printed_for(plant, name):
    """Each published measure and variant is found, so that report and claims can join the two."""
    recipe = ANALYSES[name]
    for task in recipe.tasks:
        planted = plant(task.removeprefix("retrieval/"))
        variants = ("T-Pos-Att", "T-Pos+Att", "T+Pos+Att", "LSTM-attention")
        run_activations = {(variant, seed): planted.random_trace(seed) for variant in variants for seed in (0, 1)}
        table = recipe.function(run_activations, planted.targets, planted.factors)
        assert isinstance(table, pd.DataFrame)
        for printed in (one for one in recipe.published if one.task == task):
            rows = table[(table["variant"] == printed.variant) & (table["scope"] != "seed")]
            found = rows["r"] if printed.measure == "r" else rows[rows["measure"] == printed.measure]["value"]
            assert len(found) == 1 and found.notna().all()


def test_the_runs_are_not_changed_by_measuring(plant):
    planted = plant("T4")
    run_activations = {("T-Pos-Att", 0): planted.random_trace(0)}
    before = {name: array.copy() for name, array in run_activations["T-Pos-Att", 0].items()}
    ANALYSES["R4"].function(run_activations, planted.targets, planted.factors)
    ANALYSES["R6"].function(run_activations, planted.targets, planted.factors)
    assert all((run_activations["T-Pos-Att", 0][name] == array).all() for name, array in before.items())


RUNS = [("T-Pos+Att", 0), ("T-Pos+Att", 1), ("T+Pos+Att", 0), ("T+Pos+Att", 1)]


def weigh_right_and_wrong(planted, activations, i):
    if planted.targets[i, 0]:
        said = activations["prediction"][i, 0] >= 0
        place = planted.factors["positions"][i][0]
        yield ("correct" if said else "wrong"), activations["decoder.attention"][i][place]


def lead(planted, activations, i):
    second, first = sorted(activations["decoder.attention"][i].tolist())[-2:]
    yield "all", first - second
    if planted.factors["scenario"][i] == "yes/diff":
        yield "yes/diff", first - second


def on_target(planted, activations, i):
    weights = activations["decoder.attention"][i]
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


def difference(planted, activations, i):
    weights, (first, second) = activations["decoder.attention"][i], planted.factors["positions"][i]
    kind = {"yes": "positive", "yes/diff": "positive", "no/wrong-order": "wrong order"}
    scenario = planted.factors["scenario"][i]
    if scenario in kind:
        ordered = (first, second) if first < second else (second, first)
        yield kind[scenario], float(weights[ordered[1]]) - float(weights[ordered[0]])


def against_uniform(planted, activations, i):
    if planted.targets[i, 0]:
        weight = float(activations["decoder.attention"][i][planted.factors["positions"][i][0]])
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
    run_activations = {run: planted.random_trace(k) for k, run in enumerate(RUNS)}
    table = recipe(run_activations, planted.targets, planted.factors)
    for row in table.itertuples():
        runs = [run for run in RUNS if row.variant in ("all", run[0]) and (row.scope != "seed" or run[1] == row.seed)]
        per_run = [
            [
                value
                for i in range(len(planted))
                for name, value in loop(planted, run_activations[run], i)
                if name == row.measure
            ]
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
    activations = planted.looking_at(places, [bool(i % 3) for i in range(len(planted))])
    table = attention_by_correctness({("T+Pos+Att", 0): activations}, planted.targets, planted.factors)
    assert pooled_values(table) == {"correct": 1.0, "wrong": 0.0}


def test_a_model_without_wrong_answers_has_nothing_to_average_there(plant):
    planted = plant("T1")
    activations = planted.looking_at([-1] * len(planted), planted.targets[:, 0].astype(bool).tolist())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = attention_by_correctness({("T+Pos+Att", 0): activations}, planted.targets, planted.factors)
    wrong = table[table["measure"] == "wrong"]
    assert wrong["value"].isna().all() and (wrong["n"] == 0).all() and (wrong["runs"] == 0).all()
    assert table["spread"].isna().all()


@pytest.mark.parametrize(("look", "expected"), [("later", 1.0), ("earlier", -1.0)])
def test_a_model_that_looks_at_one_end_of_the_pair(plant, look, expected):
    planted = plant("T7")
    choose = max if look == "later" else min
    places = [choose(pair) for pair in planted.factors["positions"].tolist()]
    activations = planted.looking_at(places, [True] * len(planted))
    table = later_minus_earlier({("T-Pos+Att", 0): activations}, planted.targets, planted.factors)
    assert pooled_values(table) == {"positive": expected, "wrong order": expected}


def test_a_model_that_looks_at_the_second_feature_shows_its_sign_in_wrong_order(plant):
    planted = plant("T6")
    activations = planted.looking_at([b for _, b in planted.factors["positions"].tolist()], [True] * len(planted))
    table = later_minus_earlier({("T-Pos+Att", 0): activations}, planted.targets, planted.factors)
    assert pooled_values(table) == {"positive": 1.0, "wrong order": -1.0}


def test_seeds_of_opposite_strategy_have_a_mean_of_nothing_and_a_large_spread(plant):
    planted = plant("T6")
    pairs = planted.factors["positions"].tolist()
    run_activations = {
        ("T+Pos+Att", seed): planted.looking_at([choose(pair) for pair in pairs], [True] * len(pairs))
        for seed, choose in enumerate([max, min])
    }
    table = later_minus_earlier(run_activations, planted.targets, planted.factors).set_index(["scope", "measure"])
    row = table.loc[("variant", "positive")]
    assert row["value"].item() == 0.0
    assert row["spread"].item() == pytest.approx(math.sqrt(2))


def test_the_switch_from_uniform_to_focused_reading(plant):
    tables = []
    for length, focused in ((5, False), (30, True)):
        planted = plant("T1", length=length)
        places = planted.factors["positions"][:, 0].tolist() if focused else [-1] * len(planted)
        activations = planted.looking_at(places, [True] * len(planted))
        tables.append(strategy_switch({("LSTM-attention", 0): activations}, planted.targets, planted.factors))
    assert [set(table["length"]) for table in tables] == [{5}, {30}]
    assert [pooled_values(table)["target"] for table in tables] == pytest.approx([0.2, 1.0])
    assert [pooled_values(table)["target - uniform"] for table in tables] == pytest.approx([0.0, 1 - 1 / 30])


VARIANTS = ("T-Pos-Att", "T+Pos-Att", "T-Pos+Att", "T+Pos+Att")
PROFILE_RUNS = [(variant, seed) for variant in VARIANTS for seed in range(3)]


def points_by_loop(planted, run_activations, run):
    """(position, accuracy on positives) for one run, counted by hand."""
    found = []
    for position in range(planted.length):
        logits, places = run_activations[run]["prediction"][:, 0], planted.factors["positions"][:, 0]
        here = [i for i in range(len(planted)) if planted.targets[i, 0] and places[i] == position]
        hits = [logits[i] >= 0 for i in here]
        if hits:
            found.append((position, sum(hits) / len(hits)))
    return found


def test_position_effect_is_pearson_over_runs_and_positions(plant):
    planted = plant("T1")
    run_activations = {run: planted.random_trace(k) for k, run in enumerate(PROFILE_RUNS)}
    table = position_effect(run_activations, planted.targets, planted.factors)
    assert table["scope"].value_counts().to_dict() == {"pooled": 2, "variant": 4, "seed": 12}
    for row in table.itertuples():
        runs = [
            run for run in PROFILE_RUNS if run[0].endswith(row.variant) and (row.scope != "seed" or run[1] == row.seed)
        ]
        points = [point for run in runs for point in points_by_loop(planted, run_activations, run)]
        expected = stats.pearsonr(*zip(*points, strict=True))
        assert (row.n, row.r, row.p) == (len(points), pytest.approx(expected[0]), pytest.approx(expected[1]))
    assert table[table["scope"] == "pooled"]["n"].tolist() == [2 * 3 * planted.length] * 2


def test_points_are_those_counted_by_hand(plant):
    planted = plant("T1", n=60)
    run_activations = {("LSTM", 0): planted.random_trace(0)}
    found = accuracy_by_position(run_activations, planted.targets, planted.factors)
    expected = points_by_loop(planted, run_activations, ("LSTM", 0))
    assert found["position"].tolist() == [position for position, _ in expected]
    assert found["value"].tolist() == pytest.approx([value for _, value in expected])
    assert found["n"].sum() == planted.targets.sum()


def test_a_planted_decline_with_position_only_with_self_attention(plant):
    """With self-attention every second example from position 3 on is missed; without it nothing is."""
    planted = plant("T1", n=2000)
    place = planted.factors["positions"][:, 0]
    always = planted.looking_at([-1] * len(place), [True] * len(place))
    misses = planted.looking_at([-1] * len(place), [not (p >= 3 and i % 2) for i, p in enumerate(place)])
    run_activations = {("T−Pos+Att", 0): misses, ("T-Pos-Att", 0): always, ("LSTM", 0): misses}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = position_effect(run_activations, planted.targets, planted.factors)
    table = table.set_index(["scope", "variant"])
    assert table.loc[("pooled", "+Att"), "r"] < -0.8 and table.loc[("pooled", "+Att"), "p"] < 0.05
    assert math.isnan(table.loc[("pooled", "-Att"), "r"]) and math.isnan(table.loc[("pooled", "-Att"), "p"])
    assert table.loc[("variant", "LSTM"), "r"] == table.loc[("pooled", "+Att"), "r"]
    assert set(table.loc["pooled"].index) == {"+Att", "-Att"}


@pytest.mark.parametrize("task", ["T2", "T4"])
def test_error_profile_agrees_with_counting(plant, task):
    planted = plant(task)
    run_activations = {run: planted.random_trace(k) for k, run in enumerate(PROFILE_RUNS)}
    table = error_profile(run_activations, planted.targets, planted.factors)

    def share(run, names):
        logits, scenario = run_activations[run]["prediction"][:, 0], planted.factors["scenario"]
        here = [i for i in range(len(planted)) if scenario[i] in names]
        hits = [(logits[i] >= 0) == planted.targets[i, 0] for i in here]
        return sum(hits) / len(hits)

    one = ("no/a-only", "no/b-only")
    expected = {
        "yes/same": [share(run, ["yes/same"]) for run in PROFILE_RUNS],
        "yes/diff": [share(run, ["yes/diff"]) for run in PROFILE_RUNS],
        "no/none": [share(run, ["no/none"]) for run in PROFILE_RUNS],
        "no/one": [share(run, one) for run in PROFILE_RUNS],
        "yes/diff - yes/same": [share(run, ["yes/diff"]) - share(run, ["yes/same"]) for run in PROFILE_RUNS],
        "no/one - no/none": [share(run, one) - share(run, ["no/none"]) for run in PROFILE_RUNS],
    }
    for name, values in expected.items():
        rows = table[table["measure"] == name]
        assert rows[rows["scope"] == "seed"]["value"].tolist() == pytest.approx(values)
        assert rows[rows["scope"] == "pooled"]["value"].item() == pytest.approx(np.mean(values))
        assert rows[rows["scope"] == "pooled"]["spread"].item() == pytest.approx(np.std(values, ddof=1))


def test_a_model_that_needs_the_pair_in_one_token(plant):
    planted = plant("T2")
    answers = [name == "yes/same" for name in planted.factors["scenario"]]
    activations = planted.looking_at([-1] * len(planted), answers)
    found = pooled_values(error_profile({("T-Pos-Att", 0): activations}, planted.targets, planted.factors))
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


def by_loop(planted, activations):
    """All measures of R6 for one run, by dictionaries and loops."""
    factors, weights = planted.factors, activations["decoder.attention"].astype(float)
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
        agrees = (activations["prediction"][i, 0] >= 0) == rule
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
    run_activations = {run: planted.random_trace(k) for k, run in enumerate(runs)}
    table = favoured_feature(run_activations, planted.targets, planted.factors)
    found = {run: by_loop(planted, run_activations[run]) for run in runs}
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
    activations = guesser(planted, [0, 1, 0, 1, 0, 0])
    found = pooled_values(favoured_feature({("T+Pos-Att", 0): activations}, planted.targets, planted.factors))
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
    found = pooled_values(favoured_feature({("T+Pos-Att", 0): right}, planted.targets, planted.factors))
    fooled = np.mean(planted.factors["scenario"] == "no/a-only")
    assert found["agreement"] == pytest.approx(1 - fooled)
    assert found["agreement where the rule errs"] == 0.0


def test_without_positives_across_tokens_there_is_no_favourite(plant):
    planted = plant("T4")
    factors = {**planted.factors, "scenario": np.full(len(planted), "yes/same")}
    table = favoured_feature({("T+Pos-Att", 0): planted.random_trace(0)}, planted.targets, factors)
    assert all(math.isnan(value) for value in pooled_values(table).values())
    assert (table["n"] == 0).all()
