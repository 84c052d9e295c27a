"""The figures that fit any study: their numbers against a computation by hand, on stores whole, partial and odd."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from support.figure_sources import quick, rendered
from support.store_builder import build
from unseen.models import options
from unseen.report.data import Source
from unseen.report.figure import Drawing
from unseen.report.figures import figure, general, general_curves
from unseen.report.figures.general import FIGURES
from unseen.report.layout import layouts
from unseen.report.sections.design import format_level
from unseen.store.store import Store
from unseen.studies.description import find_description
from unseen.studies.study import find_catalogued
from unseen.tasks import task as make_task

NAMES = ["seeds", "splits", "curves", "solved", "profiles", "improvement"]
HOSTILE = ["a:b.c[0]", "<b>bold</b>", 'it\'s "quoted" \\ datum.x']
TASKS = ["retrieval/T1", "retrieval/T6"]


def score(levels: Any, seed: int, split: str) -> float:
    """A fixed number for each run."""
    draws = np.random.default_rng([HOSTILE.index(levels["variant"]), TASKS.index(levels["task"]), seed, len(split)])
    return float(0.75 + 0.08 * HOSTILE.index(levels["variant"]) + 0.05 * draws.normal()).__round__(4)


def numbers(levels: Any, seed: int) -> dict[Any, float]:
    return {(split, "accuracy"): score(levels, seed, split) for split in ("iid", "ood/single")}


def curve(levels: Any, seed: int) -> dict[Any, float]:
    return {(step, "ood/single", "accuracy"): 0.5 + 0.0003 * step + 0.01 * seed for step in range(0, 1001, 100)}


def drawn(name: str, source: Source) -> Drawing:
    found = quick(figure(name), source)
    assert found is not None
    return found


def means_of(drawing: Drawing) -> pd.DataFrame:
    return drawing.data[drawing.data["kind"] == "mean"] if "kind" in drawing.data else drawing.data


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Source:
    """Three variants with names that want to be code, on two tasks, six seeds; seed 0 had not converged."""
    path = build(
        tmp_path_factory.mktemp("ours") / "whole",
        axes={"task": TASKS, "variant": HOSTILE},
        metrics=numbers,
        last=lambda levels, seed: {key: value - 0.3 for key, value in numbers(levels, seed).items()},
        seeds=range(6),
        not_converged=lambda levels, seed: seed == 0,
        curve=curve,
    )
    return Source.read(path)


@pytest.fixture(scope="module")
def truth(whole: Source) -> pd.DataFrame:
    """What the store holds, read without the report."""
    with Store.read(whole.directory) as store:
        records = store.records()
    return records[(records.selection == "best") & (records.metric == "accuracy")]


def test_every_seed_is_there(whole: Source, truth: pd.DataFrame) -> None:
    data, outside = drawn("seeds", whole).data, truth[truth.split == "ood/single"]
    runs = data[data.kind == "run"].set_index("trial")
    assert len(runs) == 36 and (runs.value == outside.set_index("trial").value[runs.index]).all()
    assert (runs.state == "not converged").sum() == 6 and set(runs.seed[runs.state == "not converged"]) == {0}
    means = data[data.kind == "mean"].set_index(["panel", "series"])
    for place, group in outside.groupby(["task", "variant"]):
        found = means.loc[place]
        assert found.value == pytest.approx(group.value.mean()) and found.runs == 6 and found.not_converged == 1
        low, high = stats.t.interval(0.95, 5, group.value.mean(), stats.sem(group.value))
        assert found.high == pytest.approx(min(high, 1.0))
        # Near the upper end of the scale the lower bound is farther than Student's.
        near = 1 - group.value.mean() < 3 * group.value.std()
        assert found.low <= low + 1e-12 if near else found.low == pytest.approx(low)


def test_references_are_measured(whole: Source) -> None:
    lines = drawn("seeds", whole).data.query("kind == 'reference' and panel == 'retrieval/T6'").set_index("name").value
    t6 = make_task("retrieval/T6", length=5, train_size=200, evaluation_size=100)
    examples = t6.sample("ood/single", 100, data_seed="test")
    shortcuts = {one.name: np.mean(one.answer(examples) == examples.targets) for one in t6.shortcuts("ood/single")}
    best = max(shortcuts, key=lambda name: shortcuts[name])
    assert lines.to_dict() == {"chance": 0.5, best: pytest.approx(shortcuts[best]), "oracle": 1.0}
    for name in ("curves", "splits"):
        data = drawn(name, whole).data.query("kind == 'reference' and panel == 'retrieval/T6'")
        data = data if name == "curves" else data[data.split == "ood/single"]
        assert dict(zip(data.name, data.value, strict=True)) == {best: pytest.approx(shortcuts[best]), "oracle": 1.0}


def test_splits(whole: Source, truth: pd.DataFrame) -> None:
    data = drawn("splits", whole).data
    found = data[data.kind == "mean"].set_index(["panel", "series", "split"]).value.sort_index()
    pd.testing.assert_series_equal(
        found, truth.groupby(["task", "variant", "split"]).value.mean().sort_index(), check_names=False
    )
    assert len(found) == 12


def test_curves(whole: Source) -> None:
    data = drawn("curves", whole).data
    means = data[data.kind == "mean"]
    assert len(means) == 6 * 11
    for row in means.itertuples():
        each = [0.5 + 0.0003 * row.step + 0.01 * seed for seed in range(6)]
        assert (row.value, row.low, row.high) == pytest.approx((np.mean(each), min(each), max(each)))
        assert row.runs == 6 and row.samples == 100 * row.step
    ends = data[data.kind == "run"]
    assert len(ends) == 36 and (ends.step == 1000).all() and set(ends.seed[ends.state == "not converged"]) == {0}


def test_curves_of_unequal_runs(tmp_path: Path) -> None:
    """One was validated more often, one stopped early and keeps its value, one is under way and has no future."""
    steps = {0: range(0, 1001, 250), 1: range(0, 1001, 500), 2: range(0, 501, 500), 3: range(0, 501, 500)}
    status = ["finished", "finished", "stopped", "pending"]
    path = build(
        tmp_path / "s",
        seeds=range(4),
        status=lambda levels, seed: status[seed],
        curve=lambda levels, seed: {(s, "ood/single", "accuracy"): s / 1000 + seed / 10 for s in steps[seed]},
    )
    drawing = drawn("curves", Source.read(path))
    data = drawing.data[drawing.data.kind == "mean"].set_index("step")
    held = {
        0: [0, 0.1, 0.2, 0.3],
        250: [0.25, 0.1, 0.2, 0.3],
        500: [0.5, 0.6, 0.7, 0.8],
        750: [0.75, 0.6, 0.7],
        1000: [1.0, 1.1, 0.7],
    }
    for step, values in held.items():
        found = data.loc[step]
        assert (found.value, found.low, found.high) == pytest.approx((np.mean(values), min(values), max(values)))
        assert found.runs == len(values)
    assert any("stopped early" in note for note in drawing.notes)
    assert "4 of 4 runs are drawn; 1 has not ended." in drawing.notes


def test_long_curves_are_thinned(tmp_path: Path) -> None:
    path = build(
        tmp_path / "s",
        seeds=range(2),
        curve=lambda levels, seed: {(step, "iid", "accuracy"): step / 2000 for step in range(1001)},
    )
    data = drawn("curves", Source.read(path)).data.query("kind == 'mean'")
    assert len(data) == general_curves.MAX_POINTS and data.step.min() == 0 and data.step.max() == 1000
    np.testing.assert_allclose(data.value, data.step / 2000)


def test_solved(whole: Source, truth: pd.DataFrame) -> None:
    drawing = drawn("solved", whole)
    assert "at least 95 %" in drawing.notes[0]
    data = drawing.data.set_index(["panel", "series"])
    for place, group in truth[truth.split == "ood/single"].groupby(["task", "variant"]):
        solved = int((group.value >= 0.95).sum())
        interval = stats.binomtest(solved, len(group)).proportion_ci(method="wilson")
        found = data.loc[place]
        assert (found.solved, found.runs, found["name"]) == (solved, 6, f"{solved} of 6")
        assert (found.share, found.low, found.high) == pytest.approx((solved / 6, interval.low, interval.high))
    assert data.solved.sum() > 0


def test_profiles(whole: Source, truth: pd.DataFrame) -> None:
    data, outside = drawn("profiles", whole).data, truth[truth.split == "ood/single"]
    for row in data.itertuples():
        values = outside.value[outside.variant == row.series]
        assert row.share == pytest.approx(np.mean(values >= row.score)) and row.runs == 12
        assert row.low <= row.share + 1e-9 and row.share <= row.high + 1e-9
    assert data.groupby("series").size().tolist() == [101] * 3


def test_improvement(whole: Source, truth: pd.DataFrame) -> None:
    data, outside = drawn("improvement", whole).data, truth[truth.split == "ood/single"]
    assert len(data) == 6
    for row in data.itertuples():
        each = []
        for name in TASKS:
            here = outside[outside.task == name]
            one, other = (here.value[here.variant == side] for side in (row.better, row.worse))
            each.append(stats.mannwhitneyu(one, other).statistic / (len(one) * len(other)))
        assert row.probability == pytest.approx(np.mean(each)) and (row.runs, row.configurations) == (12, 2)
        assert row.low <= row.probability <= row.high


def test_improvement_counts_what_both_have(tmp_path: Path) -> None:
    """Of a seed or a place that one side lacks nothing is said."""
    path = build(
        tmp_path / "s",
        axes={"variant": ["a", "b"], "size": [1, 2]},
        seeds=range(4),
        without=lambda levels: levels == {"variant": "b", "size": 2},
        status=lambda levels, seed: "pending" if levels["variant"] == "a" and seed == 3 else "finished",
        metrics=lambda levels, seed: {("iid", "accuracy"): 0.5 + 0.1 * seed + 0.05 * (levels["variant"] == "b")},
    )
    data = drawn("improvement", Source.read(path)).data.set_index(["better", "worse"])
    assert data.loc[("b", "a"), "probability"] == pytest.approx(6 / 9)  # 55 65 75 against 50 60 70
    assert set(data.runs) == {3} and set(data.configurations) == {1}


@pytest.mark.parametrize("name", NAMES)
def test_hostile_names_are_shown_and_not_run(whole: Source, name: str) -> None:
    drawing = drawn(name, whole)
    shown = set(drawing.data["better" if name == "improvement" else "series"].dropna())
    assert shown == set(HOSTILE)
    text = rendered(drawing)
    assert "a:b.c[0]" in text and "&lt;b&gt;bold&lt;/b&gt;" in text and "<b>" not in text


def test_hostile_panels(tmp_path: Path) -> None:
    names = {"a:b", "it's", "<i>", "x.y[0]", "datum.value", "${x}"}
    source = Source.read(
        build(tmp_path / "s", axes={"noise": sorted(names), "variant": ["a", "b"]}, seeds=range(3), curve=curve_of)
    )
    for name in ("seeds", "splits", "curves", "solved"):
        assert set(drawn(name, source).data["panel"]) == names
    assert "&lt;i&gt;" in rendered(drawn("seeds", source))


def curve_of(levels: Any, seed: int) -> dict[Any, float]:
    return {(step, "iid", "accuracy"): 0.5 for step in (0, 500, 1000)}


def test_partial_studies_give_partial_figures(tmp_path: Path) -> None:
    """T6 has not begun, the third variant has failed, one run diverged: the rest is drawn, and counted."""

    def status(levels: Any, seed: int) -> str:
        if levels["task"] == "retrieval/T6":
            return "pending"
        if levels["variant"] == HOSTILE[2]:
            return "failed"
        return "diverged" if seed == 0 and levels["variant"] == HOSTILE[0] else "finished"

    source = Source.read(
        build(tmp_path / "s", axes={"task": TASKS, "variant": HOSTILE}, metrics=numbers, seeds=range(4), status=status)
    )
    for name in ("seeds", "splits", "solved"):
        drawing = drawn(name, source)
        counted = means_of(drawing).groupby("series").runs.first()
        assert counted.to_dict() == {HOSTILE[0]: 3, HOSTILE[1]: 4}
        assert "7 of 24 runs are drawn; 4 failed, 1 diverged, 12 have not ended." in drawing.notes
    assert figure("curves").draw(source) is None  # these runs left no curve


def test_few_runs_have_no_interval(tmp_path: Path) -> None:
    source = Source.read(build(tmp_path / "s", axes={"variant": ["a", "b"]}, seeds=range(2), curve=curve_of))
    for name in NAMES:
        drawing = drawn(name, source)
        rendered(drawing)
        if name != "curves":
            means = means_of(drawing)
            assert means.low.isna().all() and means.high.isna().all()


def test_only_gatings_have_the_titles_of_gatings(tmp_path: Path) -> None:
    # A study whose axis `positions` has the level `none` showed it as "Monolithic".
    for axis, title in (("positions", "none"), ("gating", "Monolithic")):
        source = Source.read(build(tmp_path / axis, axes={axis: ["none", "rotary"]}, seeds=range(3)))
        (layout,) = layouts(source)
        assert list(layout.rows["series"].unique()) == [title, "rotary"]
        assert format_level("none", axis) == title


def test_an_empty_store_has_no_figures(tmp_path: Path) -> None:
    waiting = build(tmp_path / "waiting", axes={"variant": ["a", "b"]}, status=lambda levels, seed: "pending")
    with Store.write(tmp_path / "nothing") as store:
        store.set_work({"study": "made-up@1"})
    for path in (waiting, tmp_path / "nothing"):
        source = Source.read(path)
        assert [one.name for one in FIGURES if one.draw(source) is not None] == []


def test_what_train_leaves(tmp_path: Path) -> None:
    source = Source.read(build(tmp_path / "s", study=None, seeds=range(3), curve=curve_of))
    found = {one.name for one in FIGURES if one.draw(source) is not None}
    assert found == {"seeds", "splits", "curves", "solved", "profiles"}  # nothing to compare with
    data = drawn("seeds", source).data
    assert set(data.series.dropna()) == {"retrieval-transformer"} and set(data.panel) == {""}
    assert data.query("kind == 'reference'").name.tolist()[0] == "chance"


def losses(levels: Any, seed: int) -> dict[Any, float]:
    base = {"joint": 0.2, "truth": 0.1}[levels["gating"]] + 0.01 * seed
    return {
        ("iid", "loss"): 3 * base,
        ("iid", "relative_loss"): base,
        ("ood/amplitude=2", "loss"): 6 * base,
        ("ood/amplitude=2", "relative_loss"): 2 * base,
    }


def test_real_targets(tmp_path: Path) -> None:
    """No accuracy: the relative loss, of which less is better."""
    path = build(
        tmp_path / "s",
        axes={"gating": ["joint", "truth"]},
        metrics=losses,
        task=lambda levels: make_task("rules/mlp", rules=2, setting="regression"),
        model=lambda levels: options("rules-mlp", gating=levels["gating"]),
    )
    source = Source.read(path)
    drawing = drawn("seeds", source)
    means = drawing.data.query("kind == 'mean'").set_index("series").value
    assert means.to_dict() == {"Modular": pytest.approx(0.44), "GT-Modular": pytest.approx(0.24)}
    assert drawing.data.query("kind == 'reference'")[["name", "value"]].values.tolist() == [
        ["oracle", 0.0],
        ["always 0", 1.0],
    ]
    assert "relative loss (lower is better)" in rendered(drawing)
    assert any("always predicting 0" in note for note in drawing.notes)
    profile = drawn("profiles", source).data
    for row in profile.itertuples():
        values = [2 * ({"Modular": 0.2, "GT-Modular": 0.1}[row.series] + 0.01 * seed) for seed in range(5)]
        assert row.share == pytest.approx(np.mean(np.array(values) <= row.score))
    better = drawn("improvement", source).data.set_index(["better", "worse"]).probability
    assert better["GT-Modular", "Modular"] == 1.0
    assert figure("solved").draw(source) is None


def test_many_configurations_share_panels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """30 configurations: the axis with the largest effect has panels, the others are pooled; many dots are left out."""

    def metrics(levels: Any, seed: int) -> dict[Any, float]:
        return {("iid", "accuracy"): 0.5 + 0.1 * levels["matters"] + 0.001 * levels["hardly"] + 0.002 * seed}

    source = Source.read(
        build(
            tmp_path / "s",
            axes={"hardly": list(range(10)), "matters": [0, 1, 2], "variant": ["a", "b"]},
            metrics=metrics,
            seeds=range(2),
        )
    )
    drawing = drawn("seeds", source)
    assert list(dict.fromkeys(drawing.data.panel)) == ["matters=0", "matters=1", "matters=2"]
    assert "Runs of all hardly share a panel: separate panels would be too many." in drawing.notes
    first = drawing.data.query("kind == 'mean' and panel == 'matters=1' and series == 'a'").iloc[0]
    assert first.runs == 20 and first.value == pytest.approx(0.6 + 0.0045 + 0.001)
    monkeypatch.setattr(general, "MAX_DOTS", 100)
    without = drawn("seeds", source)
    assert "run" not in set(without.data.kind) and any("More than 100 runs" in note for note in without.notes)
    rendered(without)


def test_splits_outside_are_shown_apart_or_averaged(tmp_path: Path) -> None:
    splits = {f"ood/distractors={n}": n for n in (6, 9, 12, 12.5)}

    def metrics(levels: Any, seed: int) -> dict[Any, float]:
        outside = {(name, "accuracy"): 1 - n / 100 - seed / 1000 for name, n in splits.items()}
        return {("iid", "accuracy"): 1.0} | outside

    few = Source.read(build(tmp_path / "few", axes={"variant": ["a", "b"]}, metrics=metrics, seeds=range(3)))
    assert layouts(few)[0].panels == tuple(splits)
    many = Source.read(
        build(tmp_path / "many", axes={"variant": ["a", "b"], "size": [1, 2, 4, 8]}, metrics=metrics, seeds=range(3))
    )
    (layout,) = layouts(many)
    assert layout.panels == ("size=1", "size=2", "size=4", "size=8") and layout.averaged
    run = layout.rows[layout.rows.seed == 1].iloc[0]
    assert run.value == pytest.approx(1 - (6 + 9 + 12 + 12.5) / 400 - 0.001)
    assert any("mean over" in note for note in drawn("seeds", many).notes)


def test_task_seeds_are_repetitions(tmp_path: Path) -> None:
    """No panel each; and an interval as wide as the choice of tasks makes it."""
    source = Source.read(
        build(
            tmp_path / "s",
            axes={"variant": ["a"], "task_seed": list(range(6))},
            seeds=range(4),
            metrics=lambda levels, seed: {("iid", "accuracy"): 0.5 + 0.05 * levels["task_seed"] + 0.001 * seed},
        )
    )
    (layout,) = layouts(source)
    assert layout.panels == ("",) and layout.clusters == "instance"
    mean = drawn("seeds", source).data.query("kind == 'mean'").iloc[0]
    spread = np.std([0.05 * k for k in range(6)], ddof=1) / np.sqrt(6)  # of the mean over tasks
    assert mean.high - mean.low == pytest.approx(2 * stats.t.ppf(0.975, 5) * spread)


def test_a_model_that_never_varies_gives_way(tmp_path: Path) -> None:
    """Series are then the levels of the axis that tells most."""
    source = Source.read(
        build(
            tmp_path / "s",
            axes={"hardly": ["p", "q"], "matters": ["x", "y", "z"]},
            seeds=range(3),
            metrics=lambda levels, seed: {
                ("iid", "accuracy"): 0.5 + 0.1 * "xyz".index(levels["matters"]) + 0.001 * seed
            },
        )
    )
    (layout,) = layouts(source)
    assert (layout.axis, layout.series, layout.panels) == ("matters", ("x", "y", "z"), ("p", "q"))


def test_unknown_convergence_is_noted(tmp_path: Path) -> None:
    """Too few validations: such a dot is filled, but not because the run had learned."""
    source = Source.read(
        build(
            tmp_path / "s",
            axes={"variant": ["a", "b"]},
            seeds=range(3),
            curve=curve_of,
            not_converged=lambda levels, seed: None if seed else False,
        )
    )
    for name in ("seeds", "curves"):
        assert any(note.startswith("For 4 runs there are too few validations") for note in drawn(name, source).notes)


def test_whose_weights_are_shown_is_up_to_the_paper(whole: Source) -> None:
    # The CTL++ paper tests the last weights; here they are all 0.3 worse than the best.
    work = {**whole.work, "study": f"ctl-table1@{find_catalogued('ctl-table1').version}"}
    of_last = replace(whole, work=work, description=find_description(work, {}))
    assert (whole.selection, of_last.selection) == ("best", "last")
    best, last = drawn("seeds", whole), drawn("seeds", of_last)
    assert np.allclose(means_of(last)["value"], means_of(best)["value"] - 0.3)
    assert ("Weights best on validation." in best.notes, "Last weights, as in the paper." in last.notes) == (True, True)


def test_curves_show_the_validation_beside_other_splits(tmp_path: Path) -> None:
    """Splits that are measured for claims are on the curves of a store, and not mixed into the figure."""
    points = {(s, "ood/single", "accuracy"): s / 1000 for s in range(0, 1001, 500)}
    more = {(s, split, "accuracy"): 0.25 for s in range(0, 1001, 100) for split in ("iid", "train")}
    plain = build(tmp_path / "a", seeds=range(2), curve=lambda levels, seed: points)
    both = build(tmp_path / "b", seeds=range(2), curve=lambda levels, seed: {**points, **more})
    expected, measured = (drawn("curves", Source.read(path)) for path in (plain, both))
    assert measured.data.equals(expected.data) and measured.notes == expected.notes


def test_a_series_of_numbers_names_its_axis(tmp_path: Path) -> None:
    """A legend that says 3 and 5 tells nobody what these are."""
    path = build(
        tmp_path / "s",
        axes={"width": ["narrow", "wide"], "length": [3, 5]},
        metrics=lambda levels, seed: {("ood/single", "accuracy"): 0.9 - 0.1 * levels["length"] + 0.001 * seed},
    )
    (layout,) = layouts(Source.read(path))
    assert (layout.axis, layout.series) == ("length", ("length=3", "length=5"))
    assert layout.panels == ("narrow", "wide")
