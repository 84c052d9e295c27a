"""Tensors that depend on shapes alone: made once, neither parameters nor buffers, so no stack copies them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import ParamSpec, cast

import torch
from torch import Tensor

P = ParamSpec("P")


def constant(make: Callable[P, Tensor]) -> Callable[P, Tensor]:
    """Remember the tensors a function makes from hashable arguments."""

    @lru_cache(maxsize=256)
    @wraps(make)
    def remembered(*args: P.args, **kwargs: P.kwargs) -> Tensor:
        # A tensor first made while evaluating, or while operations are counted, must still serve in training.
        with torch.inference_mode(False), torch.no_grad(), torch._C._DisableTorchDispatch():
            return make(*args, **kwargs)

    return cast(Callable[P, Tensor], remembered)
