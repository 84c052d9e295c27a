"""Backbones whose state is a matrix, for any task: gated linear attention and DeltaNet."""

from __future__ import annotations

from typing import Literal

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from unseen.models.backbones.linear_recurrent import ConvolvedOptions, LinearRecurrentBackbone, keep_real
from unseen.models.backbones.state_space import silu
from unseen.models.layers.attention import check_heads, merge_heads, project_heads, split_heads
from unseen.models.layers.linear import Linear, sigmoid
from unseen.models.layers.linear_recurrence import STRONGEST, ShortConvolution, delta_rule, gated_attention
from unseen.models.layers.norm import LayerNorm
from unseen.spec import Spec

_SLOWER = 16
"""The root that is taken of a decay, so that memories are long at the start."""
_SMALL = 1e-6


class MatrixOptions(ConvolvedOptions):
    """Each of the `heads` keeps a matrix of (width / heads)² numbers."""

    heads: int = Field(4, ge=1)


class MatrixMixer(nn.Module):
    """A short convolution, then queries, keys and values, split into heads; a norm and a map of what the heads read."""

    def __init__(self, options: MatrixOptions) -> None:
        super().__init__()
        width = options.width
        check_heads(width, options.heads)
        self.heads = options.heads
        self.convolution = ShortConvolution(width, options.kernel)
        self.input = Linear(width, 3 * width, bias=False)
        self.norm = LayerNorm(width)
        self.output = Linear(width, width, bias=False)


class GatedLinearAttention(MatrixMixer):
    """S_t = diag(α_t) S_{t−1} + k_t v_tᵀ, o_t = S_tᵀ q_t / √k, with decays α = σ(…)^{1/16} of each token and key channel.

    A decay is at least e⁻⁴. The norm of o is multiplied with silu of a gate.
    """

    def __init__(self, options: MatrixOptions) -> None:
        super().__init__(options)
        self.decay = Linear(options.width, options.width)
        self.gate = Linear(options.width, options.width, bias=False)

    def forward(self, x: Tensor, real: Tensor | None) -> Tensor:
        """`x` (B, T, width) has zeros at padding."""
        x = self.convolution(x)
        query, key, value = project_heads(keep_real(x, real), self.input, self.heads)
        log_decay = keep_real((F.logsigmoid(self.decay(x)) / _SLOWER).clamp(min=STRONGEST), real)
        scale = query.shape[-1] ** -0.5
        mixed = gated_attention(query * scale, key, value, split_heads(log_decay, self.heads))
        return self.output(self.norm(merge_heads(mixed)) * silu(self.gate(x)))


class GLA(LinearRecurrentBackbone):
    """Gated linear attention: a matrix per head that decays by what each token says; see `LinearRecurrentBackbone`."""

    class Options(MatrixOptions):
        name: Literal["gla"] = "gla"

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__(options, spec, lambda: GatedLinearAttention(options))


class DeltaRule(MatrixMixer):
    """S_t = S_{t−1} (1 − β_t k_t k_tᵀ) + β_t v_t k_tᵀ, o_t = S_t q_t, with keys and queries of length one.

    The factor of S has the eigenvalue 1 − β in the direction of k and 1 elsewhere. β = σ(…) of each token and head lies
    between 0 and 1; twice that, between 0 and 2, can turn the sign of what is stored, as tracking a state needs.
    """

    def __init__(self, options: DeltaNet.Options) -> None:
        super().__init__(options)
        self.strength = Linear(options.width, options.heads)
        self.most = 2.0 if options.negative_eigenvalues else 1.0

    def forward(self, x: Tensor, real: Tensor | None) -> Tensor:
        """`x` (B, T, width) has zeros at padding."""
        x = self.convolution(x)
        query, key, value = project_heads(x, self.input, self.heads)
        strength = keep_real(sigmoid(self.strength(x)) * self.most, real)
        mixed = delta_rule(_normalize(query), _normalize(key), value, split_heads(strength, self.heads))
        return self.output(self.norm(merge_heads(mixed)))


def _normalize(x: Tensor) -> Tensor:
    """Vectors of length one along the last axis."""
    return x * (x.square().sum(-1, keepdim=True) + _SMALL).rsqrt()


class DeltaNet(LinearRecurrentBackbone):
    """The delta rule: what is stored under a key moves towards the new value; see `LinearRecurrentBackbone`."""

    class Options(MatrixOptions):
        """`negative_eigenvalues`: whether eigenvalues of a step lie in [−1, 1] instead of [0, 1]."""

        name: Literal["deltanet"] = "deltanet"
        negative_eigenvalues: bool = Field(
            False,
            description="whether eigenvalues of a step lie between −1 and 1, as tracking parity needs, or 0 and 1",
        )

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__(options, spec, lambda: DeltaRule(options))
