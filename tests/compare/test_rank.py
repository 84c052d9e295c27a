"""The leaderboard: groups against tests made one by one, rules for choosing weights, and every format."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm, ttest_ind
from typer.testing import CliRunner

from support.compared import build
from unseen.cli.main import app
from unseen.compare.rank import COLUMNS, build_leaderboard
from unseen.errors import UsageError
from unseen.stats.ranking import Relation, rank, relate, smallest_difference

SCORES = {
    "lstm": [0.90, 0.91, 0.92, 0.90, 0.93],
    "gru": [0.89, 0.93, 0.90, 0.91, 0.90],
    "rnn": [0.60, 0.62, 0.65, 0.61, 0.58],
}


def board_of(directory: Path) -> list[Path]:
    """A store for each model."""
    paths = []
    for model, values in SCORES.items():
        paths.append(
            build(
                directory / model,
                lambda levels, seed, values=values: values[seed],
                configurations=[{"model": model}],
                last=-0.05,
                learning_rate=1e-3,
            )
        )
    return paths


def test_relations_are_those_of_welch_with_holm() -> None:
    pairs = [("lstm", "gru"), ("lstm", "rnn"), ("rnn", "gru")]
    p_values = [ttest_ind(SCORES[a], SCORES[b], equal_var=False).pvalue for a, b in pairs]
    # By hand: sorted p times 3, 2, 1 and never falling.
    order = sorted(range(3), key=lambda i: p_values[i])
    adjusted, largest = {}, 0.0
    for rank_number, i in enumerate(order):
        largest = max(largest, min(1.0, (3 - rank_number) * p_values[i]))
        adjusted[i] = largest
    expected = ["level with" if adjusted[i] >= 0.05 else "above" if i == 1 else "below" for i in range(3)]
    assert (
        [relation.value for relation in relate(SCORES, pairs).values()] == expected == ["level with", "above", "below"]
    )


def test_groups_begin_with_the_best_and_too_few_runs_are_in_none() -> None:
    standings = rank({**SCORES, "new": [0.99, 0.99]})
    assert {name: standing.group for name, standing in standings.items()} == {
        "lstm": 1,
        "gru": 1,
        "rnn": 2,
        "new": None,
    }
    assert standings["lstm"].above == ("rnn",) and standings["lstm"].level == ("gru",)
    assert standings["rnn"].below == ("lstm", "gru")
    assert relate({"a": [1.0] * 3, "b": [0.5] * 3}, [("a", "b")])["a", "b"] is Relation.ABOVE
    assert relate({"a": [1.0] * 3, "b": [1.0] * 3}, [("a", "b")])["a", "b"] is Relation.LEVEL


@pytest.mark.parametrize(("seeds", "share"), [(3, 0.8), (5, 0.8), (10, 0.9)])
def test_the_smallest_difference_is_shown_as_often_as_it_says(seeds: int, share: float) -> None:
    difference = smallest_difference(seeds, spread=0.5, power=share)
    random = np.random.default_rng(0)
    first = random.normal(difference, 0.5, (20_000, seeds))
    second = random.normal(0.0, 0.5, (20_000, seeds))
    shown = (ttest_ind(first, second, axis=1).pvalue < 0.05).mean()
    assert shown == pytest.approx(share, abs=0.012)


def test_few_seeds_show_nothing_and_many_what_the_normal_distribution_says() -> None:
    assert smallest_difference(2) == float("inf")
    many = (norm.ppf(0.975) + norm.ppf(0.8)) * (2 / 5000) ** 0.5
    assert smallest_difference(5000) == pytest.approx(many, rel=1e-3)
    with pytest.raises(UsageError, match="power lies between 0 and 1"):
        smallest_difference(5, power=1.0)


def test_a_leaderboard_of_several_stores(tmp_path: Path) -> None:
    paths = board_of(tmp_path)
    table = build_leaderboard([*paths, paths[0]]).table  # the same runs twice count once
    assert tuple(table.columns) == COLUMNS
    best = table[table["weights"] == "best"]
    assert best["model"].tolist() == ["lstm", "gru", "rnn"] and best["group"].tolist() == [1, 1, 2]
    assert best["runs"].tolist() == [5, 5, 5] and best["above"].tolist() == [1, 1, 0]
    assert best["mean"].iloc[0] == pytest.approx(0.912)
    last = table[table["weights"] == "last"].set_index("model")
    assert last.loc["lstm", "mean"] == pytest.approx(0.862)
    pooled = (sum(sum((x - sum(v) / 5) ** 2 for x in v) for v in SCORES.values()) / 12) ** 0.5
    assert best["smallest_difference"].iloc[0] == pytest.approx(smallest_difference(5, spread=pooled))


def test_an_interval_of_accuracies_stays_between_0_and_1(tmp_path: Path) -> None:
    values = [1.0, 1.0, 0.9, 1.0, 1.0]
    path = build(tmp_path / "a", lambda levels, seed: values[seed], configurations=[{"model": "lstm"}], last=0.0)
    table = build_leaderboard([path]).table
    assert (table["high"] == 1).all() and (table["low"] < table["mean"]).all()


@pytest.mark.parametrize("format", ["table", "markdown", "latex", "csv", "json"])
def test_every_format_has_every_model(format: str, tmp_path: Path) -> None:
    arguments = ["compare", "--rank", *map(str, board_of(tmp_path)), "--format", format]
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    assert all(model in done.stdout for model in SCORES) and "oracle" not in done.stdout.partition("weights:")[0]
    if format == "json":
        rows = json.loads(done.stdout)["rows"]
        assert [row["group"] for row in rows if row["weights"] == "best"] == [1, 1, 2]
    elif format != "csv":
        assert "Holm over all pairs" in done.stdout


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--selection", "last"], "leave --selection out"),
        (["--split", "ood/none"], "split 'ood/none' is in none of these"),
        (["--metric", "acuracy"], "Did you mean 'accuracy'?"),
    ],
)
def test_wrong_requests_are_refused(more: list[str], message: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["compare", "--rank", *map(str, board_of(tmp_path)), *more])
    assert result.exception is not None and message in str(result.exception)
