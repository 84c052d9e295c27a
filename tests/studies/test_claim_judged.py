"""Verdicts of several directories: which count, how they deviate, the page of all claims, what would run one."""

from __future__ import annotations

from functools import cache

import claim_ctl_cases
import claim_retrieval_cases
import pandas as pd
import pytest

from unseen.studies.claims import CLAIMS, ledger
from unseen.studies.claims.claim import Verdict
from unseen.studies.claims.judged import Judged, _deviations, own
from unseen.studies.claims.page import as_page, every_claim
from unseen.studies.claims.part import Finding
from unseen.studies.claims.planned import command, scale_for
from unseen.studies.claims.untested import UNTESTED
from unseen.studies.study import study


@cache
def verdict(name: str, word: str = "supported") -> Verdict:
    cases = claim_ctl_cases if name.startswith("ctl/") else claim_retrieval_cases
    found: Verdict = getattr(cases, word.upper())[name]()
    return found


def not_run(name: str, scale: str = "mini") -> Verdict:
    return Verdict(CLAIMS.load(name), "not run", scale, "", (), "nothing there")


def directory(name: str, *verdicts: Verdict) -> Judged:
    return Judged(f"runs/{name}", f"{name}@1", verdicts, {"mini": ["five seeds"]})


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


def words(found: list[Judged]) -> list[dict[str, str]]:
    return [{verdict.claim.name.partition("/")[2]: verdict.word for verdict in one.verdicts} for one in found]


def test_each_claim_is_judged_where_its_study_was_run() -> None:
    assert words(own([TABLE2, LENGTHS, QUICK])) == [
        {"C1": "supported", "C3": "contradicted", "C4": "not run"},
        {"C10": "undecided"},
        {},
    ]
    assert words(own([QUICK, LENGTHS])) == [
        {"C1": "contradicted"},
        {"C1": "contradicted", "C4": "supported", "C10": "undecided"},
    ]
    assert words(own([TABLE2, directory("ctl-table1")]))[0]["C10"] == "not run"
    assert own([LENGTHS]) == [LENGTHS]


def test_the_page_has_every_claim_its_verdict_and_what_would_run_the_rest() -> None:
    page = as_page(
        own([TABLE2, LENGTHS, directory("ctl-table1", verdict("ctl/K3"))]),
        lambda study, scale: f"results/{study}.md" if study == "ctl-table1" else "",
    )
    lines = page.splitlines()
    assert lines[:2] == ["| paper | contradicted | supported | undecided | not run |", "|---|---|---|---|---|"]
    assert lines[2].startswith("| [Sorodoc, Boleda & Baroni 2021](#sorodoc-boleda--baroni-2021): `retrieval` |")
    assert lines[2].endswith("| 1: C3 | 1: C1 | 1 | 15 |")
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
    assert "both components help | **supported**, 6 of 6 parts |" in row["retrieval/C1"]
    assert "**contradicted**, 2 of 8 parts" in row["retrieval/C3"]
    assert lines.index(row["retrieval/C3"]) < lines.index(row["retrieval/C1"]), "what is contradicted comes first"
    assert lines[lines.index(row["retrieval/C3"]) - 4] == "Judged from retrieval-table2, mini; length 10:"
    assert "nothing there | `unseen run retrieval-table2 --scale small --out DIR`" in row["retrieval/C4"]
    assert "2 usable seeds, 3 are the least" in row["retrieval/C10"].rsplit("|", 2)[1]
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
    assert len(every_claim([])) == len(list(CLAIMS))


@pytest.mark.parametrize(
    ("opens", "said"),
    [
        (
            [
                "about 20 tasks would settle it",
                "about 90 tasks would settle it: one of 8 parts may lie outside by chance",
            ],
            "about 90 tasks",
        ),
        (["about 58522 tasks would settle it", "T2 not run"], "more than 1000 tasks: next to the bound; T2 not run"),
        (
            [
                "more steps would settle it: 1 usable seed, 3 are the least (A on T1: 4 of 5 still learning)",
                "more steps would settle it: 2 usable seeds, 3 are the least (A on T1: 3 of 5 still learning)",
                "more seeds would settle it",
            ],
            "more steps: too many runs were still learning; more seeds",
        ),
        ([f"{name} not run" for name in "abcdef"], "a not run; b not run; c not run; d not run; and 2 more"),
    ],
)
def test_what_would_settle_a_claim_in_few_words(opens: list[str], said: str) -> None:
    claim = CLAIMS.load("retrieval/C1")
    findings = tuple(Finding(claim.parts[0], "undecided", open=text) for text in opens)
    assert ledger.settled_by(Verdict(claim, "undecided", "mini", "", findings)) == said
    assert ledger.settled_by(Verdict(claim, "contradicted", "mini", "", findings)) == ""


def entries(name: str, scale: str, seeds: list[int] | None = None) -> pd.DataFrame:
    found = study(name).entries(scale, seeds)
    return pd.DataFrame({"cell": [one.cell.id for one in found], "seed": [one.cell.seed for one in found]})


def test_deviations_are_told_of_what_the_catalogue_knows_alone() -> None:
    known = _deviations("ctl-lengths@1", "mini", entries("ctl-lengths", "mini").iloc[:4])
    assert known == study("ctl-lengths").deviations("mini")
    more = _deviations("ctl-lengths@1", "mini", entries("ctl-lengths", "mini", [*range(7)]))
    assert any(text.startswith("7 seeds") for text in more)
    strange = pd.DataFrame({"cell": ["0" * 16], "seed": [0]})
    assert _deviations("ctl-lengths@1", "mini", strange) == [
        "not known: some of these runs are not, or no longer, of ctl-lengths@1 at scale mini"
    ]
    assert _deviations("mine@1", "mini", strange) == ["not known: mine@1 is not in the catalogue"]


@pytest.mark.parametrize(
    ("name", "tried", "scale"),
    [
        ("ctl/lengths", (), "mini"),
        ("ctl/K5", (), "medium"),
        ("ctl/table1", ("mini",), "medium"),
        ("gcog/layers-productivity", (), "medium"),
        ("retrieval/C4", (), "small"),
        ("retrieval/table2", ("small",), "medium"),
        ("retrieval/noise", ("mini", "small", "medium", "full"), ""),
    ],
)
def test_the_scale_that_would_run_a_claim(name: str, tried: tuple[str, ...], scale: str) -> None:
    claim = CLAIMS.load(name)
    assert scale_for(claim, tried) == scale
    assert command(claim, tried) == (f"unseen run {claim.study} --scale {scale} --out DIR" if scale else "")


def test_what_is_no_claim_names_claims_and_papers_that_exist() -> None:
    papers = {CLAIMS.load(entry.name).paper for entry in CLAIMS}
    names = {entry.name for entry in CLAIMS}
    for one in UNTESTED:
        assert one.paper in papers
        said = [word.strip("`;,.") for word in one.why.split() if word.startswith("`") and "/" in word]
        assert set(said) <= names, said
