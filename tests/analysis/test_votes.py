"""Votes counted from a frame of records, against a plain count by loops."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_rel

import unseen
from unseen.analysis import vote_table
from unseen.analysis.votes import GATINGS, SPLITS
from unseen.stats import benjamini_hochberg

EXPERIMENTS = [("mlp", None), ("mha", 1), ("mha", 2), ("rnn", None)]


def study(seed=0, digits=2, seeds=5, tasks=2):
    """Records like those of `Store.records()`: every gating, two settings, id and ood; coarse values tie."""
    numbers, rows = np.random.default_rng([9, seed]), []
    settings = ("classification", "regression")
    places = itertools.product(EXPERIMENTS, settings, (2, 8), range(tasks), GATINGS, range(seeds))
    for number, ((architecture, search), setting, rules, task_seed, gating, run) in enumerate(places):
        place = {
            "scale": "mini",
            "architecture": architecture,
            "setting": setting,
            "search": search,
            "rules": rules,
            "width": 32,
            "task_seed": task_seed,
            "gating": gating,
            "seed": run,
            "not_converged": run == 3,
            "factor": "",
            "trial": f"trial {number}",
            "status": "finished",
        }
        for split in {of[architecture] for of in SPLITS.values()}:
            for metric, selection in itertools.product(("accuracy", "loss"), ("last", "best")):
                if setting == "classification" or metric == "loss":
                    value = round(float(numbers.uniform()), digits)
                    rows.append({**place, "split": split, "metric": metric, "selection": selection, "value": value})
    # As the store gives it: numbers and None, not 1.0 and NaN.
    return pd.DataFrame(rows).assign(search=pd.Series([row["search"] for row in rows], dtype=object))


def by_hand(records, split, contest, flip=False):
    """Votes by loops over experiments: {gating: votes}, ties, experiments."""
    scores = {}
    for row in records.to_dict("records"):
        metric = {"classification": "accuracy", "regression": "loss"}[row["setting"]]
        wanted = row["metric"] == metric and row["split"] == SPLITS[split][row["architecture"]]
        if wanted and row["selection"] == "last" and row["gating"] in contest:
            place = tuple(row[name] for name in ("architecture", "setting", "search", "rules", "task_seed"))
            scores.setdefault(place, {}).setdefault(row["gating"], {})[row["seed"]] = row["value"]
    total, ties, experiments = dict.fromkeys(contest, 0.0), 0, 0
    for (architecture, setting, *_), runs in scores.items():
        shared = set.intersection(*(set(runs.get(gating, {})) for gating in contest))
        if not shared:
            continue
        means = {gating: round(sum(runs[gating][k] for k in sorted(shared)) / len(shared), 9) for gating in contest}
        high = (setting == "classification") != (flip and architecture == "rnn" and setting == "classification")
        best = (max if high else min)(means.values())
        winners = [gating for gating in contest if means[gating] == best]
        experiments, ties = experiments + 1, ties + (len(winners) > 1)
        for gating in winners:
            total[gating] += 1 / len(winners)
    return total, ties, experiments


@pytest.mark.parametrize(("seed", "digits", "seeds"), [(0, 0, 1), (1, 1, 2), (2, 1, 3), (3, 8, 3)])
def test_votes_by_hand(seed, digits, seeds):
    records = study(seed, digits, seeds)
    keep = np.random.default_rng(seed).uniform(size=len(records)) < 0.9
    for rows in (records, records[keep]):
        table = vote_table(rows)
        for split, (name, contest) in itertools.product(
            ("id", "ood"), (("all", GATINGS), ("joint against none", ("joint", "none")))
        ):
            found = table[(table["split"] == split) & (table["contest"] == name)].set_index("gating")
            total, ties, experiments = by_hand(rows, split, contest)
            assert found["votes"].to_dict() == pytest.approx(total)
            assert found["flipped"].to_dict() == pytest.approx(by_hand(rows, split, contest, flip=True)[0])
            assert set(found["ties"]) == {ties} and set(found["experiments"]) == {experiments}
            assert found["votes"].sum() == pytest.approx(experiments)


def test_what_a_whole_study_says():
    table = vote_table(study())
    assert len(table) == 2 * (4 + 2)
    assert set(table["experiments"]) == {4 * 2 * 2 * 2} and set(table["incomplete"]) == {0}
    assert set(table["runs"]) == {32 * 5} and set(table["not_converged"]) == {32}
    shares = table.groupby(["split", "contest"])[["share", "flipped_share"]].sum()
    assert shares.to_numpy() == pytest.approx(np.ones((4, 2)))
    assert table["gating"].tolist()[:6] == [*GATINGS, "joint", "none"]


def test_only_rnn_classification_is_flipped():
    """With two contestants, flipping gives these votes to the other one."""
    records = study()
    records = records[records["gating"].isin(["joint", "none"])]
    for part, other in (
        ((records["architecture"] == "rnn") & (records["setting"] == "classification"), True),
        ((records["architecture"] != "rnn") | (records["setting"] == "regression"), False),
    ):
        table = vote_table(records[part]).query("split == 'id' and contest == 'all'")
        expected = table["votes"][::-1] if other else table["votes"]
        assert table["flipped"].tolist() == pytest.approx(expected.tolist())


def test_significant_votes_by_scipy():
    """The best must beat every other; adjusted over experiments."""
    records = study(1, digits=9, seeds=6, tasks=4)
    records.loc[records["gating"] == "truth", "value"] += np.where(records["setting"] == "classification", 0.75, -0.75)[
        records["gating"] == "truth"
    ]
    table = vote_table(records).set_index(["split", "contest", "gating"])
    last = records[(records["selection"] == "last") & (records["split"] == "iid")]
    p_values, winners = [], []
    names = ["architecture", "setting", "search", "rules", "task_seed"]
    for (_, setting, *_), rows in last.groupby(names, dropna=False):
        rows = rows[rows["metric"] == ("accuracy" if setting == "classification" else "loss")]
        runs = rows.pivot(index="seed", columns="gating", values="value") * (1 if setting == "classification" else -1)
        best = runs.mean().idxmax()
        p_values.append(max(ttest_rel(runs[best], runs[other]).pvalue for other in runs if other != best))
        winners.append(best)
    clear = benjamini_hochberg(p_values) <= 0.05
    found = table.loc[("id", "all")]
    assert found["significant"].to_dict() == {
        gating: sum(won == gating and sure for won, sure in zip(winners, clear, strict=True)) for gating in GATINGS
    }
    assert 10 < found["significant"].sum() < len(p_values)
    assert set(found["undecided"]) == {int((~clear).sum())}


def test_missing_runs_are_missing():
    records = study()
    gone = (records["gating"] == "joint") & (records["architecture"] == "mlp")
    table = vote_table(records[~gone])
    assert set(table["experiments"]) == {24} and set(table["incomplete"]) == {8}
    gone = (records["gating"] == "joint") & (records["architecture"] == "mlp") & (records["seed"] > 0)
    table = vote_table(records[~gone])
    assert set(table["experiments"]) == {32} and set(table["runs"]) == {24 * 5 + 8}
    only = vote_table(records[records["gating"].isin(["truth", "none"])])
    assert only["contest"].unique().tolist() == ["all"] and only["gating"].unique().tolist() == ["truth", "none"]
    assert vote_table(records[records["split"] == "iid"])["split"].unique().tolist() == ["id"]
    assert vote_table(records[records["metric"] == "depth"]).empty
    nan = records.assign(value=records["value"].where(records["seed"] > 0))
    assert set(vote_table(nan)["runs"]) == {32 * 4}


def test_a_run_in_two_scales_counts_once():
    records = study()
    table, twice = vote_table(records), vote_table(pd.concat([records, records.assign(scale="small")]))
    pd.testing.assert_frame_equal(table, twice)


def test_factors_and_other_selections_do_not_vote():
    records = study()
    more = pd.concat([records, records.assign(factor="rule", value=0.5, trial=records["trial"] + "'")])
    pd.testing.assert_frame_equal(vote_table(more), vote_table(records))
    assert not vote_table(records, selection="best").equals(vote_table(records))


def test_other_axes_and_splits_can_be_named():
    records = study().query("architecture == 'mlp'")
    wide = pd.concat([records, records.assign(width=64, encoder="scaled", trial=records["trial"] + "'")])
    assert set(vote_table(wide)["experiments"]) == {16}
    two = pd.concat([records.assign(encoder="fixed"), records.assign(encoder="scaled", trial=records["trial"] + "'")])
    with pytest.raises(ValueError, match=r"more than one run with architecture mlp, .*gating .*seed"):
        vote_table(two)
    names = ("architecture", "setting", "rules", "task_seed", "encoder")
    assert set(vote_table(two, experiment=names)["experiments"]) == {16}
    longest = {"stretched": {"mlp": "ood/amplitude=2"}}
    assert vote_table(records, splits=longest)["split"].unique().tolist() == ["stretched"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda records: records.drop(columns=["gating", "seed"]), "missing: gating, seed"),
        (lambda records: records.assign(gating="hard"), "got 'hard'"),
        (lambda records: records.assign(setting="ranking"), "got 'ranking'"),
    ],
)
def test_wrong_records_are_answered(change, says):
    with pytest.raises(ValueError, match=says):
        vote_table(change(study()))


@pytest.mark.parametrize("preset", ["clean", "paper"])
def test_every_preset_has_votes_out_of_distribution(preset):
    """The preset `paper` reads N(0, 2 I) as a variance: its split is called amplitude=1.41421."""
    records = study()
    amplitude = unseen.task("rules/mlp", preset=preset).choices.amplitude
    renamed = records["split"].replace({name: name.replace("=2", f"={amplitude:g}") for name in SPLITS["ood"].values()})
    for architecture, split in SPLITS["ood"].items():
        name = split.replace("=2", f"={amplitude:g}")
        assert name in unseen.task(f"rules/{architecture}", preset=preset).splits
    table = vote_table(records.assign(split=renamed))
    pd.testing.assert_frame_equal(table, vote_table(records))
    assert set(table["split"]) == {"id", "ood"}
