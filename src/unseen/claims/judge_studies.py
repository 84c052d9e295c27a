"""Judging the claims of studies: by directories, by records files, and by the records that come with the package."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from unseen.claims.claim import JudgedClaim
from unseen.claims.criterion import DECIDED
from unseen.claims.judge import judge, judge_tables, load_claims
from unseen.claims.mode import MODE, Mode, UntilDecided, mode_key, read_mode
from unseen.claims.registration import fingerprint
from unseen.errors import CheckFailed, UsageError
from unseen.names import bare_name
from unseen.store.records import load
from unseen.store.shipped_records import read_index
from unseen.store.store import Store, remembered_notes
from unseen.store.tables import runs_table
from unseen.store.take_over import TAKEN_FROM, is_records_file
from unseen.studies.study import find_catalogued

# -- the records of a study -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StudyRecords:
    """The records of a study in a directory or a records file; `study` is `NAME@VERSION`, empty for a single training.

    `runs` has one row per run and `points` reads the learning curves. `notes` were written before the first run (the
    mode, claims that the study states itself); those of a study that runs until decided have its looks so far, too.
    `taken_over` are the trials that other stores or records files had before.
    """

    source: str
    study: str
    records: pd.DataFrame
    runs: pd.DataFrame
    points: Callable[[], pd.DataFrame]
    notes: Mapping[str, Any]
    first_run: datetime | None
    axes: tuple[str, ...] = ()
    taken_over: frozenset[str] = frozenset()

    @property
    def mode(self) -> Mode | None:
        """When its claims are judged; None if that was not written down."""
        return read_mode(self.notes.get(MODE))

    def mode_at(self, scale: str) -> Mode | None:
        """The same at a scale, which may have been begun later, with another number of units."""
        return read_mode(self.notes.get(mode_key(scale), self.notes.get(MODE)))


def read_store(store: Store) -> StudyRecords:
    """The records of an open store; its curves are read while it is open."""
    records, entries = store.tables()
    return StudyRecords(
        str(store.path),
        str(store.work.get("study", "")),
        records,
        runs_table(entries),
        store.points,
        remembered_notes(store.notes()),
        find_first_run(store),
        _list_axes(entries),
        find_taken_over(store),
    )


def read_records_file(path: Path) -> StudyRecords:
    """The records of a records file."""
    file = load(path)
    started = [facts.get("started") for facts in file.provenance.values()]
    return StudyRecords(
        str(path),
        file.study,
        file.records,
        file.runs,
        file.points,
        remembered_notes(file.manifest.about),
        _earliest(started, path),
        _list_axes(file.entries),
        frozenset(trial for trial, facts in file.provenance.items() if facts.get(TAKEN_FROM)),
    )


def find_first_run(store: Store) -> datetime | None:
    """The earliest time at which a run of a store can have begun; None if one of them does not tell."""
    facts = store.provenance()
    return _earliest(facts["started"].tolist(), store.path) if "started" in facts else None


def find_taken_over(store: Store) -> frozenset[str]:
    """The trials that a store took over from others, or from records files."""
    facts = store.provenance()
    return frozenset(facts["trial"][facts[TAKEN_FROM].notna()]) if TAKEN_FROM in facts else frozenset()


def _earliest(started: Sequence[Any], path: Path) -> datetime | None:
    if not started or any(pd.isna(time) for time in started):
        return None
    try:
        times = [datetime.fromisoformat(text) for text in set(started)]
    except (TypeError, ValueError):
        raise CheckFailed(f"{path} is damaged: it does not say when its runs began") from None
    return min(time if time.tzinfo is not None else time.replace(tzinfo=UTC) for time in times)


def _list_axes(entries: pd.DataFrame) -> tuple[str, ...]:
    from unseen.claims.user_claims import list_axes

    return tuple(list_axes(json.loads(text) for text in set(entries["levels"])))


# -- judging it -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class JudgedStore:
    """The verdicts of one directory or file, the study it holds (`name@version`), and its deviations by scale.

    `mode` is None if it does not tell when its claims were to be judged.
    """

    directory: str
    study: str
    verdicts: tuple[JudgedClaim, ...]
    deviations: Mapping[str, Sequence[str]]
    mode: Mode | None = None

    @property
    def name(self) -> str:
        """The study without its version."""
        return bare_name(self.study)


def judge_store(path: Path, names: Iterable[str] = (), file: Path | None = None) -> JudgedStore:
    """Judge the named claims, or all claims about the families that were run, by a directory or a records file.

    Claims that it has registered itself are judged, too; or those of a user's `file` instead.
    """
    if is_records_file(path):
        study = read_records_file(path)
        verdicts = judge_study(study, names, file)
    else:
        with Store.read(path) as store:
            study = read_store(store)
            verdicts = judge_study(study, names, file)
    verdicts = add_caveats(verdicts, study.study)
    deviations = {}
    for scale in dict.fromkeys(judged.scale for judged in verdicts if judged.scale):
        deviations[scale] = _find_deviations(study.study, scale, study.runs[study.runs["scale"] == scale])
    return JudgedStore(study.source, study.study, tuple(verdicts), deviations, study.mode)


def judge_study(study: StudyRecords, names: Iterable[str] = (), file: Path | None = None) -> list[JudgedClaim]:
    """Judge claims by the records of a study as its mode allows; see `judge_store`."""
    from unseen.claims.until_decided import judge_until_decided
    from unseen.claims.user_claims import read_claims, recall_claims, recall_registration_time

    chosen = list(names)
    stated, hashes = recall_claims(study.notes, study.source)
    if file is not None:
        stated = read_claims(file, study.axes)
    stated_names = {claim.name for claim in stated}
    papers = [name for name in chosen if name not in stated_names]
    own_claims = [claim for claim in stated if not chosen or claim.name in chosen]
    registered = set()
    if _began_after(study, recall_registration_time(study.notes)):
        registered = {claim.name for claim in own_claims if hashes.get(claim.name) == fingerprint(claim)}
    if isinstance(study.mode, UntilDecided):
        claims = [claim for claim in load_claims(papers) if papers or claim.study == bare_name(study.study)]
        return judge_until_decided([*claims, *own_claims], study, registered)
    of_papers: list[JudgedClaim] = []
    of_its_own: list[JudgedClaim] = []
    points = cache(study.points)
    for records, runs, mode in _divide_by_scale(study):
        tables = records, runs
        if papers or (not chosen and file is None):
            of_papers += judge_tables(
                *tables, papers, points, mode=mode, first_run=study.first_run, taken_over=study.taken_over
            )
        for claim in own_claims:
            known = claim.name in registered
            of_its_own.append(judge(claim, *tables, points, mode=mode, registered=known, taken_over=study.taken_over))
    return [*of_papers, *of_its_own]


def _divide_by_scale(study: StudyRecords) -> list[tuple[pd.DataFrame, pd.DataFrame, Mode | None]]:
    """The records and runs of each scale, and when it is judged."""
    if "scale" not in study.runs:
        return [(study.records, study.runs, study.mode)]
    divided = []
    for scale in dict.fromkeys(study.runs["scale"]):
        records = study.records[study.records["scale"] == scale]
        runs = study.runs[study.runs["scale"] == scale]
        divided.append((records, runs, study.mode_at(scale)))
    return divided


def _began_after(study: StudyRecords, registered: datetime | None) -> bool:
    """Whether all runs began after a registration, those that were taken over from elsewhere included."""
    if study.first_run is None:
        return study.records.empty  # no run has ended, or one does not tell when it began
    return registered is not None and study.first_run >= registered


def judge_shipped(names: Iterable[str] = ()) -> list[JudgedStore]:
    """Judge claims by the records that come with the package."""
    return keep_home_verdicts([judge_store(path, names) for path in read_index()])


def keep_home_verdicts(stores: Sequence[JudgedStore]) -> list[JudgedStore]:
    """Keep each verdict only in the directories that it should be read from.

    A claim is judged where its study was run; if it was run in none of them, wherever there is something to judge; if
    there is nothing anywhere, it is not run, in the first directory.
    """
    if len(stores) < 2:
        return list(stores)
    by_claim: dict[str, list[tuple[int, JudgedClaim]]] = {}
    for number, store in enumerate(stores):
        for judged in store.verdicts:
            by_claim.setdefault(judged.claim.name, []).append((number, judged))
    selected: set[int] = set()  # the identities of the verdicts that are kept
    for candidates in by_claim.values():
        at_home = [pair for pair in candidates if stores[pair[0]].name == pair[1].claim.study]
        run = [pair for pair in candidates if pair[1].verdict != "not run"]
        selected.update(id(judged) for _, judged in at_home or run or candidates[:1])
    home = []
    for store in stores:
        verdicts = tuple(judged for judged in store.verdicts if id(judged) in selected)
        home.append(replace(store, verdicts=verdicts))
    return home


def add_caveats(verdicts: Sequence[JudgedClaim], study: str) -> list[JudgedClaim]:
    """Add the caveats of a study of the catalogue to the verdicts that its runs decide."""
    try:
        caveats = find_catalogued(study).caveats
    except UsageError:
        return list(verdicts)
    with_caveats = []
    for judged in verdicts:
        caveat = caveats.get(judged.claim.name, "") if judged.verdict in DECIDED else ""
        with_caveats.append(replace(judged, caveat=caveat))
    return with_caveats


def _find_deviations(study: str, scale: str, entries: pd.DataFrame) -> list[str]:
    """List how the study deviates from the paper at a scale, if these are runs of the study of this name."""
    try:
        catalogued = find_catalogued(study)
        for seeds in (None, sorted(set(entries["seed"]))):  # the study's own seeds, or other seeds that were chosen
            if set(entries["trial"]) <= {entry.trial.id for entry in catalogued.entries(scale, seeds)}:
                return catalogued.deviations(scale, seeds)
        return [f"not known: some of these runs are not, or no longer, of {study} at scale {scale}"]
    except UsageError:
        return [f"not known: {study} is not in the catalogue"]
