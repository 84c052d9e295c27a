"""From options and a spec to a module with the parameters of a seed."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from unseen.config import Config
from unseen.models import MODELS
from unseen.models.foreign import ForeignModel, maker
from unseen.randomness import stream
from unseen.spec import Spec


def build(options: Config, spec: Spec, seed: int = 0) -> nn.Module:
    """The model of these options for this spec, with the parameters of a seed."""
    if isinstance(options, ForeignModel):
        return initialised(maker(options, spec), seed)
    return initialised(lambda: MODELS.load(options.name)(options, spec), seed)


def initialised(make: Callable[[], nn.Module], seed: int) -> nn.Module:
    """What `make` makes, its parameters drawn for a seed: torch's global generator neither matters nor moves."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(stream("init", seed).key[0])
        return make()


def parameter_count(module: nn.Module) -> int:
    """How many numbers are trained."""
    return sum(p.numel() for p in module.parameters() if p.requires_grad)
