"""Relative positions as a learned vector per distance, added to the scores of attention."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unseen.errors import UsageError
from unseen.models.layers.constants import constant
from unseen.models.layers.linear import affine


class DistanceTable(nn.Module):
    """q · r(i − j) for a query at place i and a key at place j, with one table r for all heads, normal at the start.

    `causal` (Huang and others, 2018): the table has a row for each distance from `length` − 1 down to 0, the last; of
    keys that come later nothing is said, and attention has to bar them. Otherwise rows for negative distances follow.
    """

    def __init__(self, length: int, size: int, *, causal: bool) -> None:
        super().__init__()
        self.length, self.causal = length, causal
        self.weight = nn.Parameter(torch.empty(length if causal else 2 * length - 1, size).normal_())

    def forward(self, query: Tensor) -> Tensor:
        """From every place to every place: (B, heads, T, size) → (B, heads, T, T)."""
        length = query.shape[-2]
        found = self._products(query, length, length if self.causal else 2 * length - 1)
        # Row i begins with the distance T − 1 and should begin with i, T − 1 − i columns later. One column more in
        # front, and the memory read in rows that are one shorter: each row begins one place later than the one before.
        memory = F.pad(found, (1, 0)).flatten(-2)
        return memory[..., length:].view(*found.shape)[..., :length]

    def to_end(self, query: Tensor, length: int, end: Tensor | None) -> Tensor:
        """From one place, `end` (B,) or the last, to every place before it: (B, heads, Q, size) → (B, heads, Q, T)."""
        found = self._products(query, length, length)
        if end is None:
            return found
        index = (_places(length, end.device) + (length - 1 - end)[:, None]).clamp_max(length - 1)
        return found.gather(-1, index[:, None, None].expand(found.shape))

    def _products(self, query: Tensor, length: int, count: int) -> Tensor:
        """Of queries with the first `count` rows from the distance `length` − 1 on: (B, heads, Q, count)."""
        if length > self.length:
            raise UsageError(
                f"relative positions know distances up to {self.length - 1}, {length} tokens arrived; for "
                "longer questions choose absolute positions"
            )
        rows = self.weight[self.length - length :][:count]
        # As one matrix: whether a product of four axes is folded into one depends on the number of members.
        return affine(query.flatten(0, 2), rows.mT).view(*query.shape[:3], -1)


@constant
def _places(length: int, device: torch.device) -> Tensor:
    return torch.arange(length, device=device)
