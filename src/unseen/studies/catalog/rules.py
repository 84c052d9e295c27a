"""What the studies of the rules family have in common: architectures, settings, gatings, data, evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from unseen.studies.catalog.retrieval import Axis
from unseen.studies.grid import Grid

ARCHITECTURES = ("mlp", "mha", "rnn")
SETTINGS: Axis = {name: {"task": {"setting": name}} for name in ("classification", "regression")}

_SPECIALIZED = {"evaluation": {"analyses": ("specialization",)}}
GATINGS: Axis = {
    "none": {"model": {"gating": "none"}},  # nothing chooses modules, so there is nothing to measure
    **{name: {"model": {"gating": name}, **_SPECIALIZED} for name in ("joint", "operation", "truth")},
}

TASK_SEEDS = SEEDS = range(5)
RULES, WIDTHS = (2, 4, 8, 16, 32), (32, 64, 128, 256, 512)

# Examples per condition, for activation matrices, and for each of the 100 rule distributions of Adaptation.
PUBLISHED: dict[str, dict[str, Any]] = {
    "mlp": {"examples": 100_000, "activation_examples": 1_000_000, "adaptation_examples": 10_000},
    "mha": {"examples": 100_000, "activation_examples": 1_000_000, "adaptation_examples": 10_000},
    "rnn": {"examples": 25_600, "activation_examples": 100_000, "adaptation_examples": 10_000},
}

NOTES = (
    "the logged curve and the selection of the best checkpoint use one and the same fixed validation set (released "
    "code: two fresh ones at every point)",
    "Adaptation in its exact linear form where that holds, else against the realised rule frequencies",
)


def grid(
    architecture: str,
    *,
    rules: Iterable[int],
    widths: Iterable[int] = (32,),
    searches: Iterable[int] = (1, 2),
    task_seeds: Iterable[int],
    seeds: Iterable[int],
    recipe: Mapping[str, Any] | None = None,
    evaluation: Mapping[str, Any] | None = None,
    axes: Mapping[str, Axis] | None = None,
) -> Grid:
    """Settings × gatings × rules × widths × tasks of one architecture (MHA: × searches), with the published recipe but
    for `recipe`, and with more `axes` if given."""
    searched: dict[str, Axis] = {"search": {number: {"task": {"search": number}} for number in searches}}
    return Grid(
        axes={
            "architecture": {architecture: {}},
            **(searched if architecture == "mha" else {}),
            "setting": SETTINGS,
            "gating": GATINGS,
            "rules": {number: {"task": {"rules": number}} for number in rules},
            "width": {width: {"model": {"width": width}} for width in widths},
            **(axes or {}),
            "task_seed": {seed: {"task": {"task_seed": seed}} for seed in task_seeds},
        },
        base={
            "task": {"name": f"rules/{architecture}"},
            "model": {"name": f"rules-{architecture}"},
            "recipe": {"name": f"rules-{architecture}-paper", **(recipe or {})},
            "evaluation": PUBLISHED[architecture] if evaluation is None else evaluation,
        },
        seeds=tuple(seeds),
    )
