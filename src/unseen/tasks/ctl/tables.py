"""Random functions: permutations of the symbols, or any maps of them, as tables."""

from __future__ import annotations

from math import factorial

from unseen.errors import UsageError
from unseen.randomness import stream
from unseen.tasks.ctl.subsets import subset

Tables = tuple[tuple[int, ...], ...]


def draw_tables(symbols: int, functions: int, task_seed: int, bijective: bool = True, distinct: bool = True) -> Tables:
    """Random tables: permutations of the symbols, or (not `bijective`) any maps; all different if `distinct`."""
    many = factorial(symbols) if bijective else symbols**symbols
    if distinct and functions > many:
        raise UsageError(f"{functions} different functions of {symbols} symbols were asked for, {many} exist")
    draws = stream("ctl tables", symbols, functions, bijective, distinct, task_seed).block()
    if distinct:
        numbers = subset(draws, many, functions)[draws.permutation(functions)].tolist()
    else:
        numbers = [int(subset(draws, many, 1)[0]) for _ in range(functions)]
    unrank = _permutation if bijective else _map
    return tuple(unrank(number, symbols) for number in numbers)


def _permutation(number: int, symbols: int) -> tuple[int, ...]:
    """The permutation with that number in the order of a dictionary."""
    left, found = list(range(symbols)), []
    for rest in range(symbols - 1, -1, -1):
        place, number = divmod(number, factorial(rest))
        found.append(left.pop(place))
    return tuple(found)


def _map(number: int, symbols: int) -> tuple[int, ...]:
    found = []
    for _ in range(symbols):
        number, symbol = divmod(number, symbols)
        found.append(symbol)
    return tuple(found)
