"""Activations of trained models as arrays and as figures: cosines, activation of modules, attention."""

from __future__ import annotations

from pathlib import Path

from unseen.api import Runs, check_selection
from unseen.errors import UsageError
from unseen.report.figures.activations import activation_figure, attention_figure
from unseen.report.figures.ctl_functions import cosine_figure
from unseen.store.load_model import TrainedModel, load_trained
from unseen.tasks.base import Array
from unseen.tasks.ctl.task import Lookup
from unseen.tasks.rules.task import Rules
from unseen.training import inside
from unseen.training.analyses import ctl_representation, rules_specialization
from unseen.training.process import one_thread
from unseen.training.stack import Stack


def cosines(
    runs: Runs | str | Path,
    *,
    seed: int | None = None,
    trial: str | None = None,
    selection: str = "best",
    out: str | Path | None = None,
) -> Array:
    """How similarly a trained ctl model represents functions with the same outcome: cosines (symbol, function, function).

    The model is one seed of `runs`, or one trial of a directory that keeps weights (`unseen run … --weights best`):
    named by the beginning of its id, or by its seed where only one trial has it. The matrices are also drawn to `out`
    (.svg, .pdf, .png or .json).

        unseen.cosines(runs, seed=3, out="cosines.svg")
        unseen.cosines("study", trial="3f09", out="cosines.svg")
    """
    loaded = _load_run(runs, seed, trial, selection)
    stack = Stack([loaded.module])
    unavailable = ctl_representation.unavailable(stack, loaded.task)
    if unavailable is not None:
        raise UsageError(f"{loaded.name}: no cosines between functions: {unavailable.reason}")
    assert isinstance(loaded.task, Lookup)
    with one_thread():
        matrices: Array = ctl_representation.cosines(stack, loaded.task)[0]
    if out is not None:
        world = loaded.task.actual_world
        groups = [list(world.groups)[group] for group in world.group_of]
        cosine_figure(dict(zip(world.symbols, matrices, strict=True)), world.names, groups, out, loaded.name)
    return matrices


def activation(
    runs: Runs | str | Path,
    *,
    seed: int | None = None,
    trial: str | None = None,
    selection: str = "best",
    examples: int = 10_000,
    out: str | Path | None = None,
) -> Array:
    """How the modules of a trained rules model share out the rules: p(module | rule), (rule, module).

    Measured on `examples` test examples of the split on which models are selected; NaN in the row of a rule that
    does not occur in them. The model is named as for `cosines`; `out` draws the matrix with the best assignment marked.

        unseen.activation(runs, seed=3, out="activation.svg")
    """
    loaded = _load_run(runs, seed, trial, selection)
    stack = Stack([loaded.module])
    unavailable = rules_specialization.unavailable(stack, loaded.task)
    if unavailable is not None:
        raise UsageError(f"{loaded.name}: no activation of modules: {unavailable.reason}")
    assert isinstance(loaded.task, Rules)
    with one_thread():
        matrix: Array = rules_specialization.activation(stack, loaded.task, examples)
    if out is not None:
        activation_figure(matrix, loaded.task.pi, out, loaded.name)
    return matrix


def attention(
    runs: Runs | str | Path,
    *,
    seed: int | None = None,
    trial: str | None = None,
    selection: str = "best",
    split: str | None = None,
    n: int = 24,
    out: str | Path | None = None,
) -> dict[str, Array]:
    """Where a trained retrieval model looks: `decoder.attention` (example, token), and where it has self-attention
    `encoder.attention` (example, head, token, token), on the first n test examples of a split (default: the one on
    which models are selected).

    The model is named as for `cosines`; `out` draws the maps, with the tokens that carry the queried features marked.

        unseen.attention(runs, seed=3, split="iid", out="attention.svg")
    """
    if n < 1:
        raise UsageError(f"n = {n}: give a positive number of examples")
    loaded = _load_run(runs, seed, trial, selection)
    with one_thread():
        maps = inside.attention_maps(Stack([loaded.module]), loaded.task, split, n)
    if not maps.maps:
        names = ", ".join(f"{name} ({', '.join(axes)})" for name, axes in inside.ATTENTION.items())
        raise UsageError(f"{loaded.name}: no attention: the model captures none of {names}")
    if out is not None:
        attention_figure(maps.maps, maps.right, maps.examples.factors, out, loaded.name)
    return maps.maps


def _load_run(runs: Runs | str | Path, seed: int | None, trial: str | None, selection: str) -> TrainedModel:
    """One seed of runs, or one trial of a directory."""
    if isinstance(runs, Runs):
        if seed is None or trial is not None:
            raise UsageError(f"which run? Give its seed: {', '.join(map(str, runs.seeds))}")
        return TrainedModel(
            runs.task, runs.model(seed, selection), f"{runs.options.name} on {runs.task.name}, seed {seed}"
        )
    check_selection(selection)
    return load_trained(runs, trial, seed, selection)
