"""The store: one SQLite file, with weights and checkpoints as safetensors beside it.

    DIR/store.sqlite                trials, evaluations, curves, records, failures, provenance
    DIR/store.lock, store.owner     held by the one writer; its process and host
    DIR/checkpoints/HASH.safetensors
    DIR/weights/TRIAL.SELECTION.safetensors

A file is written under a temporary name, synced and renamed before the one transaction that names it, so every file that
the database names is whole.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import pandas as pd
from filelock import FileLock

from unseen.config import canonical, digest
from unseen.errors import CheckFailed, UsageError
from unseen.files import PARTIAL
from unseen.store.checksums import KEY, Columns, NotANumber, find_damaged, frame, pieces, write_checksums
from unseen.store.directory import (
    check_directory,
    hash_bytes,
    own_files,
    read_file,
    take_lock,
    weights_name,
    write_file,
)
from unseen.store.schema import (
    FILE,
    FOLDERS,
    Evaluated,
    Finished,
    Outcome,
    checkpoint_log,
    explain_errors,
    open_to_read,
    open_to_write,
)
from unseen.store.tables import curves_table, records_table
from unseen.studies.trial import COMPONENTS, describe_difference, evaluation_id, identity_text

if TYPE_CHECKING:
    from unseen.studies.trial import Entry
    from unseen.training.evaluate import Measure

ENDED = ("finished", "stopped", "diverged")
SELECTIONS = ("last", "best")
"""The weights of a trial that are evaluated."""
_REMEMBERED = "remember "
"""The prefix of the keys of `remember` in the database, and among the notes."""
CLAIMS = "claims"
"""The key of the claims that were registered before the first run."""
REGISTERED = "registration time"
"""The key of the time at which these claims were registered."""
REGISTRATION_NOTE = _REMEMBERED + REGISTERED
"""The key of that time among the notes: two directories with the same claims may differ in it."""
_AMONG = "IN (SELECT value FROM json_each(?))"
"""A condition on any number of ids, passed as one JSON list: SQLite limits the number of parameters of a query."""
_SET_META = "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
_HASH = 16
"""The characters of a trial's id, and of a checkpoint's hash, with which the names of their files begin."""
_ENTERED = (
    "entries JOIN trials ON entries.trial = trials.number JOIN evaluations ON entries.evaluation = evaluations.number"
)
"""Every entry with its trial and its evaluation."""
_ANNOUNCED = "checkpoint files"
EVALUATED_LATER = "evaluated_later"
"""In the provenance of a trial: where each evaluation was made that was added after the trial had ended, by its id."""


def remembered_notes(notes: Mapping[str, Any]) -> dict[str, Any]:
    """The values that `Store.remember` stored, by key, from the notes of a store or of its records file."""
    remembered = {}
    for key, value in notes.items():
        if key.startswith(_REMEMBERED):
            remembered[key.removeprefix(_REMEMBERED)] = value
    return remembered


def join_notes(notes: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """The notes of a store with those of another that are joined to it; where they differ, its own hold.

    What both registered was registered when the first of them did.
    """
    joined = {**others, **notes}
    claims = _REMEMBERED + CLAIMS
    time = REGISTRATION_NOTE
    if time in notes and time in others and notes.get(claims) == others.get(claims):
        joined[time] = min(notes[time], others[time])
    return joined


@dataclass(frozen=True)
class Configuration:
    """The trials at one combination of axis levels: their work, and their (seed, data seed) pairs."""

    work: Mapping[str, Any]
    seeds: set[tuple[int, int]]

    def conflict(self, other: Configuration, evaluation: bool = True) -> str:
        """Why two can't be the same configuration, in words; empty if they can. Without `evaluation`, theirs may differ."""
        own_work = self.work if evaluation else _without_evaluation(self.work)
        other_work = other.work if evaluation else _without_evaluation(other.work)
        if own_work != other_work:
            return describe_difference(own_work, other_work)
        seeds = self.seeds | other.seeds
        own_data = all(seed == data_seed for seed, data_seed in seeds)
        shared_data = len({data_seed for _, data_seed in seeds}) == 1
        if own_data or shared_data:
            return ""
        return "each seed has its own data in one and all share a data seed in the other"


class Store:
    """A directory of records: `with Store.read(path) as store` to look, `with Store.write(path) as store` to add."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: FileLock | None) -> None:
        self.path = path
        self._db = connection
        self._lock = lock
        self._swept = False
        connection.row_factory = sqlite3.Row

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Open an existing store for reading; it may be written by another process at the same time."""
        return cls(Path(path), open_to_read(Path(path)), None)

    @classmethod
    def write(cls, path: str | Path) -> Self:
        """Open a store for writing, or make one in a new or empty directory; refused while another process writes."""
        path = Path(path)
        if ".." in path.parts:  # else a folder before it that does not exist would be made on the way
            path = path.resolve()
        try:
            check_directory(path)
            for folder in ("", *FOLDERS):
                (path / folder).mkdir(parents=True, exist_ok=True)
            # Before the database is opened, which may migrate it: two processes must not do that at once.
            lock = take_lock(path)
        except OSError as error:
            raise UsageError(f"{path} can't be written: {error.strerror}") from error
        try:
            store = cls(path, open_to_write(path), lock)
            for file in own_files(path, "weights"):  # only now: there may be thousands
                if file.suffix == PARTIAL and store._numbers([file.name[:_HASH]]):  # a kill left it; another's stays
                    file.unlink()
            return store
        except BaseException:
            lock.release()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the database and give up the lock."""
        self._db.close()
        if self._lock is not None:
            self._lock.release()

    # -- writing ------------------------------------------------------------------------------------------------

    def set_work(self, work: Mapping[str, Any]) -> None:
        """Note the work that this directory is for; one that holds other work is refused. The evaluation may change."""
        old_work = self.work
        new_work = json.loads(canonical(work))
        if not old_work:
            with self._transaction():
                self._db.execute("INSERT INTO meta VALUES ('work', ?)", (canonical(work),))
                # No trial of this store began earlier, which is what a claim's registration asks (`find_first_run`).
                # In microseconds: another directory may have been begun, and even finished, in the same second.
                began = datetime.now(UTC).isoformat(timespec="microseconds")
                self._db.execute("INSERT INTO meta VALUES ('began', ?)", (canonical(began),))
        elif _without_evaluation(old_work) == _without_evaluation(new_work):
            with self._transaction():
                self._db.execute("UPDATE meta SET value = ? WHERE key = 'work'", (canonical(work),))
        else:
            raise UsageError(
                f"{self.path} holds other work: {describe_difference(old_work, new_work)}. "
                "Give a new directory, or the options it was made with"
            )

    def remember(self, key: str, value: Any) -> None:
        """Keep a value (plain data) under a key, in place of an earlier one."""
        with self._transaction():
            self._db.execute(_SET_META, (_REMEMBERED + key, canonical(value)))

    def recall(self, key: str, default: Any = None) -> Any:
        """The value that was kept under a key; without one, the default."""
        return self._meta(_REMEMBERED + key, default)

    def note_environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Note environment variables that change numbers, unless some were noted before; returns those that hold."""
        with self._transaction():
            self._db.execute("INSERT OR IGNORE INTO meta VALUES ('environment', ?)", (canonical(variables),))
        return dict(self._meta("environment"))

    def describe(self, facts: Mapping[str, Any]) -> None:
        """Note the facts about the study that a reader needs: its question, axes, notes, … (`studies.description`).

        Unlike `set_work` this is not an identity: a question may be reworded.
        """
        with self._transaction():
            self._db.execute(_SET_META, ("study", json.dumps(facts)))

    def add(self, entries: Sequence[Entry], scale: str = "") -> None:
        """Enter trials that are not there yet, as pending, with their levels and evaluations.

        Seeds may be added. A configuration that holds other work, or is no longer in the study, is refused. If it is
        evaluated differently from now on, that holds for all its trials: those that have ended stay so, and wait for
        their evaluation (`unevaluated`).
        """
        new: dict[str, Configuration] = {}
        for entry in entries:
            trial = entry.trial
            key = canonical(dict(entry.levels))
            if key not in new:
                new[key] = Configuration(trial.work, set())
            new[key].seeds.add((trial.seed, trial.data_seed))
        is_new = self.is_new
        if not is_new:
            self._refuse_other_work(new, scale)
        # A study's own order, which neither the ids (hashes) nor the order in which trials end would give back.
        position = {levels: i for i, levels in enumerate(new)}
        evaluations = {evaluation_id(e.trial.evaluation): e.trial.evaluation for e in entries}
        with self._transaction():
            self._db.executemany(
                "INSERT OR IGNORE INTO trials (id, identity, seed, data_seed) VALUES (?, ?, ?, ?)",
                ((e.trial.id, e.trial.identity, e.trial.seed, e.trial.data_seed) for e in entries),
            )
            self._db.executemany(
                "INSERT OR IGNORE INTO evaluations (id, identity) VALUES (?, ?)",
                [(key, identity_text(evaluation)) for key, evaluation in evaluations.items()],
            )
            numbers = self._numbers([e.trial.id for e in entries])
            evaluation_numbers = self._evaluation_numbers()
            rows = []
            by_levels = {}
            for entry in entries:
                levels = json.dumps(dict(entry.levels), ensure_ascii=False)
                evaluation = evaluation_numbers[evaluation_id(entry.trial.evaluation)]
                key = canonical(dict(entry.levels))
                by_levels[key] = evaluation
                rows.append((numbers[entry.trial.id], scale, evaluation, position[key], levels))
            changed = set() if is_new else self._change_evaluations(scale, by_levels)
            self._db.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?)", rows)
            write_checksums(self._db, ("trials", "entries"), {*numbers.values(), *changed})

    def _refuse_other_work(self, new: Mapping[str, Configuration], scale: str) -> None:
        """Refuse new configurations, by their levels, that differ from those the store has of this scale."""
        self.check("trials", "entries")
        for (old_scale, levels), old in self.configurations().items():
            if old_scale != scale:
                continue
            if levels not in new:
                raise UsageError(
                    f"{self.path} holds other work: {levels} is not in the study as it is now. Give a new directory"
                )
            conflict = old.conflict(new[levels], evaluation=False)
            if conflict:
                raise UsageError(f"{self.path} holds other work at {levels}: {conflict}. Give a new directory")

    def _change_evaluations(self, scale: str, evaluations: Mapping[str, int]) -> set[int]:
        """Let every trial at these levels (canonical JSON) have this evaluation; returns the numbers of those that had
        another one."""
        changed = []
        for row in self._rows("SELECT * FROM entries WHERE scale = ?", scale):
            evaluation = evaluations.get(canonical(json.loads(row["levels"])), row["evaluation"])
            if evaluation != row["evaluation"]:
                changed.append((tuple(row), evaluation))
        # All are removed before the first is entered again: two evaluations of a trial may change places, and the key of
        # an entry includes its evaluation.
        for (trial, _, old, _, _), _ in changed:
            self._db.execute(
                "DELETE FROM entries WHERE trial = ? AND scale = ? AND evaluation = ?", (trial, scale, old)
            )
        for (trial, _, _, position, levels), evaluation in changed:
            values = (trial, scale, evaluation, position, levels)
            self._db.execute("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?)", values)
        return {row[0] for row, _ in changed}

    def reopen(self, trials: Sequence[str]) -> None:
        """Make ended trials pending: they are trained again from step 0, with the same numbers. Their records stay."""
        numbers = self._numbers(trials).values()
        with self._transaction():
            self._for_each("UPDATE trials SET status = 'pending', step = 0 WHERE number = ?", numbers)
            for table in ("chunks", "curves", "failures"):
                self._for_each(f"DELETE FROM {table} WHERE trial = ?", numbers)
            write_checksums(self._db, ("trials", "curves"), numbers)

    def commit(self, stack: str, trials: Sequence[str], outcome: Outcome) -> None:
        """One chunk's outcome, in one transaction: the new checkpoint (None: the stack is done), curves, records.

        Nothing is written for trials that had ended before.
        """
        with explain_errors(self.path):
            pending = self._numbers([trial for trial, status in self.status(trials).items() if status == "pending"])
            finished = {trial: done for trial, done in (outcome.finished or {}).items() if trial in pending}
            # Files first, then the transaction that names them: see `_replacing`.
            weights = []
            for trial, done in finished.items():
                for selection, data in done.weights.items():
                    file, sha256 = write_file(self.path, "weights", weights_name(trial, selection), data)
                    weights.append((pending[trial], selection, file, sha256))
            checkpoints = {} if outcome.checkpoint is None else {stack: (trials, outcome.checkpoint)}
            with self._replacing(stack, checkpoints):
                spans = {pending[trial]: span for trial, span in (outcome.spans or {}).items() if trial in pending}
                self._db.executemany(
                    "UPDATE trials SET step = ? WHERE number = ?",
                    [(span.end, number) for number, span in spans.items()],
                )
                self._db.executemany(
                    "INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?)",
                    [(n, s.begin, s.end, s.seconds, s.cpu_seconds, s.worker) for n, s in spans.items()],
                )
                self._db.executemany(
                    "INSERT OR REPLACE INTO curves VALUES (?, ?, ?, ?, ?)",
                    [(pending[p.key], p.step, p.split, p.metric, p.value) for p in outcome.points if p.key in pending],
                )
                for trial, done in finished.items():
                    self._finish(pending[trial], done)
                self._db.executemany("INSERT OR REPLACE INTO weights VALUES (?, ?, ?, ?)", weights)
                # In the same transaction as the checksums that cover them.
                evaluated = self._add_evaluated(outcome.evaluated) if outcome.evaluated else []
                numbers = {*pending.values(), *evaluated}
                write_checksums(self._db, ("trials", "curves", "records", "overall"), numbers)

    def _add_evaluated(self, evaluated: Mapping[str, Evaluated]) -> list[int]:
        """Add the records of further evaluations of ended trials; returns the numbers of these trials.

        What a trial was trained with stays its provenance; where it was evaluated is noted beside it.
        """
        missing = self.unevaluated(list(evaluated))
        numbers = self._numbers(list(missing))
        for trial, number in numbers.items():
            done = evaluated[trial]
            measures = {key: rows for key, rows in done.measures.items() if key in missing[trial]}
            self._add_measures(number, measures)
            self._db.execute("UPDATE trials SET note = ? WHERE number = ?", (done.note, number))
            self._db.execute("DELETE FROM failures WHERE trial = ?", (number,))
            (row,) = self._rows_of("provenance", trial)
            facts = json.loads(row["facts"])
            facts[EVALUATED_LATER] = facts.get(EVALUATED_LATER, {}) | {key: dict(done.provenance) for key in measures}
            self._db.execute("UPDATE provenance SET facts = ? WHERE trial = ?", (canonical(facts), number))
        return list(numbers.values())

    def _finish(self, number: int, done: Finished) -> None:
        self._db.execute(
            "UPDATE trials SET status = ?, step = ?, best_step = ?, not_converged = ?, note = ? WHERE number = ?",
            (done.status, done.step, done.best_step, done.not_converged, done.note, number),
        )
        self._add_measures(number, done.measures)
        facts = dict(done.provenance)
        # With the trial, because it may be merged into a directory that was begun at another time.
        if self.began is not None:
            facts.setdefault("started", self.began)
        self._db.execute("INSERT OR REPLACE INTO provenance VALUES (?, ?)", (number, canonical(facts)))

    def _add_measures(self, number: int, by_evaluation: Mapping[str, Mapping[str, Sequence[Measure]]]) -> None:
        evaluation_numbers = self._evaluation_numbers()
        rows = []
        for evaluation, by_selection in by_evaluation.items():
            for selection, measures in by_selection.items():
                key = (number, evaluation_numbers[evaluation], selection)
                rows += [(*key, m.split, m.factor, m.level, m.metric, m.value, m.standard_error, m.n) for m in measures]
        self._db.executemany("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def split(self, stack: str, checkpoints: Mapping[str, tuple[Sequence[str], bytes]]) -> None:
        """Replace a stack's checkpoint by checkpoints of smaller stacks: {name: (trials, checkpoint)}."""
        with explain_errors(self.path), self._replacing(stack, checkpoints):
            pass

    def fail(self, trial: str, cause: str, traceback: str = "") -> None:
        """Note that a trial failed, with its cause; its checkpoint stays. One that had ended, whose further evaluation
        failed, stays ended."""
        with self._transaction():
            self._db.execute(
                "INSERT OR REPLACE INTO failures SELECT number, step, ?, ? FROM trials WHERE id = ?",
                (cause, traceback, trial),
            )
            self._db.execute("UPDATE trials SET status = 'failed' WHERE id = ? AND status = 'pending'", (trial,))
            write_checksums(self._db, ("trials",), self._numbers([trial]).values())

    def retry(self, trials: Sequence[str]) -> None:
        """Forget the failures of trials: they continue from where they were."""
        failed = self._numbers([trial for trial, status in self.status(trials).items() if status == "failed"]).values()
        with self._transaction():
            self._for_each("DELETE FROM failures WHERE trial = ?", self._numbers(trials).values())
            self._for_each("UPDATE trials SET status = 'pending' WHERE number = ?", failed)
            write_checksums(self._db, ("trials",), failed)

    def discard(self, stack: str) -> None:
        """Discard a stack's checkpoint: its trials will be trained from step 0 and get the same numbers, bit for bit."""
        (row,) = self._rows("SELECT trials FROM checkpoints WHERE stack = ?", stack)
        numbers = self._numbers(json.loads(row["trials"])).values()
        with explain_errors(self.path), self._replacing(stack, {}):
            self._for_each("UPDATE trials SET step = 0 WHERE number = ?", numbers)
            for table in ("chunks", "curves"):
                self._for_each(f"DELETE FROM {table} WHERE trial = ?", numbers)
            write_checksums(self._db, ("trials", "curves"), numbers)

    @contextmanager
    def _replacing(self, stack: str, checkpoints: Mapping[str, tuple[Sequence[str], bytes]]) -> Iterator[None]:
        """A transaction in which a stack's checkpoint is replaced by others; unused files are removed afterwards.

        The order matters: files are synced and renamed before the transaction that names them commits, and are removed
        only after it, so that a kill at any moment leaves every named file whole.
        """
        self._announce_checkpoints([hash_bytes(data)[:_HASH] for _, data in checkpoints.values()])
        rows = []
        for name, (trials, data) in checkpoints.items():
            file, sha256 = write_file(self.path, "checkpoints", f"{hash_bytes(data)[:_HASH]}.safetensors", data)
            rows.append((name, canonical(list(trials)), file, sha256))
        replaced = set()
        for name in {stack, *checkpoints}:
            replaced |= {row["file"] for row in self._rows("SELECT file FROM checkpoints WHERE stack = ?", name)}
        with self._transaction():
            yield
            self._db.execute("DELETE FROM checkpoints WHERE stack = ?", (stack,))
            self._db.executemany("INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?)", rows)
        if not self._swept:  # an earlier process may have been killed before it removed a file
            self._sweep()
            self._swept = True
        # Only the files of these stacks: listing thousands after every chunk would take longer than all the rest.
        for file in replaced:
            if not self._rows("SELECT 1 FROM checkpoints WHERE file = ?", file):
                (self.path / file).unlink(missing_ok=True)

    def _sweep(self) -> None:
        """Remove the checkpoints that this store announced and no longer uses; all other files stay."""
        used = self._checkpoint_hashes()
        announced = set(self.recall(_ANNOUNCED, []))
        for file in own_files(self.path, "checkpoints"):
            if file.name[:_HASH] in announced and file.name[:_HASH] not in used:
                file.unlink()

    def _announce_checkpoints(self, hashes: Sequence[str]) -> None:
        """Note the hashes of checkpoints before their files are written, so that a file which a kill leaves behind is
        known to be ours. Those that are gone are forgotten."""
        earlier = self.recall(_ANNOUNCED)
        if not hashes and earlier is not None:
            return
        present = {file.name[:_HASH] for file in own_files(self.path, "checkpoints")}
        ours = self._checkpoint_hashes() | set(earlier or ())  # an older release announced nothing
        self.remember(_ANNOUNCED, sorted(ours & present | set(hashes)))

    def _checkpoint_hashes(self) -> set[str]:
        """The hashes in the names of the checkpoints that are in use."""
        return {Path(row["file"]).name[:_HASH] for row in self._rows("SELECT file FROM checkpoints")}

    # -- reading ------------------------------------------------------------------------------------------------

    @property
    def is_new(self) -> bool:
        """Whether no trial was ever entered. Checksums without trials are those of a damaged store, which is not new."""
        return not self._rows("SELECT 1 FROM trials UNION ALL SELECT 1 FROM checksums LIMIT 1")

    @property
    def work(self) -> dict[str, Any]:
        """The work that this directory holds: `{"study": "name@version"}`, or the configs of a single `train`."""
        work: dict[str, Any] = self._meta("work", {})
        described = isinstance(work, dict) and (
            isinstance(work.get("study"), str) or all(isinstance(work.get(name), dict) for name in COMPONENTS)
        )
        if work != {} and not described:
            raise CheckFailed(f"{self.path / FILE} is damaged: it does not say what it is for")
        return work

    @property
    def description(self) -> dict[str, Any]:
        """The facts about its study that the store was given with `describe`; empty in stores of older releases."""
        facts = self._meta("study")
        return facts if isinstance(facts, dict) else {}

    @property
    def began(self) -> str | None:
        """When this directory was begun: no trial of it was begun earlier, unless it was taken over."""
        began: str | None = self._meta("began")
        return began

    def notes(self) -> dict[str, Any]:
        """Further notes on the work, such as its registration."""
        # The list of files that may be removed is left out: it is about this directory and must not be copied to another.
        return self._objects(
            "SELECT key, value FROM meta WHERE key NOT IN ('work', 'environment', 'study', 'began', ?) ORDER BY key",
            _REMEMBERED + _ANNOUNCED,
        )

    def positions(self, scale: str) -> dict[tuple[str, str], int]:
        """The position of its configuration in the study, by trial and evaluation."""
        rows = self._rows(
            f"SELECT trials.id AS id, evaluations.id AS evaluation, position FROM {_ENTERED} WHERE scale = ?", scale
        )
        return {(row["id"], row["evaluation"]): row["position"] for row in rows}

    def identities(self) -> dict[str, dict[str, Any]]:
        """The identity of every trial."""
        return self._objects("SELECT id, identity FROM trials")

    def evaluation_identities(self) -> dict[str, dict[str, Any]]:
        """The identity of every evaluation."""
        return self._objects("SELECT id, identity FROM evaluations")

    def facts(self) -> dict[str, dict[str, Any]]:
        """The provenance of every trial that has ended."""
        return self._objects("SELECT id, facts FROM provenance JOIN trials ON trial = number")

    def configurations(self) -> dict[tuple[str, str], Configuration]:
        """The trials at each combination of levels, by (scale, levels as canonical JSON)."""
        configurations: dict[tuple[str, str], Configuration] = {}
        with explain_errors(self.path):
            for row in self._db.execute(
                "SELECT scale, levels, trials.identity AS identity, evaluations.identity AS evaluation, seed, data_seed "
                f"FROM {_ENTERED} GROUP BY scale, levels, seed, data_seed"
            ):
                key = (row["scale"], canonical(json.loads(row["levels"])))
                if key not in configurations:
                    identity = json.loads(row["identity"])
                    work = {component: identity[component] for component in COMPONENTS}
                    configurations[key] = Configuration({**work, "evaluation": json.loads(row["evaluation"])}, set())
                configurations[key].seeds.add((row["seed"], row["data_seed"]))
        return configurations

    def evaluations_of(self, trials: Collection[str]) -> dict[str, dict[str, dict[str, Any]]]:
        """All evaluations that trials were entered with, at any scale: by trial, their identities by id."""
        rows = self._rows(
            "SELECT trials.id AS id, evaluations.id AS evaluation, evaluations.identity AS identity "
            f"FROM {_ENTERED} WHERE trials.id {_AMONG} ORDER BY trial, evaluation",
            json.dumps(list(trials)),
        )
        identities: dict[str, dict[str, dict[str, Any]]] = {}
        for row in rows:
            identities.setdefault(row["id"], {})[row["evaluation"]] = json.loads(row["identity"])
        return identities

    def unevaluated(self, trials: Collection[str] | None = None) -> dict[str, list[str]]:
        """Trials (of these) that have ended but wait for evaluations, with the ids of these evaluations.

        Every evaluation of a trial leaves records, unless the trial has diverged: so those without any are missing.
        """
        among = "" if trials is None else f"trials.id {_AMONG} AND "
        rows = self._rows(
            f"SELECT DISTINCT trials.id AS id, evaluations.id AS evaluation FROM {_ENTERED} "
            f"WHERE {among}status IN ('finished', 'stopped') AND NOT EXISTS (SELECT 1 FROM records "
            "WHERE records.trial = entries.trial AND records.evaluation = entries.evaluation) "
            "ORDER BY entries.trial, entries.evaluation",
            *([] if trials is None else [json.dumps(list(trials))]),
        )
        missing: dict[str, list[str]] = {}
        for row in rows:
            missing.setdefault(row["id"], []).append(row["evaluation"])
        return missing

    def trials_with_weights(self) -> set[str]:
        """The trials of which weights are stored, best or last."""
        return {row["id"] for row in self._rows("SELECT DISTINCT id FROM weights JOIN trials ON trial = number")}

    def evaluation_weights(self, trials: Collection[str]) -> dict[str, dict[str, str]]:
        """For ended trials whose weights were kept: the file's selection for each selection that is evaluated.

        Both the last and the best weights are evaluated. Where the last are the best, one file is enough.
        """
        rows = self._rows(
            "SELECT id, selection, step, best_step FROM weights JOIN trials ON trial = number "
            f"WHERE id {_AMONG} ORDER BY number",
            json.dumps(list(trials)),
        )
        files: dict[str, dict[str, str]] = {}
        for row in rows:
            if row["selection"] not in SELECTIONS:
                continue
            same = SELECTIONS if row["step"] == row["best_step"] else ()
            chosen = files.setdefault(row["id"], {})
            for selection in same:
                chosen.setdefault(selection, row["selection"])
            chosen[row["selection"]] = row["selection"]
        return {trial: chosen for trial, chosen in files.items() if len(chosen) == len(SELECTIONS)}

    def status(self, trials: Sequence[str] | None = None) -> dict[str, str]:
        """The status of every trial, or of some, by id: pending, finished, stopped, diverged or failed."""
        if trials is None:
            return {row["id"]: row["status"] for row in self._rows("SELECT id, status FROM trials")}
        return {trial: status for trial, (status, _) in self.endings(trials).items()}

    def endings(self, trials: Sequence[str]) -> dict[str, tuple[str, int]]:
        """The status and the step of trials, in the order of these."""
        rows = self._rows(f"SELECT id, status, step FROM trials WHERE id {_AMONG}", json.dumps(list(trials)))
        endings = {row["id"]: (row["status"], row["step"]) for row in rows}
        return {trial: endings[trial] for trial in trials if trial in endings}

    def rows(self, table: str, trial: str) -> list[tuple[Any, ...]]:
        """The rows of one trial in a table, with the id of the trial in place of its number.

        Records are without their evaluation, whose number has a meaning in this store only.
        """
        skipped = 2 if table == "records" else 1
        return [(trial, *tuple(row)[skipped:]) for row in self._rows_of(table, trial)]

    def evaluated(self, trial: str) -> dict[str, list[tuple[Any, ...]]]:
        """The records of one trial by the id of their evaluation; empty lists where there are none yet."""
        ids = {number: key for key, number in self._evaluation_numbers().items()}
        records: dict[str, list[tuple[Any, ...]]] = {ids[r["evaluation"]]: [] for r in self._rows_of("entries", trial)}
        for row in self._rows_of("records", trial):
            records.setdefault(ids[row["evaluation"]], []).append(tuple(row)[2:])
        return records

    def _rows_of(self, table: str, trial: str) -> list[sqlite3.Row]:
        key = KEY.get(table, "trial")
        return self._rows(f"SELECT * FROM {table} WHERE {key} = (SELECT number FROM trials WHERE id = ?)", trial)

    def _evaluation_numbers(self) -> dict[str, int]:
        return {row["id"]: row["number"] for row in self._rows("SELECT id, number FROM evaluations")}

    def _numbers(self, trials: Sequence[str]) -> dict[str, int]:
        """The numbers of trials, in the order of these: each store counts its own."""
        rows = self._rows(f"SELECT id, number FROM trials WHERE id {_AMONG}", json.dumps(trials))
        numbers = {row["id"]: row["number"] for row in rows}
        return {trial: numbers[trial] for trial in trials if trial in numbers}

    def check(self, *tables: str) -> None:
        """Refuse tables whose rows do not have the checksums that were written; the error names the table."""
        for table in tables:
            with self._snapshot(), explain_errors(self.path):
                self._check(table, pieces(self._db, f"SELECT * FROM {table}"))

    def checkpoints(self) -> Iterator[tuple[str, list[str], bytes]]:
        """(stack, trials, bytes) of every unfinished stack; a damaged file is an error that names it."""
        for row in self._rows("SELECT * FROM checkpoints ORDER BY stack"):
            yield row["stack"], json.loads(row["trials"]), read_file(self.path, row["file"], row["sha256"])

    def checkpoint(self, stack: str) -> bytes:
        """The checkpoint of an unfinished stack."""
        (row,) = self._rows("SELECT file, sha256 FROM checkpoints WHERE stack = ?", stack)
        return read_file(self.path, row["file"], row["sha256"])

    def damaged(self) -> dict[str, str]:
        """The stacks whose checkpoints can't be read, and why."""
        reasons = {}
        for row in self._rows("SELECT * FROM checkpoints ORDER BY stack"):
            try:
                read_file(self.path, row["file"], row["sha256"])
            except CheckFailed as error:
                reasons[row["stack"]] = str(error)
        return reasons

    def weights(self, trial: str, selection: str) -> tuple[str, bytes]:
        """(path, bytes) of a finished trial's weights."""
        rows = self._rows(
            "SELECT weights.* FROM weights JOIN trials ON trial = number WHERE id = ? AND selection = ?",
            trial,
            selection,
        )
        if not rows:
            raise UsageError(f"{self.path} has no weights '{selection}' for trial {trial}")
        return str(self.path / rows[0]["file"]), read_file(self.path, rows[0]["file"], rows[0]["sha256"])

    def records(self) -> pd.DataFrame:
        """One tidy row per (scale, levels, trial, selection, split, factor level, metric)."""
        return self.tables()[0]

    def tables(self, overall: bool = False) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Records and entries of one moment; `overall` leaves out the records of single levels of factors."""
        records, entries = self.measures(overall)
        return records_table(records, entries), entries

    def measures(self, overall: bool = False) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The same with records by the ids of trial and evaluation alone: each is there once, even if several scales contain it."""
        with self._snapshot():
            records = self._checked(
                "overall" if overall else "records", "trial, evaluation, selection, split, factor, level, metric"
            )
            ids = {number: key for key, number in self._evaluation_numbers().items()}
            records["evaluation_id"] = records.pop("evaluation").map(ids).astype(object)  # of an empty store, too
            return records, self.entries()

    def entries(self) -> pd.DataFrame:
        """One row per trial, scale and evaluation: its levels, the identities of its components, its step and its end."""
        with self._snapshot():
            self.check("trials", "entries")
            return self._frame(f"""SELECT scale, levels, json_extract(trials.identity, '$.task') AS task,
                json_extract(trials.identity, '$.model') AS model, json_extract(trials.identity, '$.recipe') AS recipe,
                trials.id AS trial, evaluations.id AS evaluation_id, seed, data_seed, status, trials.step, best_step, not_converged, note, cause
                FROM {_ENTERED} LEFT JOIN failures ON failures.trial = trials.number
                ORDER BY scale, position, seed, data_seed, trials.id, evaluations.id""")

    def trials(self) -> pd.DataFrame:
        """One row per trial: its step, and how it ended."""
        with self._snapshot():
            self.check("trials")
            return self._frame(
                "SELECT id AS trial, seed, data_seed, status, step, best_step, not_converged, note "
                "FROM trials ORDER BY seed, data_seed, id"
            )

    def curves(self) -> pd.DataFrame:
        """One row per point of a learning curve, with the levels of its trial."""
        with self._snapshot():
            return curves_table(self.points(), self.entries())

    def points(self) -> pd.DataFrame:
        """The same points by the id of their trial alone: a study may have millions."""
        return self._checked("curves", "trial, step, split, metric")

    def spans(self) -> pd.DataFrame:
        """One row per trial and chunk: the steps done in it, what they took, and where."""
        return self._with_ids(self._frame("SELECT * FROM chunks ORDER BY trial, begin"))

    def failures(self) -> pd.DataFrame:
        """One row per failed trial, with its traceback."""
        return self._with_ids(self._frame("SELECT * FROM failures"))

    def provenance(self) -> pd.DataFrame:
        """One row per trial that has ended: versions, machine, device, seconds and commit behind its records."""
        rows = self._with_ids(self._frame("SELECT trial, facts FROM provenance"))
        facts_by_run = []
        with explain_errors(self.path):
            for text in rows.facts:
                facts_by_run.append(json.loads(text))
        if not all(isinstance(facts, dict) for facts in facts_by_run):
            raise CheckFailed(f"{self.path / FILE} is damaged: it does not say where its runs come from")
        for facts in facts_by_run:
            facts.pop(EVALUATED_LATER, None)
        facts = pd.DataFrame(facts_by_run, index=rows.index)
        return pd.concat([rows[["trial"]], facts], axis=1)

    def _meta(self, key: str, default: Any = None) -> Any:
        """The value of a key in the table `meta`; without one, the default."""
        return self._objects("SELECT key, value FROM meta WHERE key = ?", key).get(key, default)

    def _objects(self, query: str, *values: str) -> dict[str, Any]:
        """The result of a query for a key and a text of JSON: the objects by key."""
        with explain_errors(self.path):
            return {key: json.loads(text) for key, text in self._rows(query, *values)}

    def _rows(self, query: str, *values: str | int) -> list[sqlite3.Row]:
        with explain_errors(self.path):
            return self._db.execute(query, values).fetchall()

    def _for_each(self, statement: str, numbers: Iterable[int]) -> None:
        """Execute a statement for each of these trials, given by their numbers; part of a transaction."""
        self._db.executemany(statement, [(number,) for number in numbers])

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with explain_errors(self.path), self._db:  # commits at the end, or rolls back if anything fails
            yield
        checkpoint_log(self._db)  # so that a copy of the one file has everything, however small the store

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        """While inside, all queries see the same state, even if a writer commits meanwhile."""
        if self._db.in_transaction:  # SQLite has no nested ones: the state is that of the outer snapshot
            yield
            return
        with explain_errors(self.path):
            # Deferred: SQLite fixes the state at the first query. In WAL mode this does not hold up the writer.
            self._db.execute("BEGIN")
            try:
                yield
            finally:
                self._db.rollback()

    def _checked(self, table: str, order: str) -> pd.DataFrame:
        """All rows of a table, if they are what was written."""
        with self._snapshot(), explain_errors(self.path):
            rows = frame(self._db, f"SELECT * FROM {table} ORDER BY {order}")
            self._check(table, [rows])
            # NaN is NULL in SQLite; a column of nothing else would come back as objects.
            numbers = [name for name in ("value", "standard_error") if name in rows]
            return self._with_ids(rows.astype(dict.fromkeys(numbers, float)))

    def _with_ids(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Rows with the ids of their trials in place of the numbers, in the order of the ids: a table of the same
        records is the same, in whichever order its trials were entered.
        """
        self.check("trials")
        # From the table that was checked, not from the index of its ids.
        ids = self._frame("SELECT number, id FROM trials NOT INDEXED").sort_values("id").set_index("number").id
        position = ids.index.get_indexer(pd.Index(rows.trial))
        if (position < 0).any():
            raise CheckFailed(f"{self.path / FILE} is damaged: it has rows of a trial that it does not have")
        return rows.assign(trial=ids.to_numpy()[position]).iloc[position.argsort(kind="stable")].reset_index(drop=True)

    def _check(self, table: str, rows: Iterable[Columns]) -> None:
        try:
            damaged = find_damaged(self._db, table, rows)
        except NotANumber as error:
            name = "records" if table == "overall" else table  # `overall` is a view of them
            raise CheckFailed(
                f"{self.path / FILE} is damaged: in its table {name}, the column {error.column} holds something that is "
                "not a number. Go back to a copy of it, or run into a new directory"
            ) from error
        if damaged:
            rows_of_trial = self._rows("SELECT id FROM trials WHERE number = ?", damaged[0])
            trial = rows_of_trial[0]["id"] if rows_of_trial else f"number {damaged[0]}"
            raise CheckFailed(
                f"{self.path / FILE} is damaged: in its {table}, the rows of trial {trial} are not those that were "
                "written. Go back to a copy of it, or run into a new directory"
            )

    def _frame(self, query: str) -> pd.DataFrame:
        with explain_errors(self.path):
            return frame(self._db, query)


def _without_evaluation(work: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in work.items() if name != "evaluation"}


def stack_name(trials: Sequence[str]) -> str:
    """The name of the stack of these trials in a store."""
    return digest(list(trials))


def split_stack(trials: Sequence[str], checkpoint: bytes) -> dict[str, tuple[list[str], bytes]]:
    """The checkpoints from which the trials of a stack continue alone: {name of the stack: (its trial, checkpoint)}."""
    from unseen.training.checkpoint import split_checkpoint  # loads torch

    alone = split_checkpoint(trials, checkpoint)
    return {stack_name([trial]): ([trial], data) for trial, data in alone.items()}
