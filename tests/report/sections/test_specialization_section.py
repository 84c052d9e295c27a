"""What the page of a model with modules says about them: the answer, the table, and the matrix of a user's model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import Tensor, nn

import unseen
from support.store_builder import build
from unseen.analysis import specialization
from unseen.report.data import Source
from unseen.report.figures import figure
from unseen.report.page import page
from unseen.report.sections.specialization import describe_specialization, tabulate_specialization


class Router(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.router = nn.Linear(width, 3)
        self.out = nn.Linear(3, width)


class Mixture(unseen.Adapter):
    """Three experts, each a row of one matrix."""

    def core(self, width: int) -> nn.Module:
        return Router(width)

    def call(self, core: Any, states: Tensor, mask: Tensor | None, ctx: Any) -> Tensor:
        weights = self.capture_gating(core.router(states).softmax(-1), ctx)
        answer: Tensor = states + core.out(weights) + states.mean(1, keepdim=True)
        return answer


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> unseen.Runs:
    asked = unseen.Evaluation(analyses=("specialization",), examples=50, activation_examples=200, adaptation_examples=2)
    out = tmp_path_factory.mktemp("modules") / "r"
    task = unseen.task("rules/mlp", rules=4)
    return unseen.train(task, Mixture, seeds=2, steps=3, evaluation=asked, out=out, progress="none")


def test_the_page_of_a_users_experts_has_their_collapse_and_alignment(runs: unseen.Runs) -> None:
    table = runs.table
    measured = table[(table.selection == "best") & (table.metric == "specialization/alignment")].value.mean()
    source = Source.read(runs.path)
    text = page(source)
    answer = text[text.index('id="answer"') : text.index('id="design"')]
    assert f"Alignment {measured:.3f}; " in answer and "Collapse-Avg" in answer
    assert f'<td class="number">{measured:.3f}</td>' in answer
    assert "rules/figure2" not in text, "an illustration of the paper is no result of a user"


def test_the_matrix_of_a_users_model_is_drawn_from_its_records(runs: unseen.Runs) -> None:
    drawing = figure("activation").draw(Source.read(runs.path))
    assert drawing is not None
    captured = runs.activations(n=200)
    for seed in runs.seeds:
        weights = captured.activations[runs.options.name, seed]["gating.weights"]
        rules = captured.factors["rule"]
        drawn = drawing.data[drawing.data.seed == seed].drop_duplicates(["rule", "module"])
        for rule in range(4):
            expected = weights[rules == rule].mean(0)
            assert np.allclose(drawn[drawn.rule == rule].weight, expected, atol=1e-3)
        alignment = runs.table[(runs.table.seed == seed) & (runs.table.metric == "specialization/alignment")].value
        assert np.allclose(alignment, specialization(weights, rules, pi=np.full(4, 0.25))["alignment"].value, atol=1e-4)


def test_our_own_models_leave_the_same_records_as_before() -> None:
    asked = unseen.Evaluation(analyses=("specialization",), examples=50, activation_examples=50, adaptation_examples=2)
    task = unseen.task("rules/mlp", rules=2)
    model = unseen.model("rules-mlp", width=8, gating="joint")
    table = unseen.train(task, model, seeds=1, steps=2, evaluation=asked, progress="none").table
    assert not table.metric.str.startswith("activation/").any()


def test_configurations_have_rows_and_metrics_their_range(tmp_path: Path) -> None:
    def metrics(levels: Any, seed: int) -> dict[Any, float]:
        base = 0.25 if levels["gating"] == "joint" else 0.0
        return {("iid", "accuracy"): 0.9, ("iid", "specialization/alignment"): base + 0.01 * seed}

    gatings = ["joint", "truth"]
    source = Source.read(build(tmp_path / "r", axes={"gating": gatings}, metrics=metrics, seeds=range(3)))
    table = tabulate_specialization(source)
    assert table is not None and list(table.metrics.values()) == ["Alignment"]
    assert [(list(row.levels.values()), row.runs) for row in table.rows] == [(["Modular"], 3), (["GT-Modular"], 3)]
    assert table.rows[0].scores["alignment"].startswith("0.260 [0.235, 0.285]")
    assert "Alignment 0.010 to 0.260, depending on the configuration" in describe_specialization(table)
    empty = Source.read(build(tmp_path / "s"))
    assert tabulate_specialization(empty) is None
