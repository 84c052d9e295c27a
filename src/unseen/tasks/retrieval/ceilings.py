"""How far one gets without looking at the query, worked out from the design.

Artefact A5: the number of active bits is some forced ones plus a binomial number out of the cells that are free to be
active. A datapoint's scenario, its excluded features and the state of its other pair say how many cells those are.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from unseen.tasks.retrieval.generator import Plan
from unseen.tasks.retrieval.presets import exclusion_range
from unseen.tasks.retrieval.scenarios import Scenario
from unseen.tasks.retrieval.shortcuts import one_slot, presence_law

Cells = tuple[float, float]
"""Forced bits, and cells that are active with the density's probability."""


def bit_count_ceiling(plan: Plan, single_share: float) -> float:
    """Accuracy of the best threshold on the number of active bits.

    Where the released data exclude relevant features, or scan, the mean number of cells stands for its distribution.
    """
    from scipy.special import bdtr  # inside, because importing it takes longer than making a task

    bits = np.arange(plan.length * plan.features + 1)
    gap = np.zeros(len(bits))
    for single, share in ((True, single_share), (False, 1 - single_share)):
        for scenario in plan.scenarios if share else ():
            for weight, forced, cells in _mixture(plan, scenario, single):
                law = bdtr(bits - forced, np.full(len(bits), round(cells)), plan.density)
                below = np.where(bits < forced, 0.0, np.where(bits - forced >= round(cells), 1.0, law))
                gap += (1 if scenario.answer else -1) * share * scenario.weight * weight * below
    return float(1 + np.abs(gap).max()) / 2


def never_ceiling(plan: Plan, single_share: float, only_irrelevant: bool) -> float:
    """Accuracy of the best threshold on the number of features that never occur: of all, or of the irrelevant ones.

    Excluded features never occur, others by chance; of the relevant ones, those that are missing or blocked.
    """
    from scipy.stats import binom, hypergeom  # inside, as above

    irrelevant = plan.features - plan.relevant.shape[1]
    by_chance = (1 - plan.density) ** plan.length
    counts = np.arange(plan.features + 1)
    gap = np.zeros(len(counts))
    for single, share in ((True, single_share), (False, 1 - single_share)):
        for scenario in plan.scenarios if share else ():
            for weight, size, absent in _exclusions(plan, scenario, single):
                excluded = np.arange(size + 1)
                law = (
                    hypergeom.pmf(excluded, plan.features, irrelevant, size)
                    if plan.kind in plan.preset.exclusion_hits_relevant
                    else (excluded == size).astype(float)
                )
                offset = excluded + (0 if only_irrelevant else absent)
                below = binom.cdf(counts[:, None] - offset, irrelevant - excluded, by_chance) @ law
                gap += (1 if scenario.answer else -1) * share * scenario.weight * weight * below
    return float(1 + np.abs(gap).max()) / 2


def one_feature_ceiling(plan: Plan) -> float:
    """Accuracy of "a certain feature occurs", whatever the query: it is relevant to a few queries only."""
    slots = plan.relevant.shape[1]
    law = presence_law(plan.scenarios, slots == 4, 1 / 2)
    best = max(law.accuracy(partial(one_slot, slot)) for slot in range(slots))
    return float(1 / 2 + (best - 1 / 2) * slots / plan.features)


def _mixture(plan: Plan, scenario: Scenario, single: bool) -> Iterator[tuple[float, float, float]]:
    """Weight, forced bits and free cells of each way to build a datapoint of a scenario."""
    forced, extra = _chosen_cells(scenario, plan.length, single)
    for chance, blocked, (other_forced, other_extra) in _other_cells(plan, scenario, single):
        sizes = _sizes(plan, scenario, single, blocked)
        for size in sizes:
            irrelevant, relevant_kept = plan.features - plan.relevant.shape[1], 1.0
            if plan.kind in plan.preset.exclusion_hits_relevant:
                relevant_kept = 1 - size / plan.features
                left = irrelevant * relevant_kept
            else:
                left = float(irrelevant - size)
            cells = plan.length * left + relevant_kept * (extra + other_extra)
            yield chance / len(sizes), forced + other_forced, cells


def _exclusions(plan: Plan, scenario: Scenario, single: bool) -> Iterator[tuple[float, int, int]]:
    """Weight, number of randomly excluded features, and relevant features that are missing or blocked."""
    for chance, blocked, _ in _other_cells(plan, scenario, single):
        sizes = _sizes(plan, scenario, single, blocked)
        for size in sizes:
            yield chance / len(sizes), size, _missing(plan, scenario) + blocked


def _missing(plan: Plan, scenario: Scenario) -> int:
    return int(min(2, plan.relevant.shape[1])) - sum(scenario.present)


def _sizes(plan: Plan, scenario: Scenario, single: bool, blocked: int) -> list[int]:
    """The equally likely numbers of randomly excluded features."""
    low, high = exclusion_range(
        plan.preset_name,
        plan.balance,
        plan.kind,
        np.array([_missing(plan, scenario)]),
        np.array([blocked]),
        np.array([scenario.answer and not single]),
    )
    found: list[int] = np.maximum(np.arange(low[0], high[0] + 1), 0).tolist()
    return found


def _chosen_cells(scenario: Scenario, length: int, single: bool) -> Cells:
    """The chosen pair: no extra cells if single, else all but its forced tokens; wrong orders leave half of them."""
    present = sum(scenario.present)
    apart = scenario.placement in ("different", "in-order", "reversed")
    extra = present * (length - (2 if apart else 1))
    if scenario.placement == "reversed":
        extra //= 2
    return float(present), 0.0 if single else float(extra)


def _other_cells(plan: Plan, scenario: Scenario, single: bool) -> list[tuple[float, int, Cells]]:
    """Chance, blocked features and cells of each state of the other pair, if there is one."""
    length = plan.length
    if plan.relevant.shape[1] < 4:
        return [(1.0, 0, (0.0, 0.0))]
    if plan.preset.other_pair == "balanced":
        return [(0.5, 2, (0.0, 0.0)), (0.5, 1, (1.0, 0.0 if single else length - 1.0))]
    if plan.preset.other_pair == "background" or single or (plan.kind == "T5" and not scenario.answer):
        avoided = sum(scenario.present) if _avoids(plan, scenario) else 0
        return [(1.0, 1, (0.0, float(length - avoided)))]
    if scenario.answer:
        return [(1.0, 0, (0.0, 2.0 * length))]
    # The scan: the first feature is free, the second until the first has come.
    tokens = length - sum(scenario.present)
    until = sum((1 - plan.density) ** token for token in range(tokens))
    return [(1.0, 0, (0.0, tokens + until))]


def _avoids(plan: Plan, scenario: Scenario) -> bool:
    return plan.preset.other_pair == "released" and plan.kind == "T7" and not scenario.answer
