"""The generator: a block of datapoints at once, from the draws of one block and nothing else.

All features are drawn as background first. Then the excluded features are removed, the occurrences of relevant features
that a scenario forbids are removed, and those that it demands are set.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unseen.randomness import Bools, Draws, Ints
from unseen.tasks.base import Array, Examples
from unseen.tasks.retrieval.formulas import FORMULAS, columns_of
from unseen.tasks.retrieval.scenarios import (
    MAX_EXCLUDED,
    PRESETS,
    Balance,
    PresetName,
    RetrievalPreset,
    Scenario,
    deal_scenarios,
    draw_positions,
    exclusion_range,
)


@dataclass(frozen=True)
class BlockPlan:
    """Everything a block is built from, worked out from a task's options.

    `relevant` (Q, m): the features behind each query, slot by slot; `queries` (Q, F): each query as bits.
    """

    task: str
    preset_name: PresetName
    balance: Balance
    length: int
    features: int
    density: float
    scenarios: tuple[Scenario, ...]
    relevant: Ints
    queries: NDArray[np.uint8]

    @property
    def preset(self) -> RetrievalPreset:
        """The fields of the preset."""
        return PRESETS[self.preset_name]


@dataclass(frozen=True)
class OtherPair:
    """The pair of a T5 or T7 query that the scenario is not built around; per example and feature, all (B, 2).

    - `shared`: the feature is also one of the chosen pair, and follows that pair alone;
    - `blocked`: it is absent from the whole sequence;
    - `positions`: the token in which it is forced; −1: none.
    """

    shared: Bools
    blocked: Bools
    positions: Ints


@dataclass(frozen=True)
class Frame:
    """A block before its bits are drawn. `roles` (B, m): the features of the chosen pair, then of the other one."""

    answer: Bools
    single: Bools
    query: Ints
    chosen: Ints
    relevant: Ints
    roles: Ints
    scenario: Ints
    positions: Ints
    other: OtherPair | None


def generate(plan: BlockPlan, single_share: float, count: int, draws: Draws) -> Examples:
    """Generate `count` datapoints, a share of them with single occurrences of the chosen pair."""
    frame = _draw_frame(plan, single_share, count, draws)
    excluded = _draw_excluded(plan, frame, draws)
    bits = draws.bernoulli(plan.density, (count, plan.length, plan.features))
    bits &= ~excluded[:, None, :]
    _settle_relevant(plan, frame, bits, draws)
    columns = columns_of(bits, frame.relevant)
    # The formula is a second opinion on every datapoint: it knows nothing of scenarios.
    if not np.array_equal(FORMULAS[plan.task].holds(columns), frame.answer):
        raise AssertionError(f"retrieval/{plan.task}: a generated datapoint does not have the answer it was built for")
    factors: dict[str, Array] = {
        "scenario": np.array([scenario.name for scenario in plan.scenarios])[frame.scenario],
        "regime": np.where(frame.single, "single", "free"),
        "query_id": frame.query,
        "relevant": frame.relevant,
        "chosen": frame.chosen,
        "positions": frame.positions,
        "occurrences": columns.sum(axis=2),
        "excluded": excluded.sum(axis=1),
    }
    if plan.task == "T2":
        factors["named"] = _name_features(plan.preset, frame, draws)
    # A boolean is one byte, so the bits are seen as numbers without a copy.
    inputs: dict[str, Array] = {"sequence": bits.view(np.uint8), "query": plan.queries[frame.query]}
    return Examples(inputs, frame.answer.astype(np.uint8)[:, None], factors)


# Before the bits are drawn


def _draw_frame(plan: BlockPlan, single_share: float, count: int, draws: Draws) -> Frame:
    # The order of these draws is part of the data: changing it changes every number.
    deck = draws.permutation(count)
    scenario = deal_scenarios(plan.scenarios, deck, draws)
    answer = np.array([row.answer for row in plan.scenarios])[scenario]
    query = draws.integers(len(plan.relevant), count)
    single = draws.bernoulli(single_share, count)
    positions = draw_positions(plan.scenarios, scenario, plan.length, draws)
    relevant = roles = plan.relevant[query]
    chosen = np.zeros(count, np.int64)
    other = None
    if relevant.shape[1] == 4:
        chosen = deck % 2  # neighbours in the deck share their scenario: each pair is chosen in half of each
        roles = np.where(chosen[:, None] == 1, relevant[:, [2, 3, 0, 1]], relevant)
        other = _draw_other_pair(plan, roles, answer, single, draws)
    return Frame(answer, single, query, chosen, relevant, roles, scenario, positions, other)


def _draw_other_pair(plan: BlockPlan, roles: Ints, answer: Bools, single: Bools, draws: Draws) -> OtherPair:
    count = len(roles)
    rows = np.arange(count)
    shared = (roles[:, 2:, None] == roles[:, None, :2]).any(axis=2)
    # If one of the features has to be blocked, it is a random one, or the one that is not shared.
    blocked_index = draws.integers(2, count)
    blocked_index = np.where(shared[:, 0], 1, np.where(shared[:, 1], 0, blocked_index))
    blocked = np.zeros((count, 2), np.bool_)
    positions = np.full((count, 2), -1)
    if plan.preset.other_pair == "released":
        blocked[rows, blocked_index] = single | ~answer if plan.task == "T5" else single
    else:
        blocked[rows, blocked_index] = True
    if plan.preset.other_pair == "balanced":
        both_absent = draws.bernoulli(0.5, count)
        forced = draws.integers(plan.length, count)
        has_shared = shared.any(axis=1)
        blocked[rows, 1 - blocked_index] = both_absent & ~has_shared
        positions[rows, 1 - blocked_index] = np.where(both_absent | has_shared, -1, forced)
    return OtherPair(shared, blocked, positions)


def _draw_excluded(plan: BlockPlan, frame: Frame, draws: Draws) -> Bools:
    """The features that each datapoint does not have at all, (B, F)."""
    absent = frame.positions[:, : frame.roles.shape[1]] < 0
    missing = absent.sum(axis=1)
    blocked = np.zeros_like(frame.query)
    if frame.other is not None:
        absent = np.concatenate([absent, frame.other.blocked], axis=1)
        blocked = frame.other.blocked.sum(axis=1)
    free_positive = frame.answer & ~frame.single
    low, high = exclusion_range(plan.preset_name, plan.balance, plan.task, missing, blocked, free_positive)
    size = np.maximum(low + draws.integers(high - low + 1, len(low)), 0)
    hits_relevant = plan.task in plan.preset.exclusion_hits_relevant
    return draw_exclusion(frame.roles, absent, size, hits_relevant, plan.features, draws)


def draw_exclusion(roles: Ints, absent: Bools, size: Ints, hits_relevant: bool, features: int, draws: Draws) -> Bools:
    """Draw excluded features as a mask (B, F): the `absent` relevant ones (B, m), and `size` (B,) random ones.

    The random ones come from all features, or only from those that are not relevant.
    """
    # Random features are drawn as numbers among the features that are not relevant, and then moved past each relevant
    # feature, in ascending order. The value `features` means none, as no feature has that number.
    relevant = np.full_like(roles, features)
    if not hits_relevant:
        relevant = np.sort(roles, axis=1)
        # A feature that two pairs share must be skipped once: its second copy becomes none.
        relevant[:, 1:] = np.where(relevant[:, 1:] == relevant[:, :-1], features, relevant[:, 1:])
        relevant = np.sort(relevant, axis=1)
    picks = draw_subsets(size, features - (relevant < features).sum(axis=1), draws)
    is_pick = picks >= 0
    for column in relevant.T:
        picks += picks >= column[:, None]
    excluded = np.zeros((len(roles), features + 1), np.bool_)  # the last column collects the entries for none
    marked = np.concatenate([np.where(absent, roles, features), np.where(is_pick, picks, features)], axis=1)
    np.put_along_axis(excluded, marked, True, axis=1)
    return excluded[:, :features]


def draw_subsets(size: Ints, population: Ints, draws: Draws) -> Ints:
    """Draw uniform subsets: row i has `size[i]` distinct numbers below `population[i]`, then −1; (B, MAX_EXCLUDED).

    Floyd's method: the step that may pick up to j picks j itself if its number was picked before.
    """
    step = np.arange(MAX_EXCLUDED)
    top = (population - size)[:, None] + step
    picks = draws.integers(top + 1, top.shape)
    for j in range(1, MAX_EXCLUDED):
        repeated = (picks[:, :j] == picks[:, j : j + 1]).any(axis=1)
        picks[:, j] = np.where(repeated, top[:, j], picks[:, j])
    return np.where(step < size[:, None], picks, -1)


# Occurrences of the relevant features


def _settle_relevant(plan: BlockPlan, frame: Frame, bits: Bools, draws: Draws) -> None:
    """Remove the forbidden occurrences of the relevant features, then set the forced ones."""
    roles = frame.roles
    positions = frame.positions
    allowed = allowed_tokens(positions, frame.single, plan.length)
    wrong_order = ~frame.answer & (positions >= 0).all(axis=1)
    if plan.task in ("T6", "T7") and plan.preset.wrong_order == "cut":
        cut_wrong_order(allowed, positions, wrong_order, draws)
    for index in range(min(2, roles.shape[1])):  # T1 has one feature
        _restrict(bits, roles[:, index], allowed[index])
        _force(bits, roles[:, index], positions[:, index])
    if frame.other is not None:
        _settle_other_pair(plan, frame, frame.other, bits)
    if plan.task in ("T6", "T7") and plan.preset.wrong_order == "scan":
        rows = np.flatnonzero(~frame.answer & ~frame.single & (wrong_order | (frame.other is not None)))
        forced = positions[rows]
        scanned = bits[rows]
        if frame.other is not None:
            # A feature of the other pair is forced only where it is also one of the chosen pair.
            same = roles[rows, 2:, None] == roles[rows, None, :2]
            forced = np.concatenate([forced, np.where(same, forced[:, None], -1).max(axis=2)], axis=1)
        scan_wrong_order(scanned, roles[rows], forced)
        bits[rows] = scanned


def _settle_other_pair(plan: BlockPlan, frame: Frame, other: OtherPair, bits: Bools) -> None:
    tokens = np.arange(plan.length)
    for index in (0, 1):
        feature = frame.roles[:, 2 + index]
        unshared = ~other.shared[:, index]
        if plan.preset.other_pair == "balanced":
            _restrict(bits, feature, ~(unshared & frame.single)[:, None])
            _force(bits, feature, other.positions[:, index])
        if plan.preset.other_pair == "released" and plan.task == "T7":
            # Artefact A3: in negatives the other pair avoids the forced tokens of the chosen one.
            avoids = (unshared & ~frame.answer)[:, None]
            for forced in frame.positions.T:
                _restrict(bits, feature, ~avoids | (tokens != forced[:, None]))


def _restrict(bits: Bools, feature: Ints, allowed: Bools) -> None:
    """Remove one feature per example, (B,), from the tokens where it is not allowed, (B, n)."""
    bits[np.arange(len(bits)), :, feature] &= allowed


def _force(bits: Bools, feature: Ints, position: Ints) -> None:
    """Set one feature per example in one token; position −1: nowhere."""
    rows = np.flatnonzero(position >= 0)
    bits[rows, position[rows], feature[rows]] = True


def allowed_tokens(positions: Ints, single: Bools, length: int) -> list[Bools]:
    """Where the two features of the chosen pair may occur besides their forced tokens: two masks (B, n).

    With single occurrences, nowhere; otherwise anywhere but in the forced token of the partner. (If both are forced
    into one token, that token is set anyway.)
    """
    tokens = np.arange(length)
    return [~single[:, None] & (tokens != positions[:, 1 - index, None]) for index in (0, 1)]


def cut_wrong_order(allowed: list[Bools], positions: Ints, wrong_order: Bools, draws: Draws) -> None:
    """In wrong-order negatives, draw a token in between: the second feature may occur up to it, the first after it."""
    first, second = positions.T
    span = np.where(wrong_order, first - second, 1)  # other rows draw as well, and ignore the number
    last = (second + draws.integers(span, len(span)))[:, None]
    tokens = np.arange(allowed[0].shape[1])
    allowed[0] &= ~wrong_order[:, None] | (tokens > last)
    allowed[1] &= ~wrong_order[:, None] | (tokens <= last)


def scan_wrong_order(bits: Bools, roles: Ints, positions: Ints) -> None:
    """Remove what would create the right order, as the released code does: token by token, and inside a token by
    ascending feature. `positions` (B, 2 or 4) are the forced tokens, already set in `bits`; −1: none.

    A second member goes if its first member has occurred already. A first member goes if its second member is forced
    into this or a later token.

    First members depend on forced tokens alone, so the scan is a running "or" over the tokens, one pair at a time. That
    holds even if the pairs share a feature, which (orders alternate) is the second of one and the first of the other.
    The chosen pair's second member is settled before it counts as the other's first; and where its first member is
    the other's second, the other pair can drop it only after its forced token, which has barred its partner by then.
    """
    tokens = np.arange(bits.shape[1])
    for first in range(0, roles.shape[1], 2):
        _restrict(bits, roles[:, first], tokens > positions[:, first + 1, None])
    for first in range(0, roles.shape[1], 2):
        a = roles[:, first]
        b = roles[:, first + 1]
        has_first = bits[np.arange(len(bits)), :, a]
        seen_before = np.logical_or.accumulate(has_first, axis=1)
        seen_before[:, 1:] = seen_before[:, :-1]  # strictly before each token
        seen_before[:, 0] = False
        _restrict(bits, b, ~(seen_before | (has_first & (a < b)[:, None])))


def _name_features(preset: RetrievalPreset, frame: Frame, draws: Draws) -> Ints:
    """The two features of a T2 query in the order of its text."""
    swapped = draws.bernoulli(0.5, len(frame.query))
    if preset.missing_named_first:
        missing = frame.positions < 0
        one_missing = missing[:, 0] != missing[:, 1]
        swapped = np.where(one_missing, missing[:, 1], swapped)
    return np.where(swapped[:, None], frame.relevant[:, ::-1], frame.relevant)
