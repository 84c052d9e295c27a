"""The register of differences says what is there: settings are built, tests exist, pages have every entry."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import difference_pages
import pytest
import typer.main

import unseen
from unseen.claims import CLAIMS
from unseen.cli.main import app
from unseen.cli.settings import parse_settings
from unseen.config import Config
from unseen.models import MODELS
from unseen.studies.study import study
from unseen.tasks import TASKS
from unseen.training.recipe import Evaluation, Recipe, recipe

ROOT = Path(__file__).parents[2]
# What the specifications number, without what was added here.
NUMBERED = {
    "rules": [*(f"D{i}" for i in range(1, 31)), *(f"C{i}" for i in range(1, 8))],
    "ctl": [str(i) for i in range(1, 14)],
    "gcog": [str(i) for i in range(1, 21)],
    "retrieval": [*(str(i) for i in range(1, 17)), *(f"A{i}" for i in range(1, 8))],
}
# A task of the kind that the models of a family read; models of the rules family have the names of their tasks.
READS = {"ctl": "ctl/A", "gcog": "gcog/distractor", "retrieval": "retrieval/T1"}


REGISTERS = {family: difference_pages.read(family) for family in difference_pages.FAMILIES}
ENTRIES = [(family, entry) for family, register in REGISTERS.items() for entry in register.entries]
WAYS = sorted({way.set for _, entry in ENTRIES for way in entry.ways})


def options(config: type[Config], given: list[str]) -> dict[str, Any]:
    """What `--set` makes of the settings."""
    return parse_settings(given, {"part": config})["part"]


def check_task(name: str, given: list[str]) -> None:
    plain, other = unseen.task(name), unseen.task(name, **options(TASKS.load(name), given))
    assert other != plain, "this is the default"
    assert other.spec.inputs and other.splits


def check_model(name: str, given: list[str]) -> None:
    family, _, kind = name.partition("-")
    plain = unseen.model(name)
    other = unseen.model(name, **options(type(plain), given))
    assert other != plain, "this is the default"
    reads = READS.get(family, f"{family}/{kind}")
    assert sum(p.numel() for p in unseen.build(other, unseen.task(reads).spec).parameters())


def check_function(name: str, given: list[str]) -> None:
    module, _, attribute = name.rpartition(".")
    takes = inspect.signature(getattr(import_module(module), attribute)).parameters
    for setting in given:
        key, _, value = setting.partition("=")
        assert key in takes, f"{name} has no argument {key}"
        assert value not in (str(takes[key].default), str(takes[key].default).lower()), "this is the default"


def check_command(name: str, given: list[str]) -> None:
    command, *flags = given
    context = typer.main.get_command(app).make_context("unseen", [command])
    found = typer.main.get_command(app).get_command(context, command)  # type: ignore[attr-defined]
    known = {flag for parameter in found.params for flag in parameter.opts}
    assert set(flags) <= known, f"unseen {command} has no {set(flags) - known}"


def check_recipe(name: str, given: list[str]) -> None:
    chosen, *others = given
    assert recipe(chosen, **options(Recipe, others)) != recipe(chosen) or not others, "this is the recipe itself"


def check_evaluation(name: str, given: list[str]) -> None:
    assert Evaluation.parse(options(Evaluation, given)) != Evaluation(), "this is the default"


def check_setting(setting: str) -> None:
    """Build what a setting names, by the rules that `Way` states."""
    name, *given = setting.split()
    special = {
        "recipe": check_recipe,
        "evaluation": check_evaluation,
        "unseen": check_command,
        "study": lambda _, names: study(*names),
        "claim": lambda _, names: CLAIMS.load(*names),
    }
    if name in special:
        special[name](name, given)
    elif name in TASKS:
        check_task(name, given)
    elif name in MODELS:
        check_model(name, given)
    else:
        assert name.startswith("unseen."), f"'{setting}' names nothing that is known"
        check_function(name, given)


@pytest.mark.parametrize("setting", WAYS)
def test_a_setting_is_there_and_is_not_the_default(setting: str) -> None:
    check_setting(setting)


@pytest.mark.parametrize(
    "setting",
    [
        "rules/mlp amplitud=1",
        "rules/mlp preset=clean",
        "rules/mla amplitude=1",
        "rules-rnn cell=gru",
        "claim rules/F77",
        "recipe retrieval-paper steps=1000000",
        "unseen.analysis.adaptation half=true",
        "unseen.analysis.adaptation third=1",
        "unseen results --vote",
        "study rules-man",
        "evaluation analyses=specialisation",
    ],
)
def test_a_wrong_setting_is_noticed(setting: str) -> None:
    with pytest.raises((AssertionError, unseen.UsageError)):
        check_setting(setting)


@pytest.mark.parametrize("family", REGISTERS)
def test_every_number_has_its_entry_and_no_two_have_one(family: str) -> None:
    ids = [entry.id for entry in REGISTERS[family].entries]
    assert len(set(ids)) == len(ids)
    assert set(NUMBERED[family]) <= set(ids)
    anchors = [difference_pages.anchor(entry) for entry in REGISTERS[family].entries]
    assert len(set(anchors)) == len(anchors)


@pytest.mark.parametrize(("family", "entry"), ENTRIES, ids=[f"{family}/{entry.id}" for family, entry in ENTRIES])
def test_entries_are_whole(family: str, entry: Any) -> None:
    for said in (entry.id, entry.subject, entry.paper, entry.code, entry.here, *(way.gives for way in entry.ways)):
        assert isinstance(said, str) and said.strip()
    assert entry.follows in difference_pages.FOLLOWS and entry.kind in ("difference", "caution")
    for named in entry.tested:
        path, _, function = named.partition("::")
        assert re.search(rf"def {function}\(", (ROOT / path).read_text()), f"no test {named}"


def test_pages_have_every_entry_and_count_them() -> None:
    pages = {page.path: page.content for page in difference_pages.pages()}
    assert set(pages) == {"differences/index.md", *(f"differences/{family}.md" for family in REGISTERS)}
    index = pages["differences/index.md"]
    assert f"the {len(ENTRIES)} differences" in " ".join(index.split())
    for family, register in REGISTERS.items():
        page = pages[f"differences/{family}.md"]
        assert len(re.findall(r"^### ", page, re.MULTILINE)) == len(register.entries)
        for entry in register.entries:
            place = difference_pages.anchor(entry)
            assert f"{{ #{place} }}" in page and f"({family}.md#{place})" in index
            assert all(f"`{way.set}`" in page for way in entry.ways)
        counted = re.search(rf"\({family}\.md\) \| (\d+) \| (.*) \|", index)
        assert counted and int(counted[1]) == sum(map(int, counted[2].split(" | "))) == len(register.entries)
