"""The least time that a computation can take here: what its operations compute and move, at the machine's rates.

An operation takes at least as long as its products, its functions, or the bytes that it reads and writes, whichever is
longest. What is measured beyond the sum of these is overhead: calls, copies between caches, Python, NumPy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from benchmarks.machine import Limits

_ATEN = torch.ops.aten
_FUNCTIONS = {
    _ATEN.exp,
    _ATEN.exp_,
    _ATEN.tanh,
    _ATEN.tanh_,
    _ATEN.log,
    _ATEN.log1p,
    _ATEN.erf,
    _ATEN.sigmoid,
    _ATEN.gelu,
    _ATEN.gelu_backward,
    _ATEN._softmax,
    _ATEN._log_softmax,
}
"""Operations that work out a function for each element of what they give."""
_FREE = {
    _ATEN.empty,
    _ATEN.empty_like,
    _ATEN.empty_strided,
    _ATEN.new_empty,
    _ATEN.new_empty_strided,
    _ATEN._unsafe_view,
    _ATEN.detach_,
    _ATEN._local_scalar_dense,
}
"""Operations that touch no element, besides views."""


class Operation(NamedTuple):
    """What one call computes (operations of products, functions of elements), reads and writes (bytes)."""

    products: int
    functions: int
    read: int
    written: int


@dataclass(frozen=True)
class Bound:
    """Seconds by what limits each operation."""

    products: float = 0.0
    memory: float = 0.0
    functions: float = 0.0

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.products + self.memory + self.functions

    def __str__(self) -> str:
        """`products 62 %, memory 30 %, functions 8 %`."""
        parts = {"products": self.products, "memory": self.memory, "functions": self.functions}
        return ", ".join(f"{name} {value / self.seconds:.0%}".replace("%", " %") for name, value in parts.items())


@dataclass(frozen=True)
class Work:
    """All operations of a computation."""

    operations: tuple[Operation, ...]

    @property
    def products(self) -> int:
        """Floating-point operations of matrix products (a multiply-add is two)."""
        return sum(one.products for one in self.operations)

    @property
    def moved(self) -> int:
        """Bytes read and written besides those of products."""
        return sum(one.read + one.written for one in self.operations if not one.products)

    @property
    def written(self) -> int:
        """Bytes written: no more than these can be held at once."""
        return sum(one.written for one in self.operations)

    def bound(self, limits: Limits, members: int = 1) -> Bound:
        """The least time of this work done for so many members at once."""
        spent: Counter[str] = Counter()
        for one, times in Counter(self.operations).items():
            moved = members * (one.read + one.written)
            parts = {
                "products": members * one.products / limits.products,
                "functions": members * one.functions / limits.functions,
                "memory": moved / limits.bandwidth(moved),
            }
            longest = max(parts, key=parts.__getitem__)
            spent[longest] += times * parts[longest]  # type: ignore[assignment]
        return Bound(**spent)


def work_of(run: Callable[[], object]) -> Work:
    """What a computation does, found by doing it once.

    >>> work_of(lambda: torch.ones(10) + torch.ones(10)).operations[-1]
    Operation(products=0, functions=0, read=80, written=40)
    """
    with _Noting() as noting:
        run()
    return Work(tuple(noting.operations))


class _Noting(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations: list[Operation] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        kind = func._overloadpacket
        if not func.is_view and kind not in _FREE:
            formula = _FORMULAS.get(kind)
            changed = list(_changed(func, args, kwargs))
            fresh = [one for one in _tensors(out) if not any(one is other for other in changed)]
            self.operations.append(
                Operation(
                    products=formula(*args, **kwargs, out_val=out) if formula else 0,
                    functions=sum(one.numel() for one in fresh + changed) if kind in _FUNCTIONS else 0,
                    read=sum(map(_bytes, _tensors((args, kwargs)))),
                    written=sum(map(_bytes, fresh + changed)),
                )
            )
        return out


def _changed(func: Any, args: Any, kwargs: Any) -> Iterator[Tensor]:
    """The tensors that an operation changes in place."""
    for place, said in enumerate(func._schema.arguments):
        if said.alias_info is not None and said.alias_info.is_write:
            yield from _tensors(args[place] if place < len(args) else kwargs.get(said.name))


def _tensors(values: object) -> Iterable[Tensor]:
    return [one for one in tree_leaves(values) if isinstance(one, Tensor)]


def _bytes(tensor: Tensor) -> int:
    """Bytes of a tensor in memory: what is only expanded is there once."""
    there = 1
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        there *= size if stride else 1
    return there * tensor.element_size()


def _added_in_place(total: Tensor, left: Tensor, right: Tensor, **options: object) -> int:
    """Products added in place, as our recurrence does it; torch has a formula for the other form only."""
    return 2 * left.numel() * right.shape[-1]


_FORMULAS: dict[Any, Callable[..., int]] = {
    **flop_registry,
    _ATEN.baddbmm_: _added_in_place,
    _ATEN.addmm_: _added_in_place,
}
