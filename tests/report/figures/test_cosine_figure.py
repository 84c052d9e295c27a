"""The figure of cosines, and the way to it from trained runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unseen
from unseen.analysis import adjusted_rand, cosine_matrix
from unseen.report.figures.ctl_functions import cosine_figure
from unseen.studies.study import Grid, Study

NAMES, GROUPS = list("pqrstu"), list("aaabbb")


def matrices() -> dict[str, np.ndarray]:
    """Outcome 0: two clusters that are the groups; outcome 1: one function missing; outcome 2: nothing."""
    apart = cosine_matrix(np.eye(2)[[0, 0, 1, 0, 1, 1]] + 0.1 * np.random.default_rng(0).normal(size=(6, 2)))
    some = apart.copy()
    some[2] = some[:, 2] = np.nan
    return {"0": apart, "1": some, "2": np.full((6, 6), np.nan)}


def drawn(path: Path) -> list[dict[str, Any]]:
    """The panels of a figure's JSON, each with its cells, its frames and its names."""
    chart = json.loads(path.read_text())
    found = chart["concat"]
    for panel in found:
        panel["cells"], panel["frames"], panel["names"], _ = (
            chart["datasets"][layer["data"]["name"]] for layer in panel["layer"]
        )
    return found


def test_the_drawing_says_what_the_matrices_say(tmp_path: Path) -> None:
    assert cosine_figure(matrices(), NAMES, GROUPS, tmp_path / "x.json", "planted") == tmp_path / "x.json"
    first, second = drawn(tmp_path / "x.json")  # nothing returns 2
    cells = first["cells"]
    assert len(cells) == 36
    assert [cell["first"] for cell in cells[::6]] == list("pqsrtu")  # by cluster, then as numbered
    for cell in cells:
        i, j = NAMES.index(cell["first"]), NAMES.index(cell["second"])
        assert cell["cosine"] == pytest.approx(matrices()["0"][i, j], abs=1e-4)
    assert [(f["x"], f["x2"], f["y"], f["y2"]) for f in first["frames"]] == [(0, 3, 0, 3), (3, 6, 3, 6)]
    agreement = adjusted_rand([0, 0, 0, 1, 1, 1], [0, 0, 1, 0, 1, 1])  # p q s, r t u against p q r, s t u
    assert first["title"]["text"] == "returns 0"
    assert first["title"]["subtitle"] == f"2 clusters, agreement with groups {agreement:.2f}".replace("-", "−")
    assert {cell["first"] for cell in second["cells"]} == set("pqstu")
    assert first["layer"][0]["encoding"]["fill"]["scale"]["domain"] == [0, 1]


def test_names_have_the_colour_of_their_group(tmp_path: Path) -> None:
    cosine_figure(matrices(), NAMES, GROUPS, tmp_path / "x.json", "planted")
    panel = drawn(tmp_path / "x.json")[0]
    assert [(name["name"], name["group"]) for name in panel["names"]] == [
        ("p", "group a"),
        ("q", "group a"),
        ("s", "group b"),
        ("r", "group a"),
        ("t", "group b"),
        ("u", "group b"),
    ]
    scale = panel["layer"][2]["encoding"]["color"]["scale"]
    assert dict(zip(scale["domain"], scale["range"], strict=True)) == {"group a": "#0072B2", "group b": "#D55E00"}


def test_pictures(tmp_path: Path) -> None:
    svg = cosine_figure(matrices(), NAMES, GROUPS, tmp_path / "x.svg", "planted").read_text()
    assert "<svg" in svg and "group a" in svg and "returns 1" in svg and "returns 2" not in svg
    for colour in ("#0072B2", "#D55E00"):
        assert svg.count(f'fill="{colour}"') >= 2 * 5  # names on both sides of two panels


def test_many_functions(tmp_path: Path) -> None:
    """More than 5 000 cells, where tables are refused."""
    many = cosine_matrix(np.random.default_rng(1).normal(size=(80, 4)))
    names = [f"f{i}" for i in range(80)]
    assert cosine_figure({"0": many}, names, ["a"] * 80, tmp_path / "x.json", "many").exists()


def test_wrong_use_is_said(tmp_path: Path) -> None:
    with pytest.raises(unseen.UsageError, match=r"written as \.svg, \.pdf, \.png, \.json"):
        cosine_figure(matrices(), NAMES, GROUPS, tmp_path / "x.gif", "planted")
    with pytest.raises(unseen.UsageError, match="there is no directory"):
        cosine_figure(matrices(), NAMES, GROUPS, tmp_path / "nowhere" / "x.svg", "planted")
    with pytest.raises(unseen.UsageError, match="nothing to draw"):
        cosine_figure({"2": matrices()["2"]}, NAMES, GROUPS, tmp_path / "x.svg", "planted")
    with pytest.raises(unseen.UsageError, match="5 functions with a group each"):
        cosine_figure(matrices(), NAMES[:5], GROUPS[:5], tmp_path / "x.svg", "planted")


TASK = {"symbols": 4, "functions": 8, "max_length": 3, "train_size": 300, "iid_size": 40, "ood_size": 50}
RECIPE = {"steps": 6, "batch": 20, "validate_every": 2, "validation_examples": 20, "learning_rate": 0.1}


def test_from_runs_and_from_a_directory(tmp_path: Path) -> None:
    model = unseen.model("ctl-bilstm", width=8, embedding=8)
    runs = unseen.train(
        unseen.task("ctl/R", **TASK),
        model,
        seeds=3,
        out=tmp_path / "r",
        progress="none",
        evaluation=unseen.Evaluation(splits=("iid",), examples=40),
        **RECIPE,
    )
    found = unseen.cosines(runs, seed=1, out=tmp_path / "x.svg")
    assert found.shape == (4, 8, 8) and "ctl-bilstm on ctl/R, seed 1" in (tmp_path / "x.svg").read_text()
    trace = runs.activations("probe/singles", n=32, keep=["readout.state"])
    states, functions = trace.activations["ctl-bilstm", 1]["readout.state"], trace.factors["functions"][:, 0]
    for symbol, matrix in enumerate(found):
        here = np.flatnonzero(trace.targets == symbol)
        ordered = states[here[np.argsort(functions[here])]]
        np.testing.assert_allclose(matrix, cosine_matrix(ordered), atol=1e-6)
    trial = str(runs.trials.set_index("seed").loc[1, "trial"])
    for given in ({"trial": trial[:8]}, {"seed": 1}, {"seed": 1, "trial": trial}):
        assert (unseen.cosines(tmp_path / "r", **given) == found).all()
    early = runs.trials.query("best_step < step")["seed"].tolist()
    assert early  # one whose best and last weights differ
    best, last = (unseen.cosines(tmp_path / "r", seed=early[0], selection=which) for which in ("best", "last"))
    assert (best != last).any() and (last == unseen.cosines(runs, seed=early[0], selection="last")).all()
    with pytest.raises(unseen.UsageError, match="3 trials fit, one is needed"):
        unseen.cosines(tmp_path / "r")
    with pytest.raises(unseen.UsageError, match="0 trials fit"):
        unseen.cosines(tmp_path / "r", trial="zz")
    with pytest.raises(unseen.UsageError, match="which run"):
        unseen.cosines(runs)
    with pytest.raises(unseen.UsageError, match="unknown selection"):
        unseen.cosines(tmp_path / "r", seed=1, selection="first")


def test_from_a_study(tmp_path: Path) -> None:
    """Trials of a study, whose weights are kept only if asked for; a world of its own survives the way."""
    world = json.loads(unseen.task("ctl/R", **TASK, task_seed=5).actual_world.model_dump_json())
    base = {
        "task": {"name": "ctl/R", **TASK},
        "model": {"name": "ctl-bilstm", "width": 8, "embedding": 8},
        "recipe": RECIPE,
        "evaluation": {"splits": ["iid"], "examples": 40},
    }
    grid = Grid({"world": {"own": {"task": {"world": world}}, "drawn": {}}}, base, [0])
    study = Study("looking", 1, "?", {"smoke": None}, lambda scale: [grid])
    for keep in ("none", "best"):
        unseen.run(study, tmp_path / keep, keep=keep, executor="inline", progress="none")
    records = unseen.results(tmp_path / "best").drop_duplicates("trial").set_index("world")["trial"]
    own, drawn_world = (unseen.cosines(tmp_path / "best", trial=records[name][:10]) for name in ("own", "drawn"))
    assert own.shape == drawn_world.shape and (own != drawn_world).any()
    with pytest.raises(unseen.UsageError, match="no weights"):
        unseen.cosines(tmp_path / "none", trial=records["own"])


def test_a_task_without_functions(tmp_path: Path) -> None:
    runs = unseen.train(
        unseen.task("retrieval/T1", length=3, train_size=50, evaluation_size=20),
        "retrieval-lstm",
        seeds=1,
        progress="none",
        **RECIPE,
    )
    with pytest.raises(unseen.UsageError, match="no cosines between functions: it is about tasks with tables"):
        unseen.cosines(runs, seed=0)
