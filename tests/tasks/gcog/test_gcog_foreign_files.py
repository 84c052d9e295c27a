"""Foreign examples: every defect is named with its line."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from support.gcog_cases import PUBLISHED
from unseen.cli.main import app
from unseen.errors import CheckFailed, UsageError
from unseen.tasks import task
from unseen.tasks.gcog.schema import STANDARD

LEAF = {"op": "Exist", "objects": [{"shape": "a", "color": "red"}]}
GOOD: dict[str, Any] = {
    "tree": {
        "if": LEAF,
        "then": {"op": "GetColor", "objects": [{"shape": "b", "color": None}]},
        "else": {"op": "GetLocation", "objects": [{"shape": "c", "color": "blue"}]},
    },
    "objects": [
        {"shape": "a", "color": "red", "x": 0, "y": 1},
        {"shape": "b", "color": "green", "x": 2, "y": 3},
        {"shape": "c", "color": "blue", "x": 4, "y": 5},
    ],
    "target": 129,
}


def changed(*path: Any, to: Any) -> dict[str, Any]:
    """The good example with one value replaced."""
    found = copy.deepcopy(GOOD)
    place: Any = found
    for key in path[:-1]:
        place = place[key]
    if to is KeyError:
        del place[path[-1]]
    else:
        place[path[-1]] = to
    return found


def judged(tmp_path: Path, *lines: object, **options: Any) -> list[tuple[int, str]]:
    path = tmp_path / "examples.jsonl"
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    judgement = task("gcog/distractor", **options).judge(path)
    assert judgement.examples == len(lines)
    return [(m.line, f"{m.what} is {m.given}: {m.expected}") for m in judgement.mismatches]


def test_published_samples_agree_under_the_rule_of_the_release(tmp_path: Path) -> None:
    assert judged(tmp_path, *PUBLISHED, ties="smallest") == []
    assert judged(tmp_path, *PUBLISHED, preset="released") == []
    found = judged(tmp_path, *PUBLISHED)
    assert [line for line, _ in found] == [n for n, s in enumerate(PUBLISHED, 1) if s["ambiguous_on_path"]]
    assert all("--ties smallest" in message for _, message in found)


def test_a_wrong_target_is_found_in_every_published_sample(tmp_path: Path) -> None:
    wrong = [{**sample, "target": (sample["target"]["index"] + 1) % 138} for sample in PUBLISHED]
    found = judged(tmp_path, *wrong, ties="smallest")
    assert [line for line, _ in found] == list(range(1, len(wrong) + 1))
    assert all(message.startswith("the answer is") for _, message in found)


def test_our_own_examples_are_right(tmp_path: Path) -> None:
    gcog_task = task("gcog/productive", two_objects=0.5, operators=(*STANDARD, "AddEqual", "IsColor"))
    examples = gcog_task.sample("ood/depth=5", 40)
    assert judged(tmp_path, GOOD, *(gcog_task.record(examples, i) for i in range(40))) == []


DEFECTS = [
    (changed("target", to=128), "the answer is 128 (red): 129 (green)"),
    (changed("target", to={"index": 0}), "the answer is 0 (True): 129 (green)"),
    (changed("target", to=138), "the target is '138': it must be a class from 0 to 137"),
    (changed("target", to=True), "the target is 'true': it must be a class from 0 to 137"),
    (changed("target", to="green"), "the target is 'green': it must be a class from 0 to 137"),
    (changed("objects", 1, "x", to=0), None),
    (changed("tree", "if", "op", to="Exists"), "the operator is 'Exists': there is none of that name. Did you mean"),
    (changed("tree", "then", "op", to="switch"), "the operator is 'switch': there is none of that name"),
    (
        changed("tree", "if", to={"op": "GetColor", "objects": [{"shape": "b", "color": None}]}),
        "the test is GetColor: it must be a boolean operator",
    ),
    (
        changed("tree", "if", to={"op": "GetLocation", "objects": [{"shape": "a", "color": "red"}]}),
        "the test is GetLocation: it must be a boolean operator",
    ),
    (changed("tree", "if", to=GOOD["tree"]), 'the operator is \'{"if"'),
    (changed("tree", "then", to=KeyError), "the conditional is without then and else"),
    (changed("tree", "then", to=GOOD["tree"]), "the tree is uneven, with leaves at depths 3 and 5"),
    (changed("tree", to=[]), "the operator is '[]': it must be an object with op and objects"),
    (changed("tree", "if", "objects", to=[]), "the number of objects of Exist is 0: it must be 1"),
    (
        changed("tree", "if", to={"op": "SumOdd", "objects": [{"shape": "a", "color": "red"}] * 3}),
        "the number of objects of SumOdd is 3: it must be 1 or 2",
    ),
    (
        changed("tree", "if", to={"op": "AddEqual", "objects": [{"shape": "a", "color": "red"}]}),
        "the number of AddEqual is 'null': it must be a whole number",
    ),
    (changed("tree", "if", "number", to=3), "the number of Exist is '3': there must be none"),
    (changed("tree", "if", "objects", 0, "color", to="rad"), "the color of Exist is 'rad'"),
    (changed("tree", "if", "objects", 0, "color", to=None), "the color of Exist is 'null'"),
    (changed("tree", "then", "objects", 0, "color", to="green"), "the color of GetColor is 'green': it must be null"),
    (changed("tree", "if", "objects", 0, to="red a"), "an object of Exist is 'red a'"),
    (changed("objects", to={}), "'objects' is '{}': it must be a list"),
    (changed("objects", 0, to=[]), "an object on the grid is '[]'"),
    (changed("objects", 0, "shape", to="A"), "the shape of an object on the grid is 'A'"),
    (changed("objects", 0, "x", to=10), "x of the red a is '10': it must be a whole number from 0 to 9"),
    (changed("objects", 0, "y", to=1.0), "y of the red a is '1.0'"),
    (changed("objects", 1, to=KeyError), "the question is unanswerable (GetColor asks about the b; there is no"),
    (changed("tree", to=KeyError), "the line is without tree: it must have tree, objects and target"),
    ("[1, 2]", "the line is '[1, 2]': it must be one JSON object"),
    ("{", "the line is '{': it must be one JSON object"),
    ("", "the line is '': it must be one JSON object"),
    ("[" * 100_000, "it must be one JSON object"),
]


@pytest.mark.parametrize(("line", "message"), DEFECTS, ids=range(len(DEFECTS)))
def test_defects(tmp_path: Path, line: object, message: str | None) -> None:
    found = judged(tmp_path, GOOD, line, GOOD)
    if message is None:
        assert found == []
    else:
        assert [number for number, _ in found] == [2] and message in found[0][1]


def test_two_objects_in_one_cell_and_other_defects_are_all_named(tmp_path: Path) -> None:
    double = changed("objects", 1, to={"shape": "b", "color": "green", "x": 0, "y": 1})
    both = copy.deepcopy(double)
    both["tree"]["if"]["op"] = "Exists"
    assert judged(tmp_path, GOOD, double, both) == [
        (2, "the cell (0, 1) is occupied by 2 objects: there must be at most one"),
        (3, "the operator is 'Exists': there is none of that name. Did you mean 'Exist'?"),
        (3, "the cell (0, 1) is occupied by 2 objects: there must be at most one"),
    ]


def test_defects_of_both_objects_of_an_operator_are_reported(tmp_path: Path) -> None:
    objects = [{"shape": "A", "color": "red"}, {"shape": "b", "color": "rad"}]
    found = judged(tmp_path, changed("tree", "if", to={"op": "SumOdd", "objects": objects}))
    assert [message.partition(":")[0] for _, message in found] == [
        "the shape of SumOdd is 'A'",
        "the color of SumOdd is 'rad'",
    ]


def test_ambiguity_off_the_path_is_legal_and_ties_go_to_the_smallest_place(tmp_path: Path) -> None:
    off = copy.deepcopy(GOOD)
    off["objects"].append({"shape": "c", "color": "blue", "x": 9, "y": 9})
    assert judged(tmp_path, off) == []
    on = copy.deepcopy(GOOD)
    on["objects"].append({"shape": "b", "color": "pink", "x": 1, "y": 9})
    assert "there are 2, at (2, 3), (1, 9)" in judged(tmp_path, on)[0][1]
    assert judged(tmp_path, on | {"target": 135}, ties="smallest") == []
    assert judged(tmp_path, on, ties="smallest") == [(1, "the answer is 129 (green): 135 (pink)")]


def test_files_and_companions_that_do_not_fit(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(CheckFailed, match="line 1: the file is empty"):
        task("gcog/distractor").judge(tmp_path / "empty.jsonl")
    with pytest.raises(UsageError, match="cannot be read"):
        task("gcog/distractor").judge(tmp_path / "nowhere.jsonl")
    with pytest.raises(UsageError, match="need no companion files; omit mapping"):
        task("gcog/distractor").judge(tmp_path / "empty.jsonl", mapping=tmp_path)


def test_the_command_line_judges_once_for_the_family(tmp_path: Path) -> None:
    path = tmp_path / "examples.jsonl"
    path.write_text("\n".join(json.dumps(sample) for sample in PUBLISHED))
    result = CliRunner().invoke(app, ["verify", "gcog", "--data", str(path), "--ties", "smallest"])
    assert result.exit_code == 0 and f"{path}: 92 of 92 answers agree with gcog\n" in result.output
    result = CliRunner().invoke(app, ["verify", "gcog", "--data", str(path)])
    assert result.exit_code == 1 and f"{path}, line 34: the question is unanswerable" in result.output
    assert f"{path}: 82 of 92 answers agree with gcog\n" in result.output
    for wrong in (["--ties", "smallest"], ["--data", str(path), "--ties", "largest"]):
        assert isinstance(CliRunner().invoke(app, ["verify", "gcog", *wrong]).exception, UsageError)
