"""Worlds: tables, groups and symbol sets, drawn and given, in and out of files; and the solver."""

from __future__ import annotations

import ast
import json
from math import factorial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.ctl_worlds import PUBLISHED, SMALL, STAGED, make, published, published_examples
from unseen.errors import UsageError
from unseen.tasks.ctl import automaton, load_world, solver
from unseen.tasks.ctl.solver import decode, decode_all, solve
from unseen.tasks.ctl.variants import draw_symbol_sets
from unseen.tasks.ctl.world import draw_tables, make_world


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.integers(2, 6), st.integers(0, 100), st.booleans(), st.data())
def test_tables_are_distinct_maps_or_permutations(
    symbols: int, seed: int, bijective: bool, data: st.DataObject
) -> None:
    possible = factorial(symbols) if bijective else symbols**symbols
    functions = data.draw(st.integers(1, min(20, possible)))
    tables = draw_tables(symbols, functions, seed, bijective)
    assert len(set(tables)) == len(tables) == functions
    assert all(len(table) == symbols and set(table) <= set(range(symbols)) for table in tables)
    assert not bijective or all(len(set(table)) == symbols for table in tables)


@pytest.mark.parametrize(
    ("symbols", "bijective", "possible"), [(2, True, 2), (3, True, 6), (4, True, 24), (2, False, 4)]
)
def test_more_distinct_tables_than_exist_are_refused(symbols: int, bijective: bool, possible: int) -> None:
    message = f"{possible + 1} different functions of {symbols} symbols: only {possible} exist"
    with pytest.raises(UsageError, match=message):
        draw_tables(symbols, possible + 1, 0, bijective)


def test_tables_of_all_permutations_and_of_many_symbols() -> None:
    assert len(set(draw_tables(4, 24, 0))) == 24
    assert len(set(draw_tables(25, 40, 0))) == 40  # 25! needs Python integers
    assert draw_tables(8, 32, 0) != draw_tables(8, 32, 1)
    independent = [draw_tables(2, 11, seed, distinct=False) for seed in range(20)]
    assert all(len(tables) == 11 and len(set(tables)) <= 2 for tables in independent)


def sets_by_the_book(functions: int, symbols: int, shared: int) -> list[tuple[set[int], set[int]]]:
    """The first pass of the published rule for two paths, before any random order."""
    found = []
    for place in range(min(functions, -(-symbols // shared))):
        common = {(place * shared + step) % symbols for step in range(shared)}
        others = [symbol for symbol in range(symbols) if symbol not in common]
        half = (len(others) + 1) // 2
        found.append((common | set(others[:half]), common | set(others[half:])))
    return found


@settings(derandomize=True, deadline=None, max_examples=80)
@given(st.integers(1, 16), st.integers(2, 8), st.data())
def test_symbol_sets_share_k_and_cover_everything(functions: int, symbols: int, data: st.DataObject) -> None:
    shared = data.draw(st.integers(1, symbols))
    cut = data.draw(st.sampled_from(["ascending", "random"]))
    names = [f"f{place}" for place in range(functions)]
    sets = draw_symbol_sets(names, symbols, shared, 2, cut, data.draw(st.integers(0, 50)))
    common = set()
    for name in names:
        a, b = set(sets["a"][name]), set(sets["b"][name])
        assert len(a & b) == shared and a | b == set(range(symbols)) and abs(len(a) - len(b)) <= 1
        common |= a & b
    assert (len(common) == symbols) or functions * shared < symbols
    if cut == "ascending" and symbols - shared != 1:
        book = sets_by_the_book(functions, symbols, shared)
        assert [(set(sets["a"][n]), set(sets["b"][n])) for n in names[: len(book)]] == book


def test_symbol_sets_of_the_published_world() -> None:
    assert draw_symbol_sets(list("abcd"), 4, 1, 2, "ascending", 0) == published("S_4_12_o4_k1")["symbol_sets"]


def test_three_paths_divide_the_others() -> None:
    sets = draw_symbol_sets(["f"], 8, 2, 3, "random", 0)
    others = [set(sets[path]["f"]) - {0, 1} for path in "abc"]
    assert [len(own) for own in others] == [2, 2, 2] and set.union(*others) == set(range(2, 8))


def test_groups_are_consecutive_blocks_and_spread_the_remainder() -> None:
    assert {g: len(m) for g, m in make("ctl/A", functions=33, groups=5).actual_world.groups.items()} == {
        "a": 7,
        "b": 7,
        "c": 7,
        "d": 6,
        "e": 6,
    }
    world = make("ctl/S", bridge=8).actual_world
    assert list(world.groups) == ["o", "a1", "a2", "b1", "b2"]
    assert [world.members(group).tolist() for group in world.groups] == [
        list(range(8)),
        *(list(range(first, first + 6)) for first in (8, 14, 20, 26)),
    ]


@pytest.mark.parametrize(
    ("name", "part", "split"),
    [
        (name, part, split)
        for name in PUBLISHED
        for part, split in (("train", "train"), ("iid", "iid"), ("pairs", "train"), ("ood", "ood/transition"))
    ],
)
def test_published_examples_obey_the_rules_of_their_split(name: str, part: str, split: str) -> None:
    task = make(f"ctl/{name[0]}", world=published(name), preset="released", train_size=2_000)
    world, count = task.actual_world, 0
    rule = task.split_sources[split].rule
    other = automaton.training_fault if split == "ood/transition" else automaton.testing_fault
    for functions, symbol, target in published_examples(name, part):
        ids = [world.names.index(f) for f in reversed(functions)]
        assert solve(list(world.functions.values()), ids, symbol) == target
        assert rule(world, functions[::-1], symbol) is None
        assert other(world, functions[::-1], symbol) is not None
        count += 1
    assert count == 50


def test_a_saved_world_is_read_back(tmp_path: Path) -> None:
    task = make("ctl/S", **STAGED)
    task.actual_world.save(tmp_path / "world.json")
    assert load_world(tmp_path / "world.json") == task.actual_world
    again = make("ctl/S", world=str(tmp_path / "world.json"), **STAGED)
    assert again.actual_world == task.actual_world
    assert hash(again) == hash(type(again).parse(again.options()))
    assert again.options()["world"]["functions"] == json.loads((tmp_path / "world.json").read_text())["functions"]
    assert (again.sample("probe/singles", 20).targets >= 0).all()
    named = {"symbols": ["x", "y"], "functions": {"f": ["y", "x"], "g": ["x", "y"]}, "groups": {"a": ["f"], "b": ["g"]}}
    options = {"max_length": 6, "train_size": 20, "iid_size": 4, "ood_size": 8}
    small = make("ctl/A", world=named, **options)
    assert small.actual_world.tables.tolist() == [[1, 0], [0, 1]] and small.model_dump()["functions"] == 2


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"symbols": 4}, "functions: Field required"),
    ({**published("A_4_8"), "symbols": ["0", "0", "1", "2"]}, "each named once"),
    ({**published("A_4_8"), "functions": {"a": [0, 1, 2, 4]}}, "function 'a' needs 4 symbols 0 … 3"),
    ({**published("A_4_8"), "groups": {"a": ["a", "b"], "b": ["c"]}}, "function belongs to one group; 'd' is in 0"),
    ({**published("A_4_8"), "groups": {"a": ["a", "z"], "b": ["c"]}}, "the function 'z', which has no table"),
    ({**published("A_4_8"), "groups": {"a": 4, "b": 4}}, "a world lists the functions of every group"),
    ({**published("A_4_8"), "tables": 1}, "tables: Extra inputs"),
    ([], "expected an object with the keys symbols, functions, groups, graph"),
]


@pytest.mark.parametrize(("world", "message"), WRONG, ids=[message for _, message in WRONG])
def test_invalid_worlds_are_one_line_errors(world: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "world.json"
    path.write_text(json.dumps(world))
    for given_as in (world, str(path)):
        with pytest.raises(UsageError) as caught:
            make("ctl/A", world=given_as)
        assert message in str(caught.value) and "\n" not in str(caught.value)


def test_worlds_that_do_not_fit_the_task(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the world has 4 symbols, the option says 8"):
        make("ctl/A", world=published("A_4_8"), symbols=8)
    with pytest.raises(UsageError, match="the world has 8 functions, the option says 32"):
        make("ctl/A", world=published("A_4_8"), functions=32)
    without = {key: value for key, value in published("S_4_12_o4_k1").items() if key != "symbol_sets"}
    with pytest.raises(UsageError, match="needs symbol_sets"):
        make("ctl/S", world=without)
    for wrong in ({"a": {}}, {"a": "x"}, 3, {"a": {"a": [0]}, "b": {"a": [9]}}):
        with pytest.raises(UsageError, match="symbol_sets"):
            make("ctl/S", world={**without, "symbol_sets": wrong})
    with pytest.raises(UsageError, match=r"functions\.a: "):
        make("ctl/A", world={**published("A_4_8"), "functions": {"a": True}})
    with pytest.raises(UsageError, match=r"unknown option 'sampeling'. Did you mean 'sampling'"):
        make("ctl/A", world=published("A_4_8"), sampeling="uniform")
    with pytest.raises(UsageError, match="cannot be read"):
        make("ctl/A", world=str(tmp_path / "none.json"))
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(UsageError, match="expected a world as JSON"):
        make("ctl/A", world=str(tmp_path / "bad.json"))


def test_a_world_with_its_own_bridge_and_shared_symbols() -> None:
    """They fit the world's four symbols, not the eight of the defaults."""
    made = make("ctl/S", world=published("S_4_12_o4_k1"), bridge=4, shared=1)
    assert (made.symbols, made.functions) == (4, 12)


def test_symbol_sets_may_use_symbol_names() -> None:
    plain = {**published("S_4_12_o4_k1"), "symbols": ["w", "x", "y", "z"]}
    named = {
        **plain,
        "symbol_sets": {
            path: {f: ["wxyz"[s] for s in symbols] for f, symbols in sets.items()}
            for path, sets in plain["symbol_sets"].items()
        },
    }
    assert make("ctl/S", world=named) == make("ctl/S", world=plain)
    graph = {"edges": [{"from": "a", "to": "a", "in": "train", "symbols": {"f": ["x"]}}]}
    given = {"symbols": ["w", "x"], "functions": {"f": [1, 0]}, "groups": {"a": ["f"]}, "graph": graph}
    assert make_world(given, "w").graph.edges[0].symbols == {"f": (1,)}


def test_symbol_sets_may_be_named_by_path_or_by_group() -> None:
    by_path = published("S_4_12_o4_k1")
    by_group = {**by_path, "symbol_sets": {f"{path}1": sets for path, sets in by_path["symbol_sets"].items()}}
    assert make("ctl/S", world=by_group) == make("ctl/S", world=by_path)


@pytest.mark.parametrize("order", ["backward", "forward"])
def test_solver_decodes_encoded_examples(order: str) -> None:
    task = make("ctl/A", **SMALL, order=order)
    examples = task.sample("train", 200)
    tables = [list(table) for table in task.actual_world.functions.values()]
    chains = decode_all(tables, examples.inputs["token"], examples.inputs["mask"], order == "backward")
    assert [solve(tables, *chain) for chain in chains] == examples.targets.tolist()
    for i in range(50):
        tokens = examples.inputs["token"][i][examples.inputs["mask"][i]].tolist()
        assert (tokens[0], tokens[-1]) == (13, 12) and len(tokens) == examples.factors["length"][i] + 3
        functions, symbol = decode(tokens, 4, 8, order == "backward")
        assert functions == [f for f in examples.factors["functions"][i].tolist() if f >= 0]
        assert symbol == examples.factors["start"][i] == tokens[-2 if order == "backward" else 1]
        walked = automaton.apply_chain(task.actual_world, [task.actual_world.names[f] for f in functions], symbol)
        assert examples.factors["symbols"][i].tolist() == walked + [-1] * (5 - len(walked))
    with pytest.raises(ValueError, match="expected SOS"):
        decode([1, 2, 12], 4, 8, True)


def test_the_solver_imports_nothing_of_ours() -> None:
    tree = ast.parse(Path(solver.__file__).read_text(encoding="utf-8"))
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(f"{'.' * node.level}{node.module or ''}")
    assert imported == {"__future__", "collections.abc", "typing", "numpy", "numpy.typing"}
