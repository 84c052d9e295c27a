"""The figures of the modularity paper: every number of its list, and what each is drawn from."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import figure_sources as made
from unseen.report.data import Source, means
from unseen.report.figure import Drawing
from unseen.report.figures.rules import FIGURES
from unseen.stats import mean_interval

BY_NUMBER = {int(one.name.removeprefix("rules/figure")): one for one in FIGURES if one.origin != "ours"}
ORDER = {"truth": "GT-Modular", "operation": "Modular-op", "joint": "Modular", "none": "Monolithic"}
AVG, WORST, IMI, ADAPT, ALIGN = (
    "collapse_avg",
    "collapse_worst",
    "inverse_mutual_information",
    "adaptation",
    "alignment",
)

# The paper's list, row by row: (architecture, setting) of two figures, and what both show.
C, R = "classification", "regression"
TABLE: dict[int, tuple[str, str, str, str]] = {}
for architecture, (first, second), rows in (
    ("mlp", (8, 16), [("votes", ""), ("performance", "iid"), ("performance", "ood/amplitude=2")]),
    ("mha", (24, 32), [("votes", ""), ("performance", "iid"), ("performance", "ood/length=30,amplitude=2")]),
    ("rnn", (40, 48), [("votes", ""), ("performance", "iid"), ("performance", "ood/length=30,amplitude=2")]),
):
    for place, (kind, what) in enumerate([*rows, *(("metric", name) for name in (AVG, WORST, IMI, ADAPT, ALIGN))]):
        TABLE |= {first + place: (kind, architecture, C, what), second + place: (kind, architecture, R, what)}
TABLE |= {
    number: ("performance", "mha", C, f"ood/length={n}")
    for number, n in zip(range(56, 60), (3, 5, 20, 30), strict=True)
}
TABLE |= {
    60: ("performance", "mha", C, "ood/length=3,amplitude=2"),
    61: ("performance", "mha", C, "ood/length=5,amplitude=2"),
    62: ("performance", "mha", C, "ood/amplitude=2"),
    63: ("performance", "mha", C, "ood/length=20,amplitude=2"),
    64: ("performance", "mha", C, "ood/length=30,amplitude=2"),
}
for start, architecture, setting in ((65, "mha", R), (74, "rnn", C), (83, "rnn", R)):
    TABLE |= {start + place: ("performance", architecture, setting, TABLE[56 + place][3]) for place in range(9)}


@cache
def source() -> Source:
    return made.rules_source(made.rules_places(searches=(1, 2)))


@cache
def small() -> Source:
    """One panel of each: compiling many takes time."""
    return made.rules_source(made.rules_places(rules=(2,), widths=(32,), seeds=1))


def drawn(number: int, of: Source) -> Drawing:
    found = made.quick(BY_NUMBER[number], of)
    assert found is not None
    return found


def last(of: Source, split: str, **levels: Any) -> pd.DataFrame:
    rows = of.records[(of.records["selection"] == "last") & (of.records["split"] == split)]
    for column, level in levels.items():
        rows = rows[rows[column] == level]
    return rows


def test_every_figure_with_numbers_has_one() -> None:
    assert sorted(BY_NUMBER) == list(range(2, 92))
    assert len(BY_NUMBER) == 90
    assert sorted(TABLE) == list(range(8, 92))
    for number, (kind, architecture, setting, what) in TABLE.items():
        one = BY_NUMBER[number]
        said: dict[str, Any] = one.draw.keywords  # type: ignore[attr-defined]
        expected = {
            "votes": {"splits": ("id", "ood")},
            "performance": {"split": what},
            "metric": {"metric": what},
        }[kind]
        assert said == {"architecture": architecture, "setting": setting, **expected}, number
        assert one.origin == f"figure {number}"
        assert one.title.startswith(f"{architecture.upper()}, {setting}: "), number


def test_each_draws() -> None:
    for number, one in BY_NUMBER.items():
        assert one.title and one.caption and one.origin
        drawing = drawn(number, small())
        assert "runs" in drawing.data and len(drawing.data), number


@pytest.mark.parametrize("number", [2, 3, 4, 5, 6, 7, 8, 9, 17, 25, 27, 40])
def test_each_kind_is_taken_by_vega(number: int) -> None:
    rendered = made.rendered(drawn(number, source() if number in (25, 27) else small()))
    assert "Modular" in rendered or number == 2


@pytest.mark.parametrize(
    ("number", "metric"),
    [(9, "accuracy"), (18, "loss"), (26, "accuracy"), (91, "loss"), (71, "loss"), (56, "accuracy")],
)
def test_performance_is_the_mean_of_the_last_weights(number: int, metric: str) -> None:
    _, architecture, setting, split = TABLE[number]
    rows = last(source(), split, architecture=architecture, setting=setting, metric=metric)
    data = drawn(number, source()).data
    found = data[data["kind"] == "mean"]
    searches = 2 if architecture == "mha" else 1
    assert len(found) == 2 * 2 * 4 * searches
    for _, point in found.iterrows():
        gating = next(level for level, family in ORDER.items() if family == point["family"])
        own = rows[(rows["gating"] == gating) & (rows["rules"] == point["rules"]) & (rows["width"] == point["width"])]
        if searches == 2:
            own = own[own["search"] == int(point["search"].removeprefix("search "))]
        values = own["value"].to_numpy(float)
        values = 100 * (1 - values) if setting == C else values
        assert point["runs"] == len(own) == 6
        assert point["value"] == pytest.approx(values.mean())
        assert point["low"] <= point["value"] <= point["high"]
        if setting == R:
            assert point["relative"] == pytest.approx(values.mean() / 2.5)
    dots = data[data["kind"] == "run"]
    assert len(dots) == len(rows)


def test_capacities_have_the_published_numbers_of_parameters() -> None:
    sizes = {
        (architecture, setting): drawn(number, source()).data.query("kind == 'mean'")
        for number, (kind, architecture, setting, what) in TABLE.items()
        if (kind, what) == ("performance", "iid")
    }

    def count(architecture: str, setting: str, **at: Any) -> set[int]:
        rows = sizes[architecture, setting]
        for column, level in at.items():
            rows = rows[rows[column] == level]
        return set(rows["parameters"])

    assert count("mlp", C, family="Modular", rules=8, width=128) == {564_105}
    assert count("mha", C, family="Monolithic", rules=2, width=32, search="search 1") == {28_609}
    assert count("mha", R, family="Monolithic", rules=2, width=32, search="search 2") == {28_609 + 2 * 2 * 32}
    assert count("rnn", C, family="GT-Modular", rules=8, width=32) == {99_908}
    assert count("rnn", R, family="Monolithic", rules=2, width=32) == {101_761 + 31 * 129}


def test_overview_averages_over_widths_tasks_seeds_and_searches() -> None:
    found = drawn(4, source()).data
    mean = found[
        (found["kind"] == "mean") & (found["row"] == "MHA") & (found["family"] == "Modular") & (found["rules"] == 8)
    ].set_index("column")
    assert list(mean.index) == [
        "Classification ID: error %",
        "Classification OoD: error %",
        "Regression ID: loss",
        "Regression OoD: loss",
    ]
    wrong = last(source(), "iid", architecture="mha", setting=C, gating="joint", rules=8, metric="accuracy")
    assert mean.loc["Classification ID: error %", "value"] == pytest.approx(100 * (1 - wrong["value"]).mean())
    assert mean.loc["Classification ID: error %", "runs"] == len(wrong) == 24
    far = last(source(), made.LONGEST, architecture="mha", setting=R, gating="joint", rules=8, metric="loss")
    assert mean.loc["Regression OoD: loss", "value"] == pytest.approx(far["value"].mean())


def test_references_stand_only_where_something_comes_near() -> None:
    def numbers(run: made.Run, draws: np.random.Generator) -> dict[Any, float]:
        return {("iid", "accuracy"): 0.55 if run["rules"] == 8 else 0.99}

    of = made.rules_source(made.rules_places(["mlp"], [C]), numbers=numbers)
    found = drawn(9, of)
    reference = found.data[found.data["kind"] == "reference"]
    assert reference[["column", "value", "label"]].to_numpy().tolist() == [["8 rules", 50.0, "chance"]]
    assert any("Chance is an error of 50 %" in note for note in found.notes)


@pytest.mark.parametrize("number", [11, 22, 29, 55])
def test_bars_are_means_and_random_is_by_definition(number: int) -> None:
    _, architecture, setting, metric = TABLE[number]
    data = drawn(number, source()).data
    rows = last(source(), "iid", architecture=architecture, setting=setting, metric=f"specialization/{metric}")
    for _, bar in data[data["kind"] == "mean"].iterrows():
        gating = next(level for level, family in ORDER.items() if family == bar["family"])
        own = rows[(rows["gating"] == gating) & (rows["rules"] == bar["rules"]) & (rows["width"] == bar["width"])]
        own = own[own["search"] == int(bar["search"].removeprefix("search "))] if architecture == "mha" else own
        assert (bar["value"], bar["runs"]) == (pytest.approx(own["value"].mean()), 6)
    assert set(data["family"][data["kind"] == "mean"]) == {"GT-Modular", "Modular-op", "Modular"}
    assert set(data["size"]) == {"Small", "Medium"}
    at_random = data[data["kind"] == "definition"]
    assert set(at_random["family"]) == {"Random"} and set(at_random["runs"]) == {0}
    printed = {
        AVG: {2: 0, 8: 0},
        WORST: {2: 0, 8: 0},
        IMI: {2: 1, 8: 1},
        ALIGN: {2: 0.5, 8: 0.875},
        ADAPT: {2: 0.2567, 8: 0.3350},
    }[metric]
    for rules, value in printed.items():
        assert at_random["value"][at_random["rules"] == rules].tolist() == pytest.approx(
            [value] * int((at_random["rules"] == rules).sum()), abs=6e-5
        )


def test_figures_5_and_6_pool_all_that_was_run() -> None:
    rows = last(source(), "iid", metric=f"specialization/{ADAPT}", gating="operation")
    by_rules, overall = (drawn(number, source()).data for number in (5, 6))
    assert list(dict.fromkeys(overall["metric"])) == [AVG, WORST, ALIGN, ADAPT, IMI]
    own = by_rules[(by_rules["metric"] == ADAPT) & (by_rules["family"] == "Modular-op") & (by_rules["kind"] == "mean")]
    assert own.set_index("rules")["value"].to_dict() == pytest.approx(rows.groupby("rules")["value"].mean().to_dict())
    one = overall[
        (overall["metric"] == ADAPT) & (overall["family"] == "Modular-op") & (overall["kind"] == "mean")
    ].iloc[0]
    assert (one["value"], one["runs"]) == (pytest.approx(rows["value"].mean()), len(rows))
    at_random = overall[(overall["metric"] == ADAPT) & (overall["family"] == "Random")].iloc[0]
    assert at_random["value"] == pytest.approx((0.2567 + 0.3350) / 2, abs=1e-4)


def test_other_widths_than_the_papers_are_drawn_as_they_are() -> None:
    of = made.rules_source(made.rules_places(["mlp"], [C], widths=(8, 16)))
    assert set(drawn(11, of).data["size"]) == {"8", "16"}
    of = made.rules_source(made.rules_places(["mlp"], [C], widths=(32, 64)))
    assert set(drawn(11, of).data["size"]) == {"Small"}


def counted(
    of: Source, split: dict[str, str], families: list[str], flip: bool = False, **levels: Any
) -> dict[str, float]:
    """Votes as one would count them by hand."""
    scores: dict[Any, dict[str, list[float]]] = {}
    for row in of.records[of.records["selection"] == "last"].to_dict("records"):
        metric = "accuracy" if row["setting"] == C else "loss"
        if (row["split"], row["metric"]) != (split[row["architecture"]], metric):
            continue
        if row["gating"] in families and all(row[column] == level for column, level in levels.items()):
            key = tuple(str(row[name]) for name in ("architecture", "setting", "search", "rules", "width", "task_seed"))
            sign = (1 if row["setting"] == C else -1) * (-1 if flip and key[:2] == ("rnn", C) else 1)
            scores.setdefault(key, {}).setdefault(row["gating"], []).append(sign * row["value"])
    votes = dict.fromkeys(families, 0.0)
    for own in scores.values():
        votes[max(own, key=lambda gating: np.mean(own[gating]))] += 1
    return {ORDER[gating]: number / len(scores) for gating, number in votes.items()}


def noisy(run: made.Run, draws: np.random.Generator) -> dict[Any, float]:
    return {
        key: value if "specialization" in key[1] else float(draws.random())
        for key, value in made.rules_numbers(run, draws).items()
    }


def test_votes_are_counted_flipped_and_printed() -> None:
    of = made.rules_source(made.rules_places(widths=(32,)), numbers=noisy)
    inside = {"mlp": "iid", "mha": "iid", "rnn": "iid"}
    data = drawn(3, of).data
    shares = {
        (kind, contest): own.set_index("family")["share"].to_dict()
        for (kind, contest), own in data.groupby(["kind", "contest"])
    }
    for contest, families in (("all", list(ORDER)), ("joint against none", ["joint", "none"])):
        assert shares["counted", contest] == pytest.approx(counted(of, inside, families))
        assert shares["flipped", contest] == pytest.approx(counted(of, inside, families, flip=True))
    assert shares["printed", "all"] == {"GT-Modular": 0.614, "Modular-op": 0.205, "Modular": 0.073, "Monolithic": 0.108}
    assert shares["printed", "joint against none"] == {"Modular": 0.596, "Monolithic": 0.404}
    assert shares["counted", "all"] != shares["flipped", "all"]
    outside = {"mlp": "ood/amplitude=2", "mha": made.LONGEST, "rnn": made.LONGEST}
    parts = drawn(8, of).data
    assert set(parts["kind"]) == {"counted"} and set(parts["split"]) == {"id", "ood"}
    own = parts[(parts["split"] == "ood") & (parts["contest"] == "all")].set_index("family")["share"].to_dict()
    assert own == pytest.approx(counted(of, outside, list(ORDER), architecture="mlp", setting=C))
    assert set(drawn(40, of).data["kind"]) == {"counted", "flipped"}
    assert set(drawn(48, of).data["kind"]) == {"counted"}


def test_curves_hold_their_last_value_and_start_at_step_0() -> None:
    of = source()
    data = drawn(7, of).data
    points = of.curves()
    points = points[(points["gating"] == "joint") & (points["setting"] == C)]
    wide = points.pivot(index="trial", columns="step", values="value")
    assert wide[100].isna().any()  # the MLPs end at 50
    own = data[(data["family"] == "Modular") & data["column"].str.startswith("Classification")].set_index("step")
    assert list(own.index) == [0, 25, 50, 75, 100]
    held = 100 * (1 - wide.ffill(axis=1))
    for step in own.index:
        assert own.loc[step, "value"] == pytest.approx(held[step].mean())
        assert own.loc[step, "low"] <= own.loc[step, "value"] <= own.loc[step, "high"]
    assert set(own["runs"]) == {len(held)}
    both = data[(data["family"] == "Modular") & data["column"].str.startswith("Both")].set_index("step")
    other = of.curves()
    other = (
        other[(other["gating"] == "joint") & (other["setting"] == R)]
        .pivot(index="trial", columns="step", values="value")
        .ffill(axis=1)
    )
    assert both.loc[75, "value"] == pytest.approx(np.concatenate([held[75], other[75]]).mean())
    only = made.rules_source(made.rules_places(settings=[R]))
    assert set(drawn(7, only).data["column"]) == {"Regression: loss"}


def test_the_example_has_the_papers_values() -> None:
    data = drawn(2, source()).data
    scores = data[data["kind"] == "metric"].set_index("metric")["value"].round(4).to_dict()
    assert {
        name: scores[name] for name in ("Collapse-Avg", "Collapse-Worst", "Alignment", "Inverse mutual information")
    } == {"Collapse-Avg": 0.3333, "Collapse-Worst": 1.0, "Alignment": 0.2625, "Inverse mutual information": 0.4189}
    assert any("made up" in note for note in drawn(2, source()).notes)


def test_a_partial_study_gives_partial_figures_that_say_so() -> None:
    def status(run: made.Run) -> str:
        if run["rules"] == 8 and run["gating"] == "joint":
            return "pending"
        return "diverged" if (run["gating"], run["seed"], run["task_seed"]) == ("none", 1, 0) else "finished"

    of = made.rules_source(made.rules_places(["mlp"], [C]), status=status)
    found = drawn(9, of)
    mean = found.data[found.data["kind"] == "mean"]
    assert mean[mean["family"] == "Modular"]["rules"].tolist() == [2, 2]
    assert set(mean["runs"][mean["family"] == "Monolithic"]) == {5}
    assert "80 of 96 runs are drawn; 4 diverged, 12 have not ended." in found.notes
    assert drawn(11, of).data.query("kind == 'mean' and rules == 8")["family"].tolist() == [
        "Modular-op",
        "GT-Modular",
        "Modular-op",
        "GT-Modular",
    ]
    votes = drawn(8, of)
    assert set(votes.data["experiments"]) == {6} and set(votes.data["incomplete"]) == {6}
    assert any("6 lack a family" in note for note in votes.notes)
    assert all(BY_NUMBER[number].draw(of) is None for number in (16, 17, 24, 25, 30, 40, 56, 91))
    made.rendered(drawn(4, of))


def test_runs_not_converged_are_marked() -> None:
    of = made.rules_source(made.rules_places(["mlp"], [C]), not_converged=lambda run: int(run["gating"] == "joint"))
    found = drawn(9, of)
    mean = found.data[found.data["kind"] == "mean"].set_index("family")["not_converged"]
    assert set(mean["Modular"]) == {6} and set(mean["GT-Modular"]) == {0}
    assert found.data[found.data["kind"] == "run"]["not_converged"].sum() == 24
    assert "Hollow dots: 24 runs had not converged when they ended." in found.notes
    assert set(drawn(7, of).data.groupby("family")["not_converged"].max().to_dict().items()) == {
        ("GT-Modular", 0),
        ("Modular", 24),
        ("Modular-op", 0),
        ("Monolithic", 0),
    }


def test_nothing_gives_none() -> None:
    empty = made.rules_source(made.rules_places(["mlp"], [C], tasks=1), status=lambda run: "pending")
    without_axes = made.rules_source(made.rules_places(["mlp"], [C], rules=(2,), tasks=1), axes=())
    other = made.ctl_source()
    for one in FIGURES:
        assert one.draw(other) is None
        assert all(one.draw(of) is None or one.name == "rules/figure2" for of in (empty, without_axes))


def test_one_task_has_no_intervals_and_still_draws() -> None:
    of = made.rules_source(made.rules_places(["mlp"], [C], tasks=1))
    for number in (4, 6, 7, 8, 11):
        found = drawn(number, of)
        if "low" in found.data:
            assert found.data["low"].isna().all()
        assert "NaN" not in re.sub(r"<title>.*?</title>", "", made.rendered(found))


def test_models_of_other_options_are_left_out_and_named() -> None:
    places = made.rules_places(["mha"], [C], widths=(32,))
    both = [*places, *({**place, "encoder": "scaled"} for place in places)]
    of = made.rules_source(
        both,
        model_options=lambda run: {"gating": run["gating"], "encoder": run.get("encoder", "fixed")},
        axes=("architecture", "setting", "gating", "rules", "width", "task_seed", "search", "encoder"),
    )
    for number in (3, 25, 27):
        found = drawn(number, of)
        assert any("with other options are not in it: encoder=scaled" in note for note in found.notes)
    assert set(drawn(25, of).data.query("kind == 'mean'")["runs"]) == {6}
    only = replace(of, runs=of.runs[of.runs["model_options"].str.contains("scaled")])
    assert drawn(25, only).data.query("kind == 'mean'")["parameters"].isna().all()


def test_an_axis_of_the_users_own_makes_experiments_of_its_own() -> None:
    places = [{**place, "rate": rate} for place in made.rules_places(["mlp"], [C], tasks=3) for rate in ("<b>", "a:b")]
    of = made.rules_source(
        places, axes=("architecture", "setting", "gating", "rules", "width", "task_seed", "search", "rate")
    )
    found = drawn(8, of)
    assert set(found.data["experiments"]) == {24}
    assert any("Pooled over rate" in note for note in found.notes)


def test_too_many_runs_are_drawn_as_means_only() -> None:
    of = made.rules_source(made.rules_places(["mlp"], [C], tasks=5, seeds=26, rules=(2, 4, 8, 16, 32), widths=(32,)))
    found = drawn(9, of)
    assert not (found.data["kind"] == "run").any()
    assert set(found.data["runs"][found.data["kind"] == "mean"]) == {130}
    assert any("too many to be drawn" in note for note in found.notes)


@settings(derandomize=True, deadline=None, max_examples=25)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 11), st.integers(0, 1000)), min_size=1, max_size=60))
def test_the_fast_means_are_the_plain_ones(drawn_rows: list[tuple[str, int, int]]) -> None:
    rows = pd.DataFrame(drawn_rows, columns=["family", "task_seed", "value"]).assign(
        not_converged=lambda one: one["value"] % 2
    )
    rows["value"] = (rows["value"] / 1000).mask(rows["value"] == 7)
    for clusters in (None, "task_seed"):
        found = means(rows, ["family"], clusters).set_index("family")
        assert list(found.index) == list(dict.fromkeys(rows.dropna()["family"]))
        for family, own in rows.dropna().groupby("family"):
            plain = mean_interval(own["value"], clusters=None if clusters is None else own["task_seed"].tolist())
            units = own["value"] if clusters is None else own.groupby("task_seed")["value"].mean()
            one = found.loc[str(family)]
            assert one[["mean", "runs", "not_converged"]].tolist() == pytest.approx(
                [units.mean(), len(own), own["not_converged"].sum()]
            )
            assert one[["low", "high"]].tolist() == pytest.approx([plain.low, plain.high], rel=1e-12, nan_ok=True)
