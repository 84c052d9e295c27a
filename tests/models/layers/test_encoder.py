from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from unseen.models.context import Context, CountingContext
from unseen.models.layers.encoder import Encoder, EncoderBlock

WIDTH, BATCH, LENGTH = 12, 3, 6


def library(block: EncoderBlock, heads: int) -> nn.TransformerEncoderLayer:
    """`nn.TransformerEncoderLayer` with the same weights and no dropout."""
    theirs = nn.TransformerEncoderLayer(
        WIDTH, heads, block.expand.weight.shape[1], 0.0, batch_first=True, norm_first=block.norm == "pre"
    ).double()
    assert block.attention is not None
    pairs = [
        (theirs.self_attn.in_proj_weight, block.attention.input.weight.T),
        (theirs.self_attn.in_proj_bias, block.attention.input.bias),
        (theirs.self_attn.out_proj.weight, block.attention.output.weight.T),
        (theirs.self_attn.out_proj.bias, block.attention.output.bias),
        (theirs.linear1.weight, block.expand.weight.T),
        (theirs.linear1.bias, block.expand.bias),
        (theirs.linear2.weight, block.contract.weight.T),
        (theirs.linear2.bias, block.contract.bias),
        (theirs.norm1.weight, block.norm_first.weight),
        (theirs.norm1.bias, block.norm_first.bias),
        (theirs.norm2.weight, block.norm_second.weight),
        (theirs.norm2.bias, block.norm_second.bias),
    ]
    for theirs_value, ours in pairs:
        theirs_value.data = ours.detach().clone()
    return theirs


def encoder(norm: str, heads: int, **options: bool) -> Encoder:
    torch.manual_seed(0)
    made = Encoder(WIDTH, 2, heads, 20, 0.1, norm=norm, **options).double()
    for p in made.parameters():
        p.data += 0.1 * torch.randn_like(p)
    return made


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("heads", [1, 3])
def test_agrees_with_the_library(norm: str, heads: int) -> None:
    ours = encoder(norm, heads, causal=True)
    layers = [library(block, heads) for block in ours.blocks]
    x = numbers(BATCH, LENGTH, WIDTH).requires_grad_()
    above = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
    y = x
    for layer in layers:
        y = layer(y, src_mask=above)
    y = ours.norm(y)
    g = numbers(BATCH, LENGTH, WIDTH) + 1
    torch.testing.assert_close(ours(x), y, rtol=1e-10, atol=1e-10)
    watched = [x, ours.blocks[0].expand.weight, ours.blocks[1].attention.input.weight]
    theirs = [x, layers[0].linear1.weight, layers[1].self_attn.in_proj_weight]
    for a, b in zip(torch.autograd.grad(ours(x), watched, g), torch.autograd.grad(y, theirs, g), strict=True):
        torch.testing.assert_close(a, b if a.shape == b.shape and a.dim() == 3 else b.T, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_wanting_some_rows_only_changes_nothing_but_work(norm: str) -> None:
    ours = encoder(norm, 3)
    mask = torch.arange(LENGTH) < torch.tensor([[3], [6], [1]])
    mask[:, -1] = True
    x = numbers(BATCH, LENGTH, WIDTH)
    rows, g = slice(LENGTH - 1, LENGTH), numbers(BATCH, 1, WIDTH)
    every, some = ours(x, mask)[:, rows], ours(x, mask, rows=rows)
    torch.testing.assert_close(every, some, rtol=1e-12, atol=1e-12)
    pairs = zip(
        torch.autograd.grad(every, list(ours.parameters()), g),
        torch.autograd.grad(some, list(ours.parameters()), g),
        strict=True,
    )
    for a, b in pairs:
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


def test_without_self_attention_norms_and_feed_forward_stay() -> None:
    block = EncoderBlock(WIDTH, 1, 20, 0.0, self_attention=False)
    x = torch.randn(BATCH, LENGTH, WIDTH)
    u = block.norm_first(x)
    expected = block.norm_second(u + block.contract(block.expand(u).relu()))
    encoder = Encoder(WIDTH, 1, 1, 20, 0.0, self_attention=False)
    encoder.blocks[0] = block
    torch.testing.assert_close(encoder(x), expected)
    assert not any("attention" in name for name, _ in block.named_parameters())


def test_traces_and_dropout_places() -> None:
    ours = encoder("post", 3)
    ctx = CountingContext()
    ours(numbers(BATCH, LENGTH, WIDTH), ctx=ctx)
    assert ctx.names == ["encoder.0.attention", "encoder.attention", "encoder.state"]
    tokens = BATCH * LENGTH
    assert ctx.used == 2 * (3 * tokens * LENGTH + tokens * WIDTH + tokens * 20 + tokens * WIDTH)
    ctx = Context(wanted=["encoder.attention", "encoder.state"])
    result = ours(numbers(BATCH, LENGTH, WIDTH), ctx=ctx)
    assert ctx.captured["encoder.attention"].shape == (BATCH, 3, LENGTH, LENGTH)
    assert torch.equal(ctx.captured["encoder.state"], result)


def test_a_shared_layer_is_the_same_block_again_and_again() -> None:
    torch.manual_seed(0)
    shared, plain = (Encoder(WIDTH, 3, 2, 20, 0.1, shared=s).double() for s in (True, False))
    assert len(list(shared.parameters())) * 3 == len(list(plain.parameters()))
    for block in plain.blocks:
        block.load_state_dict(shared.blocks[0].state_dict())
    x, ctx = numbers(BATCH, LENGTH, WIDTH), CountingContext()
    assert torch.equal(shared(x, ctx=ctx), plain(x))
    assert ctx.names == ["encoder.0.attention", "encoder.1.attention", "encoder.attention", "encoder.state"]
