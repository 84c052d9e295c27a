"""When a claim is judged: once, at a fixed number of units, or at planned looks until it is decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from unseen.errors import UsageError, nearest
from unseen.stats.sequential import ALPHA, LOOKS, Look

__all__ = ["ALPHA", "LOOKS", "MODE", "Fixed", "Look", "Mode", "UntilDecided", "mode_data", "mode_key", "read_mode"]

MODE = "mode"
"""Under which a store notes the mode of the scale that it was begun with."""


@dataclass(frozen=True)
class Fixed:
    """The verdict is formed once, when this many units are complete; before, there is progress only."""

    units: int


@dataclass(frozen=True)
class UntilDecided:
    """Verdicts are formed at each of the `LOOKS`, until one decides.

    The looks at up to `spent` units were at runs that were then trained longer. They are not repeated: their error is
    spent.
    """

    spent: int = 0

    @property
    def looks(self) -> tuple[Look, ...]:
        """The looks that are left."""
        return tuple(look for look in LOOKS if look.units > self.spent)


Mode = Fixed | UntilDecided
_NAMES = ("fixed", "until-decided")


def mode_key(scale: str) -> str:
    """Under which a store notes the mode of a scale that was begun later."""
    return f"{MODE} of {scale}"


def mode_data(mode: Mode) -> dict[str, Any]:
    """A mode as a store keeps it.

    >>> mode_data(Fixed(5)), mode_data(UntilDecided())
    ({'name': 'fixed', 'units': 5}, {'name': 'until-decided'})
    """
    return {"name": "fixed", "units": mode.units} if isinstance(mode, Fixed) else {"name": "until-decided"}


def read_mode(data: Mapping[str, Any] | None) -> Mode | None:
    """The mode that a store keeps; None if it keeps none.

    >>> read_mode({"name": "fixed", "units": 5}), read_mode(None)
    (Fixed(units=5), None)
    """
    if data is None:
        return None
    name = data.get("name")
    if name == "until-decided":
        return UntilDecided()
    units = data.get("units")
    if name != "fixed":
        raise UsageError(f"there is no mode {name!r}. {nearest(str(name), _NAMES)}")
    if not isinstance(units, int) or units < 1:
        raise UsageError(f"the mode 'fixed' expects a number of units, 1 or more, got {units!r}")
    return Fixed(units)
