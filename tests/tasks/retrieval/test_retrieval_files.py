"""Readers and writers of examples, and the judgement of foreign files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from support.retrieval_cases import KINDS, make
from unseen.errors import CheckFailed, UsageError
from unseen.tasks.base import Examples
from unseen.tasks.retrieval.files import read_examples, write_json_lines, write_tsv
from unseen.tasks.retrieval.mapping import draw_released_table, write_mapping

WRITERS = [write_tsv, write_json_lines]


def sample(kind: str, n: int = 50, **options: object) -> Examples:
    return make(kind, length=5, **options).sample("train", n)


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("kind", KINDS)
def test_written_files_are_read_back(kind: str, write, tmp_path: Path) -> None:
    examples, path = sample(kind), tmp_path / "examples"
    write(examples, path)
    again = read_examples(path, kind)
    for name, values in examples.inputs.items():
        assert np.array_equal(again.inputs[name], values) and again.inputs[name].dtype == values.dtype
    assert np.array_equal(again.targets, examples.targets)
    assert again.factors["line"].tolist() == ([3 * i + 3 for i in range(50)] if write is write_tsv else [*range(1, 51)])
    first = path.read_bytes()
    write(again, path)
    assert path.read_bytes() == first  # T2 keeps the order of its text


def test_the_published_form(tmp_path: Path) -> None:
    path = tmp_path / "test.tsv"
    write_tsv(sample("T2"), path)
    lines = path.read_text().splitlines()
    assert path.read_bytes().endswith(b"\n") and len(lines) == 150
    key, *tokens = lines[0].split("\t")
    assert key == "sequence" and [len(t) for t in tokens] == [36] * 5 and len(lines[0]) == 9 + 37 * 5 - 1
    named = sample("T2").factors["named"][0]
    assert lines[1] == f"query\thave you seen {named[0]} and {named[1]}"
    assert lines[2] in ("answer\tyes", "answer\tno")
    write_json_lines(sample("T1"), path)
    record = json.loads(path.read_text().splitlines()[0])
    assert record["sequence"] == [np.flatnonzero(t).tolist() for t in sample("T1").inputs["sequence"][0]]


def test_length_and_line_ends_are_read_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "test.tsv"
    write_tsv(make("T1", length=3).sample("train", 4), path)
    for text in (path.read_text().replace("\n", "\r\n"), path.read_text().rstrip("\n")):
        path.write_bytes(text.encode())
        assert read_examples(path, "T1").inputs["sequence"].shape == (4, 3, 36)


def edit(number: int, change):
    """A fault: the line of that number, changed."""
    return lambda lines: [change(line) if i == number else line for i, line in enumerate(lines, 1)]


TSV_FAULTS = [
    ("T1", lambda lines: lines[:-1], "line 149: the last datapoint is cut"),
    ("T1", lambda lines: lines[:3] + lines[4:], "line 4: expected 'sequence'"),
    ("T1", lambda lines: ["header", *lines], "line 1: expected 'sequence'"),
    ("T1", lambda lines: [*lines, ""], "line 151: expected 'sequence'"),
    ("T1", lambda lines: [*lines[:6], "", *lines[6:]], "line 7: expected 'sequence'"),
    ("T1", edit(1, lambda line: line[:-1]), "line 1: expected tokens of 36 characters"),
    ("T1", edit(1, lambda line: "sequence\t"), "line 1: expected tokens of 36 characters"),
    ("T1", edit(7, lambda line: line[:-1]), "line 7: expected 5 tokens of 36 characters as in line 1"),
    ("T1", edit(7, lambda line: line.rpartition("\t")[0]), "line 7: expected 5 tokens"),
    ("T1", edit(7, lambda line: f"{line}\t{'0' * 36}"), "line 7: expected 5 tokens"),
    ("T1", edit(7, lambda line: line[:-1] + "2"), "line 7: tokens are written with 0 and 1; got '2'"),
    ("T1", edit(7, lambda line: line[:44] + "\t0" + line[46:]), "line 7: expected tokens of 36 characters, tabs"),
    ("T1", edit(7, lambda line: line.replace("sequence", "Sequence")), "line 7: expected 'sequence'"),
    ("T1", edit(8, lambda line: "query\thave you seen 36"), "line 8: the query must be within 0 … 35; got 36"),
    ("T1", edit(8, lambda line: "query\thave you seen -1"), "line 8: expected 'query'"),
    ("T1", edit(8, lambda line: f"query\thave you seen {'9' * 5000}"), "line 8: expected 'query'"),
    ("T1", edit(8, lambda line: "query\t4"), "line 8: expected 'query', tab, 'have you seen X'"),
    ("T1", edit(8, lambda line: line.replace("query", "question")), "line 8: expected 'query'"),
    ("T1", edit(8, lambda line: "query\thave you seen 3 and 4"), "line 8: expected 'query', tab, 'have you seen X'"),
    ("T2", edit(8, lambda line: "query\thave you seen 3"), "line 8: expected 'query', tab, 'have you seen X and Y'"),
    ("T2", edit(8, lambda line: "query\thave you seen 3 and 3"), "line 8: the two features of a query must differ"),
    ("T1", edit(9, lambda line: "answer\tmaybe"), "line 9: expected 'answer', tab, 'yes' or 'no'; got"),
    ("T1", edit(9, lambda line: line + " "), "line 9: expected 'answer'"),
    ("T1", lambda lines: [], "line 1: the file is empty"),
]  # fmt: skip

JSON_FAULTS = [
    ("T1", edit(4, lambda line: line[:-1]), "line 4: expected one JSON object per line"),
    ("T1", edit(4, lambda line: "[" * 100_000), "line 4: expected one JSON object per line"),
    ("T1", edit(4, lambda line: "[]"), "line 4: expected an object with the keys sequence, query, answer"),
    ("T1", edit(4, lambda line: line.replace('"answer"', '"label"')), "line 4: expected an object with the keys"),
    ("T1", edit(4, lambda line: '{"sequence":[[1],[1],[1],[1]],"query":[0],"answer":true}'),
     "line 4: expected 5 tokens as in line 1; got 4"),
    ("T1", edit(1, lambda line: '{"sequence":[],"query":[0],"answer":true}'), "line 1: expected at least one token"),
    ("T1", edit(4, lambda line: '{"sequence":[[36],[],[],[],[]],"query":[0],"answer":true}'),
     "line 4: features are numbers 0 … 35"),
    ("T1", edit(4, lambda line: '{"sequence":[[-1],[],[],[],[]],"query":[0],"answer":true}'), "features are numbers"),
    ("T1", edit(4, lambda line: '{"sequence":[[1,1],[],[],[],[]],"query":[0],"answer":true}'), "a token names each"),
    ("T1", edit(4, lambda line: '{"sequence":[[1.0],[],[],[],[]],"query":[0],"answer":true}'), "features are numbers"),
    ("T1", edit(4, lambda line: '{"sequence":[[true],[],[],[],[]],"query":[0],"answer":true}'), "features are numbers"),
    ("T1", edit(4, lambda line: '{"sequence":[1,2,3,4,5],"query":[0],"answer":true}'), "'sequence' must be"),
    ("T1", edit(4, lambda line: '{"sequence":[[],[],[],[],[]],"query":0,"answer":true}'), "'query' must be a list"),
    ("T1", edit(4, lambda line: '{"sequence":[[],[],[],[],[]],"query":[36],"answer":true}'), "within 0 … 35"),
    ("T2", edit(4, lambda line: '{"sequence":[[],[],[],[],[]],"query":[3],"answer":true}'),
     "line 4: a T2 query names 2 number(s)"),
    ("T1", edit(4, lambda line: '{"sequence":[[],[],[],[],[]],"query":[3],"answer":"yes"}'), "'answer' must be"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("write", "kind", "spoil", "message"),
    [(write_tsv, *fault) for fault in TSV_FAULTS] + [(write_json_lines, *fault) for fault in JSON_FAULTS],
)
def test_a_fault_is_an_error_that_names_file_and_line(write, kind: str, spoil, message: str, tmp_path: Path) -> None:
    path = tmp_path / "examples"
    write(sample(kind), path)
    path.write_text("".join(f"{line}\n" for line in spoil(path.read_text().splitlines())))
    with pytest.raises(CheckFailed) as caught:
        read_examples(path, kind)
    assert message in str(caught.value) and str(path) in str(caught.value)


def test_a_file_that_cannot_be_read_is_wrong_use(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.tsv", tmp_path):
        with pytest.raises(UsageError, match="cannot be read"):
            read_examples(path, "T1")


def test_tokens_may_all_be_empty(tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_text('{"sequence": [[], []], "query": [0], "answer": false}\n')
    assert not read_examples(path, "T1").inputs["sequence"].any()


def test_bytes_that_are_no_text_are_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "noise"
    path.write_bytes(bytes(range(256)) * 10)
    with pytest.raises(CheckFailed, match="line 1"):
        read_examples(path, "T1")


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("kind", KINDS)
def test_foreign_examples_are_judged_by_the_plain_solver(kind: str, write, tmp_path: Path) -> None:
    """Data of another table and another length than the judging task has."""
    table = {} if kind in ("T1", "T2") else {"mapping": draw_released_table(kind, 36, 7)}
    examples, path = make(kind, preset="released", length=4, **table).sample("train", 400), tmp_path / "foreign"
    write(examples, path)
    companions = {}
    if table:
        companions["mapping"] = tmp_path / "q_vocab.txt"
        write_mapping(table["mapping"], companions["mapping"])
    judgement = make(kind).judge(path, **companions)
    assert judgement.examples == 400 and judgement.mismatches == ()
    examples.targets[[3, 77]] ^= 1
    write(examples, path)
    wrong = make(kind).judge(path, **companions).mismatches
    assert [m.line for m in wrong] == ([12, 234] if write is write_tsv else [4, 78])
    assert [(m.given, m.expected) for m in wrong] == [
        ("yes", "no") if examples.targets[i] else ("no", "yes") for i in (3, 77)
    ]


def test_without_a_mapping_file_the_task_table_is_used(tmp_path: Path) -> None:
    path = tmp_path / "test.tsv"
    write_tsv(sample("T6", 200), path)
    assert make("T6").judge(path).mismatches == ()
    assert make("T6", task_seed=1).judge(path).mismatches != ()


def test_unknown_companion_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "test.tsv"
    write_tsv(sample("T1"), path)
    with pytest.raises(UsageError, match="T1 has no query table"):
        make("T1").judge(path, mapping=path)
    with pytest.raises(UsageError, match="not with world"):
        make("T1").judge(path, world=path)


def test_other_feature_spaces_have_files_too(tmp_path: Path) -> None:
    made, path = make("T4", features=12, length=3), tmp_path / "test.tsv"
    write_tsv(made.sample("train", 100), path)
    assert made.judge(path).mismatches == ()
    with pytest.raises(CheckFailed, match="tokens of 36 characters"):
        make("T4").judge(path)
