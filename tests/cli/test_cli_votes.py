"""`unseen results --votes`: which gating is the best in how many experiments, from small real stores."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import unseen
from support.claim_router_cases import ROUTED
from unseen.analysis import vote_table
from unseen.claims import CLAIMS
from unseen.cli.main import app
from unseen.errors import UsageError
from unseen.studies.catalog.rules import grid
from unseen.studies.grid import Grid
from unseen.studies.study import Study

QUICK = {
    "recipe": {"steps": 8, "validate_every": 1, "batch": 8, "validation_examples": 32, "learning_rate": 1e-3},
    "evaluation": {"examples": 64, "activation_examples": 64, "adaptation_examples": 8},
}
SIZES = {"smoke": (2,), "mini": (2, 4)}


def small(scale: str) -> list[Grid]:
    return [grid("mlp", rules=SIZES[scale], widths=(8,), task_seeds=range(3), seeds=(0,), **QUICK)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two scales of three tasks that nobody has learned."""
    out = tmp_path_factory.mktemp("votes") / "store"
    study = Study("rules-main", 1, "Does the command work?", dict.fromkeys(SIZES), small)
    for scale in SIZES:
        unseen.run(study, out, scale=scale, executor="inline", progress="none")
    return out


def run(*arguments: object) -> str:
    done = CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_the_votes_of_every_scale(store: Path, tmp_path: Path) -> None:
    found = json.loads(run("results", store, "--votes", "--format", "json"))
    records = unseen.results(store)
    for scale, rules in SIZES.items():
        mine = [{k: v for k, v in row.items() if k != "scale"} for row in found if row["scale"] == scale]
        assert mine == vote_table(records[records.scale == scale]).to_dict("records")
        assert len(mine) == 2 * (4 + 2) and {row["experiments"] for row in mine} == {2 * len(rules) * 3}
        won = sum(row["votes"] for row in mine if (row["split"], row["contest"]) == ("id", "all"))
        assert won == pytest.approx(2 * len(rules) * 3)
    assert "joint against none" in run("results", store, "--votes")
    run("results", store, "--votes", "--format", "csv", "--out", tmp_path / "votes.csv")
    assert (tmp_path / "votes.csv").read_text().startswith("scale,split,contest,gating,votes,share,")


def test_votes_need_gatings(store: Path, tmp_path: Path) -> None:
    made = unseen.task("retrieval/T1", length=3, train_size=50, evaluation_size=50)
    unseen.train(made, "retrieval-transformer", seeds=1, steps=2, batch=10, out=tmp_path / "t1", progress="none")
    for arguments, said in (
        ([tmp_path / "t1", "--votes"], "a single train has no axis gating"),
        ([store, "--votes", "--curves"], "give one of them"),
    ):
        done = CliRunner().invoke(app, ["results", *map(str, arguments)])
        assert isinstance(done.exception, UsageError) and said in str(done.exception)


def test_claims_are_judged_from_a_store(store: Path) -> None:
    found = json.loads(run("claims", store, "--format", "json"))["verdicts"]
    about_these = {entry.name for entry in CLAIMS if entry.name.startswith("rules/")} - set(ROUTED)
    judged = {(one["claim"], one["scale"]): one for one in found if one["claim"] in about_these}
    assert len(judged) == len(SIZES) * len(about_these)
    assert judged["rules/F7", "mini"]["setting"] == "mlp: 2, 4 rules; width 8"
    # The curves were read: what is open, if anything, are runs that have not converged or tasks that disagree.
    criteria = judged["rules/F7", "mini"]["criteria"]
    assert criteria and not any(
        "in these runs" in (criterion["waiting"] or {"text": ""})["text"] for criterion in criteria
    )
    assert {criterion["verdict"] for criterion in judged["rules/votes", "mini"]["criteria"]} == {"not run"}
