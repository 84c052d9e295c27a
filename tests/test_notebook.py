"""What a notebook shows of tasks, specs, examples, runs and activations; and that it is short elsewhere."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

import unseen
from unseen.api import CapturedActivations, Runs
from unseen.errors import UsageError
from unseen.tasks import TASKS

OURS = [entry.name for entry in TASKS if entry.target.startswith("unseen.")]


class Tags(HTMLParser):
    """The elements of a text, and whether each is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    task = unseen.task("retrieval/T1", length=3, features=8, train_size=100, evaluation_size=50)
    options = {"steps": 4, "batch": 4, "validate_every": 2, "validation_examples": 20}
    out: Path = tmp_path_factory.mktemp("notebook") / "runs"
    return unseen.train(task, "retrieval-transformer", seeds=2, out=out, progress="none", **options)


@pytest.mark.parametrize("name", OURS)
def test_every_task_draws_itself(name: str) -> None:
    task = unseen.task(name)
    assert repr(task) == f"task('{name}')"
    seen = Tags(task._repr_html_()).seen
    assert "table" in seen and "svg" in seen
    assert seen.count("tr") >= 1 + len(task.splits)
    assert "table" in Tags(task.spec._repr_html_()).seen


def test_a_task_shows_what_was_set_and_cuts_what_is_long() -> None:
    assert repr(unseen.task("retrieval/T6", length=5)) == "task('retrieval/T6', length=5)"
    table = [[(i % 18, 18 + (i + i // 18) % 18)] for i in range(36)]
    assert len(repr(unseen.task("retrieval/T4", mapping=table))) < 100


def test_examples_are_pictures() -> None:
    task = unseen.task("rules/mlp")
    examples = task.sample("train", 6)
    assert Tags(examples._repr_html_()).seen.count("svg") == 4 and "and 2 more examples" in examples._repr_html_()
    assert len(repr(examples)) < 120 and "of rules/mlp" in repr(examples)
    assert Tags(examples[:2]._repr_html_()).seen.count("svg") == 2
    alone = replace(examples, task=None)
    assert "svg" not in Tags(alone._repr_html_()).seen and "targets" in alone._repr_html_()


def test_runs_and_activations_are_short(runs: Runs) -> None:
    assert len(repr(runs)) < 200 and "2 finished" in repr(runs)
    text = runs._repr_html_()
    mean = runs.accuracy("ood/single").mean()
    assert "ood/single" in text and f"{mean:.3f}" in text and "table" in Tags(text).seen
    activations = runs.activations(n=20)
    assert isinstance(activations, CapturedActivations)
    assert len(repr(activations)) < 200 and "2 models, 20 examples" in repr(activations)
    names = next(iter(activations.activations.values()))
    html = activations._repr_html_()
    assert all(name in html for name in names) and Tags(html).seen.count("tr") == 1 + 2 * len(names)


def test_runs_are_plotted(runs: Runs) -> None:
    chart = runs.plot()
    assert "seed" in str(chart.to_dict())
    assert runs.plot("curves") is not None
    with pytest.raises(UsageError, match="unknown figure 'sedes'"):
        runs.plot("sedes")
