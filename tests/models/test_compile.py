"""`torch.compile(fullgraph=True)` traces every model whole, alone and stacked by vmap, with equal results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import functional_call, vmap

from support.specimens import READ_BY, SPECS
from support.stacks import Members
from unseen.models import MODELS, options
from unseen.models.context import Context

NAMES = [entry.name for entry in MODELS if entry.target.startswith("unseen.")]
# One task per model, and beside them what a model does otherwise there: masks, gatings, cells, forms.
CASES: list[tuple[str, dict[str, Any], str]] = [
    *((name, {}, READ_BY[name][0]) for name in NAMES),
    ("lstm", {}, "ctl"),
    ("gru", {}, "gcog embedding"),
    ("transformer", {"positions": "rotary", "causal": True}, "ctl"),
    ("transformer", {"positions": "relative"}, "gcog integer"),
    ("retrieval-transformer", {"encoder": "literal"}, "retrieval"),
    ("retrieval-lstm", {"form": "matched"}, "retrieval"),
    ("ctl-ndr", {"form": "original"}, "ctl"),
    ("gcog-dual-stream", {}, "gcog embedding"),
    *(("rules-mlp", {"gating": gating}, "rules/mlp") for gating in ("none", "operation", "truth")),
    *(("rules-mha", {"gating": gating}, "rules/mha") for gating in ("none", "operation", "truth")),
    *(("rules-rnn", {"gating": gating}, "rules/rnn") for gating in ("none", "operation", "truth")),
    ("rules-rnn", {"cell": "elman"}, "rules/rnn"),
]
OWN_BACKWARD = (
    "lstm",
    "modular",
    "moe-transformer",
    "retrieval-lstm",
    "ctl-bilstm",
    "rules-mlp",
    "rules-mha",
    "rules-rnn",
)
"""Models with a backward pass of their own, in place; the compiler is given plain operations, which round differently."""


def test_the_page_about_gpus_counts_the_models() -> None:
    page = " ".join((Path(__file__).parents[2] / "docs" / "gpu.md").read_text().split())
    own_backward = [name for name in NAMES if name in OWN_BACKWARD]
    assert f"all {len(NAMES)} models" in page
    assert f"bit for bit for {len(NAMES) - len(own_backward)} models" in page
    listed = ", ".join(f"`{name}`" for name in own_backward)
    assert f"The other {len(own_backward)} ({listed}) have a backward pass of their own" in page


@pytest.mark.filterwarnings("ignore")  # torch's own, about its tracing
@pytest.mark.parametrize(("name", "given", "task"), CASES, ids=str)
def test_a_stack_is_traced_whole_with_equal_results(name: str, given: dict[str, Any], task: str) -> None:
    torch._dynamo.reset()
    members = Members(options(name, **given), SPECS[task], batch=3, count=2)
    inputs, _ = members.data(0, [0, 1])
    bits = members.bits(0, [0, 1])
    parameters = members.parameters([0, 1])

    def predict(parameters: dict[str, Tensor], bits: Tensor, inputs: dict[str, Tensor]) -> Tensor:
        def member(own: dict[str, Tensor], bits: Tensor, inputs: dict[str, Tensor]) -> Tensor:
            prediction: Tensor = functional_call(members.modules[0], own, (inputs, Context(bits)))
            return prediction

        return vmap(member)(parameters, bits, inputs)

    expected = predict(parameters, bits, inputs)
    compiled = torch.compile(predict, fullgraph=True, backend="eager")(parameters, bits, inputs)
    gradients = [
        torch.autograd.grad(prediction.square().sum(), list(parameters.values())) for prediction in (expected, compiled)
    ]
    if name in OWN_BACKWARD:
        torch.testing.assert_close(compiled, expected, rtol=1e-5, atol=1e-6)
        for a, b in zip(*gradients, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5 * float(a.abs().max()))
    else:
        assert torch.equal(compiled, expected)
        assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))
