"""Two stores of one study become one."""

from __future__ import annotations

from dataclasses import dataclass

from unseen.errors import UsageError
from unseen.studies.cell import difference
from unseen.studies.slice import alone
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
        raise UsageError(f"{target.path} and {source.path} hold different work: {difference(target.work, source.work)}")
    held = target.places()
    for key, place in source.places().items():
        if key in held and held[key].conflict(place):
            raise UsageError(
                f"{target.path} and {source.path} hold different work at {key[1]}: {held[key].conflict(place)}"
            )
    target.claim(source.work)
    there, here = source.status(), target.status()
    ended = [cell for cell, status in there.items() if status in ENDED]
    both = [cell for cell in ended if here.get(cell) in ENDED]
    taken = [cell for cell in ended if here.get(cell) not in ENDED]
    same = sum(source.rows("records", cell) == target.rows("records", cell) for cell in both)
    for name, cells, data in list(target.checkpoints()):
        if len(cells) > 1 and set(cells) & set(taken):
            target.split(name, alone(cells, data))  # so that the others go on from where they are
    target.take(source, taken, placed=ended)
    return Merged(len(taken), same, len(both) - same)
