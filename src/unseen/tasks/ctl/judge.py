"""Foreign examples: their targets against the plain solver, their chains against a plain reading of the condition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from unseen.errors import CheckFailed, nearest
from unseen.tasks.base import Judgement, Mismatch
from unseen.tasks.ctl.files import Written, read_examples
from unseen.tasks.ctl.grammar import Rule
from unseen.tasks.ctl.solver import solve
from unseen.tasks.ctl.world import World

Allowed = Mapping[str, tuple[tuple[int, ...], Rule]]
"""By condition, the lengths it may have and the rule that says what else is wrong."""


def judge_file(path: str | Path, world: World, conditions: Allowed) -> Judgement:
    """Read a file of examples; every wrong target and every example that its condition does not allow is named."""
    examples = read_examples(path, world)
    mismatches = [mismatch for example in examples for mismatch in _judge(path, example, world, conditions)]
    return Judgement(len(examples), tuple(mismatches))


def _judge(path: str | Path, example: Written, world: World, conditions: Allowed) -> Iterator[Mismatch]:
    tables, ids = list(world.functions.values()), {name: place for place, name in enumerate(world.functions)}
    target = solve(tables, [ids[name] for name in example.functions], example.symbol)
    if target != example.target:
        yield Mismatch(example.line, world.symbols[example.target], world.symbols[target])
    if example.condition is None:
        return
    if example.condition not in conditions:
        raise CheckFailed(
            f"{path}, line {example.line}: unknown condition '{example.condition}'. "
            f"{nearest(example.condition, conditions)}"
        )
    lengths, rule = conditions[example.condition]
    if len(example.functions) in lengths:
        fault = rule(world, example.functions, example.symbol)
    else:
        fault = f"it has {len(example.functions)} functions; this condition has {', '.join(map(str, lengths))}"
    if fault is not None:
        yield Mismatch(example.line, example.condition, fault, "the condition")
