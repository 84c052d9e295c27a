"""Comparisons of result directories: which runs are compared, by which test, to which numbers."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import false_discovery_control, ttest_1samp, ttest_ind, ttest_rel

import unseen
from support.compared import FACTS, build
from unseen.compare.compare import COLUMNS, FIRST, Comparison, compare
from unseen.compare.run_groups import RunDirectory
from unseen.errors import UsageError
from unseen.store.store import Store
from unseen.training.evaluate import Measure
from unseen.training.recipe import Evaluation

A = [0.70, 0.72, 0.69, 0.75, 0.71]
B = [0.74, 0.73, 0.75, 0.74, 0.78]
CONFIGURATIONS = [{"variant": "plain"}, {"variant": "both"}]


def compared(*paths: Path, **given: Any) -> Comparison:
    return compare([RunDirectory.read(path) for path in paths], **given)


def only(found: Comparison) -> pd.Series:
    assert len(found.table) == 1
    return found.table.iloc[0]


def said(found: Comparison) -> str:
    return "\n".join([*found.heading, *found.alarms, *found.notes])


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    return (
        build(tmp_path / "a", lambda levels, seed: A[seed]),
        build(tmp_path / "b", lambda levels, seed: B[seed], steps=500),
    )


# -- numbers ----------------------------------------------------------------------------------------------------


def test_paired_numbers_are_those_of_scipy(pair: tuple[Path, Path]) -> None:
    row = only(compared(*pair))
    gaps = np.array(B) - np.array(A)
    assert (row.mean_a, row.mean_b) == (pytest.approx(np.mean(A)), pytest.approx(np.mean(B)))
    assert row.difference == pytest.approx(gaps.mean()) and row.difference > 0
    expected = ttest_rel(B, A)
    assert row.p == row.p_adjusted == pytest.approx(expected.pvalue)
    assert [row.low, row.high] == pytest.approx(list(expected.confidence_interval(0.95)))
    assert (row.test, row.pairs, row.runs_a, row.runs_b, row.indicative) == ("paired", 5, 5, 5, True)
    assert row.covers == "initialisation and data" and row.trials == ""


def test_the_other_way_round_the_sign_turns_and_nothing_else(pair: tuple[Path, Path]) -> None:
    there, back = only(compared(*pair)), only(compared(*pair[::-1]))
    assert (back.difference, back.p) == (pytest.approx(-there.difference), there.p)
    assert [back.low, back.high] == pytest.approx([-there.high, -there.low], abs=0.002)


def test_without_a_shared_seed_it_is_welch_s_test(tmp_path: Path) -> None:
    a = build(tmp_path / "a", lambda levels, seed: A[seed])
    b = build(tmp_path / "b", lambda levels, seed: B[seed - 10], seeds=range(10, 14))
    found = compared(a, b)
    row = only(found)
    expected = ttest_ind(B[:4], A, equal_var=False)
    assert row.p == pytest.approx(expected.pvalue)
    assert row.difference == pytest.approx(np.mean(B[:4]) - np.mean(A)) and row.low < row.difference < row.high
    assert (row.test, row.pairs, row.runs_a, row.runs_b) == ("unpaired", 0, 5, 4)
    assert (
        "unpaired in 1 of 1 rows" in said(found)
        and "Welch's t test" in said(found)
        and "of the pairs" not in said(found)
    )


def test_p_values_are_adjusted_over_all_rows_and_directories(tmp_path: Path) -> None:
    configurations = [{"variant": name} for name in "wxyz"]
    shift = dict(zip("wxyz", (0.0, 0.01, 0.02, 0.03), strict=True))
    noise = np.random.default_rng(1).normal(size=8) * 0.01
    paths = [
        build(
            tmp_path / f"{k}",
            lambda levels, seed, k=k: 0.5 + k * shift[levels["variant"]] + noise[seed - k],
            configurations=configurations,
            seeds=range(8),
            steps=100 + k,
        )
        for k in range(3)
    ]
    table = compared(*paths).table
    assert table.pair.tolist() == ["B − A"] * 4 + ["C − A"] * 4 and table.p.nunique() > 3
    assert table.p_adjusted.to_numpy() == pytest.approx(false_discovery_control(table.p.to_numpy()))


@pytest.mark.parametrize("seeds", [1, 2, 3, 9, 10])
def test_few_pairs_have_no_interval_and_some_are_indicative(tmp_path: Path, seeds: int) -> None:
    a, b = (
        build(tmp_path / name, lambda levels, seed, k=k: 0.5 + 0.01 * (k + 1) * seed, seeds=range(seeds), steps=100 + k)
        for k, name in enumerate("ab")
    )
    found = compared(a, b)
    row = only(found)
    assert (math.isnan(row.low), math.isnan(row.p)) == (seeds < 3, seeds < 3)
    assert row.indicative == (3 <= seeds < 10) == any(note.startswith("* indicative") for note in found.notes)
    assert ("no interval and no test below 3 pairs" in said(found)) == (seeds < 3)


def test_runs_without_a_partner_are_left_out_of_the_means_too(tmp_path: Path) -> None:
    a = build(tmp_path / "a", lambda levels, seed: A[seed])
    b = build(tmp_path / "b", lambda levels, seed: B[seed] if seed < 5 else 9.0, seeds=range(1, 8), steps=500)
    found = compared(a, b)
    row = only(found)
    assert (row.pairs, row.runs_a, row.runs_b, row.alone_a, row.alone_b) == (4, 4, 4, 1, 3)
    assert (row.mean_a, row.mean_b) == (pytest.approx(np.mean(A[1:])), pytest.approx(np.mean(B[1:])))
    assert "runs without a partner are left out" in said(found)


def test_pairs_share_their_data_seed_as_well(tmp_path: Path) -> None:
    a = build(tmp_path / "a", lambda levels, seed: A[seed])
    b = build(tmp_path / "b", lambda levels, seed: B[seed], data_seed=0)
    assert only(compared(a, b)).pairs == 1
    row = only(compared(b, build(tmp_path / "c", lambda levels, seed: A[seed], data_seed=0, steps=500)))
    assert (row.pairs, row.covers) == (5, "initialisation, on one data set")


def test_task_seeds_are_replicates_and_count_once_each(tmp_path: Path) -> None:
    """Ten seeds on each of three tasks are three tasks."""
    configurations = [{"gating": gating, "task_seed": task} for gating in ("none", "joint") for task in range(3)]
    effects = {0: 0.1, 1: 0.2, 2: 0.6}
    a = build(tmp_path / "a", lambda levels, seed: 0.01 * seed, configurations=configurations, seeds=range(10))
    b = build(
        tmp_path / "b",
        lambda levels, seed: 0.01 * seed + effects[levels["task_seed"]],
        configurations=configurations,
        seeds=range(10),
        steps=500,
    )
    found = compared(a, b)
    assert found.table.gating.tolist() == ["none", "joint"] and "task_seed" not in found.table
    row = found.table.iloc[0]
    assert (row.pairs, row.runs_a, row.indicative) == (3, 30, True)
    expected = ttest_1samp(list(effects.values()), 0)
    assert row.p == pytest.approx(expected.pvalue)
    assert row.difference == pytest.approx(0.3)
    assert [row.low, row.high] == pytest.approx(list(expected.confidence_interval(0.95)))
    assert row.covers.startswith("task instance") and "each task counts once" in said(found)


def test_an_interval_without_width_is_no_certainty(tmp_path: Path) -> None:
    a, b = (build(tmp_path / name, lambda levels, seed: 1.0, steps=100 + k) for k, name in enumerate("ab"))
    found = compared(a, b)
    assert only(found).low == only(found).high == 0 and "which proves nothing" in said(found)


# -- which numbers ----------------------------------------------------------------------------------------------


def test_metrics_splits_and_selections(tmp_path: Path) -> None:
    more = [
        (which, Measure(split, "", "", metric, value, 0.0, 1000))
        for which in ("best", "last")
        for split in ("iid", "ood/single")
        for metric, value in (("relative_loss", 2.0), ("loss", 3.0))
    ]
    a = build(tmp_path / "a", lambda levels, seed: A[seed], extra=more, last=-0.1)
    b = build(tmp_path / "b", lambda levels, seed: B[seed], extra=more, last=-0.3, steps=500)
    found = compared(a, b)
    assert found.table[["split", "metric"]].to_numpy().tolist() == [
        ["iid", "accuracy"],
        ["ood/single", "relative_loss"],
    ]
    assert "accuracy, relative_loss of the weights that were best" in said(found) and "for a loss: worse" in said(found)
    assert only(compared(a, b, split="ood/single")).metric == "relative_loss"
    assert compared(a, b, metric="loss").table.metric.tolist() == ["loss", "loss"]
    assert only(compared(a, b, split="iid")).difference == pytest.approx(np.mean(B) - np.mean(A))
    last = compared(a, b, selection="last", split="iid")
    assert only(last).difference == pytest.approx(np.mean(B) - np.mean(A) - 0.2) and "last weights" in said(last)
    for given, message in (
        ({"metric": "los"}, "Did you mean 'loss'"),
        ({"selection": "bets"}, "Did you mean 'best'"),
        ({"split": "odd/single"}, "Did you mean 'ood/single'"),
    ):
        with pytest.raises(UsageError, match=message):
            compared(a, b, **given)


def test_a_split_of_one_side_is_said(tmp_path: Path) -> None:
    a = build(tmp_path / "a", lambda levels, seed: A[seed], splits=("iid", "ood/single"))
    b = build(tmp_path / "b", lambda levels, seed: B[seed], steps=500)
    found = compared(a, b)
    assert only(found).split == "iid" and "splits of A only: ood/single" in said(found)
    with pytest.raises(UsageError, match=r"split 'ood/single' is not in .*/b\."):
        compared(a, b, split="ood/single")


def test_partial_stores_give_what_both_have(tmp_path: Path) -> None:
    endings = {("plain", 1): "pending", ("plain", 2): "failed", ("plain", 3): "diverged"}
    a = build(
        tmp_path / "a",
        lambda levels, seed: A[seed],
        configurations=CONFIGURATIONS,
        still=lambda levels, seed: {0: True, 1: True, 4: None}.get(seed, False),
    )
    b = build(
        tmp_path / "b",
        lambda levels, seed: B[seed],
        configurations=CONFIGURATIONS,
        steps=500,
        status=lambda levels, seed: (
            endings.get((levels["variant"], seed), "finished") if levels["variant"] == "plain" else "pending"
        ),
    )
    found = compared(a, b)
    row = only(found)
    assert (row.variant, row.pairs, row.alone_a, row.lost_a, row.lost_b) == ("plain", 2, 3, 0, 2)
    assert (row.not_converged_a, row.not_converged_b) == (1, 0)
    text = said(found)
    assert f"B: {b} (made-up@1 mini; 3 of 10 runs ended" in text
    assert "left out, because they diverged, failed or have no finite number: 0 runs of A, 2 of the others" in text
    assert "2 runs of A were too short to tell" in text
    assert "1 of 2 configurations that A and B share are left out" in text


def test_numbers_that_are_not_finite_are_left_out(tmp_path: Path) -> None:
    a = build(tmp_path / "a", lambda levels, seed: A[seed])
    b = build(tmp_path / "b", lambda levels, seed: math.nan if seed == 0 else B[seed], steps=500)
    row = only(compared(a, b))
    assert (row.pairs, row.lost_b) == (4, 1) and row.mean_a == pytest.approx(np.mean(A[1:]))


def test_nothing_has_ended_yet(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    waiting = build(tmp_path / "waiting", lambda levels, seed: 0.0, status=lambda levels, seed: "pending")
    with pytest.raises(UsageError, match="waiting has nothing to compare yet: none of its 5 runs has ended"):
        compared(pair[0], waiting)
    apart = build(
        tmp_path / "apart",
        lambda levels, seed: 0.0,
        configurations=CONFIGURATIONS,
        status=lambda levels, seed: "pending" if levels["variant"] == "plain" else "finished",
    )
    other = build(
        tmp_path / "other",
        lambda levels, seed: 0.0,
        configurations=CONFIGURATIONS,
        status=lambda levels, seed: "pending" if levels["variant"] == "both" else "finished",
    )
    with pytest.raises(UsageError, match="share 2 configurations, but for none"):
        compared(apart, other)
    with pytest.raises(UsageError, match="two directories or more, got 1"):
        compared(apart)


# -- the same trials ---------------------------------------------------------------------------------------------


def test_a_copy_is_identical_and_nothing_is_tested(tmp_path: Path) -> None:
    a = build(tmp_path / "a", lambda levels, seed: A[seed], configurations=CONFIGURATIONS, splits=("iid", "ood/single"))
    found = compared(a, Path(shutil.copytree(a, tmp_path / "copy")))
    assert (found.table.trials == "identical").all() and len(found.table) == 4
    assert (found.table.difference == 0).all() and found.table[["p", "p_adjusted", "low", "high"]].isna().all(axis=None)
    assert not found.alarms and "the 10 runs that A and B both hold are identical" in said(found)


def test_one_changed_number_is_flagged_where_it_is(tmp_path: Path) -> None:
    a = build(tmp_path / "a", lambda levels, seed: A[seed], configurations=CONFIGURATIONS)
    b = build(
        tmp_path / "b",
        lambda levels, seed: A[seed] + 1e-12 * (levels["variant"] == "both" and seed == 3),
        configurations=CONFIGURATIONS,
    )
    found = compared(a, b)
    assert found.table.trials.tolist() == ["identical", "same trial, other numbers: 1 of 5"]
    assert found.table[["identical", "changed"]].to_numpy().tolist() == [[5, 0], [4, 1]]
    first, *rest = found.alarms
    assert first.startswith("SAME TRIAL, OTHER NUMBERS: 1 of the 10 runs") and "2 numbers, by up to 1e-12" in first
    changed = next(
        run.trial
        for group in RunDirectory.read(a).groups("mini", False)
        if group.levels["variant"] == "both"
        for run in group.runs
        if run.key[1] == 3
    )
    assert changed in first
    assert "A: cpu made up, torch 2.13.0, unseen 0.1.0" in rest[0] and "promise of equal bits is broken" in rest[-1]


def test_other_versions_or_machines_are_named(tmp_path: Path) -> None:
    a = build(tmp_path / "a", lambda levels, seed: A[seed])
    b = build(tmp_path / "b", lambda levels, seed: A[seed] + 1e-9, facts={**FACTS, "torch": "2.14.0", "seconds": 2.0})
    found = compared(a, b)
    assert "they were run with other torch, where numbers need only agree to rounding" in found.alarms[-1]
    assert "torch: 2.13.0 in A, 2.14.0 in B" in found.notes and "seconds" not in said(found)


@pytest.mark.parametrize("which", ["best", "last"])
def test_numbers_that_are_not_shown_are_compared_too(tmp_path: Path, which: str) -> None:
    """A level of a factor, or the last weights where the best are shown."""
    a, b = (
        build(
            tmp_path / name,
            lambda levels, seed: A[seed],
            extra=[(which, Measure("iid", "position", "3", "accuracy", value, 0.0, 10))],
        )
        for name, value in (("a", 0.5), ("b", 0.6))
    )
    found = compared(a, b)
    assert only(found).trials == "same trial, other numbers: 5 of 5" and only(found).difference == 0 and found.alarms


def test_another_ending_is_another_number(tmp_path: Path) -> None:
    a = build(tmp_path / "a", lambda levels, seed: A[seed])
    b = build(
        tmp_path / "b",
        lambda levels, seed: A[seed],
        status=lambda levels, seed: "diverged" if seed == 0 else "finished",
    )
    found = compared(a, b)
    assert found.alarms and only(found).pairs == 4 and only(found).trials == "identical"


def test_measures_that_one_release_adds_are_no_change(tmp_path: Path) -> None:
    a = build(tmp_path / "a", lambda levels, seed: A[seed])
    new = Measure("iid", "", "", "new", 1.0, 0.0, 1)
    b = build(tmp_path / "b", lambda levels, seed: A[seed], extra=[("best", new)])
    found = compared(a, b)
    assert only(found).trials == "identical" and "5 numbers of these runs are in one of A and B only" in said(found)


def test_a_trial_with_two_evaluations_is_compared_by_each(tmp_path: Path) -> None:
    """The levels differ in the evaluation alone, so that each trial has two records of the same split and metric."""
    examples = {"few": 100, "many": 5000}

    def store(name: str, few: float, many: float, added: dict[str, float]) -> Path:
        return build(
            tmp_path / name,
            lambda levels, seed: {"few": few, "many": many}[levels["tested"]] + added.get(levels["tested"], 0.0) * seed,
            configurations=[{"tested": level} for level in examples],
            seeds=range(4),
            evaluation=lambda levels: Evaluation(examples=examples[levels["tested"]]),
            learning_rate=1e-3,
        )

    a = store("a", 0.5, 0.6, {})
    found = compared(a, store("same", 0.5, 0.6, {}))
    assert found.table[["mean_a", "mean_b"]].to_numpy().tolist() == [[0.5, 0.5], [0.6, 0.6]]
    assert found.table.trials.tolist() == ["identical", "identical"] and not found.alarms
    assert "the 4 runs that A and B both hold are identical" in said(found) and "in one of A and B only" not in said(
        found
    )

    found = compared(a, store("other", 0.5, 0.6, {"many": 0.01}))
    assert found.table.difference.tolist() == pytest.approx([0.0, 0.015])
    assert "SAME TRIAL, OTHER NUMBERS: 3 of the 4 runs" in found.alarms[0]
    assert "6 numbers, by up to 0.03" in found.alarms[0]  # the best and the last weights of three seeds


def test_the_same_trials_evaluated_in_another_way_are_not_called_identical(tmp_path: Path) -> None:
    a = build(tmp_path / "a", lambda levels, seed: A[seed])
    b = build(tmp_path / "b", lambda levels, seed: B[seed], evaluation=lambda levels: Evaluation(examples=100))
    found = compared(a, b)
    row = only(found)
    assert (row.pairs, row.identical, row.changed, row.trials) == (5, 0, 0, "") and not found.alarms
    assert row.difference == pytest.approx(np.mean(B) - np.mean(A)) and row.low < row.difference < row.high
    assert "20 numbers of these runs are in one of A and B only" in said(found)


# -- which configurations -----------------------------------------------------------------------------------------------


def test_disjoint_configurations_are_an_error_that_says_what_each_holds(tmp_path: Path) -> None:
    a = build(tmp_path / "a", lambda levels, seed: 0.0, configurations=[{"variant": "plain"}], study="one@1")
    b = build(tmp_path / "b", lambda levels, seed: 0.0, configurations=[{"variant": "<b>|\n"}], study="two@3")
    with pytest.raises(UsageError) as error:
        compared(a, b)
    for part in (
        "no configuration is in both",
        f"{a} holds one@1 at mini: task retrieval/T6; model lstm; variant plain",
        f"{b} holds two@3",
    ):
        assert part in str(error.value)


def test_different_studies_meet_on_the_axes_they_share(tmp_path: Path) -> None:
    """An axis of one directory only makes rows of its own."""
    a = build(
        tmp_path / "a",
        lambda levels, seed: A[seed],
        study="one@1",
        configurations=[{"variant": v, "width": w} for v in ("plain", "both") for w in (8, 16)],
    )
    b = build(
        tmp_path / "b",
        lambda levels, seed: B[seed],
        study="two@1",
        configurations=[{"depth": d, "variant": v} for d in (1, 2) for v in ("both", "other")],
    )
    found = compared(a, b)
    assert found.table[["variant", "width", "depth"]].to_numpy().tolist() == [
        ["both", 8, 1],
        ["both", 8, 2],
        ["both", 16, 1],
        ["both", 16, 2],
    ]
    assert found.axes == ("task", "model", "variant", "width", "depth")
    assert "2 of 4 configurations are in A only: variant plain · width 8" in said(found)
    assert "2 of 4 configurations are in B only: depth 1 · variant other" in said(found)


def test_levels_keep_their_types_and_absent_ones_match_absent_ones(tmp_path: Path) -> None:
    here: list[dict[str, Any]] = [{"k": 1}, {"k": True}, {"k": "1"}, {"k": 2, "search": 1}, {"k": 3}]
    there: list[dict[str, Any]] = [{"k": 1.0}, {"k": 2, "search": 1}, {"k": 3, "search": 1}]
    a = build(tmp_path / "a", lambda levels, seed: A[seed], configurations=here)
    b = build(tmp_path / "b", lambda levels, seed: B[seed], configurations=there, steps=500)
    found = compared(a, b).table
    assert found.k.tolist() == [1, 2] and found.search.tolist() == [None, 1]
    assert [type(level) for level in found.k] == [int, int]


def test_axes_may_be_called_like_columns_of_the_comparison(tmp_path: Path) -> None:
    names = [*FIRST, *(name for name in COLUMNS if name not in ("split", "metric"))]
    configurations = [dict.fromkeys(names, level) for level in ("x", "y")]
    a = build(tmp_path / "a", lambda levels, seed: A[seed], configurations=configurations)
    b = build(tmp_path / "b", lambda levels, seed: B[seed], configurations=configurations, steps=500)
    table = compared(a, b).table
    assert table.columns.is_unique and table["difference (axis)"].tolist() == ["x", "y"]
    assert table.difference.to_numpy() == pytest.approx(np.mean(B) - np.mean(A))


def test_scales_that_both_have_or_else_the_largest(tmp_path: Path) -> None:
    mini = build(tmp_path / "mini", lambda levels, seed: A[seed])
    full = build(tmp_path / "full", lambda levels, seed: B[seed], scale="full", steps=500)
    both = build(Path(shutil.copytree(mini, tmp_path / "both")), lambda levels, seed: B[seed], scale="full", steps=500)
    across = only(compared(mini, full))
    assert (across.scale_a, across.scale_b, across.pairs, across.trials) == ("mini", "full", 5, "")
    assert only(compared(both, mini)).scale_a == "mini" and only(compared(both, mini)).trials == "identical"
    assert compared(both, both).table.scale_b.tolist() == ["mini", "full"]


def test_one_model_each_are_compared_with_each_other(tmp_path: Path) -> None:
    a = build(tmp_path / "a", lambda levels, seed: A[seed], configurations=[{"model": "lstm"}])
    b = build(tmp_path / "b", lambda levels, seed: B[seed], configurations=[{"model": "transformer"}])
    found = compared(a, b)
    assert only(found).model == "lstm | transformer" and "model: lstm in A, transformer in B" in found.notes
    two = build(
        tmp_path / "two",
        lambda levels, seed: B[seed],
        configurations=[{"model": "transformer"}, {"model": "retrieval-transformer"}],
    )
    with pytest.raises(UsageError, match="no configuration is in both"):
        compared(a, two)


def test_deviations_say_which_options_differ_and_where(tmp_path: Path) -> None:
    a = build(tmp_path / "a", lambda levels, seed: A[seed], configurations=CONFIGURATIONS)
    b = build(tmp_path / "b", lambda levels, seed: B[seed], configurations=CONFIGURATIONS, steps=500, batch=20)
    notes = compared(a, b).notes
    assert "recipe steps: the default in A, 500 in B" in notes and "recipe batch: the default in A, 20 in B" in notes
    assert not any("learning_rate" in note for note in notes)
    # One configuration of two: made by hand, because configurations share their recipe here.
    directory = RunDirectory.read(b)
    works = {
        key: {**work, "task": {**work["task"], "length": 7}} if "both" in key[1] else work
        for key, work in directory.works.items()
    }
    changed = compare(
        [
            RunDirectory.read(a),
            RunDirectory(
                directory.name, directory.work, works, directory.entries, directory.records, directory.provenance
            ),
        ]
    )
    assert "task length: 5 in A, 7 in B (1 of 2 configurations: variant both · retrieval/T6 · lstm)" in changed.notes


def test_three_directories_are_each_compared_with_the_first(tmp_path: Path) -> None:
    paths = [build(tmp_path / f"{k}", lambda levels, seed, k=k: 0.1 * k + A[seed], steps=100 + k) for k in range(3)]
    found = compared(*paths)
    assert found.table.difference.tolist() == pytest.approx([0.1, 0.2])
    assert found.table.b.tolist() == [str(paths[1]), str(paths[2])] and set(found.table.a) == {str(paths[0])}
    assert [line[:2] for line in found.heading] == ["A:", "B:", "C:"]
    assert "recipe steps: 100 in A, 102 in C" in found.notes


def test_from_python(pair: tuple[Path, Path]) -> None:
    table = unseen.compare(*pair, split="iid")
    assert list(table.columns) == [*FIRST, "task", "model", *COLUMNS]
    assert table.difference[0] == pytest.approx(np.mean(B) - np.mean(A))
    assert any("recipe steps" in note for note in table.attrs["notes"])
    with pytest.raises(UsageError, match="two directories"):
        unseen.compare(pair[0])


def test_by_default_the_weights_are_those_that_the_studies_show(tmp_path: Path) -> None:
    facts = {"question": "", "axes": [], "claims": [], "notes": [], "scales": {}}
    paths = [build(tmp_path / name, lambda levels, seed: A[seed]) for name in "ab"]
    for path in paths:
        with Store.write(path) as store:
            store.describe({**facts, "selection": "last"})
    last = compared(*paths)
    assert last.selection == "last" and "of the last weights" in said(last)
    assert compared(*paths, selection="best").selection == "best"
    with Store.write(paths[0]) as store:
        store.describe({**facts, "selection": "best"})
    assert compared(*paths).selection == "best", "where they do not agree"
