"""Trained models from the weights that a store keeps."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from unseen.engine.checkpoint import unpack_weights
from unseen.engine.stack import load_member
from unseen.errors import UsageError
from unseen.models import is_ours
from unseen.models import options as model_options
from unseen.studies.cell import build_model
from unseen.studies.store import Store
from unseen.tasks import task as make_task
from unseen.tasks.base import Task


@dataclass(frozen=True)
class Trained:
    """The task and the module of one trained cell, and what to call it."""

    task: Task
    module: nn.Module
    name: str


def trained(
    path: str | Path,
    cell: str | None = None,
    seed: int | None = None,
    selection: str = "best",
    only_ours: bool = False,
) -> Trained:
    """The one cell of a directory whose id begins with `cell` and that has this seed, with its best or last weights.

    None, several, weights that were not kept, and parts of another release are errors. A user's class is imported and
    run, which is an error too if `only_ours`.
    """
    with Store.read(path) as store:
        entries = store.entries().drop_duplicates("cell")
        chosen = entries[entries["cell"].str.startswith(cell or "") & ((entries["seed"] == seed) | (seed is None))]
        if len(chosen) != 1:
            some = ", ".join(chosen["cell"][:5]) + (", …" if len(chosen) > 5 else "")
            raise UsageError(
                f"{path}: {len(chosen)} cells fit, one is needed. Name it by the beginning of its id"
                f"{': ' + some if some else ' (unseen results DIR)'}"
            )
        found = chosen.iloc[0]
        weights = unpack_weights(*store.weights(found["cell"], selection))
    parts = [json.loads(found[part]) for part in ("task", "model")]
    versions = [part.pop("version") for part in parts]
    if only_ours and not is_ours(parts[1]["name"]):
        raise UsageError(f"{path}: {parts[1]['name']} is a model of somebody else's, and is not run here")
    task, options = make_task(**parts[0]), model_options(**parts[1])
    for made, version in zip((task, options), versions, strict=True):
        if made.version != version:
            raise UsageError(f"{path} holds {made.name}@{version}, this release of Unseen has @{made.version}")
    module = load_member(build_model(options, task.spec, int(found["seed"])), weights)
    return Trained(task, module, f"{options.name} on {task.name}, seed {found['seed']}")
