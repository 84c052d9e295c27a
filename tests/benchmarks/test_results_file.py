"""Figures as a file, what has changed since another, which targets are met, and the page about it all."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.compare_runs import compare
from benchmarks.page import page
from benchmarks.results_file import SavedResults
from benchmarks.rows import Row
from benchmarks.targets import Target, judged

from unseen.errors import UsageError

STEP = Row("m batch=1", "stacked S=4", 10.0, "ms", "less", 9.8, 10.2, 7)
SHARE = Row("m batch=1", "product share S=4", 0.4, "", "more", 0.39, 0.41, 7, "a note")


def saved(*rows: Row, **given: object) -> SavedResults:
    return SavedResults(
        {"cpu": "C", "cores": 2, "load": [0.1, 0.2]},
        "2026-01-01 00:00 UTC",
        {"benchmarks": ["steps"], "only": "", "study": "", "quick": False},
        {"steps": list(rows)},
        **given,
    )  # type: ignore[arg-type]


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    file, made = tmp_path / "x.json", saved(STEP, SHARE, interrupted="in steps")
    file.write_text(made.text(), encoding="utf-8")
    assert SavedResults.read(file) == made and json.loads(made.text())["format"] == 2
    assert "interrupted" not in json.loads(saved(STEP).text()), "a whole run does not look like a part"
    assert json.loads(saved().text())["figures"] == {"steps": []}


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("{", "no JSON"),
        ('{"format": 3, "figures": {}}', "format 3"),
        ('{"machine": {}, "figures": {}}', "no format"),
        ("[]", "no format"),
        ('{"format": 2, "figures": {}}', "damaged"),
        ('{"format": 2, "machine": {}, "date": "", "asked": {}, "figures": {"steps": [{"cas": "m"}]}}', "damaged"),
    ],
)
def test_other_files_are_refused_by_name(text: str, wrong: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(UsageError, match=rf"x\.json.*{wrong}"):
        SavedResults.read(tmp_path / "x.json")


def moved(row: Row, times: float, spread: float = 0.02) -> Row:
    value = row.value * times
    return replace(row, value=value, low=value * (1 - spread), high=value * (1 + spread))


@pytest.mark.parametrize(
    ("times", "spread", "told"),
    [
        (1.05, 0.0, False),  # small
        (1.3, 0.02, True),
        (0.7, 0.02, True),
        (1.3, 0.4, False),
    ],
)  # the middle halves of the rounds meet
def test_a_change_is_told_beyond_noise(times: float, spread: float, told: bool) -> None:
    found = compare({"steps": [moved(STEP, times, spread)]}, {"steps": [STEP]})
    assert (len(found.changed), found.same) == ((1, 0) if told else (0, 1))


def test_the_worst_comes_first_and_more_can_be_better() -> None:
    count = Row("m batch=1", "calls", 10.0, "")
    now = {"steps": [moved(STEP, 0.5), moved(SHARE, 0.5), moved(count, 3.0), Row("m", "new", 1.0, "")]}
    found = compare(now, {"steps": [STEP, SHARE, count, Row("m", "old", 1.0, "")], "other": [STEP]})
    assert [(one.now.figure, one.word) for one in found.changed] == [
        (SHARE.figure, "worse"),
        (STEP.figure, "better"),
        ("calls", "other"),
    ]
    assert found.missing == (("steps", "m", "old"),) and found.new == (("steps", "m", "new"),)


def test_the_worst_row_decides_a_target() -> None:
    least = Target("shares", "steps", "m *", "product share S=*", "≥", 0.5)
    most = Target("times", "steps", "m *", "stacked S=*", "≤", 10.0)
    rows = {"steps": [SHARE, replace(SHARE, figure="product share S=16", value=0.6), STEP]}
    first, second, third = judged(rows, [least, most, replace(least, benchmark="machine")])
    assert (first.word, first.row, second.word, third.word) == ("missed", SHARE, "met", "not measured")


def test_the_page_says_what_was_measured_and_loads_nothing() -> None:
    rows = [
        STEP,
        SHARE,
        replace(SHARE, figure="speed-up S=4"),
        replace(SHARE, figure="roofline share S=4"),
        Row("m batch=1", "left out S=64", 3.0, "s"),
        Row("<b>", "plain loop", 1.0, "ms"),
    ]
    made = saved(*rows, interrupted="in steps, after m")
    made.figures["growth"] = [Row("m over batch", f"batch={n}", n / 10, "ms") for n in (1, 2, 4)] + [
        Row("m over batch", "exponent", 1.0, "")
    ]
    text = page(made, saved(moved(STEP, 2.0)))
    assert "not whole: it ended in steps, after m" in text and "1 figures changed beyond noise" in text
    assert "left out: S=64" in text and "exponent 1.00" in text and "How time grows" in text
    assert "<b>" not in text and 'http-equiv="Content-Security-Policy"' in text
    for outside in ('src="http', "src='http", "<link"):
        assert outside not in text


def test_a_page_without_figures_is_a_page() -> None:
    assert "How fast it is here" in page(saved())
