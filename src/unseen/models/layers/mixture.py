"""Mixtures of modules, and the gating that weights them.

A modular model gives each token one weight per module, by its gating:

| gating | shown as | weights |
|---|---|---|
| `none` | Monolithic | there is one module |
| `joint` | Modular | softmax of a score that each module computes from its own hidden units |
| `operation` | Modular-op | softmax of scores computed from the rule alone |
| `truth` | GT-Modular | 1 for the module of the rule |

Under `operation` and `truth` the weights are a table, rules × modules, from which a token takes the row of its rule.

The modules have two layers each. The weighted sum of their second layers is one dense product,

    Σ_m p_m (h_m W_m + b_m) = [p_1 h_1, …, p_M h_M, p_1, …, p_M] · [W_1; …; W_M; b_1; …; b_M],

so that the output of a single module is never computed and a mixture costs little more than one wide network. Tokens are
the last axis here ("columns"): weights and scores then broadcast over whole vector registers, however many modules there
are and however narrow they are.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from unseen.analysis.routing import ideal_partition
from unseen.errors import UsageError
from unseen.models.layers.constants import constant
from unseen.models.layers.linear import Linear, TensorModule, uniform_parameter
from unseen.models.layers.per_member import save_intermediates, stack_inputs

Gating = Literal["none", "joint", "operation", "truth"]


@constant
def truth_table(partition: tuple[int, ...], modules: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The weights of gating `truth`, (rules, modules): 1 for the module of a rule, else 0."""
    return F.one_hot(torch.tensor(partition, device=device), modules).to(dtype)


def assign_modules(
    partition: tuple[int, ...] | None, rules: int, modules: int, prior: tuple[float, ...] | None = None
) -> tuple[int, ...]:
    """The module of each rule: `partition`, after a check, or by default that of the ideal specialised system.

    Rules that are equally probable (no `prior`) are dealt to the modules in turn. With fewer modules than rules of
    unequal probability, each rule goes to the module with the least load so far, the most probable rule first.

    >>> assign_modules(None, rules=5, modules=2)
    (0, 1, 0, 1, 0)
    >>> assign_modules(None, rules=3, modules=2, prior=(0.5, 0.3, 0.2))
    (0, 1, 1)
    """
    if partition is None:
        if prior is not None:
            return tuple(ideal_partition(prior, modules).tolist())
        return tuple(rule % modules for rule in range(rules))
    if len(partition) != rules or not set(partition) <= set(range(modules)):
        raise UsageError(
            f"partition {partition}: expected one module, 0 to {modules - 1}, for each of the task's {rules} rules"
        )
    return partition


class Gate(nn.Module):
    """Weights that depend on the rule alone; gatings `none` and `joint` have none."""

    def __init__(
        self,
        gating: Gating,
        rules: int,
        modules: int,
        partition: tuple[int, ...] | None = None,
        prior: tuple[float, ...] | None = None,
    ) -> None:
        super().__init__()
        self.gating = gating
        self.count = modules
        self.partition = assign_modules(partition, rules, modules, prior) if gating == "truth" else ()

    def forward(self, rule: Tensor, scores: Tensor | None, like: Tensor) -> Tensor | None:
        """The weights (modules, T) of tokens with these rules (T,), from the scores (rules, modules) of every rule."""
        if scores is not None:
            table = scores.softmax(-1)
        elif self.gating == "truth":
            table = truth_table(self.partition, self.count, like.dtype, like.device)
        else:
            return None
        return F.embedding(rule, table).mT


class RuleTable(TensorModule):
    """Lin(rules, hidden) → ReLU → Lin(hidden, outputs) of every rule's one-hot code at once: (rules, outputs).

    There are fewer rules than tokens, so that tokens take rows of the table instead of computing the layers themselves.
    """

    def __init__(self, rules: int, hidden: int, outputs: int, *, bias: bool = True) -> None:
        super().__init__()
        self.first, self.second = Linear(rules, hidden, bias=bias), Linear(hidden, outputs, bias=bias)

    def forward(self) -> Tensor:
        codes = self.first.weight if self.first.bias is None else self.first.weight + self.first.bias
        return self.second(codes.relu())


class Mixture(nn.Module):
    """Σ_m p_m f_m, f_m = Lin(inputs, hidden) → ReLU → Lin(hidden, outputs), columns to rows.

    With `shared` inputs, (1, inputs, T), all modules have the same input; otherwise (modules, inputs, T). `scored` modules
    have one more output each, a score, and p is the softmax of the scores, unless p is an argument. A single module needs
    no weights. Everything starts uniform within ±1/√(fan-in), as in any linear layer.
    """

    def __init__(self, modules: int, inputs: int, hidden: int, outputs: int, *, shared: bool, scored: bool) -> None:
        super().__init__()
        # With the same input for all modules, their first layers are one wide layer, one product instead of many.
        groups = 1 if shared else modules
        self.first = uniform_parameter(inputs, groups, inputs, modules // groups * hidden)
        self.first_bias = uniform_parameter(inputs, modules, hidden)
        self.second = uniform_parameter(hidden, modules * (hidden + 1), outputs)
        self.score = uniform_parameter(hidden, modules, hidden) if scored else None
        self.score_bias = uniform_parameter(hidden, modules) if scored else None

    def forward(self, x: Tensor, weights: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """The mixture, (T, outputs), and the weights, (modules, T): the argument, or those that the modules chose."""
        if x.shape[-1] == 1:  # computed for two copies: products with a single column round differently (see `affine`)
            mixed, used = self(x.expand(-1, -1, 2), None if weights is None else weights.expand(-1, 2))
            return mixed[:1], None if used is None else used[:, :1]
        scorer = (self.score, self.score_bias) if weights is None else (None, None)
        parameters = self.first, self.first_bias, self.second, *scorer
        if torch.compiler.is_compiling():
            return self._mix_by_autograd(x, weights)
        mixed, used, *_ = _Mixture.apply(x, weights, *parameters)  # type: ignore[no-untyped-call]
        return mixed, None if weights is None and self.score is None else used

    def _mix_by_autograd(self, x: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """`forward` from plain operations: what `torch.compile` traces, since it makes its own backward pass."""
        modules, units = self.first_bias.shape
        hidden = self._hidden_units(x).reshape(modules, units, -1)
        if weights is None and self.score is not None and self.score_bias is not None:
            weights = ((self.score[:, None] @ hidden)[:, 0] + self.score_bias[:, None]).softmax(0)
        if weights is None:
            return hidden[0].mT @ self.second[:units] + self.second[units:], None
        factors = torch.cat([(hidden * weights[:, None]).flatten(0, 1), weights])
        return factors.mT @ self.second, weights

    def _hidden_units(self, x: Tensor) -> Tensor:
        """The hidden units of the groups, (groups, units, T)."""
        return (self.first.mT @ x + self.first_bias.reshape(len(self.first), -1, 1)).relu()

    def scores(self, x: Tensor) -> Tensor:
        """The modules' scores before the softmax, (modules, T): for routers that make other weights of them.

        `forward` is then given the weights. The hidden units are computed twice, once here, by plain operations.
        """
        if self.score is None or self.score_bias is None:
            raise UsageError("the modules of this mixture compute no scores; make it with scored = True")
        if x.shape[-1] == 1:  # as in `forward`
            return self.scores(x.expand(-1, -1, 2))[:, :1]
        products = self.score[..., None] * self._hidden_units(x).reshape(*self.first_bias.shape, -1)
        return products.sum(1) + self.score_bias[:, None]


class _Mixture(torch.autograd.Function):
    """The mixture with its own backward pass: half the passes over memory that autograd would make.

    The backward pass can run only once, because it overwrites saved tensors; torch refuses a second time. Every tensor may
    have a leading axis, the members of a stack. Besides mixture and weights, the outputs are what the backward pass needs:
    the hidden units, and the left factor of the dense product.
    """

    @staticmethod
    def forward(
        x: Tensor,
        weights: Tensor | None,
        first: Tensor,
        first_bias: Tensor,
        second: Tensor,
        score: Tensor | None,
        score_bias: Tensor | None,
    ) -> tuple[Tensor, ...]:
        lead, tokens = x.shape[:-3], x.shape[-1]
        modules, units = first_bias.shape[-2:]
        right = _flatten_lead(second)
        bias = first_bias.reshape(-1, first.shape[-1], 1)
        # All modules in one product with shared inputs (one group), else in one batched product over modules and members.
        hidden = torch.baddbmm(bias, _flatten_lead(first).mT, _flatten_lead(x)).relu_().view(-1, modules, units, tokens)
        if score is not None and score_bias is not None:
            scores = score.reshape(-1, 1, units) @ hidden.view(-1, units, tokens)
            used = scores.view(-1, modules, tokens).add_(score_bias.reshape(-1, modules, 1)).softmax(1)
        elif weights is not None:
            # Contiguous: the weights come as rows of a table, transposed, and are reduced in the backward pass.
            used = _flatten_lead(weights).contiguous()
        else:
            # A single module: its bias is the last row of the right factor, and there is nothing to weight.
            mixed = torch.baddbmm(right[:, units:], hidden[:, 0].mT, right[:, :units])
            return mixed.view(*lead, tokens, -1), x.new_empty(*lead, 0), hidden, x.new_empty(0)
        # The left factor of the dense product: weighted hidden units, then the weights themselves for the biases.
        factors = hidden.new_empty(len(hidden), modules * (units + 1), tokens)
        torch.mul(hidden, used[:, :, None], out=factors[:, : modules * units].unflatten(1, (modules, units)))
        factors[:, modules * units :] = used
        mixed = factors.mT @ right
        return mixed.view(*lead, tokens, -1), used.view(*lead, modules, tokens), hidden, factors

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        x, weights, first, _, second, score, _ = inputs
        ctx.gated = weights is not None or score is not None
        save_intermediates(ctx, output, x, first, second, score)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        if gradients[0] is None:
            return (None,) * 7
        x, first, second, score, used, hidden, factors = ctx.saved_tensors
        modules, units = hidden.shape[1:3]
        d_mixed = _flatten_lead(gradients[0])
        right = _flatten_lead(second)
        d_hidden = (right[:, : modules * units] @ d_mixed.mT).view(hidden.shape)
        d_weights = d_score = d_score_bias = None
        if ctx.gated:
            d_second = factors @ d_mixed
            weights = _flatten_lead(used)
            # This part of `factors` is not needed any more, and reusing it is cheaper than fresh memory.
            room = factors[:, : modules * units].view(hidden.shape)
            d_used = (right[:, modules * units :] @ d_mixed.mT).add_(torch.mul(d_hidden, hidden, out=room).sum(2))
            d_hidden.mul_(weights[:, :, None])
        else:
            d_second = torch.cat([hidden[:, 0] @ d_mixed, d_mixed.sum(1, keepdim=True)], 1)
        if score is not None:
            # The backward pass of the softmax, p (d − Σ p d), in place.
            d_scores = d_used.mul_(weights)
            d_scores.addcmul_(weights, d_scores.sum(1, keepdim=True), value=-1)
            d_score = (d_scores[:, :, None] @ hidden.mT).view(score.shape)
            d_score_bias = d_scores.sum(-1).view(score.shape[:-1])
            d_hidden.addcmul_(score.reshape(-1, modules, units, 1), d_scores[:, :, None])
        elif ctx.gated:
            d_weights = d_used.view(used.shape)
        # The backward pass of ReLU, in place.
        torch.ops.aten.threshold_backward.grad_input(d_hidden, hidden, 0, grad_input=d_hidden)
        d_first_bias = d_hidden.sum(-1).view(*x.shape[:-3], modules, units)
        d_hidden = d_hidden.view(-1, first.shape[-1], hidden.shape[-1])
        d_first = _flatten_lead(x) @ d_hidden.mT
        # If the inputs are transposed rows, their gradient is computed in the same layout, so that it is not copied.
        transposed = x.stride(-1) != 1
        d_x = (d_hidden.mT @ _flatten_lead(first).mT).mT if transposed else _flatten_lead(first) @ d_hidden
        return (
            d_x.unflatten(0, x.shape[:-2]),
            d_weights,
            d_first.view(first.shape),
            d_first_bias,
            d_second.view(second.shape),
            d_score,
            d_score_bias,
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Tensor | None) -> tuple[Any, Any]:
        stacked = stack_inputs(info, in_dims, inputs)
        return _Mixture.apply(*stacked), (0, 0, None, None)  # type: ignore[no-untyped-call]


def _flatten_lead(x: Tensor) -> Tensor:
    """All leading axes as one, for a batched product."""
    return x.reshape(-1, *x.shape[-2:])
