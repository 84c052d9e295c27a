"""The least time of a computation: what its operations compute and move, in closed form."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from benchmarks.bounds import Bound, Operation, Work, work_of
from benchmarks.cases import Case, case_of
from benchmarks.machine import Limits
from torch import nn

LIMITS = Limits(products=1e9, bytes={1000: 1e8, 10**6: 1e7}, functions=1e6)
BATCH, TOKENS = 16, 8


def test_a_linear_layer_forward_and_backward() -> None:
    layer, x = nn.Linear(7, 5, bias=False), torch.rand(3, 7, requires_grad=True)
    found = work_of(lambda: layer(x).sum().backward())
    assert found.products == 3 * 2 * 3 * 7 * 5  # forward, and the gradients of weight and input
    forward = next(one for one in found.operations if one.products)
    assert (forward.read, forward.written) == (4 * (3 * 7 + 7 * 5), 4 * 3 * 5)


def test_elements_are_read_and_written() -> None:
    x, y = torch.rand(10), torch.rand(10)
    row = torch.rand(1, 10).expand(4, 10)
    assert work_of(lambda: x + y).operations == (Operation(0, 0, 80, 40),)
    assert work_of(lambda: x.add_(y)).operations == (Operation(0, 0, 80, 40),)
    assert work_of(lambda: row * 2).operations == (Operation(0, 0, 40, 160),)  # expanded: in memory once
    assert work_of(lambda: x.exp()).operations == (Operation(0, 10, 40, 40),)
    assert work_of(lambda: x.view(2, 5).T[1:].unsqueeze(0)).operations == ()
    assert work_of(lambda: torch.empty(100)).operations == ()


def test_products_added_in_place_are_counted() -> None:
    total, left, right = torch.zeros(2, 3, 5), torch.rand(2, 3, 4), torch.rand(2, 4, 5)
    assert work_of(lambda: total.baddbmm_(left, right)).products == 2 * 2 * 3 * 4 * 5


def test_an_operation_takes_as_long_as_its_longest_part() -> None:
    work = Work((Operation(10**6, 0, 100, 100), Operation(0, 50, 400, 400), Operation(0, 0, 600, 400)))
    assert work.bound(LIMITS) == Bound(products=1e-3, functions=5e-5, memory=1e-5)
    assert work.moved == 1800 and work.products == 10**6 and work.written == 900
    beyond = work.bound(LIMITS, members=1000)  # the last one has left the cache, and takes ten times as long
    assert beyond.memory == pytest.approx(1000 * 1e-5 * 10) and beyond.products == pytest.approx(1.0)
    assert str(Bound(3.0, 1.0)) == "products 75 %, memory 25 %, functions 0 %"


def layers(width: int, queries: int, feedforward: int, others: int, pairs: int) -> int:
    """Multiplications of one layer on one example, where only some tokens are queries. Keys and values are of all."""
    of_queries = 2 * width * width + 2 * width * feedforward + others
    return 2 * TOKENS * width * width + queries * of_queries + pairs * queries * width


def bilstm() -> int:
    return 2 * (TOKENS - 1) * 4 * 128 * (256 + 128) + 256 * 8


def transformer() -> int:
    full = layers(128, TOKENS, 256, 0, 2 * TOKENS + 2 * TOKENS - 1)
    return 7 * full + layers(128, 1, 256, 0, 2 * TOKENS + TOKENS) + 128 * 8


def ndr() -> int:
    gate_and_direction = 2 * 256 * 256 + 256 * 8
    full = layers(256, TOKENS, 512, gate_and_direction, 2 * TOKENS)
    return 7 * full + layers(256, 1, 512, gate_and_direction, 2 * TOKENS) + 256 * 8


def of_a_step(case: Case, members: int = 1) -> Work:
    trainer = case.trainer(members)
    trainer.advance(1)
    return work_of(lambda: trainer.advance(1))


@pytest.mark.parametrize(
    ("model", "forward", "slack"),
    [
        ("ctl-bilstm", bilstm(), 0.02),  # the first step has no state to send a gradient to
        ("ctl-transformer", transformer(), 0.03),  # the keys of positions are of the batch, not of an example
        ("ctl-ndr", ndr(), 0.0),
    ],
)
def test_counts_every_product_of_a_real_step(model: str, forward: int, slack: float) -> None:
    found = of_a_step(replace(case_of(f"{model} batch=512"), batch=BATCH))
    assert found.products == pytest.approx(6 * BATCH * forward, rel=slack)


def test_counts_the_products_of_a_recurrent_step() -> None:
    """The stimulus once, every rule token, every step but the first, which has no state to look at; the answer."""
    rule = 5
    of_inputs = 512 * (303 + rule * 8)  # a product forward, one for the gradient of the weight
    of_states = 512 * 512 * (rule - 1) + 512 * 138  # and one for the gradient of the state
    found = of_a_step(replace(case_of("gcog-rnn batch=256"), batch=4))
    assert found.products == 4 * (2 * 2 * of_inputs + 3 * 2 * of_states)


def test_shortcuts_save_what_they_should() -> None:
    """The specification counts 1 002 MFLOP for an example of the single-stream Transformer, all tokens in full."""
    assert of_a_step(case_of("gcog-single-stream batch=256")).products / 256 < 1002e6 / 90


def test_a_stack_does_the_products_of_its_members() -> None:
    case = case_of("retrieval-transformer batch=10")
    assert of_a_step(case, 3).products == 3 * of_a_step(case).products
