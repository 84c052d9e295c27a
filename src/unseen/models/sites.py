"""Sites: the names under which activations of any module are captured and replaced.

A site is a name that the module reports by `ctx.capture`, or the path of one of its submodules (`encoder.blocks.0`), which
means the tensor that the submodule returns. Submodules are reached by torch's forward hooks, so a module that knows nothing
of contexts has sites, too. A submodule that is called several times has a site per call: `cell`, `cell:1`, `cell:2`, …
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any

from torch import Tensor, nn

from unseen.models.context import Context


@contextmanager
def report_submodules(module: nn.Module, ctx: Context) -> Iterator[None]:
    """While active, report to the context the tensors that submodules return, where it asks for their paths.

    A name that the module itself has already reported stays the module's.
    """
    paths = {name.partition(":")[0] for name in ctx.named}
    submodules = dict(module.named_modules()) if paths else {}
    with _hooks({path: submodules[path] for path in paths & submodules.keys()}, ctx):
        yield


class SiteList(Context):
    """Lists the sites of a forward pass in evaluation with the shapes of their activations, in the order in which they are
    reached: names that the module reports and, within `list_submodules`, the paths of its submodules."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: dict[str, tuple[int, ...]] = {}

    def capture(self, name: str, value: Tensor) -> Tensor:
        if value.is_floating_point():
            self.shapes.setdefault(name, tuple(value.shape))
        return value


@contextmanager
def list_submodules(module: nn.Module, sites: SiteList) -> Iterator[None]:
    """While active, add the submodules that return a tensor of numbers to the list."""
    with _hooks({path: submodule for path, submodule in module.named_modules() if path}, sites):
        yield


@contextmanager
def _hooks(submodules: Mapping[str, nn.Module], ctx: Context) -> Iterator[None]:
    """While active, submodules, by path, report what they return to the context."""
    handles = [submodule.register_forward_hook(_make_hook(path, ctx)) for path, submodule in submodules.items()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _make_hook(path: str, ctx: Context) -> Callable[..., Any]:
    """A forward hook that reports a submodule's result, and continues with the value that the context returns."""
    calls = count()

    def hook(_module: nn.Module, _arguments: Any, returned: Any) -> Any:
        number = next(calls)
        name = f"{path}:{number}" if number else path
        tensor = first_tensor(returned)
        # A name that the module has reported itself is not reported again under the path of a submodule.
        if tensor is None or name in ctx.reported:
            return None
        value = ctx.capture(name, tensor)
        return None if value is tensor else with_first_tensor(returned, value)

    return hook


def first_tensor(returned: Any) -> Tensor | None:
    """The tensor in what a module returned: itself, or the first in a tuple, a list, a mapping or a dataclass.

    >>> import torch
    >>> first_tensor((torch.zeros(2), None))
    tensor([0., 0.])
    """
    if isinstance(returned, Tensor):
        return returned
    if isinstance(returned, tuple | list):
        return next((value for value in returned if isinstance(value, Tensor)), None)
    if isinstance(returned, Mapping):
        return next((value for value in returned.values() if isinstance(value, Tensor)), None)
    if dataclasses.is_dataclass(returned):
        values = (getattr(returned, field.name) for field in dataclasses.fields(returned))
        return next((value for value in values if isinstance(value, Tensor)), None)
    return None


def with_first_tensor(returned: Any, value: Tensor) -> Any:
    """The return value of a module, with another first tensor.

    >>> import torch
    >>> with_first_tensor((torch.zeros(2), "rest"), torch.ones(2))
    (tensor([1., 1.]), 'rest')
    """
    if isinstance(returned, Tensor):
        return value
    if isinstance(returned, tuple | list):
        index = next(i for i, item in enumerate(returned) if isinstance(item, Tensor))
        items = [*returned[:index], value, *returned[index + 1 :]]
        if hasattr(returned, "_fields"):  # a named tuple takes its fields one by one
            return type(returned)(*items)
        return type(returned)(items)
    if isinstance(returned, Mapping):
        key = next(key for key, item in returned.items() if isinstance(item, Tensor))
        if dataclasses.is_dataclass(returned):  # the outputs of Hugging Face models are both
            return type(returned)(**{**returned, key: value})
        return type(returned)({**returned, key: value})  # type: ignore[call-arg]
    for field in dataclasses.fields(returned):
        if isinstance(getattr(returned, field.name), Tensor):
            return dataclasses.replace(returned, **{field.name: value})
    raise AssertionError("there is no tensor to replace")
