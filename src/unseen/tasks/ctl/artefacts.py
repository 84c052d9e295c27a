"""What `verify` measures on the data beyond the generic checks."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from unseen.randomness import Bools
from unseen.tasks.base import Artefact, Examples


def forbidden(trained: Bools) -> Artefact:
    """Examples with a transition that training must not have, at any step; `trained` (groups, functions, symbols)."""

    def measure(examples: Examples) -> float:
        groups, functions, symbols = (examples.factors[name] for name in ("groups", "functions", "symbols"))
        follows = functions[:, 1:] >= 0
        new = ~trained[groups[:, :-1], functions[:, 1:], symbols[:, 1:-1]]
        return float((follows & new).any(1).mean())

    return Artefact(
        "forbidden",
        "share of examples with a transition that training must not have",
        measure,
        absent=0,
        tolerance=0,
        known=False,
    )


def included(lengths: Collection[int], known: bool) -> Artefact:
    """Examples that are in every training set, because all of their length are."""

    def measure(examples: Examples) -> float:
        return float(np.isin(examples.factors["length"], list(lengths)).mean())

    return Artefact(
        "included", "share of examples that every training set has", measure, absent=0, tolerance=0, known=known
    )
