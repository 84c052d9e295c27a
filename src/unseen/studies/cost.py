"""What a cell's steps cost, counted: parameters trained, and floating-point operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from unseen.config import Config, canonical, digest
from unseen.engine.lengths import typical
from unseen.errors import UsageError
from unseen.models.foreign import is_foreign
from unseen.spec import Spec
from unseen.studies.cell import Cell, identity_text
from unseen.studies.kept import Kept, code_state, kept_path

BACKWARD = 2
"""A backward pass costs about twice its forward pass."""


@dataclass(frozen=True)
class Cost:
    """Parameters one member trains, and the operations (a multiply-add is two) of one of its steps, whole batch."""

    parameters: int
    flops: float


@dataclass(frozen=True)
class Counted:
    """What is counted once for many cells: parameters, and a forward pass of `fixed + each · examples` operations."""

    parameters: int
    fixed: float
    each: float


def cost(cell: Cell) -> Cost:
    """Count a training step of one member: three times the forward pass of a freshly built module on a batch.

    Products of matrices are counted, elementwise work is not: a linear layer of width 1 is written elementwise and
    counts nothing. Masked and causal attention count as if every token looked at every other.

    >>> from unseen.engine.recipe import Evaluation, recipe
    >>> from unseen.models import options
    >>> from unseen.tasks import task
    >>> cell = Cell(task("retrieval/T6", length=5), options("retrieval-transformer"), recipe(), Evaluation(), 0, 0)
    >>> cost(cell)
    Cost(parameters=88601, flops=208560000.0)
    """
    counted = counts().of(cell)
    return Cost(counted.parameters, (1 + BACKWARD) * (counted.fixed + counted.each * cell.recipe.batch))


@cache
def counts() -> Counts:
    """The counts of this user."""
    return Counts(kept_path("counts.json"))


class Counts:
    """Counts of models on specs, remembered; those of the package's own models on disk, as long as their code stays.

    A user's model may call code that nobody watches: it is counted anew in every process.
    """

    def __init__(self, path: Path | None) -> None:
        self._kept = Kept(path, code_state("models"), _read, "operations are counted anew")
        self._names: dict[tuple[str, str, bool], str] = {}
        self._here: dict[str, Counted] = {}

    def of(self, cell: Cell) -> Counted:
        """Of a cell's model, on its task; batches of one length are taken to be as long as they are on average."""
        by_length = cell.recipe.batches == "lengths"
        place = (cell.model.as_json, cell.task.as_json, by_length)
        if place not in self._names:
            self._names[place] = self._named(cell.model, cell.task.spec, typical(cell.task, by_length))
        name = self._names[place]
        return self._here[name] if name in self._here else self._kept.known[name]

    def save(self) -> None:
        """Write what is new."""
        self._kept.save()

    def _named(self, model: Config, spec: Spec, typically: Spec) -> str:
        """What the counts of a model are called, which are there from now on."""
        name = digest([identity_text(model), _written(spec), _written(typically)])
        if name not in self._kept.known and name not in self._here:
            found = _count(model, spec, typically)
            if found is None:  # it can't be used: its cells will fail, and say why
                self._here[name] = Counted(0, 0.0, 0.0)
            elif is_foreign(model):
                self._here[name] = found
            else:
                self._kept.add(name, found)
        return name


@cache
def _written(spec: Spec) -> str:
    """A spec as text, made once for each: thousands of tasks share few."""
    return canonical(asdict(spec))


def _count(model: Config, spec: Spec, typically: Spec) -> Counted | None:
    from unseen.models.build import parameter_count, undrawn  # loads torch, which is not needed for what is known
    from unseen.models.flops import forward_flops

    try:
        module = undrawn(model, spec)
        forward = forward_flops(module, typically, computed=is_foreign(model))
        return Counted(parameter_count(module), forward.fixed, forward.each)
    except UsageError:
        raise
    except Exception:
        return None


def _read(said: Mapping[str, Any]) -> Counted:
    return Counted(int(said["parameters"]), float(said["fixed"]), float(said["each"]))
