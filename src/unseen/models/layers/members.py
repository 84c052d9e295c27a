"""The members of a stack one after the other, for kernels that know a single model.

Where a member's numbers are many, nothing is lost by it, and a member's bits are those it has alone by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

LARGE = 1 << 18
"""From how many numbers of a member on a function with a rule of its own for vmap pays, where memory is all it saves:
fewer stay in the cache, and calling such a function costs more than the passes it spares. It has to be the number of a
member, not of the stack, whose size no bit may depend on.
"""


def each(function: Callable[..., Sequence[Tensor]], *stacked: Tensor) -> tuple[Tensor, ...]:
    """The function's results for every member, along a leading axis that all tensors have.

    >>> total, rest = each(lambda x, y: [x + y, x - y], Tensor([[1], [2]]), Tensor([[10], [20]]))
    >>> total.tolist(), rest.tolist()
    ([[11.0], [22.0]], [[-9.0], [-18.0]])
    """
    members = len(stacked[0])
    first = function(*(x[0] for x in stacked))
    if members == 1:
        return tuple(found[None] for found in first)
    results = tuple(found.new_empty(members, *found.shape) for found in first)
    for member in range(members):
        found = function(*(x[member] for x in stacked)) if member else first
        for result, own in zip(results, found, strict=True):
            result[member] = own
    return results


def stack(info: Any, in_dims: Sequence[int | None], inputs: Sequence[Tensor | None]) -> list[Tensor | None]:
    """What vmap hands to a function's own rule, with the members as the leading axis of every tensor there is."""
    return [
        x if x is None else x.expand(info.batch_size, *x.shape) if dim is None else x.movedim(dim, 0)
        for x, dim in zip(inputs, in_dims, strict=True)
    ]
