"""The studies of tracking, recall and finite data run to their end at scale `smoke`, and show what they promise."""

from __future__ import annotations

from pathlib import Path

import pytest

import unseen
from unseen.claims.user_claims import check_study_claims
from unseen.compare.rank import build_leaderboard
from unseen.models.matching import count_state
from unseen.report.data import Source
from unseen.report.figures import figure
from unseen.store.store import Store
from unseen.studies.catalog.tracking import MODELS
from unseen.studies.study import study


def _check_oracle(directory: Path) -> None:
    """The leaderboard's oracle is the best point of the curve of the very split."""
    table = build_leaderboard([directory], split="ood/single").table
    with Store.read(directory) as store:
        points = store.points()
    curve = points[(points["split"] == "ood/single") & (points["metric"] == "accuracy")]
    best = curve.groupby("trial")["value"].max()
    oracle = table[table["weights"] == "oracle"]
    assert sorted(oracle["mean"]) == pytest.approx(sorted(best))
    assert set(table["weights"]) == {"last", "best", "oracle"} and oracle["group"].isna().all()


FIGURES = {"state-tracking": "groups/prefixes", "recall": "recall/states"}


def _check_figure(name: str, directory: Path) -> None:
    source = Source.read(directory)
    drawing = figure(FIGURES[name]).draw(source)
    assert drawing is not None and drawing.chart.to_dict()
    runs = drawing.data[drawing.data["what"] == "run"]
    records = source.records[(source.records["selection"] == "best") & (source.records["metric"] == "accuracy")]
    if name == "recall":
        expected = {
            (e.levels["backbone"], count_state(e.trial.model, e.trial.task.spec))
            for e in study(name).entries("smoke", seeds=[0])
        }
        assert set(zip(runs["backbone"], runs["state"], strict=True)) == expected
        assert len(runs) == (records["factor"] == "").sum()
    else:
        assert set(runs["tokens"]) == {6, 12, 16} and set(runs["backbone"]) == set(MODELS)
        by_prefix = records[(records["factor"] == "prefix") & (records["split"] == "ood/longest")]
        assert sorted(runs["value"]) == sorted(by_prefix["value"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "splits"),
    [
        ("state-tracking", ["iid", "ood/longest", "ood/twice"]),
        ("recall", None),
        ("rules-data", None),
        ("retrieval-scale", None),
    ],
)
def test_smoke_runs_and_reports(name: str, splits: list[str] | None, tmp_path: Path) -> None:
    unseen.run(name, tmp_path / "runs", scale="smoke", executor="inline")
    records = unseen.results(tmp_path / "runs")
    table = records.query("metric == 'accuracy' and factor == ''")
    assert splits is None or sorted(table["split"].unique()) == splits
    assert (table["value"].between(0, 1)).all()
    if splits:
        assert set(records.query("factor == 'prefix'")["level"]) == {"01-06", "07-12", "13-16"}
    if name == "retrieval-scale":
        _check_oracle(tmp_path / "runs")
    if name in FIGURES:
        _check_figure(name, tmp_path / "runs")
    page = tmp_path / "report.html"
    unseen.report(tmp_path / "runs", out=page)
    assert study(name).question in page.read_text()


def test_recall_has_states_too_small_and_large_enough_for_all_pairs() -> None:
    """A pair is at least a key's and a value's number of bits; the smallest matrix has hardly more numbers than pairs."""
    sizes = {
        (entry.levels["backbone"], entry.levels["width"]): count_state(entry.trial.model, entry.trial.task.spec)
        for entry in study("recall").entries("mini", seeds=[0])
    }
    assert sizes["deltanet", 8] == sizes["gla", 8] == 2 * (2 * 4 * 4 + 3 * 8)
    assert sizes["deltanet", 64] > 50 * sizes["deltanet", 8] / 2
    assert sizes["lstm", 8] == 32


@pytest.mark.parametrize(("name", "claims"), [("state-tracking", 3), ("recall", 2), ("retrieval-scale", 3)])
def test_what_is_expected_is_stated_in_advance_about_runs_of_mini(name: str, claims: int) -> None:
    entries = study(name).entries("mini")
    stated = check_study_claims(study(name), sorted(set().union(*(entry.levels for entry in entries))))
    assert len(stated) == claims
    for claim in stated:
        for group in [group for criterion in claim.criteria for group in criterion.quantity.groups]:
            levels = {key: values for key, values in group.columns.items() if "." not in key}
            matching = [e for e in entries if all(e.levels.get(axis) in values for axis, values in levels.items())]
            assert matching and all(claim.split in entry.trial.task.splits for entry in matching)
