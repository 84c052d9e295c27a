"""From chains of functions to examples: tokens, mask, target and factors.

Tokens: symbols 0 … n − 1, functions n … n + F − 1, then EOS and SOS. An example reads SOS, functions, symbol, EOS, the
outermost function first (`backward`), or SOS, symbol, functions, EOS (`forward`); what is left is padded with EOS.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from unseen.randomness import Bools, Ints
from unseen.tasks.base import Array, Examples
from unseen.tasks.ctl.chains import Chains
from unseen.tasks.ctl.world import World

Order = Literal["backward", "forward"]
MARKERS = 3
"""Tokens besides the functions: SOS, the symbol, EOS."""


def encode(world: World, trained: Bools, order: Order, chains: Chains) -> Examples:
    """The examples of these chains. `trained` (groups, functions, symbols): see `splits.entries`."""
    symbols = trace(world.tables, chains)
    rows = np.arange(len(chains))
    inputs = {
        "token": _tokens(world, order, chains),
        "mask": np.arange(chains.functions.shape[1] + MARKERS) < chains.length[:, None] + MARKERS,
    }
    targets = symbols[rows, chains.length].astype(np.int64)
    return Examples(inputs, targets, _factors(world, trained, chains, symbols))


def trace(tables: Ints, chains: Chains) -> Array:
    """The symbol before the first function and after each, (B, longest + 1), padded with −1."""
    found = np.full((len(chains), chains.functions.shape[1] + 1), -1, np.int16)
    symbol = found[:, 0] = chains.start
    for step in range(chains.functions.shape[1]):
        function = chains.functions[:, step]
        symbol = tables[function, symbol]
        found[:, step + 1] = np.where(function >= 0, symbol, -1)
    return found


def _tokens(world: World, order: Order, chains: Chains) -> Array:
    functions, symbols = world.tables.shape
    longest, length = chains.functions.shape[1], chains.length[:, None].astype(np.int64)
    end, start = symbols + functions, symbols + functions + 1
    tokens = np.full((len(chains), longest + MARKERS), end, np.int16)
    tokens[:, 0] = start
    place = np.arange(longest)
    first = 1 if order == "backward" else 2
    application = length - 1 - place if order == "backward" else np.broadcast_to(place, (len(chains), longest))
    inside = place < length
    found = np.take_along_axis(chains.functions, np.where(inside, application, 0), axis=1) + symbols
    tokens[:, first : first + longest] = np.where(inside, found, end)
    symbol = length + 1 if order == "backward" else np.ones_like(length)
    np.put_along_axis(tokens, symbol, chains.start[:, None], axis=1)
    return tokens


def _factors(world: World, trained: Bools, chains: Chains, symbols: Array) -> dict[str, Array]:
    """What makes each example what it is. The deciding step is the first that training does not have, or the first."""
    rows, groups = np.arange(len(chains)), len(world.groups)
    group = np.where(chains.functions >= 0, world.group_of[chains.functions], -1).astype(np.int16)
    before, function, symbol = group[:, :-1], chains.functions[:, 1:], symbols[:, 1:-1]
    follows = function >= 0
    transitions = np.where(follows, before * groups + group[:, 1:], -1).astype(np.int16)
    names = list(world.groups)
    pairs = np.array(["", *(f"{one}→{other}" for one in names for other in names)])
    entries = np.array(["", *(f"{one}→{f}({s})" for one in names for f in world.names for s in world.symbols)])
    deciding, entry = np.zeros(len(chains), np.int64), np.zeros(len(chains), np.int64)
    if follows.shape[1]:
        step = (follows & ~trained[before, function, symbol]).argmax(1)
        deciding = 1 + transitions[rows, step].astype(np.int64)
        code = (before[rows, step].astype(np.int64) * len(world.names) + function[rows, step]) * len(world.symbols)
        entry = np.where(deciding > 0, 1 + code + symbol[rows, step], 0)
    return {
        "functions": chains.functions,
        "groups": group,
        "symbols": symbols,
        "transitions": transitions,
        "transition": pairs[deciding],
        "entry": entries[entry],
        "length": chains.length,
        "start": chains.start,
    }
