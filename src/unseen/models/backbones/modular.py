"""Transformers whose feed-forwards are mixtures of modules, for any task: by four gatings, or by a sparse router."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Self

import torch
from pydantic import Field as Option
from pydantic import model_validator
from torch import Tensor, nn

from unseen.errors import UsageError
from unseen.models.backbones.options import PlacedOptions
from unseen.models.context import NO_CONTEXT, Context
from unseen.models.layers.attention import ALL, SelfAttention, padding_barrier
from unseen.models.layers.embedding import Embed, ReadOut
from unseen.models.layers.linear import Linear
from unseen.models.layers.mixture import Gate, Gating, Mixture, RuleTable
from unseen.models.layers.norm import LayerNorm
from unseen.models.layers.positions import Scheme
from unseen.spec import Field, Spec


class Symbols:
    """The discrete symbol 0 … `count` − 1 of each token that `Embed` makes in this order, by which gates choose modules.

    A token's symbol is its value in the first category field of its stream (the rule, the function, the operator), or, if
    a stream has no such field, the stream itself. Streams share no symbols. The read-out token answers for the whole
    example: it has the symbol of the fields given once, if these have a category, and otherwise one of its own.

    `main` is the stream along which the task's own symbols lie: the first stream that has some (None: the fields given
    once), or the first of all.

    >>> from unseen.spec import Target
    >>> rule = Field("x", "real", 2), Field("rule", "category", 4)
    >>> Symbols(Spec((), rule, Target("binary")), [None]).count
    4
    """

    def __init__(self, spec: Spec, order: Sequence[str | None]) -> None:
        self._spec = spec
        self._order = order
        self._fields: dict[str | None, Field | None] = {}
        self._first: dict[str | None, int] = {}
        self.count = 0
        for stream in order:
            field = next((field for field in spec.along(stream) if field.kind == "category"), None)
            self._fields[stream] = field
            self._first[stream] = self.count
            self.count += 1 if field is None else field.width
        self.main = next((stream for stream in order if self._fields[stream]), order[0])
        self._has_read_out = spec.target.along is None
        self._shares_symbol = self._fields.get(None) is not None
        # The last number is that of the read-out token, where no field of the whole example gives it one.
        if self._has_read_out and not self._shares_symbol:
            self.count += 1

    def __call__(self, inputs: Mapping[str, Tensor]) -> tuple[Tensor, slice]:
        """The symbols, (B, T), and the slice of the tokens along `main`."""
        symbols = [self._symbols_of(stream, inputs) for stream in self._order]
        index = self._order.index(self.main)
        # Counted here rather than from the spec: a stream may be longer in a test than in training.
        start = sum(values.shape[1] for values in symbols[:index])
        main = slice(start, start + symbols[index].shape[1])
        if self._has_read_out:
            read_out = torch.full_like(symbols[0][:, :1], self.count - 1)
            symbols.append(self._symbols_of(None, inputs) if self._shares_symbol else read_out)
        return torch.cat(symbols, 1), main

    def _symbols_of(self, stream: str | None, inputs: Mapping[str, Tensor]) -> Tensor:
        field = self._fields[stream]
        first = self._first[stream]
        if field is not None:
            values = inputs[field.name].long() + first
            return values if stream else values[:, None]
        example = inputs[self._spec.along(stream)[0].name]
        shape = example.shape[:2] if stream else (len(example), 1)
        return torch.full(shape, first, dtype=torch.int64, device=example.device)


class ModularBlock(nn.Module):
    """Pre-norm: u = x + Σ_m p_m f_m(LN(x)), where p are the token's weights by `gating`; then u + attention(LN(u)).

    The feed-forward, made of modules, comes before the attention, so that in every layer, the last included, the modules
    work on all tokens. Its `hidden` units are divided among the modules: a block has about as many parameters with any
    number of modules as with one. All modules share the attention. A `router`, if there is one, maps tokens (T, width) to
    weights (T, modules), in place of a gating.
    """

    def __init__(
        self,
        width: int,
        hidden: int,
        heads: int,
        dropout: float,
        *,
        gating: Gating,
        symbols: int,
        modules: int,
        positions: Scheme,
        router: nn.Module | None = None,
    ) -> None:
        super().__init__()
        if hidden < modules:
            raise UsageError(
                f"{hidden} hidden units can't be divided among {modules} modules; choose a larger width, "
                "more feedforward, or fewer modules"
            )
        self.dropout = dropout
        self.attention = SelfAttention(width, heads, dropout, positions)
        self.mixture = Mixture(modules, width, hidden // modules, width, shared=True, scored=gating == "joint")
        self.gate = Gate(gating, symbols, modules)
        self.scorer = RuleTable(symbols, width, modules) if gating == "operation" else None
        self.router = router
        self.norm_first = LayerNorm(width)
        self.norm_second = LayerNorm(width)

    def forward(
        self,
        x: Tensor,
        symbols: Tensor,
        main: slice | int,
        barrier: Tensor | None,
        token_positions: tuple[int, ...],
        rows: slice,
        ctx: Context,
        layer: str,
    ) -> Tensor:
        """The tokens in `rows`. Captured activations: `gating.weights` of the tokens `main`, and `encoder.attention`, with
        `layer` inserted into their names."""
        u, weights = self._mix(x, symbols, None, ctx)
        if weights is not None:
            visible = weights[:, main]
            replaced = ctx.capture(f"gating.{layer}weights", visible)
            if replaced is not visible:  # an analysis has replaced the weights: mix once more
                weights = weights.clone()
                weights[:, main] = replaced
                u, _ = self._mix(x, symbols, weights, NO_CONTEXT)
        name = f"encoder.{layer}attention"
        mixed = self.attention(
            self.norm_second(u), barrier, token_positions=token_positions, rows=rows, ctx=ctx, name=name
        )
        return ctx.add_dropped(u[:, rows], mixed, self.dropout)

    def _mix(self, x: Tensor, symbols: Tensor, weights: Tensor | None, ctx: Context) -> tuple[Tensor, Tensor | None]:
        """x plus the mixture, and the weights of all tokens (B, T, modules), None without gating.

        `weights`, if any, replace those of the gating.
        """
        tokens = self.norm_first(x).flatten(0, 1)
        if weights is None and self.router is not None:
            by_module = self.router(tokens).mT
        elif weights is None:
            by_module = self.gate(symbols.flatten(), self.scorer and self.scorer(), tokens)
        else:
            by_module = weights.flatten(0, 1).mT
        mixed, by_module = self.mixture(tokens.mT[None], by_module)
        by_token = None if by_module is None else by_module.mT.unflatten(0, x.shape[:2])
        return ctx.add_dropped(x, mixed.view(x.shape), self.dropout), by_token


class MixtureOptions(PlacedOptions):
    """The options of all Transformers with modules."""

    layers: int = Option(2, ge=1, le=1000)
    heads: int = Option(4, ge=1)


class MixtureBackbone(nn.Module):
    """Embed, let modules work on each token and tokens attend to each other, layer by layer, read out.

    A Transformer whose feed-forwards are mixtures of modules: see `ModularBlock`.

    Captured activations: `gating.weights` of the tokens that the task's symbols lie along, (B, T, modules), or (B,
    modules) if they are given once; `encoder.attention`, `encoder.state` and `readout.state`, for the tokens that are
    read. Of earlier layers `gating.0.weights`, … and, for all tokens, `encoder.0.attention`, ….
    """

    def __init__(
        self,
        options: MixtureOptions,
        spec: Spec,
        *,
        gating: Gating,
        modules: int | None,
        hidden: int,
        make_router: Callable[[], nn.Module] | None = None,
    ) -> None:
        super().__init__()
        width = options.width
        self.dropout = options.dropout
        # A score may depend on what other tokens have left in a state, unless there are no others.
        self.local_gating = (gating != "joint" and make_router is None) or not spec.streams
        self.embed = Embed(spec, width, options.positions, options.places)
        self.symbols = Symbols(spec, self.embed.order)
        self.blocks = nn.ModuleList(
            ModularBlock(
                width,
                hidden,
                options.heads,
                options.dropout,
                gating=gating,
                symbols=self.symbols.count,
                modules=modules or self.symbols.count,
                positions=options.positions,
                router=None if make_router is None else make_router(),
            )
            for _ in range(options.layers)
        )
        self.norm = LayerNorm(width)
        self.read_out = ReadOut(spec, width)

    def forward(self, inputs: Mapping[str, Tensor], ctx: Context = NO_CONTEXT) -> Tensor:
        """The prediction in the shape of the target, logits for binary and category targets."""
        tokens = self.embed(inputs)
        symbols, main = self.symbols(inputs)
        x = ctx.dropout(tokens.states, self.dropout)
        barrier = None if tokens.mask is None else padding_barrier(tokens.mask, x.dtype)
        selected = main if self.symbols.main else main.start  # without its axis, if the symbols are given once
        for i, block in enumerate(self.blocks):
            last = i == len(self.blocks) - 1
            rows, layer = (tokens.read, "") if last else (ALL, f"{i}.")
            x = block(x, symbols, selected, barrier, tokens.token_positions, rows, ctx, layer)
        x = ctx.capture("encoder.state", self.norm(x))
        return self.read_out(x, ctx)


class Modular(MixtureBackbone):
    """Gatings `operation` and `truth` go by the discrete symbol of a token (see `Symbols`); see `MixtureBackbone`."""

    class Options(MixtureOptions):
        """`modules`: by default as many as there are symbols, and one without gating. Under `truth` a symbol's module is
        its number modulo `modules`. `feedforward` is the hidden width of all modules together as a multiple of `width`.
        """

        name: Literal["modular"] = "modular"
        gating: Gating = "joint"
        modules: int | None = Option(None, ge=1)
        feedforward: int = Option(4, ge=1)

    def __init__(self, options: Options, spec: Spec) -> None:
        modules = 1 if options.gating == "none" else options.modules
        hidden = options.feedforward * options.width
        super().__init__(options, spec, gating=options.gating, modules=modules, hidden=hidden)


class TopKRouter(nn.Module):
    """Weights of the experts, (T, width) → (T, experts): p = softmax(W x), kept for the k largest and scaled to sum to 1.

    The scale is taken as a constant when gradients are computed, so that the router learns with k = 1 as well, where the
    one weight is always 1.
    """

    def __init__(self, width: int, experts: int, top_k: int) -> None:
        super().__init__()
        self.top_k = top_k
        self.score = Linear(width, experts, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        weights = self.score(x).softmax(-1)
        # Which experts are chosen has no gradient; how much each weighs has one.
        chosen = weights.detach().topk(self.top_k, -1).indices
        largest: Tensor = weights * torch.zeros_like(weights).scatter(-1, chosen, 1.0)
        return largest / largest.detach().sum(-1, keepdim=True)


class MoETransformer(MixtureBackbone):
    """A learned router sends each token to the `top_k` of its experts, by their weights; see `MixtureBackbone`.

    All experts are computed and those that a token is not sent to are multiplied by 0: that is what a stack of small
    models on a CPU does fastest, and FLOPs count it. No loss balances the experts; whether they are balanced is measured
    (`unseen.analysis.measure_router_health`).
    """

    class Options(MixtureOptions):
        """`experts`: how many there are. `top_k`: how many of them work on a token. `feedforward`: the hidden width of
        one expert as a multiple of `width`."""

        name: Literal["moe-transformer"] = "moe-transformer"
        experts: int = Option(8, ge=2, description="number of experts of a layer")
        top_k: int = Option(2, ge=1, description="experts that a token goes to")
        feedforward: int = Option(1, ge=1)

        @model_validator(mode="after")
        def _check_top_k(self) -> Self:
            if self.top_k > self.experts:
                raise ValueError(f"top_k = {self.top_k} is more than the {self.experts} experts; choose fewer")
            return self

    def __init__(self, options: Options, spec: Spec) -> None:
        experts = options.experts
        width = options.width
        super().__init__(
            options,
            spec,
            gating="none",
            modules=experts,
            hidden=experts * options.feedforward * width,
            make_router=lambda: TopKRouter(width, experts, options.top_k),
        )
