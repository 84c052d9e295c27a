"""From options and a spec to a module with the parameters of a seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from unseen.config import Config
from unseen.models import MODELS
from unseen.models.foreign import ForeignModel, is_foreign, maker
from unseen.randomness import stream
from unseen.spec import Spec


def build(options: Config, spec: Spec, seed: int = 0) -> nn.Module:
    """The model of these options for this spec, with the parameters of a seed."""
    if isinstance(options, ForeignModel):
        return initialised(maker(options, spec), seed)
    return initialised(lambda: MODELS.load(options.name)(options, spec), seed)


def undrawn(options: Config, spec: Spec) -> nn.Module:
    """The model of these options with parameters that nobody has drawn: to be counted, not to be run.

    Buffers are what they are. A user's model is built as ever: it may look at what it has drawn.
    """
    if is_foreign(options):
        return build(options, spec)
    with _Undrawn():  # type: ignore[no-untyped-call]
        module: nn.Module = MODELS.load(options.name)(options, spec)
        return module


class _Undrawn(TorchDispatchMode):
    """While inside, what would be drawn at random stays as it is; of a large model, drawing takes most of the time."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # to skip the compiler, torch would import it first

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return args[0] if func._overloadpacket in _DRAWING else func(*args, **(kwargs or {}))


_DRAWING = {torch.ops.aten.uniform_, torch.ops.aten.normal_}


def initialised(make: Callable[[], nn.Module], seed: int) -> nn.Module:
    """What `make` makes, its parameters drawn for a seed: torch's global generator neither matters nor moves."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(stream("init", seed).key[0])
        return make()


def parameter_count(module: nn.Module) -> int:
    """How many numbers are trained."""
    return sum(p.numel() for p in module.parameters() if p.requires_grad)
