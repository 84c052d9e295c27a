"""Batches of about one length, and a learning rate that rises first."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

from unseen.errors import UsageError
from unseen.models import options
from unseen.models.build import build
from unseen.randomness import stream
from unseen.tasks import task
from unseen.training.batches import BalancedLengths, StackBatches, TrainingData, typical_spec
from unseen.training.recipe import recipe
from unseen.training.trainer import Job, Member, Trainer

TASK = task("ctl/A", symbols=4, functions=8, max_length=4, train_size=1_000, iid_size=60, ood_size=60)
MODEL = options("ctl-bilstm", embedding=16, width=8)


def job(seeds: list[int], **changes: Any) -> Job:
    chosen = recipe("ctl-bilstm-paper", **{"batch": 48, "steps": 45, "warmup": 7, "validate_every": 20, **changes})
    return Job(TASK, lambda seed: build(MODEL, TASK.spec, seed), tuple(Member(f"run{s}", s, s, chosen) for s in seeds))


def rows(batch: Any) -> list[bytes]:
    padded = np.full((len(batch.targets), 7), -1)
    padded[:, : batch.inputs["token"].shape[1]] = np.where(batch.inputs["mask"], batch.inputs["token"], -1)
    return [row.tobytes() for row in padded]


def test_an_epoch_shows_whole_batches_of_neighbouring_lengths() -> None:
    feed, schedule = TrainingData(TASK, 0, 48, "lengths"), TASK.schedule()
    assert schedule is not None
    whole = TASK.sample("train", 1_000)
    everything = rows(whole)
    seen: dict[int, list[list[bytes]]] = {}
    for epoch in (0, 1, 0):
        batches = [feed.batch(epoch * 20 + place) for place in range(20)]  # 1 000 = 20 · 48 + 40
        spans = sorted((int(b.inputs["mask"].sum(1).min()), int(b.inputs["mask"].sum(1).max())) for b in batches)
        assert all(later[0] >= earlier[1] for earlier, later in pairwise(spans))
        assert all(b.inputs["token"].shape[1] == b.inputs["mask"].sum(1).max() for b in batches)
        assert spans != [(int(b.inputs["mask"].sum(1).min()), int(b.inputs["mask"].sum(1).max())) for b in batches]
        shown = [rows(b) for b in batches]
        flat = [row for batch in shown for row in batch]
        assert len(flat) == 960
        assert not [row for row in set(flat) if flat.count(row) > everything.count(row)]
        assert shown == seen.setdefault(epoch, shown)
    assert seen[0] != seen[1]
    left_out = [set(range(1_000)) - {everything.index(row) for batch in seen[e] for row in batch} for e in (0, 1)]
    assert left_out[0] != left_out[1]  # nothing is left out for good


def test_answers_go_with_their_examples() -> None:
    batch = TrainingData(TASK, 3, 48, "lengths").batch(5)
    whole = TASK.sample("train", 1_000, data_seed=3)
    answers = dict(zip(rows(whole), whole.targets, strict=True))
    assert [answers[row] for row in rows(batch)] == batch.targets.tolist()


def test_members_of_other_data_seeds_have_batches_of_the_same_shape() -> None:
    feeds = StackBatches(48, "lengths")
    for step in (0, 7, 19, 20, 61):
        batch = feeds.batch(step, [(TASK, 0), (TASK, 5)])
        assert not np.array_equal(batch.inputs["token"][0], batch.inputs["token"][1])
        assert np.array_equal(batch.inputs["mask"][0], batch.inputs["mask"][1])


def test_a_stack_by_length_equals_its_members_alone_and_goes_on_from_a_checkpoint() -> None:
    together = Trainer(job([0, 3]))
    together.advance()
    alone = Trainer(job([3]))
    alone.advance(steps=4)  # in the midst of the warm-up
    alone = Trainer(job([3]), alone.save())
    alone.advance()
    for name, value in together.last["run3"].items():
        assert torch.equal(value, alone.last["run3"][name])


def test_the_rate_rises_like_torchs_own_schedule() -> None:
    chosen = job([0], clip=None, steps=15)
    ours = Trainer(chosen)
    module = build(MODEL, TASK.spec, 0)
    optimiser = torch.optim.AdamW(module.parameters(), lr=1.5e-4, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: min(1.0, (step + 1) / 7))
    feed = TrainingData(TASK, 0, 48, "lengths")
    from unseen.models.context import Context

    for step in range(15):
        batch = feed.batch(step)
        inputs = {"token": torch.tensor(batch.inputs["token"]).long(), "mask": torch.tensor(batch.inputs["mask"])}
        ctx = Context(ours.stack.bits({k: v[None] for k, v in inputs.items()}, [0], step)[0])
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(module(inputs, ctx), torch.tensor(batch.targets).long()).backward()
        optimiser.step()
        schedule.step()
        ours.advance(steps=1)
    found = ours.last["run0"]
    for name, value in module.named_parameters():
        torch.testing.assert_close(found[name], value.detach(), rtol=1e-4, atol=1e-6)


def test_tasks_without_lengths_and_sets_below_a_batch_are_refused() -> None:
    with pytest.raises(UsageError, match=r"batches = lengths: the training examples of retrieval/T1 are all of one"):
        TrainingData(task("retrieval/T1", length=5), 0, 10, "lengths")
    with pytest.raises(UsageError, match=r"a batch of 2000 does not fit into the 1000 training examples of ctl/A"):
        TrainingData(TASK, 0, 2_000, "lengths")


def test_what_a_step_costs_is_counted_at_the_mean_length() -> None:
    longer = TASK.model_copy(update={"max_length": 6, "train_size": 500})
    schedule = longer.schedule()
    assert schedule is not None
    assert typical_spec(longer, "lengths").streams[0].length == int(np.ceil(schedule.mean())) == 8
    assert typical_spec(longer, "shuffled") == longer.spec
    assert typical_spec(longer, "balanced").streams[0].length == schedule.max()
    assert longer.spec.streams[0].length == 9


# -- every length equally often ---------------------------------------------------------------------------------------


def plainly_balanced(lengths: list[int], batch: int, steps: int) -> list[list[int]]:
    """The same batches, step by step with queues: a queue per length, refilled by a new shuffle when it is empty, and the
    places that remain in a batch go round and round."""
    identity = {key: value for key, value in TASK.drawn_by().items() if key not in TASK.instance_options}
    levels = sorted(set(lengths))
    queues: dict[int, list[int]] = {length: [] for length in levels}
    rounds = dict.fromkeys(levels, 0)
    turn = 0
    batches = []
    for _ in range(steps):
        wanted = dict.fromkeys(levels, batch // len(levels))
        for _ in range(batch % len(levels)):
            wanted[levels[turn % len(levels)]] += 1
            turn += 1
        shown = []
        for length in levels:
            for _ in range(wanted[length]):
                if not queues[length]:
                    members = [i for i, other in enumerate(lengths) if other == length]
                    order = (
                        stream("balanced batches", identity, length, rounds[length]).block().permutation(len(members))
                    )
                    queues[length] = [members[i] for i in order]
                    rounds[length] += 1
                shown.append(queues[length].pop(0))
        batches.append(shown)
    return batches


@pytest.mark.parametrize("batch", [2, 7, 48, 300])
def test_balanced_batches_are_those_of_a_plain_implementation(batch: int) -> None:
    schedule = TASK.schedule()
    assert schedule is not None
    expected = plainly_balanced(schedule.tolist(), batch, 40)
    balanced = BalancedLengths(TASK, batch)
    for step in (*range(40), 3, 39, 0):  # going back gives the same batches
        index, longest = balanced.batch(step)
        assert index.tolist() == expected[step]
        assert longest == max(schedule[i] for i in expected[step])


def test_every_length_is_equally_often_in_a_batch() -> None:
    schedule = TASK.schedule()
    assert schedule is not None
    levels, counts = np.unique(schedule, return_counts=True)
    assert len(levels) == 4 and counts.max() > 2 * counts.min()  # as drawn they are not
    feed = TrainingData(TASK, 0, 50, "balanced")
    total = np.zeros(len(levels), int)
    for step in range(20):
        shown = feed.batch(step).inputs["mask"].sum(1)
        in_batch = np.array([(shown == length).sum() for length in levels])
        assert set(in_batch) == {12, 13}
        total += in_batch
    assert set(total) == {250}


def test_balanced_answers_go_with_their_examples_and_shapes_agree() -> None:
    batch = TrainingData(TASK, 3, 48, "balanced").batch(5)
    whole = TASK.sample("train", 1_000, data_seed=3)
    answers = dict(zip(rows(whole), whole.targets, strict=True))
    assert [answers[row] for row in rows(batch)] == batch.targets.tolist()
    feeds = StackBatches(3, "balanced")  # fewer than there are lengths
    for step in (0, 1, 7, 20):
        stacked = feeds.batch(step, [(TASK, 0), (TASK, 5)])
        assert np.array_equal(stacked.inputs["mask"][0], stacked.inputs["mask"][1])


def test_a_balanced_stack_equals_its_members_alone_and_goes_on_from_a_checkpoint() -> None:
    together = Trainer(job([0, 3], batches="balanced"))
    together.advance()
    alone = Trainer(job([3], batches="balanced"))
    alone.advance(steps=11)
    alone = Trainer(job([3], batches="balanced"), alone.save())
    alone.advance()
    for name, value in together.last["run3"].items():
        assert torch.equal(value, alone.last["run3"][name])


def test_tasks_without_lengths_cannot_be_balanced() -> None:
    with pytest.raises(UsageError, match=r"batches = balanced: the training examples of retrieval/T1 are all of one"):
        TrainingData(task("retrieval/T1", length=5), 0, 10, "balanced")


def test_the_dry_run_takes_balanced_batches() -> None:
    from unseen.training.preflight import check_model
    from unseen.training.recipe import Evaluation

    chosen = recipe("ctl-bilstm-paper", batch=48, steps=45, batches="balanced")
    check_model(lambda: build(MODEL, TASK.spec, 0), TASK, chosen, [Evaluation(splits=("iid",))], 0, "cpu")
    with pytest.raises(UsageError, match="batches = balanced"):
        one_length = task("retrieval/T6", length=5)
        model = options("retrieval-transformer")
        check_model(lambda: build(model, one_length.spec, 0), one_length, chosen, [Evaluation()], 0, "cpu")
