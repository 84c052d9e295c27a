"""Costs: counted operations against the published formulas and against counts by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from unseen.models import options
from unseen.models.build import build
from unseen.models.flops import forward_flops
from unseen.running import flops
from unseen.running.flops import step_cost
from unseen.spec import Field, Spec, Stream, Target
from unseen.studies.trial import Trial, model_config
from unseen.tasks import task
from unseen.training.recipe import Evaluation, recipe

READ_OUT = 200
"""The formulas count the last layer, of width 1: 2 · 100. It is written elementwise and counts nothing here."""


def trial(model: str, length: int = 5, batch: int = 1, seed: int = 0, **given: Any) -> Trial:
    made = options(model, **given)
    return Trial(task("retrieval/T6", length=length), made, recipe(batch=batch), Evaluation(), seed, 0)


@pytest.mark.parametrize("n", [5, 10, 30])
@pytest.mark.parametrize(
    ("model", "given", "forward"),
    [
        ("retrieval-transformer", {}, lambda n: n * 127_200 + 400 * n * n + 400 * n + 47_400),
        ("retrieval-transformer", {"positions": "none"}, lambda n: n * 127_200 + 400 * n * n + 400 * n + 47_400),
        ("retrieval-transformer", {"self_attention": False}, lambda n: n * 47_200 + 400 * n + 47_400),
        ("retrieval-lstm", {"form": "attention"}, lambda n: n * 108_800 + 400 * n + 47_400),
        ("retrieval-lstm", {"form": "basic"}, lambda n: n * 108_800 + 47_400),
    ],
)
def test_the_retrieval_models_cost_what_the_formulas_say(model: str, given: Any, forward: Any, n: int) -> None:
    assert step_cost(trial(model, n, batch=7, **given)).flops == 7 * 3 * (forward(n) - READ_OUT)


@pytest.mark.parametrize(("n", "w"), [(5, 16), (10, 128)])
def test_the_lstm_costs_what_a_hand_counts(n: int, w: int) -> None:
    tokens = n + 2  # the query and the read-out token
    embedding, recurrence = 2 * (n + 1) * 36 * w, tokens * 2 * (w * 4 * w + w * 4 * w)
    assert step_cost(trial("lstm", n, width=w)).flops == 3 * (embedding + recurrence)


@pytest.mark.parametrize(("n", "w", "layers"), [(5, 16, 1), (10, 128, 3)])
def test_the_transformer_costs_what_a_hand_counts(n: int, w: int, layers: int) -> None:
    embedding = 2 * (n + 1) * 36 * w
    assert step_cost(trial("transformer", n, width=w, layers=layers)).flops == 3 * (
        embedding + blocks(n + 2, w, layers)
    )


def blocks(t: int, w: int, layers: int) -> int:
    """Layers of attention and feed-forward over t tokens; the last works for one token only."""
    block = t * 2 * (3 * w * w + w * w + 2 * w * 4 * w) + 2 * (2 * t * t * w)
    last = t * 2 * (2 * w * w) + 2 * (w * w + w * w + 2 * w * 4 * w) + 2 * (2 * t * w)
    return (layers - 1) * block + last


def test_parameters_are_those_that_are_trained() -> None:
    assert step_cost(trial("retrieval-transformer")).parameters == 88_601
    assert step_cost(trial("retrieval-transformer", self_attention=False)).parameters == 48_201


@pytest.mark.parametrize("batch", [1, 2, 9])
def test_what_a_pass_costs_once_is_not_multiplied_by_the_batch(batch: int) -> None:
    """Relative positions are projected once per pass: the cost is no multiple of the batch, and still exact."""
    one = trial("transformer", batch=batch, width=16, positions="relative")
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), counter:
        build(one.model, one.task.spec)({"sequence": torch.zeros(batch, 5, 36), "query": torch.zeros(batch, 36)})
    assert step_cost(one).flops == 3 * counter.get_total_flops()
    assert step_cost(one).flops != batch * step_cost(replace(one, recipe=recipe(batch=1))).flops or batch == 1


def test_few_models_are_counted_for_many_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[str] = []
    count = flops._count

    def counting(model: Any, *specs: Spec) -> Any:
        counted.append(model.name)
        return count(model, *specs)

    monkeypatch.setattr(flops, "_count", counting)
    monkeypatch.setattr(flops, "_BY_TASK", {})
    monkeypatch.setattr(flops, "_BY_SPEC", {})
    costs = set()
    for width in (4, 8):
        for batch in (1, 10):
            for seed in range(20):
                one = trial("lstm", width=width, batch=batch, seed=seed)
                costs.add(step_cost(replace(one, task=one.task.model_copy(update={"task_seed": seed}))))
    assert counted == ["lstm", "lstm"]
    assert len(costs) == 4


class Impossible(nn.Module):
    """A user's module that can't be used."""

    def forward(self, inputs: dict[str, Tensor]) -> Tensor:
        raise RuntimeError("not today")


def test_a_model_that_cannot_be_used_costs_nothing() -> None:
    assert step_cost(replace(trial("lstm"), model=model_config(Impossible))).flops == 0


class Library(nn.Module):
    """A user's module: an LSTM of the library, its Transformer layer, and randomness of its own."""

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.recurrence = nn.LSTM(36, 8, batch_first=True)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.5, batch_first=True)
        self.answer = nn.Linear(8, 2)

    def forward(self, inputs: dict[str, Tensor]) -> Tensor:
        states: Tensor = self.layer(self.recurrence(inputs["sequence"])[0])
        return torch.as_tensor(self.answer(states[:, -1]))[:, :1]


def test_the_layers_of_the_library_are_counted_and_nothing_global_moves() -> None:
    own = Trial(task("retrieval/T6", length=5), model_config(Library), recipe(batch=1), Evaluation(), 0, 0)
    lstm, layer = 5 * 2 * 32 * (36 + 8), 5 * 2 * (3 * 64 + 64 + 2 * 8 * 16) + 2 * (2 * 25 * 8)
    state, enabled = torch.get_rng_state(), torch.backends.mkldnn.enabled
    assert step_cost(own).flops == 3 * (lstm + layer + 2 * 8 * 2)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.backends.mkldnn.enabled == enabled


def test_every_kind_of_field_can_be_left_blank() -> None:
    spec = Spec(
        (Stream("tokens", 6),),
        (
            Field("token", "category", 30, "tokens"),
            Field("real", "mask", 1, "tokens"),
            Field("x", "real", 3, "tokens"),
            Field("rule", "category", 4),
        ),
        Target("category", 8),
    )
    counted = forward_flops(build(options("transformer", width=8), spec), spec)
    assert counted.each == 2 * 6 * 3 * 8 + blocks(8, 8, 2) + 2 * 8 * 8  # categories are looked up, not multiplied
