"""`unseen claims` without a directory: the records that come with the package, on one screen; records files; prices."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import unseen
from support.store_builder import Key, Levels, build
from unseen.claims import CLAIMS, judge_studies, page, registration
from unseen.claims.claim import JudgedClaim
from unseen.claims.criterion import DECIDED, VERDICTS, Finding, Obstacle, Verdict, Waiting
from unseen.claims.judge_studies import JudgedStore, judge_store
from unseen.claims.planned import LONGER, find_main_need, price_settling, price_study, price_unit, scale_for
from unseen.claims.render import describe_remedy, format_markdown, format_table, judged_data
from unseen.claims.screen import COLUMNS, LINES, format_screen
from unseen.claims.user_claims import recall_claims
from unseen.cli.main import app
from unseen.store import shipped_records
from unseen.store.make_records import make_records, write_records
from unseen.store.shipped_records import write_index
from unseen.store.store import Store
from unseen.studies.study import find_catalogued

VARIANTS = ["T−Pos−Att", "T+Pos−Att", "T−Pos+Att", "T+Pos+Att"]
LATER = "2026-12-01T00:00:00+00:00"


def t3_solved(levels: Levels, seed: int) -> dict[Key, float]:
    return {("iid", "accuracy"): 0.97 + 0.001 * seed, ("ood/single", "accuracy"): 0.96 + 0.001 * seed}


def build_table2(path: Path, started: str | None = LATER) -> Path:
    axes = {"task": ["retrieval/T3"], "variant": VARIANTS}
    return build(path, study="retrieval-table2@2", axes=axes, metrics=t3_solved, started=started)


def ship(stores: list[Path], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put records files of these stores where the package has its own."""
    folder.mkdir()
    for path in stores:
        with Store.read(path) as store:
            (made,) = make_records([store], partial=True)
        written = write_records(made, folder)
    write_index(folder)
    monkeypatch.setattr(shipped_records, "FOLDER", folder)
    return written


def run(*arguments: object) -> str:
    done = CliRunner().invoke(app, ["claims", *map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.stdout


# -- the records of the package ---------------------------------------------------------------------------------------


def test_without_a_directory_the_shipped_records_are_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ship([build_table2(tmp_path / "store")], tmp_path / "records", monkeypatch)
    text = run()
    assert "(retrieval-table2@2)" in text
    (row,) = [line.split() for line in text.splitlines() if line.startswith("retrieval  ")]
    assert row[1] == "18" and row[3] == "registered"
    (sentence,) = [line for line in text.splitlines() if line.startswith("retrieval/C3")]
    assert "supported" in sentence and "T3 is solved" in sentence and "*" not in sentence
    table = unseen.claims()
    assert len(table) == len(list(CLAIMS)) and set(table["verdict"]) <= set(VERDICTS)
    (solved,) = table[table["claim"] == "retrieval/C3"].to_dict("records")
    assert (solved["verdict"], solved["registered"], solved["study"]) == ("supported", True, "retrieval-table2@2")
    assert solved["run"] == solved["hold"] == len([c for c in CLAIMS.load("retrieval/C3").criteria if not c.printed])
    one = run("--claim", "retrieval/C3")
    assert "- holds: " in one and "supported" in one
    data = {entry["claim"]: entry for entry in json.loads(run("--format", "json"))}
    assert data["retrieval/C3"]["verdict"] == "supported" and data["ctl/K1"]["verdict"] == "not run"
    assert "supported (registered, mini)" in run("--all")


def test_runs_before_the_registration_are_exploratory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    early = build_table2(tmp_path / "store", started="2026-11-16T00:00:00+00:00")
    ship([early], tmp_path / "records", monkeypatch)
    text = run()
    assert "retrieval/C3*" in text and "* exploratory: " in text
    assert not unseen.claims(names=["retrieval/C3"])["registered"].any()


def test_one_changed_byte_of_a_criterion_makes_its_verdict_exploratory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = build_table2(tmp_path / "store")
    (judged,) = judge_store(store, ["retrieval/C3"]).verdicts
    assert judged.registered
    claim = judged.claim
    first, *others = claim.criteria
    assert first.key.endswith("0.885")
    changed = replace(claim, criteria=[replace(first, key=first.key[:-1] + "6"), *others])
    assert registration.fingerprint(changed) != registration.fingerprint(claim)
    monkeypatch.setattr(CLAIMS, "load", lambda name: changed)
    (again,) = judge_store(store, ["retrieval/C3"]).verdicts
    assert not again.registered and again.verdict == judged.verdict


def test_a_records_file_is_judged_like_its_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = build_table2(tmp_path / "store")
    file = ship([store], tmp_path / "records", monkeypatch)
    by_store, by_file = judge_store(store), judge_store(file)
    assert by_file.study == by_store.study and by_file.deviations == by_store.deviations
    assert [(v.claim.name, v.verdict, v.registered, v.findings) for v in by_file.verdicts] == [
        (v.claim.name, v.verdict, v.registered, v.findings) for v in by_store.verdicts
    ]
    assert run(file) == run(store)
    pd.testing.assert_frame_equal(
        unseen.claims(file).drop(columns="source"), unseen.claims(store).drop(columns="source")
    )


def test_a_mode_is_kept_in_the_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five of the seven planned seeds: there is progress, and no verdict, from the directory and from the file."""
    store = build_table2(tmp_path / "store")
    with Store.write(store) as opened:
        opened.remember("mode", {"name": "fixed", "units": 7})
    file = ship([store], tmp_path / "records", monkeypatch)
    for path in (store, file):
        (judged,) = judge_store(path, ["retrieval/C3"]).verdicts
        assert judged.verdict == "in progress" and judged.progress is not None
        assert (judged.progress.complete, judged.progress.planned) == (5, 7)
        assert all(finding.estimate is None and finding.p_holds is None for finding in judged.findings)


@pytest.mark.parametrize(("planned", "registered"), [(5, True), (3, False)])
def test_seeds_that_are_added_make_a_study_s_own_claims_exploratory(
    tmp_path: Path, planned: int, registered: bool
) -> None:
    """Five seeds were run; of three that were planned, two were added."""
    store = build_table2(tmp_path / "store")
    stated = {
        "claim": "mine",
        "statement": "T3 is learned.",
        "split": "iid",
        "headline": [{"above": 0.5, "runs": {"variant": VARIANTS[0]}}],
    }
    registration_note = {"study": "mine", "axes": ["task", "variant"], "weights": "best", "claims": [stated]}
    ((claim,), _) = recall_claims({"claims": {**registration_note, "hashes": {}}}, "test")
    hashes = {claim.name: registration.fingerprint(claim)}
    with Store.write(store) as opened:
        opened.remember("mode", {"name": "fixed", "units": planned})
        opened.remember("claims", {**registration_note, "hashes": hashes})
        opened.remember("registration time", "2026-11-30T00:00:00+00:00")
    (judged,) = judge_store(store, ["mine/mine"]).verdicts
    assert judged.verdict == "supported" and judged.registered is registered


# -- one screen -------------------------------------------------------------------------------------------------------


def judged_claims(verdicts: dict[str, Verdict], registered: bool = True) -> JudgedStore:
    judged = []
    for name, verdict in verdicts.items():
        judged.append(JudgedClaim(CLAIMS.load(name), verdict, "mini", "", (), registered=registered))
    return JudgedStore("records", "some-study@1", tuple(judged), {})


NAMES = [entry.name for entry in CLAIMS]


@pytest.mark.parametrize("decided", [0, 1, 12, 26, 45, 60, 75])
@pytest.mark.parametrize("registered", [True, False])
def test_the_verdicts_fit_on_one_screen(decided: int, registered: bool) -> None:
    verdicts: dict[str, Verdict] = {}
    for number, name in enumerate(NAMES):
        verdicts[name] = DECIDED[number % 3] if number < decided else "undecided"
    text = format_screen([judged_claims(verdicts, registered)])
    lines = text.splitlines()
    assert len(lines) <= LINES and max(map(len, lines)) <= COLUMNS
    for name in NAMES[:decided]:
        assert name in text
    joined = " ".join(text.split())
    told = sum(CLAIMS.entry(name).summary in joined for name in NAMES[:decided])
    assert told == decided if decided <= 26 else told >= 15, "of a third of the claims all sentences fit"
    # Beside every verdict stands how many of its criteria were run (here none).
    beside = [f"({0}/{len(CLAIMS.load(name).criteria)}, 0)" for name in NAMES[:decided]]
    assert all(short in joined or short.strip("()").replace(",", " run,") in joined for short in beside)
    assert len(re.findall(r"\b0/\d+(?: run)?, 0", joined)) == decided


@pytest.mark.parametrize("columns", [50, 80])
def test_in_a_narrow_terminal_the_screen_is_wrapped(columns: int) -> None:
    verdicts: dict[str, Verdict] = {name: DECIDED[number % 3] for number, name in enumerate(NAMES[:30])}
    text = format_screen([judged_claims(verdicts, registered=False)], columns)
    assert max(map(len, text.splitlines())) <= columns
    assert all(name in text for name in NAMES[:30])
    assert "retrieval: 18 claims, 0 not run; exploratory: 6 contradicted, 6 mixed, 6 supported" in " ".join(
        text.split()
    )


def test_registered_and_exploratory_are_counted_apart() -> None:
    first = judged_claims({"ctl/K1": "supported", "ctl/K2": "contradicted", "gcog/pool": "not reached"})
    second = judged_claims({"ctl/K3": "supported", "ctl/K4": "mixed"}, registered=False)
    rows = [line.split() for line in format_screen([first, second]).splitlines()]
    start = next(number for number, row in enumerate(rows) if row[:1] == ["ctl"])
    #        paper  claims not run  kind  contradicted mixed supported not-reached undecided
    assert rows[start] == ["ctl", "13", "9", "registered", "1", "0", "1", "0", "0"]
    assert rows[start + 1] == ["exploratory", "0", "1", "1", "0", "0"]
    gcog = next(row for row in rows if row[:1] == ["gcog"])
    assert gcog == ["gcog", "21", "20", "registered", "0", "0", "0", "1", "0"]


# -- what stands beside a verdict -------------------------------------------------------------------------------------


def shipped(name: str) -> Path:
    (path,) = [path for path in shipped_records.read_index() if path.name == name]
    return path


def test_a_claim_that_was_not_reached_needs_steps_and_no_seeds() -> None:
    (judged,) = judge_store(shipped("ctl-table1@2-mini.zip"), ["ctl/K1"]).verdicts
    assert judged.verdict == "not reached"
    for finding in judged.findings:
        if not finding.reached:
            assert finding.waiting is not None
            assert (finding.waiting.kind, finding.waiting.reason) == ("steps", Obstacle.NOT_REACHED)
    assert describe_remedy(judged).startswith("more steps or a larger scale, so that more runs learn (about ")
    text = format_table([judged], {}, criteria=True)
    assert "(no interval)" in text and "inf" not in text


def test_the_caveat_of_a_study_stands_beside_its_verdicts() -> None:
    names = ["retrieval/C1", "retrieval/C5", "retrieval/C7"]
    store = judge_store(shipped("retrieval-table2@2-small.zip"), names)
    for judged in store.verdicts:
        caveat = "learning rate of 1e-3" if judged.claim.name != "retrieval/C1" else ""
        assert caveat in judged.caveat and bool(caveat) == bool(judged.caveat)
        for criteria in (False, True):
            assert judged.caveat in " ".join(format_table([judged], {}, criteria=criteria).split())
        assert judged.caveat in format_markdown([judged], {})
        assert judged_data(judged)["caveat"] == judged.caveat
    docs = Path(__file__).parents[2] / "docs"
    for name in ("claims.md", "results/retrieval-table2-small.md"):
        assert (docs / name).read_text("utf-8").count(store.verdicts[1].caveat) == 2


def test_the_pages_say_which_records_do_not_tell_their_mode() -> None:
    silent = [path for path in shipped_records.read_index() if judge_studies.read_records_file(path).mode is None]
    assert [path.name for path in silent] == ["gcog-pool@2-mini.zip", "retrieval-table2@2-small.zip"]
    sentence = page.describe_without_mode(["gcog-pool@2 mini", "retrieval-table2@2 small"])
    docs = Path(__file__).parents[2] / "docs"
    for name in ("claims.md", "registered-claims.md"):
        assert sentence in (docs / name).read_text("utf-8")


# -- prices -----------------------------------------------------------------------------------------------------------


def open_claim(name: str, *waiting: Waiting, scale: str = "mini") -> JudgedClaim:
    claim = CLAIMS.load(name)
    findings = [Finding(criterion, "open", waiting=entry) for criterion, entry in zip(claim.criteria, waiting)]  # noqa: B905
    return JudgedClaim(claim, "undecided", scale, "", tuple(findings))


def test_what_would_settle_a_claim_has_a_price() -> None:
    per_seed = price_unit(CLAIMS.load("ctl/K1"), "mini")
    assert per_seed is not None and per_seed > 0
    seeds = Waiting("seeds", Obstacle.BOUND_INSIDE, 14, usable=5)
    judged = open_claim("ctl/K1", seeds, replace(seeds, count=9))
    assert price_settling(judged) == pytest.approx(9 * per_seed)
    assert describe_remedy(judged).startswith("about 14 seeds (about ") and "core-hours)" in describe_remedy(judged)
    assert "would settle it: about 14 seeds (about " in format_table([judged], {})
    assert judged_data(judged)["core_hours"] == pytest.approx(9 * per_seed)
    steps = open_claim("ctl/K1", seeds, Waiting("steps", Obstacle.DRIFT, usable=5))
    assert find_main_need(steps).kind == "steps"
    assert price_settling(steps) == pytest.approx(LONGER * 5 * per_seed)
    assert describe_remedy(steps).endswith("core-hours for the steps)"), "of two needs, it is the price of one"
    trained = max(entry.trial.recipe.steps for entry in find_catalogued("ctl-table1").entries("mini"))
    further = open_claim("ctl/K1", Waiting("steps", Obstacle.DRIFT, 3 * trained, usable=5))
    assert price_settling(further) == pytest.approx(4 * 5 * per_seed), "three times as many further steps"
    runs = open_claim("retrieval/table2", Waiting("runs", Obstacle.MISSING))
    assert scale_for(runs.claim, {"mini"}) == "small"
    assert price_settling(runs) == price_study("retrieval-table2", "small")
    assert price_settling(replace(judged, verdict="supported")) is None
    assert price_settling(replace(judged, claim=replace(judged.claim, study="somebody-s"))) is None


def test_a_unit_of_rules_is_a_task_and_half_of_the_configurations_cost_less_than_all() -> None:
    claim = CLAIMS.load("rules/F3")
    assert claim.design.unit == "task"
    price = price_unit(claim, "mini")
    assert price is not None and 0 < price < price_study("rules-main", "mini")
