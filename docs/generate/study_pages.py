"""A page for every study of the catalogue: what it asks, what it leaves out, what is judged and drawn from it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from writing import fenced, fold, link, sections, table

from page import Page
from unseen.claims import CLAIMS
from unseen.report.figures import figures
from unseen.studies.deviations import deviations, levels_in_use
from unseen.studies.grid import Level
from unseen.studies.study import STUDIES, Study, study
from unseen.studies.trial import Entry

DOCS = Path(__file__).parents[1]
INDEX, RESULTS = "studies/index.md", "results/index.md"
HEAD = """# The catalogue

The studies that come with Unseen, most of them the papers' own experiments. Minutes are on two cores; scales without any have no
budget. `unseen plan STUDY` estimates the cost on your machine, `unseen run STUDY --out DIR` runs it;
[how to write your own](../studies.md).
"""
RESULTS_HEAD = """# Results

What came out of the studies that were run: tables, figures and findings. The verdicts on the papers' claims over all of
them: [claims](../claims.md).
"""
FULL = "full"


def pages() -> Iterator[Page]:
    """The catalogue, every study, and what was run."""
    yield Page(INDEX, _index())
    for entry in STUDIES:
        yield Page(path_of(entry.name), _page(study(entry.name), entry.summary))
    yield Page(RESULTS, _results())


def path_of(name: str) -> str:
    """Where a study's page is."""
    return f"studies/{name}.md"


def studies_with(model: str) -> list[str]:
    """The studies that have a model at any scale."""
    return [entry.name for entry in STUDIES if model in _used(entry.name)["model"]]


@cache
def entries(name: str, scale: str) -> tuple[Entry, ...]:
    """The trials of a study with their levels."""
    return tuple(study(name).entries(scale))


@cache
def _used(name: str) -> dict[str, tuple[str, ...]]:
    """The tasks and the models of a study, at any scale."""
    trials = [entry.trial for scale in study(name).scales for entry in entries(name, scale)]
    return {part: tuple(sorted({getattr(trial, part).name for trial in trials})) for part in ("task", "model")}


def results_of(name: str) -> dict[str, str]:
    """The pages on what was run of a study: path → title."""
    paths = sorted((DOCS / "results").glob("*.md"))
    own = re.compile(rf"{name}(-({'|'.join(study(name).scales)}))?")
    return {f"results/{path.name}": _first_heading(path) for path in paths if own.fullmatch(path.stem)}


def _first_heading(path: Path) -> str:
    return path.read_text().partition("\n")[0].removeprefix("# ")


def _index() -> str:
    rows = []
    for entry in STUDIES:
        one = study(entry.name)
        run = [link("results", page, INDEX) for page in results_of(entry.name)]
        rows.append((link(entry.name, path_of(entry.name), INDEX), one.question, _scales(one), ", ".join(run)))
    return f"{HEAD}\n{table(('study', 'question', 'scales', 'was run'), rows)}\n"


def _scales(one: Study) -> str:
    return ", ".join(scale if minutes is None else f"{scale} {minutes:g} min" for scale, minutes in one.scales.items())


def _results() -> str:
    parts = []
    for entry in STUDIES:
        for page, title in results_of(entry.name).items():
            picture = Path(page).with_suffix(".svg")
            drawn = f"\n\n[![{title}]({picture.name}){{ loading=lazy }}]({Path(page).name})"
            parts.append(
                f"## {title}\n\n{link('The numbers and what they say', page, RESULTS)}, of the study "
                f"{link(entry.name, path_of(entry.name), RESULTS)}."
                f"{drawn if (DOCS / picture).exists() else ''}"
            )
    return "\n\n".join([RESULTS_HEAD.rstrip(), *parts]) + "\n"


def _page(one: Study, summary: str) -> str:
    path = path_of(one.name)
    body = sections(
        {
            "What was run": "\n\n".join(link(title, page, path) for page, title in results_of(one.name).items()),
            "Scales": f"{_scale_table(one)}\n\n{_commands(one)}",
            "Axes": _axes(one),
            "Tasks and models": _parts(one, path),
            "How it differs from the paper": _deviations(one),
            "Claims": _claims(one, path),
            "Figures": _figures(one),
        }
    )
    return f"# {one.name}\n\n**{one.question}**\n\n{_about(one, summary)}\n\n{body}\n"


def _about(one: Study, summary: str) -> str:
    """The docstring of the study's grids; without one, its line of the registry."""
    text = inspect.cleandoc(one.grids.__doc__ or "") or summary
    return text[:1].upper() + text[1:]


def _scale_table(one: Study) -> str:
    rows = []
    for scale, minutes in one.scales.items():
        trials = [entry.trial for entry in entries(one.name, scale)]
        rows.append(
            (
                f"`{scale}`",
                f"{len(trials):,}",
                str(len({trial.seed for trial in trials})),
                f"{_range(trial.recipe.steps for trial in trials)} of {_range(trial.recipe.batch for trial in trials)}",
                f"{sum(trial.recipe.steps for trial in trials):,}",
                "–" if minutes is None else f"{minutes:g} min",
            )
        )
    return table(("scale", "runs", "seeds", "steps of batch", "steps in all", "budget"), rows)


def _range(numbers: Iterable[int]) -> str:
    found = sorted(set(numbers))
    return f"{found[0]:,}" if len(found) == 1 else f"{found[0]:,} to {found[-1]:,}"


def _commands(one: Study) -> str:
    scale, name = one.default_scale, one.name
    lines = [
        f"unseen plan {name} --scale {scale}",
        f"unseen run {name} --scale {scale} --out runs/{name}",
        f"unseen results runs/{name}",
        *([f"unseen claims runs/{name}"] if one.claims else []),
        f"unseen report runs/{name}",
    ]
    return (
        "Steps and examples in a batch are those of one run; budgets are for two cores. What it costs on your "
        f"machine, and to run it:\n\n{fenced('sh', chr(10).join(lines))}"
    )


def _axes(one: Study) -> str:
    """The levels on every axis; where scales differ, which has which."""
    levels = {scale: levels_in_use(entries(one.name, scale)) for scale in one.scales}
    rows = []
    for axis in dict.fromkeys(axis for used in levels.values() for axis in used):
        groups: dict[frozenset[Level], list[str]] = {}  # a random sample has the same levels in another order
        for scale, used in levels.items():
            groups.setdefault(frozenset(used.get(axis, [])), []).append(scale)
        for scales in groups.values():
            text = ", ".join(map(str, levels[scales[0]].get(axis, []))) or "none"
            rows.append((f"`{axis}`", text, "all" if len(scales) == len(levels) else ", ".join(scales)))
    return table(("axis", "levels", "scales"), rows)


def _parts(one: Study, path: str) -> str:
    used = _used(one.name)
    tasks = ", ".join(link(name, f"tasks/{name}.md", path) for name in used["task"])
    models = ", ".join(link(name, f"models/{name}.md", path) for name in used["model"])
    return f"Tasks: {tasks}.\n\nModels: {models}."


def _deviations(one: Study) -> str:
    """What holds at every scale, then scale by scale, the full one included."""
    full = entries(one.name, FULL) if FULL in one.scales else None
    found = {"At every scale": list(one.notes)}
    found |= {scale: deviations(entries(one.name, scale), full) for scale in one.scales}
    return "\n\n".join(
        fold("note", f"{where}: {len(said)}", _list(said)) if said else f"{where}: nothing else."
        for where, said in found.items()
        if said or where in one.scales
    )


def _list(texts: Sequence[str]) -> str:
    return "\n".join(f"* {text}" for text in texts)


def _claims(one: Study, path: str) -> str:
    if not one.claims:
        return ""
    rows = [(f"`{name}`", CLAIMS.entry(name).summary, CLAIMS.load(name).source) for name in one.claims]
    return (
        f"Judged from its records by `unseen claims DIR`; verdicts so far: {link('claims', 'claims.md', path)}.\n\n"
        f"{table(('claim', 'in short', 'where'), rows)}"
    )


def _figures(one: Study) -> str:
    """Those of the families of its tasks, and those of any study."""
    families = {name.partition("/")[0] for name in _used(one.name)["task"]}
    exam = one.name.startswith("exam")
    some = figures({"exam", ""} if exam else {*families, ""})
    rows = [(f"`{figure.name}`", figure.title, figure.origin) for figure in some]
    return (
        "`unseen report DIR` draws, of these, all that have something to show in what was run:\n\n"
        f"{fold('note', f'{len(rows)} figures', table(('figure', 'what it shows', 'where'), rows))}"
    )
