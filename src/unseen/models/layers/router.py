"""Routers: how the scores of a gating become the weights of the modules.

With logits ℓ and p = softmax(ℓ):

| router | in training | in evaluation |
|---|---|---|
| `softmax` | p | p |
| `topk` | softmax of the k largest logits, 0 elsewhere; for k = 1 the largest p itself, which keeps a gradient | the same |
| `straight-through` | one-hot of the largest logit, with the gradient of p | one-hot of the largest |
| `gumbel` | softmax((ℓ + g) / τ), g Gumbel noise; if `hard`, its one-hot, with its gradient | one-hot of the largest |
| `reinforce` | one-hot of a module drawn from p; the router learns from the losses (`policy_loss`) | one-hot of the largest |
| `sinkhorn` | exp(ℓ / τ) scaled in turn to equal loads and to sums of 1 | p |

Noise comes from the context alone, so a member of a stack draws what it draws alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, Self

import torch
from pydantic import Field, field_validator, model_validator
from torch import Tensor, nn

from unseen.config import Config
from unseen.errors import UsageError
from unseen.models.context import Context
from unseen.models.layers.auxiliary import AuxiliaryTerm, entropies, one_hot_columns, policy_loss
from unseen.models.layers.constants import constant

RouterKind = Literal["softmax", "topk", "straight-through", "gumbel", "reinforce", "sinkhorn"]
_REMOVED = -1e9
"""The logit of a removed module: finite, so that p ln p is 0 and not undefined."""
_ANNEALED = 0.8
"""The share of training after which the temperature has reached its last value."""
_OWNERS = {
    "top_k": ("topk",),
    "temperature": ("softmax", "gumbel", "sinkhorn"),
    "last_temperature": ("softmax", "gumbel"),
    "hard": ("gumbel",),
    "sinkhorn_rounds": ("sinkhorn",),
    "entropy_bonus": ("reinforce",),
}
"""The routers that each option is for."""


class RouterOptions(Config):
    """The options of a router, for models whose gating computes scores (`joint`, `operation`)."""

    router: RouterKind = Field(
        "softmax", description="how scores become weights: see the table in models/layers/router"
    )
    top_k: int = Field(1, ge=1, description="topk: how many modules work on a token")
    temperature: float = Field(
        1.0, gt=0, description="softmax, gumbel and sinkhorn: logits are divided by it; where it is annealed, its start"
    )
    last_temperature: Annotated[float, Field(gt=0)] | None = Field(
        None,
        description="softmax and gumbel: the temperature falls exponentially to this at 80 % of training; None: it stays "
        "(softmax), or falls to 0.1 (gumbel)",
    )
    hard: bool = Field(False, description="gumbel: one-hot weights in training, with the gradient of the soft ones")
    sinkhorn_rounds: int = Field(10, ge=1, description="sinkhorn: how often columns and rows are scaled")
    entropy_bonus: float = Field(0.01, ge=0, description="reinforce: factor of the entropy of p, which is rewarded")
    aux: tuple[str, ...] = Field(
        (),
        description="auxiliary losses: switch, importance, entropy, mi_rule, gt_ce, z, each with a factor like z(0.1)",
    )
    module_dropout: float = Field(
        0.0, ge=0, lt=1, description="probability that a token does without one module, drawn at random, in training"
    )
    uniform_steps: int = Field(0, ge=0, description="number of steps for which all modules have the same weight")
    orthogonal_router: bool = Field(
        False, description="gating operation: the last layer of the scorer starts as an orthogonal matrix"
    )
    router_rate: float = Field(
        1.0, gt=0, description="factor of the learning rate for the parameters that score modules"
    )

    @field_validator("aux", mode="before")
    @classmethod
    def _one_term(cls, terms: Any) -> Any:
        return (terms,) if isinstance(terms, str) else terms

    @field_validator("aux")
    @classmethod
    def _known_terms(cls, terms: tuple[str, ...]) -> tuple[str, ...]:
        names = [AuxiliaryTerm.parse(term).name for term in terms]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"auxiliary loss '{name}' is named twice; name each once")
        return terms

    @model_validator(mode="after")
    def _check_router(self) -> Self:
        for option, owners in _OWNERS.items():
            if self.router not in owners and _is_set(self, option):
                raise ValueError(f"{option} belongs to router {' or '.join(owners)}; the router is '{self.router}'")
        if self.last_temperature is not None and self.last_temperature > self.temperature:
            raise ValueError(
                f"last_temperature {self.last_temperature:g} is above temperature {self.temperature:g}; it must fall"
            )
        gating = getattr(self, "gating", "joint")
        changed = [name for name in RouterOptions.model_fields if name != "name" and _is_set(self, name)]
        if gating not in ("joint", "operation") and changed:
            raise ValueError(f"gating '{gating}' has no router: leave out {changed[0]}, or choose joint or operation")
        if gating == "joint" and self.orthogonal_router:
            raise ValueError("orthogonal_router belongs to gating operation; under joint each module scores itself")
        return self

    def make_router(self, modules: int, rules: int, partition: tuple[int, ...], *, recurrent: bool) -> Router | None:
        """The router of these modules; None if its weights are the plain softmax and nothing is added to the loss.

        `partition` is the module that each rule should have; `recurrent`: a choice changes what comes later.
        """
        if self.router == "topk" and self.top_k > modules:
            raise UsageError(f"top_k = {self.top_k} is more than the {modules} modules; choose fewer")
        plain = self.router == "softmax" and self.temperature == 1 and self.last_temperature is None
        plain = plain or (self.router == "topk" and self.top_k == modules)
        terms = [term for term in map(AuxiliaryTerm.parse, self.aux) if term.factor]
        if modules == 1 or (plain and not terms and not self.module_dropout and not self.uniform_steps):
            return None
        return Router(self, modules, rules, partition, tuple(terms), recurrent)


def _is_set(options: RouterOptions, name: str) -> bool:
    return bool(getattr(options, name) != type(options).model_fields[name].default)


@dataclass(frozen=True)
class Routed:
    """The result of routing, each (modules, …): `weights` multiply the outputs of the modules; `shares` are the weights
    as metrics read them, which add up to 1; `logits` are those of p, without removed modules."""

    weights: Tensor
    shares: Tensor
    logits: Tensor

    @staticmethod
    def stack(steps: list[Routed]) -> Routed:
        """The steps of a sequence as one: (modules, N, B)."""
        return Routed(
            torch.stack([step.weights for step in steps], 1),
            torch.stack([step.shares for step in steps], 1),
            torch.stack([step.logits for step in steps], 1),
        )


@constant
def _modules_of_rules(partition: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor(partition, device=device)


class Router:
    """Turns logits, (modules, …, T), into weights; see the table above. Sinkhorn balances along the last axis."""

    def __init__(
        self,
        options: RouterOptions,
        modules: int,
        rules: int,
        partition: tuple[int, ...],
        terms: tuple[AuxiliaryTerm, ...],
        recurrent: bool,
    ) -> None:
        self.options = options
        self.modules = modules
        self.rules = rules
        self.partition = partition
        self.terms = terms
        self.recurrent = recurrent

    def route(self, logits: Tensor, ctx: Context) -> Routed:
        """The weights of a batch of tokens, with noise from the context."""
        options = self.options
        if options.router == "softmax":
            temperature = self.temperature(ctx.progress)
            logits = logits if temperature == 1 else logits / temperature
        if ctx.training and options.module_dropout:
            logits = remove_modules(logits, options.module_dropout, ctx)
        if ctx.training and ctx.step < options.uniform_steps:
            weights = shares = torch.full_like(logits, 1 / self.modules)
        else:
            weights, shares = self._weights(logits, ctx)
        return Routed(weights, shares, logits)

    def _weights(self, logits: Tensor, ctx: Context) -> tuple[Tensor, Tensor]:
        """The weights, and the shares of the modules that metrics read."""
        options = self.options
        if options.router == "topk" and options.top_k < self.modules:
            return choose_largest(logits, options.top_k)
        if options.router == "straight-through":
            weights = straight_through(logits.softmax(0))
        elif options.router in ("gumbel", "reinforce") and not ctx.training:
            weights = one_hot_columns(logits.argmax(0), self.modules, logits.dtype)
        elif options.router == "gumbel":
            soft = ((logits + ctx.gumbel(logits)) / self.temperature(ctx.progress)).softmax(0)
            weights = straight_through(soft) if options.hard else soft
        elif options.router == "reinforce":
            # The module with the largest sum of logit and Gumbel noise is a draw from p.
            module = (logits.detach() + ctx.gumbel(logits)).argmax(0)
            weights = one_hot_columns(module, self.modules, logits.dtype)
        elif options.router == "sinkhorn" and ctx.training:
            weights = balance(logits / options.temperature, options.sinkhorn_rounds)
        else:
            weights = logits.softmax(0)
        return weights, weights

    def temperature(self, progress: float) -> float:
        """max(τ_min, τ_0 exp(−ρ t)), with ρ such that τ_min is reached at 80 % of training; evaluation has the last."""
        options = self.options
        last = options.last_temperature
        if last is None:
            last = min(0.1, options.temperature) if options.router == "gumbel" else options.temperature
        decay = math.log(options.temperature / last) / _ANNEALED
        return max(last, options.temperature * math.exp(-decay * progress))

    def report(self, routed: Routed, rule: Tensor, by_token: Callable[[Tensor], Tensor], ctx: Context) -> Tensor | None:
        """Report weights and p as activations, and add to the training loss what this router calls for.

        `by_token` turns (modules, …) into (B, N, modules), or (B, modules); `rule` (B, N) or (B,). Returns the weights by
        token that an analysis puts in their place, if it does.
        """
        visible = by_token(routed.shares)
        replaced = ctx.capture("gating.weights", visible)
        ctx.capture("gating.probabilities", by_token(routed.logits.softmax(0)))
        if ctx.training:
            self._add_objectives(routed, rule, by_token, ctx)
        return None if replaced is visible else replaced

    def _add_objectives(self, routed: Routed, rule: Tensor, by_token: Callable[[Tensor], Tensor], ctx: Context) -> None:
        options = self.options
        if self.terms:
            # Modules first, all tokens of the batch last.
            logits = by_token(routed.logits).flatten(0, -2).mT.contiguous()

            def partition() -> Tensor:
                return _modules_of_rules(self.partition, logits.dtype, logits.device)

            for term in self.terms:
                value = term.loss(logits, rule.flatten(), self.rules, partition)
                ctx.add_objective(partial(_constant_of_losses, value))
        if options.router == "reinforce" and ctx.step >= options.uniform_steps:
            log_chosen = by_token(routed.weights * routed.logits.log_softmax(0)).sum(-1)
            entropy = by_token(entropies(routed.logits)[None])[..., 0]
            ctx.add_objective(
                lambda losses: policy_loss(log_chosen, entropy, losses, options.entropy_bonus, onward=self.recurrent)
            )


def _constant_of_losses(value: Tensor, losses: Tensor) -> Tensor:
    """An objective that does not depend on the losses of the answers."""
    return value


def choose_largest(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Top-k weights: softmax over the k largest logits (the first in a tie), 0 elsewhere; and the shares.

    For k = 1 the weight is the largest p, of which a gradient remains, and the share is 1.

    >>> choose_largest(torch.tensor([[0.0], [1.0], [1.0]]), 2)[0].T
    tensor([[0.0000, 0.5000, 0.5000]])
    """
    # The argsort of an argsort is the rank. A stable sort keeps equal logits in order, so that the first is chosen.
    ranks = logits.detach().argsort(dim=0, descending=True, stable=True).argsort(dim=0)
    chosen = ranks < k
    if k == 1:
        shares = chosen.to(logits.dtype)
        return logits.softmax(0) * shares, shares
    weights = torch.where(chosen, logits, -torch.inf).softmax(0)
    return weights, weights


def straight_through(p: Tensor) -> Tensor:
    """The one-hot code of the largest p, with the gradient of p. The value is exactly one-hot, because p − p is 0."""
    hard = one_hot_columns(p.detach().argmax(0), len(p), p.dtype)
    return hard + (p - p.detach())


def balance(logits: Tensor, rounds: int) -> Tensor:
    """Sinkhorn: scale exp(ℓ), (modules, …, T), to equal loads T / modules and to sums of 1, in turn; sums of 1 last.

    >>> balance(torch.tensor([[2.0, 1.0], [0.0, 0.0]]), 100).sum(-1)
    tensor([1., 1.])
    """
    # In logarithms nothing overflows: to scale a row to a sum is to subtract the logarithm of its sum.
    load = math.log(logits.shape[-1] / len(logits))
    for _ in range(rounds - 1):
        logits = (logits.contiguous().log_softmax(-1) + load).log_softmax(0)
    return (logits.contiguous().log_softmax(-1) + load).softmax(0)


def remove_modules(logits: Tensor, probability: float, ctx: Context) -> Tensor:
    """The logits where each token, with this probability, does without one module drawn at random."""
    modules = len(logits)
    # Both draws are made for every token: how many numbers are drawn may not depend on the numbers.
    happens = ctx.uniform(logits[0]) < probability
    module = (ctx.uniform(logits[0]) * modules).to(torch.int64)
    removed = one_hot_columns(module, modules, logits.dtype) * happens
    return torch.where(removed > 0, _REMOVED, logits)


def start_orthogonal(scorer: nn.Module) -> None:
    """Draw the last layer of a scorer again, as an orthogonal matrix; after all other draws of a model."""
    # Submodules come in the order in which they were made, so the last one with a weight is the last layer.
    *_, last = [module for module in scorer.modules() if isinstance(getattr(module, "weight", None), Tensor)]
    weight = last.weight
    assert isinstance(weight, Tensor)
    nn.init.orthogonal_(weight)
