"""The figures of the CTL++ paper: what each is drawn from, and that none is drawn from nothing."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from support import figure_sources as made
from support.store_builder import build
from unseen.models import options
from unseen.models.build import build as build_model
from unseen.report.baselines import describe_unseen
from unseen.report.data import Source
from unseen.report.figure import Drawing
from unseen.report.figures.ctl import FIGURES
from unseen.stats import mean_interval
from unseen.studies.trial import Trial
from unseen.tasks import task as make_task
from unseen.tasks.verify.equivalence import find_familiar
from unseen.training.checkpoint import pack_weights
from unseen.training.evaluate import draw_examples

BY_NAME = {one.name: one for one in FIGURES}
MATRICES = ("ctl/figure3", "ctl/figure9", "ctl/figure10", "ctl/figure11")
GRIDS = {"ctl/figure4": "ctl-ndr", "ctl/figure7": "ctl-transformer", "ctl/figure8": "ctl-bilstm"}


def drawn(name: str, of: Source) -> Drawing:
    found = made.quick(BY_NAME[name], of)
    assert found is not None
    return found


def grid_places(
    seeds: int = 3, bridges: tuple[int, ...] = (4, 8), shared: tuple[int, ...] = (2, 3)
) -> list[dict[str, Any]]:
    return [
        {"task": "ctl/S", "model": model, "bridge": o, "shared": k, "seed": seed}
        for model, o, k, seed in product(GRIDS.values(), bridges, shared, range(seeds))
    ]


def grid_numbers(run: made.Run, draws: np.random.Generator) -> dict[Any, float]:
    return {
        ("iid", "accuracy"): 1.0,
        ("ood/transition", "accuracy"): run["bridge"] * run["shared"] / 60 + 0.1 * draws.random(),
    }


def last(of: Source, split: str, metric: str = "accuracy", **levels: Any) -> pd.DataFrame:
    rows = of.records[
        (of.records["selection"] == "last") & (of.records["split"] == split) & (of.records["metric"] == metric)
    ]
    for column, level in levels.items():
        rows = rows[rows[column] == level]
    return rows


def lines(drawing: Drawing) -> dict[str, float]:
    """The references in the panels of a drawing, by name."""
    found = {
        (row["name"], row["reference"])
        for rows in drawing.chart.to_dict()["datasets"].values()
        for row in rows
        if "reference" in row
    }
    return dict(found)


def test_all_that_the_paper_has_numbers_for() -> None:
    assert set(BY_NAME) == {"ctl/table1", "ctl/gap", *(f"ctl/figure{n}" for n in (3, 4, 6, 7, 8, 9, 10, 11))}
    assert [one.origin for one in FIGURES][:2] == ["table 1", "figure 3"]


def test_table1_has_every_seed_its_mean_and_the_printed_value() -> None:
    of = made.ctl_source()
    found = drawn("ctl/table1", of)
    data = found.data
    assert (data["what"] == "run").sum() == 2 * 3 * 4 * 2
    for (task, model), split in product(product(("ctl/A", "ctl/R"), GRIDS.values()), ("iid", "ood/transition")):
        values = last(of, split, task=task, model=model)["value"].to_numpy()
        own = data[(data["task"] == task) & (data["model"] == model) & (data["split"] == split)]
        mean = own[own["what"] == "mean"].iloc[0]
        assert (mean["value"], mean["runs"]) == (pytest.approx(values.mean()), 4)
        assert mean["deviation"] == pytest.approx(values.std(ddof=1))
        assert sorted(own["value"][own["what"] == "run"]) == pytest.approx(sorted(values))
        assert mean["low"] <= mean["value"] <= mean["high"]
    printed = data[data["what"] == "printed"].set_index(["task", "split", "model"])["value"]
    assert printed["ctl/A", "ood/transition", "ctl-ndr"] == 0.34
    assert printed["ctl/R", "ood/transition", "ctl-transformer"] == 0.75
    assert printed["ctl/A", "ood/transition", "ctl-bilstm"] == 0.95
    assert set(printed.xs("iid", level="split")) == {1.0}
    assert lines(found) == {"chance": 0.25, "oracle": 1.0}
    assert "8 of 24 runs have an accuracy below 0.95 in distribution." in found.notes
    assert "Here a world has 8 functions; the paper's has 32." in found.notes
    assert any(note.startswith("ood/transition: unseen: transition") for note in found.notes)
    assert "unseen transitions" in made.rendered(found)


def test_a_figure_says_how_much_of_what_is_unseen_training_has_in_another_form() -> None:
    chosen = make_task("ctl/A", symbols=4, functions=8, max_length=5, train_size=1_000, iid_size=100, ood_size=200)
    familiar = find_familiar(chosen, draw_examples(chosen, "ood/transition", 1_000, "test"))
    assert familiar is not None and familiar.equivalent > 0.5
    iid, note = describe_unseen(chosen, ["iid", "ood/transition"])
    assert f"; {familiar.equivalent:.1%} [" in note and "in another form" in note and "another form" not in iid
    # A question of retrieval has one form: nothing is said.
    (note,) = describe_unseen(make_task("retrieval/T6", length=5), ["ood/single"])
    assert "another form" not in note


def test_the_papers_world_needs_no_warning() -> None:
    of = made.ctl_source(made.ctl_places(seeds=1), task=lambda run: {})
    found = drawn("ctl/table1", of)
    assert not any("functions" in note and "world" in note for note in found.notes)
    assert lines(found) == {"chance": 0.125, "oracle": 1.0}
    assert found.data[found.data["what"] == "mean"]["low"].isna().all()


def test_a_partial_table1_says_what_is_missing() -> None:
    def status(run: made.Run) -> str:
        if run["model"] == "ctl-transformer":
            return "running"
        return "failed" if (run["model"], run["seed"]) == ("ctl-ndr", 0) else "finished"

    of = made.ctl_source(status=status, not_converged=lambda run: int(run["seed"] == 1))
    found = drawn("ctl/table1", of)
    mean = found.data[found.data["what"] == "mean"]
    assert set(mean["model"]) == {"ctl-bilstm", "ctl-ndr"}
    assert set(mean["runs"][mean["model"] == "ctl-ndr"]) == {3} and set(mean["not_converged"]) == {1}
    assert "14 of 24 runs are drawn; 2 failed, 8 have not ended." in found.notes
    assert "Hollow dots: 4 runs had not converged when they ended." in found.notes
    states = found.data[found.data["what"] == "run"]
    assert set(states["seed"][states["state"] == "not converged"]) == {1}
    only = made.ctl_source(made.ctl_places(["ctl/R"]))
    assert set(drawn("ctl/table1", only).data["task"]) == {"ctl/R"}


@pytest.mark.parametrize("name", GRIDS)
def test_grids_have_mean_and_deviation_of_each_setting(name: str) -> None:
    of = made.ctl_source(grid_places(), numbers=grid_numbers)
    found = drawn(name, of)
    assert set(found.data["model"]) == {GRIDS[name]}
    assert found.data[["bridge", "shared"]].to_numpy().tolist() == [[4, 2], [4, 3], [8, 2], [8, 3]]
    for _, trial in found.data.iterrows():
        values = last(of, "ood/transition", model=GRIDS[name], bridge=trial["bridge"], shared=trial["shared"])["value"]
        assert trial["mean"] == pytest.approx(values.mean()) and trial["deviation"] == pytest.approx(values.std())
        assert (trial["runs"], trial["worst"], trial["best"]) == (3, values.min(), values.max())
    assert "Chance is 0.125, an oracle has 1." in found.notes


def test_a_partial_grid_counts_its_runs() -> None:
    of = made.ctl_source(
        grid_places(),
        numbers=grid_numbers,
        status=lambda run: "pending" if run["bridge"] == 8 and (run["shared"] == 3 or run["seed"] > 0) else "finished",
        not_converged=lambda run: int(run["bridge"] == 4 and run["shared"] == 2),
    )
    found = drawn("ctl/figure4", of)
    assert found.data[["bridge", "shared", "runs", "not_converged"]].to_numpy().tolist() == [
        [4, 2, 3, 3],
        [4, 3, 3, 0],
        [8, 2, 1, 0],
    ]
    assert "Squares are means over 1 to 3 runs." in found.notes
    assert "7 of 12 runs are drawn; 5 have not ended." in found.notes
    assert "○: 3 runs had not converged when they ended." in found.notes
    assert "○" in made.rendered(found)


def test_a_grid_without_axes_reads_the_task() -> None:
    of = made.ctl_source(
        [{"task": "ctl/S", "model": "ctl-ndr", "seed": 0}],
        numbers=lambda run, draws: {("iid", "accuracy"): 1.0, ("ood/transition", "accuracy"): 0.7},
        task=lambda run: {"bridge": 12, "shared": 5},
    )
    assert drawn("ctl/figure4", of).data[["bridge", "shared", "mean"]].to_numpy().tolist() == [[12, 5, 0.7]]
    assert BY_NAME["ctl/figure7"].draw(of) is None


def test_figure6_is_of_the_worst_run_that_has_learned() -> None:
    def numbers(run: made.Run, draws: np.random.Generator) -> dict[Any, float]:
        found = made.ctl_numbers(run, draws)
        if (run["model"], run["seed"]) == ("ctl-ndr", 3):  # worse, but it has not learned
            found |= {("iid", "accuracy"): 0.4, ("ood/transition", "accuracy"): 0.1}
        return found

    of = made.ctl_source(numbers=numbers)
    outside = last(of, "ood/transition", task="ctl/R", model="ctl-ndr")
    worst = outside[outside["seed"] != 3].sort_values("value").iloc[0]
    found = drawn("ctl/figure6", of)
    assert set(found.data["trial"]) == {worst["trial"]}
    assert found.data["part"].value_counts().to_dict() == {"cluster,symbol": 12, "transition,symbol": 8}
    records = of.records[(of.records["trial"] == worst["trial"]) & (of.records["selection"] == "last")]
    for _, row in found.data.iterrows():
        level = f"{row['first']}→{row['second']},{row['symbol']}"
        own = records[(records["factor"] == row["part"]) & (records["level"] == level)]
        assert own["value"].tolist() == [row["value"]]
    assert f"seed {worst['seed']}" in found.notes[0] and f"{worst['value']:.3f}" in found.notes[0]
    assert "group a" in made.rendered(found)


def test_figure6_without_clusters_draws_the_groups() -> None:
    of = made.ctl_source(
        numbers=lambda run, draws: {
            key: value for key, value in made.ctl_numbers(run, draws).items() if "cluster,symbol" not in key
        }
    )
    found = drawn("ctl/figure6", of)
    assert set(found.data["part"]) == {"transition,symbol"}
    assert "This store has no numbers for the first function by cluster." in found.notes


def test_gaps_stand_against_the_accuracy_of_the_same_run() -> None:
    of = made.ctl_source()
    found = drawn("ctl/gap", of)
    assert set(found.data["metric"]) == {"representation/gap", "representation/cluster_gain"}
    gap = found.data[found.data["metric"] == "representation/gap"]
    assert len(gap) == 24
    outside = last(of, "ood/transition").set_index("trial")["value"]
    assert gap["ood"].to_numpy() == pytest.approx(outside[gap["trial"]].to_numpy())
    assert gap["value"].to_numpy() == pytest.approx(0.3 - 0.3 * gap["ood"].to_numpy())
    assert set(gap["learned"][gap["model"] == "ctl-transformer"]) == {0}
    assert any(note.startswith("Faint: 8 of 24 runs") for note in found.notes)
    assert "Groups apart" in made.rendered(found)


def test_nothing_gives_none() -> None:
    pending = made.ctl_source(status=lambda run: "pending")
    other = made.rules_source(made.rules_places(["mlp"], ["classification"], rules=(2,), tasks=1))
    for name, one in BY_NAME.items():
        assert one.draw(pending) is None and one.draw(other) is None, name
        if name in MATRICES:
            assert one.draw(made.ctl_source()) is None  # there is no store, so there are no weights


SMALL = {"symbols": 4, "functions": 8, "max_length": 3, "train_size": 150, "iid_size": 40, "ood_size": 100}


def store(path: Path, kept: tuple[str, ...], damage: bool = False) -> Source:
    """Three untrained NDRs on A and on R with made-up scores, and their weights."""

    def weights(trial: Trial) -> dict[str, bytes]:
        found = {}
        for selection in kept:  # the best weights are others than the last
            module = build_model(trial.model, trial.task.spec, trial.seed + 100 * (selection == "best"))
            state = {name: tensor.detach() for name, tensor in [*module.named_parameters(), *module.named_buffers()]}
            found[selection] = pack_weights(state)
        return found

    build(
        path,
        axes={"task": ["ctl/A", "ctl/R"], "model": ["ctl-ndr"]},
        seeds=range(3),
        task=lambda levels: make_task(levels["task"], **SMALL),
        model=lambda levels: options("ctl-ndr", width=16, feedforward=16, layers=2, heads=2, extra_layers=0),
        metrics=lambda levels, seed: {("iid", "accuracy"): 1.0, ("ood/transition", "accuracy"): 0.4 + 0.2 * seed},
        weights=weights,
    )
    if damage:
        for file in (path / "weights").iterdir():
            file.write_bytes(b"damaged")
    return Source.read(path)


def test_cosines_are_those_of_the_weights_that_are_kept(tmp_path: Path) -> None:
    import unseen

    of = store(tmp_path / "kept", ("best", "last"))
    task = make_task("ctl/R", **SMALL)
    world = task.actual_world  # type: ignore[attr-defined]
    for name, on, seed in (("ctl/figure9", "ctl/R", 2), ("ctl/figure10", "ctl/R", 0), ("ctl/figure11", "ctl/A", 0)):
        found = drawn(name, of)
        trial = of.runs["trial"][(of.runs["task"] == on) & (of.runs["seed"] == seed)].iloc[0]
        assert set(found.data["trial"]) == {trial}
        assert f"on {on}, seed {seed}" in found.notes[0]
        plain = unseen.cosines(tmp_path / "kept", trial=trial, selection="last")
        table = found.data.pivot(index=["symbol", "first"], columns="second", values="cosine")
        names = [str(one) for one in world.names]
        for place, symbol in enumerate(world.symbols):
            own = table.loc[str(symbol)].reindex(index=names, columns=names).to_numpy()
            np.testing.assert_allclose(own, plain[place], atol=6e-5)
        group = {function: kind for kind, functions in world.groups.items() for function in functions}
        assert (found.data["first_group"] == found.data["first"].map(group)).all()
    assert "agreement with groups" in made.rendered(found)


def test_figure3_shows_the_symbols_that_agree_most_and_least_with_the_groups(tmp_path: Path) -> None:
    of = store(tmp_path / "kept", ("best",))
    found, whole = drawn("ctl/figure3", of), drawn("ctl/figure10", of)
    agreement = whole.data.groupby("symbol")["agreement"].first()
    shown = found.data.groupby("symbol")["agreement"].first()
    assert len(shown) == 2
    assert (shown.max(), shown.min()) == (agreement.max(), agreement.min())
    assert any("has the best weights only" in note for note in found.notes)
    assert found.notes[1] == "probe/singles: no value is unseen (every function alone, at every symbol)"


def test_without_weights_or_with_damaged_ones_there_are_no_matrices(tmp_path: Path) -> None:
    for of in (store(tmp_path / "none", ()), store(tmp_path / "damaged", ("last",), damage=True)):
        assert all(BY_NAME[name].draw(of) is None for name in MATRICES)
        assert BY_NAME["ctl/table1"].draw(of) is not None


def test_intervals_are_student_s() -> None:
    of = made.ctl_source()
    values = last(of, "ood/transition", task="ctl/R", model="ctl-ndr")["value"].to_numpy()
    plain = mean_interval(values)
    data = drawn("ctl/table1", of).data
    own = data[
        (data["what"] == "mean")
        & (data["task"] == "ctl/R")
        & (data["model"] == "ctl-ndr")
        & (data["split"] == "ood/transition")
    ].iloc[0]
    assert (own["low"], own["high"]) == pytest.approx((max(plain.low, 0), min(plain.high, 1)))
