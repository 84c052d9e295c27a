"""The common parts of the backbones with a linear recurrence: blocks of a mixer of tokens and a feed-forward."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import Field
from torch import Tensor, nn

from unseen.models.backbones.options import BackboneOptions
from unseen.models.context import NO_CONTEXT, Context
from unseen.models.layers.embedding import Embed, ReadOut, gather_real, take_tokens
from unseen.models.layers.linear import Linear
from unseen.models.layers.norm import LayerNorm
from unseen.spec import Spec


class LinearRecurrentOptions(BackboneOptions):
    """`feedforward` is the hidden width of the feed-forward as a multiple of `width`."""

    layers: int = Field(2, ge=1)
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
