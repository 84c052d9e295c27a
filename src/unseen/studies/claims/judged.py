"""What the records of one or several directories say to the claims."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from unseen.errors import UsageError
from unseen.studies.claims import ledger
from unseen.studies.claims.claim import Verdict
from unseen.studies.store import Store
from unseen.studies.study import catalogued
from unseen.studies.tables import cells_table


@dataclass(frozen=True)
class Judged:
    """The verdicts of one directory, the study it holds (`name@version`), and how what was run deviates from the paper,
    scale by scale."""

    directory: str
    study: str
    verdicts: tuple[Verdict, ...]
    deviations: ledger.Deviations

    @property
    def name(self) -> str:
        """The study without its version."""
        return self.study.partition("@")[0]


def judged(directory: Path, names: Iterable[str] = ()) -> Judged:
    """The verdicts of a directory on the claims named, or on all about the families that were run."""
    with Store.read(directory) as store:
        (records, entries), study = store.tables(), str(store.work.get("study", ""))
        found = ledger.verdicts(records, cells_table(entries), names, store.points)
    scales = [scale for scale in dict.fromkeys(one.scale for one in found) if scale]
    return Judged(
        str(directory),
        study,
        tuple(found),
        {scale: _deviations(study, scale, entries[entries["scale"] == scale]) for scale in scales},
    )


def own(found: Sequence[Judged]) -> list[Judged]:
    """Of several directories each with its own verdicts only.

    A claim is judged where its study was run; if it was in none of them, wherever there is something to judge; if there
    is nothing anywhere, it stands as not run with the first.
    """
    if len(found) < 2:
        return list(found)
    chosen: dict[str, list[tuple[int, Verdict]]] = {}
    for place, one in enumerate(found):
        for verdict in one.verdicts:
            chosen.setdefault(verdict.claim.name, []).append((place, verdict))
    for name, verdicts in chosen.items():
        at_home = [(place, one) for place, one in verdicts if found[place].name == one.claim.study]
        run = [(place, one) for place, one in verdicts if one.word != "not run"]
        chosen[name] = at_home or run or verdicts[:1]
    return [
        Judged(
            one.directory,
            one.study,
            tuple(verdict for verdict in one.verdicts if (place, verdict) in chosen[verdict.claim.name]),
            one.deviations,
        )
        for place, one in enumerate(found)
    ]


def _deviations(study: str, scale: str, entries: pd.DataFrame) -> list[str]:
    """How the study deviates from the paper at a scale, if what is there is what this release calls by that name."""
    try:
        known = catalogued(study)
        for seeds in (None, sorted(set(entries["seed"]))):  # its own, or others that were asked for
            if set(entries["cell"]) <= {entry.cell.id for entry in known.entries(scale, seeds)}:
                return known.deviations(scale, seeds)
        return [f"not known: some of these runs are not, or no longer, of {study} at scale {scale}"]
    except UsageError:
        return [f"not known: {study} is not in the catalogue"]
