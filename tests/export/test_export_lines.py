"""JSON lines and TSV: what is written is what `verify --data` reads, for every family."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.exported import SMALL_WORLD, TASKS, made, run
from unseen.cli.settings import parse_settings as read_settings
from unseen.errors import UsageError
from unseen.export.families import JUDGED
from unseen.export.splits import option_arguments as written_settings
from unseen.export.write import Exported, write_export
from unseen.randomness import Draws
from unseen.spec import Field, Spec, Target
from unseen.tasks import TASKS as REGISTRY
from unseen.tasks import task
from unseen.tasks.base import Examples, Split, Task
from unseen.tasks.ctl import read_examples as read_ctl
from unseen.tasks.ctl.task import Lookup
from unseen.tasks.retrieval import read_examples, write_mapping
from unseen.tasks.retrieval.task import Retrieval

QUICK = settings(derandomize=True, deadline=None, max_examples=12)
SEEDS = st.sampled_from([0, 3, "validation", "test"])
COUNTS = st.sampled_from([1, 2, 40])


def proven(done: Exported) -> str:
    """What `verify` says to the command that an export prints."""
    assert done.verify is not None
    result = run(done.verify)
    assert result.exit_code == 0, (done.verify, result.output, result.exception)
    return result.output


CASES: list[tuple[str, dict[str, Any]]] = [
    *TASKS.items(),
    ("retrieval/T1", {"length": 3, "features": 12}),
    ("retrieval/T7", {"length": 4, "preset": "paper", "task_seed": 3}),
    ("ctl/R", {**SMALL_WORLD, "order": "forward", "task_seed": 5}),
    ("ctl/S", {"symbols": 4, "functions": 10, "bridge": 2, "train_size": 300, "iid_size": 20, "ood_size": 20}),
    (
        "ctl/graph",
        {
            **SMALL_WORLD,
            "functions": 6,
            "train_size": 200,
            "graph": {
                "groups": {"left": 3, "right": 3},
                "edges": [
                    {"from": "left", "to": "right", "in": "both"},
                    {"from": "right", "to": "left", "in": "both"},
                    {"from": "left", "to": "left", "in": "test"},
                ],
            },
        },
    ),
    ("ctl/lengths", {"preset": "released", "symbols": 4, "composed": 4, "train_size": 200, "iid_size": 20}),
    ("gcog/distractor", {"preset": "released", "coding": "embedding"}),
    ("gcog/systematic-operators", {"coding": "onehot"}),
    ("gcog/systematic-trees", {"pool": 50}),
    (
        "gcog/distractor",
        {"operators": ("Exist", "GetColor"), "grid": (4, 4), "distractors": (1, 3), "ood_distractors": (5,)},
    ),
    ("rules/mha", {"search": 2, "preset": "paper", "rules": 3, "setting": "regression"}),
    ("rules/rnn", {"rules": 2, "dimension": 2, "order": 2, "preset": "paper", "setting": "regression"}),
    ("rules/rnn", {"rules": 2, "dimension": 4}),
    ("rules/mlp", {"prior": "dirichlet(1.5, 3)", "rules": 3, "task_seed": 4}),
    ("rules/mlp", {"prior": (0.25, 0.75), "rules": 2}),
]


@pytest.mark.parametrize("case", range(len(CASES)), ids=[name for name, _ in CASES])
def test_export_and_verify_close_the_loop(case: int, tmp_path: Path) -> None:
    name, options = CASES[case]
    done = write_export(task(name, **options), tmp_path / "out", "jsonl", n=30)
    said = proven(done)
    lines = sum(len(file.read_bytes().splitlines()) for file in done.files)
    assert len(done.files) == len(task(name, **options).splits) > 2
    assert said.count(" answers agree ") == len(done.files) and lines > 0


@pytest.mark.parametrize("name", ["retrieval/T4", "ctl/A", "gcog/distractor", "rules/mlp", "rules/rnn"])
def test_a_wrong_answer_in_an_exported_file_is_found(name: str, tmp_path: Path) -> None:
    """The loop is a loop: verify would say no."""
    done = write_export(task(name, **TASKS.get(name, {})), tmp_path / "out", "jsonl", ["iid"], 20)
    (file,) = done.files
    first, *rest = file.read_text().splitlines()
    record = json.loads(first)
    key = next(key for key in ("answer", "target", "y_regression", "y_classification") if key in record)
    wrong = {
        "answer": lambda given: not given,
        "target": lambda given: (given + 1) % 4,
        "y_regression": lambda given: given + 1,
        "y_classification": lambda given: 1 - given,
    }[key]
    if name == "rules/rnn":  # one number of one example of a block
        record[key][3][0][1] = wrong(record[key][3][0][1])
    else:
        record[key] = wrong(record[key])
    file.write_text("\n".join([json.dumps(record), *rest]) + "\n")
    result = run(str(done.verify))
    assert result.exit_code == 1 and "line 1:" in result.output


def test_tables_worlds_and_graphs_that_were_given_are_given_on(tmp_path: Path) -> None:
    made_up = task("retrieval/T6", length=4, task_seed=9)
    assert isinstance(made_up, Retrieval)
    write_mapping(made_up.table, tmp_path / "q.txt")
    given = task("retrieval/T6", length=4, mapping=str(tmp_path / "q.txt"))
    done = write_export(given, tmp_path / "t6", "tsv", n=30)
    assert (tmp_path / "t6" / "mapping.txt").read_bytes() == (tmp_path / "q.txt").read_bytes()
    (tmp_path / "q.txt").unlink()  # the export stands for itself
    proven(done)

    own = task("ctl/A", **SMALL_WORLD, task_seed=7)
    assert isinstance(own, Lookup)
    own.actual_world.save(tmp_path / "w.json")
    options = {key: value for key, value in SMALL_WORLD.items() if key not in ("symbols", "functions")}
    given = task("ctl/A", **options, world=str(tmp_path / "w.json"))
    done = write_export(given, tmp_path / "a", "jsonl", n=30)
    (tmp_path / "w.json").unlink()
    assert f"--set world={tmp_path / 'a' / 'world.json'}" in str(done.verify)
    proven(done)


@pytest.mark.parametrize("kind", ["T1", "T2", "T7"])
def test_tsv_closes_the_loop_and_reads_back(kind: str, tmp_path: Path) -> None:
    found = task(f"retrieval/{kind}", length=4)
    done = write_export(found, tmp_path / "out", "tsv", n=1500)
    proven(done)
    wanted = found.sample("train", 1500)
    got = read_examples(tmp_path / "out" / "train.tsv", kind)
    np.testing.assert_array_equal(got.inputs["sequence"], wanted.inputs["sequence"])
    np.testing.assert_array_equal(got.inputs["query"], wanted.inputs["query"])
    np.testing.assert_array_equal(got.targets, wanted.targets)
    assert (tmp_path / "out" / "mapping.txt").exists() == (kind == "T7")


@pytest.mark.parametrize("name", ["ctl/A", "gcog/productive", "rules/mlp"])
def test_tsv_is_for_retrieval_alone(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"{name} is none of them; use jsonl, npz, parquet or hf"):
        write_export(made(name), tmp_path / "out", "tsv", n=5)
    assert list(tmp_path.iterdir()) == []


def lines_of(found: Task, split: str, count: int, seed: Any) -> list[Any]:
    """The lines of an export, parsed; its command is run, too."""
    with TemporaryDirectory() as folder:
        done = write_export(found, Path(folder, "out"), "jsonl", [split], count, seed)
        proven(done)
        return [json.loads(line) for line in done.files[0].read_bytes().splitlines()]


@given(
    st.sampled_from(["T1", "T2", "T3", "T4", "T5", "T6", "T7"]),
    st.sampled_from(["clean", "released", "paper"]),
    st.integers(2, 7),
    st.sampled_from(["train", "iid", "ood/single"]),
    COUNTS,
    SEEDS,
)
@QUICK
def test_retrieval_lines_are_the_examples(
    kind: str, preset: str, length: int, split: str, count: int, seed: Any
) -> None:
    found = task(f"retrieval/{kind}", preset=preset, length=length)
    wanted = found.sample(split, count, 0, seed)
    for i, line in enumerate(lines_of(found, split, count, seed)):
        bits = wanted.inputs["sequence"][i]
        assert line["sequence"] == [[f for f in range(36) if token[f]] for token in bits]
        assert sorted(line["query"]) == [f for f in range(36) if wanted.inputs["query"][i, f]]
        assert line["answer"] is bool(wanted.targets[i, 0])


@given(
    st.sampled_from(["ctl/A", "ctl/R"]),
    st.integers(0, 3),
    st.sampled_from(["clean", "released", "paper"]),
    st.sampled_from(["train", "iid", "ood/transition", "probe/pairs"]),
    COUNTS,
    SEEDS,
)
@QUICK
def test_ctl_lines_are_the_examples(name: str, task_seed: int, preset: str, split: str, count: int, seed: Any) -> None:
    found = task(name, **SMALL_WORLD, task_seed=task_seed, preset=preset)
    assert isinstance(found, Lookup)
    wanted = found.sample(split, count, 0, seed)
    names = list(found.actual_world.functions)
    for i, line in enumerate(lines_of(found, split, count, seed)):
        applied = [names[f] for f in wanted.factors["functions"][i] if f >= 0]
        assert line == {
            "functions": applied[::-1],
            "symbol": int(wanted.factors["start"][i]),
            "target": int(wanted.targets[i]),
            "condition": split,
        }


@given(
    st.sampled_from(["gcog/distractor", "gcog/productive", "gcog/systematic-trees"]),
    st.sampled_from(["clean", "released"]),
    st.sampled_from(["integer", "onehot", "embedding"]),
    st.sampled_from(["train", "iid"]),
    COUNTS,
    SEEDS,
)
@QUICK
def test_gcog_lines_are_the_examples(name: str, preset: str, coding: str, split: str, count: int, seed: Any) -> None:
    found = task(name, preset=preset, coding=coding)
    wanted = found.sample(split, count, 0, seed)
    for i, line in enumerate(lines_of(found, split, count, seed)):
        record = found.record(wanted, i)
        assert line == {key: record[key] for key in ("tree", "objects", "target")}


@given(
    st.sampled_from(["mlp", "mha", "rnn"]),
    st.sampled_from(["classification", "regression"]),
    st.sampled_from(["clean", "paper"]),
    st.integers(1, 4),
    st.sampled_from(["train", "iid"]),
    COUNTS,
    SEEDS,
)
@QUICK
def test_rules_lines_are_the_examples(
    process: str, setting: str, preset: str, rules: int, split: str, count: int, seed: Any
) -> None:
    small = {"rnn": {"dimension": 3}, "mha": {"length": 3}, "mlp": {}}[process]
    found = task(f"rules/{process}", setting=setting, preset=preset, rules=rules, **small)
    wanted = found.sample(split, count, 0, seed)
    lines = lines_of(found, split, count, seed)
    assert len(lines) == (1 if process == "rnn" else count)
    one = {key: [line[key] for line in lines] for key in ("x", "c", f"y_{setting}")}
    got = {key: np.array(values[0] if process == "rnn" else values) for key, values in one.items()}
    numbers = wanted.inputs["features" if process == "mha" else "x"]
    assert np.array_equal(got["x"].reshape(numbers.shape), numbers.astype(np.float64))  # to the last bit
    assert np.array_equal(got["c"], wanted.inputs["rule"])
    assert np.array_equal(got[f"y_{setting}"].reshape(wanted.targets.shape), wanted.targets.astype(np.float64))


def test_ctl_files_name_the_split_of_every_example(tmp_path: Path) -> None:
    done = write_export(made("ctl/A"), tmp_path / "out", "jsonl", n=20)
    found = made("ctl/A")
    assert isinstance(found, Lookup)
    for part, file in zip(done.parts, done.files, strict=True):
        assert {one.split for one in read_ctl(file, found.actual_world)} == {part.split.name}


def test_rules_rnn_has_a_block_a_line(tmp_path: Path) -> None:
    done = write_export(task("rules/rnn", rules=2, dimension=2), tmp_path / "out", "jsonl", ["iid"], 2500)
    lengths = [len(json.loads(line)["c"]) for line in done.files[0].read_bytes().splitlines()]
    assert lengths == [1024, 1024, 452]


OPTIONS: dict[str, Any] = {
    "retrieval/T4": st.fixed_dictionaries(
        {},
        optional={
            "length": st.integers(2, 9),
            "preset": st.sampled_from(["clean", "released"]),
            "density": st.floats(0, 1),
            "train_size": st.none(),
        },
    ),
    "rules/mlp": st.fixed_dictionaries(
        {"rules": st.just(2)},
        optional={
            "prior": st.sampled_from(["zipf(1)", "dirichlet(0.5, 3)", (0.5, 0.5), "uniform"]),
            "amplitude": st.floats(0.1, 9),
        },
    ),
    "gcog/distractor": st.fixed_dictionaries(
        {},
        optional={
            "operators": st.sampled_from([("Exist",), ("Exist", "GetColor")]),
            "constant_count": st.booleans(),
            "distractors": st.sampled_from([(1, 2), (0, 3)]),
            "train_size": st.integers(1, 99),
            "features": st.just(
                # 48 objects: enough for the most distractors that are tested, 40.
                (("shape", tuple("abcdefgh")), ("color", ("red", "green", "blue", "white", "grey", "lime")))
            ),
            "grid": st.sampled_from([(10, 10), (12, 9)]),
        },
    ),
    "ctl/A": st.fixed_dictionaries(
        {},
        optional={
            "groups": st.integers(2, 4),
            "bijective": st.booleans(),
            "test_skips": st.just((0,)),
            "sampling": st.just("stepwise"),
        },
    ),
}


@given(st.data())
@settings(derandomize=True, deadline=None, max_examples=60)
def test_the_options_in_a_command_are_read_back_as_they_were(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(OPTIONS)))
    found = task(name, **data.draw(OPTIONS[name]))
    words = shlex.split(shlex.join(written_settings(found, {})))
    assert words[::2] == ["--set"] * (len(words) // 2)
    assert task(name, **read_settings(words[1::2], {"task": REGISTRY.load(name)})["task"]) == found


class Even(Task):
    """Is the number even?"""

    name: str = "own/even"

    @property
    def spec(self) -> Spec:
        return Spec((), (Field("number", "category", 10),), Target("binary"))

    @property
    def splits(self) -> dict[str, Split]:
        return {"train": Split("train", "numbers")}

    def generate(self, split: str, draws: Draws) -> Examples:
        number = draws.integers(10, self.block)
        return Examples({"number": number}, (number % 2 == 0)[:, None].astype(np.uint8), {})


def test_tasks_of_others_have_their_records_for_lines(tmp_path: Path) -> None:
    own = Even()
    assert not isinstance(own, JUDGED)
    done = write_export(own, tmp_path / "out", "jsonl", n=3)
    assert done.verify is None
    lines = [json.loads(line) for line in done.files[0].read_bytes().splitlines()]
    assert lines == [own.record(own.sample("train", 3), i) for i in range(3)]
