"""Statistics: arrays in, numbers out. Randomness is handed in, never found."""

from __future__ import annotations

from unseen.stats.intervals import Interval, bootstrap, proportion_error, wilson

__all__ = ["Interval", "bootstrap", "proportion_error", "wilson"]
