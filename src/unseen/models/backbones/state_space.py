"""State-space backbones for any task: a diagonal one that is the same for every token (S4D), and a selective one (Mamba)."""

from __future__ import annotations

import math
from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from unseen.models.backbones.linear_recurrent import (
    ConvolvedOptions,
    LinearRecurrentBackbone,
    LinearRecurrentOptions,
    keep_real,
)
from unseen.models.layers.linear import Linear, gelu, sigmoid
from unseen.models.layers.linear_recurrence import ShortConvolution, convolve, scan, scan_by_steps
from unseen.spec import Spec

_LOG_SHORTEST_STEP, _LOG_LONGEST_STEP = math.log(1e-3), math.log(1e-1)
"""Between these, as logarithms, lie the lengths of a step at the start, which set how long a channel remembers."""


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


def silu(x: Tensor) -> Tensor:
    """x σ(x)."""
    return x * sigmoid(x)


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
