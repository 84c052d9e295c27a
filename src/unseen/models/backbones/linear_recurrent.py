"""Backbones with a recurrence that is linear in its state, for any task: S4D, Mamba, gated linear attention and DeltaNet.

They are blocks of a mixer of tokens and a feed-forward, and differ in the mixer. The state of S4D and Mamba is a vector per
channel, that of the other two a matrix per head.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from unseen.models.backbones.options import BackboneOptions
from unseen.models.context import NO_CONTEXT, Context
from unseen.models.layers.attention import check_heads, merge_heads, project_heads, split_heads
from unseen.models.layers.embedding import Embed, ReadOut, gather_real, take_tokens
from unseen.models.layers.linear import Linear, gelu, sigmoid
from unseen.models.layers.linear_recurrence import (
    STRONGEST,
    ShortConvolution,
    convolve,
    delta_rule,
    gated_attention,
    scan,
    scan_by_steps,
)
from unseen.models.layers.norm import LayerNorm
from unseen.spec import Spec

_LOG_SHORTEST_STEP, _LOG_LONGEST_STEP = math.log(1e-3), math.log(1e-1)
"""Between these, as logarithms, lie the lengths of a step at the start, which set how long a channel remembers."""
_SLOWER = 16
"""The root that is taken of a decay, so that memories are long at the start."""
_SMALL = 1e-6


class LinearRecurrentOptions(BackboneOptions):
    """`feedforward` is the hidden width of the feed-forward as a multiple of `width`."""

    layers: int = Field(2, ge=1, le=1000)
    feedforward: int = Field(2, ge=1)


class ConvolvedOptions(LinearRecurrentOptions):
    """`kernel`: how many tokens the short convolution before the recurrence sees, 1 for the token alone."""

    kernel: int = Field(
        4, ge=1, description="tokens that the short convolution before the recurrence sees, 1 for the token alone"
    )


class LinearRecurrentBlock(nn.Module):
    """Pre-norm: u = x + mixer(LN(x)), then u + W₂ max(0, W₁ LN(u) + b₁) + b₂."""

    def __init__(self, mixer: nn.Module, width: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.mixer = mixer
        self.expand = Linear(width, hidden)
        self.contract = Linear(hidden, width)
        self.norm_first = LayerNorm(width)
        self.norm_second = LayerNorm(width)

    def forward(self, x: Tensor, real: Tensor | None, ctx: Context) -> Tensor:
        """`real` (B, T, 1) is 1 for tokens and 0 for padding, which lies before them."""
        source = self.norm_first(x)
        mixed = self.mixer(source if real is None else source * real, real)
        u = ctx.add_dropped(x, mixed, self.dropout)
        hidden = self.expand(self.norm_second(u)).relu()
        return ctx.add_dropped(u, self.contract(ctx.dropout(hidden, self.dropout)), self.dropout)


class LinearRecurrentBackbone(nn.Module):
    """Embed, apply blocks with a recurrence that is linear in its state, read out.

    It reads from left to right: a prediction along a stream knows nothing of later tokens. It knows no positions except
    the order of the tokens. Where there is padding, the real tokens are moved together and padding before them, where it
    writes nothing. Captured activations: `encoder.state`, for all tokens, and `readout.state`.
    """

    def __init__(self, options: LinearRecurrentOptions, spec: Spec, make_mixer: Callable[[], nn.Module]) -> None:
        super().__init__()
        width = options.width
        self.dropout = options.dropout
        self.embed = Embed(spec, width)
        self.blocks = nn.ModuleList(
            LinearRecurrentBlock(make_mixer(), width, options.feedforward * width, options.dropout)
            for _ in range(options.layers)
        )
        self.norm = LayerNorm(width)
        self.read_out = ReadOut(spec, width)

    def forward(self, inputs: Mapping[str, Tensor], ctx: Context = NO_CONTEXT) -> Tensor:
        """The prediction in the shape of the target, logits for binary and category targets."""
        tokens = self.embed(inputs)
        x = ctx.dropout(tokens.states, self.dropout)
        real = position = None
        if tokens.mask is not None:
            x, mask, position = gather_real(x, tokens.mask)
            real = mask.to(x.dtype)[..., None]
        for block in self.blocks:
            x = block(x, real, ctx)
        if position is not None:
            x = take_tokens(x, position)
        x = ctx.capture("encoder.state", self.norm(x))
        return self.read_out(x[:, tokens.read], ctx)


def keep_real(x: Tensor, real: Tensor | None) -> Tensor:
    """`x` with zeros at padding: (B, T, channels)."""
    return x if real is None else x * real


def silu(x: Tensor) -> Tensor:
    """x σ(x)."""
    return x * sigmoid(x)


# State spaces.


class DiagonalStateSpace(nn.Module):
    """Each channel has its own n complex states: h_t = e^{Δa} h_{t−1} + (e^{Δa} − 1) / a · u_t, y_t = 2 Re Σ c h_t + d u_t.

    The states start with a = −½ + iπm, m = 0 … n − 1 (S4D-Lin). The output is a map of gelu(y).
    """

    def __init__(self, width: int, states: int) -> None:
        super().__init__()
        self.log_step = nn.Parameter(torch.empty(width, 1).uniform_(_LOG_SHORTEST_STEP, _LOG_LONGEST_STEP))
        self.log_rate = nn.Parameter(torch.full((width, states), math.log(0.5)))
        self.turn = nn.Parameter(math.pi * torch.arange(states, dtype=torch.float32).repeat(width, 1))
        self.readout_real = nn.Parameter(torch.empty(width, states).normal_(std=math.sqrt(0.5)))
        self.readout_imaginary = nn.Parameter(torch.empty(width, states).normal_(std=math.sqrt(0.5)))
        self.skip = nn.Parameter(torch.empty(width).normal_())
        self.output = Linear(width, width)

    def forward(self, u: Tensor, real: Tensor | None) -> Tensor:
        """`u` (B, T, width) has zeros at padding."""
        mixed = convolve(self.kernel(u.shape[1]), u) + self.skip * u
        return self.output(gelu(mixed))

    def discretize(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Δa and c (e^{Δa} − 1) / a, each as a real and an imaginary part, (width, n)."""
        step = self.log_step.exp()
        rate = -self.log_rate.exp()
        step_rate, step_turn = step * rate, step * self.turn
        size = step_rate.exp()
        grown_real, grown_imaginary = size * step_turn.cos() - 1, size * step_turn.sin()
        # (e^{Δa} − 1) / a = (e^{Δa} − 1) conj(a) / |a|², then times c.
        scale = 1 / (rate * rate + self.turn * self.turn)
        input_real = (grown_real * rate + grown_imaginary * self.turn) * scale
        input_imaginary = (grown_imaginary * rate - grown_real * self.turn) * scale
        real = self.readout_real * input_real - self.readout_imaginary * input_imaginary
        imaginary = self.readout_real * input_imaginary + self.readout_imaginary * input_real
        return step_rate, step_turn, real, imaginary

    def kernel(self, tokens: int) -> Tensor:
        """The amount that a token's input adds to the result 0, 1, … tokens later: (width, tokens)."""
        step_rate, step_turn, real, imaginary = self.discretize()
        times = torch.arange(tokens, dtype=step_rate.dtype, device=step_rate.device)[:, None]
        size, angle = (times * step_rate[:, None]).exp(), times * step_turn[:, None]  # (width, tokens, n)
        return 2 * (size * (real[:, None] * angle.cos() - imaginary[:, None] * angle.sin())).sum(-1)


class S4D(LinearRecurrentBackbone):
    """A diagonal state-space model: the same linear recurrence at every token; see `LinearRecurrentBackbone`."""

    class Options(LinearRecurrentOptions):
        """`state`: complex numbers of state per channel."""

        name: Literal["s4d"] = "s4d"
        state: int = Field(16, ge=1, description="complex numbers of state per channel")

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__(options, spec, lambda: DiagonalStateSpace(options.width, options.state))


class SelectiveStateSpace(nn.Module):
    """A state space whose step Δ, input B and output C depend on the token; channels are `expand` times as many.

    u and a gate z are maps of the input; u = silu(short convolution of u). For channel c and state n,
    h_t = e^{Δ_t a_n} h_{t−1} + Δ_t B_{t,n} u_t and y_t = Σ_n C_{t,n} h_{t,n} + d u_t; a starts at −1, −2, …, −n. The output
    is a map of y silu(z).
    """

    def __init__(self, width: int, expand: int, states: int, kernel: int) -> None:
        super().__init__()
        channels = expand * width
        rank = max(1, math.ceil(width / 16))
        self.sizes = [rank, states, states]
        self.input = Linear(width, 2 * channels, bias=False)
        self.convolution = ShortConvolution(channels, kernel)
        self.select = Linear(channels, sum(self.sizes), bias=False)
        self.step = Linear(rank, channels)
        # The inverse of softplus at the first lengths of a step.
        first = torch.empty(channels).uniform_(_LOG_SHORTEST_STEP, _LOG_LONGEST_STEP).exp()
        with torch.no_grad():
            self.step.bias.copy_(first + torch.log(-torch.expm1(-first)))
        self.log_rate = nn.Parameter(torch.arange(1, states + 1, dtype=torch.float32).log().repeat(channels, 1))
        self.skip = nn.Parameter(torch.ones(channels))
        self.output = Linear(channels, width, bias=False)

    def forward(self, x: Tensor, real: Tensor | None) -> Tensor:
        """`x` (B, T, width) has zeros at padding."""
        u, gate = self.input(x).chunk(2, -1)
        u = silu(self.convolution(u.contiguous()))
        # Contiguous: products and sums of strided slices may round differently for one member and for many.
        low_rank, input_weights, output_weights = (x.contiguous() for x in self.select(u).split(self.sizes, -1))
        step = keep_real(-F.logsigmoid(-self.step(low_rank)), real)  # softplus, and nothing happens at padding
        decay = (step[..., None] * -self.log_rate.exp()).exp()
        # On a CPU a step is large enough to be worth a call, and the scan's passes over memory cost several times as much.
        scanned = scan_by_steps if x.device.type == "cpu" else scan
        states = scanned(decay, (step * u)[..., None] * input_weights[:, :, None])
        mixed = (states * output_weights[:, :, None]).sum(-1) + self.skip * u
        return self.output(mixed * silu(gate.contiguous()))


class Mamba(LinearRecurrentBackbone):
    """A selective state-space model: each token decides what is kept, written and read; see `LinearRecurrentBackbone`."""

    class Options(ConvolvedOptions):
        """`state`: numbers of state per channel. `expand`: channels as a multiple of `width`."""

        name: Literal["mamba"] = "mamba"
        state: int = Field(16, ge=1, description="numbers of state per channel")
        expand: int = Field(2, ge=1, description="channels as a multiple of the width")

    def __init__(self, options: Options, spec: Spec) -> None:
        def make_mixer() -> nn.Module:
            return SelectiveStateSpace(options.width, options.expand, options.state, options.kernel)

        super().__init__(options, spec, make_mixer)


# Matrices as states.


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
