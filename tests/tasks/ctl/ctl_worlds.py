"""Small worlds, the published ones, and a brute-force listing of their languages, for several test files."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unseen.tasks import task
from unseen.tasks.ctl.grammar import Rule
from unseen.tasks.ctl.task import Lookup
from unseen.tasks.ctl.world import World

PUBLISHED: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "published_worlds.json").read_text())
SMALL = {"symbols": 4, "functions": 8, "max_length": 4, "train_size": 1_000, "iid_size": 100, "ood_size": 200}
STAGED = {**SMALL, "functions": 12, "bridge": 4, "shared": 1, "max_length": 6, "train_size": 2_000}
"""Like the published world of S."""


def make(name: str, **options: Any) -> Lookup:
    found = task(name, **options)
    assert isinstance(found, Lookup)
    return found


def published(name: str) -> dict[str, Any]:
    """A published world as a file without a graph has it: symbols, functions, groups, symbol sets."""
    given = PUBLISHED[name]
    names = given["function_names"]
    world = {
        "symbols": given["n_symbols"],
        "functions": dict(zip(names, given["functions"], strict=True)),
        "groups": {group: [names[f] for f in members] for group, members in given["groups"].items()},
    }
    if "overlap_symbol_sets" in given:
        sets: dict[str, dict[str, list[int]]] = {"a": {}, "b": {}}
        for row in given["overlap_symbol_sets"]:
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
