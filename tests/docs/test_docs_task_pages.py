"""The gallery: complete, right and connected."""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from posixpath import dirname, join, normpath
from textwrap import indent
from typing import Any, ClassVar
from xml.etree import ElementTree

import numpy as np
import option_tables
import pandas as pd
import pytest
import task_examples
import task_page
import task_pages
import typer.main
import writing

from unseen.cli.main import app
from unseen.models import MODELS
from unseen.spec import Field, Spec, Target
from unseen.studies.study import STUDIES
from unseen.tasks import TASKS, task
from unseen.tasks.base import Examples, Split, Task

DOCS = Path(__file__).parents[2] / "docs"
NAMES = [entry.name for entry in TASKS if entry.target.startswith("unseen.")]
Pages = Mapping[str, str]


@pytest.fixture(scope="module")
def pages() -> Pages:
    made = list(task_pages.pages())
    assert len({page.path for page in made}) == len(made)
    return {page.path: str(page.content) for page in made}


def block(page: str, language: str) -> str:
    """The first block of a language, its margin removed."""
    found = re.search(rf"^( *)```{language}\n(.*?)\n\1```", page, re.MULTILINE | re.DOTALL)
    assert found, f"no block of {language}"
    return re.sub(f"^{found[1]}", "", found[2], flags=re.MULTILINE)


def targets(path: str, page: str) -> list[str]:
    """What the links and pictures of a page point to, as paths in the site."""
    return [normpath(join(dirname(path), found)) for found in re.findall(r"\]\(([^)\s]+)\)", page)]


def test_every_registered_task_has_a_page_and_a_card(pages: Pages) -> None:
    assert {path for path in pages if path.endswith(".md")} == {"tasks/index.md", *(f"tasks/{n}.md" for n in NAMES)}
    linked = targets("tasks/index.md", pages["tasks/index.md"])
    for entry in TASKS:
        assert f"tasks/{entry.name}.md" in linked and f"tasks/{entry.name}-train.svg" in linked
        assert entry.summary[1:] in pages["tasks/index.md"]


@pytest.mark.parametrize("name", NAMES)
def test_a_page_names_every_split_field_and_option_and_says_what_each_is(pages: Pages, name: str) -> None:
    page, made = pages[f"tasks/{name}.md"], task(name)
    for split in made.splits.values():
        unseen = " × ".join(f"`{factor}`" for factor in split.unseen) or "–"
        assert f"| `{split.name}` | {split.summary} | {unseen} |" in page
    for field in made.spec.inputs:
        assert f"| `{field.name}` | " in page
    for option, info in type(made).model_fields.items():
        if option != "name":
            assert info.description, f"{name}: what is {option} for?"
            assert re.search(rf"^\| `{option}` \| .+ \| {re.escape(info.description)} \|$", page, re.MULTILINE)


@pytest.mark.parametrize("name", NAMES)
def test_the_answers_on_a_page_are_those_of_the_plain_solver(pages: Pages, name: str) -> None:
    page, made = pages[f"tasks/{name}.md"], task(name)
    for split in made.splits:
        shown = made.sample(split, 1)
        solved = Examples(shown.inputs, made.solve(shown), shown.factors)
        text = writing.fenced("text", made.describe(solved, 0))
        assert text in page or indent(text, "    ") in page, split
    record, first = json.loads(block(page, "json")), made.sample("train", 1)
    inputs = {key: np.array([record["inputs"][key]], value.dtype) for key, value in first.inputs.items()}
    assert np.array_equal(made.solve(Examples(inputs, first.targets, {}))[0], record["target"])


@pytest.mark.parametrize("name", NAMES)
def test_a_page_shows_a_sound_picture_of_each_split(pages: Pages, name: str) -> None:
    page, made = pages[f"tasks/{name}.md"], task(name)
    shown = re.findall(r"!\[([^]]+)\]\(([^)]+\.svg)\)", page)
    assert sorted(alt for alt, _ in shown) == sorted(f"An example of {name}, {one}" for one in made.splits)
    assert [alt.rpartition(" ")[2] for alt, _ in shown[:2]] == ["train", task_examples.test_split(made).name]
    for _, file in shown:
        root = ElementTree.fromstring(pages[join(dirname(f"tasks/{name}"), file)])
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        background = root.find("{http://www.w3.org/2000/svg}rect")  # drawn for white paper, on a dark page, too
        assert background is not None and background.get("fill") in ("#ffffff", "#fff", "white")


def test_links_lead_somewhere(pages: Pages) -> None:
    known = {
        *pages,
        *(f"models/{entry.name}.md" for entry in MODELS),
        *(f"studies/{entry.name}.md" for entry in STUDIES),
        *(f"differences/{family}.md" for family in ("rules", "ctl", "gcog", "retrieval")),
    }
    for path, page in pages.items():
        for target in targets(path, page) if path.endswith(".md") else ():
            assert target in known or (DOCS / target).is_file(), f"{path} points to {target}"


@pytest.mark.parametrize("name", NAMES)
def test_commands_and_code_of_a_page_work(pages: Pages, name: str) -> None:
    group = typer.main.get_group(app)
    lines = [shlex.split(line) for line in block(pages[f"tasks/{name}.md"], "sh").splitlines()]
    assert [line[:3] for line in lines] == [["unseen", command, name] for command in ("show", "verify", "train")]
    for _, command, *arguments in lines:
        context = group.commands[command].make_context(command, arguments)
        assert name in context.params.values()
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(block(pages[f"tasks/{name}.md"], "python"), {})
    assert printed.getvalue().startswith(name)


@pytest.mark.parametrize(
    ("name", "studies", "models"),
    [
        ("rules/mha", ["rules-main", "rules-confounds"], ["rules-mha"]),
        (
            "retrieval/T7",
            ["retrieval-table2", "retrieval-lengths", "retrieval-scale"],
            ["retrieval-transformer", "retrieval-lstm"],
        ),
        ("ctl/S", ["ctl-grid"], ["ctl-bilstm", "ctl-transformer", "ctl-ndr"]),
        ("ctl/graph", [], ["ctl-bilstm", "ctl-transformer", "ctl-ndr"]),
    ],
)
def test_a_page_leads_to_the_studies_and_models_of_its_task(
    pages: Pages, name: str, studies: list[str], models: list[str]
) -> None:
    linked = targets(f"tasks/{name}.md", pages[f"tasks/{name}.md"])
    assert [path for path in linked if path.startswith("studies/")] == [f"studies/{one}.md" for one in studies]
    own = [path for path in linked if path.startswith(f"models/{name.partition('/')[0]}-")]
    assert own == [f"models/{one}.md" for one in models]


def test_presets_are_explained_field_by_field(pages: Pages) -> None:
    for name in NAMES:
        if "preset" not in type(task(name)).model_fields:
            continue
        rows = pages[f"tasks/{name}.md"].partition("## Presets")[2].partition("## Commands")[0].splitlines()[6:-1]
        assert len(rows) >= 3
        for row in rows:
            assert row.split(" | ")[1].strip(), f"{name}: {row}"


class Sign(Task):
    name: str = "mine/sign"
    noise: ClassVar[float] = 0.0

    @property
    def spec(self) -> Spec:
        return Spec((), (Field("x", "real", 1),), Target("real", 1))

    @property
    def splits(self) -> Mapping[str, Split]:
        return {"train": Split("train", "small numbers"), "far": Split("far", "large ones", ("size",))}

    def generate(self, split: str, draws: Any) -> Examples:
        x = draws.normal((self.block, 1), np.float32) * (1 if split == "train" else 10)
        return Examples({"x": x}, np.abs(x), {"size": np.abs(x[:, 0]) > 5})

    def describe(self, examples: Examples, index: int) -> str:
        return f"|{examples.inputs['x'][index, 0]:.1f}|"


def test_a_task_of_somebody_else_without_words_or_pictures_has_a_page() -> None:
    made = Sign()
    assert list(task_examples.pictures(made)) == []
    page = task_page.write(made, "the size of a number", False)
    assert page.startswith("# mine/sign\n\nThe size of a number\n\n## Examples") and "svg" not in page
    assert "| `far` | large ones | `size` | endless |" in page and "unseen train mine/sign lstm" in page
    assert all(title not in page for title in ("What it asks", "## Presets", "Where it comes from"))


@pytest.mark.parametrize("module", [writing, option_tables, task_examples])
def test_the_examples_of_the_helpers_hold(module: Any) -> None:
    found = doctest.testmod(module)
    assert found.attempted and not found.failed


def test_the_committed_shares_follow_from_the_tasks() -> None:
    import unseen_shares

    committed = unseen_shares.read()
    assert set(committed["task"]) <= set(NAMES) and {"ctl/A", "gcog/systematic-operators"} <= set(committed["task"])
    rows = committed[committed["task"] == "ctl/A"].set_index("split")
    made = pd.DataFrame(unseen_shares.compute(task("ctl/A"))).set_index("split")
    for name in ("n", "training", "other_form", "same_form", "new", "short"):
        np.testing.assert_allclose(rows[name], made[name], atol=1e-4)
    assert rows["lacking"].fillna("").tolist() == made["lacking"].tolist()
    assert (made["same_form"] + made["other_form"] + made["new"]).between(1 - 1e-9, 1 + 1e-6).all()


def test_task_pages_show_the_shares(pages: Pages) -> None:
    page = pages["tasks/ctl/A.md"]
    section = page.partition("## What is really unseen")[2].partition("\n## ")[0]
    assert "of one or two functions" in section and "| `ood/transition` | 0.0 % | 91.3 % [89.4, 92.9] |" in section
    assert "operator × object 100.0 %" in pages["tasks/gcog/systematic-operators.md"]
