"""Philox in torch has the bits of NumPy's, and batches made on a device are those made on the host."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from support.jobs import SMALL, job
from unseen.randomness import stream
from unseen.tasks import task
from unseen.training import batches as module
from unseen.training.batches import StackBatches, copy_to_device
from unseen.training.device_random import lanes16, permutations, words
from unseen.training.recipe import Batches
from unseen.training.stack import Stack

STREAMS = [stream("dropout", seed) for seed in range(5)]


@pytest.mark.parametrize("block", [0, 1, 123_456_789, 2**40])
@pytest.mark.parametrize("count", [0, 1, 4, 7, 1001])
def test_words(block: int, count: int) -> None:
    expected = np.stack([s.block(block).words(count) for s in STREAMS])
    assert np.array_equal(words(STREAMS, block, count, "cpu").numpy().view(np.uint64), expected)


@pytest.mark.parametrize("count", [1, 3, 4, 5, 10_007])
def test_dropout_lanes(count: int) -> None:
    expected = np.stack([s.block(17).lanes(count, np.uint16) for s in STREAMS]).view(np.int16)
    assert np.array_equal(lanes16(STREAMS, 17, count, "cpu").numpy(), expected)


def test_permutations() -> None:
    expected = np.stack([s.block().permutation(999) for s in STREAMS])
    assert np.array_equal(permutations(STREAMS, 999, "cpu").numpy(), expected)


def test_keys_and_counters_at_the_edges() -> None:
    """All bits set: every product and every sum overflows."""
    from unseen.randomness import RandomStream

    full = RandomStream((2**64 - 1, 2**64 - 1))
    expected = full.block(2**63 - 1).words(64)
    assert np.array_equal(words([full], 2**63 - 1, 64, "cpu")[0].numpy().view(np.uint64), expected)


def test_another_device_makes_its_own_dropout_bits() -> None:
    """The meta device has no numbers: bits made by NumPy could not be copied to it unnoticed."""
    small = job([0, 1])
    stack = Stack([small.build(seed).to("meta") for seed in (0, 1)])
    inputs = {
        "sequence": torch.zeros(2, 3, 5, 36, device="meta"),
        "query": torch.zeros(2, 3, 36, device="meta"),
    }
    bits = stack.bits(inputs, [0, 1], step=3)
    assert bits.device.type == "meta" and bits.dtype == torch.int16 and bits.shape[1] > 0


@pytest.mark.parametrize("resident", [True, False], ids=["kept on the device", "copied"])
@pytest.mark.parametrize(
    ("order", "batch"), [("shuffled", 300), ("shuffled", 1500), ("passes", 300), ("passes", 1500), ("given", 300)]
)
def test_batches_on_a_device(order: Batches, batch: int, resident: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over the ends of epochs of 700 examples, with two members that share their data."""
    if not resident:
        monkeypatch.setattr(module, "RESIDENT_BYTES", 1000)
    sources = [(SMALL, 0), (SMALL, 1), (SMALL, 0)]
    host, device = StackBatches(batch, order), StackBatches(batch, order)
    for step in range(6):
        given = (step, sources, SMALL.spec, torch.float32)
        expected, expected_targets = host.tensors(*given, "cpu")
        inputs, targets = device.device_tensors(*given, "cpu")
        assert all(torch.equal(inputs[name], values) for name, values in expected.items())
        assert torch.equal(targets, expected_targets)
    assert len(device._on_device) == (2 if resident else 0)


def test_sets_without_end_and_batches_by_length_are_drawn_on_the_host() -> None:
    for made, order in ((task("rules/mlp"), "shuffled"), (task("ctl/A", train_size=2_000), "lengths")):
        host, device = StackBatches(16, order), StackBatches(16, order)  # type: ignore[arg-type]
        given = (3, [(made, 0), (made, 0)], made.spec, torch.float32)
        expected, targets = host.tensors(*given, "cpu")[0], device.device_tensors(*given, "cpu")[0]
        assert expected.keys() == targets.keys() and not device._on_device
        assert all(torch.equal(expected[name], targets[name]) for name in expected)


def test_a_batch_that_all_members_share_is_copied_to_the_device_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """And through pinned memory, without waiting for the device."""
    copied: list[tuple[int, ...]] = []

    def pin(tensor: torch.Tensor) -> torch.Tensor:
        copied.append(tuple(tensor.shape))
        return tensor

    waited: list[object] = []
    to = torch.Tensor.to

    def stand_in(tensor: torch.Tensor, *args: object, **options: object) -> torch.Tensor:
        if args == ("cuda",):
            waited.append(not options.get("non_blocking"))
            return tensor
        return to(tensor, *args, **options)

    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    monkeypatch.setattr(torch.Tensor, "to", stand_in)
    endless = task("rules/mlp")
    inputs, _ = StackBatches(16, "shuffled").device_tensors(0, [(endless, 0)] * 5, endless.spec, torch.float32, "cuda")
    assert all(len(values) == 5 for values in inputs.values())
    assert [shape[0] for shape in copied if len(shape) > 1] == [1] * (len(inputs) + 1)
    assert waited and not any(waited)
    monkeypatch.undo()
    assert copy_to_device(np.ones(3), "meta").device.type == "meta"
