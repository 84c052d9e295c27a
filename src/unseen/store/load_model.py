"""Loading trained models from the weights in a store."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from unseen.errors import UsageError
from unseen.models import is_ours
from unseen.models import options as make_options
from unseen.models.build import build
from unseen.store.store import Store
from unseen.tasks import task as make_task
from unseen.tasks.base import Task
from unseen.training.checkpoint import unpack_weights
from unseen.training.stack import load_member


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
    task_options = json.loads(entry["task"])
    model_options = json.loads(entry["model"])
    task_version = task_options.pop("version")
    model_version = model_options.pop("version")
    if only_ours and not is_ours(model_options["name"]):
        raise UsageError(f"{path}: {model_options['name']} is a model of somebody else's, and is not run here")
    task = make_task(**task_options)
    options = make_options(**model_options)
    for config, version in ((task, task_version), (options, model_version)):
        if config.version != version:
            raise UsageError(f"{path} holds {config.name}@{version}, this release of Unseen has @{config.version}")
    module = load_member(build(options, task.spec, int(entry["seed"])), weights)
    return TrainedModel(task, module, f"{options.name} on {task.name}, seed {entry['seed']}")
