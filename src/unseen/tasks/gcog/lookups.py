"""The table of operators as arrays by code, for the generators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from unseen.randomness import Bools, Ints
from unseen.tasks.gcog.operators import Operator
from unseen.tasks.gcog.schema import Schema


@dataclass(frozen=True)
class Lookups:
    """Arrays by code. `key`, `about`: a feature or −1; `names` (F, codes): whether a feature is named; the rest: what
    kind of operator it is (`optional`: about one object or two; `pair`: always about two; `presence`: about whether
    objects are there)."""

    key: Ints
    about: Ints
    names: Bools
    optional: Bools
    pair: Bools
    exist: Bools
    presence: Bools
    is_: Bools
    same: Bools
    not_same: Bools


def _names(feature: int) -> Callable[[Operator], bool]:
    return lambda operator: feature in operator.named


@lru_cache(maxsize=32)
def lookups(schema: Schema) -> Lookups:
    """The arrays of a schema."""

    def where(test: Callable[[Operator], bool]) -> Bools:
        return np.array([code in schema.by_code and test(schema.by_code[code]) for code in range(codes)])

    def number(what: str) -> Ints:
        found = [getattr(schema.by_code[code], what) if code in schema.by_code else None for code in range(codes)]
        return np.array([-1 if value is None else value for value in found])

    codes = max(schema.by_code) + 1
    return Lookups(
        key=number("key"),
        about=number("about"),
        names=np.stack([where(_names(feature)) for feature in range(len(schema.features))]),
        optional=where(lambda o: o.objects == (1, 2)),
        pair=where(lambda o: o.objects == (2,)),
        exist=where(lambda o: o.kind == "exist"),
        presence=where(lambda o: o.kind in ("exist", "combine")),
        is_=where(lambda o: o.kind == "is"),
        same=where(lambda o: o.kind == "same"),
        not_same=where(lambda o: o.name.startswith("NotSame")),
    )
