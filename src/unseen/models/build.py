"""Building a module from options and a spec, with the parameters of a seed."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from unseen.config import Config
from unseen.errors import UsageError
from unseen.models import MODELS, is_ours
from unseen.randomness import stream
from unseen.spec import Spec


def build(options: Config, spec: Spec, seed: int = 0) -> nn.Module:
    """The model of these options for this spec, with the parameters of a seed; a user's class is imported if need be."""
    if not isinstance(spec, Spec):
        raise UsageError(f"a model is built for a spec, got a {type(spec).__name__}; give task.spec")
    if not is_ours(options.name):
        from unseen.models.foreign import ForeignModel, make_builder

        if isinstance(options, ForeignModel):
            return build_seeded(make_builder(options, spec), seed)
    return build_seeded(lambda: MODELS.load(options.name)(options, spec), seed)


def build_seeded(make: Callable[[], nn.Module], seed: int) -> nn.Module:
    """The module that `make` returns, with parameters drawn for a seed.

    torch's global generator neither influences the draws nor changes.
    """
    with torch.random.fork_rng(devices=[]):
        # Our own stream per seed; the module draws from torch's generator, which is restored afterwards.
        torch.default_generator.manual_seed(stream("init", seed).key[0])
        return make()


def parameter_count(module: nn.Module) -> int:
    """The number of trained parameters."""
    return sum(p.numel() for p in module.parameters() if p.requires_grad)
