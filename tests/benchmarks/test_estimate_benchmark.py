"""The benchmark of the estimate: which studies, and what is compared with what."""

from __future__ import annotations

import json

import pytest
from benchmarks.estimate import STUDIES, Spent, estimate
from benchmarks.rows import Asked

from benchmarks import estimate as room
from unseen.errors import CheckFailed
from unseen.studies.study import study


def test_the_studies_are_of_three_families_and_have_the_scale() -> None:
    found = [name.partition("@") for name in STUDIES]
    assert len({name.split("-")[0] for name, _, _ in found}) == 3
    assert all(scale in study(name).scales for name, _, scale in found)


@pytest.fixture
def asked_for(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Commands that were called: plans say 10 s on the clock and 16 s of one core, runs take 12 s and 20 s."""
    calls: list[list[str]] = []

    def command(*arguments: str) -> tuple[str, Spent]:
        calls.append(list(arguments))
        said = json.dumps({"wall_seconds": 10.0, "core_seconds": 16.0})
        return (said, Spent(3.0, 2.0)) if arguments[0] == "plan" else ("", Spent(12.0, 20.0))

    monkeypatch.setattr(room, "_unseen", command)
    monkeypatch.setattr(room, "cores", lambda: 2)
    return calls


def test_what_is_real_is_compared_with_what_was_estimated(asked_for: list[list[str]]) -> None:
    rows = {row.figure: row.value for row in estimate(Asked(study="my-study@mini"))}
    assert rows == {
        "planning": 3,
        "estimated time": 10,
        "real time": 12,
        "real over estimated time": 1.2,
        "estimated core time": 16,
        "real core time": 20,
        "real over estimated core time": 1.25,
    }
    plan, run = asked_for
    given = ["my-study", "--scale", "mini", "--workers", "2"]
    assert plan == ["plan", *given, "--format", "json"] and run[:-1] == ["run", *given, "--out"]


def test_several_studies_the_three_or_the_first(asked_for: list[list[str]]) -> None:
    for asked, wanted in (
        (Asked(study="a@mini,b"), ["a@mini", "b"]),
        (Asked(), list(STUDIES)),
        (Asked(quick=True), list(STUDIES[:1])),
        (Asked(only="rules"), ["rules-main@smoke"]),
    ):
        assert list(dict.fromkeys(row.case for row in estimate(asked))) == wanted


def test_a_command_gives_its_words_and_its_times_and_says_why_it_failed() -> None:
    said, spent = room._unseen("tasks")
    assert "retrieval/T6" in said and min(spent) > 0
    with pytest.raises(CheckFailed, match="unknown study 'no-such-study'"):
        room._unseen("plan", "no-such-study")
