"""Registration: every claim has its hash, and the smallest change of a criterion makes it exploratory."""

from __future__ import annotations

import runpy
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import unseen
from support import slow_study
from support.slow_study import SLOW
from unseen.claims.claim import Claim, UnitProgress
from unseen.claims.judge import load_claims
from unseen.claims.judge_studies import judge_store, read_store
from unseen.claims.registration import fingerprint, is_registered, read_registrations
from unseen.cli.run import suggest_next
from unseen.errors import UsageError
from unseen.report.data import Source
from unseen.report.verdicts import judge_source
from unseen.store.make_records import make_records, write_records
from unseen.store.merge import merge_paths
from unseen.store.shipped_records import write_index
from unseen.store.store import Store
from unseen.store.take_over import TAKEN_FROM
from unseen.studies.grid import Grid

NAMES = ["slow/no-worse", "slow/guesses"]
DOCS = Path(__file__).parents[2] / "docs"


def grids(scale: str) -> list[Grid]:
    """The slow study, with two more steps at a second scale."""
    (grid,) = slow_study.grids(scale)
    recipe = {**grid.base["recipe"], "steps": 22 if scale == "mini" else 20}
    return [replace(grid, base={**grid.base, "recipe": recipe})]


SCALES = replace(SLOW, scales={"smoke": None, "mini": None}, grids=grids)


def changes(claim: Claim) -> list[Claim]:
    first, *others = claim.criteria
    return [
        replace(claim, quote=claim.quote + "."),
        replace(claim, criteria=[replace(first, low=first.low + 1e-9, high=first.high + 1e-9), *others]),
        replace(claim, criteria=[replace(first, role="detail" if first.role == "headline" else "headline"), *others]),
        replace(claim, criteria=[replace(first, may_fail=not first.may_fail), *others]),
        replace(claim, criteria=[*others, first, first]),
        replace(claim, design=replace(claim.design, unit="week")),
        replace(claim, learning=("IID", 0.123)),
        replace(claim, printed_for={"length": 123}),
        replace(claim, split="elsewhere"),
    ]


@pytest.mark.parametrize("claim", load_claims(), ids=lambda claim: claim.name)
def test_every_claim_is_registered_and_every_change_shows(claim: Claim) -> None:
    begin = datetime.fromisoformat(read_registrations()[claim.name].runs_from)
    assert is_registered(claim, begin)
    assert not is_registered(claim, begin - timedelta(seconds=1)), "its first run came too early"
    hashes = {fingerprint(changed) for changed in changes(claim)}
    assert fingerprint(claim) not in hashes and len(hashes) == len(changes(claim))
    assert not any(is_registered(changed, begin + timedelta(days=1)) for changed in changes(claim))
    assert fingerprint(replace(claim, statement="in other words")) == fingerprint(claim)


def test_the_page_follows_from_the_claims() -> None:
    page = runpy.run_path(str(DOCS / "make_registration.py"))["format_page"]()
    assert (DOCS / "registered-claims.md").read_text("utf-8") == page, "run `python docs/make_registration.py --page`"


def test_claims_of_the_papers_quote_them() -> None:
    for claim in load_claims():
        assert claim.quote or claim.ours, claim.name
        assert any(criterion.role == "headline" for criterion in claim.criteria), claim.name


def test_a_store_says_when_its_runs_began_and_so_do_its_records(tmp_path: Path) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    trained = tmp_path / "trained"
    unseen.run("quickstart", trained, scale="smoke", executor="inline")
    (verdict,) = judge_store(trained, ["retrieval/C5"]).verdicts
    assert verdict.registered, "the criteria are older than the run"
    with Store.read(trained) as store:
        (made,) = make_records([store])
    records_file = tmp_path / made.manifest.file_name
    records_file.write_bytes(made.data)
    taken_over = tmp_path / "taken-over"
    unseen.run("quickstart", taken_over, scale="smoke", executor="inline", reuse=records_file)
    for directory in (trained, taken_over):
        with Store.read(directory) as store:
            first_run = read_store(store).first_run
            assert first_run is not None and before <= first_run <= datetime.now(UTC)
    # A trial that does not tell when it began may be older than the criteria.
    with sqlite3.connect(trained / "store.sqlite") as database:
        database.execute("UPDATE provenance SET facts = json_remove(facts, '$.started') WHERE trial = 1")
    with Store.read(trained) as store:
        assert read_store(store).first_run is None


def test_a_claim_that_was_written_after_the_outcome_is_exploratory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not help to take the runs over into a directory that registers the claim."""
    seen, before = tmp_path / "seen", tmp_path / "before"
    unseen.run(replace(SLOW, own_claims=()), seen, scale="smoke", executor="inline")
    unseen.run(SLOW, before, scale="smoke", executor="inline")
    assert [judged.registered for judged in judge_store(before, NAMES).verdicts] == [True, True], (
        "written before the runs"
    )
    with Store.read(seen) as store:
        (made,) = make_records([store])
    shipped = tmp_path / "shipped"
    shipped.mkdir()
    write_records(made, shipped)
    write_index(shipped)
    monkeypatch.setattr("unseen.store.shipped_records.FOLDER", shipped)
    ways: dict[str, dict[str, Any]] = {
        "reused": {"reuse": seen},
        "extended": {"extend": True},
        "more-seeds": {"reuse": seen, "seeds": 4},
    }
    for name, options in ways.items():
        unseen.run(SLOW, tmp_path / name, scale="smoke", executor="inline", **options)
        with Store.read(tmp_path / name) as store:
            assert TAKEN_FROM in set().union(*store.facts().values())
        verdicts = judge_store(tmp_path / name, NAMES).verdicts
        assert [judged.registered for judged in verdicts] == [False, False], name


def test_seeds_added_to_runs_of_another_directory_make_the_papers_claims_exploratory(tmp_path: Path) -> None:
    """These runs were judged there; the same seeds alone, in a new directory, stay what they are."""
    trained, records_file = tmp_path / "trained", tmp_path / "trained.zip"
    unseen.run("quickstart", trained, scale="smoke", seeds=3, executor="inline")
    with Store.read(trained) as store:
        records_file.write_bytes(make_records([store])[0].data)
    for source in (trained, records_file):
        for seeds, registered in ((3, True), (4, False)):
            out = tmp_path / f"{source.name} {seeds}"
            unseen.run("quickstart", out, scale="smoke", seeds=seeds, executor="inline", reuse=source)
            (verdict,) = judge_store(out, ["retrieval/C5"]).verdicts
            assert verdict.registered is registered, (source, seeds)
            (shown,) = [
                entry for entry in judge_source(Source.read(out)).verdicts if entry.claim.name == "retrieval/C5"
            ]
            assert shown.registered is registered, "on its page, too"


def test_every_scale_of_a_directory_has_its_own_number_of_seeds(tmp_path: Path) -> None:
    """Four seeds at the second scale once were one too many, and two were waiting for a third."""
    for first, second in ((3, 4), (4, 3)):
        out = tmp_path / str(first)
        unseen.run(SCALES, out, scale="smoke", seeds=first, executor="inline")
        unseen.run(SCALES, out, scale="mini", seeds=second, executor="inline")
        verdicts = {judged.scale: judged for judged in judge_store(out, NAMES[:1]).verdicts}
        for scale, seeds in (("smoke", first), ("mini", second)):
            assert verdicts[scale].progress == UnitProgress(seeds, seeds) and verdicts[scale].registered
        # Seeds that are added to a scale stay added.
        unseen.run(SCALES, out, scale="mini", seeds=5, executor="inline")
        registered = {judged.scale: judged.registered for judged in judge_store(out, NAMES[:1]).verdicts}
        assert registered == {"smoke": True, "mini": False}


def test_directories_that_are_joined_keep_the_registration_only_if_their_claims_are_the_same(tmp_path: Path) -> None:
    other = replace(SLOW, own_claims=SLOW.own_claims[:1])
    for number, study in enumerate((SLOW, SLOW, other)):
        shard = (number % 2 + 1, 2)
        unseen.run(study, tmp_path / str(number), scale="smoke", executor="inline", shard=shard)
    joined = tmp_path / "joined"
    merge_paths([tmp_path / "1", tmp_path / "0"], joined)
    with Store.read(joined) as store:
        made = make_records([store])
    with Store.read(tmp_path / "0") as first, Store.read(tmp_path / "1") as second:
        assert make_records([second, first])[0].manifest.about == made[0].manifest.about
    assert [judged.registered for judged in judge_store(joined, NAMES).verdicts] == [True, True]
    mixed = tmp_path / "mixed"
    # The claims of the directory that was begun later hold; half of the runs are older than these.
    merge_paths([tmp_path / "2", tmp_path / "1"], mixed)
    assert [judged.registered for judged in judge_store(mixed, NAMES[:1]).verdicts] == [False]


def test_a_claim_keeps_its_registration_whatever_the_order_of_its_columns(tmp_path: Path) -> None:
    """The order is part of a criterion's words, and the words are part of its hash."""
    (claim,) = SLOW.own_claims[:1]
    runs = {"variant": "plain", "model": "retrieval-transformer"}
    stated = {**claim, "headline": [{"below": 0.9, "runs": runs}]}
    study = replace(SLOW, own_claims=(stated,))
    unseen.run(study, tmp_path / "out", scale="smoke", executor="inline")
    (judged,) = judge_store(tmp_path / "out", NAMES[:1]).verdicts
    assert judged.registered


def test_run_says_what_fits_claims_that_were_added_later(tmp_path: Path) -> None:
    unseen.run(replace(SLOW, own_claims=()), tmp_path / "before", scale="smoke", executor="inline")
    unseen.run(SLOW, tmp_path / "with", scale="smoke", executor="inline")
    assert "claims of slow were added after its runs had begun" in suggest_next(SLOW, tmp_path / "before")
    assert suggest_next(SLOW, tmp_path / "with") == f"verdicts: unseen claims {tmp_path / 'with'}"
    assert suggest_next(replace(SLOW, own_claims=()), tmp_path / "with").startswith("page: unseen report")


def test_a_wrong_name_of_a_claim_is_answered_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"The nearest of \d+ known names: ") as error:
        load_claims(["attention-never-helps"])
    assert len(str(error.value)) < 250
