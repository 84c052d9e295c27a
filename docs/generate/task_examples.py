"""Examples of a task on its page: pictures beside it, words and records in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from posixpath import basename
from typing import Any

from writing import fenced, fold

from page import Page
from unseen.errors import UsageError
from unseen.tasks.base import Examples, Split, Task

STYLE = "<style>.example { background: #fff; border: 1px solid #ccd; border-radius: 6px; padding: 8px; }</style>"
"""Pictures are drawn for white paper; on a dark page they keep theirs."""
WIDTH = 118
"""Of a line of JSON."""


def path_of(name: str) -> str:
    """Where the page of a task lies."""
    return f"tasks/{name}.md"


def picture_path(name: str, split: str) -> str:
    """Where the picture of an example lies: beside the page."""
    return f"tasks/{name}-{re.sub(r'[^A-Za-z0-9]+', '-', split)}.svg"


def test_split(task: Task) -> Split:
    """The split that stands for what is asked for after training: the first out of distribution, or the last."""
    named = [one for name, one in task.splits.items() if name.startswith("ood/")]
    return (named or list(task.splits.values())[::-1])[0]


def example(task: Task, split: str) -> Examples:
    """The example that the page shows: the one `unseen show TASK --split SPLIT -n 1` prints."""
    return task.sample(split, 1)


def pictures(task: Task) -> Iterator[Page]:
    """A picture for each split; none if the task draws none."""
    for split in task.splits:
        try:
            yield Page(picture_path(task.name, split), task.picture(example(task, split), 0))
        except UsageError:
            return


def gallery(task: Task, drawn: bool) -> str:
    """One example of each split; those of training and of the first test are open."""
    tested = test_split(task)
    record = json_lines(task.record(example(task, "train"), 0))
    parts = [
        STYLE,
        _open(task, task.get_split("train"), drawn),
        fold("abstract", "The same as JSON", fenced("json", record)),
        _open(task, tested, drawn),
    ]
    others = [
        fold("example", f"{name}: {one.summary}", _body(task, one, drawn))
        for name, one in task.splits.items()
        if name not in ("train", tested.name)
    ]
    return "\n\n".join([*parts, *(["### Other splits", *others] if others else [])])


def _open(task: Task, split: Split, drawn: bool) -> str:
    summary = f"{split.summary[:1].upper()}{split.summary[1:]}."
    return "\n\n".join([f"### `{split.name}`", summary, _body(task, split, drawn)])


def _body(task: Task, split: Split, drawn: bool) -> str:
    text = fenced("text", task.describe(example(task, split.name), 0))
    if not drawn:
        return text
    name = basename(picture_path(task.name, split.name))
    return f"![An example of {task.name}, {split.name}]({name}){{ .example loading=lazy }}\n\n{text}"


def json_lines(value: Any, margin: int = 0) -> str:
    """JSON that is broken into lines only where it has to be; short parts of a list share a line.

    >>> print(json_lines({"a": [1, 2], "b": [10**40] * 3}))
    {
      "a": [1, 2],
      "b": [
        10000000000000000000000000000000000000000, 10000000000000000000000000000000000000000,
        10000000000000000000000000000000000000000
      ]
    }
    """
    whole, inside = json.dumps(value, ensure_ascii=False), margin + 2
    if margin + len(whole) <= WIDTH or not isinstance(value, dict | list):
        return whole
    if isinstance(value, dict):
        lines = [f"{json.dumps(key, ensure_ascii=False)}: {json_lines(one, inside)}" for key, one in value.items()]
    else:
        lines = _filled([json_lines(one, inside) for one in value], WIDTH - inside)
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    body = ",\n".join(" " * inside + line for line in lines)
    return f"{opening}\n{body}\n{' ' * margin}{closing}"


def _filled(parts: list[str], room: int) -> list[str]:
    """Parts side by side, as many as there is room for."""
    lines = parts[:1]
    for part in parts[1:]:
        if "\n" not in lines[-1] + part and len(lines[-1]) + len(part) + 3 <= room:
            lines[-1] += f", {part}"
        else:
            lines.append(part)
    return lines
