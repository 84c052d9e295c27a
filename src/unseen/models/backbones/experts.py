"""A Transformer with a sparse mixture of experts, for any task: each token is sent to its top k experts."""

from __future__ import annotations

from typing import Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from unseen.models.backbones.modular import MixtureBackbone, MixtureOptions
from unseen.models.layers.linear import Linear
from unseen.spec import Spec


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
        experts: int = Field(8, ge=2, description="number of experts of a layer")
        top_k: int = Field(2, ge=1, description="experts that a token goes to")
        feedforward: int = Field(1, ge=1)

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
