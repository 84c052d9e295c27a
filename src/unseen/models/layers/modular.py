"""A block of modules chosen token by token, and of attention between tokens."""

from __future__ import annotations

from torch import Tensor, nn

from unseen.errors import UsageError
from unseen.models.layers.attention import Attention
from unseen.models.layers.gating import Gate, Gating, RuleTable
from unseen.models.layers.mixture import Mixture
from unseen.models.layers.norm import LayerNorm
from unseen.models.layers.positions import Scheme
from unseen.models.layers.tape import Tape


class ModularBlock(nn.Module):
    """Pre-norm: u = x + Σ_m p_m f_m(LN(x)), where p is the token's weights by `gating`; then u + attention(LN(u)).

    A Transformer's feed-forward, made of modules, comes before its attention: in every layer, the last included, the
    modules work on all tokens. Its `hidden` units are dealt out to the modules: with any number of them, a block has
    about as many parameters as with one. All share the attention.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        hidden: int,
        dropout: float,
        *,
        gating: Gating,
        symbols: int,
        modules: int,
        positions: Scheme,
    ) -> None:
        super().__init__()
        if hidden < modules:
            raise UsageError(
                f"{hidden} hidden units can't be divided among {modules} modules; choose a larger width, "
                "more feedforward, or fewer modules"
            )
        self.dropout = dropout
        self.attention = Attention(width, heads, dropout, positions)
        self.mixture = Mixture(modules, width, hidden // modules, width, shared=True, scored=gating == "joint")
        self.gate = Gate(gating, symbols, modules)
        self.scorer = RuleTable(symbols, width, modules) if gating == "operation" else None
        self.norm_first, self.norm_second = LayerNorm(width), LayerNorm(width)

    def forward(
        self,
        x: Tensor,
        symbols: Tensor,
        barrier: Tensor | None,
        places: tuple[int, ...],
        rows: slice,
        tape: Tape,
        name: str,
    ) -> tuple[Tensor, Tensor | None]:
        """The tokens in `rows`, and the weights of all tokens (B, T, modules), None without gating.

        Keeps the weights of attention under `name`.
        """
        tokens = self.norm_first(x).flatten(0, 1)
        given = self.gate(symbols.flatten(), self.scorer and self.scorer(), tokens)
        mixed, weights = self.mixture(tokens.mT[None], given)
        u = tape.onto(x, mixed.view(x.shape), self.dropout)
        found = self.attention(self.norm_second(u), barrier, places=places, rows=rows, tape=tape, name=name)
        by_token = None if weights is None else weights.mT.unflatten(0, x.shape[:2])
        return tape.onto(u[:, rows], found, self.dropout), by_token
