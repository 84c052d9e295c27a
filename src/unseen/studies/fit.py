"""Whether the model of a cell fits its task."""

from __future__ import annotations

from functools import partial

from unseen.engine.fit import check_answers, check_fit
from unseen.engine.predict import conditions
from unseen.engine.stack import Stack
from unseen.engine.threads import one_thread
from unseen.models.foreign import is_foreign
from unseen.studies.cell import Cell, build_model
from unseen.studies.plan import shape


def check_cell(cell: Cell, device: str = "cpu") -> list[str]:
    """What is odd about a cell's model; one that can't be trained and evaluated as the cell says is refused."""
    build = partial(build_model, cell.model, cell.task.spec, cell.seed)
    with one_thread():
        return check_fit(build, cell.task, cell.recipe, cell.evaluation, cell.data_seed, device)


class Fits:
    """Checks cells, one of each shape. Of our own models, which are known to fit, only that they can take what they are
    evaluated on: sequences may be longer there than positions that are learned."""

    def __init__(self) -> None:
        self._odd: dict[str, list[str]] = {}

    def check(self, cell: Cell, device: str) -> list[str]:
        """What is odd about a cell's model; one that does not fit is refused."""
        key = shape(cell)
        if key not in self._odd:
            self._odd[key] = check_cell(cell, device) if is_foreign(cell.model) else _check_own(cell)
        return self._odd[key]


def _check_own(cell: Cell) -> list[str]:
    stack = Stack([build_model(cell.model, cell.task.spec, cell.seed)])
    with one_thread():
        check_answers(stack, cell.task, conditions(cell.task, cell.evaluation), cell.model.name, cell.data_seed)
    return []
