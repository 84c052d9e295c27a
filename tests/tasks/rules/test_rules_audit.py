"""Foreign examples with the numbers of their rules: right ones pass, wrong ones are named with their line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from unseen.cli.main import app
from unseen.errors import CheckFailed, UsageError
from unseen.tasks import task
from unseen.tasks.base import ForeignFileReport
from unseen.tasks.rules import Coefficients
from unseen.tasks.verify.baselines import score_baselines

PUBLISHED = json.loads((Path(__file__).parent / "rules_labelers.json").read_text())


def lines(case: dict[str, Any]) -> list[dict[str, Any]]:
    """A published case as lines of a file, one example each."""
    process = case["process"][:3].lower()
    keys = ("A_rowvec", "B_rowvec", "w") if process == "rnn" else ("alpha", "beta")
    parameters = {key[0] if process == "rnn" else key: case[key] for key in keys}
    found = []
    for i, c in enumerate(case["c_index0"]):
        line = {"process": process, "parameters": parameters, "c": c, "y_classification": case["y_classification"][i]}
        if process == "mlp":
            line |= {"x": [case["x1"][i], case["x2"][i]], "y_regression": case["y_regression"][i]}
        elif process == "mha":
            wide = 4 if case["process"] == "MHA_v1" else 6
            x = np.array(case["model_input"][i])[:, : wide * case["R"]].reshape(len(c), case["R"], wide)
            line |= {"x": x.tolist(), "search": wide // 2 - 1, "y_regression": case["y_regression"][i]}
        else:
            line |= {"x": case["x"][i], "y_regression": case["y_regression_state"][i]}
        found.append(line)
    return found


ALL = {case["id"]: lines(case) for case in PUBLISHED}
BATCHED = ("x", "c", "y_regression", "y_classification")


def judge(path: Path, given: list[dict[str, Any]] | str, name: str = "", **options: Any) -> ForeignFileReport:
    text = given if isinstance(given, str) else "\n".join(map(json.dumps, given))
    (path / "examples.jsonl").write_text(text)
    return task(name or f"rules/{given[0]['process']}", **options).judge(path / "examples.jsonl")


@pytest.mark.parametrize("case", ALL)
class TestPublished:
    def test_right_answers_pass(self, tmp_path: Path, case: str) -> None:
        found = judge(tmp_path, ALL[case])
        assert found.examples == 8 and not found.mismatches

    def test_a_batch_is_one_line_of_many_examples(self, tmp_path: Path, case: str) -> None:
        batch = ALL[case][0] | {key: [line[key] for line in ALL[case]] for key in BATCHED}
        found = judge(tmp_path, [batch])
        assert (found.examples, found.right, found.note) == (8, 8, f"; 8 of {batch['process']}")
        answers = np.array(batch["y_regression"])
        answers[4] += 0.001
        found = judge(tmp_path, [batch, batch | {"y_regression": answers.tolist()}])
        assert [(wrong.line, wrong.example) for wrong in found.mismatches] == [(2, 4)]
        assert (found.examples, found.right) == (16, 15)
        assert found.mismatches[0].what.startswith("y_regression at 4")

    def test_wrong_numbers_and_classes_are_found(self, tmp_path: Path, case: str) -> None:
        changed = [dict(line) for line in ALL[case]]
        number = np.array(changed[2]["y_regression"])
        changed[2]["y_regression"] = (number + 2e-4 * (1 + np.abs(number))).tolist()
        flipped = 1 - np.array(changed[5]["y_classification"])
        changed[5]["y_classification"] = flipped.tolist()
        found = judge(tmp_path, changed)
        assert {wrong.line for wrong in found.mismatches} == {3, 6}
        assert [wrong.what.split()[0] for wrong in found.mismatches] == ["y_regression", "y_classification"]

    def test_float_noise_is_no_mismatch_and_one_answer_is_enough(self, tmp_path: Path, case: str) -> None:
        noisy = [line | {"y_regression": (np.array(line["y_regression"]) * (1 + 1e-6)).tolist()} for line in ALL[case]]
        for line in noisy:
            del line["y_classification"]
        assert not judge(tmp_path, noisy).mismatches

    def test_other_parameters_give_other_answers(self, tmp_path: Path, case: str) -> None:
        first = "B" if "B" in ALL[case][0]["parameters"] else "alpha"
        for line in ALL[case]:
            other = (np.array(line["parameters"][first]) * 1.5).tolist()
            assert judge(tmp_path, [line | {"parameters": line["parameters"] | {first: other}}]).mismatches


MLP, MHA1, MHA2, RNN = (found[0] for found in ALL.values())


def without(line: dict[str, Any], key: str) -> dict[str, Any]:
    return {k: v for k, v in line.items() if k != key}


def parameters(line: dict[str, Any], **changed: Any) -> dict[str, Any]:
    return line | {"parameters": line["parameters"] | changed}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1, 2]", "expected one JSON object per line"),
        (MLP | {"process": "MLP"}, "'process' must be mlp, mha or rnn; got 'MLP'"),
        ("{", "expected one JSON object per line"),
        (without(MLP, "process"), "'process' must be mlp, mha or rnn; got None"),
        (without(MLP, "parameters"), "an object 'parameters'"),
        (without(MLP, "x"), "'x' is missing"),
        (
            without(without(MLP, "y_regression"), "y_classification"),
            "expected 'y_regression', 'y_classification' or both",
        ),
        (MLP | {"x": [1.0, 2.0, 3.0]}, r"'x' has shape \(3,\), expected \(2,\)"),
        (MLP | {"x": [[1.0], [2.0, 3.0]]}, "'x' must be finite numbers, in lists of equal lengths"),
        (MLP | {"x": ["1", "2"]}, "'x' must be finite numbers"),
        (MLP | {"x": [1.0, float("nan")]}, "'x' must be finite numbers"),
        (MLP | {"c": 2}, "'c' must be within 0 … 1; got 2 … 2"),
        (MLP | {"c": 0.5}, "whole numbers"),
        (MLP | {"c": [[0]]}, r"got shape \(1, 1\)"),
        (MLP | {"c": 1e300}, "whole numbers"),
        (MLP | {"y_regression": [[1.0, 2.0]]}, r"'y_regression' has shape \(1, 2\), expected \(\) or \(1,\)"),
        (parameters(MLP, alpha=[1.0]), "one number for each rule"),
        (without(MHA1, "search"), "'search' must be 1 or 2; got None"),
        (MHA1 | {"search": 2}, r"'x' has shape \(3, 2, 4\), expected \(3, 2, 6\) or \(3, 12\)"),
        (MHA1 | {"c": [0]}, "at least two tokens"),
        (RNN | {"x": [[1.0] * 3] * 3}, r"'x' has shape \(3, 3\), expected \(3, 4\)"),
        (parameters(RNN, A=[[1.0]]), r"'A' must have shape \(2, 4, 4\)"),
        (parameters(RNN, B=[[1.0]]), r"'B' must have shape \(rules, D, D\)"),
        (parameters(RNN, w=[1.0]), r"'w' has shape \(1,\), expected \(4,\)"),
        (RNN | {"y_regression": [[1.0, 2.0]]}, r"expected \(3, 4\) or \(3,\) or \(3, 1\)"),
    ],
)
def test_malformed_lines_are_named(tmp_path: Path, line: dict[str, Any] | str, message: str) -> None:
    process = line.get("process", "mlp").lower() if isinstance(line, dict) else "mlp"
    good = {"mlp": MLP, "mha": MHA1, "rnn": RNN}[process]
    wrong = {key: np.subtract(1, value).tolist() for key, value in good.items() if key == "y_classification"}
    lines = [good, line, good | wrong]
    text = "\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines)
    found = judge(tmp_path, text, f"rules/{process}")
    malformed, other = found.mismatches  # what comes after is judged, too
    assert (found.examples, malformed.line, malformed.what, malformed.given) == (3, 2, "the line", "no example")
    assert re.search(message, malformed.expected)
    assert (other.line, other.what[:16]) == (3, "y_classification")


def test_rows_orders_read_outs_and_columns_are_read(tmp_path: Path) -> None:
    flat = MHA2 | {"x": np.array(MHA2["x"]).reshape(3, 12).tolist()}
    assert not judge(tmp_path, [flat]).mismatches
    assert not judge(tmp_path, [parameters(RNN, A=np.array(RNN["parameters"]["A"])[:, None].tolist())]).mismatches
    read = (np.array(RNN["y_regression"]) @ np.array(RNN["parameters"]["w"])).tolist()
    assert not judge(tmp_path, [RNN | {"y_regression": read}]).mismatches
    assert judge(tmp_path, [RNN | {"y_regression": [value + 0.01 for value in read]}]).mismatches
    column = np.array(MHA1["y_classification"])[:, None].tolist()
    assert not judge(tmp_path, [MHA1 | {"y_classification": column}]).mismatches
    stateless = without(RNN, "y_classification")
    stateless["parameters"] = without(RNN["parameters"], "w")
    assert not judge(tmp_path, [stateless]).mismatches


def test_classes_need_the_read_out(tmp_path: Path) -> None:
    found = judge(tmp_path, [RNN | {"parameters": without(RNN["parameters"], "w")}])
    assert found.mismatches[0].expected == "'w' is missing; classes are read out with it"


def test_preset_paper_reads_search_2_to_the_letter(tmp_path: Path) -> None:
    clean, paper = (judge(tmp_path, ALL[PUBLISHED[2]["id"]], preset=preset) for preset in ("clean", "paper"))
    assert not clean.mismatches and paper.mismatches


def test_what_was_read_is_said(tmp_path: Path) -> None:
    for name in ("rules/mlp", "rules/mha", "rules/rnn"):
        found = judge(tmp_path, [MLP, MHA1, RNN, MHA2], name)
        assert (found.examples, found.mismatches, found.note) == (4, (), "; 2 of mha, 1 of mlp, 1 of rnn")
    extra = judge(tmp_path, [MLP | {"note": "x"}, without(MLP, "y_classification") | {"y_clasification": 0}, RNN])
    assert extra.note == "; 2 of mlp, 1 of rnn; not read: note, y_clasification" and not extra.mismatches
    with pytest.raises(CheckFailed, match="line 1: the file is empty"):
        judge(tmp_path, "", "rules/rnn")
    with pytest.raises(UsageError, match="carry their own parameters"):
        task("rules/mlp").judge(tmp_path / "x", mapping=tmp_path / "y")


def test_our_own_examples_pass(tmp_path: Path) -> None:
    for name in ("rules/mlp", "rules/mha", "rules/rnn"):
        for setting in ("classification", "regression"):
            made = task(name, rules=3, setting=setting)
            examples = made.sample("ood/amplitude=2", 5)
            given = {key: values.tolist() for key, values in vars(made.parameters).items()}
            line = {
                "process": name[-3:],
                "search": 1,
                "parameters": given,
                "c": examples.inputs["rule"].tolist(),
                "x": next(iter(examples.inputs.values())).tolist(),
                f"y_{setting}": examples.targets.tolist(),
            }
            assert not judge(tmp_path, [line]).mismatches


def test_command_names_line_and_answer(tmp_path: Path) -> None:
    file = tmp_path / "mlp.jsonl"
    file.write_text(json.dumps(MLP) + "\n" + json.dumps(MLP | {"y_regression": 5.0}) + "\n")
    for name in ("rules/mlp", "rules"):
        result = CliRunner().invoke(app, ["verify", name, "--data", str(file)])
        assert result.exit_code != 0
        assert result.output.count("line 2: y_regression is 5, rules says") == 1
        assert "1 of 2 answers agree with rules; 2 of mlp" in result.output


CASES = [
    ("rules/mlp", 1, "iid"),
    ("rules/mlp", 8, "iid"),
    ("rules/mha", 1, "ood/length=3"),
    ("rules/mha", 2, "iid"),
    ("rules/rnn", 1, "ood/length=3"),
    ("rules/rnn", 2, "iid"),
]


@pytest.mark.parametrize("setting", ["classification", "regression"])
@pytest.mark.parametrize(("name", "rules", "split"), CASES)
def test_ceilings_are_what_the_baselines_reach(name: str, rules: int, split: str, setting: str) -> None:
    """Both ways: a ceiling too low would fail sound tasks, one too high would let leaks pass."""
    made = task(name, rules=rules, setting=setting)
    n = 20_000 if name == "rules/mlp" else 30_000
    found = dict(score_baselines(made.spec, made.sample(split, n)))
    for baseline, ceiling in made.ceilings(split).items():
        assert found[baseline].accuracy == pytest.approx(ceiling, abs=max(0.02, 4 * found[baseline].error))


def test_rules_that_cancel_leave_nothing() -> None:
    made = task("rules/mlp", rules=2)
    signs = np.array([-1.0, 1.0])
    made.__dict__["parameters"] = Coefficients(signs, signs)
    assert made.ceilings("iid") == pytest.approx({"single-feature": 0.5, "bag-of-tokens": 0.5})
