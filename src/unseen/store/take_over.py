"""Taking over trials that have ended elsewhere, in another store or in a records file.

A trial is the same everywhere if its id is, and its records if the id of their evaluation is. So nothing that has been
trained and evaluated once need be computed again. `merge` takes over what another store of the same study holds;
`--reuse` takes over what this study wants from any store or records file.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from unseen.config import canonical
from unseen.errors import CheckFailed, UsageError
from unseen.store.checksums import write_checksums
from unseen.store.directory import weights_name, write_file
from unseen.store.schema import explain_errors
from unseen.store.store import ENDED, Store, join_notes, split_stack

TAKEN_FROM = "taken_from"
"""In the provenance of a trial that was not trained here: the name of the directory or file it comes from."""
_TABLES_OF_TRIALS = ("curves", "records", "chunks", "failures", "weights", "provenance")


@dataclass(frozen=True)
class EndedTrial:
    """Everything that is stored of a trial that has ended, except its weights.

    `ending` is (status, step, best_step, not_converged, note). `curves` are (step, split, metric, value), `records` are
    (selection, split, factor, level, metric, value, standard_error, n) by the id of their evaluation, `chunks` are
    (begin, end, seconds, cpu_seconds, worker).
    """

    id: str
    identity: str
    ending: tuple[Any, ...]
    curves: Sequence[tuple[Any, ...]]
    records: Mapping[str, Sequence[tuple[Any, ...]]]
    provenance: Mapping[str, Any]
    chunks: Sequence[tuple[Any, ...]] = ()


class TrialSource(Protocol):
    """A directory or file from which ended trials can be taken over."""

    @property
    def path(self) -> Path:
        """The directory or file."""

    def evaluations_of_ended(self) -> Mapping[str, Collection[str]]:
        """The trials that have ended here, with the ids of the evaluations that they have records of."""

    def ended_trial(self, trial: str) -> EndedTrial:
        """One of these trials."""

    def weights_of(self, trial: str) -> Mapping[str, bytes]:
        """The weights with which a trial can be evaluated again, by selection; empty if they were not kept."""


class StoreSource:
    """A store as a source; its tables are checked when it is opened."""

    def __init__(self, store: Store) -> None:
        store.check("trials", "entries", "curves", "records")
        self.store = store
        self.path = store.path

    def evaluations_of_ended(self) -> dict[str, set[str]]:
        """See `TrialSource`."""
        evaluations: dict[str, set[str]] = {}
        rows = self.store._rows(
            "SELECT trials.id AS id, evaluations.id AS evaluation FROM trials "
            "LEFT JOIN (SELECT DISTINCT trial, evaluation FROM records) ON trial = trials.number "
            "LEFT JOIN evaluations ON evaluation = evaluations.number "
            f"WHERE status IN {ENDED} ORDER BY trials.number"
        )
        for row in rows:
            evaluated = evaluations.setdefault(row["id"], set())
            if row["evaluation"] is not None:
                evaluated.add(row["evaluation"])
        return evaluations

    def ended_trial(self, trial: str) -> EndedTrial:
        """See `TrialSource`."""
        return read_trial(self.store, trial)

    def weights_of(self, trial: str) -> dict[str, bytes]:
        """See `TrialSource`."""
        files = self.store.evaluation_weights([trial]).get(trial, {})
        return {selection: self.store.weights(trial, selection)[1] for selection in sorted(set(files.values()))}


def read_trial(store: Store, trial: str) -> EndedTrial:
    """Everything that a store has of a trial that has ended."""
    (row,) = store._rows_of("trials", trial)
    facts = store._rows_of("provenance", trial)
    return EndedTrial(
        trial,
        row["identity"],
        tuple(row[name] for name in ("status", "step", "best_step", "not_converged", "note")),
        [tuple(point)[1:] for point in store._rows_of("curves", trial)],
        {key: rows for key, rows in store.evaluated(trial).items() if rows},
        json.loads(facts[0]["facts"]) if facts else {},
        [tuple(chunk)[1:] for chunk in store._rows_of("chunks", trial)],
    )


@dataclass
class TakenOver:
    """What was taken over from a source: trials with their records; those of them (or that had ended here) that are
    evaluated again with the source's weights; and those that would have to be, but whose weights were not kept."""

    path: Path
    trials: list[str] = field(default_factory=list)
    evaluated_again: list[str] = field(default_factory=list)
    weights_missing: list[str] = field(default_factory=list)


def check_sources(sources: Sequence[TrialSource], identities: Mapping[str, str]) -> None:
    """Refuse sources that hold something else under the id of one of these trials (ids with identities), or damaged weights.

    Nothing is written, and nothing may be written before.
    """
    for source in sources:
        for trial in source.evaluations_of_ended():
            if trial in identities:
                if source.ended_trial(trial).identity != identities[trial]:
                    raise CheckFailed(
                        f"{source.path} is damaged: its trial {trial} does not have the identity of that id"
                    )
                source.weights_of(trial)  # damaged files are refused on reading


def take_over(store: Store, source: TrialSource, trials: Collection[str]) -> TakenOver:
    """Take over from a source what the store still lacks of these trials, which were entered in it."""
    result = TakenOver(source.path)
    status = store.status()
    offered = source.evaluations_of_ended()
    requested = store.evaluations_of([trial for trial in trials if trial in offered])
    missing = store.unevaluated(trials)
    whole: dict[str, EndedTrial] = {}
    added: dict[str, EndedTrial] = {}
    weights: dict[str, Mapping[str, bytes]] = {}
    for trial, evaluations in requested.items():
        ended_here = status[trial] in ENDED
        needed = set(missing.get(trial, ())) if ended_here else set(evaluations)
        if ended_here and not needed:
            continue
        ended = source.ended_trial(trial)
        lacks = needed - set(offered[trial]) if ended.ending[0] != "diverged" else set()
        if ended_here and not _agrees(store, ended):
            continue  # its numbers differ: measures of other weights must not be mixed with these
        if lacks and not (ended_here and trial in store.evaluation_weights([trial])):
            weights[trial] = source.weights_of(trial)
            if not weights[trial]:
                result.weights_missing.append(trial)
                continue
            result.evaluated_again.append(trial)
        (added if ended_here else whole)[trial] = ended
        result.trials.append(trial)
    mark = source.path.name or str(source.path)
    _split_stacks(store, whole)
    # A store of an older release has noted no checkpoints as its own; without a note none of them could be swept.
    store._announce_checkpoints(())
    with explain_errors(store.path), store._transaction():
        for trial, ended in whole.items():
            facts = {TAKEN_FROM: mark, **ended.provenance}
            records = {key: rows for key, rows in ended.records.items() if key in requested[trial]}
            _write_trial(store, ended, records, facts, weights.get(trial, {}))
        for trial, ended in added.items():
            records = {key: rows for key, rows in ended.records.items() if key in missing[trial]}
            number = store._numbers([trial])[trial]
            _write_records(store, number, records)
            _write_weights(store, number, trial, weights.get(trial, {}))
        numbers = store._numbers([*whole, *added]).values()
        write_checksums(store._db, ("trials", "curves", "records", "overall"), numbers)
    store._sweep()
    return result


def copy_trials(target: Store, source: Store, trials: Sequence[str], entered: Sequence[str]) -> None:
    """Copy ended trials of another store of the same work, with all that belongs to them; and the entries of these and
    of others that have ended in both (`entered`), with the records that are still missing here."""
    reading = StoreSource(source)
    _split_stacks(target, trials)
    target._announce_checkpoints(())
    with explain_errors(target.path), target._transaction():
        evaluations = [
            (row["id"], row["identity"]) for row in source._rows("SELECT * FROM evaluations ORDER BY number")
        ]
        # Without their numbers: each store counts its evaluations for itself.
        target._db.executemany("INSERT OR IGNORE INTO evaluations (id, identity) VALUES (?, ?)", evaluations)
        for key, value in join_notes(target.notes(), source.notes()).items():
            target._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, canonical(value)))
        for trial in trials:
            ended = reading.ended_trial(trial)
            weights = {}
            for row in source._rows_of("weights", trial):
                weights[row["selection"]] = source.weights(trial, row["selection"])[1]
            _write_trial(target, ended, ended.records, ended.provenance, weights, ended.chunks)
        numbers = target._numbers(entered)
        evaluation_ids = {number: key for key, number in source._evaluation_numbers().items()}
        target_numbers = target._evaluation_numbers()
        for trial, number in numbers.items():
            for row in source._rows_of("entries", trial):
                evaluation = target_numbers[evaluation_ids[row["evaluation"]]]
                values = (number, row["scale"], evaluation, row["position"], row["levels"])
                target._db.execute("INSERT OR IGNORE INTO entries VALUES (?, ?, ?, ?, ?)", values)
        for trial, missing in target.unevaluated(entered).items():
            ended = reading.ended_trial(trial)
            if _agrees(target, ended):
                records = {key: rows for key, rows in ended.records.items() if key in missing}
                _write_records(target, numbers[trial], records)
        write_checksums(target._db, ("trials", "entries", "curves", "records", "overall"), numbers.values())
    target._sweep()


def _agrees(store: Store, ended: EndedTrial) -> bool:
    """Whether a trial has ended here as it did elsewhere, with the same numbers where it was evaluated alike."""
    stored = read_trial(store, ended.id)
    if stored.ending[:3] != ended.ending[:3]:
        return False
    for key in stored.records.keys() & ended.records.keys():
        # As texts: records may have None among their numbers, which can't be sorted.
        if sorted(map(repr, stored.records[key])) != sorted(map(repr, ended.records[key])):
            return False
    return True


def _split_stacks(store: Store, trials: Collection[str]) -> None:
    """Split the unfinished stacks that hold some of these trials, so that their other members continue from where they are."""
    for name, members, data in list(store.checkpoints()):
        if len(members) > 1 and not set(trials).isdisjoint(members):
            store.split(name, split_stack(members, data))


def _write_trial(
    store: Store,
    ended: EndedTrial,
    records: Mapping[str, Sequence[tuple[Any, ...]]],
    facts: Mapping[str, Any],
    weights: Mapping[str, bytes],
    chunks: Sequence[tuple[Any, ...]] = (),
) -> None:
    """Write everything of one trial in place of what there is of it; part of a transaction."""
    identity = json.loads(ended.identity)
    database = store._db
    # Begun here and ended there: it is a stack of one by now.
    database.execute("DELETE FROM checkpoints WHERE trials = ?", (canonical([ended.id]),))
    database.execute(
        "INSERT OR IGNORE INTO trials (id, identity, seed, data_seed) VALUES (?, ?, ?, ?)",
        (ended.id, ended.identity, identity["seed"], identity["data_seed"]),
    )
    number = store._numbers([ended.id])[ended.id]
    database.execute(
        "UPDATE trials SET status = ?, step = ?, best_step = ?, not_converged = ?, note = ? WHERE number = ?",
        (*ended.ending, number),
    )
    for table in _TABLES_OF_TRIALS:
        database.execute(f"DELETE FROM {table} WHERE trial = ?", (number,))
    database.executemany("INSERT INTO curves VALUES (?, ?, ?, ?, ?)", [(number, *point) for point in ended.curves])
    database.executemany("INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?)", [(number, *chunk) for chunk in chunks])
    database.execute("INSERT INTO provenance VALUES (?, ?)", (number, canonical(facts)))
    _write_records(store, number, records)
    _write_weights(store, number, ended.id, weights)


def _write_records(store: Store, number: int, records: Mapping[str, Sequence[tuple[Any, ...]]]) -> None:
    evaluation_numbers = store._evaluation_numbers()
    for key, rows in records.items():
        values = [(number, evaluation_numbers[key], *row) for row in rows]
        store._db.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)


def _write_weights(store: Store, number: int, trial: str, weights: Mapping[str, bytes]) -> None:
    """Weights are named anew: in a store that was migrated, files are called after other ids."""
    for selection, data in weights.items():
        file, sha256 = write_file(store.path, "weights", weights_name(trial, selection), data)
        store._db.execute("INSERT OR REPLACE INTO weights VALUES (?, ?, ?, ?)", (number, selection, file, sha256))


@contextmanager
def open_sources(paths: Sequence[str | Path], out: Path, identities: Mapping[str, str]) -> Iterator[list[TrialSource]]:
    """Directories and records files as sources for trials (`identities` by their ids) in a store at `out`.

    Damaged and foreign sources are refused by name, before anything is written.
    """
    from unseen.store.records import load  # which imports this module

    with ExitStack() as exits:
        sources: list[TrialSource] = []
        for path in dict.fromkeys(map(Path, paths)):
            if not is_records_file(path):
                if out.is_dir() and path.samefile(out):
                    raise UsageError(f"{path} is the directory that is written; its own trials are kept anyway")
                sources.append(StoreSource(exits.enter_context(Store.read(path))))
            else:
                sources.append(load(path))
        check_sources(sources, identities)
        yield sources


def is_records_file(path: str | Path) -> bool:
    """Whether a path is a file (of records), and not a directory; a path that can't be looked at is refused."""
    try:
        return Path(path).is_file()
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}") from error
