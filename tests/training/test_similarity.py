"""The states of models against stimuli and targets, before and after training, by ways that share no code."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.linalg import orthogonal_procrustes
from scipy.spatial.distance import cdist
from torch import Tensor, nn

import unseen
from unseen.analysis.representation import linear_cka, procrustes, rsa
from unseen.models import options
from unseen.models.build import build
from unseen.models.context import NO_CONTEXT, Context
from unseen.studies.grid import Grid
from unseen.studies.study import Study
from unseen.tasks import task
from unseen.tasks.base import Array, Task
from unseen.training.evaluate import Measure, Origin, evaluate, examples_drawn, left_out
from unseen.training.recipe import Evaluation
from unseen.training.stack import Stack

SMALL: dict[str, Any] = {
    "grid": (5, 5),
    "distractors": (1, 3),
    "ood_distractors": (4, 6),
    "features": (("shape", tuple("abcdef")), ("color", ("red", "green", "blue", "yellow"))),
}
MOST = "ood/distractors=6-16"
ASKED = Evaluation(splits=("iid",), examples=20, analyses=("similarity",))
SIDES = ("stimulus", "target")


def made(**given: Any) -> Task:
    return task("gcog/distractor", **{**SMALL, **given})


def rnn(of: Task, seed: int, width: int = 16) -> nn.Module:
    return build(options("gcog-rnn", width=width), of.spec, seed)


def nudged(module: nn.Module, seed: int = 0) -> nn.Module:
    """As if it had been trained a little."""
    draws = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=draws)
    return module


class Planted(nn.Module):
    """Keeps the state that was planted for each of the 800 samples, whichever way they come."""

    def __init__(self, of: Task, states: Array) -> None:
        super().__init__()
        shown = of.sample(MOST, 800, data_seed="test").inputs
        self.weights = nn.Parameter(torch.zeros(1), requires_grad=False)
        self.register_buffer("samples", torch.from_numpy(self.flat(shown)))
        self.register_buffer("states", torch.from_numpy(states.astype(np.float32)))
        self.classes = len(of.domain.answers)  # type: ignore[attr-defined]

    @staticmethod
    def flat(inputs: Any) -> Array:
        return np.concatenate([np.asarray(inputs[k]).reshape(len(inputs[k]), -1) for k in ("rule", "stimulus")], 1)

    def forward(self, inputs: dict[str, Tensor], ctx: Context = NO_CONTEXT) -> Tensor:
        given = torch.cat([inputs[k].flatten(1) for k in ("rule", "stimulus")], 1)
        which = (given[:, None] == self.samples[None]).all(2).int().argmax(1)
        ctx.capture("readout.state", self.states[which])
        return torch.zeros(len(given), self.classes) + self.weights


def plain_sides(of: Task) -> dict[str, Array]:
    """Stimuli written out from the objects on each grid, colour before shape; targets one-hot."""
    shown = of.sample(MOST, 800, data_seed="test")
    features: Any = dict(of.features)  # type: ignore[attr-defined]
    columns, rows = of.grid  # type: ignore[attr-defined]
    stimuli = np.zeros((800, columns * rows + 1, 3))
    stimuli[:, -1, 2] = 1
    for i in range(800):
        for thing in of.view(shown, i).objects:  # type: ignore[attr-defined]
            shape, color = thing.values
            stimuli[i, thing.x * rows + thing.y] = (
                features["color"].index(color) + 1,
                features["shape"].index(shape) + 1,
                0,
            )
    targets = np.zeros((800, 2 + columns * rows + sum(map(len, features.values()))))
    for i, answer in enumerate(shown.targets):
        targets[i, answer] = 1
    return {"stimulus": stimuli.reshape(800, -1), "target": targets}


def plain_cosines(vectors: Array) -> Array:
    """By SciPy; a vector without a direction is like nothing."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(1 - cdist(vectors, vectors, "cosine"))


def plain_distance(x: Array, y: Array) -> float:
    """By the rotation itself."""
    rotation, _ = orthogonal_procrustes(x, y)
    return float(np.linalg.norm(x @ rotation - y))


def plain_states(of: Task, module: nn.Module) -> Array:
    shown, ctx = of.sample(MOST, 800, data_seed="test").inputs, Context(wanted=["readout.state"])
    with torch.no_grad():
        module({k: torch.from_numpy(v) for k, v in shown.items()}, ctx)
    return ctx.captured["readout.state"].double().numpy()


def values(rows: list[Measure]) -> dict[str, Measure]:
    return {m.metric.removeprefix("similarity/"): m for m in rows if m.metric.startswith("similarity/")}


def test_every_measure_against_a_plain_way() -> None:
    of = made()
    first, last = rnn(of, 0), nudged(rnn(of, 0))
    found = values(evaluate(Stack([last]), of, ASKED, Origin([0], lambda: Stack([first])))[0])
    vectors = {stage: plain_states(of, module) for stage, module in (("before", first), ("after", last))}
    matrices = {stage: plain_cosines(states) for stage, states in vectors.items()}
    for side, target in plain_sides(of).items():
        y = plain_cosines(target)
        for stage, x in matrices.items():
            assert found[f"{side}_distance_{stage}"].value == pytest.approx(plain_distance(x, y), abs=1e-4)
            assert found[f"{side}_rsa_{stage}"].value == pytest.approx(rsa(x, y), abs=1e-6)
            assert found[f"{side}_cka_{stage}"].value == pytest.approx(linear_cka(vectors[stage], target), abs=1e-6)
        alignment = found[f"{side}_alignment"]
        moved = plain_distance(matrices["before"], y) - plain_distance(matrices["after"], y)
        assert alignment.value == pytest.approx(moved, abs=1e-4) and abs(moved) > 1
    names = {f"{what}_{stage}" for what in ("distance", "cka", "rsa") for stage in ("before", "after", "random")}
    assert set(found) == {f"{side}_{name}" for side in SIDES for name in {*names, "alignment"}}
    assert {(m.split, m.factor, m.level, m.n) for m in found.values()} == {(MOST, "", "", 800)}
    left, y = [], plain_cosines(plain_sides(of)["target"])
    for fold in range(10):  # samples 0 … 79 left out, then 80 … 159, …
        rest = np.ix_(*[[i for i in range(800) if i // 80 != fold]] * 2)
        left.append(
            (procrustes(matrices["before"][rest], y[rest]) - procrustes(matrices["after"][rest], y[rest])) * 800 / 720
        )
    error = math.sqrt(9 / 10 * sum((one - sum(left) / 10) ** 2 for one in left))
    assert found["target_alignment"].standard_error == pytest.approx(error, rel=1e-3) and error > 0


def test_the_samples_have_each_operator_equally_often_in_every_fold() -> None:
    for of, most in ((made(), MOST), (task("gcog/distractor"), "ood/distractors=40-50")):
        operators = of.sample(most, 800, data_seed="test").factors["operator"].reshape(10, 80)
        for fold in operators:
            assert np.unique(fold, return_counts=True)[1].tolist() == [10] * 8


def test_a_model_that_was_not_trained_has_not_moved() -> None:
    of = made()
    found = values(evaluate(Stack([rnn(of, 3)]), of, ASKED, Origin([0], lambda: Stack([rnn(of, 3)])))[0])
    for side in SIDES:
        assert (found[f"{side}_alignment"].value, found[f"{side}_alignment"].standard_error) == (0.0, 0.0)


def test_states_like_the_stimuli_or_the_targets_are_at_no_distance() -> None:
    """And what is at no distance after training has moved by all there was."""
    of = made()
    for side, vectors in plain_sides(of).items():
        drawn = np.random.default_rng(0).normal(size=vectors.shape)
        found = values(
            evaluate(
                Stack([Planted(of, 3 * vectors)]),
                of,
                ASKED,
                Origin([0], lambda drawn=drawn: Stack([Planted(of, drawn)])),
            )[0]
        )
        assert found[f"{side}_distance_after"].value == pytest.approx(0, abs=1e-2)
        assert found[f"{side}_alignment"].value == pytest.approx(found[f"{side}_distance_before"].value, abs=1e-2)
        assert found[f"{side}_cka_after"].value == pytest.approx(1) == found[f"{side}_rsa_after"].value
        # Features drawn at random are as far off as features drawn at random.
        assert found[f"{side}_distance_random"].value == pytest.approx(found[f"{side}_distance_before"].value, rel=0.02)


def test_states_without_a_direction_are_like_nothing() -> None:
    of = made()
    whole = np.random.default_rng(1).normal(size=(800, 12))
    dead, broken = whole.copy(), whole.copy()
    dead[::7] = 0
    broken[::7, 3] = np.nan
    broken[7, 3] = np.inf
    rows = evaluate(
        Stack([Planted(of, dead), Planted(of, broken)]),
        of,
        ASKED,
        Origin([0, 0], lambda: Stack([Planted(of, whole)] * 2)),
    )
    one, other = map(values, rows)
    assert {k: m.value for k, m in one.items()} == {k: m.value for k, m in other.items()}
    cosines = plain_cosines(dead.astype(np.float32).astype(np.float64))
    for side, target in plain_sides(of).items():
        distance = plain_distance(cosines, plain_cosines(target))
        assert one[f"{side}_distance_after"].value == pytest.approx(distance, abs=1e-4)


def test_a_model_that_says_nothing_at_all() -> None:
    of = made()
    found = values(
        evaluate(
            Stack([Planted(of, np.zeros((800, 5)))]),
            of,
            ASKED,
            Origin([0], lambda: Stack([Planted(of, np.ones((800, 5)))])),
        )[0]
    )
    for side, target in plain_sides(of).items():
        assert found[f"{side}_distance_after"].value == pytest.approx(np.linalg.norm(plain_cosines(target)))
        assert all(
            math.isnan(found[f"{side}_{name}_{stage}"].value)
            for name in ("cka", "rsa")
            for stage in ("before", "after")
        )


def test_alone_and_stacked_the_same_to_the_last_bit() -> None:
    of = made()
    together = evaluate(
        Stack([nudged(rnn(of, s)) for s in (0, 1, 2)]),
        of,
        ASKED,
        Origin([0, 0, 0], lambda: Stack([rnn(of, s) for s in (0, 1, 2)])),
    )
    for seed in (0, 1, 2):
        alone = evaluate(Stack([nudged(rnn(of, seed))]), of, ASKED, Origin([0], lambda s=seed: Stack([rnn(of, s)])))
        assert repr(alone[0]) == repr(together[seed])
    plain = evaluate(Stack([nudged(rnn(of, 0))]), of, Evaluation(splits=("iid",), examples=20))
    assert repr([m for m in together[0] if "similarity" not in m.metric]) == repr(plain[0])
    assert len({values(rows)["target_alignment"].value for rows in together}) == 3
    assert len({values(rows)["target_distance_random"].value for rows in together}) == 1


@pytest.mark.parametrize("coding", ["onehot", "embedding"])
def test_stimuli_are_coded_by_integers_whatever_a_model_reads(coding: str) -> None:
    """The control knows nothing of the model: it is the same number for all codings."""
    found = [
        values(evaluate(Stack([rnn(of, 0)]), of, ASKED, Origin([0], lambda of=of: Stack([rnn(of, 0)])))[0])
        for of in (made(), made(coding=coding))
    ]
    for name in ("stimulus_distance_random", "stimulus_cka_random", "target_rsa_random"):
        assert found[0][name].value == found[1][name].value
    assert found[0]["stimulus_distance_after"].value != found[1]["stimulus_distance_after"].value


def test_what_is_missing_is_said() -> None:
    said, of = "similarity left out: ", made()
    origin = Origin([0], lambda: Stack([rnn(of, 0)]))
    assert left_out(Stack([rnn(of, 0)]), of, ASKED, origin) == []
    assert left_out(Stack([rnn(of, 0)]), of, ASKED) == [said + "it needs the models before training"]
    assert not values(evaluate(Stack([rnn(of, 0)]), of, ASKED)[0])
    near = made(ood_distractors=())
    assert left_out(Stack([rnn(near, 0)]), near, ASKED, origin) == [
        said + "the task has no split with more distractors (ood_distractors)"
    ]
    other = task("gcog/systematic-operators", grid=(5, 5))
    assert left_out(Stack([rnn(other, 0)]), other, ASKED, origin) == [said + "it is about gcog/distractor"]
    assert [examples_drawn(each, ASKED) for each in (of, near, other)] == [20 + 2 * 800, 20, 20]

    class Bare(nn.Module):
        """A user's model: no context, no intermediates."""

        def __init__(self) -> None:
            super().__init__()
            self.answer = nn.Linear(1, 37)

        def forward(self, inputs: dict[str, Tensor]) -> Tensor:
            answer: Tensor = self.answer(inputs["stimulus"].sum((1, 2))[:, None])
            return answer

    assert left_out(Stack([Bare()]), of, ASKED, origin) == [said + "the model captures no readout.state"]


RECIPE = {"steps": 30, "batch": 32, "learning_rate": 1e-2, "validate_every": 15, "validation_examples": 50}


def study(**recipe: Any) -> Study:
    grid = Grid(
        axes={"model": {"gcog-rnn": {"model": {"name": "gcog-rnn", "width": 16}}}},
        base={
            "task": {"name": "gcog/distractor", **SMALL},
            "recipe": {**RECIPE, **recipe},
            "evaluation": {"splits": ("train", "iid"), "examples": 200, "analyses": ("similarity",)},
        },
        seeds=range(2),
    )
    return Study("alike", 1, "Do tests train?", {"smoke": None}, lambda scale: [grid])


def test_a_stored_run_leaves_the_rows(tmp_path: Path) -> None:
    """Together, and one by one in short slices: the same rows. They begin at the models of their own seeds."""
    ways: dict[str, dict[str, Any]] = {"together": {}, "alone": {"stack": 1, "chunk_seconds": 0.01}}
    frames = {
        way: unseen.run(study(), scale="smoke", out=tmp_path / way, executor="inline", progress="none", **given)
        for way, given in ways.items()
    }
    rows = frames["together"]
    assert repr(rows.to_dict("records")) == repr(frames["alone"].to_dict("records"))
    last = rows[(rows["selection"] == "last") & (rows["factor"] == "")].set_index(["seed", "split", "metric"])
    of = made()
    for seed in (0, 1):
        cosines = plain_cosines(plain_states(of, rnn(of, seed)))
        for side, target in plain_sides(of).items():
            before = last.loc[(seed, MOST, f"similarity/{side}_distance_before"), "value"]
            assert before == pytest.approx(plain_distance(cosines, plain_cosines(target)), abs=1e-4)
            assert last.loc[(seed, MOST, f"similarity/{side}_alignment"), "value"] != 0
        assert {"accuracy", "right_kind"} <= set(last.loc[(seed, "train")].index)


def test_a_run_that_can_not_learn_has_not_moved(tmp_path: Path) -> None:
    """A step too small to change any weight: what the study calls before is what the trainer began with."""
    rows = unseen.run(
        study(optimiser="sgd", learning_rate=1e-30),
        scale="smoke",
        out=tmp_path / "still",
        executor="inline",
        progress="none",
    )
    moved = rows[rows["metric"].isin([f"similarity/{side}_alignment" for side in SIDES])]
    assert len(moved) == 2 * 2 * 2 and (moved["value"] == 0).all()
