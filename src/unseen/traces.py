"""What trained models keep of what they did: cosines, activation, attention; as arrays, and drawn."""

from __future__ import annotations

from pathlib import Path

from unseen.api import Runs, check_selection
from unseen.engine import look, represent
from unseen.engine.stack import Stack
from unseen.engine.threads import one_thread
from unseen.errors import UsageError
from unseen.report.activation import activation_figure
from unseen.report.attention import attention_figure
from unseen.report.cosines import cosine_figure
from unseen.studies.trained import Trained, trained
from unseen.tasks.base import Array
from unseen.tasks.ctl.task import Lookup
from unseen.tasks.rules.task import Rules


def cosines(
    runs: Runs | str | Path,
    *,
    seed: int | None = None,
    cell: str | None = None,
    selection: str = "best",
    out: str | Path | None = None,
) -> Array:
    """How alike functions with the same outcome are to a trained ctl model: cosines (symbol, function, function).

    The model is one seed of `runs`, or one cell of a directory that keeps weights (`unseen run … --weights best`):
    named by the beginning of its id, or by its seed where that says enough. `out` draws the matrices as well (.svg,
    .pdf, .png or .json).

        unseen.cosines(runs, seed=3, out="cosines.svg")
        unseen.cosines("study", cell="3f09", out="cosines.svg")
    """
    found = _trained(runs, seed, cell, selection)
    stack = Stack([found.module])
    reason = represent.why_not(stack, found.task)
    if reason:
        raise UsageError(f"{found.name}: no cosines between functions: {reason}")
    assert isinstance(found.task, Lookup)
    with one_thread():
        matrices: Array = represent.cosines(stack, found.task)[0]
    if out is not None:
        world = found.task.actual_world
        groups = [list(world.groups)[group] for group in world.group_of]
        cosine_figure(dict(zip(world.symbols, matrices, strict=True)), world.names, groups, out, found.name)
    return matrices


def activation(
    runs: Runs | str | Path,
    *,
    seed: int | None = None,
    cell: str | None = None,
    selection: str = "best",
    examples: int = 10_000,
    out: str | Path | None = None,
) -> Array:
    """How the modules of a trained rules model share out the rules: p(module | rule), (rule, module).

    Measured on `examples` test examples of the condition on which models are selected; NaN in the row of a rule that
    does not occur in them. The model is named as for `cosines`; `out` draws the matrix with the best assignment marked.

        unseen.activation(runs, seed=3, out="activation.svg")
    """
    found = _trained(runs, seed, cell, selection)
    stack = Stack([found.module])
    reason = look.no_activation(stack, found.task)
    if reason:
        raise UsageError(f"{found.name}: no activation of modules: {reason}")
    assert isinstance(found.task, Rules)
    with one_thread():
        matrix: Array = look.activation(stack, found.task, examples)
    if out is not None:
        activation_figure(matrix, found.task.pi, out, found.name)
    return matrix


def attention(
    runs: Runs | str | Path,
    *,
    seed: int | None = None,
    cell: str | None = None,
    selection: str = "best",
    condition: str | None = None,
    n: int = 24,
    out: str | Path | None = None,
) -> dict[str, Array]:
    """Where a trained retrieval model looks: `decoder.attention` (example, token), and where it has self-attention
    `encoder.attention` (example, head, token, token), on the first n test examples of a condition (default: the one on
    which models are selected).

    The model is named as for `cosines`; `out` draws the maps, with the tokens that carry the queried features marked.

        unseen.attention(runs, seed=3, condition="iid", out="attention.svg")
    """
    if n < 1:
        raise UsageError(f"n = {n}: give a positive number of examples")
    found = _trained(runs, seed, cell, selection)
    with one_thread():
        looked = look.attention(Stack([found.module]), found.task, condition, n)
    if not looked.maps:
        known = ", ".join(f"{name} ({', '.join(axes)})" for name, axes in look.ATTENTION.items())
        raise UsageError(f"{found.name}: no attention: the model keeps none of {known}")
    if out is not None:
        attention_figure(looked.maps, looked.right, looked.examples.factors, out, found.name)
    return looked.maps


def _trained(runs: Runs | str | Path, seed: int | None, cell: str | None, selection: str) -> Trained:
    """One seed of runs, or one cell of a directory."""
    if isinstance(runs, Runs):
        if seed is None or cell is not None:
            raise UsageError(f"which run? Give its seed: {', '.join(map(str, runs.seeds))}")
        return Trained(runs.task, runs.model(seed, selection), f"{runs.options.name} on {runs.task.name}, seed {seed}")
    check_selection(selection)
    return trained(runs, cell, seed, selection)
