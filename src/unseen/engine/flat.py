"""All parameters of a stack in one tensor: a row per member, named views into it.

One row makes an optimiser's step, a gradient's norm and a checkpoint one operation each. Rows are padded to whole
vector registers, because a fused kernel treats the odd end of a tensor by other instructions than its body, and then
a member's bits would depend on its place in the stack.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

State = dict[str, Tensor]
"""Tensors by name; in a stack, with the members along the first axis."""

_REGISTER = 64


class Layout:
    """Which columns of a row belong to which parameter."""

    def __init__(self, shapes: Mapping[str, Sequence[int]]) -> None:
        self.shapes = {name: tuple(shape) for name, shape in shapes.items()}
        used = sum(math.prod(shape) for shape in self.shapes.values())
        self.padding = -used % _REGISTER
        self.width = used + self.padding

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Stacked tensors in the layout's order, as rows."""
        rows = [part.reshape(len(part), -1) for part in parts]
        return torch.cat([*rows, rows[0].new_zeros(len(rows[0]), self.padding)], dim=1)

    def split(self, rows: Tensor) -> State:
        """Views of rows (members, width), or of one row (width,), by parameter name."""
        views, start = {}, 0
        for name, shape in self.shapes.items():
            end = start + math.prod(shape)
            views[name] = rows[..., start:end].view(*rows.shape[:-1], *shape)
            start = end
        return views
