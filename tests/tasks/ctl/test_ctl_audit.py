"""Foreign examples, artefacts, and the ceilings of baselines against brute-force counts in a small language."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.ctl_worlds import PUBLISHED, STAGED, make, published, published_examples
from support.program import inside, outside
from unseen.errors import CheckFailed, UsageError
from unseen.tasks.base import Examples, Mismatch
from unseen.tasks.ctl import read_examples, write_json_lines
from unseen.tasks.ctl.audit import token_ceilings
from unseen.tasks.ctl.encode import Chains, encode
from unseen.tasks.ctl.unranking import walk_probabilities
from unseen.tasks.verify import verify

SPLITS = {"train": "train", "iid": "iid", "pairs": "train", "ood": "ood/transition"}


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
        {"functions": functions, "symbol": symbol, "target": target, "condition": split}
        for part, split in SPLITS.items()
        for functions, symbol, target in published_examples(name, part)
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
        "the split",
        "k after e (a1 → b2) is no training transition",
    ),
    (
        {"functions": ["g", "e"], "symbol": 0, "target": 0, "condition": "ood/transition"},
        "the split",
        "g after e (a1 → a2) is no test transition",
    ),
    (
        {"functions": ["a", "e"], "symbol": 2, "target": 3, "condition": "iid"},
        "the split",
        "a after e (a1 → o) is no training transition at symbol 3",
    ),
    (
        {"functions": ["e", "g"], "symbol": 0, "target": 0, "condition": "train"},
        "the split",
        "g comes first, but no training example starts in group a2",
    ),
    (
        {"functions": ["e"], "symbol": 0, "target": 0, "condition": "train"},
        "the split",
        "its length is 1; this split has the lengths 2, 3, 4, 5, 6",
    ),
    (
        {"functions": ["e", "g", "e"], "symbol": 0, "target": 0, "condition": "train"},
        "the split",
        "e comes last, but no training example ends in group a1",
    ),
    (
        {"functions": ["g", "a"], "symbol": 0, "target": 0, "condition": "ood/loops"},
        "the split",
        "g is of group a2, a of o; loops stay in one group",
    ),
    ({"functions": [], "symbol": 0, "target": 0, "condition": "ood/loops"}, "the split", "its length is 0"),
    (
        {"functions": ["g", "e"], "symbol": 0, "target": 0, "condition": "ood/bridge"},
        "the split",
        "g after e (a1 → a2) is no bridge transition",
    ),
    (
        {"functions": ["a", "e"], "symbol": 0, "target": 0, "condition": "ood/symbols"},
        "the split",
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


def test_one_line_may_have_a_wrong_target_and_an_illegal_transition(world: Path, tmp_path: Path) -> None:
    row = {"functions": ["k", "e"], "symbol": 0, "target": 0, "condition": "train"}
    found = make("ctl/S").judge(write(tmp_path / "x.jsonl", [row]), world=world)
    assert found.mismatches[0] == Mismatch(1, "0", "1")
    assert found.mismatches[1].what == "the split" and found.mismatches[1].given == "train"


def test_written_examples_of_every_split_are_judged_right(tmp_path: Path) -> None:
    task = make("ctl/S", **STAGED)
    for split in task.splits:
        path = tmp_path / "own.jsonl"
        write_json_lines(task.sample(split, 20), task.actual_world, split, path)
        found = task.judge(path)
        assert found.mismatches == () and "its own world (task seed 0)" in found.note
    parsed = read_examples(path, task.actual_world)
    assert [len(example.functions) for example in parsed] == [1] * 20  # the last split has single functions


@pytest.mark.parametrize("key", ["condition", "split"])
def test_the_split_of_an_example_has_two_accepted_keys(key: str, world: Path, tmp_path: Path) -> None:
    row = {"functions": ["k", "e"], "symbol": 0, "target": 1, key: "train"}
    judgement = make("ctl/S").judge(write(tmp_path / "x.jsonl", [row, {**row, key: "ood/transition"}]), world=world)
    assert [(mismatch.line, mismatch.what) for mismatch in judgement.mismatches] == [(1, "the split")]


def test_examples_are_written_with_the_key_condition(tmp_path: Path) -> None:
    task = make("ctl/S", **STAGED)
    write_json_lines(task.sample("iid", 2), task.actual_world, "iid", tmp_path / "iid.jsonl")
    records = [json.loads(line) for line in (tmp_path / "iid.jsonl").read_text().splitlines()]
    assert [list(record) for record in records] == [["functions", "symbol", "target", "condition"]] * 2
    assert {record["condition"] for record in records} == {"iid"}


FORMS = {
    "not JSON": ("{", "line 2: expected one JSON object per line"),
    "a list": ("[]", "line 2: expected an object with the keys functions, symbol, target"),
    "a missing key": ('{"functions": ["e"], "symbol": 0}', "line 2: expected an object with the keys"),
    "an odd key": ('{"functions": ["e"], "symbol": 0, "target": 0, "goal": 1}', "line 2: expected an object"),
    "an unknown function": ('{"functions": ["z"], "symbol": 0, "target": 0}', "line 2: the world has no function 'z'"),
    "functions as text": ('{"functions": "e", "symbol": 0, "target": 0}', "line 2: 'functions' must be a list"),
    "an unknown symbol": ('{"functions": ["e"], "symbol": 4, "target": 0}', "line 2: expected a symbol, 0 … 3"),
    "a boolean": ('{"functions": ["e"], "symbol": true, "target": 0}', "line 2: expected a symbol"),
    "a split that is no name": ('{"functions": ["e"], "symbol": 0, "target": 0, "condition": 1}', "must be a name"),
    "a split as a number": ('{"functions": ["e"], "symbol": 0, "target": 0, "split": 1}', "'split' must be a name"),
    "an unknown split": (
        '{"functions": ["e"], "symbol": 0, "target": 0, "condition": "ood/loop"}',
        "line 2: unknown split 'ood/loop'. Did you mean 'ood/loops'",
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


def test_missing_and_empty_files_and_unknown_companions(world: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        make("ctl/S").judge(tmp_path / "none.jsonl", world=world)
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(CheckFailed, match="the file is empty"):
        make("ctl/S").judge(tmp_path / "empty.jsonl", world=world)
    with pytest.raises(UsageError, match="come with a world file at most, not with mapping"):
        make("ctl/S").judge(tmp_path / "empty.jsonl", mapping=world)


def test_verify_command_reports_mismatches_by_line(world: Path, tmp_path: Path) -> None:
    bad = [
        {"functions": ["g", "e"], "symbol": 2, "target": 0, "condition": "train"},
        {"functions": ["k", "e"], "symbol": 0, "target": 1, "condition": "train"},
    ]
    path = write(tmp_path / "x.jsonl", [*rows("S_4_12_o4_k1"), *bad])
    command = ["verify", "ctl/S", "--data", path, "--world", world]
    done = outside(*command)
    assert done.returncode == 1
    assert f"{path}, line 201: the answer is 0, ctl/S says 3" in done.stdout
    assert f"{path}, line 202: the split is train, ctl/S says k after e (a1 → b2) is no training" in done.stdout
    assert "200 of 202 answers agree" in done.stdout
    write(path, [{**row, "target": (row["target"] + 1) % 4} for row in rows("S_4_12_o4_k1")[:25]])
    many = inside(*command)
    assert "line 20: the answer" in many.stdout and "… and 5 more, lines 21, 22, 23, 24, 25\n" in many.stdout
    alone = inside(*command[:2], *command[-2:])
    assert alone.returncode == 2 and "--world goes with --data FILE" in alone.stderr


TINY = {"symbols": 4, "functions": 7, "train_size": 60, "iid_size": 5, "ood_size": 5}


def counted(examples: Examples, weight: np.ndarray, symbols: int, functions: int) -> dict[str, float]:
    """The same accuracies by counting: columns one by one, answers one by one."""
    answers, tokens = examples.targets, examples.inputs["token"]
    total = np.array([weight[answers == t].sum() for t in range(symbols)])
    columns, places = [], []
    for place in range(1, tokens.shape[1]):
        here = tokens[:, place]
        token = [
            np.array([weight[(here == v) & (answers == t)].sum() for t in range(symbols)])
            for v in range(symbols + functions)
        ]
        columns += token
        places.append(sum(part.max() for part in token) + (total - sum(token)).max())
    for v in range(symbols + functions):
        occurs = (tokens == v).any(1)
        columns.append(np.array([weight[occurs & (answers == t)].sum() for t in range(symbols)]))
    best = max(column.max() + (total - column).max() for column in columns)
    return {"majority": float(total.max()), "single-feature": float(best), "bag-of-tokens": float(max(places))}


@pytest.mark.parametrize("order", ["backward", "forward"])
@pytest.mark.parametrize("sampling", ["uniform", "stepwise"])
@pytest.mark.parametrize(("name", "options"), [("ctl/S", {"bridge": 3, "shared": 2}), ("ctl/A", {"bijective": False})])
def test_token_ceilings_equal_brute_force_counts(name: str, options: dict[str, Any], sampling: Any, order: Any) -> None:
    task = make(name, **TINY, **options, order=order)
    world = task.actual_world
    enumeration = task.split_sources["train"].examples.enumeration
    counts = {length: count for length, count in {2: 30, 3: 20, 4: 50}.items() if enumeration.total(length)}
    parts, weights = [], []
    for length, count in counts.items():
        walks = enumeration.unrank(np.arange(enumeration.total(length)), length)
        chance = (
            walk_probabilities(enumeration, walks)
            if sampling == "stepwise"
            else np.full(len(walks[0]), 1 / len(walks[0]))
        )
        parts.append(Chains.from_walks(walks))
        weights.append(chance * count / sum(counts.values()))
    examples = encode(world, task.trained_entries, order, Chains.concat(parts))
    expected = counted(examples, np.concatenate(weights), 4, 7)
    assert token_ceilings(enumeration, counts, sampling, order) == pytest.approx(expected)


def test_majority_ceiling_is_chance_for_bijective_tables() -> None:
    found = make("ctl/A").ceilings("train")
    assert found["majority"] == pytest.approx(1 / 8) and found["bag-of-tokens"] < 0.13
    uneven = make("ctl/A", bijective=False).ceilings("train")
    assert uneven["majority"] > 0.14


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ctl/A", {}),
        ("ctl/A", {"bijective": False}),
        ("ctl/S", {"functions": 12, "bridge": 4, "max_length": 6}),
        ("ctl/S", {"functions": 12, "bridge": 4, "max_length": 6, "preset": "released"}),
        ("ctl/lengths", {"generator": "dubois"}),
    ],
    ids=str,
)
def test_verify_passes(name: str, options: dict[str, Any]) -> None:
    small = (
        {}
        if name == "ctl/lengths"
        else {"symbols": 4, "functions": 8, "train_size": 2_000, "iid_size": 200, "ood_size": 300, "shared": 1}
        | options
    )
    if name == "ctl/A":
        del small["shared"]
    report = verify(make(name, **(small or options)), 1_500)
    assert report.passed, [check for check in report if check.status == "FAIL"]


def test_iid_leak_of_the_released_preset_is_a_known_artefact() -> None:
    task = make("ctl/A", preset="released", symbols=4, functions=8, train_size=2_000)
    leak = [c for c in verify(task, 6_000) if c.name == "artefact included" and c.split == "iid"]
    assert [c.status for c in leak] == ["known"]


def test_a_forbidden_transition_is_an_undeclared_artefact() -> None:
    task = make("ctl/A", symbols=4, functions=8, train_size=2_000)
    (artefact,) = task.artefacts("train")
    assert [artefact.measure(task.sample(name, 500)) for name in ("train", "iid", "ood/transition")] == [0, 0, 1]
    assert not artefact.known
