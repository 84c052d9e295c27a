"""The answer of an exam: which abilities, above whom, and what was not learned."""

from __future__ import annotations

import pandas as pd
import pytest
from typer.testing import CliRunner

from unseen.cli.main import app
from unseen.report.exam_scores import COLUMNS, ExamResults, exam_table
from unseen.report.sections.exam_answer import describe_exam
from unseen.report.sections.summary import RunCounts, answer

BOUNDS = pd.DataFrame(
    [
        ["in-distribution", "presence", 0.5, "", float("nan"), 1.0],
        ["in-distribution", "order", 0.5, "one feature", 0.78, 1.0],
        ["in-distribution", "tables", 0.25, "", float("nan"), 1.0],
        ["retrieval", "presence", 0.5, "", float("nan"), 1.0],
        ["order tracking", "order", 0.5, "one feature", 0.82, 1.0],
        ["systematicity", "tables", 0.25, "", float("nan"), 1.0],
    ],
    columns=["ability", "test", "chance", "shortcut", "ceiling", "oracle"],
)


def scores(model: str, rows: dict[tuple[str, str], list[tuple[float, int]]]) -> pd.DataFrame:
    """A line per run: {(ability, test): (score, whether it has learned) of each seed}."""
    table = []
    for (ability, test), values in rows.items():
        for seed, (value, learned) in enumerate(values):
            numbers = [seed, value, learned, 0, "mini", "digest", f"{model}{test}{seed}"]
            table.append([model, ability, test, f"task/{test}", "ood", "accuracy", *numbers])
    return pd.DataFrame(table, columns=COLUMNS)


@pytest.fixture
def results() -> ExamResults:
    mine = scores(
        "mine",
        {
            ("in-distribution", "presence"): [(0.99, 1)] * 3,
            ("in-distribution", "order"): [(0.95, 1)] * 3,
            ("in-distribution", "tables"): [(0.26, 0)] * 3,
            ("retrieval", "presence"): [(0.96, 1), (0.97, 1), (0.98, 1)],
            ("order tracking", "order"): [(0.80, 1), (0.81, 1), (0.84, 1)],
            ("systematicity", "tables"): [(0.25, 0)] * 3,
        },
    )
    others = [scores(f"backbone{i}", {("retrieval", "presence"): [(0.9 + 0.04 * i, 1)] * 3}) for i in range(3)]
    return ExamResults(mine, pd.concat(others), BOUNDS, {("mine", "specialization"): "gating.weights"}, ())


def test_abilities_are_named_with_what_they_are_above(results: ExamResults) -> None:
    learned, abilities = describe_exam(results)
    assert learned.startswith("mine has learned 2 of 3 tests in distribution (presence and order).")
    assert "Not learned: tables;" in learned
    shown, _, lacking = abilities.partition("Learned in distribution, but not")
    assert (
        "retrieval (presence): 0.970 [0.583, 0.995] (chance 0.500, beside 3 reference backbones: above 1, level with 2)"
        in shown
    )
    assert "order tracking (order): 0.817" in lacking and "one feature 0.820" in lacking
    assert (
        "Not measured: systematicity (tables) and specialization (the model does not report its gating.weights)."
        in lacking
    )


def test_of_a_model_that_has_learned_nothing_no_ability_is_said_to_be_missing(results: ExamResults) -> None:
    poor = results.scores.assign(learned=0)
    learned, abilities = describe_exam(ExamResults(poor, results.reference, BOUNDS, {}, ()))
    assert learned.startswith("mine has learned 0 of 3 tests in distribution. Not learned: presence, order and tables;")
    assert abilities.startswith("Not measured: retrieval (presence), order tracking (order) and systematicity (tables)")


def test_a_model_that_has_learned_and_shows_nothing_beyond_is_told_so(results: ExamResults) -> None:
    poor = results.scores[results.scores["test"] == "order"]
    _, abilities = describe_exam(ExamResults(poor, results.reference, BOUNDS, {}, ()))
    assert abilities.startswith("It shows none of the abilities above chance and every known shortcut. Learned in")


def test_the_exam_is_the_answer_of_its_page(results: ExamResults) -> None:
    paragraphs = answer([], RunCounts("mini", 9, 9), None, results)
    assert paragraphs[1:] == describe_exam(results)
    assert not any("claim" in text for text in paragraphs)


def test_the_command_prints_the_same_table(results: ExamResults, monkeypatch: pytest.MonkeyPatch) -> None:
    table = exam_table(results)
    table.attrs |= {"notes": (), "page": "report.html"}
    monkeypatch.setattr("unseen.api.exam", lambda *arguments, **options: table)
    monkeypatch.setattr("unseen.cli.exam.check_failures", lambda *arguments: None)
    done = CliRunner().invoke(app, ["exam", "lstm", "--out", "nowhere"], env={"COLUMNS": "300"})
    assert done.exception is None, done.exception
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("retrieval")]
    assert "0.970" in line and "above 1, level with 2" in line
