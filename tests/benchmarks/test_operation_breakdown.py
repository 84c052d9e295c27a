"""Where the time goes: kinds by name, and shares that leave nothing out."""

from __future__ import annotations

import pytest
import torch
from benchmarks.operation_breakdown import ELEMENTWISE, KINDS, OUTSIDE, kind_of, spent

from unseen.training.process import one_thread


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        ("aten::mm", "products"),
        ("aten::addmm", "products"),
        ("aten::mul_", ELEMENTWISE),
        ("aten::add", ELEMENTWISE),
        ("aten::_fused_adamw_", "optimiser"),
        ("aten::_softmax_backward_data", "norms and softmax"),
        ("aten::copy_", "copies"),
        ("aten::index_select", "copies"),
        ("aten::minimum", ELEMENTWISE),
        ("aten::max", ELEMENTWISE),
        ("autograd::engine::evaluate_function: MulBackward0", OUTSIDE),
    ],
)
def test_operations_by_name(operation: str, kind: str) -> None:
    assert kind_of(operation) == kind


@pytest.mark.parametrize(
    ("kind", "work"),
    [
        ("products", lambda x: x @ x),
        (ELEMENTWISE, lambda x: x * x),
        ("copies", lambda x: x.t().clone()),
        ("norms and softmax", lambda x: x.softmax(0)),
    ],
)
def test_most_time_is_where_the_work_is(kind: str, work) -> None:
    x = torch.rand(1500, 1500)
    with one_thread():
        shares = spent(lambda: work(x))
    assert set(shares) == {*KINDS, ELEMENTWISE, OUTSIDE} and sum(shares.values()) == pytest.approx(1)
    assert max(shares, key=shares.__getitem__) == kind
