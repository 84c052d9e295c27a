"""Blocks of examples: questions of one or several depths, their tokens, targets and factors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from unseen.randomness import Draws, Ints
from unseen.tasks.base import Array
from unseen.tasks.gcog.clean import generate_clean
from unseen.tasks.gcog.plan import Plan, deal
from unseen.tasks.gcog.pool import Pool
from unseen.tasks.gcog.presets import PRESETS, PresetName
from unseen.tasks.gcog.records import Records, leaf_path, operator_count
from unseen.tasks.gcog.released import generate_released
from unseen.tasks.gcog.schema import Schema
from unseen.tasks.gcog.tokens import Tokens, encode, rule_length

Block = tuple[Tokens, Ints, dict[str, Array]]


def build_examples(plans: Sequence[Plan], preset: PresetName, count: int, dealt: bool, draws: Draws) -> Block:
    """Tokens, targets and factors of `count` examples; every plan is equally likely, drawn example by example.

    `dealt` (preset clean): the operators that paths end at are dealt out evenly instead of drawn, so that every stretch
    of a test set has as many of each.
    """
    which = draws.integers(len(plans), count) if len(plans) > 1 else np.zeros(count, np.int64)
    codes = sorted({code for plan in plans for code in plan.leaf_codes})
    leaves = deal(codes, count, draws) if dealt and preset == "clean" else None

    def generate(plan: Plan, rows: Ints) -> Records:
        if preset == "clean":
            return generate_clean(plan, len(rows), None if leaves is None else leaves[rows], draws)
        return generate_released(plan, len(rows), draws)

    each = ((plan, np.flatnonzero(which == number)) for number, plan in enumerate(plans))
    return _encode(plans, preset, ((plan, rows, generate(plan, rows)) for plan, rows in each))


def ask_examples(pool: Pool, count: int, draws: Draws) -> Block:
    """The same for `count` questions of a pool."""
    return _encode(pool.plans, pool.preset, pool.ask(count, draws))


def _encode(plans: Sequence[Plan], preset: PresetName, parts: Iterable[tuple[Plan, Ints, Records]]) -> Block:
    """Tokens, targets and factors of records by plan, in the order of the rows that they have among all."""
    deepest = max(plan.depth for plan in plans)
    blocks, rows = [], []
    for plan, mine, records in parts:
        tokens = encode(plan.schema, records, plan.depth, rule_length(deepest), PRESETS[preset].unnamed)
        blocks.append((tokens, records.target, _factors(plan.schema, records, plan.depth, deepest)))
        rows.append(mine)
    return blocks[0] if len(blocks) == 1 else _merge(blocks, np.argsort(np.concatenate(rows)))


def _factors(schema: Schema, records: Records, depth: int, deepest: int) -> dict[str, Array]:
    """What makes each example what it is. Operators and turns are padded for the deepest questions of the block."""
    every = np.arange(len(records))
    names = np.array(
        [schema.by_code[code].name if code in schema.by_code else "" for code in range(max(schema.by_code) + 1)]
    )
    operators = np.zeros((len(records), operator_count(deepest)), np.uint8)
    operators[:, : operator_count(depth)] = records.operator
    path = np.full((len(records), (deepest - 1) // 2), -1, np.int8)
    path[:, : (depth - 1) // 2] = leaf_path(records.leaf, depth)
    return {
        "depth": np.full(len(records), depth),
        "operator": names[records.operator[every, records.leaf]],
        "answer_kind": schema.answer_kinds[records.target],
        "object": records.named[every, records.leaf, 0],
        "operators": operators,
        "path": path,
        "distractors": records.distractors,
        "redraws": records.redraws,
    }


def _merge(blocks: Sequence[Block], order: Ints) -> Block:
    """Blocks one after the other, then in the given order."""
    rule = np.concatenate([tokens.rule for tokens, _, _ in blocks])[order]
    grid = np.concatenate([tokens.grid for tokens, _, _ in blocks])[order]
    targets = np.concatenate([targets for _, targets, _ in blocks])[order]
    factors = {name: np.concatenate([factors[name] for _, _, factors in blocks])[order] for name in blocks[0][2]}
    return Tokens(rule, grid), targets, factors
