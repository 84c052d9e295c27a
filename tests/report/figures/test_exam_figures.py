"""The figures and the table of an exam against numbers worked out by hand, on stores with made-up numbers."""

from __future__ import annotations

import json
import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from support.store_builder import build
from unseen.exam import reference as exam_reference
from unseen.exam.exam import ABILITIES, BATTERY, IID, QUESTION
from unseen.report import exam_scores
from unseen.report.charts import ENDED
from unseen.report.data import Source
from unseen.report.figures import figure, figures_of
from unseen.report.page import page
from unseen.tasks import task
from unseen.tasks.base import Task

ROOT = Path(__file__).parents[3]
GATED = "specialization/alignment_normalised"


def world(levels: Mapping[str, Any]) -> Task:
    return task(**BATTERY[levels["test"]]["smoke"].task)


def numbers(levels: Mapping[str, Any], seed: int) -> dict[Any, float]:
    """Inside 0.9, but seed 2 of `states`, which has not learned; outside 0.6 and a tenth more per seed."""
    inside = 0.55 if levels["test"] == "states" and seed == 2 else 0.9
    found = {(split, "accuracy"): 0.6 + 0.1 * seed for split in BATTERY[levels["test"]]["smoke"].splits.values()} | {
        (IID, "accuracy"): inside
    }
    gated = levels["test"] == "sums" and levels["model"] == "modular"
    return found | ({(IID, GATED): 0.25} if gated else {})


def made(path: Path, models: tuple[str, ...], study: str = "exam@1", **more: Any) -> Source:
    return Source.read(
        build(
            path,
            study=study,
            axes={"test": list(BATTERY), "model": list(models)},
            seeds=range(3),
            metrics=numbers,
            task=world,
            scale="smoke",
            **more,
        )
    )


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return made(tmp_path_factory.mktemp("exam") / "store", ("lstm", "modular"))


def reference_like(source: Source) -> pd.DataFrame:
    """As if the LSTM's scores, a tenth lower, were those of a shipped GRU."""
    rows = exam_scores.read_exam(source).scores
    rows = rows[rows["model"] == "lstm"].rename(columns={"model": "backbone"})[list(exam_reference.COLUMNS)]
    return rows.assign(backbone="gru", value=rows["value"] - 0.1)


def test_only_runs_that_have_learned_count_outside(source: Source) -> None:
    found = exam_scores.exam_table(exam_scores.read_exam(source))
    at = found[found["model"] == "lstm"].set_index(["ability", "test"])
    assert at.loc[("length", "states"), "score"] == pytest.approx((0.6 + 0.7) / 2)
    assert at.loc[("length", "states"), ["runs", "learned"]].tolist() == [3, 2]
    assert at.loc[("in-distribution", "states"), "score"] == pytest.approx((0.9 + 0.9 + 0.55) / 3)
    assert at.loc[("systematicity", "tables"), "score"] == pytest.approx(0.7)
    assert at.loc[("systematicity", "tables"), ["chance", "oracle"]].tolist() == [0.25, 1.0]
    assert 0.7 < at.loc[("order tracking", "order"), "ceiling"] < 0.9  # the order-blind answer
    assert ("specialization", "sums") not in at.index


def test_specialization_is_what_alignment_misses(source: Source) -> None:
    scores = exam_scores.read_exam(source).scores
    gated = scores[scores["ability"] == "specialization"]
    assert set(gated["model"]) == {"modular"} and gated["value"].tolist() == [0.75] * 3
    assert exam_scores.read_exam(source).untraced == {("lstm", "specialization"): "gating.weights"}
    assert (
        "specialization needs the activations gating.weights, which lstm does not report."
        in exam_scores.read_exam(source).notes
    )


def test_a_shortcut_is_no_learning(tmp_path: Path) -> None:
    """0.76 is more than half of the way from chance, but less than the order-blind answer."""

    def blind(levels: Mapping[str, Any], seed: int) -> dict[Any, float]:
        return {**numbers(levels, seed), (IID, "accuracy"): 0.76}

    found = exam_scores.read_exam(
        Source.read(
            build(
                tmp_path / "store",
                study="exam@1",
                axes={"test": ["order", "presence"], "model": ["lstm"]},
                metrics=blind,
                task=world,
                scale="smoke",
            )
        )
    )
    assert found.scores.groupby("test")["learned"].max().to_dict() == {"order": 0, "presence": 1}


def test_a_model_stands_above_level_with_or_below_the_references(source: Source) -> None:
    found = exam_scores.read_exam(source, reference_like(source))
    assert not [note for note in found.notes if "reference" in note]
    rows = exam_scores.exam_table(found)
    lstm = rows[rows["model"] == "lstm"].set_index(["ability", "test"])
    # Inside, no two seeds differ; outside, seeds differ by as much as the models do.
    assert lstm.loc[("in-distribution", "tables"), ["standing", "above", "references"]].tolist() == ["above 1", 1, 1]
    assert lstm.loc[("systematicity", "tables"), ["standing", "level", "references"]].tolist() == ["level with 1", 1, 1]
    # Two runs that have learned are too few for a comparison.
    assert lstm.loc[("length", "states"), ["standing", "references"]].tolist() == ["", 0]
    # Three seeds show 3.07 standard deviations, here of 0.1.
    assert lstm.loc[("systematicity", "tables"), "smallest_difference"] == pytest.approx(0.307, abs=0.001)
    higher = exam_scores.read_exam(source, reference_like(source).assign(value=0.99))
    lstm = exam_scores.exam_table(higher).query("model == 'lstm'").set_index(["ability", "test"])
    assert lstm.loc[("systematicity", "tables"), ["standing", "below"]].tolist() == ["below 1", 1]


def test_a_wrong_digest_is_refused(source: Source) -> None:
    reference = reference_like(source)
    reference.loc[reference["test"] == "states", "digest"] = "0" * 16
    found = exam_scores.read_exam(source, reference)
    assert set(found.reference["test"]) == set(BATTERY) - {"states"}
    assert "Not compared with the reference: states there is of another version." in found.notes
    rows = exam_scores.exam_table(found)
    assert set(rows["standing"][rows["test"] == "states"]) == {""}


def test_abilities_figure(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    reference = reference_like(source)
    monkeypatch.setattr(exam_reference, "read", lambda: reference)
    drawing = figure("exam/abilities").draw(source)
    drawing.chart.to_dict()
    at = drawing.data[drawing.data["ability"] == "length"]
    assert at["value"][(at["what"] == "mean") & (at["model"] == "modular")].tolist() == [pytest.approx(0.65)]
    assert at["value"][(at["what"] == "reference")].tolist() == [pytest.approx(0.55)]
    states = drawing.data[(drawing.data["what"] == "run") & (drawing.data["test"] == "states")]
    assert set(states["state"][(states["seed"] == 2) & (states["ability"] == "length")]) == {"not learned"}
    assert set(states["state"][states["ability"] == "in-distribution"]) == {ENDED}
    assert {"chance", "ceiling", "oracle"} <= set(drawing.data["what"])


def test_matrix_figure(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    reference = reference_like(source)
    monkeypatch.setattr(exam_reference, "read", lambda: reference)
    drawing = figure("exam/matrix").draw(source)
    assert '"orient": "bottom"' in json.dumps(drawing.chart.to_dict()), "beside the matrix its title is cut off"
    at = drawing.data.set_index(["model", "ability"])
    assert list(drawing.data["ability"].unique()) == list(ABILITIES)
    # Chance of `tables` is 1/4; of two learned seeds and one unlearned one, `length` has the first two.
    assert at.loc[("lstm", "systematicity"), "score"] == pytest.approx((0.7 - 0.25) / 0.75)
    assert at.loc[("lstm", "length"), "score"] == pytest.approx((0.65 - 0.5) / 0.5)
    # `amplitude` is read from two tests: seeds 0 and 1 have learned both, seed 2 only `sums` (0.8).
    assert at.loc[("lstm", "amplitude"), "score"] == pytest.approx((0.2 + 0.4 + 0.6) / 3)
    assert at.loc[("lstm", "length"), ["text", "doubt"]].tolist() == ["0.30", 1]
    assert at.loc[("lstm", "specialization"), "text"] == "not reported"
    assert at.loc[("gru (reference)", "specialization"), "text"] == "not reported"
    assert at.loc[("modular", "specialization"), "text"] == "0.75"
    assert at.loc[("gru (reference)", "systematicity"), "score"] == pytest.approx((0.6 - 0.25) / 0.75)


def test_not_converged_and_unlearned_are_marked(tmp_path: Path) -> None:
    found = made(
        tmp_path / "store",
        ("lstm",),
        not_converged=lambda levels, seed: levels["test"] == "chains",
        status=lambda levels, seed: "pending" if levels["test"] == "scenes" else "finished",
    )
    frame = figure("exam/matrix").draw(found).data.set_index("ability")
    assert frame.loc["productivity", "text"].endswith(" ○")
    assert "distractors" not in frame.index
    assert any("not converged" in note for note in figure("exam/matrix").draw(found).notes)


def test_an_exam_has_its_own_figures_and_others_have_none(source: Source, tmp_path: Path) -> None:
    assert [one.name for one in figures_of(source)][:2] == ["exam/abilities", "exam/matrix"]
    assert not any(one.name.startswith("gcog/") for one in figures_of(source))
    other = Source.read(build(tmp_path / "other"))
    assert figure("exam/abilities").draw(other) is None and figure("exam/matrix").draw(other) is None


def test_the_page_has_both_figures(source: Source) -> None:
    text = page(source)
    assert QUESTION in text and "exam-abilities" in text and "exam-matrix" in text
    assert "There is no reference yet" in text or not exam_reference.read().empty


def test_the_tool_writes_a_reference_that_can_be_compared_with(source: Source, tmp_path: Path) -> None:
    zoo = made(tmp_path / "zoo", ("gru", "modular"), "exam-zoo@1")
    tool = runpy.run_path(str(ROOT / "docs" / "make_reference.py"))
    tool["main"](str(zoo.directory), tmp_path / "reference.csv")
    tool["main"](str(zoo.directory), tmp_path / "reference.csv")  # a second time replaces its scale
    written = exam_reference.read(tmp_path / "reference.csv")
    assert len(written) == len(exam_scores.read_exam(zoo).scores)
    assert set(exam_scores.read_exam(source, written).reference["model"]) == {"gru", "modular"}
    later = made(tmp_path / "later", ("deltanet", "gru"), "exam-zoo@1")
    tool["main"](str(later.directory), tmp_path / "reference.csv")  # other backbones stay
    lines = exam_reference.read(tmp_path / "reference.csv")
    assert set(lines["backbone"]) == {"modular", "deltanet", "gru"}
    assert not lines.duplicated(["backbone", "ability", "test", "seed"]).any()
    with pytest.raises(SystemExit, match="is made from exam-zoo"):
        tool["main"](str(source.directory), tmp_path / "reference.csv")
