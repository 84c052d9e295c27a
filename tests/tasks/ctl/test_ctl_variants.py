"""Sampling graphs: what is refused and why, what a split may call unseen, more groups and stages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.ctl_worlds import SMALL, STAGED, make
from unseen.errors import UsageError
from unseen.tasks import task
from unseen.tasks.ctl.splits import unseen_factors
from unseen.tasks.verify import verify

OPTIONS = {**SMALL, "functions": 6, "train_size": 60, "iid_size": 10, "ood_size": 20}


def graph(edges: list[tuple[str, str, str]], groups: Any = None, nodes: Any = None) -> dict[str, Any]:
    found = {
        "groups": groups or {"a": 2, "b": 2, "c": 2},
        "edges": [{"from": one, "to": other, "in": split} for one, other, split in edges],
    }
    return found | ({"nodes": nodes} if nodes else {})


RING = [("a", "b", "both"), ("b", "c", "both"), ("c", "a", "train"), ("c", "b", "test")]
WRONG: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "ambiguous edges": (
        graph([*RING, ("a", "b", "test")]),
        {},
        "ambiguous at 'a', after which 'b' may come: the function 'c' leads to two nodes",
    ),
    "ambiguous starts": (
        graph(RING, nodes=[{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "d", "group": "a"}]),
        {},
        "ambiguous at the start",
    ),
    "unreachable": (
        graph(
            RING[:2],
            nodes=[
                {"name": "a"},
                {"name": "b", "start": False},
                {"name": "c", "start": False},
                {"name": "d", "group": "a", "start": False},
            ],
        ),
        {},
        "never reaches node 'd'",
    ),
    "dead end": (
        graph(RING[:2], nodes=[{"name": "a"}, {"name": "b"}, {"name": "c", "end": False}]),
        {},
        "node 'c' of the sampling graph is a dead end",
    ),
    "no training example": (graph([("a", "b", "test"), ("b", "c", "test")]), {}, "no training example has 2 … 4"),
    "no test example": (
        graph(
            [("a", "a", "train"), ("a", "b", "both"), ("b", "c", "test")],
            nodes=[{"name": "a"}, {"name": "b", "start": False, "end": False}, {"name": "c", "start": False}],
        ),
        {"min_length": 2, "max_length": 2},
        "no test example has 2 … 2 functions; the shortest has 3",
    ),
    "coverage": (
        graph([("a", "b", "train"), ("b", "a", "train"), ("c", "c", "test")]),
        {"always_include": "none"},
        "no training example of 2 … 4 functions has e, f; every function must occur",
    ),
    "overlap": (
        graph(
            [("a", "a2", "train"), ("a", "b", "test"), ("a2", "c", "both")],
            groups={"a": ["x"], "b": ["y"], "c": ["z"]},
            nodes=[
                {"name": "a"},
                {"name": "a2", "group": "b", "start": False},
                {"name": "b", "start": False},
                {"name": "c", "start": False},
            ],
        ),
        {"functions": 3, "symbols": 3},
        "examples of 2 functions are in training and in test, e.g. y x 0",
    ),
    "unknown group": (graph(RING, nodes=[{"name": "a"}, {"name": "q"}]), {}, "node 'q' is of group 'q'; there are a"),
    "unknown node": (graph([*RING, ("a", "q", "test")]), {}, "an edge goes from 'a' to 'q'"),
    "two nodes of a name": (graph(RING, nodes=[{"name": "a"}, {"name": "a"}]), {}, "two nodes have the same name"),
    "a word for the split": (graph([("a", "b", "tset")]), {}, "'train', 'test' or 'both'"),
    "sizes": (graph(RING, groups={"a": 2, "b": 2, "c": 3}), {}, "the groups have 7 functions, the task 6"),
    "negative sizes": (graph(RING, groups={"a": 4, "b": 3, "c": -1}), {}, "greater than 0"),
    "empty groups": (graph(RING, groups={"a": 4, "b": 2, "c": 0}), {}, "greater than 0"),
    "symbols": (
        {**graph(RING), "edges": [{"from": "a", "to": "b", "in": "both", "symbols": {"c": [4]}}]},
        {},
        "allows 'c' at [4]; symbols are 0 … 3",
    ),
    "a function elsewhere": (
        {**graph(RING), "edges": [{"from": "a", "to": "b", "in": "both", "symbols": {"a": [0]}}]},
        {},
        "restricts 'a', which is not a function of b",
    ),
}


@pytest.mark.parametrize("fault", WRONG)
def test_invalid_graphs_are_refused(fault: str) -> None:
    given, options, message = WRONG[fault]
    with pytest.raises(UsageError) as caught:
        make("ctl/graph", graph=given, **{**OPTIONS, **options})
    assert message in str(caught.value), str(caught.value)


def test_a_graph_from_a_file_is_its_content(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(graph(RING)))
    task = make("ctl/graph", graph=str(path), **OPTIONS)
    assert task == make("ctl/graph", graph=graph(RING), **OPTIONS)
    assert task.options()["graph"]["edges"][0] == {"source": "a", "target": "b", "split": "both", "symbols": None}
    assert task == make("ctl/graph", **json.loads(json.dumps({k: v for k, v in task.options().items() if k != "name"})))
    with pytest.raises(UsageError, match="cannot be read"):
        make("ctl/graph", graph=str(tmp_path / "no.json"))
    path.write_text("[]")
    with pytest.raises(UsageError, match=r"graph\.json"):
        make("ctl/graph", graph=str(path))


def test_the_world_in_the_docs() -> None:
    text = (Path(__file__).parents[3] / "docs" / "ctl.md").read_text(encoding="utf-8")
    world = json.loads(text.partition("```json\n")[2].partition("```")[0])
    task = make("ctl/graph", world=world, train_size=50, iid_size=5, ood_size=20)
    assert task.actual_world.groups == {"x": ("a", "b"), "y": ("c",)}
    assert task.splits["ood/transition"].unseen == ("transition",)


def test_groups_may_name_their_functions() -> None:
    task = make("ctl/graph", graph=graph(RING, groups={"a": ["not", "inc"], "b": 2, "c": ["dec", "half"]}), **OPTIONS)
    assert task.actual_world.groups == {"a": ("not", "inc"), "b": ("a", "b"), "c": ("dec", "half")}


def test_s_as_a_user_graph_has_the_same_languages() -> None:
    """S given as a user's graph has the same languages."""
    staged = make("ctl/S", **STAGED)
    own = make(
        "ctl/graph",
        **{k: v for k, v in STAGED.items() if k not in ("bridge", "shared")},
        graph=staged.actual_world.graph.model_dump(),
        always_include="none",
    )
    assert own.actual_world == staged.actual_world
    sizes = {name: own.size(name) for name in own.splits}
    assert sizes == {name: staged.size(name) for name in staged.splits}


def test_without_test_edges_there_is_no_test_split() -> None:
    task = make("ctl/graph", graph=graph([("a", "b", "both"), ("b", "c", "both"), ("c", "a", "train")]), **OPTIONS)
    assert "ood/transition" not in task.splits and "ood/any" in task.splits
    assert task.sample("ood/any", 5).factors["transition"].shape == (5,)


def test_unseen_factor_depends_on_the_graph() -> None:
    """A transition; an entry, where training and testing differ in symbols; the whole chain, where in the path."""
    assert unseen_factors(make("ctl/A").actual_world) == ("transition",)
    by_symbol = {
        "groups": {"a": 2, "b": 2},
        "edges": [
            {"from": "a", "to": "b", "in": "train", "symbols": {"c": [0, 1], "d": [0, 1]}},
            {"from": "a", "to": "b", "in": "test", "symbols": {"c": [2, 3], "d": [2, 3]}},
            {"from": "b", "to": "a", "in": "both"},
        ],
    }
    task = make("ctl/graph", **{**OPTIONS, "functions": 4, "max_length": 5}, graph=by_symbol)
    assert task.splits["ood/transition"].unseen == ("entry",)
    seen = set(task.sample("train", 60).factors["entry"].tolist())
    assert not set(task.sample("ood/transition", 20).factors["entry"].tolist()) & seen
    staged = make("ctl/S", **{**STAGED, "functions": 16}, stages=3, bridge_stage=2)
    assert {node.name for node in staged.actual_world.graph.nodes} >= {"oa", "ob"}
    assert staged.splits["ood/transition"].unseen == ("transition",)
    by_path = {
        "groups": {"a": 1, "b": 1, "m": 2},
        "nodes": [
            {"name": "a", "end": False},
            {"name": "b", "end": False},
            {"name": "am", "group": "m", "start": False},
            {"name": "bm", "group": "m", "start": False},
        ],
        "edges": [
            {"from": "a", "to": "am", "in": "both"},
            {"from": "b", "to": "bm", "in": "both"},
            {"from": "am", "to": "a", "in": "train"},
            {"from": "bm", "to": "b", "in": "train"},
            {"from": "am", "to": "b", "in": "test"},
            {"from": "bm", "to": "a", "in": "train"},
        ],
    }
    task = make("ctl/graph", **{**OPTIONS, "functions": 4, "max_length": 6, "ood_size": 10}, graph=by_path)
    assert task.splits["ood/transition"].unseen == ("functions", "start")


def test_more_groups_go_round_and_skip() -> None:
    task = make("ctl/A", **{**SMALL, "functions": 10, "train_size": 200}, groups=5, test_skips=(2, 3))
    groups = list(task.actual_world.groups)
    for name, skips in (("train", {1}), ("ood/transition", {2, 3})):
        pairs = set(task.sample(name, 100).factors["transition"].tolist()) - {""}
        assert {(groups.index(p[2]) - groups.index(p[0])) % 5 for p in pairs} == skips


def test_longer_chains_cross_length_with_systematicity() -> None:
    task = make("ctl/A", **SMALL, longer_length=7)
    four = {
        "iid": (2, 4, False),
        "ood/transition": (2, 4, True),
        "ood/length=5-7": (5, 7, False),
        "ood/transition,length=5-7": (5, 7, True),
    }
    for name, (low, high, new) in four.items():
        examples = task.sample(name, task.size(name) or 0)
        lengths = examples.factors["length"]
        assert (lengths.min(), lengths.max()) == (low, high)
        assert set(examples.factors["transition"].tolist()) == ({"a→a", "b→b"} if new else {"a→b", "b→a"})
        assert examples.inputs["token"].shape[1] == max(high, 4) + 3


ERRORS = [
    ("ctl/A", {"min_length": 3, "max_length": 2}, "max_length = 2 is below min_length = 3"),
    ("ctl/A", {"longer_length": 6}, "longer_length = 6 must exceed max_length = 6"),
    ("ctl/A", {"test_skips": (1,)}, "choose among 0 … 1 without 1"),
    ("ctl/R", {"test_skips": ()}, "choose among 0 … 1 without 0"),
    ("ctl/A", {"groups": 1}, "groups = 1"),
    ("ctl/A", {"symbols": 1}, "symbols = 1"),
    ("ctl/A", {"preset": "code"}, "preset = 'code'"),
    ("ctl/S", {"bridge": 2, "shared": 3}, "bridge · shared = 6"),
    ("ctl/S", {"shared": 9}, "shared = 9: there are 8 symbols"),
    ("ctl/S", {"bridge_stage": 3}, "bridge_stage = 3: there are 2 stages"),
    ("ctl/lengths", {"longer": [[5, 8]]}, "expected a range above max_length = 5"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options", "message"), ERRORS)
def test_invalid_options_are_one_line_errors(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        make(name, **options)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_numbers_of_functions_that_cannot_be_met_are_refused() -> None:
    with pytest.raises(UsageError, match="cannot draw 8 different functions of 3 symbols: only 6 exist"):
        make("ctl/A", symbols=3, functions=8).size("train")
    with pytest.raises(UsageError, match="leave 2 for 4 groups"):
        make("ctl/S", functions=6).size("train")


def test_every_group_needs_a_function() -> None:
    with pytest.raises(UsageError, match="functions = 3: each of 4 groups needs one"):
        make("ctl/A", functions=3, groups=4)


COVERED = {"symbols": 4, "functions": 16, "max_length": 4, "train_size": 2000, "iid_size": 50, "ood_size": 200}


def steps_of(examples: Any) -> list[set[tuple[int, int]]]:
    """The steps of every chain: the group before, and the function that follows it."""
    steps = []
    for functions, groups in zip(
        examples.factors["functions"].tolist(), examples.factors["groups"].tolist(), strict=True
    ):
        steps.append(
            {(group, function) for group, function in zip(groups, functions[1:], strict=False) if function >= 0}
        )
    return steps


@pytest.mark.parametrize(("name", "groups"), [("ctl/A", 2), ("ctl/R", 4)])
def test_coverage_is_the_share_of_unseen_steps_that_training_has(name: str, groups: int) -> None:
    trained: dict[float, set[tuple[int, int]]] = {}
    for coverage in (0.0, 0.25, 0.5):
        chosen = task(name, groups=groups, coverage=coverage, **COVERED)
        trained[coverage] = set().union(*steps_of(chosen.sample("train", 2000)))
        for steps in steps_of(chosen.sample("ood/transition", 200, data_seed="test")):
            assert steps and not steps & trained[coverage]  # no step of a test chain is in training
        rest = 16 * groups - len(trained[0.0])  # what training lacks without coverage
        assert len(trained[coverage] - trained[0.0]) == coverage * rest
        assert chosen.splits["ood/transition"].unseen == (("entry",) if coverage else ("transition",))
        assert not {"ood/bridge", "ood/symbols"} & set(chosen.splits)  # A and R have no bridge
    assert trained[0.0] < trained[0.25] < trained[0.5]
    report = verify(chosen, n=200)
    assert report.passed, [check for check in report if check.status == "FAIL"]


def test_coverage_without_meaning_is_refused() -> None:
    with pytest.raises(UsageError, match="none of the 2 functions of group a"):
        task("ctl/A", **{**COVERED, "functions": 4, "coverage": 0.1}).sample("train", 1)
    with pytest.raises(UsageError, match="use the preset clean or paper"):
        task("ctl/A", preset="released", coverage=0.5)
    assert task("ctl/A", coverage=0.0).identity() == task("ctl/A").identity()
