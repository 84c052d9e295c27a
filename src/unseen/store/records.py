"""The portable file of a study's records at one scale, `NAME@VERSION-SCALE.zip`: its contents, and reading it.

    manifest.json   what was asked and done: study, deviations, versions, machines, cost, checksums, and the identity of
                    every trial and evaluation, by which each can be repeated bit for bit
    trials.csv      a row per trial and evaluation: its levels, how it ended, and a column per option
    records.csv     a row per number: trial, evaluation, selection, split, factor, level, metric, value, …
    curves.csv      the learning curves, at most 40 points of each

It opens with pandas alone: `pd.read_csv(zipfile.ZipFile(path).open("records.csv"))`. It holds no weights and no code,
and reading it imports nothing that it names. `make_records` writes it.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, ValidationError

from unseen.config import canonical, digest
from unseen.errors import CheckFailed, UsageError
from unseen.store.csv_tables import ColumnType, TableError, read_table
from unseen.store.store import ENDED
from unseen.store.tables import records_table, runs_table
from unseen.store.take_over import EndedTrial
from unseen.studies.trial import COMPONENTS

FORMAT = "unseen records"
FORMAT_VERSION = 1
MANIFEST = "manifest.json"
TRIALS: dict[str, ColumnType] = {
    "trial": "text",
    "evaluation_id": "text",
    "levels": "text",
    "seed": "integer",
    "data_seed": "integer",
    "status": "text",
    "step": "integer",
    "best_step": "optional integer",
    "not_converged": "optional integer",
    "note": "text",
    "cause": "optional text",
    "provenance": "optional integer",
    "parameters": "optional integer",
    "seconds": "number",
    "cpu_seconds": "number",
}
RECORD_KEY = ("trial", "evaluation_id", "selection", "split", "factor", "level", "metric")
RECORDS: dict[str, ColumnType] = {
    **dict.fromkeys(RECORD_KEY, "text"),
    "value": "number",
    "standard_error": "number",
    "n": "integer",
}
POINT_KEY = ("trial", "step", "split", "metric")
CURVES: dict[str, ColumnType] = {
    "trial": "text",
    "step": "integer",
    "split": "text",
    "metric": "text",
    "value": "number",
}
TABLES: dict[str, dict[str, ColumnType]] = {"trials.csv": TRIALS, "records.csv": RECORDS, "curves.csv": CURVES}
STATUSES = (*ENDED, "pending", "failed")
MEASURED = ("parameters", "seconds", "cpu_seconds")
"""Facts of the provenance that every trial has for itself; the others are shared by many."""
LARGEST = 1 << 30
"""Bytes that the members of a file may have together, before anything is unpacked."""


class TableFacts(BaseModel):
    """A table of a records file."""

    model_config = ConfigDict(strict=True, frozen=True)
    sha256: str
    rows: int


class Manifest(BaseModel):
    """The manifest of a records file; see `docs/records.md` for every field."""

    model_config = ConfigDict(strict=True, frozen=True)
    format: Literal["unseen records"]
    format_version: int
    study: str
    version: int
    scale: str
    question: str
    axes: list[str]
    notes: list[str]
    deviations: list[str]
    selection: str
    command: str
    partial: bool
    about: dict[str, Any]
    cost: dict[str, float]
    provenance: list[dict[str, Any]]
    files: dict[str, TableFacts]
    evaluations: dict[str, dict[str, Any]]
    trials: dict[str, dict[str, Any]]

    @property
    def name(self) -> str:
        """The study with its version."""
        return f"{self.study}@{self.version}"

    @property
    def file_name(self) -> str:
        """The name of the file."""
        return f"{self.name}-{self.scale}.zip"


@dataclass(frozen=True)
class RecordsFile:
    """An opened records file; its tables are shaped like those of a store. Also a source of ended trials."""

    path: Path
    manifest: Manifest
    entries: pd.DataFrame
    measures: pd.DataFrame
    curves: pd.DataFrame
    provenance: Mapping[str, Mapping[str, Any]]

    @property
    def study(self) -> str:
        """The study with its version: `quickstart@2`."""
        return self.manifest.name

    @property
    def scale(self) -> str:
        """The scale."""
        return self.manifest.scale

    @cached_property
    def records(self) -> pd.DataFrame:
        """One tidy row per number, as `Store.records` has it."""
        return records_table(self.measures, self.entries)

    @cached_property
    def runs(self) -> pd.DataFrame:
        """One row per trial with a typed column per option; see `runs_table`."""
        return runs_table(self.entries)

    def points(self) -> pd.DataFrame:
        """The thinned learning curves by trial, as `Store.points` has them."""
        return self.curves

    def evaluations_of_ended(self) -> dict[str, set[str]]:
        """The trials that have ended, with the ids of the evaluations that they have records of."""
        ended = self.entries["trial"][self.entries["status"].isin(ENDED)]
        evaluations: dict[str, set[str]] = {trial: set() for trial in ended}
        for trial, evaluation in self.measures[["trial", "evaluation_id"]].drop_duplicates().itertuples(index=False):
            evaluations[trial].add(evaluation)
        return evaluations

    def ended_trial(self, trial: str) -> EndedTrial:
        """Everything that the file has of a trial that has ended."""
        entry = self.entries[self.entries["trial"] == trial].iloc[0]
        ending = (
            entry["status"],
            int(entry["step"]),
            _whole(entry["best_step"]),
            _whole(entry["not_converged"]),
            entry["note"],
        )
        return EndedTrial(
            trial,
            canonical(self.manifest.trials[trial]),
            ending,
            self._points_by_trial.get(trial, []),
            self._records_by_trial.get(trial, {}),
            self.provenance.get(trial, {}),
        )

    def weights_of(self, trial: str) -> dict[str, bytes]:
        """A records file holds no weights."""
        return {}

    @cached_property
    def _points_by_trial(self) -> dict[str, list[tuple[Any, ...]]]:
        by_trial: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
        for trial, *point in _plain_rows(self.curves[list(CURVES)]):
            by_trial[trial].append(tuple(point))
        return by_trial

    @cached_property
    def _records_by_trial(self) -> dict[str, dict[str, list[tuple[Any, ...]]]]:
        by_trial: dict[str, dict[str, list[tuple[Any, ...]]]] = defaultdict(lambda: defaultdict(list))
        for trial, evaluation, *record in _plain_rows(self.measures[list(RECORDS)]):
            by_trial[trial][evaluation].append(tuple(record))
        return by_trial


def load(path: str | Path) -> RecordsFile:
    """Open a records file; a damaged, foreign or newer one is refused by name."""
    path = Path(path)
    manifest, tables = _read_members(path)
    columns = {}
    for name, types in TABLES.items():
        try:
            columns[name] = read_table(tables[name], types)
        except TableError as error:
            raise CheckFailed(f"{path} is damaged: {name}: {error}") from error
        rows = len(next(iter(columns[name].values())))
        if rows != manifest.files[name].rows:
            raise _damaged(path, f"{name} has {rows} rows, not {manifest.files[name].rows}")
    _check_keys(path, manifest, columns)
    trials = columns["trials.csv"]
    return RecordsFile(
        path,
        manifest,
        _entries(manifest, trials),
        _frame(columns["records.csv"], ["value", "standard_error"]),
        _frame(columns["curves.csv"], ["value"]),
        _provenance(manifest, trials),
    )


# -- reading ----------------------------------------------------------------------------------------------------------


def _read_members(path: Path) -> tuple[Manifest, dict[str, bytes]]:
    """The manifest and the bytes of the tables, whose checksums are right."""
    members = (MANIFEST, *TABLES)
    if path.exists() and not path.is_file():  # a pipe or a device would be read for ever
        raise UsageError(f"{path} is not a regular file; give a records file")
    try:
        with zipfile.ZipFile(path) as archive:
            entries = {entry.filename: entry for entry in archive.infolist()}
            if MANIFEST not in entries:
                raise UsageError(f"{path} is not a records file: it has no {MANIFEST}")
            foreign = sorted(set(entries) - set(members))
            # The sizes in the directory bound what is read: zipfile never unpacks more than they promise.
            size = sum(entry.file_size for entry in entries.values())
            if size > LARGEST:
                raise UsageError(f"{path} would unpack to {size} bytes; a records file has at most {LARGEST}")
            manifest = _parse_manifest(path, archive.read(entries[MANIFEST]))
            if foreign or len(archive.infolist()) > len(entries):
                raise _damaged(path, f"it holds '{foreign[0]}'" if foreign else "it holds a file twice")
            for name in members:
                if name not in entries or (name in TABLES and name not in manifest.files):
                    raise _damaged(path, f"it has no {name}")
            tables = {name: archive.read(entries[name]) for name in TABLES}
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise CheckFailed(f"{path} is not a records file, or a damaged one: {error}") from error
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror or error}") from error
    for name, data in tables.items():
        if hashlib.sha256(data).hexdigest() != manifest.files[name].sha256:
            raise _damaged(path, f"the contents of {name} are not those that were written")
    return manifest, tables


def _parse_manifest(path: Path, data: bytes) -> Manifest:
    try:
        # NaN and Infinity are Python's, not JSON's: other programs could not read such a manifest.
        content = json.loads(data, parse_constant=_refuse_constant)
        canonical(content).encode()  # lone surrogates, which no identity of ours has, can't be
    except (ValueError, RecursionError) as error:
        raise CheckFailed(f"{path} is damaged: its {MANIFEST} can't be read: {error}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise UsageError(f"{path} is not a records file: its {MANIFEST} is of another program")
    version = content.get("format_version")
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise UsageError(
            f"{path} was written by a newer release of Unseen (its format is {version}, this release reads "
            f"{FORMAT_VERSION}); open it with that release"
        )
    try:
        return Manifest.model_validate(content)
    except (ValidationError, RecursionError) as error:
        detail = error.errors()[0] if isinstance(error, ValidationError) else {"loc": (), "msg": "it is too deep"}
        where = ".".join(map(str, detail["loc"]))
        raise _damaged(path, f"its {MANIFEST} is wrong at '{where}': {detail['msg']}") from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _check_keys(path: Path, manifest: Manifest, columns: Mapping[str, Mapping[str, Sequence[Any]]]) -> None:
    """Refuse ids that do not follow from their identities, and rows of trials, evaluations or splits that are not there."""
    for ids in (manifest.trials, manifest.evaluations):
        for key, identity in ids.items():
            if digest(identity) != key:
                raise _damaged(path, f"the identity of {key} has the id {digest(identity)}")
    for key, identity in manifest.trials.items():
        complete = isinstance(identity.get("seed"), int) and isinstance(identity.get("data_seed"), int)
        for component in COMPONENTS:
            config = identity.get(component)
            complete &= isinstance(config, dict) and "name" in config
        if not complete:
            raise _damaged(path, f"the identity of {key} is not that of a trial")
    trials = columns["trials.csv"]
    for trial, seed, data_seed in zip(trials["trial"], trials["seed"], trials["data_seed"], strict=True):
        identity = manifest.trials.get(trial, {})
        if (identity.get("seed"), identity.get("data_seed")) != (seed, data_seed):
            raise _damaged(path, f"the seeds of trial {trial} are not those of its identity")
    for levels in dict.fromkeys(trials["levels"]):
        if not _is_levels(levels):
            raise _damaged(path, f"the levels {levels[:80]!r} are not a JSON object of numbers and texts")
    for status in dict.fromkeys(trials["status"]):
        if status not in STATUSES:
            raise _damaged(path, f"a trial has the unknown status {status[:40]!r}")
    for index in dict.fromkeys(trials["provenance"]):
        if index is not None and not 0 <= index < len(manifest.provenance):
            raise _damaged(path, f"there is no provenance number {index}")
    entered = set(zip(trials["trial"], trials["evaluation_id"], strict=True))
    trial_ids = set(trials["trial"])
    for _, evaluation in entered:
        if evaluation not in manifest.evaluations:
            raise _damaged(path, f"evaluation {evaluation} has no identity")
    records = columns["records.csv"]
    for pair in dict.fromkeys(zip(records["trial"], records["evaluation_id"], strict=True)):
        if pair not in entered:
            raise _damaged(path, f"it has records of trial {pair[0]} in an evaluation that it was not entered with")
    for trial in dict.fromkeys(columns["curves.csv"]["trial"]):
        if trial not in trial_ids:
            raise _damaged(path, f"it has a curve of trial {trial}, which is not in trials.csv")
    for name, key_columns in {"records.csv": RECORD_KEY, "curves.csv": POINT_KEY}.items():
        keys = list(zip(*(columns[name][column] for column in key_columns), strict=True))
        if len(set(keys)) < len(keys):
            raise _damaged(path, f"{name} has a row twice")


def _is_levels(text: str) -> bool:
    try:
        levels = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(levels, dict) and all(isinstance(level, str | int | float) for level in levels.values())


def _entries(manifest: Manifest, trials: Mapping[str, list[Any]]) -> pd.DataFrame:
    """The table of entries as `Store.entries` has it."""
    texts = {}
    for key, identity in manifest.trials.items():
        texts[key] = {component: canonical(identity[component]) for component in COMPONENTS}
    columns: dict[str, Any] = {
        "scale": [manifest.scale] * len(trials["trial"]),
        "levels": trials["levels"],
    }
    for component in COMPONENTS:
        columns[component] = [texts[trial][component] for trial in trials["trial"]]
    columns |= {name: trials[name] for name in TRIALS if name not in ("levels", "provenance", *MEASURED)}
    return pd.DataFrame(columns)


def _provenance(manifest: Manifest, trials: Mapping[str, list[Any]]) -> dict[str, dict[str, Any]]:
    facts: dict[str, dict[str, Any]] = {}
    for row, trial in enumerate(trials["trial"]):
        index = trials["provenance"][row]
        if index is not None and trial not in facts:
            measured = {name: trials[name][row] for name in MEASURED if trials[name][row] is not None}
            facts[trial] = {**manifest.provenance[index], **measured}
    return facts


def _frame(columns: Mapping[str, list[Any]], numbers: Sequence[str]) -> pd.DataFrame:
    """A table in which missing numbers are NaN."""
    return pd.DataFrame(columns).astype(dict.fromkeys(numbers, float))


def _plain_rows(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    """Rows as SQLite has them: missing numbers are None."""
    columns = []
    for name in frame.columns:
        columns.append([None if value != value else value for value in frame[name].tolist()])
    return list(zip(*columns, strict=True))


def _whole(value: Any) -> int | None:
    return None if pd.isna(value) else int(value)


def _damaged(path: Path, why: str) -> CheckFailed:
    return CheckFailed(f"{path} is damaged: {why}")
