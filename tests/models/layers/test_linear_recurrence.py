"""Linear recurrences: the fast forms equal the plain ones in values and gradients, and small cases by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from unseen.models.backbones.linear_recurrent import DiagonalStateSpace
from unseen.models.backbones.modular import TopKRouter
from unseen.models.layers.linear_recurrence import (
    BLOCK,
    CHUNK,
    STRONGEST,
    ShortConvolution,
    convolve,
    decay_and_rotate_by_steps,
    delta_rule,
    delta_rule_by_steps,
    gated_attention,
    gated_attention_by_steps,
    scan,
    scan_by_steps,
)

LENGTHS = (1, 2, 3, CHUNK - 1, CHUNK, CHUNK + 1, 40, 100)
Form = Callable[..., Tensor]


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def assert_same(fast: Form, plain: Form, *inputs: Tensor) -> None:
    """Values and all gradients agree to 1e-6 in double precision."""
    inputs = tuple(x.clone().requires_grad_() for x in inputs)
    results = fast(*inputs), plain(*inputs)
    weights = draw(*results[0].shape, seed=9)
    gradients = (torch.autograd.grad((y * weights).sum(), inputs, materialize_grads=True) for y in results)
    for one, other in zip((results[0], *next(gradients)), (results[1], *next(gradients)), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("tokens", LENGTHS)
def test_gated_attention_in_chunks(tokens: int) -> None:
    query, key, value = (draw(2, 3, tokens, 5, seed=s) for s in range(3))
    for decay in (-0.1 * draw(2, 3, tokens, 5).abs(), torch.full_like(query, STRONGEST), torch.zeros_like(query)):
        assert_same(gated_attention, gated_attention_by_steps, query, key, value, decay)


def test_the_strongest_decay_does_not_overflow_in_single_precision() -> None:
    tokens = 3 * CHUNK
    query, key, value = (draw(2, 1, tokens, 4, seed=s).float() for s in range(3))
    decay = torch.full_like(query, STRONGEST)
    fast, plain = (form(query, key, value, decay) for form in (gated_attention, gated_attention_by_steps))
    torch.testing.assert_close(fast, plain, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("tokens", LENGTHS)
@pytest.mark.parametrize("most", [1.0, 2.0])
def test_delta_rule_in_chunks(tokens: int, most: float) -> None:
    query, key, value = (draw(2, 3, tokens, 5, seed=s) for s in range(3))
    key = key / key.norm(dim=-1, keepdim=True)
    assert_same(delta_rule, delta_rule_by_steps, query, key, value, most * draw(2, 3, tokens, 1, seed=4).sigmoid())


def test_a_strength_of_two_under_one_key_counts_parity_for_ever() -> None:
    """Householder reflections: with β = 2 and values 0, what is stored changes its sign with every such token."""
    tokens = 300
    flips = torch.randint(2, (1, 1, tokens, 1), generator=torch.Generator().manual_seed(0)).float()
    key = torch.tensor([1.0, 0.0]).expand(1, 1, tokens, 2)
    value = torch.zeros(1, 1, tokens, 2)
    value[:, :, 0, 0] = 0.5  # the first token writes 1, by 2 · 0.5
    strength = 2 * flips
    strength[:, :, 0] = 2
    read = delta_rule(key, key, value, strength)[0, 0, :, 0]
    expected = 1 - 2 * ((flips[0, 0, :, 0].cumsum(0) - flips[0, 0, 0]) % 2)
    torch.testing.assert_close(read, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("tokens", LENGTHS)
def test_scan_in_a_logarithmic_number_of_steps(tokens: int) -> None:
    assert_same(scan, scan_by_steps, draw(2, tokens, 4, 3).sigmoid(), draw(2, tokens, 4, 3, seed=1))


@pytest.mark.parametrize("tokens", [3, CHUNK, CHUNK + 1, 40])
def test_extremes_of_forgetting_and_writing(tokens: int) -> None:
    """Tokens that forget all or nothing, and keys that are overwritten or reflected whole, in any order."""
    whole = torch.randint(2, (2, 3, tokens, 1), generator=torch.Generator().manual_seed(5)).double()
    query, key, value = (draw(2, 3, tokens, 5, seed=s) for s in range(3))
    key = key / key.norm(dim=-1, keepdim=True)
    for most in (1.0, 2.0):
        assert_same(delta_rule, delta_rule_by_steps, query, key, value, most * whole)
    same_key = key[:, :, :1].expand_as(key)
    assert_same(delta_rule, delta_rule_by_steps, query, same_key, value, torch.full_like(whole, 2.0))
    assert_same(scan, scan_by_steps, whole[:, 0].expand(2, tokens, 4), draw(2, tokens, 4))
    decay = (STRONGEST * whole).expand_as(key)
    assert_same(gated_attention, gated_attention_by_steps, query, key, value, decay)


def test_scan_by_hand() -> None:
    decay, added = torch.tensor([[9.0, 2.0, 0.5]]), torch.tensor([[1.0, 10.0, 100.0]])
    assert scan_by_steps(decay, added).tolist() == [[1.0, 12.0, 106.0]]


@pytest.mark.parametrize("tokens", [*LENGTHS, BLOCK, BLOCK + 1, 2 * BLOCK + 44])
def test_s4d_as_a_convolution(tokens: int) -> None:
    torch.manual_seed(0)
    layer = DiagonalStateSpace(4, 3).double()
    u = draw(2, tokens, 4)
    weights = draw(2, tokens, 4, seed=1)
    results = []
    for form in (lambda: convolve(layer.kernel(tokens), u), lambda: decay_and_rotate_by_steps(*layer.discretize(), u)):
        y = form()
        gradients = torch.autograd.grad(
            (y * weights).sum(), list(layer.parameters()), materialize_grads=True, allow_unused=True
        )
        results.append((y, *gradients))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)


def test_a_convolution_within_a_block_is_one_product() -> None:
    """The bits of words of up to `BLOCK` tokens are those of the product with the whole matrix."""
    kernel, u = draw(3, BLOCK).float(), draw(5, BLOCK, 3, seed=1).float()
    matrix = torch.nn.functional.pad(kernel, (BLOCK - 1, 0)).unfold(-1, BLOCK, 1).mT.contiguous()
    whole = torch.bmm(u.permute(2, 0, 1).flip(-1).contiguous(), matrix).permute(1, 2, 0)
    assert torch.equal(convolve(kernel, u), whole)


def test_the_memory_of_a_long_convolution_does_not_grow_with_the_square_of_its_length() -> None:
    channels, tokens = 8, 2000
    numbers = []

    def count(saved: Tensor) -> Tensor:
        numbers.append(saved.untyped_storage().nbytes() // saved.element_size())
        return saved

    with torch.autograd.graph.saved_tensors_hooks(count, lambda saved: saved):
        kernel, u = draw(channels, tokens).requires_grad_(), draw(2, tokens, channels).requires_grad_()
        convolve(kernel, u).sum().backward()
    assert numbers and max(numbers) < channels * tokens * BLOCK
    assert sum(numbers) < channels * tokens**2 / 4


def test_s4d_is_the_exact_solution_for_a_constant_input() -> None:
    """h′ = a h + u with a constant u: after t steps h = (e^{aΔt} − 1) / a, here with one state and c = 1."""
    layer = DiagonalStateSpace(1, 1).double()
    with torch.no_grad():
        layer.turn.fill_(0.7)
        layer.readout_real.fill_(1.0)
        layer.readout_imaginary.fill_(0.0)
        step, rate = float(layer.log_step.exp()), complex(-float(layer.log_rate.exp()), 0.7)
        y = convolve(layer.kernel(30), torch.ones(1, 30, 1, dtype=torch.float64))[0, :, 0]
    times = torch.arange(1, 31, dtype=torch.float64) * step
    exact = 2 * (((rate * times).exp() - 1) / rate).real
    torch.testing.assert_close(y, exact)


def test_short_convolution_by_hand() -> None:
    layer = ShortConvolution(1, 3)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0], [10.0], [100.0]]))
        layer.bias.fill_(0.5)
    assert layer(torch.tensor([[[1.0], [2.0], [3.0]]])).flatten().tolist() == [1.5, 12.5, 123.5]
    assert layer(torch.ones(1, 1, 1)).tolist() == [[[1.5]]]


def test_the_router_keeps_the_largest_and_learns_even_if_it_keeps_one() -> None:
    router = TopKRouter(2, 4, 2)
    with torch.no_grad():
        router.score.weight.copy_(torch.tensor([[1.0, 2.0, 3.0, 0.0], [2.0, 0.0, 1.0, 5.0]]))
    weights = router(torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    assert (weights > 0).tolist() == [[False, True, True, False], [True, False, False, True]]
    torch.testing.assert_close(weights.sum(-1), torch.ones(2))
    torch.testing.assert_close(weights[0, 2] / weights[0, 1], torch.tensor(1.0).exp())
    single = TopKRouter(2, 4, 1)
    chosen = single(torch.ones(3, 2))
    assert set(chosen.flatten().tolist()) == {0.0, 1.0}
    (gradient,) = torch.autograd.grad((chosen * torch.arange(4.0)).sum(), [single.score.weight])
    assert gradient.any()
    everyone = TopKRouter(2, 4, 4)
    x = torch.randn(5, 2)
    torch.testing.assert_close(everyone(x), everyone.score(x).softmax(-1))
