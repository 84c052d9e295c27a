"""The section *Inside* and its figures against numbers worked out by hand, on stores with made-up numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr, t

from support.store_builder import build
from unseen.analysis.rank_correlation import correlate_ranks
from unseen.randomness import stream
from unseen.report.data import Source
from unseen.report.figures import figure
from unseen.report.inside_scores import relate_ablation, tabulate_inside
from unseen.report.page import page
from unseen.report.sections.inside import describe_source
from unseen.tasks import task
from unseen.tasks.base import Task

FACTOR = "variable,site,position"


def inside_numbers(levels: Mapping[str, Any], seed: int) -> dict[Any, float]:
    numbers: dict[Any, float] = {("iid", "accuracy"): 0.9, ("ood/single", "accuracy"): 0.8}
    for position, probed, followed in (("all", 0.5, 1.0), ("second_position[0]", 0.7, 0.6)):
        level = f"first_position[0],encoder.state,{position}"
        numbers["ood/single", "probes/accuracy", FACTOR, level] = probed + 0.02 * seed
        numbers["ood/single", "interchange/accuracy", FACTOR, level] = followed - 0.01 * seed
    return numbers


def test_means_intervals_and_sentences(tmp_path: Path) -> None:
    source = Source.read(build(tmp_path, metrics=inside_numbers, seeds=range(3)))
    table = tabulate_inside(source.records, [], "best").set_index(["measure", "position"])
    row = table.loc[("probes/accuracy", "second_position[0]")]
    half = t.ppf(0.975, 2) * 0.02 / np.sqrt(3)
    assert (row["mean"], row["low"], row["high"]) == pytest.approx((0.72, 0.72 - half, 0.72 + half))
    first, last = describe_source(source)
    assert "first_position[0] is read off best at encoder.state, second_position[0]: 0.720 [" in first
    assert "answers follow its exchange most often at encoder.state, second_position[0]: 0.590 [" in first
    assert "does not allow for that choice" in last
    drawing = figure("inside/variable").draw(source)
    assert drawing is not None and len(drawing.data) == 4
    assert any(note.startswith("ood/single: no value is unseen") for note in drawing.notes)
    assert figure("inside/ablation").draw(source) is None
    html = page(source)
    assert '<section id="inside"' in html and "is read off best at" in html and "inside/variable" in html


def test_without_such_records_there_is_no_section(tmp_path: Path) -> None:
    html = page(Source.read(build(tmp_path)), figures=())
    assert '<section id="inside"' not in html and 'href="#inside"' not in html


DROPS = {"truth": 0.3, "joint": 0.1}


def module_numbers(levels: Mapping[str, Any], seed: int) -> dict[Any, float]:
    task_seed, gating = levels["task_seed"], levels["gating"]
    alignment = 0.0 if gating == "truth" else 0.5 - 0.1 * task_seed
    drop = DROPS[gating] + 0.01 * task_seed * (1 if gating == "joint" else 2) + 0.001 * seed
    return {
        ("iid", "accuracy"): 0.9,
        ("iid", "ablation/mean_drop"): drop,
        ("iid", "specialization/alignment"): alignment,
    }


def module_task(levels: Mapping[str, Any]) -> Task:
    return task("rules/mlp", task_seed=levels["task_seed"])


def test_ablation_is_related_to_specialization_by_task(tmp_path: Path) -> None:
    axes = {"gating": ["joint", "truth"], "task_seed": [0, 1, 2, 3]}
    store = build(tmp_path, axes=axes, metrics=module_numbers, seeds=range(2), task=module_task)
    source = Source.read(store)
    relation = relate_ablation(source.records, "best", "iid", source.axes)
    assert relation is not None
    differences = np.array([0.2 + 0.01 * number for number in range(4)])
    assert relation.means["truth", "joint"] == pytest.approx(differences.mean())
    half = t.ppf(0.975, 3) * differences.std(ddof=1) / 2
    assert relation.paired["truth", "joint"].low == pytest.approx(differences.mean() - half)
    # More aligned is smaller: with every task the loss rises as alignment falls. Given routing has no spread to rank.
    assert relation.ranks is not None and relation.ranks.rho == pytest.approx(-1)
    assert relation.ranks.units == 4 and relation.ranks.p_below == pytest.approx(1 / 24, abs=0.02)
    assert any("paired by task, n = 4" in sentence for sentence in describe_source(source))
    drawing = figure("inside/ablation").draw(source)
    assert drawing is not None and set(drawing.data["configuration"]) == {"joint", "truth"}


def test_the_correlation_is_spearmans() -> None:
    first, second = [3.0, 1.0, 4.0, 1.0, 5.0], [2.0, 7.0, 1.0, 8.0, 2.0]
    result = correlate_ranks([(first, second)], stream("test", "ranks").block(), 2_000)
    assert result.rho == pytest.approx(spearmanr(first, second).statistic)
    assert result.p_below + result.p_above >= 1
