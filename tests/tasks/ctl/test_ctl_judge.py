"""Foreign examples: targets and membership, each fault named by its line, in Python and on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ctl_worlds import PUBLISHED, STAGED, make, published, published_examples

from program import inside, outside
from unseen.errors import CheckFailed, UsageError
from unseen.tasks.base import Mismatch
from unseen.tasks.ctl import read_examples, write_json_lines

CONDITIONS = {"train": "train", "iid": "iid", "pairs": "train", "ood": "ood/transition"}


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def world(tmp_path: Path) -> Path:
    path = tmp_path / "world.json"
    path.write_text(json.dumps(published("S_4_12_o4_k1")))
    return path


def rows(name: str) -> list[dict[str, Any]]:
    return [
        {"functions": functions, "symbol": symbol, "target": target, "condition": condition}
        for split, condition in CONDITIONS.items()
        for functions, symbol, target in published_examples(name, split)
    ]


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_examples_are_right(name: str, tmp_path: Path) -> None:
    world = tmp_path / "world.json"
    world.write_text(json.dumps(published(name)))
    found = make(f"ctl/{name[0]}").judge(write(tmp_path / "all.jsonl", rows(name)), world=world)
    assert (found.examples, found.mismatches, found.note) == (200, (), "")


FAULTS: list[tuple[dict[str, Any], str, str]] = [
    ({"functions": ["g", "e"], "symbol": 2, "target": 0, "condition": "train"}, "the answer", "3"),
    (
        {"functions": ["k", "e"], "symbol": 0, "target": 1, "condition": "train"},
        "the condition",
        "k after e (a1 → b2) is no training transition",
    ),
    (
        {"functions": ["g", "e"], "symbol": 0, "target": 0, "condition": "ood/transition"},
        "the condition",
        "g after e (a1 → a2) is no test transition",
    ),
    (
        {"functions": ["a", "e"], "symbol": 2, "target": 3, "condition": "iid"},
        "the condition",
        "a after e (a1 → o) is no training transition at symbol 3",
    ),
    (
        {"functions": ["e", "g"], "symbol": 0, "target": 0, "condition": "train"},
        "the condition",
        "g comes first, but no training example starts in group a2",
    ),
    (
        {"functions": ["e"], "symbol": 0, "target": 0, "condition": "train"},
        "the condition",
        "it has 1 functions; this condition has 2, 3, 4, 5, 6",
    ),
    (
        {"functions": ["e", "g", "e"], "symbol": 0, "target": 0, "condition": "train"},
        "the condition",
        "e comes last, but no training example ends in group a1",
    ),
    (
        {"functions": ["g", "a"], "symbol": 0, "target": 0, "condition": "ood/loops"},
        "the condition",
        "g is of group a2, a of o; loops stay in one group",
    ),
    ({"functions": [], "symbol": 0, "target": 0, "condition": "ood/loops"}, "the condition", "it has 0 functions"),
    (
        {"functions": ["g", "e"], "symbol": 0, "target": 0, "condition": "ood/bridge"},
        "the condition",
        "g after e (a1 → a2) is no bridge transition",
    ),
    (
        {"functions": ["a", "e"], "symbol": 0, "target": 0, "condition": "ood/symbols"},
        "the condition",
        "a after e (a1 → o) at symbol 0 is not one of these pairs",
    ),
]


@pytest.mark.parametrize(("row", "what", "words"), FAULTS, ids=[words for _, _, words in FAULTS])
def test_every_fault_is_named_with_its_line(
    row: dict[str, Any], what: str, words: str, world: Path, tmp_path: Path
) -> None:
    good = rows("S_4_12_o4_k1")[:3]
    found = make("ctl/S").judge(write(tmp_path / "x.jsonl", [*good, row, *good]), world=world)
    faults = [fault for fault in found.mismatches if fault.what == what]
    assert [fault.line for fault in faults] == [4] and words in faults[0].expected
    assert found.examples == 7


def test_a_wrong_target_and_an_illegal_transition_of_one_line(world: Path, tmp_path: Path) -> None:
    row = {"functions": ["k", "e"], "symbol": 0, "target": 0, "condition": "train"}
    found = make("ctl/S").judge(write(tmp_path / "x.jsonl", [row]), world=world)
    assert found.mismatches[0] == Mismatch(1, "0", "1")
    assert found.mismatches[1].what == "the condition" and found.mismatches[1].given == "train"


def test_own_examples_of_every_condition_are_right(tmp_path: Path) -> None:
    task = make("ctl/S", **STAGED)
    for condition in task.conditions:
        path = tmp_path / "own.jsonl"
        write_json_lines(task.sample(condition, 20), task.actual_world, condition, path)
        found = task.judge(path)
        assert found.mismatches == () and "its own world (task seed 0)" in found.note
    parsed = read_examples(path, task.actual_world)
    assert [len(example.functions) for example in parsed] == [1] * 20  # the last condition has single functions


FORMS = {
    "not JSON": ("{", "line 2: expected one JSON object per line"),
    "a list": ("[]", "line 2: expected an object with the keys functions, symbol, target"),
    "a missing key": ('{"functions": ["e"], "symbol": 0}', "line 2: expected an object with the keys"),
    "an odd key": ('{"functions": ["e"], "symbol": 0, "target": 0, "goal": 1}', "line 2: expected an object"),
    "an unknown function": ('{"functions": ["z"], "symbol": 0, "target": 0}', "line 2: the world has no function 'z'"),
    "functions as text": ('{"functions": "e", "symbol": 0, "target": 0}', "line 2: 'functions' must be a list"),
    "an unknown symbol": ('{"functions": ["e"], "symbol": 4, "target": 0}', "line 2: expected a symbol, 0 … 3"),
    "a boolean": ('{"functions": ["e"], "symbol": true, "target": 0}', "line 2: expected a symbol"),
    "a condition that is no name": ('{"functions": ["e"], "symbol": 0, "target": 0, "condition": 1}', "must be a name"),
    "an unknown condition": (
        '{"functions": ["e"], "symbol": 0, "target": 0, "condition": "ood/loop"}',
        "line 2: unknown condition 'ood/loop'. Did you mean 'ood/loops'",
    ),
}


@pytest.mark.parametrize("fault", FORMS)
def test_faults_of_form_name_the_line(fault: str, world: Path, tmp_path: Path) -> None:
    line, message = FORMS[fault]
    path = tmp_path / "x.jsonl"
    path.write_text('{"functions": ["g", "e"], "symbol": "0", "target": "0"}\n' + line + "\n")
    with pytest.raises(CheckFailed) as caught:
        make("ctl/S").judge(path, world=world)
    assert message in str(caught.value)


def test_files_that_are_not_there(world: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        make("ctl/S").judge(tmp_path / "none.jsonl", world=world)
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(CheckFailed, match="the file is empty"):
        make("ctl/S").judge(tmp_path / "empty.jsonl", world=world)
    with pytest.raises(UsageError, match="come with a world file at most, not with mapping"):
        make("ctl/S").judge(tmp_path / "empty.jsonl", mapping=world)


def test_on_the_command_line(world: Path, tmp_path: Path) -> None:
    bad = [
        {"functions": ["g", "e"], "symbol": 2, "target": 0, "condition": "train"},
        {"functions": ["k", "e"], "symbol": 0, "target": 1, "condition": "train"},
    ]
    path = write(tmp_path / "x.jsonl", [*rows("S_4_12_o4_k1"), *bad])
    command = ["verify", "ctl/S", "--data", path, "--world", world]
    done = outside(*command)
    assert done.returncode == 1
    assert f"{path}, line 201: the answer is 0, ctl/S says 3" in done.stdout
    assert f"{path}, line 202: the condition is train, ctl/S says k after e (a1 → b2) is no training" in done.stdout
    assert "200 of 202 answers agree" in done.stdout
    write(path, [{**row, "target": (row["target"] + 1) % 4} for row in rows("S_4_12_o4_k1")[:25]])
    many = inside(*command)
    assert "line 20: the answer" in many.stdout and "… and 5 more, lines 21, 22, 23, 24, 25\n" in many.stdout
    alone = inside(*command[:2], *command[-2:])
    assert alone.returncode == 2 and "--world goes with --data FILE" in alone.stderr
