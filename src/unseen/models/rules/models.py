"""The modularity paper's models of the rules family: an MLP, an attention model and a recurrent model.

`unseen.models.layers.mixture` explains the four gatings.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, Self

import torch
import torch.nn.functional as F
from pydantic import Field, PositiveInt, model_validator
from torch import Tensor, nn

from unseen.errors import UsageError
from unseen.models.context import NO_CONTEXT, Context
from unseen.models.layers.constants import arange, constant
from unseen.models.layers.linear import Linear, TensorModule, affine, uniform_parameter
from unseen.models.layers.mixture import Gate, Gating, Mixture, RuleTable, assign_modules
from unseen.models.layers.router import Routed, Router, RouterOptions, start_orthogonal
from unseen.models.requirements import describe_along, describe_target, require_field
from unseen.models.rules.attention import attend_to_others
from unseen.models.rules.rnn_loop import unroll
from unseen.models.rules.sizes import GATES, Cell, Match, MHASizes, MLPSizes, RNNSizes, State
from unseen.spec import Spec


class GatingOptions(RouterOptions):
    """The options that the three models share; `RouterOptions` has those of routers.

    `width` is the encoder's e; the `core` is by default four times as wide. `modules`: by default as many as there are
    rules; without gating there is one. `partition` is the module of each rule under gating `truth`, by default that of the
    ideal system: rules are dealt to the modules in turn, or by how often they occur if that differs. `match` says how
    modular models get about as many parameters as the monolithic one: by the authors' equations, or `exact`ly, as far as
    whole widths allow.
    """

    gating: Gating = "joint"
    width: int = Field(32, ge=2)
    core: int | None = Field(None, ge=2)
    modules: int | None = Field(None, ge=1)
    partition: tuple[int, ...] | None = None
    match: Match = "reference"

    @model_validator(mode="after")
    def _check_partition(self) -> Self:
        if self.partition is not None and self.gating != "truth":
            raise ValueError(f"gating '{self.gating}' has no partition: leave it out, or choose gating 'truth'")
        return self

    def shared_sizes(self, rules: int, inputs: int, outputs: int) -> dict[str, Any]:
        """The fields that the sizes of all three models have."""
        sizes = {"gating": self.gating, "rules": rules, "width": self.width, "inputs": inputs, "outputs": outputs}
        return sizes | {"core_width": self.core, "given_modules": self.modules, "match": self.match}


def add_router(model: nn.Module, options: GatingOptions, spec: Spec, modules: int, *, recurrent: bool) -> Router | None:
    """The router of a model, None if its weights are the plain softmax; called after all parameters are drawn."""
    if options.gating not in ("joint", "operation"):
        return None
    if options.orthogonal_router:
        start_orthogonal(model.get_submodule("scorer"))
    if options.router_rate != 1:
        # Every parameter that scores modules is named after it: `scorer.…`, `core.score`, `core.score_bias` or `score`.
        scorers = [name for name, _ in model.named_parameters() if "score" in name]
        model.rate_factors = dict.fromkeys(scorers, options.router_rate)  # type: ignore[assignment]
    rule = spec.field("rule")
    return options.make_router(
        modules, rule.width, assign_modules(None, rule.width, modules, rule.prior), recurrent=recurrent
    )


def field_sizes(spec: Spec, name: str, *, tokens: bool) -> tuple[int, int]:
    """The width of field `name` and the number of rules; a task of another form is refused.

    Numbers, rule and target belong to the tokens of a stream (`tokens`), or to the whole example.
    """
    along = spec.field(name).along
    scope = "along a stream" if tokens else "once per example"
    if (along is not None) != tokens or spec.target.along != along or spec.target.kind == "category":
        raise UsageError(
            f"the model reads '{name}' and 'rule' and answers with yes and no or numbers, all {scope}; in this task "
            f"'{name}' is given {describe_along(along)}, and it has {describe_target(spec.target)}"
        )
    return require_field(spec, name, "real", along).width, require_field(spec, "rule", "category", along).width


class TokenEncoder(TensorModule):
    """Lin(features + rules, width) → ReLU → Lin(width, width) of a token's features and its rule's one-hot code."""

    def __init__(self, features: int, rules: int, width: int) -> None:
        super().__init__()
        self.rules = rules
        self.hidden, self.output = Linear(features + rules, width), Linear(width, width)

    def forward(self, features: Tensor, rule: Tensor) -> Tensor:
        """Features (…, features) and rules (…) → (…, width)."""
        code = (rule[..., None] == arange(self.rules, rule.device)).to(features.dtype)
        return self.output(relu_linear(self.hidden, torch.cat([features, code], -1)))


class AnswerDecoder(TensorModule):
    """Lin(inputs, hidden) → ReLU → Lin(hidden, outputs): logits or numbers."""

    def __init__(self, inputs: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.hidden, self.answer = Linear(inputs, hidden), Linear(hidden, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.answer(relu_linear(self.hidden, x))


def relu_linear(layer: Linear, x: Tensor) -> Tensor:
    """ReLU of a linear layer, with bias and ReLU in place: a third of the memory."""
    return affine(x, layer.weight).add_(layer.bias).relu_()


class RulesMLP(nn.Module):
    """Encode numbers and rule, mix the modules' answers, decode. Captured activations: `gating.weights`, (B, modules).

    Every number goes through the same encoder; modules see all codes, concatenated.
    """

    class Options(GatingOptions):
        name: Literal["rules-mlp"] = "rules-mlp"

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        self.local_gating = True  # there are no other tokens
        numbers, rules = field_sizes(spec, "x", tokens=False)
        sizes = self.sizes = MLPSizes(**options.shared_sizes(rules, numbers, spec.target.width))
        width = options.width
        inputs = (numbers + 1) * width
        self.number = nn.Sequential(Linear(1, width), nn.ReLU(), Linear(width, width))
        self.rule = RuleTable(rules, width, width)
        scored = options.gating == "joint"
        self.core = Mixture(sizes.modules, inputs, sizes.inner, sizes.core, shared=True, scored=scored)
        self.gate = Gate(options.gating, rules, sizes.modules, options.partition, spec.field("rule").prior)
        self.scorer = Linear(width, sizes.modules) if options.gating == "operation" else None
        self.decoder = AnswerDecoder(sizes.core, width, spec.target.width)
        self.router = add_router(self, options, spec, sizes.modules, recurrent=False)

    def forward(self, inputs: Mapping[str, Tensor], ctx: Context = NO_CONTEXT) -> Tensor:
        """The prediction, (B, target): logits of yes, or numbers."""
        rule = inputs["rule"]
        codes = self.rule()
        numbers = self.number(inputs["x"][..., None]).flatten(1)
        code = torch.cat([numbers, F.embedding(rule, codes)], -1)
        if self.router is not None:
            weights = self._route(self.router, rule, codes, code, ctx)
            mixed, _ = self.core(code.mT[None], weights)
            return self.decoder(mixed)
        weights = self.gate(rule, self.scorer and self.scorer(codes), code)
        mixed, weights = self.core(code.mT[None], weights)
        if weights is not None:
            by_example = weights.mT
            replaced = ctx.capture("gating.weights", by_example)
            if replaced is not by_example:  # an analysis has replaced the weights: mix once more
                mixed, _ = self.core(code.mT[None], replaced.mT)
        return self.decoder(mixed)

    def _route(self, router: Router, rule: Tensor, codes: Tensor, code: Tensor, ctx: Context) -> Tensor:
        """The weights, (modules, B), of a router."""
        logits = self.core.scores(code.mT[None]) if self.scorer is None else F.embedding(rule, self.scorer(codes)).mT
        routed = router.route(logits, ctx)
        replaced = router.report(routed, rule, lambda x: x.mT, ctx)
        return routed.weights if replaced is None else replaced.mT


class RulesMHA(nn.Module):
    """Encode tokens, let each module's heads look at the others, mix the modules' answers, decode, token by token.

    Without gating one module has the heads of all. Captured activations: `gating.weights`, (B, N, modules).
    """

    class Options(GatingOptions):
        """`heads` of each module. `encoder`: of width `width`, or `scaled` to hold all features of a token.

        `gate_hidden`: hidden units that choose a module under gating `operation`, in the reference as many as a head
        has channels.
        """

        name: Literal["rules-mha"] = "rules-mha"
        heads: int = Field(2, ge=1)
        encoder: Literal["fixed", "scaled"] = "fixed"
        gate_hidden: Literal["reference", "width"] | PositiveInt = "reference"

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        self.local_gating = options.gating != "joint"  # a joint score depends on the other tokens
        features, rules = field_sizes(spec, "features", tokens=True)
        sizes = self.sizes = MHASizes(
            **options.shared_sizes(rules, features, spec.target.width),
            heads_per_module=options.heads,
            encoder=options.encoder,
            gate_hidden=options.gate_hidden,
        )
        width = options.width
        seen = (sizes.heads + 1) * sizes.head
        self.encoder = TokenEncoder(features, rules, sizes.encoded)
        self.project = Linear(sizes.encoded, (3 * sizes.heads + 1) * sizes.modules * sizes.head)
        scored = options.gating == "joint"
        self.core = Mixture(sizes.modules, seen, sizes.inner, width, shared=False, scored=scored)
        self.gate = Gate(options.gating, rules, sizes.modules, options.partition, spec.field("rule").prior)
        self.scorer = RuleTable(rules, sizes.gate, sizes.modules) if options.gating == "operation" else None
        self.decoder = AnswerDecoder(width, width, spec.target.width)
        self.router = add_router(self, options, spec, sizes.modules, recurrent=False)

    def forward(self, inputs: Mapping[str, Tensor], ctx: Context = NO_CONTEXT) -> Tensor:
        """The prediction, (B, N, target): logits of yes, or numbers."""
        # From here on tokens come first and examples last: see `unseen.models.rules.attention`.
        code = self.encoder(inputs["features"], inputs["rule"]).transpose(0, 1)
        tokens, batch, width = code.shape
        code = code.reshape(-1, width)
        rule = inputs["rule"].T.flatten()
        seen = attend_to_others(self._project(code).view(-1, tokens, batch), self.sizes.modules, self.sizes.heads)
        if self.router is None:
            weights = self.gate(rule, self.scorer and self.scorer(), code)
        else:
            weights = self._route(self.router, rule.view(tokens, batch), seen.flatten(2), ctx)
        mixed, weights = self.core(seen.flatten(2), weights)
        if weights is not None and self.router is None:
            by_token = weights.view(-1, tokens, batch).permute(2, 1, 0)
            replaced = ctx.capture("gating.weights", by_token)
            if replaced is not by_token:  # an analysis has replaced the weights: mix once more
                mixed, _ = self.core(seen.flatten(2), replaced.permute(2, 1, 0).flatten(1))
        answer: Tensor = self.decoder(mixed)
        # Contiguous: the loss is a mean, whose order follows the memory layout.
        return answer.view(tokens, batch, -1).transpose(0, 1).contiguous()

    def _route(self, router: Router, rule: Tensor, seen: Tensor, ctx: Context) -> Tensor:
        """The weights, (modules, N · B), of a router; `rule` (N, B)."""
        logits = self.core.scores(seen) if self.scorer is None else F.embedding(rule.flatten(), self.scorer()).mT
        routed = router.route(logits, ctx)
        replaced = router.report(routed, rule.mT, lambda x: x.view(-1, *rule.shape).permute(2, 1, 0), ctx)
        return routed.weights if replaced is None else replaced.permute(2, 1, 0).flatten(1)

    def _project(self, code: Tensor) -> Tensor:
        """Queries, keys, values and the modules' own channels: (T, width) → (channels, T)."""
        scale = _scales(self.sizes, code.dtype, code.device)
        weight, bias = self.project.weight * scale, self.project.bias * scale
        if len(code) == 1:  # as a row: a product with a single column rounds differently (see `affine`)
            return affine(code, weight, bias).mT
        return (weight.mT @ code.mT).add_(bias[:, None])


@constant
def _scales(sizes: MHASizes, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The factor of each projected channel: queries are divided by the root of a head's width."""
    queries = sizes.heads * sizes.modules * sizes.head
    scale = torch.ones(queries * 3 + sizes.modules * sizes.head, dtype=dtype, device=device)
    scale[:queries] /= math.sqrt(sizes.head)
    return scale


class RulesRNN(nn.Module):
    """Encode tokens, let the modules move the state they share, decode the hidden state, step by step.

    Captured activations: `gating.weights`, (B, N, modules).
    """

    class Options(GatingOptions):
        """`bias`: one bias vector for each recurrent module; without gating there are always the usual two. `state`:
        as wide as `match` makes it, or `whole`, as wide as without gating, however many parameters that takes.
        """

        name: Literal["rules-rnn"] = "rules-rnn"
        cell: Cell = "lstm"
        bias: bool = False
        state: State = "matched"

        @model_validator(mode="after")
        def _check_state(self) -> Self:
            if self.state == "whole" and self.match == "exact":
                raise ValueError("a whole state can't be matched exactly: leave out match, or state")
            return self

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        self.local_gating = options.gating != "joint"  # a joint score depends on the other tokens
        features, rules = field_sizes(spec, "x", tokens=True)
        sizes = self.sizes = RNNSizes(
            **options.shared_sizes(rules, features, spec.target.width),
            cell=options.cell,
            bias=options.bias,
            state=options.state,
        )
        alone = options.gating == "none"
        modules = sizes.modules
        state = sizes.inner
        gates = (GATES[options.cell], modules, state)
        self.encoder = TokenEncoder(features, rules, options.width)
        self.input_weight = uniform_parameter(state if alone else options.width, options.width, *gates)
        self.state_weight = uniform_parameter(state, state, *gates)
        biases = 2 if alone else int(options.bias)
        self.bias = uniform_parameter(state, biases, *gates) if biases else None
        self.score = uniform_parameter(2 * gates[0] * state, 2, *gates) if options.gating == "joint" else None
        self.gate = Gate(options.gating, rules, modules, options.partition, spec.field("rule").prior)
        self.scorer = RuleTable(rules, state, modules, bias=False) if options.gating == "operation" else None
        self.decoder = AnswerDecoder(state, state, spec.target.width)
        self.router = add_router(self, options, spec, modules, recurrent=True)

    def forward(self, inputs: Mapping[str, Tensor], ctx: Context = NO_CONTEXT) -> Tensor:
        """The prediction, (B, N, target): logits of yes, or numbers."""
        code = self.encoder(inputs["x"], inputs["rule"])
        batch, steps, _ = code.shape
        weights = None
        if self.router is None:
            weights = self.gate(inputs["rule"].T.flatten(), self.scorer and self.scorer(), code)
        if weights is not None:
            weights = weights.view(-1, steps, batch).transpose(0, 1)
        # One below the other, in the order of the row that they are multiplied with: input, state, 1 for the bias.
        rows: list[Tensor] = [self.input_weight, self.state_weight]
        if self.bias is not None:
            rows.append(self.bias.sum(0, keepdim=True))
        weight = torch.cat(rows)
        # Steps first and examples last, as the loop wants them.
        x = code.permute(1, 2, 0)
        if self.router is not None:
            return self.decoder(self._unroll_routed(self.router, x, weight, inputs["rule"], ctx))
        if self.sizes.gating == "truth":
            # The weights of all modules one below the other: see `ChosenStep`.
            by_module = weight.permute(2, 0, 1, 3).flatten(0, 1)[:, :, None]
            hidden, _ = unroll(x, by_module, self.sizes.cell, choice=weights)
        else:
            hidden, weights = unroll(x, weight, self.sizes.cell, mixing=weights, score=self.score)
        if weights is not None:
            by_token = weights.permute(2, 0, 1)
            replaced = ctx.capture("gating.weights", by_token)
            if replaced is not by_token:  # an analysis has replaced the weights: run once more with these
                hidden, _ = unroll(x, weight, self.sizes.cell, mixing=replaced.permute(1, 2, 0))
        # Contiguous: the decoder's bias gradients are sums, whose order follows the memory layout.
        return self.decoder(hidden.permute(2, 0, 1).contiguous())

    def _unroll_routed(self, router: Router, x: Tensor, weight: Tensor, rule: Tensor, ctx: Context) -> Tensor:
        """The hidden states, (B, N, width), under a router; a step's scores are known only when it comes."""
        if self.scorer is not None:
            routed = Routed.stack([router.route(step, ctx) for step in F.embedding(rule.T, self.scorer()).mT])
            hidden = None
        else:
            steps: list[Routed] = []

            def route(scores: Tensor) -> Tensor:
                steps.append(router.route(scores, ctx))
                return steps[-1].weights

            hidden, _ = unroll(x, weight, self.sizes.cell, score=self.score, route=route)
            routed = Routed.stack(steps)
        replaced = router.report(routed, rule, lambda value: value.permute(2, 1, 0), ctx)
        if hidden is None or replaced is not None:
            mixing = routed.weights.transpose(0, 1) if replaced is None else replaced.permute(1, 2, 0)
            hidden, _ = unroll(x, weight, self.sizes.cell, mixing=mixing)
        return hidden.permute(2, 0, 1).contiguous()
