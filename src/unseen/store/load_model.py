"""Loading trained models from the weights in a store."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from unseen.config import Config
from unseen.errors import UsageError
from unseen.models import is_ours
from unseen.models import options as make_options
from unseen.models.build import build
from unseen.store.store import Store
from unseen.studies.trial import format_options
from unseen.tasks import recorded_task
from unseen.tasks.base import Task
from unseen.training.checkpoint import unpack_weights
from unseen.training.stack import State, load_member


@dataclass(frozen=True)
class TrainedModel:
    """The task and the module of one trained trial, and a title for it."""

    task: Task
    module: nn.Module
    name: str


def load_trained(
    path: str | Path,
    trial: str | None = None,
    seed: int | None = None,
    selection: str = "best",
    only_ours: bool = False,
) -> TrainedModel:
    """The one trial of a directory whose id begins with `trial` and that has this seed, with its best or last weights.

    None, several, weights that were not kept, and configs of another release are errors. A user's class is imported and
    run, which is an error, too, if `only_ours`.
    """
    with Store.read(path) as store:
        entries = store.entries().drop_duplicates("trial")
        chosen = entries[entries["trial"].str.startswith(trial or "") & ((entries["seed"] == seed) | (seed is None))]
        if len(chosen) != 1:
            ids = ", ".join(chosen["trial"][:5]) + (", …" if len(chosen) > 5 else "")
            raise UsageError(
                f"{path}: {len(chosen)} trials fit, one is needed. Name it by the beginning of its id"
                f"{': ' + ids if ids else ' (unseen results DIR)'}"
            )
        entry = chosen.iloc[0]
        weights = unpack_weights(*store.weights(entry["trial"], selection))
    task, options = _read_configs(path, entry["task"], entry["model"], only_ours)
    module = load_member(build(options, task.spec, int(entry["seed"])), weights)
    return TrainedModel(task, module, f"{options.name} on {task.name}, seed {entry['seed']}")


@dataclass(frozen=True)
class TrainedGroup:
    """The trained modules of one task, model and recipe, by seed, and a title for them."""

    task: Task
    modules: list[nn.Module]
    seeds: list[int]
    title: str


def load_groups(path: str | Path, selection: str = "best", only_ours: bool = False) -> list[TrainedGroup]:
    """All finished trials of a directory whose weights are kept, those that differ only in their seeds as one group."""
    groups = []
    with Store.read(path) as store:
        entries = store.entries().drop_duplicates("trial")
        ended = entries[entries["status"].isin(("finished", "stopped"))]
        for (task_text, model_text, _recipe), rows in ended.groupby(["task", "model", "recipe"], sort=False):
            weights: dict[int, State] = {}
            for trial, seed in zip(rows["trial"], rows["seed"], strict=True):
                with suppress(UsageError):  # its weights were not kept
                    weights.setdefault(int(seed), unpack_weights(*store.weights(trial, selection)))
            if not weights:
                continue
            task, options = _read_configs(path, str(task_text), str(model_text), only_ours)
            modules = [load_member(build(options, task.spec, seed), state) for seed, state in weights.items()]
            title = f"{format_options(options.options())} on {format_options(task.options())}"
            groups.append(TrainedGroup(task, modules, list(weights), title))
    if not groups:
        raise UsageError(
            f"{path} keeps no weights '{selection}' of finished runs; train with `unseen train`, or run with --weights best"
        )
    return groups


def _read_configs(path: str | Path, task_text: str, model_text: str, only_ours: bool) -> tuple[Task, Config]:
    """The configs of task and model as a store names them; those of another release are refused."""
    task_options = json.loads(task_text)
    model_options = json.loads(model_text)
    task_version = task_options.pop("version")
    model_version = model_options.pop("version")
    if only_ours and not is_ours(model_options["name"]):
        raise UsageError(
            f"{path}: {model_options['name']} may be somebody else's code, which is not run by looking at its results. "
            f"If you trust it: unseen inspect {path} --trust"
        )
    task = recorded_task(**task_options)
    options = make_options(**model_options)
    for config, version in ((task, task_version), (options, model_version)):
        if config.version != version:
            raise UsageError(f"{path} holds {config.name}@{version}, this release of Unseen has @{config.version}")
    return task, options
