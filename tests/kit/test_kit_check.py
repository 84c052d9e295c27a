"""`unseen check`: what is right passes, and every planted fault is found by the check it belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from support import wrong_plugins
from unseen.cli.main import app
from unseen.errors import CheckFailed, UsageError
from unseen.kit import model_checks, plugins
from unseen.kit.check import Rows, check, golden_fingerprints
from unseen.kit.model_checks import CHECKS
from unseen.kit.plugins import REGISTRIES, Plugin, PluginKind, find_plugins
from unseen.registry import RegistryEntry

PAGE = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text()
FEW = {name: model_checks.SMALL[name] for name in ("rules/rnn", "ctl/lengths")}


@pytest.fixture(autouse=True)
def few_tasks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two of the small tasks: sequences that grow, and padding."""
    monkeypatch.setattr(model_checks, "SMALL", FEW)
    yield


def registered(monkeypatch: pytest.MonkeyPatch, kind: PluginKind, name: str, target: str) -> str:
    list(REGISTRIES[kind])  # what is installed is read first
    monkeypatch.setitem(REGISTRIES[kind]._entries, name, RegistryEntry(name, f"support.wrong_plugins:{target}", ""))
    return name


def failing(rows: Rows) -> dict[str, str]:
    return {row.check: row.reason for row in rows if row.status == "FAIL"}


def test_a_model_that_is_right_passes_every_check() -> None:
    rows = check("support.wrong_plugins:Right")
    assert [row.check for row in rows] == ["loads", "builds", *CHECKS]
    assert {row.status for row in rows} == {"ok"}, rows
    assert rows[0].plugin == Plugin("model", "support.wrong_plugins:Right", "")
    assert "bit for bit the same alone and among 2 and 5 · 2 tasks" in rows[5].reason


@pytest.mark.parametrize(
    ("name", "found", "said"),
    [
        ("Flat", "answers", r"rules/rnn.*prediction has shape \(4, 10\); expected one tensor of logits.*and on 1 more"),
        ("Mixing", "answers", "depends on the others in its batch"),
        ("OwnDropout", "context", r"randomness of its own. Use ctx.dropout"),
        ("Repeating", "context", "two intermediates called 'encoder.state'"),
        ("Idle", "gradients", r"no gradient reaches 2 of \d+ parameters: unused.weight, unused.bias"),
        ("Leaking", "padding", "^ctl/lengths: the content of the padding of tokens .mask false. changes the answer$"),
        ("Short", "lengths", "positions 'learned' know 10 places"),
        ("Counting", "stack", r"among 2 seeds a run differs from the same run alone by .* after 3 steps"),
        ("Careless", "builds", "talk.bias differs between two models of one seed"),
        ("Crashing", "builds", "IndexError: tuple index out of range"),
        ("Picky", "builds", "it refuses every task; of rules/rnn it says: only for tasks about the weather"),
        ("Nothing", "loads", "there is no 'Nothing' in"),
    ],
)
def test_a_wrong_model_fails_where_it_is_wrong(name: str, found: str, said: str) -> None:
    faults = failing(check(f"support.wrong_plugins:{name}"))
    assert list(faults) == [found], faults
    assert re.search(said, faults[found]), faults[found]
    assert "\n" not in faults[found]


@pytest.mark.parametrize(
    ("target", "found", "said"),
    [
        (
            "WrongSolver",
            "solver",
            r"train: 30 of 300 targets differ, first at 0: generator \[\d\], solver \[\d\] · 4 of 4",
        ),
        (
            "Drifted",
            "golden",
            r"the examples of train, iid, .* are not those declared.*golden = \{.train.: .[0-9a-f]{32}",
        ),
        ("Silent", "words", "describe returns an empty text for an example of train"),
        ("Misnamed", "loads", "registered as 'wrong/name' and calls itself 'wrong/other'"),
        ("Right", "loads", "expected a subclass of unseen.tasks.base.Task"),
    ],
)
def test_a_wrong_task_fails_where_it_is_wrong(
    target: str, found: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {"WrongSolver": "wrong/solver", "Drifted": "wrong/golden", "Silent": "wrong/words"}.get(target, "wrong/name")
    faults = failing(check(registered(monkeypatch, "task", own, target), n=300))
    assert list(faults) == [found], faults
    assert re.search(said, faults[found]), faults[found]


def test_golden_numbers_are_those_of_the_default_options() -> None:
    task = wrong_plugins.Clean()
    assert list(golden_fingerprints(task)) == list(task.splits)
    assert (
        golden_fingerprints(task)
        == golden_fingerprints(wrong_plugins.Clean())
        != golden_fingerprints(wrong_plugins.Clean(width=9))
    )
    assert list(golden_fingerprints(wrong_plugins.Clean(evaluation_size=40))) == list(
        task.splits
    )  # fewer than are looked at


@pytest.mark.parametrize(
    ("target", "name", "found", "said"),
    [
        ("FINE", "fine", None, ""),
        ("ALIKE", "alike", "trials", "variant=one seed=0 and variant=two seed=0 are the same run"),
        ("NO_SMOKE", "no-smoke", "loads", "it has no scale smoke"),
        ("OTHER", "misnamed", "loads", "registered as 'misnamed' and calls itself 'another'"),
        ("UNCLAIMED", "unclaimed", "claims", "unknown claim 'retrieval/C99'"),
        ("FAILING", "failing", "runs", r"the trial at variant=two failed: .*has shape \(4,\); expected"),
        ("Right", "a-class", "loads", "expected a Study"),
    ],
)
def test_studies(target: str, name: str, found: str | None, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = check(registered(monkeypatch, "study", name, target))
    faults = failing(rows)
    assert list(faults) == ([found] if found else []), faults
    assert re.search(said, faults.get(found or "", ""))
    if found is None:
        assert [row.reason for row in rows if row.check in ("trials", "runs")] == [
            "each with an id of its own: smoke 4, mini 4",
            "2 trials of smoke to their end, with measures",
        ]


def test_what_a_name_stands_for() -> None:
    assert find_plugins(["lstm", "quickstart", "retrieval/T1", "lstm"]) == [
        Plugin("model", "lstm", "unseen"),
        Plugin("study", "quickstart", "unseen"),
        Plugin("task", "retrieval/T1", "unseen"),
    ]
    with pytest.raises(UsageError, match=r"is called 'lsmt'\. Did you mean 'lstm'"):
        find_plugins(["lsmt"])


def test_plugins_are_found_by_name_and_by_package(monkeypatch: pytest.MonkeyPatch) -> None:
    there = [Plugin("task", "sums/plain", "unseen-sums"), Plugin("model", "reader", "Reading.kit")]
    monkeypatch.setattr(plugins, "installed_plugins", lambda: there)
    assert find_plugins([]) == there
    assert find_plugins(["unseen_sums"]) == find_plugins(["sums/plain"]) == there[:1]
    assert find_plugins(["reading-kit", "reader"]) == there[1:]
    monkeypatch.setattr(plugins, "installed_plugins", list)
    with pytest.raises(UsageError, match="no plug-ins are installed"):
        find_plugins([])


def test_the_command_shows_a_table_and_ends_with_1_if_something_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    fine = registered(monkeypatch, "study", "fine", "FINE")
    said = CliRunner().invoke(app, ["check", fine, "support.wrong_plugins:Idle"])
    assert isinstance(said.exception, CheckFailed) and str(said.exception) == "1 of 13 checks failed"
    assert "model support.wrong_plugins:Idle\n" in said.output
    assert re.search(r"^  FAIL  gradients +rules/rnn: no gradient reaches", said.output, re.MULTILINE)
    assert re.search(r"^  ok    stack +bit for bit", said.output, re.MULTILINE)
    passed = CliRunner().invoke(app, ["check", fine])
    assert passed.exit_code == 0 and passed.output.startswith("study fine (unseen)\n")
    assert passed.output.endswith("5 checks passed\n")


def test_the_page_names_every_check(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"loads", "builds", *CHECKS}
    names |= {row.check for row in check(registered(monkeypatch, "study", "fine", "FINE"))}
    names |= {row.check for row in check(registered(monkeypatch, "task", "wrong/words", "Silent"), n=300)}
    assert {name for name in names if f"`{name}`" not in PAGE} == set()
