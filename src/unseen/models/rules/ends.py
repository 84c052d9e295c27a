"""What the three models have at their ends: reading the spec, the encoder of tokens, the decoder."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unseen.errors import UsageError
from unseen.models.layers.constants import constant
from unseen.models.layers.linear import Linear, affine
from unseen.spec import Field, Spec


def read(spec: Spec, name: str, *, tokens: bool) -> tuple[int, int]:
    """How many numbers field `name` has and how many rules there are; a task of another form is refused.

    Numbers, rule and target belong to the tokens of a stream, or to the whole example.
    """
    field, rules = spec.field(name), spec.field("rule").width
    spec.require(Field(name, "real", field.width, field.along))
    spec.require(Field("rule", "category", rules, field.along))
    if (field.along is not None) != tokens or spec.target.along != field.along or spec.target.kind == "category":
        raise UsageError(
            f"the model reads '{name}' and 'rule' and answers with yes and no or numbers, all "
            f"{'along a stream' if tokens else 'once per example'}; '{name}' is {field}, the target "
            f"{spec.target}"
        )
    return field.width, rules


class TokenEncoder(nn.Module):
    """Lin(features + rules, width) → ReLU → Lin(width, width) of a token's features and its rule's one-hot code."""

    def __init__(self, features: int, rules: int, width: int) -> None:
        super().__init__()
        self.rules = rules
        self.hidden, self.output = Linear(features + rules, width), Linear(width, width)

    def forward(self, features: Tensor, rule: Tensor) -> Tensor:
        """Features (…, features) and rules (…) → (…, width)."""
        code = (rule[..., None] == _numbers(self.rules, rule.device)).to(features.dtype)
        encoded: Tensor = self.output(rectified(self.hidden, torch.cat([features, code], -1)))
        return encoded


class Decoder(nn.Module):
    """Lin(inputs, hidden) → ReLU → Lin(hidden, outputs): logits or numbers."""

    def __init__(self, inputs: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.hidden, self.answer = Linear(inputs, hidden), Linear(hidden, outputs)

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.answer(rectified(self.hidden, x))
        return answer


def rectified(layer: Linear, x: Tensor) -> Tensor:
    """ReLU of a linear layer, bias and ReLU in place: a third of the memory."""
    return affine(x, layer.weight).add_(layer.bias).relu_()


@constant
def _numbers(count: int, device: torch.device) -> Tensor:
    return torch.arange(count, device=device)
