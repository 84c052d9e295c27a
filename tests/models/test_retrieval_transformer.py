from __future__ import annotations

import math
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
from unseen.models.layers.positions import sinusoids
from unseen.spec import Field, Spec, Target

VARIANTS = [(p, a) for p in ("none", "sinusoidal") for a in (False, True)]
NAMES = [f"{'+' if p == 'sinusoidal' else '−'}Pos{'+' if a else '−'}Att" for p, a in VARIANTS]


def model(seed: int = 0, **given: Any) -> nn.Module:
    return build(options("retrieval-transformer", **given), RETRIEVAL, seed).double()


def bits(batch: int = 4, length: int = 6, seed: int = 0) -> dict[str, Tensor]:
    inputs = random_inputs(RETRIEVAL, batch, seed, {"sequence": length})
    return {k: v.double() for k, v in inputs.items()}


def lanes(module: nn.Module, inputs: dict[str, Tensor]) -> int:
    ctx = CountingContext()
    module(inputs, ctx)
    return ctx.used


def captured(module: nn.Module, inputs: dict[str, Tensor], *names: str) -> dict[str, Tensor]:
    ctx = Context(wanted=names)
    module(inputs, ctx)
    return ctx.captured


@pytest.mark.parametrize("positions", ["none", "sinusoidal"])
@pytest.mark.parametrize(
    ("given", "count"),
    [
        ({}, 88_601),
        ({"self_attention": False}, 48_201),
        ({"encoder": "literal"}, 27_601),
        ({"encoder": "literal", "self_attention": False}, 27_601),
    ],
)
def test_parameter_counts(positions: str, given: dict[str, Any], count: int) -> None:
    assert parameter_count(model(positions=positions, **given)) == count


def test_read_outs_have_queries_of_their_own_and_one_is_the_published_model() -> None:
    assert parameter_count(model(readouts=1)) == 88_601
    # A further query embedding, 36 → 100, and 2 · 100 more inputs of the hidden layer.
    assert parameter_count(model(readouts=2)) == 88_601 + 3_700 + 200 * 100
    one, plain = model(readouts=1).state_dict(), model().state_dict()
    assert one.keys() == plain.keys() and all(torch.equal(one[name], plain[name]) for name in one)


def test_two_read_outs_by_hand() -> None:
    module, inputs = model(readouts=2), bits()
    names = ("encoder.state", "decoder.attention", "decoder.attention.2")
    seen = captured(module, inputs, *names)
    contents, queries = [], []
    for name, layer in zip(names[1:], (module.decoder.query, module.decoder.more_queries[0]), strict=True):
        query = torch.relu(inputs["query"] @ layer.weight + layer.bias)
        weights = torch.softmax((seen["encoder.state"] * query[:, None]).sum(-1), -1)
        torch.testing.assert_close(weights, seen[name])
        contents.append((weights[..., None] * seen["encoder.state"]).sum(1))
        queries.append(query)
    assert not torch.allclose(seen[names[1]], seen[names[2]])
    hidden = torch.relu(module.decoder.hidden(torch.cat([*contents, *queries], -1)))
    torch.testing.assert_close(module(inputs), module.decoder.answer(hidden))


def test_read_outs_without_attention_are_refused() -> None:
    with pytest.raises(UsageError, match="readouts = 2 without decoder_attention"):
        options("retrieval-transformer", readouts=2, decoder_attention=False)


def test_without_self_attention_there_are_no_attention_parameters() -> None:
    names = [name for name, _ in model(self_attention=False).named_parameters()]
    assert not any("attention" in name for name in names)


def test_initialisation() -> None:
    module = model()
    block = module.encoder.blocks[0]
    bounds = {
        module.embed.linear.weight: 0.1,
        module.embed.linear.bias: 1 / 6,
        block.attention.input.weight: math.sqrt(6 / 400),
        block.attention.output.weight: 0.1,
        block.expand.weight: 0.1,
        block.contract.bias: 0.1,
        module.decoder.query.weight: 1 / 6,
        module.decoder.query.bias: 1 / 6,
        module.decoder.hidden.weight: math.sqrt(1 / 200),
        module.decoder.answer.weight: 0.1,
    }
    for values, bound in bounds.items():
        assert 0.9 * bound < values.abs().max() <= bound * (1 + 1e-6)
    assert not block.attention.input.bias.any() and not block.attention.output.bias.any()
    assert (block.norm_first.weight == 1).all() and not block.norm_second.bias.any()
    assert block.norm_first.eps == 1e-5


def plain(module: nn.Module, inputs: dict[str, Tensor], positions: str, attention: bool) -> Tensor:
    """The full model from library layers and its formulas, with the weights of ours."""
    embed, block, decoder = module.embed.linear, module.encoder.blocks[0], module.decoder
    x, n = inputs["sequence"], inputs["sequence"].shape[1]
    e = 6 * F.linear(x, embed.weight.T, embed.bias)
    if positions == "sinusoidal":
        e = e + sinusoids(n, 100, x.dtype, x.device)
    if attention:
        u = e + F.multi_head_attention_forward(
            *(e.transpose(0, 1),) * 3,
            100,
            1,
            block.attention.input.weight.T,
            block.attention.input.bias,
            None,
            None,
            False,
            0.0,
            block.attention.output.weight.T,
            block.attention.output.bias,
            need_weights=False,
            attn_mask=torch.full((n, n), -torch.inf, dtype=x.dtype).triu(1),
        )[0].transpose(0, 1)
    else:
        u = e
    u = F.layer_norm(u, (100,), block.norm_first.weight, block.norm_first.bias)
    f = F.linear(F.relu(F.linear(u, block.expand.weight.T, block.expand.bias)), block.contract.weight.T)
    h = F.layer_norm(u + f + block.contract.bias, (100,), block.norm_second.weight, block.norm_second.bias)
    q = F.relu(F.linear(inputs["query"], decoder.query.weight.T, decoder.query.bias))
    alpha = torch.einsum("bnd,bd->bn", h, q).softmax(1)
    c = torch.einsum("bn,bnd->bd", alpha, h)
    z = F.relu(F.linear(torch.cat([c, q], 1), decoder.hidden.weight.T, decoder.hidden.bias))
    return F.linear(z, decoder.answer.weight.T, decoder.answer.bias)


@pytest.mark.parametrize(("positions", "attention"), VARIANTS, ids=NAMES)
def test_full_agrees_with_the_formulas(positions: str, attention: bool) -> None:
    module, inputs = model(positions=positions, self_attention=attention), bits()
    for p in module.parameters():  # so that biases and norms count
        p.data += 0.05 * torch.randn(p.shape, dtype=p.dtype, generator=torch.Generator().manual_seed(7))
    ours, reference = module(inputs), plain(module, inputs, positions, attention)
    assert ours.shape == (4, 1)
    torch.testing.assert_close(ours, reference, rtol=1e-10, atol=1e-10)
    parameters = list(module.parameters())
    for a, b in zip(
        torch.autograd.grad(ours.square().sum(), parameters),
        torch.autograd.grad(reference.square().sum(), parameters),
        strict=True,
    ):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(("positions", "attention"), VARIANTS, ids=NAMES)
def test_literal_agrees_with_the_formulas(positions: str, attention: bool) -> None:
    module, inputs = model(encoder="literal", positions=positions, self_attention=attention), bits()
    e = inputs["sequence"] @ module.embed.linear.weight + module.embed.linear.bias
    if positions == "sinusoidal":
        e = e + sinusoids(6, 100, e.dtype, e.device)
    scores = (e @ e.transpose(1, 2) / 10).masked_fill(torch.ones(6, 6, dtype=torch.bool).triu(1), -torch.inf)
    expected = scores.softmax(-1) @ e if attention else e
    torch.testing.assert_close(captured(module, inputs, "encoder.state")["encoder.state"], expected)


@pytest.mark.parametrize("encoder", ["full", "literal"])
@pytest.mark.parametrize("positions", ["none", "sinusoidal"])
def test_encoding_is_causal_and_blind_to_the_query(encoder: str, positions: str) -> None:
    module, inputs = model(encoder=encoder, positions=positions), bits()
    states = captured(module, inputs, "encoder.state")["encoder.state"]
    later = {**inputs, "sequence": inputs["sequence"].clone()}
    later["sequence"][:, 3:] = 1 - later["sequence"][:, 3:]
    changed = captured(module, later, "encoder.state")["encoder.state"]
    torch.testing.assert_close(changed[:, :3], states[:, :3], rtol=1e-12, atol=1e-12)
    assert not torch.allclose(changed[:, 3], states[:, 3])
    other_query = captured(module, {**inputs, "query": 1 - inputs["query"]}, "encoder.state")["encoder.state"]
    assert torch.equal(other_query, states)


@pytest.mark.parametrize("encoder", ["full", "literal"])
@pytest.mark.parametrize(("positions", "attention"), VARIANTS, ids=NAMES)
def test_only_without_positions_and_attention_order_does_not_matter(
    encoder: str, positions: str, attention: bool
) -> None:
    module, inputs = model(encoder=encoder, positions=positions, self_attention=attention), bits()
    shuffled = {**inputs, "sequence": inputs["sequence"][:, [3, 0, 5, 1, 4, 2]]}
    same = torch.allclose(module(inputs), module(shuffled), rtol=1e-10, atol=1e-10)
    assert same == (positions == "none" and not attention)


def test_captured_activations() -> None:
    inputs = bits()
    activations = captured(model(heads=2), inputs, "encoder.attention", "encoder.state", "decoder.attention")
    assert {k: tuple(v.shape) for k, v in activations.items()} == {
        "encoder.attention": (4, 2, 6, 6),
        "encoder.state": (4, 6, 100),
        "decoder.attention": (4, 6),
    }
    for name in ("encoder.attention", "decoder.attention"):
        torch.testing.assert_close(activations[name].sum(-1), torch.ones_like(activations[name].sum(-1)))
    ctx = CountingContext()
    model(layers=2)(inputs, ctx)
    assert "encoder.0.attention" in ctx.names
    ctx = CountingContext()
    model(self_attention=False)(inputs, ctx)
    assert ctx.names == ["encoder.state", "decoder.attention"]


@pytest.mark.parametrize("encoder", ["full", "literal"])
@pytest.mark.parametrize("positions", ["none", "sinusoidal"])
@pytest.mark.parametrize("embed_dropout", ["with_pos", "always", "never"])
def test_where_dropout_falls(encoder: str, positions: str, embed_dropout: str) -> None:
    module = model(encoder=encoder, positions=positions, embed_dropout=embed_dropout)
    tokens = 4 * 6 * 100
    faithful = positions == "sinusoidal" or encoder == "literal"
    dropped = {"with_pos": faithful, "always": True, "never": False}[embed_dropout]
    inside = 4 * 6 * 6 + 3 * tokens if encoder == "full" else 0
    assert lanes(module, bits()) == inside + tokens * dropped


def test_dropout_disturbs_and_its_absence_is_deterministic() -> None:
    module, inputs = model(), bits()
    assert torch.equal(module(inputs), module(inputs))
    drawn = torch.randint(-(2**15), 2**15, (2, lanes(module, inputs)), dtype=torch.int16)
    first, again, other = (module(inputs, Context(b)) for b in (drawn[0], drawn[0], drawn[1]))
    assert torch.equal(first, again) and not torch.allclose(first, other)


def test_any_length() -> None:
    module = model()
    for length in (1, 2, 17, 60):
        assert module(bits(length=length)).shape == (4, 1)


def test_without_decoder_attention_the_last_state_is_read() -> None:
    module, inputs = model(decoder_attention=False), bits()
    activations = captured(module, inputs, "encoder.state", "decoder.attention")
    assert list(activations) == ["encoder.state"]
    decoder = module.decoder
    query = decoder.query(inputs["query"]).relu()
    hidden = decoder.hidden(torch.cat([activations["encoder.state"][:, -1], query], -1)).relu()
    torch.testing.assert_close(module(inputs), decoder.answer(hidden))


def test_unscaled_embedding() -> None:
    scaled, unscaled = model(positions="none"), model(positions="none", scale_embedding=False)
    x = bits()["sequence"]
    torch.testing.assert_close(scaled.embed(x), 6 * unscaled.embed(x))


def test_other_tasks_are_refused() -> None:
    chosen = options("retrieval-transformer")
    with pytest.raises(UsageError, match="no input field 'sequence'"):
        build(chosen, SPECS["ctl"], 0)
    real = (Field("sequence", "real", 36, "sequence"), RETRIEVAL.inputs[1])
    with pytest.raises(UsageError, match="model needs"):
        build(chosen, Spec(RETRIEVAL.streams, real, Target("binary")), 0)
    with pytest.raises(UsageError, match="one yes or no per example; this task has a category target"):
        build(chosen, Spec(RETRIEVAL.streams, RETRIEVAL.inputs, Target("category", 3)), 0)


@pytest.mark.parametrize("given", [{"layers": 2}, {"heads": 2}, {"scale_embedding": False}])
def test_literal_has_nothing_to_set(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="literal"):
        options("retrieval-transformer", encoder="literal", **given)


def test_without_feedforward_nothing_but_the_embedding_is_left() -> None:
    """The paper's text of −Att: the decoder reads the scaled embeddings."""
    bare = options("retrieval-transformer", self_attention=False, feedforward=False)
    module = build(bare, RETRIEVAL, 0)
    assert parameter_count(module) == 3_700 + 3_700 + 20_100 + 101
    inputs = random_inputs(RETRIEVAL, 4)
    ctx = Context(wanted=["encoder.state"])
    module(inputs, ctx)
    torch.testing.assert_close(ctx.captured["encoder.state"], module.embed(inputs["sequence"]))
    for wrong in ({}, {"self_attention": False, "encoder": "literal"}):
        with pytest.raises(UsageError, match="feedforward=false"):
            options("retrieval-transformer", feedforward=False, **wrong)
