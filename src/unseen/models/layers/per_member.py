"""Support for functions with their own backward pass: their vmap rule, and kernels that handle one member at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

LARGE = 1 << 18
"""From this many elements per member on, a function with its own vmap rule pays off where it only saves passes over
memory: fewer elements stay in the cache, and calling such a function costs more than the passes it saves. The threshold
counts a member's elements, not the stack's, because no bit may depend on the size of the stack.
"""


def map_members(function: Callable[..., Sequence[Tensor]], *stacked: Tensor) -> tuple[Tensor, ...]:
    """Apply a function to one member after the other and stack its results along the leading axis.

    Each call is exactly the call for a member alone, so that the bits agree. For large members nothing is lost by it.

    >>> total, difference = map_members(lambda x, y: [x + y, x - y], Tensor([[1], [2]]), Tensor([[10], [20]]))
    >>> total.tolist(), difference.tolist()
    ([[11.0], [22.0]], [[-9.0], [-18.0]])
    """
    members = len(stacked[0])
    first = function(*(x[0] for x in stacked))
    if members == 1:
        return tuple(value[None] for value in first)
    results = tuple(value.new_empty(members, *value.shape) for value in first)
    for member in range(members):
        values = function(*(x[member] for x in stacked)) if member else first
        for result, value in zip(results, values, strict=True):
            result[member] = value
    return results


def stack_inputs(info: Any, in_dims: Sequence[int | None], inputs: Sequence[Tensor | None]) -> list[Tensor | None]:
    """The inputs that vmap hands to a function's own vmap rule, with the members as the leading axis of each tensor."""
    stacked: list[Tensor | None] = []
    for x, dim in zip(inputs, in_dims, strict=True):
        if x is None:
            stacked.append(None)
        elif dim is None:
            stacked.append(x.expand(info.batch_size, *x.shape))
        else:
            stacked.append(x.movedim(dim, 0))
    return stacked


def save_intermediates(ctx: Any, output: Sequence[Tensor], *inputs: Tensor | None) -> None:
    """Keep these inputs and all outputs but the first for the backward pass (`ctx.saved_tensors`, in this order).

    A function returns its intermediates beside its result, because under vmap only outputs have the members' axis. No
    gradient flows through them, and torch does not fill in zeros where no gradient arrives.
    """
    ctx.save_for_backward(*inputs, *output[1:])
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)
