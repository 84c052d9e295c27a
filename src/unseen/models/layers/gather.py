"""Tokens without the gaps that padding makes between them."""

from __future__ import annotations

import torch
from torch import Tensor

from unseen.models.layers.constants import constant


def gathered(x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Real tokens side by side at the end, in their order, and padding before them: `x` (B, T, width), `mask` (B, T).

    Also the mask moved likewise, and where each token has gone: `spread` brings them back.

    >>> x, mask = torch.tensor([[[1.0], [9.0], [2.0]]]), torch.tensor([[True, False, True]])
    >>> moved, real, place = gathered(x, mask)
    >>> moved.flatten().tolist(), real.tolist(), place.tolist()
    ([9.0, 1.0, 2.0], [[False, True, True]], [[1, 0, 2]])
    """
    real = mask.long()
    upto = real.cumsum(1)  # how many real tokens there are up to each
    numbers = _numbers(mask.shape[1], mask.device)
    padded = numbers.shape[0] - upto[:, -1:]
    place = (numbers - upto) + real * (padded + 2 * upto - 1 - numbers)
    return spread(x, place.argsort(1)), numbers >= padded, place


def spread(x: Tensor, place: Tensor) -> Tensor:
    """At each token what stands at its place: (B, T, width) and (B, T) → (B, T, width)."""
    return x.gather(1, place[..., None].expand(x.shape))


@constant
def _numbers(length: int, device: torch.device) -> Tensor:
    return torch.arange(length, device=device)
