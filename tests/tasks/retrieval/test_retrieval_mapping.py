"""Query tables: equal use, low with high, alternation, the released wrinkles, and mapping files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from unseen.errors import UsageError
from unseen.tasks import task
from unseen.tasks.retrieval.mapping import (
    Table,
    check_table,
    draw_released_table,
    draw_table,
    has_shared_feature,
    load_mapping,
    write_mapping,
)

MAPPED = ["T3", "T4", "T5", "T6", "T7"]


def unordered(table: Table) -> list[list[frozenset[int]]]:
    return [[frozenset(pair) for pair in pairs] for pairs in table]


def cycle_length(table: Table) -> int:
    """How many features one meets walking along the pairs from feature 0, each feature lying in two of them."""
    neighbours: dict[int, list[int]] = {}
    for ((a, b),) in table:
        neighbours.setdefault(a, []).append(b)
        neighbours.setdefault(b, []).append(a)
    seen, here = {0}, 0
    while following := [f for f in neighbours[here] if f not in seen]:
        here = following[0]
        seen.add(here)
    return len(seen)


@pytest.mark.parametrize("kind", MAPPED)
@pytest.mark.parametrize("features", [10, 12, 36, 50])
@pytest.mark.parametrize("draw", [draw_table, draw_released_table])
def test_drawn_tables_are_regular_and_alternate(kind: str, features: int, draw) -> None:
    half, places = features // 2, 4 if kind in ("T5", "T7") else 2
    for seed in range(5):
        table = draw(kind, features, seed)
        assert len(table) == features
        uses = Counter(f for pairs in table for pair in pairs for f in pair)
        assert uses == dict.fromkeys(range(features), places)
        for query, pairs in enumerate(table):
            assert len(pairs) == places // 2
            for place, (a, b) in enumerate(pairs):
                assert (a < half) != (b < half)
                if kind in ("T6", "T7"):  # even ids: first pair high first, second low first; odd ids the reverse
                    assert (a >= half) == ((query + place) % 2 == 0)
        check_table(kind, table, features)


@pytest.mark.parametrize("draw", [draw_table, draw_released_table])
def test_tables_of_one_task_seed_belong_together(draw) -> None:
    tables = {kind: draw(kind, 36, 3) for kind in MAPPED}
    assert tables["T3"] == tables["T4"]
    assert unordered(tables["T4"]) == unordered(tables["T6"])
    assert unordered(tables["T5"]) == unordered(tables["T7"])
    assert draw("T5", 36, 3) == tables["T5"] != draw("T5", 36, 4)


@pytest.mark.parametrize("features", [10, 12, 36])
def test_drawn_tables_are_distinct_and_disjoint(features: int) -> None:
    for seed in range(20):
        for kind in ("T4", "T5"):
            table = draw_table(kind, features, seed)
            pairs = [pair for query in unordered(table) for pair in query]
            assert len(set(pairs)) == len(pairs)
            assert not any(has_shared_feature(query) for query in table)


@pytest.mark.parametrize("features", [10, 36])
def test_options_allow_repeated_pairs_and_shared_features(features: int) -> None:
    repeated = shared = 0
    for seed in range(20):
        table = draw_table("T5", features, seed, distinct_pairs=False, disjoint_within_query=False)
        check_table("T5", table, features)  # a query never has the same pair twice
        pairs = [pair for query in unordered(table) for pair in query]
        repeated += len(set(pairs)) < len(pairs)
        shared += any(has_shared_feature(query) for query in table)
        disjoint = draw_table("T5", features, seed, distinct_pairs=False)
        assert not any(has_shared_feature(query) for query in disjoint)
    assert repeated > 10 and shared > 10


def test_one_pair_tables_are_one_single_cycle() -> None:
    for seed in range(5):
        assert cycle_length(draw_table("T4", 36, seed)) == 36
        assert cycle_length(draw_released_table("T4", 36, seed)) == 36


def test_released_table_has_the_measured_quirks() -> None:
    for seed in range(20):
        t5, t7 = draw_released_table("T5", 36, seed), draw_released_table("T7", 36, seed)
        uses = Counter(pair for query in unordered(t5) for pair in query)
        assert len(uses) == 68 and sorted(uses.values()) == [1] * 64 + [2] * 4
        sharing = [query for query in t5 if has_shared_feature(query)]
        assert len(sharing) == 6 and all(len({f for pair in q for f in pair}) == 3 for q in sharing)
        queries_of = Counter(f for query in t5 for f in {f for pair in query for f in pair})
        assert sorted(queries_of.values()) == [3] * 6 + [4] * 30
        assert len({pair for query in t7 for pair in query}) == 70


@pytest.mark.parametrize("kind", MAPPED)
def test_written_mapping_files_are_read_back(kind: str, tmp_path: Path) -> None:
    table, path = draw_released_table(kind, 36, 1), tmp_path / "q_vocab.txt"
    write_mapping(table, path)
    assert load_mapping(path, kind) == table
    first = path.read_text().splitlines()[0]
    assert first == "0\t" + "\t".join(f"{a} {b}" for a, b in table[0])
    # The lines may come in any order, and unordered tasks may name either feature of a pair first.
    path.write_text("".join(reversed(path.read_text().splitlines(keepends=True))))
    assert load_mapping(path, kind) == table


FAULTS = [
    ("T4", lambda lines: lines[:-1], "line 35: the file ends with 35 of 36 queries; query 35 is missing"),
    ("T4", lambda lines: [*lines, lines[3]], "line 37: query 3 is given twice"),
    ("T4", lambda lines: ["x\t1 20", *lines[1:]], "line 1: expected id, tab, 'a b'; got"),
    ("T4", lambda lines: [lines[0].replace("\t", " "), *lines[1:]], "line 1: expected id, tab"),
    ("T4", lambda lines: ["0\t1 2", *lines[1:]], "line 1: a pair joins one of 0 … 17 with one of 18 … 35, got 1 2"),
    ("T4", lambda lines: ["0\t1 36", *lines[1:]], "line 1: features are 0 … 35, got 1 36"),
    ("T4", lambda lines: [*lines[:5], "36\t1 20", *lines[6:]], "line 6: query ids are 0 … 35; got 36"),
    ("T4", lambda lines: [f"{lines[0]}\t1 20", *lines[1:]], "line 1: expected 1 pair"),
    ("T4", lambda lines: ["", *lines], "line 1: expected id"),
    ("T4", lambda lines: [lines[0], f"1\t{lines[0].split()[1]} {lines[1].split()[2]}", *lines[2:]],
     "every feature must be used 2 times"),
    ("T5", lambda lines: [lines[0].rpartition("\t")[0], *lines[1:]], "line 1: expected 2 pair"),
    ("T5", lambda lines: ["0\t1 20\t20 1", *lines[1:]], "line 1: its two pairs are the same"),
    ("T6", lambda lines: [lines[0], "1\t" + " ".join(reversed(lines[1].split()[1:])), *lines[2:]],
     "line 2: orders alternate: pair 1 must name its low feature first"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "spoil", "message"), FAULTS)
def test_a_faulty_mapping_file_is_an_error_that_names_the_line(kind: str, spoil, message: str, tmp_path: Path) -> None:
    path = tmp_path / "q_vocab.txt"
    write_mapping(draw_table(kind, 36, 0), path)
    path.write_text("".join(f"{line}\n" for line in spoil(path.read_text().splitlines())))
    with pytest.raises(UsageError) as caught:
        load_mapping(path, kind)
    assert message in str(caught.value) and str(path) in str(caught.value)


def test_wrong_use_of_mapping_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="T1 has no query table"):
        load_mapping(tmp_path / "none", "T1")
    with pytest.raises(UsageError, match="cannot be read"):
        load_mapping(tmp_path / "none", "T4")


def test_a_task_takes_a_published_file_by_its_path(tmp_path: Path) -> None:
    """What the file says enters the config and its id, not where it lies."""
    table = draw_table("T4", 36, 7)
    for name in ("a.txt", "b.txt"):
        write_mapping(table, tmp_path / name)
    first, second = (task("retrieval/T4", mapping=str(tmp_path / name)) for name in ("a.txt", "b.txt"))
    assert first.table == table and first.identity() == second.identity()
    (tmp_path / "a.txt").write_text("0\t1 2\n")
    with pytest.raises(UsageError, match=r"a\.txt, line 1"):
        task("retrieval/T4", mapping=str(tmp_path / "a.txt"))
    with pytest.raises(UsageError, match=r"missing\.txt"):
        task("retrieval/T4", mapping=str(tmp_path / "missing.txt"))
