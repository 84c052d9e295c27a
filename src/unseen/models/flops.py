"""FLOPs of a forward pass, counted while it runs on blank inputs; and models that are built only to be counted."""

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

from unseen.config import Config
from unseen.models import MODELS, is_ours
from unseen.models.build import build
from unseen.models.context import Context
from unseen.spec import Field, Spec

_SMALL_BATCH, _LARGE_BATCH = 2, 4
"""The batches on which FLOPs are counted; a line through both counts gives the fixed cost and that of each example."""


@dataclass(frozen=True)
class ForwardFlops:
    """A forward pass takes `fixed + each · examples` FLOPs (a multiply-add counts as two)."""

    fixed: float
    each: float


def build_uninitialised(options: Config, spec: Spec) -> nn.Module:
    """The model of these options without drawing its parameters: to count them, not to run it.

    Buffers have their values. A user's model is built as usual, because it may depend on what it has drawn.
    """
    if not is_ours(options.name):
        return build(options, spec)
    with _Undrawn():  # type: ignore[no-untyped-call]
        module: nn.Module = MODELS.load(options.name)(options, spec)
        return module


def forward_flops(module: nn.Module, spec: Spec, *, computed: bool = True) -> ForwardFlops:
    """Count the matrix products of a forward pass on streams of the spec's lengths, as in training.

    Elementwise operations are not counted; a linear layer of width 1 is elementwise and counts nothing. Masked and causal
    attention count as if every token attended to every other. With `computed` = false, products are zeros: much faster for
    a large model, and the same count for a model whose operations do not depend on its numbers.
    """
    # Products of weights alone cost the same for any batch; the line through two batches tells them apart.
    small = _count_flops(module, spec, _SMALL_BATCH, computed)
    large = _count_flops(module, spec, _LARGE_BATCH, computed)
    slope = (large - small) / (_LARGE_BATCH - _SMALL_BATCH)
    return ForwardFlops(small - _SMALL_BATCH * slope, slope)


def _count_flops(module: nn.Module, spec: Spec, examples: int, computed: bool) -> int:
    device = next((p.device for p in module.parameters()), torch.device("cpu"))
    counter = _Counter(computed)
    with _unfused():
        run_blank(module, spec, examples, device, counter)
    return counter.flops


def run_blank(module: nn.Module, spec: Spec, examples: int, device: torch.device, mode: TorchDispatchMode) -> None:
    """A forward pass as in training, on blank inputs, under a mode that counts something."""
    inputs = blank_inputs(spec, examples, device)
    # In train mode, torch's own Transformer layers run the operations of training instead of one fused kernel.
    module.train()
    context = {"ctx": Context()} if "ctx" in inspect.signature(module.forward).parameters else {}
    with torch.random.fork_rng(devices=[]), torch.no_grad(), mode:
        module(inputs, **context)


class CountingMode(TorchDispatchMode):
    """A mode that sees every operation, and makes torch import nothing for it."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # True would make torch import its compiler, only to skip it


class _Counter(CountingMode):
    """Adds up FLOPs by torch's own formulas, of operations that are computed, or that would be.

    It replaces torch's `FlopCounterMode`, which imports torch's compiler; that takes longer than counting a large study.
    """

    def __init__(self, computed: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flops = 0
        self._computed = computed

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        packet = func._overloadpacket
        formula = _FORMULAS.get(packet)
        blank = None if self._computed else _BLANKS.get(packet)
        if formula is None and _is_composite(func):
            with self:
                return func.decompose(*args, **kwargs)
        # An operation with `out` writes into a tensor that is there already, and nothing else needs to be made.
        compute = func if blank is None else blank
        out = kwargs["out"] if blank is not None and "out" in kwargs else compute(*args, **kwargs)
        if formula is not None:
            self.flops += formula(*args, **kwargs, out_val=out)
        return out


@cache
def _is_composite(func: Any) -> bool:
    """Whether torch composes an operation of others, which are then counted."""
    return bool(func._can_decompose())


def _baddbmm_in_place_flops(total: Tensor, left: Tensor, right: Tensor, **options: object) -> int:
    """Products added in place, as our recurrence does; torch has a formula for the other form only."""
    return 2 * math.prod(left.shape) * right.shape[-1]


def _blank_product(left: Tensor, right: Tensor) -> Tensor:
    return left.new_zeros(*left.shape[:-1], right.shape[-1])


def _blank_copy(x: Tensor, **layout: Any) -> Tensor:
    return torch.empty_like(x, **layout) if x.numel() > COMPUTED_AT_MOST else x.clone(**layout)


def _blank_cat(tensors: list[Tensor], dim: int = 0) -> Tensor:
    shape = list(tensors[0].shape)
    shape[dim] = sum(x.shape[dim] for x in tensors)
    return tensors[0].new_empty(shape) if math.prod(shape) > COMPUTED_AT_MOST else torch.cat(tensors, dim)


COMPUTED_AT_MOST = 1 << 20
"""Larger tensors than this are concatenated weights, whose values do not matter if products are not computed."""
_ATEN = torch.ops.aten
_FORMULAS: dict[Any, Callable[..., int]] = {**flop_registry, _ATEN.baddbmm_: _baddbmm_in_place_flops}
_BLANKS: dict[Any, Callable[..., Tensor]] = {
    **dict.fromkeys((_ATEN.mm, _ATEN.bmm), _blank_product),
    **dict.fromkeys((_ATEN.addmm, _ATEN.baddbmm), lambda total, left, right, **scaled: _blank_product(left, right)),
    _ATEN.baddbmm_: lambda total, left, right, **scaled: total,
    _ATEN.clone: _blank_copy,
    _ATEN.cat: _blank_cat,
}
"""Replacements for operations that need not be computed; all others are."""


@contextmanager
def _unfused() -> Iterator[None]:
    """While active, `nn.LSTM` runs as products that can be counted, instead of as one oneDNN call."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the switch warns about a missing Intel GPU
        with torch.backends.mkldnn.flags(enabled=False):
            yield


def blank_inputs(spec: Spec, examples: int, device: torch.device) -> dict[str, Tensor]:
    """Blank inputs of every field, by name."""
    return {field.name: _blank(field, spec, examples, device) for field in spec.inputs}


def _blank(field: Field, spec: Spec, examples: int, device: torch.device) -> Tensor:
    """Blank inputs of the right shape and type: zeros, and nothing masked."""
    along = (spec.stream(field.along).length,) if field.along else ()
    width = (field.width,) if field.kind in ("real", "bits") else ()
    dtype = {"category": torch.int64, "mask": torch.bool}.get(field.kind, torch.float32)
    return torch.full((examples, *along, *width), field.kind == "mask", dtype=dtype, device=device)


class _Undrawn(CountingMode):
    """While active, random draws leave a tensor as it is; for a large model, drawing takes most of the time."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return args[0] if func._overloadpacket in _DRAWING else func(*args, **(kwargs or {}))


_DRAWING = {torch.ops.aten.uniform_, torch.ops.aten.normal_}
