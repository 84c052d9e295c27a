"""The CTL++ paper's figures 3 and 9 to 11: do functions of different groups return the same symbol alike?"""

from __future__ import annotations

from typing import Any

import pandas as pd

from unseen.report.cosines import cosine_cells, cosine_chart
from unseen.report.figure import Drawing
from unseen.report.figures.ctl_pairs import chosen, described
from unseen.report.figures.inside import look_inside
from unseen.report.references import unseen_notes
from unseen.report.source import Source
from unseen.tasks.base import Task
from unseen.tasks.ctl.task import Lookup

SINGLES = "probe/singles"
SELECTIONS = ("last", "best")
"""The paper's figures are of the last weights; a store may keep others only."""


def matrices(source: Source, task: str, worst: bool, two: bool = False) -> Drawing | None:
    """A panel per symbol for the best or the worst NDR; or of `two` symbols, those whose clusters agree with the groups
    the most and the least. None where the store keeps no weights of that run."""
    run = chosen(source, task, worst)
    found = look_inside(source, str(run["cell"]), SELECTIONS, _cells) if run is not None else None
    if run is None or found is None:
        return None
    cells, selection = found
    if two:
        ranked = cells.drop_duplicates("symbol").sort_values("agreement", ascending=False, kind="stable")["symbol"]
        cells = cells[cells["symbol"].isin([ranked.iloc[0], ranked.iloc[-1]])]
    said = [described(run), *unseen_notes(source.where(source.runs["cell"] == run["cell"]), [SINGLES])]
    if selection != "last":
        said.append("The store keeps the best weights only; these are theirs, not the last ones'.")
    return Drawing(cosine_chart(cells), cells.assign(runs=1, cell=run["cell"], seed=run["seed"]), tuple(said))


def _cells(stack: Any, task: Task) -> pd.DataFrame | None:
    from unseen.engine import represent

    if not isinstance(task, Lookup) or represent.why_not(stack, task):
        return None
    world = task.actual_world
    names = list(world.groups)
    cells = cosine_cells(
        dict(zip(map(str, world.symbols), represent.cosines(stack, task)[0], strict=True)),
        world.names,
        [names[group] for group in world.group_of],
    )
    return cells if len(cells) else None
