"""Verdicts of several directories: which count, how they deviate, the page of all claims, and what would run one."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pandas as pd
import pytest
import yaml

from support import claim_ctl_cases, claim_retrieval_cases
from unseen.claims import CLAIMS, judge_studies
from unseen.claims.claim import JudgedClaim
from unseen.claims.criterion import Verdict
from unseen.claims.judge_studies import JudgedStore, keep_home_verdicts
from unseen.claims.page import format_page, pair_claims
from unseen.claims.planned import scale_for
from unseen.claims.render import describe_command
from unseen.studies.study import study


@cache
def verdict(name: str, outcome: Verdict = "supported") -> JudgedClaim:
    cases = claim_ctl_cases if name.startswith("ctl/") else claim_retrieval_cases
    found: JudgedClaim = getattr(cases, outcome.upper())[name]()
    return found


def not_run(name: str, scale: str = "mini") -> JudgedClaim:
    return JudgedClaim(CLAIMS.load(name), "not run", scale, "", (), "nothing there")


def directory(name: str, *verdicts: JudgedClaim) -> JudgedStore:
    return JudgedStore(f"runs/{name}", f"{name}@1", verdicts, {"mini": ["five seeds"]})


TABLE2 = directory(
    "retrieval-table2",
    verdict("retrieval/C1"),
    verdict("retrieval/C3", "contradicted"),
    not_run("retrieval/C4"),
    not_run("retrieval/C10"),
)
LENGTHS = directory(
    "retrieval-lengths",
    verdict("retrieval/C1", "contradicted"),
    verdict("retrieval/C4"),
    verdict("retrieval/C10", "undecided"),
)
QUICK = directory("quickstart", verdict("retrieval/C1", "contradicted"), verdict("retrieval/C10"))


def verdicts_by_claim(found: list[JudgedStore]) -> list[dict[str, str]]:
    return [{verdict.claim.name.partition("/")[2]: verdict.verdict for verdict in one.verdicts} for one in found]


def test_each_claim_is_judged_where_its_study_was_run() -> None:
    assert verdicts_by_claim(keep_home_verdicts([TABLE2, LENGTHS, QUICK])) == [
        {"C1": "supported", "C3": "contradicted", "C4": "not run"},
        {"C10": "undecided"},
        {},
    ]
    assert verdicts_by_claim(keep_home_verdicts([QUICK, LENGTHS])) == [
        {"C1": "contradicted"},
        {"C1": "contradicted", "C4": "supported", "C10": "undecided"},
    ]
    assert verdicts_by_claim(keep_home_verdicts([TABLE2, directory("ctl-table1")]))[0]["C10"] == "not run"
    assert keep_home_verdicts([LENGTHS]) == [LENGTHS]


def test_the_page_has_every_claim_its_verdict_and_what_would_run_the_rest() -> None:
    page = format_page(
        keep_home_verdicts([TABLE2, LENGTHS, directory("ctl-table1", verdict("ctl/K3"))]),
        lambda study, scale: f"results/{study}.md" if study == "ctl-table1" else "",
    )
    lines = page.splitlines()
    columns = "contradicted | mixed | supported | not reached | undecided | not run"
    assert lines[:2] == [f"| paper | runs | {columns} |", "|---|---|---|---|---|---|---|---|"]
    assert lines[2].startswith("| [Sorodoc, Boleda & Baroni 2021](#sorodoc-boleda--baroni-2021): `retrieval` |")
    assert lines[2].endswith("| exploratory | 1: C3 | 0 | 1: C1 | 0 | 1 | 15 |")
    assert not any("runs/" in line for line in lines), "directories are nobody else's business"
    for entry in CLAIMS:
        assert sum(line.startswith(f"| `{entry.name}`") for line in lines) == 1, entry.name
    row = {
        name: next(line for line in lines if line.startswith(f"| `{name}`"))
        for name in (
            "retrieval/C1",
            "retrieval/C3",
            "retrieval/C4",
            "retrieval/C10",
            "retrieval/noise",
            "ctl/K3",
            "gcog/pool",
        )
    }
    assert "**supported** (exploratory), 6 of 6 criteria run, 6 hold |" in row["retrieval/C1"]
    assert "**contradicted** (exploratory), 8 of 8 criteria run, 6 hold" in row["retrieval/C3"]
    assert lines.index(row["retrieval/C3"]) < lines.index(row["retrieval/C1"]), "what is contradicted comes first"
    assert lines[lines.index(row["retrieval/C3"]) - 4] == "Judged from retrieval-table2, mini; length 10:"
    assert "nothing there | `unseen run retrieval-table2 --scale small --out DIR`" in row["retrieval/C4"]
    assert "at least 3 seeds (has 2)" in row["retrieval/C10"].rsplit("|", 2)[1]
    assert "(ours)" in row["retrieval/noise"] and "retrieval-noise was not run" in row["retrieval/noise"]
    assert lines[lines.index(row["ctl/K3"]) - 4].startswith("Judged from [ctl-table1, full](results/ctl-table1.md);")
    assert "gcog-pool was not run | `unseen run gcog-pool --scale mini --out DIR`" in row["gcog/pool"]
    assert [line for line in lines if line.startswith("## ")] == [
        "## Sorodoc, Boleda & Baroni 2021",
        "## Mittal, Bengio & Lajoie 2022",
        "## Csordás, Irie & Schmidhuber 2022",
        "## Ito et al. 2024",
        "## What was run",
    ]
    assert "<summary>Deviations from the paper: 1</summary>" in lines and "* five seeds" in lines
    assert len(pair_claims([])) == len(list(CLAIMS))


def entries(name: str, scale: str, seeds: list[int] | None = None) -> pd.DataFrame:
    found = study(name).entries(scale, seeds)
    return pd.DataFrame({"trial": [one.trial.id for one in found], "seed": [one.trial.seed for one in found]})


def test_deviations_are_told_of_what_the_catalogue_knows_alone() -> None:
    known = judge_studies._find_deviations("ctl-lengths@2", "mini", entries("ctl-lengths", "mini").iloc[:4])
    assert known == study("ctl-lengths").deviations("mini")
    more = judge_studies._find_deviations("ctl-lengths@2", "mini", entries("ctl-lengths", "mini", [*range(7)]))
    assert any(text.startswith("7 seeds") for text in more)
    strange = pd.DataFrame({"trial": ["0" * 16], "seed": [0]})
    assert judge_studies._find_deviations("ctl-lengths@2", "mini", strange) == [
        "not known: some of these runs are not, or no longer, of ctl-lengths@2 at scale mini"
    ]
    assert judge_studies._find_deviations("mine@1", "mini", strange) == ["not known: mine@1 is not in the catalogue"]


@pytest.mark.parametrize(
    ("name", "tried", "scale"),
    [
        ("ctl/lengths", (), "mini"),
        ("ctl/K5", (), "mini"),  # all its headline criteria; only details need `medium`
        ("ctl/table1", ("mini",), "medium"),
        ("gcog/layers-productivity", (), "mini"),
        ("gcog/distractors", (), "mini"),
        ("retrieval/C4", (), "small"),
        ("retrieval/table2", ("small",), "medium"),
        ("retrieval/noise", ("mini", "small", "medium", "full"), ""),
    ],
)
def test_the_scale_that_would_run_a_claim(name: str, tried: tuple[str, ...], scale: str) -> None:
    claim = CLAIMS.load(name)
    assert scale_for(claim, tried) == scale
    command = describe_command(claim, tried)
    if scale:
        assert command.startswith(f"`unseen run {claim.study} --scale {scale} --out DIR`, ")
        assert command.endswith(" core-hours")
    else:
        assert command == "no scale of its study has it"


def test_untested_statements_name_claims_that_exist() -> None:
    page = Path(__file__).parents[2] / "docs" / "untested_statements.yaml"
    names = {entry.name for entry in CLAIMS}
    untested = yaml.safe_load(page.read_text(encoding="utf-8"))
    assert set(untested) == {name.partition("/")[0] for name in names}
    for entries in untested.values():
        for entry in entries:
            assert set(entry) == {"source", "statement", "why"}
            mentioned = {word.strip("`;,.") for word in entry["why"].split() if word.startswith("`") and "/" in word}
            assert mentioned <= names
