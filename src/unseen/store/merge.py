"""Merging: stores of one study become one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from unseen.errors import UsageError
from unseen.store.schema import FILE
from unseen.store.store import ENDED, Configuration, Store
from unseen.store.take_over import copy_trials
from unseen.studies.description import merge_descriptions
from unseen.studies.trial import describe_difference


@dataclass(frozen=True)
class Merged:
    """The result of a merge: trials taken over; trials that both had ended, with the same records or with others."""

    taken_over: int
    same: int
    different: int


def merge_paths(paths: Sequence[Path], into: Path) -> dict[Path, Merged]:
    """Merge stores into a new or an existing one. All are compared before anything is written: stores that do not fit
    are refused, and nothing is left behind."""
    if os.path.realpath(into) in map(os.path.realpath, paths):
        raise UsageError(f"{into} is the target and one of the sources; leave it out of the sources")
    with ExitStack() as exits:
        sources = {path: exits.enter_context(Store.read(path)) for path in paths}
        existing = [exits.enter_context(Store.read(into))] if (into / FILE).is_file() else []
        for source in sources.values():
            source.check("trials", "entries", "curves", "records")
        check_mergeable([*(store for store in existing if store.work), *sources.values()])
        merged = {}
        with Store.write(into) as target:
            for path, source in sources.items():
                merged[path] = merge(target, source)
        return merged


def check_mergeable(stores: Sequence[Store]) -> None:
    """Refuse stores of which two hold different work."""
    configurations: dict[tuple[str, str], tuple[Store, Configuration]] = {}
    for store in stores:
        if not store.work:
            raise UsageError(f"{store.path} holds nothing yet")
        if store.work != stores[0].work:
            difference = describe_difference(stores[0].work, store.work)
            raise UsageError(f"{stores[0].path} and {store.path} hold different work: {difference}")
        for key, configuration in store.configurations().items():
            first_store, first = configurations.setdefault(key, (store, configuration))
            conflict = first.conflict(configuration)
            if conflict:
                raise UsageError(f"{first_store.path} and {store.path} hold different work at {key[1]}: {conflict}")
            first.seeds.update(configuration.seeds)


def merge(target: Store, source: Store) -> Merged:
    """Take over every trial that has ended in `source` and not in `target`. Where both have it, the target's stays.

    Both must hold the same study; trials that have not ended are not taken over.
    """
    source.check("trials", "entries", "curves", "records")
    check_mergeable([target, source] if target.work else [source])
    target.set_work(source.work)
    if source.description:
        target.describe(merge_descriptions(target.description, source.description))
    target_status = target.status()
    # A trial that the target wants to evaluate in further ways has not ended for it.
    waiting = target.unevaluated()
    both = []
    taken_over = []
    for trial, status in source.status().items():
        if status not in ENDED:
            continue
        if target_status.get(trial) in ENDED and trial not in waiting:
            both.append(trial)
        elif target.evaluated(trial).keys() <= source.evaluated(trial).keys():
            taken_over.append(trial)
    same = 0
    for trial in both:
        target_records = target.evaluated(trial)
        source_records = source.evaluated(trial)
        shared = target_records.keys() & source_records.keys()
        same += all(target_records[key] == source_records[key] for key in shared)
    copy_trials(target, source, taken_over, entered=[*both, *taken_over])
    return Merged(len(taken_over), same, len(both) - same)
