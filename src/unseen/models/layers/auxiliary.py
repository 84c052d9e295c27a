"""Auxiliary losses of a router: what is added to the training loss so that modules share the work, or specialize.

Pure functions of the logits ℓ, (modules, T), of the T tokens of a batch, all positions of all sequences pooled. With
p = softmax(ℓ) over the modules, P_m the mean of p over the tokens, and f_m the share of tokens whose largest p is m:

| term | value | λ by default | at perfect balance |
|---|---|---|---|
| `switch` | λ M Σ_m f_m P_m, f as a constant | 0.01 | λ |
| `importance` | λ (standard deviation of P / mean of P)² | 0.01 | 0 |
| `entropy` | λ (mean entropy of p − entropy of P) = −λ I(module; token) | 0.01 | −λ ln M if p is one-hot, 0 if p = P |
| `mi_rule` | −λ I(module; rule) in the batch | 0.01 | −λ ln M if each rule has its module |
| `gt_ce` | λ · cross-entropy of p and the module of the rule | 0.01 | 0 if each rule has its module |
| `z` | λ · mean of (ln Σ_m exp ℓ_m)² | 0.001 | |

`mi_rule` and `gt_ce` are told the rule of each token: they lie between Modular and GT-Modular.

Tokens are the last axis, and sums go along it: a member of a stack then rounds as it does alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from unseen.errors import nearest
from unseen.models.layers.constants import arange


def switch_loss(logits: Tensor) -> Tensor:
    """M Σ_m f_m P_m, the load balancing loss of the Switch Transformer; 1 at balance, M if one module has everything."""
    modules = len(logits)
    # The share of tokens has no gradient; the loss is reduced through the mean probability P.
    loads = one_hot_columns(logits.detach().argmax(0), modules, logits.dtype).mean(-1)
    return modules * (loads * logits.softmax(0).mean(-1)).sum()


def importance_loss(logits: Tensor) -> Tensor:
    """The squared coefficient of variation of P; 0 at balance, M − 1 if one module has everything."""
    importance = logits.softmax(0).mean(-1)
    mean = importance.mean()
    return (importance - mean).square().mean() / mean.square()


def entropy_loss(logits: Tensor) -> Tensor:
    """Mean entropy of p − entropy of P: smallest, −ln M, where every token chooses one module and modules are balanced."""
    return entropies(logits).mean() - _entropy(logits.softmax(0).mean(-1))


def rule_information_loss(logits: Tensor, rule: Tensor, rules: int) -> Tensor:
    """−I(module; rule) in nats, from the joint distribution of the batch; `rule` (T,)."""
    codes = one_hot_columns(rule, rules, logits.dtype)
    # A product and a sum along the tokens instead of a matrix product, which rounds differently with a single rule.
    joint = (logits.softmax(0)[:, None] * codes).mean(-1)
    information = _entropy(joint.sum(1)) + _entropy(joint.sum(0)) - _entropy(joint.flatten())
    return -information


def rule_cross_entropy(logits: Tensor, module: Tensor) -> Tensor:
    """Mean of −ln p of the module (T,) that a token's rule should have."""
    log_probability = (logits.log_softmax(0) * one_hot_columns(module, len(logits), logits.dtype)).sum(0)
    return -log_probability.mean()


def z_loss(logits: Tensor) -> Tensor:
    """Mean of (ln Σ_m exp ℓ_m)²: keeps logits small."""
    return logits.logsumexp(0).square().mean()


def entropies(logits: Tensor) -> Tensor:
    """The entropy of p of each token, in nats, (T,)."""
    return -(logits.softmax(0) * logits.log_softmax(0)).sum(0)


def one_hot_columns(index: Tensor, count: int, dtype: torch.dtype) -> Tensor:
    """One-hot codes of (T,) indices in columns, (count, T)."""
    return (index == arange(count, index.device).view(-1, *[1] * index.dim())).to(dtype)


def policy_loss(log_chosen: Tensor, entropy: Tensor, losses: Tensor, beta: float, *, onward: bool) -> Tensor:
    """REINFORCE: mean of (L − b) · ln p of the chosen module − β · entropy of p, where L − b is a constant.

    All (B,), one value per example, or (B, N), one per token. L is the loss of the token or, if `onward`, the mean loss of
    the sequence from this step on, because a choice changes later states. The baseline b is the mean of L over the other
    examples of the batch; if `onward`, at the same step.

    >>> losses = torch.tensor([1.0, 3.0])
    >>> policy_loss(torch.tensor([-0.5, -1.0]), torch.zeros(2), losses, 0.0, onward=False)  # (−2 · −0.5 + 2 · −1) / 2
    tensor(-0.5000)
    """
    losses = losses.detach()
    batch = len(losses)
    if onward:
        steps = losses.shape[1]
        remaining = torch.arange(steps, 0, -1, dtype=losses.dtype, device=losses.device)
        # A cumulative sum from the last step back, divided by the number of steps that it covers.
        losses = losses.flip(1).cumsum(1).flip(1) / remaining
    by_example = losses.reshape(batch, -1).mean(1, keepdim=True).view(batch, *[1] * (losses.dim() - 1))
    compared = losses if onward else by_example
    # Summed along the last axis, so that a member of a stack rounds as it does alone.
    total = compared.movedim(0, -1).contiguous().sum(-1)
    baseline = (total - compared) / max(1, batch - 1)
    advantage = losses - baseline if batch > 1 else torch.zeros_like(losses)
    return (advantage * log_chosen - beta * entropy).mean()


def _entropy(p: Tensor) -> Tensor:
    """Entropy of one distribution in nats; terms of probability 0 are 0, with a finite gradient."""
    return -(p * p.clamp_min(torch.finfo(p.dtype).tiny).log()).sum()


# -- the terms as options ---------------------------------------------------------------------------------------------

_DEFAULTS = {"switch": 0.01, "importance": 0.01, "entropy": 0.01, "mi_rule": 0.01, "gt_ce": 0.01, "z": 0.001}
"""The factor λ of each term."""


@dataclass(frozen=True)
class AuxiliaryTerm:
    """One auxiliary loss with its factor λ, as the option `aux` has it: `switch`, or `switch(0.1)`."""

    name: str
    factor: float

    @classmethod
    def parse(cls, text: str) -> AuxiliaryTerm:
        """Read a term; what can't be read raises a ValueError.

        >>> AuxiliaryTerm.parse("gt_ce(0.5)"), AuxiliaryTerm.parse("z")
        (AuxiliaryTerm(name='gt_ce', factor=0.5), AuxiliaryTerm(name='z', factor=0.001))
        """
        match = re.fullmatch(r"(\w+)(?:\(([^()]*)\))?", text.strip())
        name = match[1] if match else text
        if match is None or name not in _DEFAULTS:
            raise ValueError(f"unknown auxiliary loss '{name}'. {nearest(name, _DEFAULTS)}")
        if match[2] is None:
            return cls(name, _DEFAULTS[name])
        try:
            factor = float(match[2])
        except ValueError:
            factor = math.nan
        if not 0 <= factor < math.inf:
            raise ValueError(f"auxiliary loss '{text}': expected a factor of at least 0 in brackets, like {name}(0.01)")
        return cls(name, factor)

    def loss(self, logits: Tensor, rule: Tensor, rules: int, partition: Callable[[], Tensor]) -> Tensor:
        """The term for a batch: logits (modules, T), the rules (T,), and the module that each rule should have."""
        if self.name == "mi_rule":
            return self.factor * rule_information_loss(logits, rule, rules)
        if self.name == "gt_ce":
            return self.factor * rule_cross_entropy(logits, partition()[rule])
        by_name = {"switch": switch_loss, "importance": importance_loss, "entropy": entropy_loss, "z": z_loss}
        return self.factor * by_name[self.name](logits)
