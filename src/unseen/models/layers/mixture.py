"""A mixture of modules: two layers each, weighted per token and added up, without ever computing a module's output.

The weighted sum of the modules' second layers is one dense product,

    Σ_m p_m (h_m W_m + b_m) = [p_1 h_1, …, p_M h_M, p_1, …, p_M] · [W_1; …; W_M; b_1; …; b_M],

so that a mixture costs little more than one wide network. Tokens are the last axis here ("columns"): weights and scores
then broadcast over whole vector registers, however many modules there are and however narrow they may be.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


class Mixture(nn.Module):
    """Σ_m p_m f_m, f_m = Lin(inputs, hidden) → ReLU → Lin(hidden, outputs), columns to rows.

    With `shared` inputs, (1, inputs, T), all modules see the same; else (modules, inputs, T), each its own. `scored`
    modules have one more output each, a score, and p is the softmax of the scores; else p is given. A single module
    may go without: then it is all there is. Everything starts uniform within ±1/√(fan-in), as in any linear layer.
    """

    def __init__(self, modules: int, inputs: int, hidden: int, outputs: int, *, shared: bool, scored: bool) -> None:
        super().__init__()
        groups = 1 if shared else modules
        self.first = _uniform(inputs, groups, inputs, modules // groups * hidden)
        self.first_bias = _uniform(inputs, modules, hidden)
        self.second = _uniform(hidden, modules * (hidden + 1), outputs)
        self.score = _uniform(hidden, modules, hidden) if scored else None
        self.score_bias = _uniform(hidden, modules) if scored else None

    def forward(self, x: Tensor, weights: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """The mixture, (T, outputs), and the weights, (modules, T): those given, or those the modules chose."""
        if x.shape[-1] == 1:  # two of it: products with a single column round by their own rule (see `affine`)
            mixed, used = self(x.expand(-1, -1, 2), None if weights is None else weights.expand(-1, 2))
            return mixed[:1], None if used is None else used[:, :1]
        parameters = self.first, self.first_bias, self.second, self.score, self.score_bias
        mixed, used, *_ = _Mixture.apply(x, weights, *parameters)  # type: ignore[no-untyped-call]
        return mixed, None if weights is None and self.score is None else used


def _uniform(fan_in: int, *shape: int) -> nn.Parameter:
    bound = 1 / math.sqrt(fan_in)
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))


class _Mixture(torch.autograd.Function):
    """The mixture with a backward pass of its own: half the passes over memory that autograd would make.

    It can be gone back through once: what it kept is used as room on the way, and torch refuses a second time. Every
    tensor may have a leading axis, the members of a stack. Besides mixture and weights, what the backward pass
    needs comes out: the hidden units, and the left side of the dense product.
    """

    @staticmethod
    def forward(
        x: Tensor,
        given: Tensor | None,
        first: Tensor,
        first_bias: Tensor,
        second: Tensor,
        score: Tensor | None,
        score_bias: Tensor | None,
    ) -> tuple[Tensor, ...]:
        lead, (modules, units), tokens = x.shape[:-3], first_bias.shape[-2:], x.shape[-1]
        right, bias = _flat(second), first_bias.reshape(-1, first.shape[-1], 1)
        hidden = torch.baddbmm(bias, _flat(first).mT, _flat(x)).relu_().view(-1, modules, units, tokens)
        if score is not None and score_bias is not None:
            scores = score.reshape(-1, 1, units) @ hidden.view(-1, units, tokens)
            used = scores.view(-1, modules, tokens).add_(score_bias.reshape(-1, modules, 1)).softmax(1)
        elif given is not None:
            used = _flat(given).contiguous()
        else:
            mixed = torch.baddbmm(right[:, units:], hidden[:, 0].mT, right[:, :units])
            return mixed.view(*lead, tokens, -1), x.new_empty(*lead, 0), hidden, x.new_empty(0)
        left = hidden.new_empty(len(hidden), modules * (units + 1), tokens)
        torch.mul(hidden, used[:, :, None], out=left[:, : modules * units].unflatten(1, (modules, units)))
        left[:, modules * units :] = used
        mixed = left.mT @ right
        return mixed.view(*lead, tokens, -1), used.view(*lead, modules, tokens), hidden, left

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        x, given, first, _, second, score, _ = inputs
        ctx.gated = given is not None or score is not None
        ctx.save_for_backward(x, first, second, score, *output[1:])
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        if gradients[0] is None:
            return (None,) * 7
        x, first, second, score, used, hidden, left = ctx.saved_tensors
        modules, units = hidden.shape[1:3]
        d_mixed, right = _flat(gradients[0]), _flat(second)
        d_hidden = (right[:, : modules * units] @ d_mixed.mT).view(hidden.shape)
        d_given = d_score = d_score_bias = None
        if ctx.gated:
            d_second, weights = left @ d_mixed, _flat(used)
            room = left[:, : modules * units].view(hidden.shape)  # done with, and cheaper than fresh memory
            d_weights = (right[:, modules * units :] @ d_mixed.mT).add_(torch.mul(d_hidden, hidden, out=room).sum(2))
            d_hidden.mul_(weights[:, :, None])
        else:
            d_second = torch.cat([hidden[:, 0] @ d_mixed, d_mixed.sum(1, keepdim=True)], 1)
        if score is not None:
            d_scores = d_weights.mul_(weights)
            d_scores.addcmul_(weights, d_scores.sum(1, keepdim=True), value=-1)
            d_score = (d_scores[:, :, None] @ hidden.mT).view(score.shape)
            d_score_bias = d_scores.sum(-1).view(score.shape[:-1])
            d_hidden.addcmul_(score.reshape(-1, modules, units, 1), d_scores[:, :, None])
        elif ctx.gated:
            d_given = d_weights.view(used.shape)
        torch.ops.aten.threshold_backward.grad_input(d_hidden, hidden, 0, grad_input=d_hidden)
        d_first_bias = d_hidden.sum(-1).view(*x.shape[:-3], modules, units)
        d_hidden = d_hidden.view(-1, first.shape[-1], hidden.shape[-1])
        d_first = _flat(x) @ d_hidden.mT
        # Where the inputs came as transposed rows, so does their gradient, lest it be copied.
        rows = x.stride(-1) != 1
        d_x = (d_hidden.mT @ _flat(first).mT).mT if rows else _flat(first) @ d_hidden
        return (
            d_x.unflatten(0, x.shape[:-2]),
            d_given,
            d_first.view(first.shape),
            d_first_bias,
            d_second.view(second.shape),
            d_score,
            d_score_bias,
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Tensor | None) -> tuple[Any, Any]:
        stacked = [
            x if x is None else x.expand(info.batch_size, *x.shape) if dim is None else x.movedim(dim, 0)
            for x, dim in zip(inputs, in_dims, strict=True)
        ]
        return _Mixture.apply(*stacked), (0, 0, None, None)  # type: ignore[no-untyped-call]


def _flat(x: Tensor) -> Tensor:
    """All leading axes as one, for a batched product."""
    return x.reshape(-1, *x.shape[-2:])
