"""The data card: definition, splits, statistics, shortcut baselines, artefacts, licence and command of an export."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np

from unseen.export.families import Companions, paper, tables
from unseen.export.splits import FACTOR, TARGET, Order, SplitTally, columns, dtype_name, export_command, first_example
from unseen.tasks import TASKS
from unseen.tasks.base import Artefact, DataSeed, Task
from unseen.tasks.verify.baselines import BaselineScore, score_answers, score_baselines
from unseen.tasks.verify.checks import SplitCase, measure_artefact

MOST = 4096
"""The number of examples of a split on which shortcuts and artefacts are measured."""
FEWEST = 200
"""Below this number of examples, a baseline fitted on one half and scored on the other is meaningless."""

_STATUS = {
    (True, True): "known, seen",
    (True, False): "known, not seen here",
    (False, False): "absent",
    (False, True): "SEEN, NOT DECLARED",
}
"""The status of an artefact, by whether the preset declares it and whether it was detected."""
_SIZES = {1_000: "n<1K", 10_000: "1K<n<10K", 100_000: "10K<n<100K", 1_000_000: "100K<n<1M", 10_000_000: "1M<n<10M"}


# Measurements.


@dataclass(frozen=True)
class MeasuredShortcut:
    """How far a shortcut gets, and the ceiling that the task declares for it (None: no ceiling)."""

    name: str
    score: BaselineScore
    ceiling: float | None


@dataclass(frozen=True)
class MeasuredArtefact:
    """An artefact, its measured value, and how far the value may differ from absence by chance."""

    artefact: Artefact
    value: float
    margin: float

    @property
    def present(self) -> bool:
        """Whether the artefact was detected."""
        return abs(self.value - self.artefact.absent) > self.margin


@dataclass(frozen=True)
class SplitMeasures:
    """Shortcuts and artefacts measured on the first examples of a split."""

    examples: int
    shortcuts: tuple[MeasuredShortcut, ...]
    artefacts: tuple[MeasuredArtefact, ...]


def measure_split(task: Task, split: str, data_seed: DataSeed) -> SplitMeasures:
    """Shortcuts and artefacts on up to `MOST` examples of a split; none below `FEWEST` examples."""
    size = task.size(split)
    count = MOST if size is None else min(size, MOST)
    if count < FEWEST:
        return SplitMeasures(count, (), ())
    examples = task.sample(split, count, 0, data_seed)
    shortcuts = []
    ceilings = task.ceilings(split)
    ceiling = 0.0
    # Repeated examples are left out: a baseline would be scored on what it was fitted to.
    case = SplitCase(task, task.get_split(split), examples, examples)
    for name, reached in score_baselines(task.spec, case.distinct):
        # Baselines come in order of strength: a stronger one may reach what a weaker one may.
        ceiling = max(ceiling, ceilings.get(name, 0.0))
        shortcuts.append(MeasuredShortcut(name, reached, ceiling or None))
    for shortcut in task.shortcuts(split):
        answers = np.asarray(shortcut.answer(examples)).reshape(examples.targets.shape)
        shortcuts.append(MeasuredShortcut(shortcut.name, score_answers(answers == examples.targets), shortcut.ceiling))
    artefacts = []
    for artefact in task.artefacts(split):
        artefacts.append(MeasuredArtefact(artefact, *measure_artefact(artefact, examples)))
    return SplitMeasures(count, tuple(shortcuts), tuple(artefacts))


# The card, section by section.


def write_card(order: Order, tallies: Mapping[str, SplitTally], companions: Companions) -> str:
    """The card of an export as Markdown; `tallies` by split."""
    measures = {}
    for selected in order.parts:
        measures[selected.split.name] = measure_split(order.task, selected.split.name, order.data_seed)
    sections = {
        "What it is": _definition(order),
        "Columns": _columns(order),
        "Splits, and what is unseen": _splits(order),
        "Statistics": _statistics(order, tallies),
        "How far shortcuts get": _shortcuts(order, measures),
        "Known artefacts": _artefacts(order, measures),
        "Licence and origin": _licence(order),
        "How it was made": _making(order, tallies, companions),
    }
    task = order.task
    summary = TASKS.entry(task.name).summary.rstrip(".") if task.name in TASKS else ""
    headline = f"Synthetic examples made by Unseen {version('unseen')}" + (f": {summary}." if summary else ".")
    body = "\n\n".join(f"## {title}\n\n{text}" for title, text in sections.items())
    return f"{_header(order)}\n\n# {task.name}\n\n{headline}\n\n{body}\n"


def _header(order: Order) -> str:
    """The YAML header that the Hugging Face hub reads."""
    total = sum(selected.examples for selected in order.parts)
    size = next((name for limit, name in _SIZES.items() if total < limit), "n>10M")
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


def _definition(order: Order) -> str:
    """The docstrings of the task's classes, the base first, its options, and an example."""
    task = order.task
    paragraphs = []
    for cls in reversed(type(task).__mro__):
        if issubclass(cls, Task) and cls is not Task and cls.__doc__:
            paragraphs.append(inspect.cleandoc(cls.__doc__))
    options = []
    for key, value in task.options().items():
        text = str(value)
        if key != "name":
            options.append(f"`{key}` = {text if len(text) <= 60 else text[:57] + '…'}")
    selected = order.parts[0]
    paragraphs += [
        f"Options that differ from the defaults: {', '.join(options) or 'none'}.",
        f"The first example of `{selected.split.name}`:",
        f"```text\n{task.describe(first_example(task, selected, order.data_seed), 0)}\n```",
    ]
    return "\n\n".join(paragraphs)


def _columns(order: Order) -> str:
    spec = order.task.spec
    contents = {field.name: _describe_field(field.kind, field.width, field.along) for field in spec.inputs}
    contents[TARGET] = _describe_field(spec.target.kind, spec.target.width, spec.target.along)
    selected = order.parts[0]
    rows = []
    for name, values in columns(first_example(order.task, selected, order.data_seed)).items():
        shape = " × ".join(map(str, values.shape[1:])) or "one"
        rows.append((f"`{name}`", contents.get(name, "factor"), dtype_name(values), shape))
    note = (
        f"Factors say what makes each example what it is; a model should not see them. Shapes are those of "
        f"`{selected.split.name}`; other splits may be longer or shorter."
    )
    return f"{_table(('column', 'content', 'type', 'shape'), rows)}\n\n{note}"


def _describe_field(kind: str, width: int, along: str | None) -> str:
    contents = {"category": f"category, {width} values", "mask": "mask: true where the stream is real"}
    return contents.get(kind, f"{kind}, {width}") + (f", along {along}" if along else "")


def _splits(order: Order) -> str:
    rows = []
    for selected in order.parts:
        split = selected.split
        unseen = " × ".join(f"`{FACTOR}{name}`" for name in split.unseen) or "–"
        rows.append((f"`{selected.file_name}`", f"`{split.name}`", f"{selected.examples}", unseen, split.summary))
    return (
        f"{_table(('name', 'split', 'examples', 'never in training', 'description'), rows)}\n\n"
        "*Never in training*: the factor, or combination of factors, whose values here do not occur in `train`."
    )


def _statistics(order: Order, tallies: Mapping[str, SplitTally]) -> str:
    names = list(next(iter(tallies.values())).balance)  # all splits have the same target, and so the same names
    rows = []
    for selected in order.parts:
        numbers = []
        for value in tallies[selected.split.name].balance.values():
            numbers.append(str(value) if isinstance(value, int) else f"{value:.4f}")
        rows.append((f"`{selected.file_name}`", f"{selected.examples}", *numbers))
    return f"{_table(('split', 'examples', *names), rows)}\n\n{_chance(order)}"


def _chance(order: Order) -> str:
    task = order.task
    target = task.spec.target
    if target.kind == "real":
        errors = []
        for selected in order.parts:
            error = task.zero_loss(selected.split.name)
            if error is not None:
                errors.append(f"`{selected.file_name}` {error:.4f}")
        return f"The mean error of always answering 0: {', '.join(errors)}." if errors else "The answer is a number."
    if task.answer_kinds is None:
        return f"Guessing is right with probability {target.chance:.4f}."
    counts = {str(kind): int((task.answer_kinds == kind).sum()) for kind in dict.fromkeys(task.answer_kinds.tolist())}
    chances = ", ".join(f"{kind} 1/{count}" for kind, count in counts.items())
    return (
        f"Guessing among all {target.width} classes is right with probability {target.chance:.4f}; guessing among the "
        f"answers of the right kind is right more often: {chances}."
    )


def _shortcuts(order: Order, measures: Mapping[str, SplitMeasures]) -> str:
    rows = []
    too_small = []
    counts = []
    for selected in order.parts:
        name = f"`{selected.file_name}`"
        measure = measures[selected.split.name]
        if measure.examples < FEWEST:
            too_small.append(name)
        if measure.shortcuts:
            counts.append(measure.examples)
        for shortcut in measure.shortcuts:
            reached = f"{shortcut.score.accuracy:.3f} ± {shortcut.score.error:.3f}"
            ceiling = "–" if shortcut.ceiling is None else f"{shortcut.ceiling:.3f}"
            rows.append((name, shortcut.name, reached, ceiling, shortcut.score.note))
    paragraphs = []
    if rows:
        examples = f"{min(counts)} to {max(counts)}" if min(counts) < max(counts) else f"{counts[0]}"
        paragraphs.append(
            f"Rules that do not do the task, measured on the first {examples} examples of each split "
            "(± standard error). The ceiling is how far the definition of the task lets such a rule get."
        )
    if too_small:
        paragraphs.append(f"Too few examples to tell: {', '.join(too_small)}.")
    if rows:
        metric = "share of the variance" if order.task.spec.target.kind == "real" else "accuracy"
        paragraphs.append(_table(("split", "rule", metric, "ceiling", "looks at"), rows))
    return "\n\n".join(paragraphs)


def _artefacts(order: Order, measures: Mapping[str, SplitMeasures]) -> str:
    rows = []
    for selected in order.parts:
        for measure in measures[selected.split.name].artefacts:
            artefact = measure.artefact
            rows.append(
                (
                    f"`{selected.file_name}`",
                    artefact.name,
                    artefact.summary,
                    f"{measure.value:.4g}",
                    f"{artefact.absent:.4g}",
                    _STATUS[artefact.known, measure.present],
                )
            )
    if not rows:
        return "None are known."
    preset = getattr(order.task, "preset", None)
    head = "Regularities that do not belong to the task, measured" + (f"; preset `{preset}`" if preset else "") + "."
    return f"{head}\n\n{_table(('split', 'artefact', 'what', 'measured', 'without it', 'status'), rows)}"


def _licence(order: Order) -> str:
    source = paper(order.task)
    paragraphs = [
        "The examples are synthetic, made by Unseen, and licensed under Apache-2.0.",
        f"The task comes from {source}. The generator is a new implementation; no example is theirs." if source else "",
        tables(order.task),
    ]
    return "\n\n".join(filter(None, paragraphs))


def _making(order: Order, tallies: Mapping[str, SplitTally], companions: Companions) -> str:
    digests = [(f"`{selected.file_name}`", f"`{tallies[selected.split.name].digest}`") for selected in order.parts]
    note = f"With Unseen {version('unseen')}; the same command makes the same examples."
    if companions:
        note += f" Beside the examples: {', '.join(f'`{file}`' for file in companions.values())}."
    return "\n\n".join(
        [
            f"```sh\n{export_command(order, companions)}\n```",
            note,
            _table(("split", "digest of all columns"), digests),
            "To read them:",
            '```python\nimport datasets\n\ndata = datasets.load_from_disk("DIR").with_format("numpy")\n'
            f'print(data["{order.parts[0].file_name}"][:2]["target"])\n```',
        ]
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = []
    for row in (head, *rows):
        cells = [cell.replace("|", "\\|").replace("\n", " ") for cell in row]
        lines.append(f"| {' | '.join(cells)} |")
    lines.insert(1, f"| {' | '.join(['---'] * len(head))} |")
    return "\n".join(lines)
