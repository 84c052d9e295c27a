"""Floating-point operations of a forward pass, counted while it runs on inputs that say nothing."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from unseen.models.layers.tape import Tape
from unseen.spec import Field, Spec

_FEW, _MORE = 2, 4
"""Batches on which a forward pass is counted; what it costs is a line through both."""


@dataclass(frozen=True)
class Forward:
    """A forward pass costs `fixed + each · examples` operations (a multiply-add is two)."""

    fixed: float
    each: float


def forward_flops(module: nn.Module, spec: Spec, *, computed: bool = True) -> Forward:
    """Count the products of matrices of a forward pass on streams of the spec's lengths, as in training.

    Elementwise work is not counted: a linear layer of width 1 is written elementwise and counts nothing. Masked and
    causal attention count as if every token looked at every other. Not `computed`, products are zeros: much sooner for
    a large model, and the same count for one whose operations do not depend on its numbers.
    """
    few, more = (_operations(module, spec, examples, computed) for examples in (_FEW, _MORE))
    each = (more - few) / (_MORE - _FEW)
    return Forward(few - _FEW * each, each)


def _operations(module: nn.Module, spec: Spec, examples: int, computed: bool) -> int:
    device = next((p.device for p in module.parameters()), torch.device("cpu"))
    inputs = {field.name: _blank(field, spec, examples, device) for field in spec.inputs}
    # In train mode torch's own Transformer layers are what they are in training: many operations, not one.
    module.train()
    counter = _Counter(computed)
    tape = {"tape": Tape()} if "tape" in inspect.signature(module.forward).parameters else {}
    with torch.random.fork_rng(devices=[]), torch.no_grad(), _unfused(), counter:
        module(inputs, **tape)
    return counter.operations


class _Counter(TorchDispatchMode):
    """Adds up, by torch's own formulas, what is computed inside, or what would be.

    As torch's `FlopCounterMode`, which first imports torch's compiler: that takes longer than to count a large study.
    """

    def __init__(self, computed: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations, self._computed = 0, computed

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # to skip the compiler, torch would import it first

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, packet = kwargs or {}, func._overloadpacket
        formula, blank = _FORMULAS.get(packet), None if self._computed else _BLANKS.get(packet)
        if formula is None and _made_of_others(func):
            with self:
                return func.decompose(*args, **kwargs)
        out = kwargs["out"] if blank and "out" in kwargs else (blank or func)(*args, **kwargs)
        if formula is not None:
            self.operations += formula(*args, **kwargs, out_val=out)
        return out


@cache
def _made_of_others(func: Any) -> bool:
    """Whether torch writes an operation in terms of others, which are then counted."""
    return bool(func._can_decompose())


def _added_in_place(total: Tensor, left: Tensor, right: Tensor, **options: object) -> int:
    """Products added in place, as our recurrence does it; torch has a formula for the other form only."""
    return 2 * math.prod(left.shape) * right.shape[-1]


def _product(left: Tensor, right: Tensor) -> Tensor:
    return left.new_zeros(*left.shape[:-1], right.shape[-1])


def _copied(x: Tensor, **layout: Any) -> Tensor:
    return torch.empty_like(x, **layout) if x.numel() > _MANY else x.clone(**layout)


def _joined(parts: list[Tensor], dim: int = 0) -> Tensor:
    shape = list(parts[0].shape)
    shape[dim] = sum(part.shape[dim] for part in parts)
    return parts[0].new_empty(shape) if math.prod(shape) > _MANY else torch.cat(parts, dim)


_MANY = 1 << 20
"""Larger tensors than this are weights, put together anew: nobody looks at the copy if products are not computed."""
_ATEN = torch.ops.aten
_FORMULAS: dict[Any, Callable[..., int]] = {**flop_registry, _ATEN.baddbmm_: _added_in_place}
_BLANKS: dict[Any, Callable[..., Tensor]] = {
    **dict.fromkeys((_ATEN.mm, _ATEN.bmm), _product),
    **dict.fromkeys((_ATEN.addmm, _ATEN.baddbmm), lambda total, left, right, **scaled: _product(left, right)),
    _ATEN.baddbmm_: lambda total, left, right, **scaled: total,
    _ATEN.clone: _copied,
    _ATEN.cat: _joined,
}
"""What stands for what is not computed; operations that are not here always are."""


@contextmanager
def _unfused() -> Iterator[None]:
    """While inside, `nn.LSTM` is made of products that can be counted instead of one oneDNN call."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the switch complains of an Intel GPU that is not there
        with torch.backends.mkldnn.flags(enabled=False):
            yield


def _blank(field: Field, spec: Spec, examples: int, device: torch.device) -> Tensor:
    """Inputs that say nothing, of the right shape and type: zeros, and nothing masked."""
    along = (spec.stream(field.along).length,) if field.along else ()
    width = (field.width,) if field.kind in ("real", "bits") else ()
    kinds = {"category": torch.int64, "mask": torch.bool}
    value, dtype = field.kind == "mask", kinds.get(field.kind, torch.float32)
    return torch.full((examples, *along, *width), value, dtype=dtype, device=device)
