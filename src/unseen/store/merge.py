"""Merging: two stores of one study become one."""

from __future__ import annotations

from dataclasses import dataclass

from unseen.errors import UsageError
from unseen.store.store import ENDED, Store, split_stack
from unseen.studies.trial import describe_difference


@dataclass(frozen=True)
class Merged:
    """The result of a merge: trials taken over; trials that both had ended, with the same records or with others."""

    taken: int
    same: int
    different: int


def merge(target: Store, source: Store) -> Merged:
    """Take over every ended trial of `source` that `target` has not ended. Where both have, the target's stays.

    Both must hold the same study; trials that are only begun stay where they are.
    """
    source.check("trials", "entries", "curves", "records")
    if not source.work:
        raise UsageError(f"{source.path} holds nothing yet")
    if target.work and target.work != source.work:
        difference = describe_difference(target.work, source.work)
        raise UsageError(f"{target.path} and {source.path} hold different work: {difference}")
    configurations = target.configurations()
    for key, configuration in source.configurations().items():
        conflict = configurations[key].conflict(configuration) if key in configurations else ""
        if conflict:
            raise UsageError(f"{target.path} and {source.path} hold different work at {key[1]}: {conflict}")
    target.claim(source.work)
    target_status = target.status()
    ended = [trial for trial, status in source.status().items() if status in ENDED]
    both = [trial for trial in ended if target_status.get(trial) in ENDED]
    # A trial that the target wants to evaluate in further ways has not ended for it.
    missing = [trial for trial in ended if target_status.get(trial) not in ENDED]
    taken = [t for t in missing if target.evaluated(t).keys() <= source.evaluated(t).keys()]
    same = 0
    for trial in both:
        same += source.evaluated(trial) == target.evaluated(trial)
    for name, trials, data in list(target.checkpoints()):
        if len(trials) > 1 and set(trials) & set(taken):
            target.split(name, split_stack(trials, data))  # so that the others continue from where they are
    target.take(source, taken, entered=[*both, *taken])
    return Merged(len(taken), same, len(both) - same)
