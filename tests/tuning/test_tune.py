"""Tuning: equal budgets, successive halving by hand, disjoint tasks, resumed to the same choice, search by Optuna."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from unseen.cli.main import app
from unseen.errors import CheckFailed, UsageError
from unseen.running.runner import Settings
from unseen.store.store import Store
from unseen.studies.trial import Entry
from unseen.training.optimizer import StackOptimizer, learning_rate_factor
from unseen.training.recipe import Recipe, recipe
from unseen.tuning import tune as tuning
from unseen.tuning.search_space import (
    Range,
    check_space,
    count_configurations,
    optuna_study,
    parse_space,
    propose_configurations,
    standard_space,
    tuned_recipe,
)
from unseen.tuning.tune import RUNGS, TuningResult, contenders, performance, tune

INLINE = Settings(executor="inline", progress="none", keep="none")
SMALL = {
    "task": {"rules": 2},
    "model": {"width": 8},
    "recipe": {"steps": 64, "validate_every": 4, "validation_examples": 100, "batch": 16, "clip": None},
    "evaluation": {"examples": 200},
}
SPACE = {"learning_rate": (1e-4, 1e-3, 1e-2, 1e-1), "cosine": (False, True)}


def two() -> list[Entry]:
    return contenders(
        "rules/mlp", ["rules-mlp"], vary={"model.gating": ["none", "truth"]}, recipe="quick", settings=SMALL
    )


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[TuningResult, Path]:
    out = tmp_path_factory.mktemp("tune") / "store"
    return tune(two(), out, space=SPACE, tasks=2, seeds=range(2), settings=INLINE), out


def test_the_grid_is_that_of_the_specification() -> None:
    space = standard_space(100_000)
    every = propose_configurations(space, 80, [], 0)
    assert len(every) == 80 and {tuple(c.values()) for c in every} == set(
        product((3e-5, 1e-4, 3e-4, 1e-3, 3e-3), (0, 1000), (False, True), (64, 256), (0.0, 1e-4))
    )
    part = propose_configurations(space, 16, [], 0)
    assert len(part) == 16 and all(c in every for c in part) and part == propose_configurations(space, 16, [], 3)
    assert len({c["learning_rate"] for c in part}) > 2


def test_halving_is_done_by_the_rule_with_the_same_budget_for_all(found: tuple[TuningResult, Path]) -> None:
    """The rule once more, from the records of the store alone."""
    table = found[0].table()
    with Store.read(found[1]) as store:
        curves, trials = store.curves(), store.trials().set_index("trial")
    assert set(curves.scale) == {*RUNGS, "untuned", "tuned"}
    for gating in ("none", "truth"):
        mine = curves[
            (curves.gating == gating) & (curves.split == "iid") & (curves.metric == "accuracy") & (curves.step > 0)
        ]
        known: set[tuple[object, object]] | None = None
        for rung, (count, steps, goes_on) in {"rung 1": (8, 4, 2), "rung 2": (2, 16, 1), "rung 3": (1, 64, 1)}.items():
            rows = mine[mine.scale == rung]
            assert set(rows.task_seed) == set(rows.seed) == set(rows.data_seed) == {1000, 1001}
            assert {trials.step[trial] for trial in rows.trial if trials.status[trial] != "diverged"} == {steps}
            best = rows.groupby(["learning_rate", "cosine", "task_seed"]).value.max().groupby(level=[0, 1]).mean()
            assert len(best) == count and (known is None or set(best.index) == known)
            said = table[(table.gating == gating) & (table.rung == rung)].set_index(["learning_rate", "cosine"])
            for place, score in best.items():
                assert said.score[place] == pytest.approx(score)
            known = {levels for levels, selected in said.selected.items() if selected}
            assert len(known) == goes_on and min(best[list(known)]) >= max(
                best[[p for p in best.index if p not in known]], default=-1
            )


def test_reported_runs_share_nothing_with_tuning(found: tuple[TuningResult, Path]) -> None:
    with Store.read(found[1]) as store:
        records = store.records()
    reported = records[records.scale.isin(["untuned", "tuned"])]
    assert set(reported.task_seed) == set(reported.seed) == set(reported.data_seed) == {0, 1}
    assert reported.groupby(["scale", "gating"]).trial.nunique().tolist() == [2] * 4
    assert set(reported.split) > {"iid"}  # evaluated as asked, trials on validation's split alone
    assert set(records[~records.scale.isin(["untuned", "tuned"])].split) == {"iid"}
    for place, used in zip(found[0].contenders, found[0].recipes, strict=True):
        rows = reported[(reported.gating == place["gating"]) & (reported.scale == "tuned")]
        assert f"learning_rate={used.learning_rate}" in rows.recipe_options.iloc[0] or used.learning_rate == 1e-3
        assert used.steps == 64 and used.decay in (None, 64)


def test_a_trial_of_a_higher_rung_does_the_same_steps(found: tuple[TuningResult, Path]) -> None:
    with Store.read(found[1]) as store:
        curves = store.curves()
    names = ["learning_rate", "cosine", "gating", "task_seed", "step", "split", "metric"]
    low, high = (curves[curves.scale == rung].set_index(names).value for rung in ("rung 1", "rung 2"))
    shared = low.index.intersection(high.index)
    assert len(shared) > 4 and low[shared].tolist() == high[shared].tolist()


def test_resumed_it_comes_to_the_same_choice_without_training(
    found: tuple[TuningResult, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unseen.running.timing.Timing.measure", lambda *a, **k: pytest.fail("something is trained"))
    assert tune(two(), found[1], space=SPACE, tasks=2, seeds=range(2), settings=INLINE) == found[0]
    with pytest.raises(UsageError, match="holds other work"):
        tune(two(), found[1], space={"learning_rate": (1e-4, 1e-3)}, tasks=2, seeds=range(2), settings=INLINE)


def test_one_that_diverged_is_the_worst_and_a_loss_is_negated(
    found: tuple[TuningResult, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Held:
        def __init__(self, status: str, rows: Sequence[tuple[object, ...]]) -> None:
            self.status, self.rows = (lambda trials: dict.fromkeys(trials, status)), (lambda table, trial: rows)

    trial = two()[0].trial
    losses = [
        ("", 0, "iid", "loss", 0.1),
        ("", 4, "iid", "loss", 0.5),
        ("", 8, "iid", "loss", 0.4),
        ("", 8, "train", "loss", 0.0),
    ]
    assert performance(Held("finished", losses), trial) == -0.4  # type: ignore[arg-type]
    assert performance(Held("finished", [*losses, ("", 4, "iid", "accuracy", 0.7)]), trial) == 0.7  # type: ignore[arg-type]
    assert performance(Held("diverged", losses), trial) == -math.inf  # type: ignore[arg-type]


def test_wrong_use_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    out = tmp_path / "r"
    for wrong, said in [
        ({"budget": 9}, "at most the 8"),
        ({"tasks": 0}, "positive number of tuning tasks"),
        ({"seeds": [0, 1000]}, "those from 1000 on are for tuning"),
        ({"space": {"stepz": (1,)}}, "unknown option 'stepz'"),
        ({"space": {"cosine": (1,)}}, "true or false"),
        ({"space": {}}, "nothing is tuned"),
        ({"space": {"batch": (0, 64)}}, "batch"),
        ({"space": {"clip": Range(1.0, 0.5)}}, "smaller"),
    ]:
        with pytest.raises(UsageError, match=said):
            tune(two(), out, **{"space": SPACE, "settings": INLINE, **wrong})  # type: ignore[arg-type]
    unequal = contenders("rules/mlp", ["rules-mlp"], vary={"recipe.steps": [10, 20]}, settings={"task": {"rules": 2}})
    with pytest.raises(UsageError, match="train for 10, 20 steps; a comparison gives all the same"):
        tune(unequal, out, settings=INLINE)
    same = contenders("rules/mlp", ["rules-mlp"], vary={"task.task_seed": [0, 1]}, recipe="quick")
    with pytest.raises(UsageError, match="axis 'task_seed' can't tell contenders apart"):
        tune(same, out, settings=INLINE)
    with pytest.raises(UsageError, match="two axes would be called 'width'"):
        contenders("rules/mlp", ["rules-mlp"], vary={"model.width": [8, 16], "task.width": [2, 4]})
    with pytest.raises(UsageError, match="model lstm is given twice"):
        contenders("retrieval/T1", ["lstm", "gru", "lstm"])
    with pytest.raises(UsageError, match=r"model\.width 8 is given twice"):
        contenders("retrieval/T1", ["lstm"], vary={"model.width": [8, 8]})
    with pytest.raises(UsageError, match="unknown tracker 'tensorbord'"):
        tune(two(), out, space=SPACE, settings=replace(INLINE, track=("tensorbord",)))
    assert not out.exists()


def test_all_diverged_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "performance", lambda store, trial: -math.inf)
    with pytest.raises(CheckFailed, match="every configuration has diverged"):
        tune(two()[:1], tmp_path / "r", space={"learning_rate": (1e-3, 1e-2)}, settings=INLINE)


def test_a_family_without_task_seeds_is_tuned_on_other_data() -> None:
    entry = contenders("gcog/distractor", ["lstm"], recipe="quick")[0]
    placed = tuning._make_run(entry, {}, entry.trial.recipe, entry.trial.evaluation, 1000)
    assert placed.trial == replace(entry.trial, seed=1000, data_seed=1000) and "task_seed" not in placed.levels


# -- the space, and Optuna ---------------------------------------------------------------------------------------


def test_a_search_learns_from_what_it_is_told_and_can_be_asked_again() -> None:
    pytest.importorskip("optuna")
    space = parse_space(["learning_rate=1e-5..1e-1", "warmup=0..100", "batch=64,256"])
    first = propose_configurations(space, 60, [], 0)
    assert len(first) == 60 and first == propose_configurations(space, 60, [], 0)
    told = [(c, -abs(math.log10(float(c["learning_rate"])) + 3)) for c in first]  # 1e-3 is best
    told[0] = (told[0][0], -math.inf)
    second = propose_configurations(space, 10, told, 1)
    assert second == propose_configurations(space, 10, told, 1)

    def away(configurations: Sequence[dict[str, object]]) -> float:
        return float(np.mean([abs(math.log10(float(str(c["learning_rate"]))) + 3) for c in configurations]))

    assert away(second) < 0.5 * away(propose_configurations(space, 10, [], 1))
    for c in second:
        assert 1e-5 <= float(c["learning_rate"]) <= 1e-1 and c["batch"] in (64, 256) and type(c["warmup"]) is int
    assert len(optuna_study(space, told).trials) == 60


def test_a_search_is_run_in_rounds_that_the_store_remembers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("optuna")
    monkeypatch.setattr(tuning, "ROUND", 3)
    space, entries = parse_space(["learning_rate=1e-4..1e-1"]), two()[:1]
    one = tune(entries, tmp_path / "r", space=space, budget=5, seeds=[0], settings=INLINE)
    assert [t.rung for t in one.trials] == ["rung 1"] * 5 + ["rung 2"] * 2 + ["rung 3"]
    with Store.read(tmp_path / "r") as store:
        assert store.entries().groupby("scale").size().to_dict() == {
            "rung 1.1": 3,
            "rung 1.2": 2,
            "rung 2": 2,
            "rung 3": 1,
            "tuned": 1,
            "untuned": 1,
        }
    # Another release of Optuna would propose others: what was begun is gone on with.
    monkeypatch.setattr(tuning, "propose_configurations", lambda *a: pytest.fail("proposed again"))
    assert tune(entries, tmp_path / "r", space=space, budget=5, seeds=[0], settings=INLINE) == one


def test_without_optuna_ranges_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(UsageError, match=r"pip install 'unseen\[tune\]'"):
        propose_configurations({"learning_rate": Range(1e-4, 1e-2)}, 2, [], 0)
    assert (
        count_configurations(standard_space(10)) == 80
        and len(propose_configurations(standard_space(10), 80, [], 0)) == 80
    )


def test_a_space_that_is_wrong_is_refused() -> None:
    for text in ("learning_rate", "learning_rate=", "learning_rate=1e-3..", "learning_rate=a..b", "batch=null"):
        with pytest.raises(UsageError, match="--search"):
            parse_space([text])
    with pytest.raises(UsageError, match="each once"):
        check_space({"batch": (64, 64)})


# -- decay -------------------------------------------------------------------------------------------------------


@given(st.integers(0, 50), st.integers(1, 200), st.integers(0, 250))
@settings(derandomize=True, deadline=None)
def test_the_rate_rises_to_one_and_falls_to_nothing(warmup: int, decay: int, step: int) -> None:
    share, following = learning_rate_factor(step, warmup, decay), learning_rate_factor(step + 1, warmup, decay)
    assert 0 <= share <= 1 and learning_rate_factor(step, warmup, None) == min(1.0, (step + 1) / max(1, warmup))
    assert following >= share if step + 1 < warmup else following <= share + 1e-12
    assert step < max(warmup + 1, decay) or share == pytest.approx(0, abs=1e-12)


def test_decay_is_that_of_torch_and_the_default_changes_no_id() -> None:
    """Steps of an optimiser of torch with its own cosine schedule."""
    used = recipe("quick", decay=10, learning_rate=0.1, clip=None, optimiser="sgd")
    rows = torch.zeros(1, 64)
    ours = StackOptimizer(rows, [used])
    theirs = torch.nn.Parameter(torch.zeros(64))
    plain = torch.optim.SGD([theirs], lr=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(plain, T_max=10)
    for step in range(10):
        ours.step(torch.ones(1, 64), step)
        theirs.grad = torch.ones(64)
        plain.step()
        schedule.step()
        assert torch.allclose(rows[0], theirs.detach(), atol=1e-7)
    assert "decay" not in Recipe().identity() and tuned_recipe(Recipe(), {"cosine": False}, 10_000, 10_000) == Recipe()


def test_the_command_prints_tuned_and_untuned_side_by_side(tmp_path: Path) -> None:
    command = [
        "tune",
        "rules/mlp",
        "rules-mlp",
        "--vary",
        "gating=none,truth",
        "--recipe",
        "quick",
        "--steps",
        "32",
        "--search",
        "learning_rate=0.0001,0.01",
        "--seeds",
        "1",
        "--executor",
        "inline",
        "--out",
        str(tmp_path / "r"),
        "--set",
        "rules=2",
        "--set",
        "width=8",
        "--set",
        "validate_every=2",
        "--set",
        "validation_examples=50",
        "--set",
        "recipe.batch=8",
    ]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "rules-mlp none: tuned to quick" in done.output and "iid accuracy: untuned" in done.output
    assert "iid, untuned: rules-mlp" in done.output and "iid, tuned: rules-mlp" in done.output
    wrong = CliRunner().invoke(app, [*command, "--set", "task_seed=3"])
    assert isinstance(wrong.exception, UsageError) and "tune chooses the task seeds" in str(wrong.exception)
