"""A modular model for any task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from unseen.models.backbones.options import PlacedOptions
from unseen.models.layers.attention import ALL, padding
from unseen.models.layers.embed import Embed
from unseen.models.layers.gating import Gating
from unseen.models.layers.modular import ModularBlock
from unseen.models.layers.norm import LayerNorm
from unseen.models.layers.readout import ReadOut
from unseen.models.layers.symbols import Symbols
from unseen.models.layers.tape import NO_TAPE, Tape
from unseen.spec import Spec


class Modular(nn.Module):
    """Embed, let modules work on each token and tokens attend to each other, layer by layer, read out.

    A Transformer whose feed-forwards are mixtures of modules: see `ModularBlock`. Gatings `operation` and `truth` go by
    the discrete symbol of a token: see `Symbols`.

    Traces: `gating.weights` of the tokens that the task's symbols lie along, (B, T, modules), or (B, modules) if they
    are given once; `encoder.attention`, `encoder.state` and `readout.state`, for the tokens that are read. Of earlier
    layers `gating.0.weights`, … and, for all tokens, `encoder.0.attention`, ….
    """

    class Options(PlacedOptions):
        """`modules`: as many as there are symbols unless given, and one without gating. Under `truth` a symbol's module
        is its number modulo `modules`. `feedforward` is the hidden width of all modules together as a multiple of
        `width`.
        """

        name: Literal["modular"] = "modular"
        gating: Gating = "joint"
        modules: int | None = Field(None, ge=1)
        layers: int = Field(2, ge=1)
        heads: int = Field(4, ge=1)
        feedforward: int = Field(4, ge=1)

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        width = options.width
        self.dropout = options.dropout
        self.local_gating = options.gating != "joint" or not spec.streams  # else a score reads what other tokens left
        self.embed = Embed(spec, width, options.positions, options.places)
        self.symbols = Symbols(spec, self.embed.order)
        modules = 1 if options.gating == "none" else options.modules or self.symbols.count
        self.blocks = nn.ModuleList(
            ModularBlock(
                width,
                options.heads,
                options.feedforward * width,
                options.dropout,
                gating=options.gating,
                symbols=self.symbols.count,
                modules=modules,
                positions=options.positions,
            )
            for _ in range(options.layers)
        )
        self.norm = LayerNorm(width)
        self.read_out = ReadOut(spec, width)

    def forward(self, inputs: Mapping[str, Tensor], tape: Tape = NO_TAPE) -> Tensor:
        """The prediction in the shape of the target, logits for binary and category."""
        tokens = self.embed(inputs)
        symbols, watched = self.symbols(inputs)
        x = tape.dropout(tokens.states, self.dropout)
        barrier = None if tokens.mask is None else padding(tokens.mask, x.dtype)
        for i, block in enumerate(self.blocks):
            layer, rows = ("", tokens.read) if i == len(self.blocks) - 1 else (f"{i}.", ALL)
            x, weights = block(x, symbols, barrier, tokens.places, rows, tape, f"encoder.{layer}attention")
            if weights is not None:
                weights = weights[:, watched]
                tape.keep(f"gating.{layer}weights", weights if self.symbols.main else weights[:, 0])
        x = self.norm(x)
        tape.keep("encoder.state", x)
        prediction: Tensor = self.read_out(x, tape)
        return prediction
