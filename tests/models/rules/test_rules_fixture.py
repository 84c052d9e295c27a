"""Small models of the published implementation: with its weights, ours give its outputs and its module weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from support.rules_cases import spec
from unseen.models import options
from unseen.models.build import build
from unseen.models.context import Context
from unseen.training.stack import load_member

PUBLISHED = json.loads(Path(__file__).with_name("forward_small_models.json").read_text())
Weights = dict[str, Tensor]


def linear(weights: Weights, theirs: str, ours: str) -> Weights:
    """A linear layer, theirs (out, in)."""
    return {f"{ours}.weight": weights[f"{theirs}.weight"].T, f"{ours}.bias": weights[f"{theirs}.bias"]}


def mixture(weights: Weights, theirs: tuple[str, str], shared: bool) -> Weights:
    """Two grouped layers, theirs (module, in, out) and (1, module, out); the last channel is the score."""
    (first, first_bias), (second, second_bias) = ((weights[f"{t}.w"], weights[f"{t}.b"][0]) for t in theirs)
    return {
        "core.first": first.permute(1, 0, 2).flatten(1)[None] if shared else first,
        "core.first_bias": first_bias,
        "core.second": torch.cat([second[..., :-1].flatten(0, 1), second_bias[:, :-1]]),
        "core.score": second[..., -1],
        "core.score_bias": second_bias[:, -1],
    }


def ends(weights: Weights) -> Weights:
    """The decoder, and the encoder of tokens where there is one."""
    pairs = {
        "encoder.0": "encoder.hidden",
        "encoder.2": "encoder.output",
        "decoder.0": "decoder.hidden",
        "decoder.2": "decoder.answer",
    }
    found = (linear(weights, theirs, ours) for theirs, ours in pairs.items() if f"{theirs}.weight" in weights)
    return {name: value for layer in found for name, value in layer.items()}


def mlp(weights: Weights, rules: int) -> Weights:
    return {
        **linear(weights, "encoder_digit.0", "number.0"), **linear(weights, "encoder_digit.2", "number.2"),
        **linear(weights, "encoder_operation.0", "rule.first"), **linear(weights, "encoder_operation.2", "rule.second"),
        **mixture(weights, ("MLP.0", "MLP.2"), shared=True), **ends(weights),
    }  # fmt: skip


def mha(weights: Weights, rules: int) -> Weights:
    layers = [linear(weights, f"model.{name}", "project") for name in ("query_net", "key_net", "value_net", "in_")]
    return {
        **ends(weights),
        **{name: torch.cat([layer[name] for layer in layers], -1) for name in layers[0]},
        **mixture(weights, ("model.out_proj.0", "model.out_proj.2"), shared=False),
    }


def monolithic_rnn(weights: Weights, rules: int) -> Weights:
    """Their gates are in the order input, forget, candidate, output."""

    def gates(name: str) -> Tensor:
        parts = weights[f"rnn.{name}"].unflatten(0, (4, -1))[[0, 1, 3, 2]]
        return parts.movedim(-1, 0)[:, :, None] if parts.dim() == 3 else parts[:, None]

    return {
        "input_weight": gates("weight_ih"),
        "state_weight": gates("weight_hh"),
        "bias": torch.stack([gates("bias_ih"), gates("bias_hh")]),
        **ends(weights),
    }


def modular_rnn(weights: Weights, rules: int) -> Weights:
    """Their rows are in the order module, gate, unit; scores read all gates of the input, then all of the state."""
    by_name = {
        ours: weights[f"rnn.{theirs}.weight"].unflatten(0, (rules, 4, -1)).permute(3, 1, 0, 2)
        for ours, theirs in (("input_weight", "i2h"), ("state_weight", "h2h"))
    }
    score = weights["rnn.scorer.1.w"][..., 0].unflatten(1, (2, 4, -1)).permute(1, 2, 0, 3)
    return {**by_name, "score": score, **ends(weights)}


LOADERS = {
    "forward_MLP_Modular": ("rules-mlp", mlp),
    "forward_MHA_Modular": ("rules-mha", mha),
    "forward_RNN_Monolithic": ("rules-rnn", monolithic_rnn),
    "forward_RNN_Modular": ("rules-rnn", modular_rnn),
}


def inputs(model: str, given: Tensor, rules: int) -> dict[str, Tensor]:
    numbers, onehot = given.tensor_split([-rules], -1)
    return {"features" if model == "rules-mha" else "x": numbers, "rule": onehot.argmax(-1)}


@pytest.mark.parametrize("case", PUBLISHED, ids=lambda case: case["id"])
def test_published_small_models(case: dict[str, Any]) -> None:
    name, load = LOADERS[case["id"]]
    rules, given = case["R"], torch.tensor(case["input"])
    core = case.get("dim") or case.get("att_dim") or case["nominal_hidden"]
    read = inputs(name, given, rules)
    task = spec(name, rules, inputs=None if name == "rules-mha" else read["x"].shape[-1])
    gating = {"Modular": "joint", "Monolithic": "none"}[case["model"]]
    module = build(options(name, gating=gating, width=case["enc_dim"], core=core), task)
    weights = load({k: torch.tensor(v) for k, v in case["weights"].items()}, rules)
    assert set(weights) == set(dict(module.named_parameters()))
    assert sum(w.numel() for w in weights.values()) == module.sizes.count
    load_member(module, weights)
    ctx = Context(wanted=["gating.weights"])
    torch.testing.assert_close(module(read, ctx)[..., 0], torch.tensor(case["reference_output"]), rtol=1e-5, atol=1e-6)
    if case["reference_scores"] is not None:
        torch.testing.assert_close(
            ctx.captured["gating.weights"], torch.tensor(case["reference_scores"]), rtol=1e-5, atol=1e-6
        )
