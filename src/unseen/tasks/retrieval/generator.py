"""The generator: a block of datapoints at once, from the draws of one block and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unseen.randomness import Bools, Draws, Ints
from unseen.tasks.base import Array, Examples
from unseen.tasks.retrieval import extras
from unseen.tasks.retrieval.exclusion import draw_exclusion
from unseen.tasks.retrieval.formulas import FORMULAS, columns_of
from unseen.tasks.retrieval.otherpair import OtherPair, draw_other_pair
from unseen.tasks.retrieval.presets import PRESETS, Balance, Preset, PresetName, exclusion_range
from unseen.tasks.retrieval.scenarios import Scenario, deal_scenarios, draw_positions


@dataclass(frozen=True)
class Plan:
    """Everything a block is built from, worked out from a task's options.

    `relevant` (Q, m): the features behind each query, slot by slot; `queries` (Q, F): each query as bits.
    """

    kind: str
    preset_name: PresetName
    balance: Balance
    length: int
    features: int
    density: float
    scenarios: tuple[Scenario, ...]
    relevant: Ints
    queries: NDArray[np.uint8]

    @property
    def preset(self) -> Preset:
        """The fields of the preset."""
        return PRESETS[self.preset_name]


@dataclass(frozen=True)
class Frame:
    """A block before its bits are drawn. `roles` (B, m): features of the chosen pair, then of the other one."""

    answer: Bools
    single: Bools
    query: Ints
    chosen: Ints
    relevant: Ints
    roles: Ints
    scenario: Ints
    positions: Ints
    other: OtherPair | None


def generate(plan: Plan, single_share: float, count: int, draws: Draws) -> Examples:
    """`count` datapoints, a share of them with single occurrences of the chosen pair."""
    frame = _draw_frame(plan, single_share, count, draws)
    excluded = _exclude(plan, frame, draws)
    bits = draws.bernoulli(plan.density, (count, plan.length, plan.features))
    bits &= ~excluded[:, None, :]
    _settle_relevant(plan, frame, bits, draws)
    columns = columns_of(bits, frame.relevant)
    if not np.array_equal(FORMULAS[plan.kind].holds(columns), frame.answer):
        raise AssertionError(f"retrieval/{plan.kind}: a generated datapoint does not have the answer it was built for")
    factors: dict[str, Array] = {
        "scenario": np.array([s.name for s in plan.scenarios])[frame.scenario],
        "regime": np.where(frame.single, "single", "free"),
        "query_id": frame.query,
        "relevant": frame.relevant,
        "chosen": frame.chosen,
        "positions": frame.positions,
        "occurrences": columns.sum(axis=2),
        "excluded": excluded.sum(axis=1),
    }
    if plan.kind == "T2":
        factors["named"] = _name_features(plan.preset, frame, draws)
    inputs: dict[str, Array] = {"sequence": bits.view(np.uint8), "query": plan.queries[frame.query]}
    return Examples(inputs, frame.answer.astype(np.uint8)[:, None], factors)


def _draw_frame(plan: Plan, single_share: float, count: int, draws: Draws) -> Frame:
    deck = draws.permutation(count)
    scenario = deal_scenarios(plan.scenarios, deck, draws)
    answer = np.array([s.answer for s in plan.scenarios])[scenario]
    query = draws.integers(len(plan.relevant), count)
    single = draws.bernoulli(single_share, count)
    positions = draw_positions(plan.scenarios, scenario, plan.length, draws)
    relevant = roles = plan.relevant[query]
    chosen, other = np.zeros(count, np.int64), None
    if relevant.shape[1] == 4:
        chosen = deck % 2  # neighbours in the deck share their scenario: each pair is chosen in half of each
        roles = np.where(chosen[:, None] == 1, relevant[:, [2, 3, 0, 1]], relevant)
        other = draw_other_pair(plan.preset, plan.kind, roles, answer, single, plan.length, draws)
    return Frame(answer, single, query, chosen, relevant, roles, scenario, positions, other)


def _exclude(plan: Plan, frame: Frame, draws: Draws) -> Bools:
    absent = frame.positions[:, : frame.roles.shape[1]] < 0
    missing, blocked = absent.sum(axis=1), np.zeros_like(frame.query)
    if frame.other is not None:
        absent = np.concatenate([absent, frame.other.blocked], axis=1)
        blocked = frame.other.blocked.sum(axis=1)
    low, high = exclusion_range(
        plan.preset_name, plan.balance, plan.kind, missing, blocked, frame.answer & ~frame.single
    )
    size = np.maximum(low + draws.integers(high - low + 1, len(low)), 0)
    hits_relevant = plan.kind in plan.preset.exclusion_hits_relevant
    return draw_exclusion(frame.roles, absent, size, hits_relevant, plan.features, draws)


def _settle_relevant(plan: Plan, frame: Frame, bits: Bools, draws: Draws) -> None:
    """Remove the forbidden occurrences of the relevant features, then set the forced ones."""
    roles, positions = frame.roles, frame.positions
    allowed = extras.allowed_for_chosen(positions, frame.single, plan.length)
    wrong = ~frame.answer & (positions >= 0).all(axis=1)
    if plan.kind in ("T6", "T7") and plan.preset.wrong_order == "cut":
        extras.cut(allowed, positions, wrong, draws)
    for side in range(min(2, roles.shape[1])):
        extras.keep(bits, roles[:, side], allowed[side])
        extras.force(bits, roles[:, side], positions[:, side])
    if frame.other is not None:
        _settle_other_pair(plan, frame, frame.other, bits)
    if plan.kind in ("T6", "T7") and plan.preset.wrong_order == "scan":
        rows = np.flatnonzero(~frame.answer & ~frame.single & (wrong | (frame.other is not None)))
        forced, scanned = positions[rows], bits[rows]
        if frame.other is not None:
            same = roles[rows, 2:, None] == roles[rows, None, :2]
            forced = np.concatenate([forced, np.where(same, forced[:, None], -1).max(axis=2)], axis=1)
        extras.scan(scanned, roles[rows], forced)
        bits[rows] = scanned


def _settle_other_pair(plan: Plan, frame: Frame, other: OtherPair, bits: Bools) -> None:
    tokens = np.arange(plan.length)
    for side in (0, 1):
        feature, own = frame.roles[:, 2 + side], ~other.shared[:, side]
        if plan.preset.other_pair == "balanced":
            extras.keep(bits, feature, ~(own & frame.single)[:, None])
            extras.force(bits, feature, other.positions[:, side])
        if plan.preset.other_pair == "released" and plan.kind == "T7":
            # Artefact A3: in negatives the other pair avoids the forced tokens of the chosen one.
            avoids = (own & ~frame.answer)[:, None]
            for forced in frame.positions.T:
                extras.keep(bits, feature, ~avoids | (tokens != forced[:, None]))


def _name_features(preset: Preset, frame: Frame, draws: Draws) -> Ints:
    """The two features of a T2 query in the order of its text."""
    second_first = draws.bernoulli(0.5, len(frame.query))
    if preset.missing_named_first:
        missing = frame.positions < 0
        one_missing = missing[:, 0] != missing[:, 1]
        second_first = np.where(one_missing, missing[:, 1], second_first)
    return np.where(second_first[:, None], frame.relevant[:, ::-1], frame.relevant)
