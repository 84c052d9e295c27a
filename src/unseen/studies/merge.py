"""Two stores of one study become one."""

from __future__ import annotations

from dataclasses import dataclass

from unseen.errors import UsageError
from unseen.studies.cell import difference
from unseen.studies.store import ENDED, Store


@dataclass(frozen=True)
class Merged:
    """What a merge did: cells taken over; cells that both had ended, with the same records or with others."""

    taken: int
    same: int
    different: int


def merge(target: Store, source: Store) -> Merged:
    """Take over every ended cell of `source` that `target` has not ended. Where both have, the target's stays.

    Both must hold the same study; what is only begun stays where it is.
    """
    source.check("cells", "entries", "curves", "records")
    if not source.work:
        raise UsageError(f"{source.path} holds nothing yet")
    if target.work and target.work != source.work:
        raise UsageError(f"{target.path} and {source.path} hold different work: "
                         f"{difference(target.work, source.work)}")
    held = target.places()
    for place, work in source.places().items():
        if held.get(place, work) != work:
            raise UsageError(f"{target.path} and {source.path} hold different work at {place[1]}: "
                             f"{difference(held[place], work)}")
    target.claim(source.work)
    there, here = source.status(), target.status()
    ended = [cell for cell, status in there.items() if status in ENDED]
    both = [cell for cell in ended if here.get(cell) in ENDED]
    taken = [cell for cell in ended if here.get(cell) not in ENDED]
    same = sum(source.rows("records", cell) == target.rows("records", cell) for cell in both)
    target.take(source, taken, placed=ended)
    return Merged(len(taken), same, len(both) - same)
