"""The rules family's MLP: two numbers and a rule in, one answer out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unseen.models.layers.gating import Gate, RuleTable
from unseen.models.layers.linear import Linear
from unseen.models.layers.mixture import Mixture
from unseen.models.layers.tape import NO_TAPE, Tape
from unseen.models.rules.counts import MLPSizes
from unseen.models.rules.ends import Decoder, read
from unseen.models.rules.gating import GatingOptions
from unseen.spec import Spec


class RulesMLP(nn.Module):
    """Encode numbers and rule, mix the modules' answers, decode. Trace: `gating.weights`, (B, modules).

    Every number goes through the same encoder; modules see all codes, concatenated.
    """

    class Options(GatingOptions):
        """See `GatingOptions`."""

        name: Literal["rules-mlp"] = "rules-mlp"

    def __init__(self, options: Options, spec: Spec) -> None:
        super().__init__()
        self.local_gating = True  # there are no other tokens
        numbers, rules = read(spec, "x", tokens=False)
        sizes = self.sizes = MLPSizes(
            gating=options.gating,
            rules=rules,
            width=options.width,
            inputs=numbers,
            outputs=spec.target.width,
            core_width=options.core,
            given_modules=options.modules,
            match=options.match,
        )
        width, inputs = options.width, (numbers + 1) * options.width
        self.number = nn.Sequential(Linear(1, width), nn.ReLU(), Linear(width, width))
        self.rule = RuleTable(rules, width, width)
        scored = options.gating == "joint"
        self.core = Mixture(sizes.modules, inputs, sizes.inner, sizes.core, shared=True, scored=scored)
        self.gate = Gate(options.gating, rules, sizes.modules, options.partition)
        self.scorer = Linear(width, sizes.modules) if options.gating == "operation" else None
        self.decoder = Decoder(sizes.core, width, spec.target.width)

    def forward(self, inputs: Mapping[str, Tensor], tape: Tape = NO_TAPE) -> Tensor:
        """The prediction, (B, target): logits of yes, or numbers."""
        rule, codes = inputs["rule"], self.rule()
        numbers = self.number(inputs["x"][..., None]).flatten(1)
        code = torch.cat([numbers, F.embedding(rule, codes)], -1)
        weights = self.gate(rule, self.scorer and self.scorer(codes), code)
        mixed, weights = self.core(code.mT[None], weights)
        if weights is not None:
            tape.keep("gating.weights", weights.mT)
        prediction: Tensor = self.decoder(mixed)
        return prediction
