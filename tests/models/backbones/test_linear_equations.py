"""Backbones with a linear recurrence against the equations of their pages, written out in NumPy token by token."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.special import erf, expit

from support.backbone_cases import Case, double, named
from unseen.models import options
from unseen.models.context import NO_CONTEXT
from unseen.spec import Field, Spec, Stream, Target

Array = NDArray[np.float64]
Weights = dict[str, Array]
SPEC = Spec((Stream("tokens", 37),), (Field("token", "category", 5, "tokens"),), Target("category", 3, "tokens"))
"""Longer than two chunks of 16 tokens, and no multiple of one."""
CASES: list[Case] = [
    ("s4d", {"width": 6, "state": 3}),
    ("mamba", {"width": 20, "state": 3, "kernel": 3}),
    ("gla", {"width": 8, "heads": 2}),
    ("deltanet", {"width": 8, "heads": 2}),
    ("deltanet", {"width": 8, "heads": 2, "negative_eigenvalues": True}),
]


def silu(x: Array) -> Array:
    return x * expit(x)


def norm(x: Array, weights: Weights, name: str) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    scaled: Array = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def affine(x: Array, weights: Weights, name: str) -> Array:
    y: Array = x @ weights[f"{name}.weight"]
    return y + weights.get(f"{name}.bias", 0.0)


def convolve(x: Array, weights: Weights) -> Array:
    kernel = weights["convolution.weight"]
    rows = [sum(kernel[lag] * x[t - lag] for lag in range(min(t + 1, len(kernel)))) for t in range(len(x))]
    return np.array(rows) + weights["convolution.bias"]


def s4d(x: Array, w: Weights, chosen: Any) -> Array:
    rates = -np.exp(w["log_rate"]) + 1j * w["turn"]
    decay = np.exp(np.exp(w["log_step"]) * rates)
    state, results = np.zeros_like(rates), []
    for u in x:
        state = decay * state + (decay - 1) / rates * u[:, None]
        results.append(2 * ((w["readout_real"] + 1j * w["readout_imaginary"]) * state).sum(1).real + w["skip"] * u)
    y = np.array(results)
    return affine(y * (1 + erf(y / np.sqrt(2))) / 2, w, "output")


def mamba(x: Array, w: Weights, chosen: Any) -> Array:
    u, gate = np.split(affine(x, w, "input"), 2, axis=1)
    v = silu(convolve(u, w))
    rank = w["step.weight"].shape[0]
    low, b, c = np.split(affine(v, w, "select"), [rank, rank + chosen.state], axis=1)
    step = np.log1p(np.exp(affine(low, w, "step")))
    state, results = np.zeros_like(w["log_rate"]), []
    for t in range(len(x)):
        state = np.exp(-step[t][:, None] * np.exp(w["log_rate"])) * state + np.outer(step[t] * v[t], b[t])
        results.append(state @ c[t] + w["skip"] * v[t])
    return affine(np.array(results) * silu(gate), w, "output")


def gla(x: Array, w: Weights, chosen: Any) -> Array:
    u = convolve(x, w)
    decay = np.maximum(np.exp(-4), expit(affine(u, w, "decay")) ** (1 / 16))
    found = np.zeros_like(u)
    for query, key, value, alpha, out in heads_of(chosen, *np.split(affine(u, w, "input"), 3, axis=1), decay, found):
        state = np.zeros((key.shape[1], key.shape[1]))
        for t in range(len(u)):
            state = alpha[t][:, None] * state + np.outer(key[t], value[t])
            out[t] = state.T @ query[t] / np.sqrt(key.shape[1])
    return affine(norm(found, w, "norm") * silu(affine(u, w, "gate")), w, "output")


def deltanet(x: Array, w: Weights, chosen: Any) -> Array:
    u = convolve(x, w)
    strength = expit(affine(u, w, "strength")) * (2 if chosen.negative_eigenvalues else 1)
    found = np.zeros_like(u)
    heads = heads_of(chosen, *np.split(affine(u, w, "input"), 3, axis=1), found)
    for number, (query, key, value, out) in enumerate(heads):
        size = key.shape[1]
        query, key = (y / np.sqrt((y**2).sum(1, keepdims=True) + 1e-6) for y in (query, key))
        state = np.zeros((size, size))
        for t in range(len(u)):
            beta = strength[t, number]
            state = state @ (np.eye(size) - beta * np.outer(key[t], key[t])) + beta * np.outer(value[t], key[t])
            out[t] = state @ query[t]
    return affine(norm(found, w, "norm"), w, "output")


def heads_of(chosen: Any, *arrays: Array) -> Any:
    """Views of the channels of each head."""
    return zip(*(np.split(array, chosen.heads, axis=1) for array in arrays), strict=True)


MIXERS = {"s4d": s4d, "mamba": mamba, "gla": gla, "deltanet": deltanet}


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_backbone_computes_the_equations_of_its_page(case: Case) -> None:
    module = double(case, SPEC)
    chosen: Any = options(case[0], **case[1])
    inputs = {"token": torch.randint(5, (2, 37), generator=torch.Generator().manual_seed(0))}
    weights = {name: value.numpy() for name, value in module.state_dict().items()}
    states = []
    for x in module.embed(inputs).states.detach().numpy():
        for layer in range(chosen.layers):
            start = f"blocks.{layer}."
            block = {name.removeprefix(start): value for name, value in weights.items() if name.startswith(start)}
            mixer = {name.removeprefix("mixer."): value for name, value in block.items()}
            u = x + MIXERS[case[0]](norm(x, block, "norm_first"), mixer, chosen)
            x = u + affine(np.maximum(0, affine(norm(u, block, "norm_second"), block, "expand")), block, "contract")
        states.append(norm(x, weights, "norm"))
    expected = module.read_out(torch.from_numpy(np.array(states)), NO_CONTEXT)
    torch.testing.assert_close(module(inputs), expected, rtol=1e-9, atol=1e-9)
