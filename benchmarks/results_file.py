"""The figures of a run as a file: written whole or not at all, and refused where they are not what they should be."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.rows import Row
from unseen.errors import UsageError

FORMAT = 2


@dataclass
class SavedResults:
    """Rows by benchmark, where and when they were measured, and what was asked for. `interrupted` says after what the
    run was ended before its time; it is empty for a run that is whole.
    """

    machine: dict[str, Any]
    date: str
    asked: dict[str, Any]
    figures: dict[str, list[Row]] = field(default_factory=dict)
    interrupted: str = ""

    def text(self) -> str:
        """As JSON, a line for each figure."""
        parts = {
            "format": FORMAT,
            **({"interrupted": self.interrupted} if self.interrupted else {}),
            "machine": self.machine,
            "date": self.date,
            "asked": self.asked,
        }
        head = "".join(f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)},\n" for key, value in parts.items())
        figures = ",\n".join(
            f"{json.dumps(name)}: [\n" + ",\n".join(map(_line, rows)) + "\n]" for name, rows in self.figures.items()
        )
        return f'{{\n{head}"figures": {{\n{figures}\n}}\n}}\n'

    @classmethod
    def read(cls, path: Path) -> SavedResults:
        """Figures from a file."""
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise UsageError(f"{path} can't be read: {error.strerror}") from error
        except ValueError as error:
            raise UsageError(f"{path} is no JSON file of `python -m benchmarks --json`: {error}") from error
        given = found.get("format") if isinstance(found, dict) else None
        if given != FORMAT:
            said = "no format" if given is None else f"format {given}"
            raise UsageError(
                f"{path} has {said}, and figures of format {FORMAT} are needed: measure again with "
                "`python -m benchmarks --json FILE`"
            )
        try:
            figures = {name: [Row(**row) for row in rows] for name, rows in found["figures"].items()}
            return cls(found["machine"], found["date"], found["asked"], figures, found.get("interrupted", ""))
        except (KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"{path} is damaged: {error}") from error


def _line(row: Row) -> str:
    """A row without what it leaves at its default."""
    given = {key: _short(value) for key, value in asdict(row).items() if value != getattr(Row, key, ...)}
    return json.dumps(given, ensure_ascii=False)


def _short(value: Any) -> Any:
    """Floats to five digits: no clock is better than that."""
    return float(f"{value:.5g}") if isinstance(value, float) else value
