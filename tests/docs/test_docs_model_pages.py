"""The pages of models and studies: complete, and right in every number that is not generated."""

from __future__ import annotations

import doctest
import re
from collections.abc import Mapping
from pathlib import Path
from posixpath import dirname, join, normpath
from xml.etree import ElementTree

import equations
import model_facts
import model_pages
import numpy as np
import pytest
import study_pages
from latex2mathml.converter import convert
from torch import nn

from support.blocks import check_shell
from unseen.models import BACKBONES, MODELS, options
from unseen.models.build import build, parameter_count
from unseen.models.flops import ForwardFlops
from unseen.studies.study import STUDIES, study
from unseen.tasks import TASKS, task

DOCS = Path(__file__).parents[2] / "docs"
NAMES = [entry.name for entry in MODELS if entry.target.startswith("unseen.")]
COUNTED = ForwardFlops(0.0, 123456.0)
Pages = Mapping[str, str]


@pytest.fixture(scope="module")
def pages() -> Pages:
    """All but the operations, which take most of the time, and which the benchmarks and tests of models count."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model_facts, "forward_flops", lambda module, spec: COUNTED)
        model_facts.sizes.cache_clear()
        made = list(model_pages.pages())
    model_facts.sizes.cache_clear()
    assert len({page.path for page in made}) == len(made)
    return {page.path: str(page.content) for page in made}


@pytest.fixture(scope="module")
def of_studies() -> Pages:
    return {page.path: str(page.content) for page in study_pages.pages()}


def digits(number: int) -> str:
    return f"{number:,}".replace(",", "\u202f")


@pytest.mark.parametrize("module", [model_pages, model_facts, equations, study_pages], ids=lambda m: m.__name__)
def test_worked_examples(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


# Equations


def test_every_model_of_the_package_has_equations() -> None:
    assert set(equations.EQUATIONS) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_steps_have_as_many_parameters_as_the_model_on_every_task_it_is_made_for(name: str) -> None:
    own, tried = equations.EQUATIONS[name], 0
    for spec in model_facts.specs():
        module = model_facts.module(name, spec)
        if module is not None:
            values = own.values(options(name), spec, module)
            assert sum(equations.parameters(step, values) for step in own.steps) == parameter_count(module)
            tried += 1
    assert tried == len(model_facts.specs()) if name in BACKBONES else tried >= 1


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("lstm", {"width": 24, "layers": 3}),
        ("gru", {"width": 24, "layers": 2}),
        ("rnn", {"width": 24, "layers": 2}),
        ("transformer", {"width": 24, "layers": 3, "heads": 3, "feedforward": 2}),
        ("universal-transformer", {"width": 24, "heads": 2, "feedforward": 3}),
        ("ndr", {"width": 24, "heads": 6, "feedforward": 3}),
        ("perceiver", {"width": 24, "latents": 5, "layers": 3, "feedforward": 2}),
        ("modular", {"width": 24, "layers": 3, "feedforward": 2}),
        ("moe-transformer", {"width": 24, "layers": 3, "experts": 5, "feedforward": 2}),
        ("s4d", {"width": 24, "layers": 3, "state": 5, "feedforward": 3}),
        ("mamba", {"width": 24, "layers": 3, "state": 5, "expand": 3, "kernel": 6, "feedforward": 3}),
        ("gla", {"width": 24, "layers": 3, "heads": 6, "kernel": 7, "feedforward": 3}),
        ("deltanet", {"width": 24, "layers": 3, "heads": 6, "kernel": 7, "feedforward": 3}),
        ("retrieval-transformer", {"width": 24}),
        ("retrieval-lstm", {"width": 24}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_and_at_other_sizes(name: str, given: dict[str, int]) -> None:
    """So that no letter passes for another that has the same value by default."""
    own, spec = equations.EQUATIONS[name], task("retrieval/T6").spec
    chosen = options(name, **given)
    module = build(chosen, spec)
    values = own.values(chosen, spec, module)
    assert sum(equations.parameters(step, values) for step in own.steps) == parameter_count(module)


def test_every_letter_of_a_count_is_explained_and_every_letter_is_used() -> None:
    for name, own in equations.EQUATIONS.items():
        letters = set(re.findall(r"[A-Za-z]", " ".join(step.count for step in own.steps)))
        assert letters == set(own.sizes), name


def test_equations_are_well_formed() -> None:
    for own in equations.EQUATIONS.values():
        for step in own.steps:
            text = "".join(ElementTree.fromstring(convert(step.tex)).itertext())
            assert text and "\\" not in text and "{" not in re.sub(r"\{rule,stimulus\}", "", text), step.tex


# Pages of models


def test_every_registered_model_has_a_page(pages: Pages) -> None:
    assert set(pages) == {"models/index.md", *(f"models/{entry.name}.md" for entry in MODELS)}


@pytest.mark.parametrize("name", NAMES)
def test_the_counts_on_the_page_are_those_of_the_module(pages: Pages, name: str) -> None:
    page, where = pages[f"models/{name}.md"], model_facts.reference(name)
    total = parameter_count(build(options(name), task(where).spec))
    assert f"<b>{digits(total)}</b>" in page  # of the equations
    rows = re.findall(r"^\| ([\w/, -]+) \| ([\d\u202f]+) \| (\S+ \S+) \| (.*) \|$", page, re.MULTILINE)
    said = {tasks.split(", ")[0]: count for tasks, count, _, _ in rows}
    built = {
        names[0]: digits(parameter_count(made))
        for spec, names in model_facts.specs().items()
        if (made := model_facts.module(name, spec)) is not None
    }
    assert said == built and digits(total) in said.values()
    assert {each for _, _, each, _ in rows} == {"123.5 kFLOP"}
    for count in built.values():
        assert count in pages["models/index.md"]


@pytest.mark.parametrize("name", NAMES)
def test_parts_and_tensors_add_up(name: str) -> None:
    made = model_facts.module(name, task(model_facts.reference(name)).spec)
    assert isinstance(made, nn.Module)
    assert sum(model_facts.parts(made).values()) == parameter_count(made)
    assert sum(int(np.prod(shape)) * count for _, shape, count in model_facts.tensors_of(made)) == parameter_count(made)


@pytest.mark.parametrize("name", NAMES)
def test_every_option_is_on_the_page_with_its_default_and_what_it_is_for(pages: Pages, name: str) -> None:
    told = {one.name: one for one in model_facts.model_options(name)}
    assert set(told) == set(type(options(name)).model_fields) - {"name"}
    for one in told.values():
        assert one.words, one.name
        assert f"| `{one.name}` | {one.values} | `{one.default}` |" in pages[f"models/{name}.md"]


def test_words_for_options_are_those_of_options() -> None:
    known = {option for name in NAMES for option in type(options(name)).model_fields}
    assert set(model_facts.WORDS) <= known


@pytest.mark.parametrize("name", NAMES)
def test_activations_are_those_that_the_docstring_names(pages: Pages, name: str) -> None:
    captured = model_facts.captured(name, model_facts.reference(name))
    assert captured
    cls = MODELS.load(name)
    told = " ".join([*model_facts.docstrings(cls), cls.forward.__doc__ or ""])
    last = [activation for activation in captured if not re.search(r"\.\d+\.", activation)]
    if name != "perceiver":  # which refers to its core
        assert [activation for activation in last if f"`{activation}`" not in told] == []
    assert all(f"`{activation}`" in pages[f"models/{name}.md"] for activation in last)


def test_the_paper_s_printed_counts() -> None:
    """Table 2 of CTL++ counts numbers that are not trained; ours and those are what it prints, rounded up."""
    table2 = {"ctl-bilstm": (0, 408), "ctl-transformer": (516_744, 672), "ctl-ndr": (5_000, 679)}
    for name, (untrained, printed) in table2.items():
        made = model_facts.module(name, task("ctl/A").spec)
        assert made is not None
        assert -(-(parameter_count(made) + untrained) // 1000) == printed
        assert equations.EQUATIONS[name].printed.startswith(f"{printed} k")


# Pages of studies


def test_every_study_has_a_page(of_studies: Pages) -> None:
    assert set(of_studies) == {"studies/index.md", "results/index.md", *(f"studies/{one.name}.md" for one in STUDIES)}


@pytest.mark.parametrize("name", [entry.name for entry in STUDIES])
def test_a_study_s_page_says_what_it_asks_varies_leaves_out_and_claims(of_studies: Pages, name: str) -> None:
    page, one = of_studies[f"studies/{name}.md"], study(name)
    assert one.question in page and one.question in of_studies["studies/index.md"]
    for scale, minutes in one.scales.items():
        found = study_pages.entries(name, scale)
        row = re.search(rf"^\| `{scale}` \| ([\d,]+) \| (\d+) \|.*\| ([\d,]+) \| (.*) \|$", page, re.MULTILINE)
        assert row is not None, scale
        assert (row[1], row[3]) == (f"{len(found):,}", f"{sum(entry.trial.recipe.steps for entry in found):,}")
        assert row[4] == ("–" if minutes is None else f"{minutes:g} min")
        for axis in found[0].levels:
            assert f"| `{axis}` |" in page
    assert all(f"| `{claim}` |" in page for claim in one.claims)
    assert all(f"* {note}" in page for note in one.notes)
    assert all(f"models/{entry.trial.model.name}.md" in page for entry in study_pages.entries(name, one.default_scale))


def test_deviations_are_those_that_the_study_states(of_studies: Pages) -> None:
    for name in ("quickstart", "ctl-table1", "gcog-pool"):
        for scale in study(name).scales:
            for said in study(name).deviations(scale):
                assert f"* {said}" in of_studies[f"studies/{name}.md"]


def test_every_page_of_results_is_linked_from_its_study_and_from_the_overview(of_studies: Pages) -> None:
    written = {f"results/{path.name}" for path in (DOCS / "results").glob("*.md")}
    linked = {page for entry in STUDIES for page in study_pages.results_of(entry.name)}
    assert linked == written
    for entry in STUDIES:
        for page in study_pages.results_of(entry.name):
            assert f"(../{page})" in of_studies[f"studies/{entry.name}.md"]
            assert f"({Path(page).name})" in of_studies["results/index.md"]


# All


def test_links_lead_somewhere(pages: Pages, of_studies: Pages) -> None:
    known = {
        *pages,
        *of_studies,
        *(f"tasks/{entry.name}.md" for entry in TASKS),
        *(f"differences/{family}.md" for family in ("rules", "ctl", "gcog", "retrieval")),
    }
    for path, text in {**pages, **of_studies}.items():
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            place = normpath(join(dirname(path), target))
            assert place in known or (DOCS / place).is_file(), f"{path}: {target}"


def test_commands_exist(pages: Pages, of_studies: Pages) -> None:
    """One of each form: those of other models and studies differ in the name alone."""
    scripts = [
        script
        for text in {**pages, **of_studies}.values()
        for script in re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ]
    forms = {
        tuple(word for word in line.split()[:2] + re.findall(r"--\w+", line)): line
        for script in scripts
        for line in script.splitlines()
    }
    assert {form[1] for form in forms} == {"train", "plan", "run", "results", "claims", "report"}
    for line in forms.values():
        check_shell(line)


def test_code_is_code(pages: Pages) -> None:
    for path, text in pages.items():
        for code in re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            compile(code, path, "exec")
