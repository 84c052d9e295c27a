"""The figures of routers and of finite data against numbers worked out by hand, on stores with made-up numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from support import figure_sources as made
from support.store_builder import build
from unseen.report.data import Source
from unseen.report.figures import figure, figures_of
from unseen.report.module_scores import GAP, measure_modules, select_learning_rate
from unseen.tasks import task

SPECIALIZATION = "specialization/alignment_normalised"
ERRORS = {("softmax", 0.001): 0.3, ("softmax", 0.003): 0.2, ("top-1", 0.001): 0.1, ("top-1", 0.003): 0.4}
"""The errors of Modular: the best rate is another for each router."""


def numbers(levels: Mapping[str, Any], seed: int) -> dict[Any, float]:
    rate = levels.get("learning_rate", 0.001)
    along = levels.get("routing", "softmax")
    error = ERRORS[along, rate] if levels["gating"] == "joint" else 0.05
    values = {
        ("iid", "accuracy"): 1 - error - 0.01 * seed,
        ("ood/amplitude=2", "accuracy"): 0.5,
        ("train", "accuracy"): 0.99,
    }
    if levels["gating"] != "none":
        values["iid", SPECIALIZATION] = rate * 100
        values["iid", "specialization/collapse_avg"] = 0.5
    return values


def read(path: Path, axes: Mapping[str, Any]) -> Source:
    no_router = {"none", "truth"}
    return Source.read(
        build(
            path,
            axes={"task": ["rules/mlp"], "model": ["rules-mlp"], **axes},
            metrics=numbers,
            seeds=range(3),
            task=lambda levels: task("rules/mlp", rules=4),
            without=lambda levels: levels["gating"] in no_router and levels.get("routing", "softmax") != "softmax",
        )
    )


def test_routers_are_compared_at_the_best_rate_beside_lines_of_what_has_none(tmp_path: Path) -> None:
    axes = {"gating": ["none", "joint", "truth"], "routing": ["softmax", "top-1"], "learning_rate": [0.001, 0.003]}
    source = read(tmp_path, axes)
    chosen = figure("rules/routers")
    assert chosen in figures_of(source)
    drawing = chosen.draw(source)
    assert drawing is not None
    data = drawing.data
    means = data[data["what"] == "mean"].set_index(["measure", "routing"])
    assert set(means["gating"]) == {"Modular"}
    assert means.loc[("error", "softmax"), "value"] == pytest.approx(0.21)
    assert means.loc[("error", "top-1"), "value"] == pytest.approx(0.11)
    assert means.loc[("relative alignment", "softmax"), "value"] == pytest.approx(0.3)
    assert means.loc[("relative alignment", "top-1"), "value"] == pytest.approx(0.1)
    assert (means["runs"] == 3).all() and means["low"].notna().all()
    text = made.rendered(drawing)
    assert "GT-Modular" in text and "Monolithic" in text and "top-1" in text
    assert "12 of 24 runs are drawn." in drawing.notes
    assert any("learning rate with the least mean error" in note for note in drawing.notes)
    assert figure("rules/data").draw(source) is None


def test_every_gating_is_a_series_where_all_vary_with_the_data(tmp_path: Path) -> None:
    source = read(tmp_path, {"gating": ["none", "joint", "truth"], "train_size": [256, "endless"]})
    drawing = figure("rules/data").draw(source)
    assert drawing is not None
    means = drawing.data[drawing.data["what"] == "mean"]
    errors = means[means["measure"] == "error"]
    assert set(errors["gating"]) == {"Monolithic", "Modular", "GT-Modular"} and len(errors) == 6
    assert set(means["gating"][means["measure"] == "collapse"]) == {"Modular", "GT-Modular"}
    assert figure("rules/routers").draw(source) is None
    # Three runs near a bound have an interval that is longer than the panel: it must not run over the next one.
    intervals = [layer for layer in walk(drawing.chart.to_dict()) if "x2" in layer.get("encoding", {})]
    assert intervals and all(layer["mark"]["clip"] for layer in intervals)


def walk(chart: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A chart and all charts in it."""
    yield chart
    for inner in (*chart.get("layer", ()), *chart.get("concat", ()), *chart.get("vconcat", ())):
        yield from walk(inner)


def test_gaps_and_equal_rates() -> None:
    rows = [
        (f"{rate}", rate, split, "accuracy", value, "best", "")
        for rate in (0.003, 0.001)
        for split, value in (("iid", 0.7), ("train", 0.9))
    ]
    columns = ["trial", "learning_rate", "split", "metric", "value", "selection", "factor"]
    runs = measure_modules(pd.DataFrame(rows, columns=columns).assign(gating="joint"), "best")
    assert runs[GAP].tolist() == pytest.approx([0.2, 0.2])
    assert select_learning_rate(runs, ["gating"])["learning_rate"].tolist() == [0.001]
