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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import pandas as pd
from filelock import FileLock

from unseen.config import canonical, digest
from unseen.errors import CheckFailed, UsageError
from unseen.files import PARTIAL
from unseen.store.checksums import KEY, Columns, find_damaged, frame, pieces, write_checksums
from unseen.store.directory import check_directory, get, own_files, put, sha, take_lock, weights_name
from unseen.store.schema import FILE, FOLDERS, Finished, Outcome, explain_errors, open_to_read, open_to_write
from unseen.store.tables import curves_table, records_table
from unseen.studies.trial import COMPONENTS, describe_difference, evaluation_id, identity_text

if TYPE_CHECKING:
    from unseen.studies.trial import Entry

_TABLES_OF_TRIALS = ("curves", "chunks", "failures", "weights", "provenance")
ENDED = ("finished", "stopped", "diverged")


@dataclass(frozen=True)
class Configuration:
    """What is done at one combination of axis levels: its work, and the (seed, data seed) pairs there."""

    work: Mapping[str, Any]
    seeds: set[tuple[int, int]]

    def conflict(self, other: Configuration) -> str:
        """Why two can't be the same configuration, in words; empty if they can."""
        if self.work != other.work:
            return describe_difference(self.work, other.work)
        seeds = self.seeds | other.seeds
        own_data = all(seed == data_seed for seed, data_seed in seeds)
        shared_data = len({data_seed for _, data_seed in seeds}) == 1
        if own_data or shared_data:
            return ""
        return "each seed has its own data in one and all share a data seed in the other"


class Store:
    """A directory of records: `with Store.read(path) as store` to look, `with Store.write(path) as store` to add."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: FileLock | None) -> None:
        self.path, self._db, self._lock = path, connection, lock
        connection.row_factory = sqlite3.Row

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Open an existing store for reading; it may be written by another process at the same time."""
        return cls(Path(path), open_to_read(Path(path)), None)

    @classmethod
    def write(cls, path: str | Path) -> Self:
        """Open a store for writing, or make one in a new or empty directory; refused while somebody else writes."""
        path = Path(path)
        try:
            check_directory(path)
            for folder in ("", *FOLDERS):
                (path / folder).mkdir(parents=True, exist_ok=True)
            lock = take_lock(path)
        except OSError as error:
            raise UsageError(f"{path} can't be written: {error.strerror}") from error
        try:
            store = cls(path, open_to_write(path), lock)
            for file in own_files(path, "weights"):  # only now: there may be thousands
                if file.suffix == PARTIAL:  # a kill left it
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

    def claim(self, work: Mapping[str, Any]) -> None:
        """Note what this directory is for; a directory that holds other work is refused."""
        old_work = self.work
        new_work = json.loads(canonical(work))
        if not old_work:
            with self._transaction():
                self._db.execute("INSERT INTO meta VALUES ('work', ?)", (canonical(work),))
        elif old_work != new_work:
            raise UsageError(
                f"{self.path} holds other work: {describe_difference(old_work, new_work)}. "
                "Give a new directory, or the options it was made with"
            )

    def add(self, entries: Sequence[Entry], scale: str = "") -> None:
        """Enter trials that are not there yet, as pending, with their levels and evaluations.

        More seeds are welcome. A configuration that holds other work, or is no longer in the study, is refused. A trial
        that has ended and gets a further evaluation is trained again, to the same bits.
        """
        self.check("trials", "entries")
        new: dict[str, Configuration] = {}
        for entry in entries:
            trial = entry.trial
            key = canonical(dict(entry.levels))
            if key not in new:
                new[key] = Configuration(trial.work, set())
            new[key].seeds.add((trial.seed, trial.data_seed))
        for (old_scale, levels), old in self.configurations().items():
            if old_scale != scale:
                continue
            if levels not in new:
                raise UsageError(
                    f"{self.path} holds other work: {levels} is not in the study as it is now. Give a new directory"
                )
            conflict = old.conflict(new[levels])
            if conflict:
                raise UsageError(f"{self.path} holds other work at {levels}: {conflict}. Give a new directory")
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
            for entry in entries:
                levels = json.dumps(dict(entry.levels), ensure_ascii=False)
                evaluation = evaluation_numbers[evaluation_id(entry.trial.evaluation)]
                index = position[canonical(dict(entry.levels))]
                rows.append((numbers[entry.trial.id], scale, evaluation, index, levels))
            self._reopen([(row[0], row[2]) for row in rows])
            self._db.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?)", rows)
            write_checksums(self._db, ("trials", "entries"), numbers.values())

    def _reopen(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Make ended trials pending that were not evaluated in this way: pairs of trial and evaluation."""
        known = {tuple(row) for row in self._db.execute("SELECT trial, evaluation FROM entries")}
        entered = {trial for trial, _ in known}
        ended = {row["number"] for row in self._db.execute("SELECT number FROM trials WHERE status != 'pending'")}
        missing = {trial for trial, evaluation in pairs if (trial, evaluation) not in known}
        numbers = sorted(missing & entered & ended)
        self._db.executemany(
            "UPDATE trials SET status = 'pending', step = 0 WHERE number = ?", [(number,) for number in numbers]
        )
        for table in ("chunks", "curves", "failures"):
            self._db.executemany(f"DELETE FROM {table} WHERE trial = ?", [(number,) for number in numbers])
        write_checksums(self._db, ("curves",), numbers)

    def commit(self, stack: str, trials: Sequence[str], outcome: Outcome) -> None:
        """One chunk's outcome, in one transaction: the new checkpoint (None: the stack is done), curves, records.

        A trial that has ended keeps what it left the first time.
        """
        with explain_errors(self.path):
            pending = self._numbers([trial for trial, status in self.status(trials).items() if status == "pending"])
            finished = {trial: done for trial, done in (outcome.finished or {}).items() if trial in pending}
            weights = []
            for trial, done in finished.items():
                for selection, data in done.weights.items():
                    file, sha256 = put(self.path, "weights", weights_name(trial, selection), data)
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
                write_checksums(self._db, ("trials", "curves", "records", "overall"), pending.values())

    def _finish(self, number: int, done: Finished) -> None:
        self._db.execute(
            "UPDATE trials SET status = ?, step = ?, best_step = ?, not_converged = ?, note = ? WHERE number = ?",
            (done.status, done.step, done.best_step, done.not_converged, done.note, number),
        )
        evaluation_numbers = self._evaluation_numbers()
        rows = []
        for evaluation, by_selection in done.measures.items():
            for selection, measures in by_selection.items():
                key = (number, evaluation_numbers[evaluation], selection)
                rows += [(*key, m.split, m.factor, m.level, m.metric, m.value, m.standard_error, m.n) for m in measures]
        self._db.executemany("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        self._db.execute("INSERT OR REPLACE INTO provenance VALUES (?, ?)", (number, canonical(done.provenance)))

    def split(self, stack: str, checkpoints: Mapping[str, tuple[Sequence[str], bytes]]) -> None:
        """Replace a stack's checkpoint by checkpoints of smaller stacks: {name: (trials, checkpoint)}."""
        with explain_errors(self.path), self._replacing(stack, checkpoints):
            pass

    def fail(self, trial: str, cause: str, traceback: str = "") -> None:
        """Note that a trial failed, with its cause; its checkpoint stays."""
        with self._transaction():
            self._db.execute(
                "INSERT OR REPLACE INTO failures SELECT number, step, ?, ? FROM trials WHERE id = ?",
                (cause, traceback, trial),
            )
            self._db.execute("UPDATE trials SET status = 'failed' WHERE id = ?", (trial,))
            write_checksums(self._db, ("trials",), self._numbers([trial]).values())

    def retry(self, trials: Sequence[str]) -> None:
        """Make failed trials pending again; they continue from where they were."""
        failed = self._numbers([trial for trial, status in self.status(trials).items() if status == "failed"]).values()
        with self._transaction():
            self._db.executemany("DELETE FROM failures WHERE trial = ?", [(number,) for number in failed])
            self._db.executemany(
                "UPDATE trials SET status = 'pending' WHERE number = ?", [(number,) for number in failed]
            )
            write_checksums(self._db, ("trials",), failed)

    def take(self, source: Store, trials: Sequence[str], entered: Sequence[str]) -> None:
        """Copy ended trials of another store of the same work, with records, curves and weights; and the entries of
        these and of others that are in this store already (`entered`)."""
        with explain_errors(self.path):
            weights: dict[str, list[tuple[str, str, str]]] = {trial: [] for trial in trials}
            for trial in trials:
                for _, selection, _, _ in source.rows("weights", trial):
                    # Named anew: in a store that was migrated, files are called after other ids.
                    data = source.weights(trial, selection)[1]
                    file, sha256 = put(self.path, "weights", weights_name(trial, selection), data)
                    weights[trial].append((selection, file, sha256))
            with self._transaction():
                # Begun here and ended there: they are stacks of one by now (see `merge`).
                self._db.executemany("DELETE FROM checkpoints WHERE trials = ?", [(canonical([c]),) for c in trials])
                self._db.executemany(
                    "INSERT OR IGNORE INTO trials (id, identity, seed, data_seed) VALUES (?, '', 0, 0)",
                    [(c,) for c in trials],
                )
                self._db.executemany(
                    "INSERT OR IGNORE INTO evaluations (id, identity) VALUES (?, ?)",
                    [(row["id"], row["identity"]) for row in source._rows("SELECT * FROM evaluations")],
                )
                # Each store counts its trials and evaluations for itself.
                evaluation_ids = {number: key for key, number in source._evaluation_numbers().items()}
                own_numbers = self._evaluation_numbers()
                numbers = {number: own_numbers[key] for number, key in evaluation_ids.items()}
                taken_numbers = self._numbers(trials)
                for trial, number in taken_numbers.items():
                    for table in ("trials", "records", *_TABLES_OF_TRIALS):
                        self._db.execute(f"DELETE FROM {table} WHERE {KEY.get(table, 'trial')} = ?", (number,))
                        rows = [tuple(row)[1:] for row in source._rows_of(table, trial)]
                        for values in weights[trial] if table == "weights" else rows:
                            if table == "records":
                                values = (numbers[values[0]], *values[1:])
                            marks = ", ".join("?" * (1 + len(values)))
                            self._db.execute(f"INSERT INTO {table} VALUES ({marks})", (number, *values))
                entered_numbers = self._numbers(entered)
                for trial, number in entered_numbers.items():
                    for row in source._rows_of("entries", trial):
                        self._db.execute(
                            "INSERT OR IGNORE INTO entries VALUES (?, ?, ?, ?, ?)",
                            (number, row["scale"], numbers[row["evaluation"]], row["position"], row["levels"]),
                        )
                write_checksums(self._db, ("trials", "curves", "records", "overall"), taken_numbers.values())
                write_checksums(self._db, ("entries",), entered_numbers.values())
            self._sweep()

    def discard(self, stack: str) -> None:
        """Discard a stack's checkpoint: its trials will be trained from step 0, to the same bits."""
        (row,) = self._rows("SELECT trials FROM checkpoints WHERE stack = ?", stack)
        numbers = self._numbers(json.loads(row["trials"])).values()
        with explain_errors(self.path), self._replacing(stack, {}):
            self._db.executemany("UPDATE trials SET step = 0 WHERE number = ?", [(number,) for number in numbers])
            for table in ("chunks", "curves"):
                self._db.executemany(f"DELETE FROM {table} WHERE trial = ?", [(number,) for number in numbers])
            write_checksums(self._db, ("trials", "curves"), numbers)

    @contextmanager
    def _replacing(self, stack: str, checkpoints: Mapping[str, tuple[Sequence[str], bytes]]) -> Iterator[None]:
        """A transaction in which a stack's checkpoint is replaced by others; unused files are removed afterwards.

        The order matters: files are synced and renamed before the transaction that names them commits, and are removed
        only after it, so that a kill at any moment leaves every named file whole.
        """
        rows = []
        for name, (trials, data) in checkpoints.items():
            file, sha256 = put(self.path, "checkpoints", f"{sha(data)[:16]}.safetensors", data)
            rows.append((name, canonical(list(trials)), file, sha256))
        with self._transaction():
            yield
            self._db.execute("DELETE FROM checkpoints WHERE stack = ?", (stack,))
            self._db.executemany("INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?)", rows)
        self._sweep()

    def _sweep(self) -> None:
        """Remove checkpoints that nothing names any more; files whose names are not ours stay."""
        used = {row["file"] for row in self._rows("SELECT file FROM checkpoints")}
        for file in own_files(self.path, "checkpoints"):
            if f"checkpoints/{file.name}" not in used:
                file.unlink()

    # -- reading ------------------------------------------------------------------------------------------------

    @property
    def work(self) -> dict[str, Any]:
        """What this directory is for: `{"study": "name@version"}`, or the configs of a single `train`."""
        rows = self._rows("SELECT value FROM meta WHERE key = 'work'")
        with explain_errors(self.path):
            work: dict[str, Any] = json.loads(rows[0]["value"]) if rows else {}
        return work

    def configurations(self) -> dict[tuple[str, str], Configuration]:
        """What is done at each combination of levels, by (scale, levels as canonical JSON)."""
        configurations: dict[tuple[str, str], Configuration] = {}
        with explain_errors(self.path):
            for row in self._db.execute(
                "SELECT scale, levels, trials.identity AS identity, evaluations.identity AS evaluation, seed, data_seed "
                "FROM entries JOIN trials ON trial = trials.number JOIN evaluations ON evaluation = evaluations.number "
                "GROUP BY scale, levels, seed, data_seed"
            ):
                key = (row["scale"], canonical(json.loads(row["levels"])))
                if key not in configurations:
                    identity = json.loads(row["identity"])
                    work = {component: identity[component] for component in COMPONENTS}
                    configurations[key] = Configuration({**work, "evaluation": json.loads(row["evaluation"])}, set())
                configurations[key].seeds.add((row["seed"], row["data_seed"]))
        return configurations

    def pending_evaluations(self) -> dict[str, list[dict[str, Any]]]:
        """The identities of all evaluations that pending trials were entered with, at any scale, by trial."""
        rows = self._rows(
            "SELECT trials.id AS id, evaluations.identity AS identity FROM entries JOIN trials ON trial = trials.number "
            "JOIN evaluations ON evaluation = evaluations.number WHERE status = 'pending' ORDER BY trial, evaluation"
        )
        identities: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            identities.setdefault(row["id"], []).append(json.loads(row["identity"]))
        return identities

    def status(self, trials: Sequence[str] | None = None) -> dict[str, str]:
        """The status of every trial, or of some, by id: pending, finished, stopped, diverged or failed."""
        rows = (
            self._rows("SELECT id, status FROM trials")
            if trials is None
            else [row for trial in trials for row in self._rows("SELECT id, status FROM trials WHERE id = ?", trial)]
        )
        return {row["id"]: row["status"] for row in rows}

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
        rows = self._rows(
            "SELECT id, number FROM trials WHERE id IN (SELECT value FROM json_each(?))", json.dumps(trials)
        )
        numbers = {row["id"]: row["number"] for row in rows}
        return {trial: numbers[trial] for trial in trials if trial in numbers}

    def check(self, *tables: str) -> None:
        """Whether tables hold what was written into them; one that does not is named, never read as data."""
        for table in tables:
            with self._snapshot(), explain_errors(self.path):
                self._check(table, pieces(self._db, f"SELECT * FROM {table}"))

    def checkpoints(self) -> Iterator[tuple[str, list[str], bytes]]:
        """(stack, trials, bytes) of every unfinished stack; a damaged file is named, never read as data."""
        for row in self._rows("SELECT * FROM checkpoints ORDER BY stack"):
            yield row["stack"], json.loads(row["trials"]), get(self.path, row["file"], row["sha256"])

    def damaged(self) -> dict[str, str]:
        """The stacks whose checkpoints can't be read, and why."""
        reasons = {}
        for row in self._rows("SELECT * FROM checkpoints ORDER BY stack"):
            try:
                get(self.path, row["file"], row["sha256"])
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
        return str(self.path / rows[0]["file"]), get(self.path, rows[0]["file"], rows[0]["sha256"])

    def records(self) -> pd.DataFrame:
        """One tidy row per (scale, levels, trial, selection, split, factor level, metric)."""
        return self.tables()[0]

    def tables(self, overall: bool = False) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Records and entries of one moment; `overall` leaves out the records of single levels of factors."""
        records, entries = self.measures(overall)
        return records_table(records, entries), entries

    def measures(self, overall: bool = False) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The same with records by the ids of trial and evaluation alone: each is there once, whatever the scales."""
        with self._snapshot():
            records = self._checked(
                "overall" if overall else "records", "trial, evaluation, selection, split, factor, level, metric"
            )
            ids = {number: key for key, number in self._evaluation_numbers().items()}
            records["evaluation_id"] = records.pop("evaluation").map(ids).astype(object)  # of an empty store, too
            return records, self.entries()

    def entries(self) -> pd.DataFrame:
        """One row per trial, scale and evaluation: its levels, what it is, its step, how it ended."""
        with self._snapshot():
            self.check("trials", "entries")
            return self._frame("""SELECT scale, levels, json_extract(trials.identity, '$.task') AS task,
                json_extract(trials.identity, '$.model') AS model, json_extract(trials.identity, '$.recipe') AS recipe,
                trials.id AS trial, evaluations.id AS evaluation_id, seed, data_seed, status, trials.step, best_step, not_converged, note, cause
                FROM entries JOIN trials ON entries.trial = trials.number
                JOIN evaluations ON entries.evaluation = evaluations.number
                LEFT JOIN failures ON failures.trial = trials.number
                ORDER BY scale, position, seed, data_seed, trials.id""")

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
        facts = pd.DataFrame([json.loads(text) for text in rows.facts], index=rows.index)
        return pd.concat([rows[["trial"]], facts], axis=1)

    def _rows(self, query: str, *values: str | int) -> list[sqlite3.Row]:
        with explain_errors(self.path):
            return self._db.execute(query, values).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with explain_errors(self.path), self._db:
            yield

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        """While inside, all queries see one moment, whatever a writer commits meanwhile."""
        if self._db.in_transaction:
            yield
            return
        with explain_errors(self.path):
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
            return self._with_ids(rows)

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
        damaged = find_damaged(self._db, table, rows)
        if damaged:
            known = self._rows("SELECT id FROM trials WHERE number = ?", damaged[0])
            trial = known[0]["id"] if known else f"number {damaged[0]}"
            raise CheckFailed(
                f"{self.path / FILE} is damaged: in its {table}, what it holds of trial {trial} is not "
                "what was written. Go back to a copy of it, or run into a new directory"
            )

    def _frame(self, query: str) -> pd.DataFrame:
        with explain_errors(self.path):
            return frame(self._db, query)


def stack_name(trials: Sequence[str]) -> str:
    """The name of the stack of these trials in a store."""
    return digest(list(trials))


def split_stack(trials: Sequence[str], checkpoint: bytes) -> dict[str, tuple[list[str], bytes]]:
    """The checkpoints from which the trials of a stack continue alone: {name of the stack: (its trial, checkpoint)}."""
    from unseen.training.checkpoint import split_checkpoint  # loads torch

    alone = split_checkpoint(trials, checkpoint)
    return {stack_name([trial]): ([trial], data) for trial, data in alone.items()}
