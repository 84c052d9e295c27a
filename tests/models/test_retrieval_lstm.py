from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from support.specimens import RETRIEVAL, SPECS, random_inputs
from unseen.errors import UsageError
from unseen.models import options
from unseen.models.build import build, parameter_count
from unseen.models.context import Context, CountingContext

FORMS = ["basic", "attention", "matched"]


def model(**given: Any) -> nn.Module:
    return build(options("retrieval-lstm", **given), RETRIEVAL, 0).double()


def bits(batch: int = 4, length: int = 6) -> dict[str, Tensor]:
    inputs = random_inputs(RETRIEVAL, batch, 0, {"sequence": length})
    return {k: v.double() for k, v in inputs.items()}


@pytest.mark.parametrize(("form", "count"), [("basic", 79_101), ("attention", 79_101), ("matched", 108_401)])
def test_parameter_counts(form: str, count: int) -> None:
    assert parameter_count(model(form=form)) == count


@pytest.mark.parametrize("form", FORMS)
def test_initialisation(form: str) -> None:
    module = model(form=form)
    query = 1 / 6 if form == "matched" else 0.1
    bounds = {
        module.decoder.query.weight: query,
        module.decoder.query.bias: 1 / 6,
        module.recurrence.layers[0].input_weight: 0.1,
        module.recurrence.layers[0].state_bias: 0.1,
        module.decoder.hidden.bias: (1 / 200) ** 0.5,
    }
    if form == "matched":
        bounds |= {module.embed.linear.weight: 0.1, module.embed.linear.bias: 1 / 6}
    for values, bound in bounds.items():
        assert 0.9 * bound < values.abs().max() <= bound * (1 + 1e-6)


def plain(module: nn.Module, inputs: dict[str, Tensor], form: str) -> Tensor:
    """The model from `nn.LSTM` and its formulas, with the weights of ours."""
    layer, decoder = module.recurrence.layers[0], module.decoder
    x = inputs["sequence"]
    if form == "matched":
        x = 6 * F.linear(x, module.embed.linear.weight.T, module.embed.linear.bias)
    lstm = nn.LSTM(x.shape[-1], 100, batch_first=True).double()
    names = {"weight_ih_l0": layer.input_weight.T, "weight_hh_l0": layer.state_weight.T}
    names |= {"bias_ih_l0": layer.input_bias, "bias_hh_l0": layer.state_bias}
    h = torch.func.functional_call(lstm, names, (x,))[0]
    q = F.linear(inputs["query"], decoder.query.weight.T, decoder.query.bias)
    q = q.relu() if form == "matched" else q
    alpha = torch.einsum("bnd,bd->bn", h, q).softmax(1)
    c = h[:, -1] if form == "basic" else torch.einsum("bn,bnd->bd", alpha, h)
    z = F.relu(F.linear(torch.cat([c, q], 1), decoder.hidden.weight.T, decoder.hidden.bias))
    return F.linear(z, decoder.answer.weight.T, decoder.answer.bias)


@pytest.mark.parametrize("form", FORMS)
def test_agrees_with_the_formulas(form: str) -> None:
    module, inputs = model(form=form), bits()
    ours, reference = module(inputs), plain(module, inputs, form)
    torch.testing.assert_close(ours, reference, rtol=1e-10, atol=1e-10)
    parameters = list(module.parameters())
    for a, b in zip(
        torch.autograd.grad(ours.square().sum(), parameters),
        torch.autograd.grad(reference.square().sum(), parameters),
        strict=True,
    ):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_encoding_is_causal_and_blind_to_the_query(form: str) -> None:
    module, inputs = model(form=form), bits()

    def states(**changed: Tensor) -> Tensor:
        ctx = Context(wanted=["encoder.state"])
        module({**inputs, **changed}, ctx)
        return ctx.captured["encoder.state"]

    later = inputs["sequence"].clone()
    later[:, 3:] = 1 - later[:, 3:]
    assert torch.equal(states(sequence=later)[:, :3], states()[:, :3])
    assert not torch.allclose(states(sequence=later)[:, 3], states()[:, 3])
    assert torch.equal(states(query=1 - inputs["query"]), states())


@pytest.mark.parametrize("form", FORMS)
def test_order_matters(form: str) -> None:
    module, inputs = model(form=form), bits()
    shuffled = {**inputs, "sequence": inputs["sequence"][:, [3, 0, 5, 1, 4, 2]]}
    assert not torch.allclose(module(inputs), module(shuffled))


@pytest.mark.parametrize(("form", "lanes"), [("basic", 0), ("attention", 0), ("matched", 2400)])
def test_traces_and_dropout(form: str, lanes: int) -> None:
    ctx = CountingContext()
    model(form=form)(bits(), ctx)
    assert ctx.used == lanes
    assert ctx.names == (["encoder.state"] if form == "basic" else ["encoder.state", "decoder.attention"])


@pytest.mark.parametrize("form", FORMS)
def test_any_length_and_several_layers(form: str) -> None:
    for length in (1, 2, 30):
        assert model(form=form, layers=2)(bits(length=length)).shape == (4, 1)


def test_other_tasks_are_refused() -> None:
    with pytest.raises(UsageError, match="no input field 'sequence'"):
        build(options("retrieval-lstm"), SPECS["rules/mlp"], 0)
