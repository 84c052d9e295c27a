"""What people see: the chain in words, and the sampling graph as a picture."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import numpy as np
import pytest

from support.ctl_worlds import SMALL, STAGED, make
from unseen.tasks.base import Examples
from unseen.tasks.ctl.encode import Chains, encode
from unseen.tasks.ctl.render import COLOURS
from unseen.tasks.ctl.task import Lookup

PAPER = {
    "symbols": 8,
    "functions": {
        "a": [1, 0, 2, 5, 4, 3, 6, 7],
        "b": [0, 1, 2, 3, 4, 7, 6, 5],
        "c": [7, 1, 2, 3, 4, 5, 6, 0],
        "d": [0, 1, 3, 2, 4, 5, 6, 7],
    },
}


def example(task: Lookup, start: int, *functions: str) -> Examples:
    """One example, functions in order of application."""
    ids = np.array([[task.actual_world.names.index(name) for name in functions]])
    return encode(task.actual_world, task.trained_entries, task.order, Chains.from_walks((np.array([start]), ids)))


def test_description_of_c_b_a_3() -> None:
    world = {**PAPER, "groups": {"a": ["a", "b"], "b": ["c", "d"]}}
    task = make("ctl/A", world=world, train_size=100, iid_size=10)
    found = task.describe(example(task, 3, "a", "b", "c"), 0)
    assert found.splitlines() == [
        "ctl/A, 3 functions: c b a 3",
        "  a(3) = 5    group a",
        "  b(5) = 7    group a",
        "  c(7) = 0    group b",
        "answer: 0",
        "not in the training language: b after a (a → a) is no training transition",
    ]
    assert task.describe(example(task, 3, "a", "b"), 0).splitlines()[-1] == (
        "in the test language: b after a (a → a) is no training transition"
    )
    assert task.describe(example(task, 3, "a", "c", "b"), 0).splitlines()[-1] == (
        "in the training language: a → b → a, training transitions all the way"
    )
    assert task.describe(example(task, 3, "a"), 0).splitlines()[-1] == (
        "in the training language: a single function of group a"
    )
    forward = make("ctl/A", world=world, order="forward")
    assert forward.describe(example(forward, 3, "a", "b", "c"), 0).startswith("ctl/A, 3 functions: 3 a b c")


def test_descriptions_agree_with_factors() -> None:
    task = make("ctl/S", **STAGED)
    for split in task.splits:
        examples = task.sample(split, 20)
        for index in range(20):
            text = task.describe(examples, index)
            assert f"answer: {examples.targets[index]}" in text
            assert text.count("group ") - text.splitlines()[-1].count("group ") == examples.factors["length"][index]
            trained = split in ("train", "iid")
            assert not trained or "in the training language" in text
            assert split != "ood/transition" or "in the test language" in text


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ctl/A", SMALL),
        ("ctl/R", {**SMALL, "groups": 4, "train_size": 150}),
        ("ctl/S", STAGED),
        ("ctl/S", {**STAGED, "stages": 3, "functions": 18, "bridge_stage": 2}),
        ("ctl/graph", {}),
        ("ctl/lengths", {}),
    ],
)
def test_picture_draws_every_node_and_edge_in_its_colour(name: str, options: dict[str, object]) -> None:
    task = make(name, **options)
    graph = task.actual_world.graph
    root = ElementTree.fromstring(task.picture(task.sample("train", 3), 2))
    tag = "{http://www.w3.org/2000/svg}"
    width, height = (float(root.attrib[key]) for key in ("width", "height"))
    titled = {
        path.find(f"{tag}title").text: path.attrib["stroke"]
        for path in root.iter(f"{tag}path")
        if path.find(f"{tag}title") is not None
    }
    assert len(titled) == len({(edge.source, edge.target, edge.split) for edge in graph.edges})
    for edge in graph.edges:
        assert any(
            title.startswith(f"{edge.source} → {edge.target}:") and stroke == COLOURS[edge.split]
            for title, stroke in titled.items()
        )
    texts = [text.text for text in root.iter(f"{tag}text")]
    assert all(node.name in texts for node in graph.nodes)
    for circle in root.iter(f"{tag}circle"):
        x, y, r = (float(circle.attrib[key]) for key in ("cx", "cy", "r"))
        assert r <= x <= width - r and r <= y <= height - r
    large = [circle for circle in root.iter(f"{tag}circle") if circle.attrib["r"] == "36"]
    nodes = [(float(circle.attrib["cx"]), float(circle.attrib["cy"])) for circle in large]
    assert len(nodes) == len(graph.nodes)
    assert all(np.hypot(a[0] - b[0], a[1] - b[1]) > 80 for i, a in enumerate(nodes) for b in nodes[:i])


def test_factors_can_be_written_as_json() -> None:
    examples = make("ctl/S", **STAGED).sample("train", 2)
    assert json.dumps({key: value.tolist() for key, value in examples.factors.items()})
