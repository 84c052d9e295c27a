"""Every gating of every architecture learns, in both settings."""

from __future__ import annotations

import pytest

from unseen.models import options
from unseen.models.build import build
from unseen.tasks import task
from unseen.training.recipe import recipe
from unseen.training.trainer import Job, Member, Trainer

LENGTHS = {"mlp": {}, "mha": {"length": 4}, "rnn": {"length": 4}}


@pytest.mark.parametrize("setting", ["classification", "regression"])
@pytest.mark.parametrize("gating", ["none", "joint", "operation", "truth"])
@pytest.mark.parametrize("kind", LENGTHS)
def test_two_hundred_steps_lower_the_loss(kind: str, gating: str, setting: str) -> None:
    made = task(f"rules/{kind}", rules=2, setting=setting, **LENGTHS[kind])
    used = recipe(steps=200, batch=32, learning_rate=5e-3, validate_every=200, validation_examples=500)
    chosen = options(f"rules-{kind}", gating=gating, width=8)
    trainer = Trainer(Job(made, lambda seed: build(chosen, made.spec, seed), (Member("run", 0, 0, used),)))
    before = {p.metric: p.value for p in trainer.begin()}
    after = {p.metric: p.value for p in trainer.advance() if p.split == "iid"}
    assert after["loss"] < 0.97 * before["loss"]
    if setting == "classification":
        assert after["accuracy"] > 0.6 > 0.55 > before["accuracy"]
