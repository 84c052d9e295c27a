"""From chains of functions to examples: tokens, mask, target and factors.

Tokens are the symbols 0 … n − 1, the functions n … n + F − 1, then EOS and SOS. An example reads SOS, functions,
symbol, EOS, the outermost function first (`backward`), or SOS, symbol, functions, EOS (`forward`),
padded with EOS.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from unseen.randomness import Bools
from unseen.tasks.base import Array, Examples
from unseen.tasks.ctl.unranking import Walks
from unseen.tasks.ctl.world import World

Order = Literal["backward", "forward"]
MARKERS = 3
"""Tokens besides the functions: SOS, the symbol, EOS."""


@dataclass(frozen=True)
class Chains:
    """Examples before encoding: start symbols (B,), functions in order of application (B, longest) padded with −1, and
    lengths (B,)."""

    start: Array
    functions: Array
    length: Array

    def __len__(self) -> int:
        return len(self.start)

    def __getitem__(self, index: slice | Array) -> Chains:
        return Chains(self.start[index], self.functions[index], self.length[index])

    def copy(self) -> Chains:
        """The same examples in new arrays."""
        return Chains(self.start.copy(), self.functions.copy(), self.length.copy())

    @staticmethod
    def from_walks(walks: Walks) -> Chains:
        """Examples of one length."""
        start, functions = walks
        return Chains(start, functions, np.full(len(start), functions.shape[1]))

    @staticmethod
    def concat(pieces: Sequence[Chains], longest: int = 0) -> Chains:
        """All chains in one set, padded to the longest of them or to `longest` functions."""
        longest = max([longest, *(piece.functions.shape[1] for piece in pieces)])
        count = sum(map(len, pieces))
        joined = Chains(np.empty(count, np.int16), np.full((count, longest), -1, np.int16), np.empty(count, np.int16))
        row = 0
        for piece in pieces:
            rows = slice(row, row + len(piece))
            joined.start[rows] = piece.start
            joined.functions[rows, : piece.functions.shape[1]] = piece.functions
            joined.length[rows] = piece.length
            row += len(piece)
        return joined


class ChainCache:
    """The most recently used sets, so that sampling a part of a set does not draw the whole set again."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity  # in examples, over all sets
        self._sets: OrderedDict[Hashable, Chains] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Chains]) -> Chains:
        """The set of a key, made if it is not in the cache."""
        chains = self._sets.pop(key) if key in self._sets else make()
        self._sets[key] = chains
        while len(self._sets) > 1 and sum(map(len, self._sets.values())) > self._capacity:
            self._sets.popitem(last=False)
        return chains


def encode(world: World, trained: Bools, order: Order, chains: Chains) -> Examples:
    """Encode chains as examples; `trained` (groups, functions, symbols) says which entries training has."""
    count, longest = chains.functions.shape
    # The symbol before the first function and after each, (B, longest + 1), padded with −1.
    symbols = np.full((count, longest + 1), -1, np.int16)
    symbol = symbols[:, 0] = chains.start
    for step in range(longest):
        function = chains.functions[:, step]
        symbol = world.tables[function, symbol]  # of the last function where there is none (−1): masked below
        symbols[:, step + 1] = np.where(function >= 0, symbol, -1)
    inputs = {
        "token": _tokens(world, order, chains),
        "mask": np.arange(longest + MARKERS) < chains.length[:, None] + MARKERS,
    }
    targets = symbols[np.arange(count), chains.length].astype(np.int64)
    return Examples(inputs, targets, _factors(world, trained, chains, symbols))


def _tokens(world: World, order: Order, chains: Chains) -> Array:
    functions, symbols = world.tables.shape
    count, longest = chains.functions.shape
    length = chains.length[:, None].astype(np.int64)
    eos = symbols + functions
    tokens = np.full((count, longest + MARKERS), eos, np.int16)
    tokens[:, 0] = eos + 1  # SOS
    slot = np.arange(longest)
    if order == "backward":
        first_column = 1
        application = length - 1 - slot  # the function applied last is written first
        symbol_column = length + 1
    else:
        first_column = 2
        application = np.broadcast_to(slot, (count, longest))
        symbol_column = np.ones_like(length)
    inside = slot < length
    ordered = np.take_along_axis(chains.functions, np.where(inside, application, 0), axis=1)
    tokens[:, first_column : first_column + longest] = np.where(inside, ordered + symbols, eos)
    # The symbol comes last: in a backward row its column was just filled with padding.
    np.put_along_axis(tokens, symbol_column, chains.start[:, None], axis=1)
    return tokens


def _factors(world: World, trained: Bools, chains: Chains, symbols: Array) -> dict[str, Array]:
    """The factors of each example.

    `transition` and `entry` describe the deciding step: the first that training does not have, or else the first.
    """
    # −1 is the padding of functions; as an index it takes the last function, which `where` then replaces.
    rows = np.arange(len(chains))
    groups = np.where(chains.functions >= 0, world.group_of[chains.functions], -1).astype(np.int16)
    # Step i leads from function i, of group `before`, to function i + 1, which is entered at `symbol`.
    before = groups[:, :-1]
    function = chains.functions[:, 1:]
    symbol = symbols[:, 1:-1]
    exists = function >= 0
    transitions = np.where(exists, before * len(world.groups) + groups[:, 1:], -1).astype(np.int16)
    # Names of all transitions and entries, in the order of their codes; code 0 is that of chains without a step.
    transition_names = [""]
    entry_names = [""]
    for group in world.groups:
        transition_names += [f"{group}→{other}" for other in world.groups]
        for name in world.names:
            for symbol_name in world.symbols:
                entry_names.append(f"{group}→{name}({symbol_name})")
    transition = np.zeros(len(chains), np.int64)
    entry = np.zeros(len(chains), np.int64)
    if exists.shape[1]:
        step = (exists & ~trained[before, function, symbol]).argmax(1)  # 0 if training has all of them
        transition = 1 + transitions[rows, step].astype(np.int64)
        code = (before[rows, step].astype(np.int64) * len(world.names) + function[rows, step]) * len(world.symbols)
        entry = np.where(transition > 0, 1 + code + symbol[rows, step], 0)
    return {
        "functions": chains.functions,
        "groups": groups,
        "symbols": symbols,
        "transitions": transitions,
        "transition": np.array(transition_names)[transition],
        "entry": np.array(entry_names)[entry],
        "length": chains.length,
        "start": chains.start,
    }
