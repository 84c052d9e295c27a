"""Training: resuming, diverging, selecting."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from support.jobs import MODELS, SMALL, job
from unseen.errors import CheckFailed, UsageError
from unseen.training.batches import TrainingData
from unseen.training.checkpoint import pack, unpack
from unseen.training.stack import Stack
from unseen.training.trainer import Trainer


def weights(trainer: Trainer, key: str) -> bytes:
    return b"".join(v.numpy().tobytes() for _, v in sorted(trainer.last[key].items()))


@pytest.mark.parametrize(("model", "stop"), [*((m, 33) for m in MODELS), *(("lstm matched", s) for s in (1, 20, 59))])
def test_a_resumed_run_equals_the_uninterrupted_one(model: str, stop: int) -> None:
    whole = Trainer(job([0, 1, 2], model))
    curve = whole.advance()
    first = Trainer(job([0, 1, 2], model))
    begun = first.advance(steps=stop)
    second = Trainer(job([0, 1, 2], model), unpack("checkpoint", pack(first.save())))
    rest = second.advance()
    assert begun + rest == curve
    assert all(weights(whole, f"run{s}") == weights(second, f"run{s}") for s in range(3))
    assert {k: (p.best, p.best_step) for k, p in whole.progress.items()} == {
        k: (p.best, p.best_step) for k, p in second.progress.items()
    }


def test_a_checkpoint_may_be_continued_in_other_stacks() -> None:
    whole = Trainer(job([0, 1]))
    whole.advance()
    half = Trainer(job([0, 1]))
    half.advance(steps=30)
    saved = half.save()
    alone = replace(saved, progress={"run1": saved.progress["run1"]})
    rest = Trainer(job([1]), alone)
    rest.advance()
    assert weights(rest, "run1") == weights(whole, "run1")


def test_a_damaged_checkpoint_is_named() -> None:
    data = pack(Trainer(job([0])).save())
    for broken in (data[: len(data) // 2], b"", b"x" * 100):
        with pytest.raises(CheckFailed, match=r"here\.safetensors"):
            unpack("here.safetensors", broken)


def test_best_is_the_first_best_validation() -> None:
    trainer = Trainer(job([0, 1], learning_rate=1e-2))
    points = trainer.advance()
    for key, progress in trainer.progress.items():
        scores = {p.step: p.value for p in points if p.key == key and p.metric == "accuracy"}
        assert progress.best == max(scores.values())
        assert progress.best_step == min(s for s, v in scores.items() if v == progress.best)


def test_best_may_be_the_latest_of_equals() -> None:
    trainer = Trainer(job([0, 1], learning_rate=1e-9, ties="latest"))
    points = trainer.advance()
    for key, progress in trainer.progress.items():
        scores = {p.step: p.value for p in points if p.key == key and p.metric == "accuracy"}
        assert len(set(scores.values())) == 1 and len(scores) == 3
        assert progress.best_step == max(scores)


def test_a_diverging_member_ends_with_its_step() -> None:
    """NaN weights in one member: it ends as diverged, the other goes on to the same bits."""
    trainer = Trainer(job([0, 1]))
    trainer.advance(steps=5)
    trainer.stack.rows[0] = math.nan
    trainer.advance()
    assert (trainer.progress["run0"].ending, trainer.progress["run0"].step) == ("diverged", 5)
    alone = Trainer(job([1]))
    alone.advance()
    assert weights(alone, "run1") == weights(trainer, "run1")


def test_members_of_a_stack_share_their_shape() -> None:
    with pytest.raises(UsageError, match="may differ only in"):
        replace(job([0]), members=(job([0], batch=10).members[0], job([1], batch=20).members[0]))


class Library(nn.Module):
    """A user's module: library layers that vmap refuses, randomness of its own, no ctx."""

    def __init__(self) -> None:
        super().__init__()
        self.encode, self.drop = nn.LSTM(36, 8, batch_first=True), nn.Dropout(0.5)
        self.answer = nn.Linear(8 + 36, 1)

    def forward(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        states, _ = self.encode(inputs["sequence"])
        return self.answer(self.drop(torch.cat([states[:, -1], inputs["query"]], -1)))


class Batchable(nn.Module):
    """A user's module that vmap takes."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = nn.Linear(72, 1)

    def forward(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        return self.answer(torch.cat([inputs["sequence"].sum(1), inputs["query"]], -1))


@pytest.mark.parametrize(("kind", "together"), [(Library, False), (Batchable, True)])
def test_a_foreign_module_trains_through_the_same_loop(kind: type[nn.Module], together: bool) -> None:
    from unseen.models.build import build_seeded

    def build(seed: int) -> nn.Module:
        return build_seeded(kind, seed)

    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    runs = [Trainer(replace(job(seeds, steps=20), build=build)) for seeds in ([0, 1], [1])]
    for run in runs:
        run.advance()
        assert run.stack.together is together
        assert bool(run.stack.note) is not together
    assert torch.equal(before, torch.random.get_rng_state())
    if not together:
        assert weights(runs[0], "run1") == weights(runs[1], "run1")


def test_passes_drop_an_incomplete_last_batch() -> None:
    size = SMALL.size("train") or 0
    feed = TrainingData(SMALL, 0, batch=size // 2 - 1, batches="passes")
    whole = SMALL.sample("train", size)
    keys = {row.tobytes(): i for i, row in enumerate(next(iter(whole.inputs.values())).reshape(size, -1))}
    name = next(iter(whole.inputs))
    numbers = []
    for step in range(4):
        batch = feed.batch(step)
        assert len(batch.targets) == size // 2 - 1
        numbers.append({keys[row.tobytes()] for row in batch.inputs[name].reshape(len(batch.targets), -1)})
    # Two batches to a pass, without a common example; each pass leaves out two others.
    assert not numbers[0] & numbers[1] and not numbers[2] & numbers[3]
    assert numbers[0] | numbers[1] != numbers[2] | numbers[3]


def test_a_set_smaller_than_the_batch_is_the_batch() -> None:
    size = SMALL.size("train") or 0
    feed = TrainingData(SMALL, 0, batch=3 * size, batches="passes")
    first, second = feed.batch(0), feed.batch(1)
    assert len(first.targets) == len(second.targets) == size
    assert not all(np.array_equal(first.inputs[n], second.inputs[n]) for n in first.inputs)  # in another order


def test_a_feed_permutes_a_finite_set_every_epoch() -> None:
    feed = TrainingData(SMALL, 0, batch=100, batches="shuffled")
    whole = SMALL.sample("train", 700)

    def epoch(first: int) -> list[bytes]:
        return [row.tobytes() for step in range(first, first + 7) for row in feed.batch(step).inputs["sequence"]]

    seen = [epoch(0), epoch(7)]
    assert seen[0] != seen[1]
    expected = sorted(row.tobytes() for row in whole.inputs["sequence"])
    assert sorted(seen[0]) == sorted(seen[1]) == expected
    assert epoch(0) == seen[0]  # going back gives the same batches
    plain = TrainingData(SMALL, 0, batch=300, batches="given")
    around = np.concatenate([whole.inputs["sequence"][600:], whole.inputs["sequence"][:200]])
    assert np.array_equal(plain.batch(2).inputs["sequence"], around)


def test_a_feed_reads_an_endless_stream_in_order() -> None:
    endless = SMALL.model_copy(update={"train_size": None})
    feed = TrainingData(endless, 3, batch=37, batches="shuffled")
    for step in (0, 1, 200, 55, 0):
        expected = endless.sample("train", 37, step * 37, data_seed=3)
        assert np.array_equal(feed.batch(step).inputs["sequence"], expected.inputs["sequence"])


def test_stacked_predictions_keep_what_is_asked() -> None:
    from unseen.training.evaluate import predict

    small = job([0, 1])
    stack = Stack([small.build(s) for s in (0, 1)])
    examples = SMALL.sample("iid", 30)
    found = predict(stack, examples, SMALL.spec, ["decoder.attention"])
    assert found["prediction"].shape == (2, 30, 1)
    assert found["decoder.attention"].shape == (2, 30, 5)
    np.testing.assert_allclose(found["decoder.attention"].sum(-1), 1, rtol=1e-5)


class Normalised(nn.Module):
    """A module that changes its own buffers, has a temporary one, and ties two weights."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.first, self.second = nn.BatchNorm1d(72), nn.Linear(72, 72), nn.Linear(72, 72)
        self.second.weight = self.first.weight
        self.answer = nn.Linear(72, 1)
        self.register_buffer("scale", torch.full((1,), 0.5), persistent=False)

    def forward(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        x = self.norm(torch.cat([inputs["sequence"].sum(1), inputs["query"]], -1))
        return self.answer(self.second(self.first(x).relu()).relu()) * self.scale


def test_buffers_move_once_per_step_and_survive_a_resume() -> None:
    def build(seed: int) -> nn.Module:
        from unseen.models.build import build_seeded

        return build_seeded(Normalised, seed)

    whole = Trainer(replace(job([0, 1], steps=20), build=build))
    whole.advance()
    assert whole.last["run0"]["norm.num_batches_tracked"] == 20
    half = Trainer(replace(job([0, 1], steps=20), build=build))
    half.advance(steps=7)
    rest = Trainer(replace(job([0, 1], steps=20), build=build), unpack("x", pack(half.save())))
    rest.advance()
    assert weights(rest, "run1") == weights(whole, "run1")


def test_a_member_goes_back_into_a_module() -> None:
    from unseen.training.stack import load_member

    stack = Stack([Normalised(), Normalised()])
    module = load_member(Normalised(), stack.member(1))
    assert torch.equal(module.first.weight, stack.parameters["first.weight"][1])
    assert module.second.weight is module.first.weight


def test_a_prediction_of_the_wrong_shape_is_refused() -> None:
    from unseen.spec import Target
    from unseen.training.loss import loss

    for target, prediction, targets in (
        (Target("real"), (5,), (5, 1)),
        (Target("binary", 3), (5, 1), (5, 3)),
        (Target("category", 4), (5, 2, 4), (5,)),
    ):
        with pytest.raises(UsageError, match="prediction has shape"):
            loss(torch.zeros(prediction), torch.zeros(targets, dtype=torch.long), target)


def test_clipping_does_not_look_at_the_neighbours() -> None:
    from unseen.training.optimizer import clip_rows

    broken, clips = torch.tensor([[math.nan, 1.0], [3.0, 4.0]]), torch.tensor([1.0, 1.0])
    alone = broken[:1].clone()
    clip_rows(alone, clips[:1])
    assert clip_rows(broken, clips)[1] == 5
    assert torch.equal(broken[:1].isnan(), alone.isnan())
    torch.testing.assert_close(broken[1], torch.tensor([0.6, 0.8]))
