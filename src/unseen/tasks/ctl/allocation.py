"""How many examples of each length: the published rule, and what drawing lengths at random comes to."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, floor

from unseen.errors import UsageError

Counts = Mapping[int, int]
"""Numbers of examples by length."""


def allocate(available: Counts, wanted: int, share: float) -> dict[int, int]:
    """For lengths ascending: an equal part of what is still wanted, but at most a share of what there is.

    >>> allocate({2: 4_096, 3: 65_536, 4: 1_048_576, 5: 16_777_216, 6: 268_435_456}, 301_000, 0.5)
    {2: 2048, 3: 32768, 4: 88728, 5: 88728, 6: 88728}
    """
    found: dict[int, int] = {}
    lengths = sorted(length for length, count in available.items() if count)
    for place, length in enumerate(lengths):
        part = ceil((wanted - sum(found.values())) / (len(lengths) - place))
        most = available[length] // 2 if share == 0.5 else floor(share * available[length])
        found[length] = min(most, part)
    return found


def expect(available: Counts, wanted: int) -> dict[int, int]:
    """How many different examples of each length come of drawing lengths uniformly until `wanted` are found.

    After d draws of each of the lengths, a length with N examples has shown N · (1 − (1 − 1/N)^d) of them on average; d
    is chosen so that they add up.

    >>> expect({2: 480, 3: 4_368, 4: 50_888, 5: 470_792}, 61_136)
    {2: 480, 3: 4366, 4: 24332, 5: 31958}
    """
    if wanted > sum(available.values()):
        raise shortage("train and iid", available, available, wanted)
    low, high = 0.0, 1.0

    def shown(draws: float) -> dict[int, float]:
        return {length: count * (1 - (1 - 1 / count) ** draws) for length, count in available.items() if count}

    while sum(shown(high).values()) < wanted and high < 1e18:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(shown(middle).values()) < wanted else (low, middle)
    found = {length: round(count) for length, count in shown(high).items()}
    for length in sorted(found, key=lambda length: available[length], reverse=True):  # what rounding left over
        found[length] += min(wanted - sum(found.values()), available[length] - found[length])
    return found


def shortage(
    what: str, available: Counts, taken: Counts, wanted: int, note: str = "", or_all: bool = False
) -> UsageError:
    """The error of a set that cannot be filled, with what there is."""
    per_length = ", ".join(f"{length}: {taken.get(length, 0)} of {n}" for length, n in available.items() if n)
    return UsageError(
        f"{what}: {wanted} different examples were asked for, {sum(taken.values())} can be taken{note} "
        f"(by length {per_length}). Ask for fewer"
        + (", allow longer ones, or set on_shortage = take_all" if or_all else " or allow longer ones")
    )
