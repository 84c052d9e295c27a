"""The layers against what the published implementation computes with the same weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from unseen.models.context import Context
from unseen.models.layers.attention import ALL, SelfAttention, padding_barrier
from unseen.models.layers.encoder import EncoderBlock
from unseen.models.layers.ndr import geometric_weights
from unseen.models.layers.positions import sinusoidal_code

PUBLISHED = json.loads((Path(__file__).parent / "published_layers.json").read_text())
LAYER = PUBLISHED["relative_transformer_layer"]


def numbers(value: Any) -> Tensor:
    return torch.tensor(value, dtype=torch.float64)


@pytest.mark.parametrize("case", PUBLISHED["geometric_attention"], ids=lambda case: case["name"])
def test_geometric_attention(case: dict[str, Any]) -> None:
    scores = numbers([[0.0 if score == "-inf" else score for score in row] for row in case["logits"]])
    weights = geometric_weights(scores, 1 - torch.eye(5, dtype=torch.float64))
    torch.testing.assert_close(weights, numbers(case["attention_unnormalised"]), rtol=0, atol=1e-7)


def block() -> EncoderBlock:
    """The layer with the published weights; keys and values come by head there, keys first."""
    weights = {name: numbers(value) for name, value in LAYER["weights"].items()}
    made = EncoderBlock(8, 2, 12, 0.0, self_attention=False).double()
    attention = SelfAttention(8, 2, positions="relative", learned_scale=True, bias=False).double()
    made.attention = attention
    key, value = weights["self_attn.data_to_kv.weight"].view(2, 2, 4, 8).transpose(0, 1).reshape(2, 8, 8)
    assert attention.relative is not None and isinstance(attention.scale, torch.nn.Parameter)
    for parameter, published in (
        (attention.scale, weights["self_attn.scale"]),
        (attention.input.weight, torch.cat([weights["self_attn.data_to_q.weight"], key, value]).T),
        (attention.output.weight, weights["self_attn.multi_head_merge.weight"].T),
        (attention.relative.weight, weights["self_attn.pos_to_pq.weight"].T),
        (attention.relative.content, weights["self_attn.global_content_bias"][:, None]),
        (attention.relative.position, weights["self_attn.global_pos_bias"][:, None]),
        (made.expand.weight, weights["linear1.weight"].T),
        (made.expand.bias, weights["linear1.bias"]),
        (made.contract.weight, weights["linear2.weight"].T),
        (made.contract.bias, weights["linear2.bias"]),
        (made.norm_first.weight, weights["norm1.weight"]),
        (made.norm_first.bias, weights["norm1.bias"]),
        (made.norm_second.weight, weights["norm2.weight"]),
        (made.norm_second.bias, weights["norm2.bias"]),
    ):
        assert parameter.shape == published.shape
        parameter.data = published.clone()
    return made


def test_a_layer_of_the_relative_transformer() -> None:
    x, lengths = numbers(LAYER["input"]), torch.tensor(LAYER["lengths"])
    barrier = padding_barrier(torch.arange(5) < lengths[:, None], x.dtype)
    layer, ctx = block(), Context(wanted=["weights"])
    result = layer(x, barrier, None, ALL, ctx, "weights")
    torch.testing.assert_close(ctx.captured["weights"], numbers(LAYER["attention_weights"]), rtol=0, atol=1e-6)
    assert layer.attention is not None
    torch.testing.assert_close(layer.attention(x, barrier), numbers(LAYER["attention_output"]), rtol=0, atol=1e-6)
    torch.testing.assert_close(result, numbers(LAYER["output"]), rtol=0, atol=1e-6)


def test_the_code_of_an_offset() -> None:
    published = numbers(LAYER["pos_encoding_rows_minus4_to_4"])
    torch.testing.assert_close(sinusoidal_code(torch.arange(-4, 5), 8), published, rtol=0, atol=1e-6)
