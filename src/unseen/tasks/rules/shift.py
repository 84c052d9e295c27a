"""How the conditions of a rules task depart from its training data."""

from __future__ import annotations

from dataclasses import dataclass

LENGTHS = (3, 5, 10, 20, 30)
"""The lengths on which sequences are tested."""


@dataclass(frozen=True)
class Shift:
    """One condition: how many tokens (0: the inputs are no sequence), how far inputs are scaled, which rules."""

    length: int
    amplitude: float = 1.0
    uniform_rules: bool = False

    def summary(self) -> str:
        """The condition in words."""
        tokens = f"{self.length} tokens" if self.length else "inputs"
        scaled = "as in training" if self.amplitude == 1 else f"with {self.amplitude:g} times the amplitude"
        rules = "; all rules equally often" if self.uniform_rules else ""
        return f"{tokens} {scaled}{rules}"


def shifts(length: int, amplitude: float, uniform: bool) -> dict[str, Shift]:
    """The conditions of a task trained on that length (0: none), by name; `uniform`: as are its rules.

    >>> list(shifts(0, 2.0, uniform=False))
    ['train', 'iid', 'ood/amplitude=2', 'ood/rules=uniform']
    >>> list(shifts(10, 2.0, uniform=True))[2:9]
    ['ood/length=3', 'ood/length=5', 'ood/length=20', 'ood/length=30', 'ood/length=3,amplitude=2', \
'ood/length=5,amplitude=2', 'ood/amplitude=2']
    """
    found = {"train": Shift(length), "iid": Shift(length)}
    lengths = sorted({length, *LENGTHS}) if length else [0]
    for size in (1.0, amplitude):
        for tokens in lengths:
            parts = [f"length={tokens}"] * (tokens != length) + [f"amplitude={amplitude:g}"] * (size != 1)
            if parts:
                found[f"ood/{','.join(parts)}"] = Shift(tokens, size)
    if not uniform:
        found["ood/rules=uniform"] = Shift(length, uniform_rules=True)
    return found
