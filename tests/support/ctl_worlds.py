"""Small worlds, the published ones, and a brute-force listing of their languages, for several test files."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unseen.tasks import task
from unseen.tasks.base import Examples
from unseen.tasks.ctl.automaton import Rule
from unseen.tasks.ctl.task import Lookup
from unseen.tasks.ctl.world import World

PUBLISHED: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "tasks" / "ctl" / "published_worlds.json").read_text()
)
SMALL = {"symbols": 4, "functions": 8, "max_length": 4, "train_size": 1_000, "iid_size": 100, "ood_size": 200}
STAGED = {**SMALL, "functions": 12, "bridge": 4, "shared": 1, "max_length": 6, "train_size": 2_000}
"""Like the published world of S."""


def make(name: str, **options: Any) -> Lookup:
    lookup = task(name, **options)
    assert isinstance(lookup, Lookup)
    return lookup


def published(name: str) -> dict[str, Any]:
    """A published world as a file without a graph has it: symbols, functions, groups, symbol sets."""
    data = PUBLISHED[name]
    names = data["function_names"]
    world = {
        "symbols": data["n_symbols"],
        "functions": dict(zip(names, data["functions"], strict=True)),
        "groups": {group: [names[f] for f in members] for group, members in data["groups"].items()},
    }
    if "overlap_symbol_sets" in data:
        sets: dict[str, dict[str, list[int]]] = {"a": {}, "b": {}}
        for row in data["overlap_symbol_sets"]:
            sets[row["source_group"][0]][names[row["function"]]] = row["symbols"]
        world["symbol_sets"] = sets
    return world


def published_examples(name: str, split: str) -> Iterator[tuple[list[str], int, int]]:
    """Functions outermost first, symbol, target."""
    for example in PUBLISHED[name]["examples"][split]:
        *functions, symbol = example["expr"].split()
        yield functions, int(symbol), example["target"]


def listed(world: World, rule: Rule, length: int) -> list[tuple[int, ...]]:
    """All examples of a length that a plain rule allows, as (start, functions …), in the order of ranks."""
    names = list(world.functions)
    chains = itertools.product(range(len(world.symbols)), *[range(len(names))] * length)
    return [chain for chain in chains if rule(world, [names[f] for f in chain[1:]], chain[0]) is None]


def whole_set(task: Lookup, split: str, data_seed: Any = 0) -> Examples:
    """All examples of a split."""
    return task.sample(split, task.size(split) or 0, data_seed=data_seed)


def chains_of(examples: Examples) -> list[tuple[int, ...]]:
    """Each example as (start, functions …) in order of application."""
    rows = zip(examples.factors["start"].tolist(), examples.factors["functions"].tolist(), strict=True)
    return [(start, *(f for f in functions if f >= 0)) for start, functions in rows]
