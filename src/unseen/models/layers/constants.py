"""Tensors that depend on shapes alone. They are cached, not parameters or buffers, so that no stack copies them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import ParamSpec, cast

import torch
from torch import Tensor

P = ParamSpec("P")


def constant(make: Callable[P, Tensor]) -> Callable[P, Tensor]:
    """Cache the tensors that a function makes from hashable arguments; `torch.compile` traces the function instead."""

    @lru_cache(maxsize=256)
    def make_once(*args: P.args, **kwargs: P.kwargs) -> Tensor:
        # A tensor that is first made during evaluation, or while FLOPs are counted, must also serve in training.
        with torch.inference_mode(False), torch.no_grad(), torch._C._DisableTorchDispatch():
            return make(*args, **kwargs)

    @wraps(make)
    def make_or_look_up(*args: P.args, **kwargs: P.kwargs) -> Tensor:
        if torch.compiler.is_compiling():
            return make(*args, **kwargs)
        return cast(Callable[P, Tensor], make_once)(*args, **kwargs)

    return make_or_look_up


@constant
def arange(length: int, device: torch.device) -> Tensor:
    """The numbers 0 … length − 1."""
    return torch.arange(length, device=device)
