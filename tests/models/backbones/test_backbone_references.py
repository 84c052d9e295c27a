"""Backbones against the library, against the papers' layers, and against plain references; values and gradients."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from support.backbone_cases import GATINGS, double
from support.specimens import SPECS, random_inputs
from unseen.models import options
from unseen.models.backbones.modular import Modular, ModularBlock, Symbols
from unseen.models.backbones.perceiver import Perceiver
from unseen.models.build import build
from unseen.models.context import Context
from unseen.models.layers.encoder import CrossBlock, EncoderBlock
from unseen.models.layers.linear import Linear
from unseen.spec import Field, Spec, Stream, Target

BATCH, LENGTH = 4, 6


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def same(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> None:
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-10)


CTL = SPECS["ctl"]


def ctl_inputs() -> dict[str, Tensor]:
    return random_inputs(CTL, BATCH)


def as_backbone(inputs: dict[str, Tensor], embedding: Tensor, vectors: Tensor, read: Tensor) -> Tensor:
    """What the embedding of a backbone makes of ctl tokens, written out."""
    states = F.embedding(inputs["token"], embedding) + vectors[0]
    return torch.cat([states, read.expand(len(states), 1, -1)], 1)


def with_read_out(mask: Tensor) -> Tensor:
    return F.pad(mask, (0, 1), value=True)


def test_the_universal_transformer_is_the_layer_of_ctl() -> None:
    """Post-norm and with relative positions, its layer is that of the CTL++ paper where this has no biases."""
    ours = double(
        ("universal-transformer", {"width": 16, "heads": 4, "layers": 3, "feedforward": 2, "norm": "post"}), CTL
    )
    theirs = build(options("ctl-transformer", width=16, heads=4, layers=3, feedforward=32), CTL, 1).double()
    block, paper = ours.encoder.blocks[0], theirs.encoder.blocks[0]
    for name, value in paper.state_dict().items():
        if name != "attention.scale":  # starts at what the backbone's is for ever
            block.get_parameter(name).data = value.clone()
    nn.init.zeros_(block.attention.input.bias)
    nn.init.zeros_(block.attention.output.bias)
    inputs = ctl_inputs()
    x = as_backbone(inputs, ours.embed.fields["token"].weight, ours.embed.vectors, ours.embed.read)
    ctx = Context(wanted=["encoder.state"])
    ours(inputs, ctx)
    # The places of a stream count from 0, and the read-out token stands at −1.
    places = (*range(CTL.streams[0].length), -1)
    expected = theirs.encoder(x, with_read_out(inputs["mask"]), token_positions=places)
    same([ctx.captured["encoder.state"]], [expected[:, -1:]])


@pytest.mark.parametrize("form", ["ctl++", "original"])
def test_the_router_is_the_layer_of_ctl(form: str) -> None:
    ours = double(("ndr", {"width": 16, "heads": 4, "layers": 3, "form": form}), CTL)
    theirs = build(options("ctl-ndr", width=16, heads=4, layers=3, feedforward=32, form=form), CTL, 1).double()
    ours.block.load_state_dict(theirs.block.state_dict())
    inputs = ctl_inputs()
    x = as_backbone(inputs, ours.embed.fields["token"].weight, ours.embed.vectors, ours.embed.read)
    ctx = Context(wanted=["encoder.state"])
    ours(inputs, ctx)
    for k in range(BATCH):  # without its padding
        count = int(inputs["mask"][k].sum())
        state = torch.cat([x[k : k + 1, :count], x[k : k + 1, -1:]], 1)
        for _ in range(3):
            state = theirs.block(state)
        same([ctx.captured["encoder.state"][k]], [state[0, -1:]])


def linear(x: Tensor, layer: Linear) -> Tensor:
    return x @ layer.weight + layer.bias


def norm(x: Tensor, layer: nn.LayerNorm) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return centred / (variance + layer.eps).sqrt() * layer.weight + layer.bias


def look(query: Tensor, key: Tensor, value: Tensor, heads: int, real: Tensor | None) -> Tensor:
    """Attention of one example, (Q, width) and (T, width), head by head and query by query."""
    size = query.shape[1] // heads
    rows = []
    for q in query:
        parts = []
        for head in range(heads):
            own = slice(head * size, (head + 1) * size)
            scores = (key[:, own] * q[own]).sum(-1) / size**0.5
            if real is not None:
                scores = torch.where(real, scores, -torch.inf)
            parts.append((scores.softmax(0)[:, None] * value[:, own]).sum(0))
        rows.append(torch.cat(parts))
    return torch.stack(rows)


def plain_cross(block: CrossBlock, x: Tensor, source: Tensor, real: Tensor | None) -> Tensor:
    attention, seen = block.attention, norm(source, block.norm_source)
    key, value = linear(seen, attention.source).chunk(2, -1)
    query = linear(norm(x, block.norm_tokens), attention.query)
    u = x + linear(look(query, key, value, attention.heads, real), attention.output)
    return u + linear(linear(norm(u, block.norm_second), block.expand).clamp_min(0), block.contract)


def plain_among(block: EncoderBlock, x: Tensor) -> Tensor:
    assert block.attention is not None
    query, key, value = linear(norm(x, block.norm_first), block.attention.input).chunk(3, -1)
    u = x + linear(look(query, key, value, block.attention.heads, None), block.attention.output)
    return u + linear(linear(norm(u, block.norm_second), block.expand).clamp_min(0), block.contract)


def plain_perceiver(module: Perceiver, inputs: dict[str, Tensor]) -> Tensor:
    """The Perceiver on ctl tokens, one example at a time."""
    core, answers = module.core, []
    every = as_backbone(inputs, module.embed.fields["token"].weight, module.embed.vectors, module.embed.read)
    for x, real in zip(every, with_read_out(inputs["mask"]), strict=True):
        latents = core.latents
        for see, think in zip(core.looks, core.thoughts, strict=True):
            latents = plain_among(think, plain_cross(see, latents, x, real))
        state = norm(plain_cross(core.answer, x[-1:], latents, None), core.norm)
        answers.append(linear(state[0], module.read_out.project))
    return torch.stack(answers)


def test_the_perceiver_agrees_with_a_plain_one() -> None:
    case = ("perceiver", {"width": 8, "heads": 2, "latents": 3, "layers": 2, "positions": "none"})
    module, inputs = double(case, CTL), ctl_inputs()
    ours, plain = module(inputs), plain_perceiver(module, inputs)
    same([ours], [plain])
    g = numbers(*ours.shape, seed=1)
    same(
        torch.autograd.grad(ours, list(module.parameters()), g),
        torch.autograd.grad(plain, list(module.parameters()), g),
    )


def plain_modules(block: ModularBlock, x: Tensor, symbol: Tensor, gating: str) -> Tensor:
    """Σ_m p_m f_m(x) of single tokens (T, width), module by module."""
    mixture = block.mixture
    modules, units = mixture.first_bias.shape
    outputs, scores = [], []
    for m in range(modules):
        first = mixture.first[0][:, m * units : (m + 1) * units]
        hidden = (x @ first + mixture.first_bias[m]).clamp_min(0)
        outputs.append(hidden @ mixture.second[m * units : (m + 1) * units] + mixture.second[modules * units + m])
        if gating == "joint":
            scores.append(hidden @ mixture.score[m] + mixture.score_bias[m])
        elif gating == "operation":
            codes = block.scorer.first.weight[symbol] + block.scorer.first.bias
            scores.append(linear(codes.clamp_min(0), block.scorer.second)[:, m])
    if gating == "none":
        weights = torch.ones(len(x), 1, dtype=x.dtype)
    elif gating == "truth":
        weights = (symbol[:, None] % modules == torch.arange(modules)).to(x.dtype)
    else:
        weights = torch.stack(scores, -1).softmax(-1)
    return (weights[..., None] * torch.stack(outputs, 1)).sum(1)


def plain_modular(module: Modular, inputs: dict[str, Tensor], gating: str) -> Tensor:
    """The modular backbone on ctl tokens, one example at a time."""
    every = as_backbone(inputs, module.embed.fields["token"].weight, module.embed.vectors, module.embed.read)
    answers = []
    for x, token, real in zip(every, inputs["token"], with_read_out(inputs["mask"]), strict=True):
        symbol = torch.cat([token, torch.tensor([42])])
        for block in module.blocks:
            u = x + plain_modules(block, norm(x, block.norm_first), symbol, gating)
            query, key, value = linear(norm(u, block.norm_second), block.attention.input).chunk(3, -1)
            x = u + linear(look(query, key, value, block.attention.heads, real), block.attention.output)
        answers.append(linear(norm(x[-1], module.norm), module.read_out.project))
    return torch.stack(answers)


@pytest.mark.parametrize("gating", GATINGS)
@pytest.mark.parametrize("modules", [None, 3])
def test_the_modular_one_agrees_with_a_plain_one(gating: str, modules: int | None) -> None:
    given = {"width": 12, "heads": 2, "positions": "none", "gating": gating, "modules": modules}
    module, inputs = double(("modular", given), CTL), ctl_inputs()
    assert module.blocks[0].gate.count == (1 if gating == "none" else modules or 43)
    ours, plain = module(inputs), plain_modular(module, inputs, gating)
    same([ours], [plain])
    g = numbers(*ours.shape, seed=1)
    same(
        torch.autograd.grad(ours, list(module.parameters()), g),
        torch.autograd.grad(plain, list(module.parameters()), g),
    )


def test_symbols() -> None:
    tokens = Stream("a", 3), Stream("b", 2)
    fields = (
        Field("x", "real", 2, "a"),
        Field("m", "mask", 1, "b"),
        Field("c", "category", 5, "b"),
        Field("d", "category", 9, "b"),
        Field("q", "category", 4),
    )
    inputs = {"x": torch.zeros(2, 3, 2), "c": torch.tensor([[0, 4], [1, 2]]), "q": torch.tensor([3, 1])}
    found = Symbols(Spec(tokens, fields, Target("binary")), ["a", "b", None])
    symbols, main = found(inputs)
    # A stream without categories is one symbol; the read-out token goes with what is given once.
    assert symbols.tolist() == [[0, 0, 0, 1, 5, 9, 9], [0, 0, 0, 2, 3, 7, 7]]
    assert (found.count, found.main, main) == (10, "b", slice(3, 5))
    found = Symbols(Spec(tokens, fields[:-1], Target("binary")), ["a", "b"])
    assert found(inputs)[0].tolist() == [[0, 0, 0, 1, 5, 6], [0, 0, 0, 2, 3, 6]] and found.count == 7
    found = Symbols(Spec(tokens, fields, Target("real", 1, "a")), [None, "a", "b"])
    symbols, main = found(inputs)
    assert symbols.tolist() == [[3, 4, 4, 4, 5, 9], [1, 4, 4, 4, 6, 7]]
    assert (found.count, found.main, main) == (10, None, slice(0, 1))
    bits = SPECS["retrieval"]
    symbols, main = Symbols(bits, ["sequence", None])(random_inputs(bits, 2))
    assert symbols.tolist() == [[0] * 5 + [1, 2]] * 2 and main == slice(0, 5)
