"""Examples in files: JSON lines `{"functions": [names, outermost first], "symbol": s, "target": t, "condition": name}`.

Symbols are written by name or number; `condition` may be missing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from unseen.errors import CheckFailed, UsageError
from unseen.tasks.base import Examples
from unseen.tasks.ctl.world import World

_NEEDED, _KNOWN = {"functions", "symbol", "target"}, {"functions", "symbol", "target", "condition"}


@dataclass(frozen=True)
class Written:
    """One example as a file has it: functions in order of application, numbers of symbols, and its line (from 1)."""

    line: int
    functions: tuple[str, ...]
    symbol: int
    target: int
    condition: str | None


def read_examples(path: str | Path, world: World) -> list[Written]:
    """The examples of a file, checked on form; an error names the file and the line."""
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    found = [_parse(path, number, line, world) for number, line in enumerate(lines, 1) if line.strip()]
    if not found:
        raise CheckFailed(f"{path}, line 1: the file is empty")
    return found


def write_json_lines(examples: Examples, world: World, condition: str, path: str | Path) -> None:
    """Write examples of a condition as JSON lines."""
    with Path(path).open("w", encoding="utf-8") as file:
        for functions, start, target in zip(
            examples.factors["functions"].tolist(),
            examples.factors["start"].tolist(),
            examples.targets.tolist(),
            strict=True,
        ):
            names = [world.names[f] for f in reversed(functions) if f >= 0]
            record = {"functions": names, "symbol": start, "target": target, "condition": condition}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def _parse(path: str | Path, number: int, line: bytes, world: World) -> Written:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        _fail(path, number, "expected one JSON object per line", line)
    if not isinstance(record, dict) or not _NEEDED <= set(record) <= _KNOWN:
        _fail(path, number, "expected an object with the keys functions, symbol, target and perhaps condition", line)
    functions, condition = record["functions"], record.get("condition")
    if not isinstance(functions, list) or not all(isinstance(name, str) for name in functions):
        _fail(path, number, "'functions' must be a list of names", line)
    for name in functions:
        if name not in world.functions:
            raise CheckFailed(f"{path}, line {number}: the world has no function '{name}'")
    if condition is not None and not isinstance(condition, str):
        _fail(path, number, "'condition' must be a name", line)
    symbol, target = (_symbol(path, number, record[key], world) for key in ("symbol", "target"))
    return Written(number, tuple(reversed(functions)), symbol, target, condition)


def _symbol(path: str | Path, number: int, given: Any, world: World) -> int:
    if isinstance(given, str) and given in world.symbols:
        return world.symbols.index(given)
    if isinstance(given, int) and not isinstance(given, bool) and 0 <= given < len(world.symbols):
        return given
    raise CheckFailed(
        f"{path}, line {number}: expected a symbol, 0 … {len(world.symbols) - 1} or its name; got {given!r}"
    )


def _fail(path: str | Path, number: int, expected: str, line: bytes) -> NoReturn:
    raise CheckFailed(f"{path}, line {number}: {expected}; got {line[:60].decode('utf-8', 'replace')!r}")
