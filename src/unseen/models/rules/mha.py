"""The rules family's attention model: each token looks up features of its rule in the other tokens."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import torch
from pydantic import Field as Option
from pydantic import PositiveInt
from torch import Tensor, nn

from unseen.models.layers.constants import constant
from unseen.models.layers.gating import Gate, RuleTable
from unseen.models.layers.linear import Linear, affine
from unseen.models.layers.mixture import Mixture
from unseen.models.layers.tape import NO_TAPE, Tape
from unseen.models.rules.attention import look
from unseen.models.rules.counts import MHASizes
from unseen.models.rules.ends import Decoder, TokenEncoder, read
from unseen.models.rules.gating import GatingOptions
from unseen.spec import Spec


class RulesMHA(nn.Module):
    """Encode tokens, let each module's heads look at the others, mix the modules' answers, decode, token by token.

    Without gating one module has the heads of all. Trace: `gating.weights`, (B, N, modules).
    """

    class Options(GatingOptions):
        """`heads` of each module. `encoder`: of width `width`, or `scaled` to hold all features of a token.

        `gate_hidden`: hidden units that choose a module under gating `operation`, in the reference as many as a head
        has channels.
        """

        name: Literal["rules-mha"] = "rules-mha"
        heads: int = Option(2, ge=1)
        encoder: Literal["fixed", "scaled"] = "fixed"
        gate_hidden: Literal["reference", "width"] | PositiveInt = "reference"

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        self.local_gating = options.gating != "joint"  # a score reads what other tokens have left
        features, rules = read(spec, "features", tokens=True)
        sizes = self.sizes = MHASizes(
            gating=options.gating,
            rules=rules,
            width=options.width,
            inputs=features,
            outputs=spec.target.width,
            core_width=options.core,
            given_modules=options.modules,
            match=options.match,
            heads_per_module=options.heads,
            encoder=options.encoder,
            gate_hidden=options.gate_hidden,
        )
        width, seen = options.width, (sizes.heads + 1) * sizes.head
        self.encoder = TokenEncoder(features, rules, sizes.encoded)
        self.project = Linear(sizes.encoded, (3 * sizes.heads + 1) * sizes.modules * sizes.head)
        scored = options.gating == "joint"
        self.core = Mixture(sizes.modules, seen, sizes.inner, width, shared=False, scored=scored)
        self.gate = Gate(options.gating, rules, sizes.modules, options.partition)
        self.scorer = RuleTable(rules, sizes.gate, sizes.modules) if options.gating == "operation" else None
        self.decoder = Decoder(width, width, spec.target.width)

    def forward(self, inputs: Mapping[str, Tensor], tape: Tape = NO_TAPE) -> Tensor:
        """The prediction, (B, N, target): logits of yes, or numbers."""
        # From here on tokens come first and examples last, in blocks of a token: see `attention`.
        code = self.encoder(inputs["features"], inputs["rule"]).transpose(0, 1)
        tokens, batch, width = code.shape
        code, rule = code.reshape(-1, width), inputs["rule"].T.flatten()
        seen = look(self._project(code).view(-1, tokens, batch), self.sizes.modules, self.sizes.heads)
        weights = self.gate(rule, self.scorer and self.scorer(), code)
        mixed, weights = self.core(seen.flatten(2), weights)
        if weights is not None:
            tape.keep("gating.weights", weights.view(-1, tokens, batch).permute(2, 1, 0))
        answer: Tensor = self.decoder(mixed)
        return answer.view(tokens, batch, -1).transpose(0, 1).contiguous()

    def _project(self, code: Tensor) -> Tensor:
        """Queries, keys, values and the modules' own channels: (T, width) → (channels, T)."""
        scale = _scales(self.sizes, code.dtype, code.device)
        weight, bias = self.project.weight * scale, self.project.bias * scale
        if len(code) == 1:  # as a row: a single column rounds by its own rule (see `affine`)
            return affine(code, weight, bias).mT
        return (weight.mT @ code.mT).add_(bias[:, None])


@constant
def _scales(sizes: MHASizes, dtype: torch.dtype, device: torch.device) -> Tensor:
    """What to multiply each projected channel with: queries are divided by the root of a head's width."""
    queries = sizes.heads * sizes.modules * sizes.head
    scale = torch.ones(queries * 3 + sizes.modules * sizes.head, dtype=dtype, device=device)
    scale[:queries] /= math.sqrt(sizes.head)
    return scale
