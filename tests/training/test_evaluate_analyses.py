"""Trace summaries: measured in the same forward passes, per member, without changing anything else."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from unseen.analysis import ANALYSES, pooled_values
from unseen.errors import UsageError
from unseen.models import options
from unseen.models.build import build
from unseen.tasks import task
from unseen.tasks.base import Task
from unseen.training.evaluate import CHUNK, Measure, draw_examples, evaluate, left_out, predict
from unseen.training.recipe import Evaluation
from unseen.training.stack import Stack

ALL = tuple(ANALYSES)
SMALL = 600


def made(kind: str, **given: object) -> Task:
    return task(f"retrieval/{kind}", **{"length": 5, "preset": "released", **given})


def stack_of(found: Task, seeds: Sequence[int], model: str = "retrieval-transformer", **chosen: object) -> Stack:
    return Stack([sharpened(build(options(model, **chosen), found.spec, s)) for s in seeds])


def sharpened(module: nn.Module) -> nn.Module:
    """Untrained models look nowhere in particular; larger weights make them look somewhere."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(2.0)
    return module


def asked(*analyses: str, **given: object) -> Evaluation:
    return Evaluation.parse({"examples": SMALL, "analyses": analyses, **given})


def same(one: Sequence[Measure], other: Sequence[Measure]) -> bool:
    """Equal to the last bit, NaN included."""
    return repr(list(one)) == repr(list(other))


@pytest.mark.parametrize("kind", [f"T{k}" for k in range(1, 8)])
def test_nothing_else_changes_and_the_size_of_the_stack_does_not_matter(kind: str) -> None:
    found = made(kind)
    seeds = [3, 0, 7, 5]
    together = evaluate(stack_of(found, seeds), found, asked(*ALL))
    plain = evaluate(stack_of(found, seeds), found, asked())
    for place, seed in enumerate(seeds):
        assert same([m for m in together[place] if not m.metric.startswith("R")], plain[place])
        assert same(evaluate(stack_of(found, [seed]), found, asked(*ALL))[0], together[place])
    assert not same(together[0], together[1])


def test_one_pass_over_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    found = made("T1")
    asked_for: list[tuple[str, ...]] = []
    real = Stack.predict

    def counted(
        self: Stack, inputs: dict[str, Tensor], wanted: Sequence[str] = (), **given: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        asked_for.append(tuple(wanted))
        return real(self, inputs, wanted, **given)

    monkeypatch.setattr(Stack, "predict", counted)
    evaluate(stack_of(found, [0]), found, asked("R1", "R2"))
    chunks = math.ceil(SMALL / CHUNK)
    assert sorted(asked_for) == [()] * chunks + [("decoder.attention",)] * chunks  # iid, then ood/single


def test_attention_by_a_plain_loop() -> None:
    """R7 and R1 by hand, from traces taken one example at a time."""
    for kind, metric in (("T6", "R7/positive"), ("T1", "R1/correct"), ("T1", "R1/wrong")):
        found = made(kind)
        stack = stack_of(found, [2], positions="none")
        examples = draw_examples(found, "ood/single", SMALL, "test")
        middle = float(np.median(predict(stack, examples, found.spec)["prediction"]))
        stack.parameters["decoder.answer.bias"].data -= middle  # so that it says yes and no
        trace = predict(stack, examples, found.spec, ["decoder.attention"])
        expected = []
        for i in range(SMALL):
            weights, yes = trace["decoder.attention"][0, i], trace["prediction"][0, i, 0] >= 0
            first, second = sorted(examples.factors["positions"][i])
            if examples.targets[i, 0] == 1 and metric == "R7/positive":
                expected.append(float(weights[second]) - float(weights[first]))
            elif examples.targets[i, 0] == 1 and yes == (metric == "R1/correct"):
                expected.append(float(weights[second]))
        measures = {m.metric: m for m in evaluate(stack, found, asked("R1", "R7"))[0] if m.metric.startswith("R")}
        assert measures[metric].value == pytest.approx(np.mean(expected), abs=1e-7)
        assert measures[metric].n == len(expected) > 20
        assert (measures[metric].split, measures[metric].factor) == ("ood/single", "")
        assert math.isnan(measures[metric].standard_error)


def test_records_pool_to_what_the_traces_give() -> None:
    """Means with counts: runs pooled from measures alone equal the analysis of all traces at once."""
    kinds = {"R1": "T1", "R9": "T1", "R3": "T2", "R4": "T2", "R5": "T3", "R6": "T4", "R7": "T7"}
    for name, kind in kinds.items():
        found = made(kind)
        stack = stack_of(found, range(3))
        examples = draw_examples(found, "ood/single", SMALL, "test")
        arrays = predict(stack, examples, found.spec, ["decoder.attention"])
        traces = {("T+Pos+Att", s): {k: v[s] for k, v in arrays.items()} for s in range(3)}
        expected = pooled_values(ANALYSES[name].function(traces, examples.targets, examples.factors))
        rows = [m for member in evaluate(stack, found, asked(name)) for m in member if m.metric.startswith("R")]
        assert {m.metric for m in rows} == {f"{name}/{measure}" for measure in expected}
        for measure, value in expected.items():
            of = [m for m in rows if m.metric == f"{name}/{measure}"]
            assert sum(m.value * m.n for m in of) / sum(m.n for m in of) == pytest.approx(value, abs=1e-12)


def test_positions_are_kept_one_by_one() -> None:
    found = made("T1")
    measures = evaluate(stack_of(found, [1]), found, asked("R2"))[0]
    by_position = [m for m in measures if m.metric == "R2/accuracy"]
    assert [(m.factor, m.level) for m in by_position] == [("position", str(k)) for k in range(5)]
    whole = next(
        m for m in measures if (m.split, m.factor, m.level, m.metric) == ("ood/single", "scenario", "yes", "accuracy")
    )
    assert sum(m.n for m in by_position) == whole.n
    assert sum(m.value * m.n for m in by_position) == pytest.approx(whole.value * whole.n)


def test_a_mean_over_nothing_is_no_measure() -> None:
    """T5 has no wrong order; a model that always says yes is never wrong on positives."""
    found = made("T5")
    metrics = {m.metric for m in evaluate(stack_of(found, [0]), found, asked("R7"))[0]}
    assert "R7/positive" in metrics and "R7/wrong order" not in metrics
    found = made("T1")
    stack = stack_of(found, [0])
    stack.parameters["decoder.answer.bias"].data.fill_(1e6)
    metrics = {m.metric for m in evaluate(stack, found, asked("R1"))[0]}
    assert "R1/correct" in metrics and "R1/wrong" not in metrics


class Bare(nn.Module):
    """A user's model: no context, no intermediates."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = nn.Linear(36, 1)

    def forward(self, inputs: dict[str, Tensor]) -> Tensor:
        return self.answer(inputs["sequence"].sum(1))


def test_what_is_missing_is_said() -> None:
    found = made("T1")
    basic = stack_of(found, [0, 1], "retrieval-lstm", form="basic")
    for stack in (basic, Stack([Bare(), Bare()])):
        measures = evaluate(stack, found, asked("R1", "R2"))
        assert {m.metric for m in measures[0]} == {"loss", "accuracy", "R2/accuracy"}
        assert left_out(stack, found, asked("R1", "R2")) == ["R1 left out: the model captures no decoder.attention"]
    whole = stack_of(found, [0])
    assert left_out(whole, found, asked("R1", "R2", "R8", "R9")) == left_out(whole, found, asked()) == []
    assert left_out(whole, found, asked("R7", "R1", splits=("iid",))) == [
        "R1 left out: the evaluation does not cover ood/single",
        "R7 left out: it is about retrieval/T5, retrieval/T6, retrieval/T7",
    ]
    assert {m.metric for m in evaluate(whole, found, asked("R7", "R1", splits=("iid",)))[0]} == {"loss", "accuracy"}


def test_the_option() -> None:
    assert Evaluation().identity() == {"version": 1, "name": "standard"}  # old ids stay
    assert asked("R2", "R1", "R2").options() == {"name": "standard", "examples": SMALL, "analyses": ["R1", "R2"]}
    with pytest.raises(UsageError, match=r"unknown analysis 'R10'\. Did you mean 'R1'"):
        asked("R10")
