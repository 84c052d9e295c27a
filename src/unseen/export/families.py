"""The parts of an export that depend on a task's family: JSON lines, companion files, paper, and origin of tables."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import singledispatch
from pathlib import Path
from typing import Any

import numpy as np

from unseen.tasks.base import Examples, Task
from unseen.tasks.ctl.audit import format_json_lines as format_ctl
from unseen.tasks.ctl.task import Lookup
from unseen.tasks.ctl.variants import FromGraph
from unseen.tasks.gcog.encode import read_objects, read_tree
from unseen.tasks.gcog.task import GcogTask
from unseen.tasks.gcog.tree import object_to_json, tree_to_json
from unseen.tasks.retrieval.files import format_json_lines as format_retrieval
from unseen.tasks.retrieval.mapping import write_mapping
from unseen.tasks.retrieval.task import Retrieval
from unseen.tasks.rules.generate import Coefficients
from unseen.tasks.rules.task import Rules
from unseen.tasks.rules.variants import RulesMha

Companions = dict[str, str]
"""The names of the files beside the examples, by the option that they hold."""


JUDGED = (Retrieval, Lookup, GcogTask, Rules)
"""The families whose lines `unseen verify --data` reads."""


def _dump(records: Iterable[dict[str, Any]]) -> bytes:
    lines = []
    for record in records:
        text = json.dumps(record, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        lines.append(text.encode() + b"\n")
    return b"".join(lines)


# JSON lines.


@singledispatch
def family_lines(task: Task, examples: Examples, split: str) -> bytes:
    """A chunk of a split's examples in the form of the task's family; other tasks write their own records, one per line."""
    return _dump(task.record(examples, index) for index in range(len(examples)))


@family_lines.register
def _(task: Retrieval, examples: Examples, split: str) -> bytes:
    return format_retrieval(examples)


@family_lines.register
def _(task: Lookup, examples: Examples, split: str) -> bytes:
    return format_ctl(examples, task.actual_world, split)


@family_lines.register
def _(task: GcogTask, examples: Examples, split: str) -> bytes:
    schema = task.domain
    tokens = task.tokens(examples)
    records = []
    for rule, grid, target in zip(tokens.rule.tolist(), tokens.grid, examples.targets.tolist(), strict=True):
        tree = tree_to_json(schema, read_tree(schema, rule))
        objects = [object_to_json(schema, grid_object) for grid_object in read_objects(schema, grid)]
        records.append({"tree": tree, "objects": objects, "target": target})
    return _dump(records)


@family_lines.register
def _(task: Rules, examples: Examples, split: str) -> bytes:
    """One example per line; for rnn one block per line, because each line carries the matrices of the rules."""
    x = examples.inputs[task.spec.inputs[0].name]
    rule = examples.inputs["rule"]
    targets = examples.targets
    header: dict[str, Any] = {"process": task.process}
    if isinstance(task, RulesMha):
        header["search"] = task.search
        x = x.reshape(*rule.shape, task.rules, -1)
    header["parameters"] = _rules_parameters(task)
    if task.process != "rnn" or task.kind != "regression":
        targets = targets[..., 0]  # one number per rule; only the regression of rnn has vectors, its states
    selections: Iterable[int | slice] = range(len(examples))
    if task.process == "rnn":
        selections = (slice(start, start + task.block) for start in range(0, len(examples), task.block))
    records = []
    for selection in selections:
        answers = {f"y_{task.setting}": targets[selection].tolist()}
        records.append({**header, "x": x[selection].tolist(), "c": rule[selection].tolist(), **answers})
    return _dump(records)


def _rules_parameters(task: Rules) -> dict[str, Any]:
    parameters = task.parameters
    names = ("alpha", "beta") if isinstance(parameters, Coefficients) else ("A", "B", "w")
    return {name: np.asarray(getattr(parameters, name)).tolist() for name in names}


# Files beside the examples.


@singledispatch
def write_companions(task: Task, folder: Path) -> Companions:
    """Write the files that go with the examples, in any format; only some families have any."""
    return {}


@write_companions.register
def _(task: Retrieval, folder: Path) -> Companions:
    if not task.table:
        return {}
    write_mapping(task.table, folder / "mapping.txt")
    return {"mapping": "mapping.txt"}


@write_companions.register
def _(task: Lookup, folder: Path) -> Companions:
    task.actual_world.save(folder / "world.json")
    companions = {"world": "world.json"}
    if isinstance(task, FromGraph) and "graph" in task.options():
        (folder / "graph.json").write_bytes(_dump([task.options()["graph"]]))
        companions["graph"] = "graph.json"
    return companions


@write_companions.register
def _(task: Rules, folder: Path) -> Companions:
    (folder / "parameters.json").write_bytes(_dump([_rules_parameters(task)]))
    return {"parameters": "parameters.json"}


# Where tasks come from.

PAPERS: dict[type[Task], str] = {
    Retrieval: "I.-T. Sorodoc, G. Boleda and M. Baroni, *Controlled tasks for model analysis: Retrieving discrete "
    "information from sequences*, BlackboxNLP 2021",
    Lookup: "R. Csordás, K. Irie and J. Schmidhuber, *CTL++: Evaluating Generalization on Never-Seen Compositional "
    "Patterns of Known Functions, and Compatibility of Neural Representations*, EMNLP 2022",
    GcogTask: "T. Ito, S. Dan, M. Rigotti, J. Kozloski and M. Campbell, *On the generalization capacity of neural networks "
    "during generic multimodal reasoning*, ICLR 2024",
    Rules: "S. Mittal, Y. Bengio and G. Lajoie, *Is a Modular Architecture Enough?*, NeurIPS 2022",
}


def paper(task: Task) -> str:
    """The paper that introduced a task; empty for tasks of other families."""
    for family, citation in PAPERS.items():
        if isinstance(task, family):
            return citation
    return ""


def tables(task: Task) -> str:
    """The origin of the tables that this instance of a task uses; empty if there are none."""
    if isinstance(task, Retrieval) and task.table:
        if task.mapping is not None:
            return (
                "The query table `mapping.txt` was passed to the generator. If it is the one published with the "
                "paper, it is the work of its authors, and their terms apply."
            )
        if task.preset == "released":
            difference = "with the statistics of the published one, which it is not"
        else:
            difference = "and is not the published one"
        return f"The query table `mapping.txt` was drawn by Unseen (task seed {task.task_seed}) {difference}."
    if isinstance(task, Lookup):
        origin = f"drawn by Unseen (task seed {task.task_seed})" if task.world is None else "passed to the generator"
        return f"The world, `world.json` (symbols, function tables, sampling graph), was {origin}."
    if isinstance(task, Rules):
        return (
            f"The numbers of the rules, `parameters.json`, are those of task seed {task.task_seed}, drawn as the "
            "authors drew theirs."
        )
    return ""
