"""A page for every registered model: its equations by hand, everything else as the package itself counts it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence

import model_facts
from docstrings import fence_examples
from equations import EQUATIONS, Equations, parameters
from latex2mathml.converter import convert
from model_facts import Size, family, thousands
from study_pages import studies_with
from writing import fenced, fold, link, sections, table

from page import Page
from unseen.cli.plan import format_flops
from unseen.export.families import paper
from unseen.models import MODELS, options
from unseen.tasks import task
from unseen.training.recipe import published_recipe

CONVENTIONS = (
    "At the default options. Vectors are columns; LN is a layer norm with a gain and a bias, σ the logistic function, "
    "⊙ the product entry by entry, [a ; b] one below the other. Dropout is left out."
)
COUNTED = (
    "Counted by the package: trained parameters, and the FLOPs of a forward pass on one example (matrix products; a "
    "multiply-add is two), for sequences as long as in training."
)
INDEX = "models/index.md"
HEAD = """# Models

Every model is an ordinary `torch.nn.Module`. The generic ones read any task; the others are those of the papers, as the
released code has them, with options for what the text says. `unseen models` lists them; [yours](../your-model.md) works
everywhere they do.
"""


def pages() -> Iterator[Page]:
    """The overview, then every model."""
    yield Page(INDEX, _index())
    for name, summary in model_facts.registered():
        yield Page(path_of(name), _page(name, summary))


def path_of(model: str) -> str:
    """Where its page is."""
    return f"models/{model}.md"


def _index() -> str:
    by_family: dict[str, list[tuple[str, str]]] = {}
    for name, summary in model_facts.registered():
        by_family.setdefault(family(name), []).append((name, summary))
    body = sections({_title(of): _overview(of, models) for of, models in by_family.items()})
    return f"{HEAD}\n{body}\n"


def _title(of: str) -> str:
    return f"Family {of}" if of else "For any task"


def _overview(of: str, models: Sequence[tuple[str, str]]) -> str:
    """The models of a family, and how many parameters they have by the task."""
    found = {link(name, path_of(name), INDEX): model_facts.sizes(name) for name, _ in models}
    columns = dict.fromkeys(size.tasks for some in found.values() for size in some)
    counts = [
        (name, *(next((thousands(size.parameters) for size in some if size.tasks == tasks), "–") for tasks in columns))
        for name, some in found.items()
    ]
    told = [(name, summary) for name, (_, summary) in zip(found, models, strict=True)]
    return "\n\n".join(
        filter(
            None,
            [
                f"{paper(task(next(iter(columns))[0]))}." if of else "",
                table(("model", "what it is"), told),
                "Parameters, by the task:",
                table(("model", *map(_tasks, columns)), counts),
            ],
        )
    )


def _page(name: str, summary: str) -> str:
    where, own = model_facts.reference(name), EQUATIONS.get(name)
    cls = MODELS.load(name)
    body = sections(
        {
            "What it computes": _equations(name, own, where) if own else "",
            "Size": _sizes(name, own),
            "Options": _options(name),
            "Activations": _activations(name, where),
            "Use": _use(name, where),
            "Where it comes from": _origin(name, where),
        }
    )
    about = "\n\n".join(fence_examples(re.sub(r"; see `\w+`", "", text)) for text in model_facts.docstrings(cls))
    return f"# {name}\n\n{summary[:1].upper()}{summary[1:]}.\n\n{about}\n\n{body}\n"


def _equations(name: str, own: Equations, where: str) -> str:
    """The steps with their counts for one task, then what the letters stand for."""
    spec = task(where).spec
    made = model_facts.module(name, spec)
    assert made is not None, f"{name} is not made for {where}"
    values = own.values(options(name), spec, made)
    rows = [
        (
            f"{_words(step.words)}<br>{_mathematics(step.tex)}",
            formula(step.count),
            thousands(parameters(step, values)) if step.count else "",
        )
        for step in own.steps
    ]
    total = sum(parameters(step, values) for step in own.steps)
    rows.append(("<b>in all</b>", "", f"<b>{thousands(total)}</b>"))
    letters = table(
        ("letter", "what it is", f"here, on `{where}`"),
        [(f"*{letter}*", words, thousands(values[letter])) for letter, (words, _) in own.sizes.items()],
    )
    notes = "\n".join(f"* {note}" for note in own.notes)
    return "\n\n".join([CONVENTIONS, _html_table(("step", "parameters", f"on {where}"), rows), letters, notes])


def _words(text: str) -> str:
    """Words as HTML, with what is in backticks as code."""
    return re.sub("`(.+?)`", r"<code>\1</code>", html.escape(text))


def _mathematics(tex: str) -> str:
    """TeX as MathML, which browsers show without any script; equations side by side become lines."""
    return "<br>".join(
        convert(part).replace("<math ", '<math style="font-size: 120%; line-height: 2" ', 1)
        for part in tex.split(r", \quad ")
    )


def formula(count: str) -> str:
    """A count as it is written by hand.

    >>> formula("L * (3 * d**2 + 3 * d)")
    '<i>L</i>\u2009(3\u2009<i>d</i>² + 3\u2009<i>d</i>)'
    """
    bare = re.sub(r"^\(([^()]*)\)$", r"\1", count)
    signs = bare.replace("**2", "²").replace(" // ", " / ").replace(" * ", "\u2009").replace(" - ", " − ")
    return re.sub(r"[A-Za-z]", r"<i>\g<0></i>", signs)


def _html_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose cells are HTML; Markdown leaves it as it is."""
    head = "".join(f"<th>{title}</th>" for title in titles)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _sizes(name: str, own: Equations | None) -> str:
    found = model_facts.sizes(name)
    rows = [
        (_tasks(size.tasks), thousands(size.parameters), format_flops(size.forward.each), _fixed(size))
        for size in found
    ]
    printed = f"The paper prints {own.printed}." if own and own.printed else ""
    where = model_facts.reference(name)
    made = model_facts.module(name, task(where).spec)
    assert made is not None
    parts = [(f"`{part}`", thousands(count)) for part, count in model_facts.parts(made).items()]
    every = [
        (f"`{tensor}`", " × ".join(map(str, shape)), "" if count == 1 else f"{count} times")
        for tensor, shape, count in model_facts.tensors_of(made)
    ]
    return "\n\n".join(
        filter(
            None,
            [
                COUNTED,
                table(("task", "parameters", "each example", "each batch"), rows),
                printed,
                f"By submodule, on `{where}`:",
                table(("submodule", "parameters"), parts),
                fold("note", "Every tensor", table(("tensor", "shape", ""), every)),
            ],
        )
    )


def _fixed(size: Size) -> str:
    """What a batch costs however large it is: maps of positions, products of weights."""
    return format_flops(size.forward.fixed) if size.forward.fixed else "–"


def _options(name: str) -> str:
    rows = [(f"`{one.name}`", one.values, f"`{one.default}`", one.words) for one in model_facts.model_options(name)]
    words = "\n\n".join(model_facts.remarks(name))
    shown = table(("option", "takes", "default", "what it is for"), rows)
    return "\n\n".join(filter(None, ["In Python as keywords, on the command line as `--set`.", shown, words]))


def _activations(name: str, where: str) -> str:
    found = model_facts.captured(name, where)
    if not found:
        return ""
    repeated: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for activation, shape in found.items():
        repeated.setdefault((re.sub(r"\.\d+\.", ".*.", activation), shape), []).append(activation)
    rows = [
        (" … ".join(f"`{name}`" for name in dict.fromkeys((names[0], names[-1]))), " × ".join(map(str, shape)))
        for (_, shape), names in repeated.items()
    ]
    return (
        "What a forward pass captures in the [context](../reference/models.md), with the shape for one example of "
        f"`{where}`; `runs.activations()` returns it.\n\n{table(('activation', 'shape'), rows)}"
    )


def _use(name: str, where: str) -> str:
    commands = [f"unseen train {where} {name} --seeds 3 --out runs/{name}"]
    recipe = published_recipe(where, name)
    if recipe is not None and family(name):
        commands.append(f"unseen train {where} {name} --recipe {recipe.name} --out runs/{name}-published")
    python = ["import unseen", "", f'runs = unseen.train(unseen.task("{where}"), "{name}", seeds=3, steps=2000)']
    studies = ", ".join(link(one, f"studies/{one}.md", path_of(name)) for one in studies_with(name))
    used = f"Studies of the catalogue with it: {studies}." if studies else ""
    return "\n\n".join(filter(None, [fenced("sh", "\n".join(commands)), fenced("python", "\n".join(python)), used]))


def _origin(name: str, where: str) -> str:
    of = family(name)
    if not of:
        return ""
    register = link("where paper and code differ", f"differences/{of}.md", path_of(name))
    return f"{paper(task(where))}. Written anew; the register says {register}, and what is done here."


def _tasks(names: Sequence[str]) -> str:
    """Tasks of one spec in a few words.

    >>> _tasks(("retrieval/T1", "retrieval/T2", "retrieval/T3")), _tasks(("ctl/A",))
    ('retrieval/T1, T2, T3', 'ctl/A')
    """
    first, *others = names
    return ", ".join([first, *(one.partition("/")[2] for one in others)])
