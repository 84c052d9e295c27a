"""Making records files from stores, and proving that one follows from them.

The same records give the same tables and manifest, whichever stores they are divided over and in which order these are
named: rows are sorted by keys, and nothing about the moment or the place of writing is in the file.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from unseen.config import canonical
from unseen.errors import CheckFailed, UsageError
from unseen.files import check_writable, write_atomically
from unseen.store.csv_tables import write_table
from unseen.store.merge import check_mergeable
from unseen.store.records import (
    CURVES,
    FORMAT,
    FORMAT_VERSION,
    MANIFEST,
    MEASURED,
    RECORD_KEY,
    RECORDS,
    TRIALS,
    Manifest,
    RecordsFile,
    load,
)
from unseen.store.schema import FILE
from unseen.store.store import ENDED, REGISTRATION_NOTE, Store, join_notes
from unseen.store.tables import label_entries, option_columns
from unseen.store.take_over import TAKEN_FROM
from unseen.studies.description import StudyDescription, merge_descriptions, read_description
from unseen.studies.study import Study, find_catalogued

POINTS = 40
"""The points of a learning curve that are written at most; the first and the last always are."""
_LONGEST_OPTION = 200
"""Options with longer values, such as the whole mapping of a task, have no column: the manifest has them."""
_DATE = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip file can name."""


@dataclass(frozen=True)
class MadeRecords:
    """A records file that was made: its manifest and its bytes."""

    manifest: Manifest
    data: bytes


@dataclass(frozen=True)
class _Tables:
    """What stores hold of one scale; `entries` has their order in a column `position`."""

    entries: pd.DataFrame
    measures: pd.DataFrame
    points: pd.DataFrame
    facts: Mapping[str, Mapping[str, Any]]
    identities: Mapping[str, dict[str, Any]]
    evaluations: Mapping[str, dict[str, Any]]


def make_records(stores: Sequence[Store], partial: bool = False) -> list[MadeRecords]:
    """One records file for every scale of a study whose trials lie in these stores.

    An unfinished study is refused, unless a `partial` file is asked for.
    """
    for store in stores:
        if "study" not in store.work:
            raise UsageError(f"{store.path} holds no study, but a single training; records files are made of studies")
        store.check("trials", "entries", "curves", "records")
    check_mergeable(stores)
    scales: dict[str, None] = {}
    for store in stores:
        scales.update(dict.fromkeys(store.entries()["scale"]))
    if not scales:
        raise UsageError(f"{stores[0].path} holds nothing yet")
    files = []
    for scale in scales:
        tables = _combine(stores, scale)
        missing = _find_missing(tables, stores[0].work["study"], scale)
        if missing and not partial:
            raise UsageError(
                f"{stores[0].path} is not finished at scale {scale}: {missing}. Finish it with `unseen run`, or make a "
                "partial file with --partial"
            )
        files.append(_make(stores, scale, tables, bool(missing)))
    return files


def thin(points: pd.DataFrame) -> pd.DataFrame:
    """Learning curves with at most `POINTS` points for each trial, split and metric, the first and the last included."""
    by_curve = points.groupby(["trial", "split", "metric"], sort=False)["step"]
    rank = by_curve.cumcount().to_numpy()
    count = by_curve.transform("size").to_numpy()
    selected = count <= POINTS
    for size in np.unique(count[~selected]):
        # Of all curves of one length at once: there are thousands of curves, and few lengths.
        positions = np.unique(np.linspace(0, size - 1, POINTS).round().astype(int))
        selected |= (count == size) & np.isin(rank, positions)
    return points[selected].reset_index(drop=True)


# -- collecting -------------------------------------------------------------------------------------------------------


def _combine(stores: Sequence[Store], scale: str) -> _Tables:
    """The tables of one scale over all stores; a trial that two of them have must have the same numbers."""
    all_tables = [_read(store, scale) for store in stores]
    entries = _combine_entries(stores, all_tables)
    ended = set(entries["trial"][entries["status"].isin(ENDED)])
    measures = pd.concat([tables.measures for tables in all_tables], ignore_index=True)
    points = pd.concat([tables.points for tables in all_tables], ignore_index=True)
    facts: dict[str, Mapping[str, Any]] = {}
    identities: dict[str, dict[str, Any]] = {}
    evaluations: dict[str, dict[str, Any]] = {}
    for tables in all_tables:
        identities |= tables.identities
        evaluations |= tables.evaluations
        for trial, trial_facts in tables.facts.items():
            if trial in ended:
                facts.setdefault(trial, trial_facts)
    return _Tables(
        entries,
        _unite(stores, measures[measures["trial"].isin(ended)], list(RECORD_KEY)),
        _unite(stores, points[points["trial"].isin(ended)], ["trial", "split", "metric", "step"]),
        facts,
        identities,
        evaluations,
    )


def _read(store: Store, scale: str) -> _Tables:
    measures, entries = store.measures()
    positions = store.positions(scale)
    entries = entries[entries["scale"] == scale].reset_index(drop=True)
    keys = list(zip(entries["trial"], entries["evaluation_id"], strict=True))
    entries["position"] = [positions[key] for key in keys]
    pairs = pd.MultiIndex.from_tuples(keys)
    rows = pd.MultiIndex.from_frame(measures[["trial", "evaluation_id"]])
    points = store.points()
    identities = store.identities()
    return _Tables(
        entries,
        measures[rows.isin(pairs)][list(RECORDS)].reset_index(drop=True),
        thin(points[points["trial"].isin(set(entries["trial"]))])[list(CURVES)],
        store.facts(),
        {trial: identities[trial] for trial in entries["trial"]},
        {key: value for key, value in store.evaluation_identities().items() if key in set(entries["evaluation_id"])},
    )


def _combine_entries(stores: Sequence[Store], all_tables: Sequence[_Tables]) -> pd.DataFrame:
    """The entries in the order of the study. Of a trial that has ended in one store, other stores may have a part."""
    entries = pd.concat([tables.entries for tables in all_tables], ignore_index=True)
    entries["unfinished"] = ~entries["status"].isin(ENDED)
    entries["levels_key"] = [canonical(json.loads(text)) for text in entries["levels"]]
    # A store that was filled with some of the configurations counts them from 0.
    entries["position"] = entries.groupby("levels_key")["position"].transform("min")
    order = ["position", "levels_key", "seed", "data_seed", "trial", "evaluation_id"]
    entries = entries.sort_values([*order, "unfinished", "status", "step"], kind="stable", ignore_index=True)
    ended = entries[~entries["unfinished"]].drop_duplicates([*order, "status", "step", "best_step", "not_converged"])
    twice = ended[ended.duplicated(order)]
    if len(twice):
        raise _contradiction(stores, twice["trial"].iloc[0])
    entries = entries.drop_duplicates(order, ignore_index=True)
    return entries.drop(columns=["unfinished"])


def _unite(stores: Sequence[Store], rows: pd.DataFrame, key: list[str]) -> pd.DataFrame:
    """Rows without repetitions; two that differ in their numbers alone are an error."""
    united = rows.drop_duplicates(ignore_index=True)
    twice = united[united.duplicated(key)]
    if len(twice):
        raise _contradiction(stores, twice["trial"].iloc[0])
    return united


def _contradiction(stores: Sequence[Store], trial: str) -> CheckFailed:
    names = ", ".join(str(store.path) for store in stores)
    return CheckFailed(
        f"two of {names} have trial {trial} with different numbers (another machine?); leave one of them out"
    )


def _find_missing(tables: _Tables, name: str, scale: str) -> str:
    """The trials and evaluations that a study lacks at a scale, in words; empty if it is finished.

    Of a study in this release's catalogue all trials must have been entered.
    """
    entries = tables.entries
    unfinished = entries[~entries["status"].isin(ENDED)]
    if len(unfinished):
        counts = unfinished["status"].value_counts()
        numbers = [f"{counts[status]} {status}" for status in sorted(counts.index)]
        return f"of {len(entries)} trials, {' and '.join(numbers)}"
    evaluated = set(zip(tables.measures["trial"], tables.measures["evaluation_id"], strict=True))
    waiting = 0
    for row in entries[entries["status"] != "diverged"].itertuples():
        waiting += (row.trial, row.evaluation_id) not in evaluated
    if waiting:
        return f"{waiting} trials are not evaluated in all the ways asked for"
    study = _find_study(name)
    if study is None or scale not in study.scales:
        return ""
    planned = {entry.trial.id for entry in study.entries(scale)}
    lacking = len(planned - set(entries["trial"]))
    return f"{lacking} of the {len(planned)} trials of the study were not entered" if lacking else ""


# -- writing ----------------------------------------------------------------------------------------------------------


def _make(stores: Sequence[Store], scale: str, tables: _Tables, partial: bool) -> MadeRecords:
    name = stores[0].work["study"]
    study, _, version = name.partition("@")
    if not version.isdecimal():
        raise CheckFailed(f"{stores[0].path / FILE} is damaged: its study '{name}' has no version")
    provenance = sorted({canonical(_shared_facts(facts)) for facts in tables.facts.values()})
    index = {text: number for number, text in enumerate(provenance)}
    rank = {trial: number for number, trial in enumerate(dict.fromkeys(tables.entries["trial"]))}
    contents = {
        "trials.csv": _trials_table(tables, index),
        "records.csv": (list(RECORDS), _sorted_rows(tables.measures, rank, list(RECORD_KEY[1:]))),
        "curves.csv": (list(CURVES), _sorted_rows(tables.points, rank, ["split", "metric", "step"])),
    }
    members = {}
    files = {}
    for file, (columns, rows) in contents.items():
        members[file] = write_table(columns, rows)
        files[file] = {"sha256": hashlib.sha256(members[file]).hexdigest(), "rows": len(rows)}
    manifest = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "study": study,
        "version": int(version),
        "scale": scale,
        **_describe(stores, name, scale, set(tables.entries["seed"].tolist())),
        "axes": label_entries(tables.entries)[1][1:],
        "partial": partial,
        "about": _about(stores),
        "cost": _cost(tables.facts.values()),
        "provenance": [json.loads(text) for text in provenance],
        "files": files,
        "evaluations": tables.evaluations,
        "trials": tables.identities,
    }
    text = json.dumps(manifest, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    members = {MANIFEST: text.encode(), **members}
    return MadeRecords(Manifest.model_validate_json(text), _zip(members))


def _zip(members: Mapping[str, bytes]) -> bytes:
    """A zip file in which nothing depends on when and where it was written."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in members.items():
            entry = zipfile.ZipInfo(name, _DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            # As if written on Unix, a file that all may read, whatever system this is: both are bytes of the archive.
            entry.create_system = 3
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)
    return buffer.getvalue()


def _trials_table(tables: _Tables, index: Mapping[str, int]) -> tuple[list[str], list[tuple[Any, ...]]]:
    """A row per trial and evaluation: what is needed to read the file again, then a column per axis and option."""
    entries = tables.entries
    columns: dict[str, list[Any]] = {}
    for name in TRIALS:
        if name in entries:
            columns[name] = [None if value != value else value for value in entries[name].tolist()]
    for name in ("best_step", "not_converged"):
        columns[name] = [None if value is None else int(value) for value in columns[name]]
    for name in ("provenance", *MEASURED):
        columns[name] = []
    for trial in entries["trial"]:
        facts = tables.facts.get(trial)
        columns["provenance"].append(None if facts is None else index[canonical(_shared_facts(facts))])
        for name in MEASURED:
            columns[name].append(None if facts is None else facts.get(name))
    labelled, axes = label_entries(entries.assign(scale=""))
    for name in (*axes, "task", "model", "recipe"):
        columns.setdefault(name, labelled[name].tolist())
    for name, series in option_columns(entries).items():
        values = series.tolist()
        if all(len(canonical(value)) <= _LONGEST_OPTION for value in dict.fromkeys(values)):
            columns.setdefault(name, values)
    names = [*TRIALS, *(name for name in columns if name not in TRIALS)]
    return names, list(zip(*(columns[name] for name in names), strict=True))


def _sorted_rows(frame: pd.DataFrame, rank: Mapping[str, int], key: list[str]) -> list[tuple[Any, ...]]:
    """Rows in the order of their trials, then of their keys."""
    ranked = frame.assign(_rank=frame["trial"].map(rank)).sort_values(["_rank", *key], kind="stable")
    columns = [ranked[name].tolist() for name in frame.columns]
    return list(zip(*columns, strict=True))


def _shared_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if name not in MEASURED}


def _cost(all_facts: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Trials and processor time, of all and of those that were taken over from elsewhere."""
    cost = {"trials": 0, "cpu_seconds": 0.0, "taken_over": 0, "taken_over_cpu_seconds": 0.0}
    for facts in sorted(all_facts, key=canonical):  # a sum of floats depends on its order
        seconds = float(facts.get("cpu_seconds", 0.0))
        cost["trials"] += 1
        cost["cpu_seconds"] += seconds
        if TAKEN_FROM in facts:
            cost["taken_over"] += 1
            cost["taken_over_cpu_seconds"] += seconds
    return {name: round(value, 3) for name, value in cost.items()}


def _describe(stores: Sequence[Store], name: str, scale: str, seeds: Collection[int]) -> dict[str, Any]:
    """Question, notes, deviations and selection of a study: as this release has them, else as stored with the runs."""
    study = _find_study(name)
    if study is not None and scale in study.scales:
        # Stores that were filled with some of the seeds each note that they lack the others; here all are counted.
        deviations: Sequence[str] = study.deviations(scale, sorted(seeds))
        described: Study | StudyDescription = study
    else:
        stored: dict[str, Any] = {}
        for store in stores:
            stored = merge_descriptions(stored, store.description)
        described = read_description(stored) or StudyDescription()
        deviations = described.scales[scale].deviations or () if scale in described.scales else ()
    return {
        "question": described.question,
        "notes": list(described.notes),
        "deviations": list(deviations),
        "selection": str(described.selection),
        "command": f"unseen run {name.partition('@')[0]} --scale {scale} --out DIRECTORY",
    }


def _about(stores: Sequence[Store]) -> dict[str, Any]:
    """The notes of the stores, such as the mode and the registered claims; they must agree."""
    about: dict[str, Any] = {}
    for store in stores:
        notes = store.notes()
        about = join_notes(about, notes)
        # The same claims may be registered at different times, and then the earliest holds.
        for key in notes.keys() - {REGISTRATION_NOTE}:
            if about[key] != notes[key]:
                raise UsageError(f"{stores[0].path} and {store.path} do not have the same {key}")
    return about


def _find_study(name: str) -> Study | None:
    """The study, if this release has it in this version."""
    try:
        return find_catalogued(name)
    except UsageError:
        return None


def write_records(made: MadeRecords, folder: Path) -> Path:
    """Write a records file into a folder under its own name; see `check_replaceable`."""
    path = folder / made.manifest.file_name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        check_replaceable(made, folder)
        write_atomically(path, made.data)
    except OSError as error:
        raise UsageError(f"{path} can't be written: {error.strerror}") from error
    return path


def check_replaceable(made: MadeRecords, folder: Path) -> None:
    """Refuse to replace a file that is not a records file, or one with trials that the new one does not have."""
    path = folder / made.manifest.file_name
    if folder.is_dir():
        check_writable(path)
    if not path.exists():
        return
    try:
        old = load(path)
    except CheckFailed as error:
        raise UsageError(f"{path} exists and can't be read as a records file ({error}); move it away") from error
    lost = old.manifest.trials.keys() - made.manifest.trials.keys()
    if lost:
        raise UsageError(
            f"{path} has {len(lost)} trials that would be lost; give another --out, or also the directory they came from"
        )


def check_follows(file: RecordsFile, paths: Sequence[Path]) -> None:
    """Refuse a records file that the stores at these paths do not give again."""
    names = ", ".join(map(str, paths))
    with ExitStack() as exits:
        stores = [exits.enter_context(Store.read(path)) for path in paths]
        by_name = {made.manifest.file_name: made for made in make_records(stores, partial=True)}
    again = by_name.get(file.manifest.file_name)
    if again is None:
        raise CheckFailed(f"{file.path} does not follow from {names}, which give {', '.join(by_name)}")
    # How a zip file is compressed depends on the library; what is in it does not.
    for field in Manifest.model_fields:
        if getattr(again.manifest, field) != getattr(file.manifest, field):
            raise CheckFailed(f"{file.path} does not follow from {names}: they differ in '{field}'")
