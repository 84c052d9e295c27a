"""The data card: what the examples are, what is unseen where, what they are worth, and how they were made."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from unseen.export.chunks import FACTOR, TARGET, columns, one_example
from unseen.export.commands import export_command
from unseen.export.families import Companions
from unseen.export.measure import FEWEST, Measured, measure
from unseen.export.order import Order
from unseen.export.origins import paper, tables
from unseen.export.tally import Tally
from unseen.tasks import TASKS
from unseen.tasks.base import Condition, Task

_STATUS = {
    (True, True): "known, seen",
    (True, False): "known, not seen here",
    (False, False): "absent",
    (False, True): "SEEN, NOT DECLARED",
}
"""Of an artefact, by whether the preset declares it and whether it was seen."""
_SIZES = {1_000: "n<1K", 10_000: "1K<n<10K", 100_000: "10K<n<100K", 1_000_000: "100K<n<1M", 10_000_000: "1M<n<10M"}


def write_card(order: Order, tallies: Mapping[str, Tally], companions: Companions) -> str:
    """The card of an export as Markdown; `tallies` by condition."""
    measured = {part.condition.name: measure(order.task, part.condition.name, order.data_seed) for part in order.parts}
    sections = {
        "What it is": _definition(order),
        "Columns": _columns(order),
        "Splits, and what is unseen": _splits(order),
        "Statistics": _statistics(order, tallies),
        "How far shortcuts get": _shortcuts(order, measured),
        "Known artefacts": _artefacts(order, measured),
        "Licence and origin": _licence(order),
        "How it was made": _making(order, tallies, companions),
    }
    body = "\n\n".join(f"## {title}\n\n{text}" for title, text in sections.items())
    return f"{_header(order)}\n\n# {order.task.name}\n\n{_summary(order.task)}\n\n{body}\n"


def _header(order: Order) -> str:
    total = sum(part.examples for part in order.parts)
    size = next((name for most, name in _SIZES.items() if total < most), "n>10M")
    return "\n".join(
        [
            "---",
            "license: apache-2.0",
            f'pretty_name: "Unseen: {order.task.name}"',
            "size_categories:",
            f"- {size}",
            "tags:",
            "- synthetic",
            "- generalization",
            f"- {order.task.family}",
            "---",
        ]
    )


def _summary(task: Task) -> str:
    said = TASKS.entry(task.name).summary if task.name in TASKS else ""
    return f"Synthetic examples made by Unseen {version('unseen')}" + (f": {said}" if said else "").rstrip(".") + "."


def _definition(order: Order) -> str:
    task, part = order.task, order.parts[0]
    kinds = [kind for kind in type(task).__mro__ if issubclass(kind, Task) and kind is not Task]
    told = [inspect.cleandoc(kind.__doc__) for kind in reversed(kinds) if kind.__doc__]
    options = ", ".join(f"`{key}` = {_short(value)}" for key, value in task.options().items() if key != "name")
    example = task.describe(one_example(task, part, order.data_seed), 0)
    return "\n\n".join(
        [
            *told,
            f"Options that differ from the defaults: {options or 'none'}.",
            f"The first example of `{part.condition.name}`:",
            f"```text\n{example}\n```",
        ]
    )


def _columns(order: Order) -> str:
    spec = order.task.spec
    kinds = {field.name: _kind(field.kind, field.width, field.along) for field in spec.inputs}
    kinds[TARGET] = _kind(spec.target.kind, spec.target.width, spec.target.along)
    found = columns(one_example(order.task, order.parts[0], order.data_seed))
    rows = [
        (
            f"`{name}`",
            kinds.get(name, "factor"),
            "text" if values.dtype.kind == "U" else values.dtype.name,
            " × ".join(map(str, values.shape[1:])) or "one",
        )
        for name, values in found.items()
    ]
    note = (
        f"Factors say what makes each example what it is; a model should not see them. Shapes are those of "
        f"`{order.parts[0].condition.name}`; other conditions may be longer or shorter."
    )
    return f"{_table(('column', 'what', 'type', 'shape'), rows)}\n\n{note}"


def _kind(kind: str, width: int, along: str | None) -> str:
    values = {"category": f"category, {width} values", "mask": "mask: true where the stream is real"}
    return values.get(kind, f"{kind}, {width}") + (f", along {along}" if along else "")


def _splits(order: Order) -> str:
    rows = [
        (
            f"`{part.split}`",
            f"`{part.condition.name}`",
            f"{part.examples}",
            _unseen(part.condition),
            part.condition.summary,
        )
        for part in order.parts
    ]
    return (
        f"{_table(('split', 'condition', 'examples', 'never in training', 'what it is'), rows)}\n\n"
        "*Never in training*: the factor, or combination of factors, whose values here do not occur in `train`."
    )


def _unseen(condition: Condition) -> str:
    return " × ".join(f"`{FACTOR}{name}`" for name in condition.unseen) or "–"


def _statistics(order: Order, tallies: Mapping[str, Tally]) -> str:
    names = list(dict.fromkeys(name for tally in tallies.values() for name in tally.balance))
    rows = [
        (
            f"`{part.split}`",
            f"{part.examples}",
            *(_number(tallies[part.condition.name].balance[name]) for name in names),
        )
        for part in order.parts
    ]
    return f"{_table(('split', 'examples', *names), rows)}\n\n{_chance(order)}"


def _chance(order: Order) -> str:
    target, kinds = order.task.spec.target, order.task.answer_kinds
    if target.kind == "real":
        zero = {part.split: order.task.zero_loss(part.condition.name) for part in order.parts}
        told = [f"`{split}` {value:.4f}" for split, value in zero.items() if value is not None]
        return f"Always answering 0 is off by, on average: {', '.join(told)}." if told else "The answer is a number."
    if kinds is None:
        return f"Guessing is right with probability {target.chance:.4f}."
    counts = {str(kind): int((kinds == kind).sum()) for kind in dict.fromkeys(kinds.tolist())}
    told = [f"{kind} 1/{count}" for kind, count in counts.items()]
    return (
        f"Guessing among all {target.width} classes is right with probability {target.chance:.4f}; whoever knows "
        f"which kind of answer is asked for does better: {', '.join(told)}."
    )


def _shortcuts(order: Order, measured: Mapping[str, Measured]) -> str:
    what = "share of the variance" if order.task.spec.target.kind == "real" else "accuracy"
    rows = [
        (
            f"`{part.split}`",
            one.name,
            f"{one.score.accuracy:.3f} ± {one.score.error:.3f}",
            "–" if one.ceiling is None else f"{one.ceiling:.3f}",
            one.score.note,
        )
        for part in order.parts
        for one in measured[part.condition.name].shortcuts
    ]
    few = [part.split for part in order.parts if measured[part.condition.name].examples < FEWEST]
    notes = [
        f"Rules that do not do the task, measured on the first {_counts(measured)} examples of each condition "
        "(± standard error). The ceiling is how far the definition of the task lets such a rule get."
    ]
    notes += [f"Too few examples to tell: {', '.join(f'`{split}`' for split in few)}."] if few else []
    return "\n\n".join([*notes, _table(("split", "rule", what, "ceiling", "looks at"), rows)] if rows else notes[1:])


def _artefacts(order: Order, measured: Mapping[str, Measured]) -> str:
    preset = getattr(order.task, "preset", None)
    rows = [
        (
            f"`{part.split}`",
            one.artefact.name,
            one.artefact.summary,
            f"{one.value:.4g}",
            f"{one.artefact.absent:.4g}",
            _STATUS[one.artefact.known, one.present],
        )
        for part in order.parts
        for one in measured[part.condition.name].artefacts
    ]
    if not rows:
        return "None are known."
    head = "Regularities that do not belong to the task, measured" + (f"; preset `{preset}`" if preset else "") + "."
    return f"{head}\n\n{_table(('split', 'artefact', 'what', 'measured', 'without it', 'status'), rows)}"


def _licence(order: Order) -> str:
    source = paper(order.task)
    texts = [
        "The examples are synthetic, made by Unseen, and licensed under Apache-2.0.",
        f"The task goes back to {source}. The generator was written anew; no example is theirs." if source else "",
        tables(order.task),
    ]
    return "\n\n".join(text for text in texts if text)


def _making(order: Order, tallies: Mapping[str, Tally], companions: Companions) -> str:
    digests = [(f"`{part.split}`", f"`{tallies[part.condition.name].digest}`") for part in order.parts]
    files = ", ".join(f"`{file}`" for file in companions.values())
    same = f"With Unseen {version('unseen')}; the same command gives the same examples."
    return "\n\n".join(
        [
            f"```sh\n{export_command(order, companions)}\n```",
            f"{same} Beside the examples: {files}." if files else same,
            _table(("split", "digest of all columns"), digests),
            "To read them:",
            '```python\nimport datasets\n\ndata = datasets.load_from_disk("DIR").with_format("numpy")\n'
            f'print(data["{order.parts[0].split}"][:2]["target"])\n```',
        ]
    )


def _counts(measured: Mapping[str, Measured]) -> str:
    counts = sorted({one.examples for one in measured.values() if one.shortcuts})
    return " to ".join(map(str, dict.fromkeys([counts[0], counts[-1]]))) if counts else "0"


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.4f}"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "…"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in (head, *rows)]
    cells.insert(1, ["---"] * len(head))
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)
