"""Examples of the retrieval family made by plain loops, and run_activations planted on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

SCENARIOS = {
    "T1": ["yes", "no"],
    "T2": ["yes/same", "yes/diff", "no/none", "no/a-only", "no/b-only"],
    "T3": ["yes/both-same", "yes/both-diff", "yes/a-only", "yes/b-only", "no"],
    "T4": ["yes/same", "yes/diff", "no/none", "no/a-only", "no/b-only"],
    "T5": ["yes/same", "yes/diff", "no/none", "no/a-only", "no/b-only"],
    "T6": ["yes", "no/wrong-order", "no/a-only", "no/b-only"],
    "T7": ["yes", "no/wrong-order", "no/a-only", "no/b-only"],
}
QUERIES = 6


@dataclass
class Planted:
    """N examples of one task, with a random activations to start from."""

    targets: np.ndarray
    factors: dict[str, np.ndarray]
    length: int

    def __len__(self) -> int:
        return len(self.targets)

    def random_trace(self, seed: int) -> dict[str, np.ndarray]:
        rng = np.random.default_rng([77, seed])
        attention = rng.dirichlet(np.full(self.length, 0.5), size=len(self))
        return {
            "prediction": rng.normal(size=(len(self), 1)).astype(np.float32),
            "decoder.attention": attention.astype(np.float32),
        }

    def looking_at(self, places: list[int], answers: list[bool]) -> dict[str, np.ndarray]:
        """A model with all its attention on one token per example (−1: evenly) and these answers."""
        attention = np.full((len(self), self.length), 1 / self.length)
        for i, place in enumerate(places):
            if place >= 0:
                attention[i] = np.arange(self.length) == place
        return {"prediction": np.where(np.array(answers)[:, None], 3.0, -3.0), "decoder.attention": attention}


def _one(rng: np.random.Generator, task: str, scenario: str, length: int) -> dict[str, Any]:
    first, second = (int(k) for k in np.sort(rng.choice(length, 2, replace=False)))
    if task not in ("T6", "T7") and rng.random() < 0.5:
        first, second = second, first
    kind = scenario.split("/")[-1]
    place = {
        "same": (first, first),
        "both-same": (first, first),
        "wrong-order": (second, first),
        "a-only": (first, -1),
        "b-only": (-1, first),
        "none": (-1, -1),
        "no": (-1, -1),
    }.get(kind, (first, second))
    if task == "T1":
        place = (first, -1) if scenario == "yes" else (-1, -1)
    query = int(rng.integers(QUERIES))
    # Odd queries name the high feature first.
    pairs = [(query, 18 + query), (query + 6, 30 + query)]
    pairs = [pair[::-1] if query % 2 else pair for pair in pairs]
    slots = {"T1": 1, "T5": 4, "T7": 4}.get(task, 2)
    chosen = int(rng.integers(2)) if slots == 4 else 0
    occurrences = [0] * max(slots, 2)
    occurrences[2 * chosen], occurrences[2 * chosen + 1] = int(place[0] >= 0), int(place[1] >= 0)
    if slots == 4:
        occurrences[2 - 2 * chosen] = 3  # the other pair is background and repeats
    return {
        "scenario": scenario,
        "positions": place,
        "query_id": query,
        "chosen": chosen,
        "relevant": [f for pair in pairs for f in pair][:slots],
        "occurrences": occurrences[:slots],
    }


@pytest.fixture
def plant() -> Callable[..., Planted]:
    """`plant(task, n, length)`: examples with known scenarios, positions and pairs."""

    def make(task: str, n: int = 300, length: int = 7) -> Planted:
        rng = np.random.default_rng([5, n, length, int(task[1])])
        rows = [_one(rng, task, str(rng.choice(SCENARIOS[task])), length) for _ in range(n)]
        factors = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        targets = np.array([[int(row["scenario"].startswith("yes"))] for row in rows])
        return Planted(targets, factors, length)

    return make
