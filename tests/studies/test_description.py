"""A study's question, axes, notes, deviations and selection of weights travel in the store."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import unseen
from support.store_builder import build
from unseen.report.data import Source
from unseen.report.page import page
from unseen.store.merge import merge
from unseen.store.store import Store
from unseen.studies.description import find_description, merge_descriptions, read_description
from unseen.studies.study import study

YAML = """
study: order-and-length
question: Does the length decide <whether> order is seen?
notes: [Only one mapping is tried]
selection: last
seeds: 2
base:
  task: {name: retrieval/T3, length: 3, features: 8, train_size: 100, evaluation_size: 50}
  model: {name: retrieval-transformer, width: 8}
  recipe: {steps: 4, batch: 4, validate_every: 2, validation_examples: 20}
  evaluation: {examples: 20}
axes:
  task.length: [3, 4]
scales:
  smoke: {seeds: 1, minutes: 1}
  full: {}
"""
PYTHON = """
from unseen.studies.study import Grid, Study

BASE = {
    "task": {"name": "retrieval/T3", "length": 3, "features": 8, "train_size": 100, "evaluation_size": 50},
    "model": {"name": "retrieval-transformer", "width": 8},
    "recipe": {"steps": 4, "batch": 4, "validate_every": 2, "validation_examples": 20},
    "evaluation": {"examples": 20},
}


def grids(scale):
    axes = {"length": {n: {"task": {"length": n}} for n in (3, 4)}}
    return [Grid(axes=axes, base=BASE, seeds=range(1 if scale == "smoke" else 2))]


study = Study(
    "order-and-length", 1, "Does the length decide <whether> order is seen?", {"smoke": 1, "full": None}, grids,
    notes=("Only one mapping is tried",), selection="last",
)
"""


@pytest.fixture(scope="module", params=["yaml", "py"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("described")
    file = folder / f"mine.{request.param}"
    file.write_text(YAML if request.param == "yaml" else PYTHON)
    unseen.run(file, folder / "store", scale="smoke", executor="inline", progress="none")
    file.unlink()  # somebody else has the store alone
    return folder / "store"


def test_the_store_tells_what_the_study_is(store: Path) -> None:
    description = Source.read(store).description
    assert description is not None
    assert description.question == "Does the length decide <whether> order is seen?"
    assert description.axes == {"length": [3, 4]}
    assert description.notes == ("Only one mapping is tried",)
    assert description.selection == "last"
    assert {name: (scale.trials, scale.seeds, scale.minutes) for name, scale in description.scales.items()} == {
        "smoke": (2, (0,), 1.0),
        "full": (4, (0, 1), None),
    }
    deviations = description.scales["smoke"].deviations
    assert deviations is not None and "Only one mapping is tried" in deviations and "1 seed (full: 2)" in deviations
    assert description.scales["full"].deviations is None


def test_the_page_asks_the_question_and_shows_the_right_weights(store: Path) -> None:
    source = Source.read(store)
    text = page(source)
    assert source.selection == "last"
    assert "Does the length decide &lt;whether&gt; order is seen?" in text
    assert "Only one mapping is tried" in text and "last weights" in text
    assert "catalogue" not in text


def test_a_later_scale_keeps_the_deviations_of_the_first(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(YAML)
    for scale in ("smoke", "full"):
        unseen.run(file, tmp_path / "store", scale=scale, executor="inline", progress="none")
    description = Source.read(tmp_path / "store").description
    assert description is not None
    assert all(scale.deviations is not None for scale in description.scales.values())


def test_a_store_without_a_description_is_still_read(tmp_path: Path) -> None:
    """Stores of older releases: the catalogue knows its own studies, of others only the runs are known."""
    mine = Source.read(build(tmp_path / "mine"))
    assert mine.description is None and mine.selection == "best"
    assert "does not say what the study made-up@1 asks" in page(mine)
    ours = Source.read(build(tmp_path / "ours", study=f"rules-main@{study('rules-main').version}", scale="mini"))
    assert ours.description is not None and ours.description.question == study("rules-main").question
    assert ours.selection == "last"


@pytest.mark.parametrize(
    "facts",
    [
        {"question": "q"},
        {"question": "q", "axes": 3, "claims": [], "notes": [], "selection": "best", "scales": {}},
        {"question": "q", "axes": [["a"]], "claims": [], "notes": [], "selection": "best", "scales": {}},
        {"question": "q", "axes": [], "claims": [], "notes": [], "selection": "best", "scales": {"mini": 3}},
    ],
)
def test_a_description_that_cant_be_read_is_none(facts: dict[str, Any], tmp_path: Path) -> None:
    assert read_description(facts) is None
    assert find_description({"study": "nobody@1"}, facts) is None
    with Store.write(build(tmp_path / "store")) as store:
        store.describe(facts)
    assert Source.read(tmp_path / "store").description is None


def test_no_description_is_json_of_a_list(tmp_path: Path) -> None:
    build(tmp_path / "store")
    with sqlite3.connect(tmp_path / "store" / "store.sqlite") as connection:
        connection.execute("INSERT INTO meta VALUES ('study', ?)", (json.dumps([1]),))
    with Store.read(tmp_path / "store") as opened:
        assert opened.description == {}


def test_merging_keeps_the_description(store: Path, tmp_path: Path) -> None:
    with Store.write(tmp_path / "merged") as target, Store.read(store) as source:
        merge(target, source)
        assert target.description == source.description
    both = merge_descriptions(
        {"question": "a", "scales": {"mini": {"trials": 2}}},
        {"question": "b", "scales": {"mini": {"trials": 2, "deviations": ["x"]}, "full": {"trials": 4}}},
    )
    assert both == {
        "question": "a",
        "scales": {"mini": {"trials": 2, "deviations": ["x"]}, "full": {"trials": 4}},
    }


def test_a_single_training_tells_how_its_recipe_differs(tmp_path: Path) -> None:
    options = {"steps": 4, "batch": 4, "validate_every": 2, "validation_examples": 20}
    task = unseen.task("retrieval/T1", length=3, features=8, train_size=100, evaluation_size=50)
    unseen.train(task, "retrieval-transformer", seeds=1, out=tmp_path / "one", progress="none", **options)
    text = page(Source.read(tmp_path / "one"))
    assert "How well does retrieval-transformer solve retrieval/T1?" in text
    assert "steps 4 (paper: 1000000)" in text and "Not known" not in text
