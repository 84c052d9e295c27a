"""One example in words: what it reads, step by step, and why it is in or out of the training language."""

from __future__ import annotations

from unseen.tasks.base import Examples
from unseen.tasks.ctl.encode import Order
from unseen.tasks.ctl.grammar import fault_in_testing, fault_in_training, group_of, intermediate
from unseen.tasks.ctl.world import World


def chain(world: World, examples: Examples, index: int) -> tuple[list[str], int]:
    """The functions of an example in order of application, by name, and its start symbol."""
    functions = examples.factors["functions"][index].tolist()
    return [world.names[f] for f in functions if f >= 0], int(examples.factors["start"][index])


def reading(world: World, order: Order, functions: list[str], start: int) -> str:
    """An example as it is read: `c b a 3`, or `3 a b c`."""
    names = [*reversed(functions), world.symbols[start]] if order == "backward" else [world.symbols[start], *functions]
    return " ".join(names)


def describe(name: str, world: World, order: Order, examples: Examples, index: int) -> str:
    """The chain, its intermediate symbols and groups, the answer, and its standing in the training language."""
    functions, start = chain(world, examples, index)
    symbols = [world.symbols[symbol] for symbol in intermediate(world, functions, start)]
    count = f"{len(functions)} function{'' if len(functions) == 1 else 's'}"
    lines = [f"{name}, {count}: {reading(world, order, functions, start)}"]
    for function, before, after in zip(functions, symbols, symbols[1:], strict=False):
        lines.append(f"  {function}({before}) = {after}    group {group_of(world, function)}")
    lines.append(f"answer: {world.symbols[int(examples.targets[index])]}")
    lines.append(standing(world, functions, start))
    return "\n".join(lines)


def standing(world: World, functions: list[str], start: int) -> str:
    """Why a chain is in or out of the training language."""
    groups = " → ".join(group_of(world, function) for function in functions)
    fault = fault_in_training(world, functions, start)
    if fault is not None:
        tested = fault_in_testing(world, functions, start) is None
        return f"{'in the test' if tested else 'not in the training'} language: {fault}"
    if len(functions) == 1:
        return f"in the training language: a single function of group {groups}"
    return f"in the training language: {groups}, training transition{'' if len(functions) == 2 else 's'} all the way"
