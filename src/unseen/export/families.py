"""How each family's examples look to others: JSON lines as `unseen verify --data` reads them, and what goes along."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from unseen.tasks.base import Examples, Task
from unseen.tasks.ctl.files import write_json_lines as write_ctl
from unseen.tasks.ctl.graphs import FromGraph
from unseen.tasks.ctl.task import Lookup
from unseen.tasks.gcog.task import Gcog
from unseen.tasks.gcog.tokens import read_things, read_tree
from unseen.tasks.gcog.tree import thing_data, tree_data
from unseen.tasks.retrieval.files import write_json_lines as write_retrieval
from unseen.tasks.retrieval.mapping_file import write_mapping
from unseen.tasks.retrieval.task import Retrieval
from unseen.tasks.rules.mha import RulesMha
from unseen.tasks.rules.parameters import Coefficients
from unseen.tasks.rules.task import Rules

Companions = dict[str, str]
"""By the option they stand for, the names of the files that lie beside the examples."""


@dataclass(frozen=True)
class Form:
    """`lines` of a stretch of a condition's examples; `companions` writes the files that go with any format.

    `judged`: whether `unseen verify --data` reads the lines.
    """

    lines: Callable[[Any, Examples, str], bytes]
    companions: Callable[[Any, Path], Companions]
    judged: bool = True


def form(task: Task) -> Form:
    """The form of a task's family; a task of none of ours has its own records, one a line."""
    return next((found for kind, found in FORMS.items() if isinstance(task, kind)), RECORDS)


def written(write: Callable[[Path], None]) -> bytes:
    """What a function writes to a file that it is given the path of."""
    with TemporaryDirectory(prefix="unseen-") as folder:
        path = Path(folder, "lines")
        write(path)
        return path.read_bytes()


def _dump(records: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(
        json.dumps(one, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode() + b"\n" for one in records
    )


def _retrieval_lines(task: Retrieval, examples: Examples, condition: str) -> bytes:
    return written(lambda path: write_retrieval(examples, path))


def _retrieval_companions(task: Retrieval, folder: Path) -> Companions:
    if not task.table:
        return {}
    write_mapping(task.table, folder / "mapping.txt")
    return {"mapping": "mapping.txt"}


def _ctl_lines(task: Lookup, examples: Examples, condition: str) -> bytes:
    return written(lambda path: write_ctl(examples, task.actual_world, condition, path))


def _ctl_companions(task: Lookup, folder: Path) -> Companions:
    task.actual_world.save(folder / "world.json")
    found = {"world": "world.json"}
    if isinstance(task, FromGraph) and "graph" in task.options():
        (folder / "graph.json").write_bytes(_dump([task.options()["graph"]]))
        found["graph"] = "graph.json"
    return found


def _gcog_lines(task: Gcog, examples: Examples, condition: str) -> bytes:
    schema, tokens = task.domain, task.tokens(examples)
    rows = zip(tokens.rule.tolist(), tokens.grid, examples.targets.tolist(), strict=True)
    return _dump(
        {
            "tree": tree_data(schema, read_tree(schema, rule)),
            "objects": [thing_data(schema, thing) for thing in read_things(schema, grid)],
            "target": target,
        }
        for rule, grid, target in rows
    )


def _rules_lines(task: Rules, examples: Examples, condition: str) -> bytes:
    """One example a line; of rnn a block of them, because each line carries the matrices of the rules."""
    numbers, rule = examples.inputs[task.spec.inputs[0].name], examples.inputs["rule"]
    search = {"search": task.search} if isinstance(task, RulesMha) else {}
    head = {"process": task.process, **search, "parameters": _rules_parameters(task)}
    x = numbers.reshape(*rule.shape, task.rules, -1) if search else numbers
    # An answer of rnn may be a state; all others are one number for each rule.
    y = examples.targets if task.process == "rnn" and task.kind == "regression" else examples.targets[..., 0]
    places: Iterable[int | slice] = range(len(examples))
    if task.process == "rnn":
        places = (slice(start, start + task.block) for start in range(0, len(examples), task.block))
    return _dump(
        {**head, "x": x[place].tolist(), "c": rule[place].tolist(), f"y_{task.setting}": y[place].tolist()}
        for place in places
    )


def _rules_parameters(task: Rules) -> dict[str, Any]:
    found = task.parameters
    names = ("alpha", "beta") if isinstance(found, Coefficients) else ("A", "B", "w")
    return {name: np.asarray(getattr(found, name)).tolist() for name in names}


def _rules_companions(task: Rules, folder: Path) -> Companions:
    (folder / "parameters.json").write_bytes(_dump([_rules_parameters(task)]))
    return {"parameters": "parameters.json"}


def _record_lines(task: Task, examples: Examples, condition: str) -> bytes:
    return _dump(task.record(examples, index) for index in range(len(examples)))


def _none(task: Task, folder: Path) -> Companions:
    return {}


FORMS: dict[type[Task], Form] = {
    Retrieval: Form(_retrieval_lines, _retrieval_companions),
    Lookup: Form(_ctl_lines, _ctl_companions),
    Gcog: Form(_gcog_lines, _none),
    Rules: Form(_rules_lines, _rules_companions),
}
RECORDS = Form(_record_lines, _none, judged=False)
