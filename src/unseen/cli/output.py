"""Helpers of several commands: writing a result, aligning a table, reading `--seeds`, and stopping on Ctrl-C."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from unseen.errors import UsageError
from unseen.files import check_writable, write_atomically
from unseen.names import family_of, name_in_family

if TYPE_CHECKING:
    import pandas as pd

    from unseen.registry import Registry
    from unseen.tasks.base import Task

MOST_SEEDS = 1_000_000
"""The most seeds that are listed."""
INTERRUPTED = 130
"""The exit code of a command that was stopped by Ctrl-C, as in a shell: 128 + SIGINT."""


def write_output(result: str | bytes, out: Path | None) -> None:
    """Print text, or write text or bytes to the file `out`."""
    if out is None:
        typer.echo(result, nl=not str(result).endswith("\n"))
        return
    check_writable(out)
    try:
        write_atomically(out, result if isinstance(result, bytes) else result.rstrip("\n") + "\n")
    except OSError as error:
        raise UsageError(f"{out} can't be written: {error.strerror}") from error


def check_output(out: Path | None, format: str = "") -> None:
    """Refuse an output file that can't be written, or whose ending is that of another format, before any long work."""
    if out is None:
        return
    suffix = out.suffix.lower()
    endings = _ENDINGS.get(format, ())
    foreign = suffix in _FOREIGN or any(suffix in others for others in _ENDINGS.values())
    if format and foreign and suffix not in endings:
        advice = f"end it in {' or '.join(endings)}" if endings else "give it another ending"
        raise UsageError(f"{out}: this is written as {format}, not as {suffix.removeprefix('.')}; {advice}")
    check_writable(out)


_ENDINGS = {
    "csv": (".csv",),
    "json": (".json", ".jsonl"),
    "parquet": (".parquet",),
    "markdown": (".md",),
    "latex": (".tex",),
    "table": (".txt",),
    "text": (".txt",),
    "html": (".html", ".htm"),
    "svg": (".svg",),
    "png": (".png",),
}
"""The endings of a file by format; a file of another ending, or none, may have any format."""
_FOREIGN = (
    *(".docx", ".doc", ".odt", ".xlsx", ".xls", ".ods", ".pdf", ".jpg", ".jpeg", ".gif", ".ipynb", ".pptx"),
    *(".py", ".yaml", ".yml", ".zip", ".sqlite", ".db", ".safetensors", ".pt", ".npz"),
)
"""Endings of formats that nothing here writes with --out: a study file or a store is not replaced by a table."""


def csv_text(table: pd.DataFrame) -> str:
    """A table as CSV. Texts that begin with = or @ get an apostrophe in front, as spreadsheets expect: otherwise they
    would run as formulas. Whole numbers stay whole where some are missing.

    >>> import pandas as pd
    >>> csv_text(pd.DataFrame({"level": ["=1+1", "plain"], "step": [5.0, None]}))
    "level,step\\n'=1+1,5\\nplain,\\n"
    >>> csv_text(pd.DataFrame({"search": pd.Series([1, None], dtype=object)}))
    'search\\n1\\n""\\n'
    """
    import pandas as pd

    columns = {}
    for name in table.columns:
        column = table[name]
        if column.dtype.kind == "f" and name in _WHOLE:
            column = column.astype("Int64")  # pandas keeps whole numbers as 0.0 where one is missing
        elif column.dtype.kind not in "biufM":  # texts, or levels of several types
            # Not `map`, which makes 1 into 1.0 where some rows have no level.
            column = pd.Series([_escape_formula(value) for value in column], column.index, dtype=object)
        columns[_escape_formula(name)] = column

    return pd.DataFrame(columns, index=table.index).to_csv(index=False)


_WHOLE = ("seed", "data_seed", "step", "best_step", "not_converged", "n")
"""The columns of whole numbers, some of which a run that has not ended does not have."""


def _escape_formula(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "@", "\t", "\r")) else value


def rows_for_json(table: pd.DataFrame) -> list[dict[Any, Any]]:
    """The rows of a table with every digit; missing numbers, which JSON does not have, become null."""
    return table.astype(object).where(table.notna(), None).to_dict("records")


def printable(text: str) -> str:
    """Text without control characters: they could take over a terminal, or break a line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def escape_markdown(text: str) -> str:
    """Text that Markdown does not interpret."""
    return "".join(f"\\{c}" if c in "\\`*_[]<>|#~" else c for c in printable(text))


def load_task(name: str) -> type[Task]:
    """The class of a task. For a family (ctl), or a name without its family (T6), the error lists the tasks that may be
    meant."""
    from unseen.errors import UnknownName, nearest, shorten
    from unseen.tasks import TASKS

    names = [entry.name for entry in TASKS]
    if name in names:
        return TASKS.load(name)
    members = [task for task in names if family_of(task) == name]
    if members:
        raise UnknownName(f"'{name}' is a family of tasks; choose one of {', '.join(members)}")
    alike = [task for task in names if name_in_family(task).casefold() == name.casefold()]
    if alike:
        raise UnknownName(f"unknown task '{name}'. Did you mean {' or '.join(alike)}?")
    if "/" not in name:
        families = sorted({family_of(known) for known in names})
        raise UnknownName(f"unknown task '{shorten(name)}'. {nearest(name, [*families, *names])}")
    return TASKS.load(name)


def count_of(number: int, noun: str) -> str:
    """A number with its noun.

    >>> count_of(1, "run"), count_of(2, "run")
    ('1 run', '2 runs')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def print_registry(registry: Registry[Any], hint: str, prefix: str = "") -> None:
    """Print the names that begin with a prefix and their summaries in two columns, and a hint on what to do next."""
    from unseen.cli.option_text import wrap, wrap_entry

    entries = sorted((entry for entry in registry if entry.name.startswith(prefix)), key=lambda entry: entry.name)
    width = max(len(entry.name) for entry in entries)
    for entry in entries:
        typer.echo("\n".join(wrap_entry(entry.name, entry.summary, width, "")))
    typer.echo("\n" + "\n".join(wrap(hint)), err=True)


def align_columns(rows: Sequence[Sequence[str]], right: bool = False) -> list[str]:
    """Rows of text as lines with aligned columns; all columns but the first are right-aligned if `right`.

    >>> align_columns([["model", "ms"], ["lstm", "1.25"]], right=True)
    ['model    ms', 'lstm   1.25']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        texts = [row[0].ljust(widths[0])]
        for text, width in zip(row[1:], widths[1:], strict=True):
            texts.append(text.rjust(width) if right else text.ljust(width))
        lines.append("  ".join(texts).rstrip())
    return lines


def fit_table(rows: Sequence[Sequence[str]], keys: int, width: int | None = None) -> list[str]:
    """A table (the first row is its header) that fits the terminal.

    Where it is too wide, columns after the first `keys`, which name a row, go into further blocks below, each with the
    keys again; where even that does not fit, every row becomes a block of `column: text` lines.
    """
    from unseen.cli.option_text import text_width

    width = text_width(unbounded=True) if width is None else width
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if sum(widths) + 2 * (len(widths) - 1) <= width:
        return align_columns(rows)
    key_width = sum(widths[:keys]) + 2 * keys
    if key_width + max(widths[keys:], default=0) > width:
        return _stack_rows(rows, keys)
    blocks: list[list[int]] = [[]]
    used = key_width
    for column in range(keys, len(widths)):
        needed = widths[column] + 2
        if blocks[-1] and used + needed - 2 > width:
            blocks.append([])
            used = key_width
        blocks[-1].append(column)
        used += needed
    lines: list[str] = []
    for block in blocks:
        columns = [*range(keys), *block]
        if lines:
            lines.append("")
        block_rows = []
        for row in rows:
            block_rows.append([row[column] for column in columns])
        lines += align_columns(block_rows)
    return lines


def _stack_rows(rows: Sequence[Sequence[str]], keys: int) -> list[str]:
    """Every row as its key and a line for each other column that is not empty."""
    header, *body = rows
    lines = []
    for row in body:
        lines.append(" ".join(filter(None, row[:keys])))
        lines += [f"  {name}: {text}" for name, text in zip(header[keys:], row[keys:], strict=True) if text]
    return lines


def parse_seeds(text: str) -> list[int]:
    """The seeds of `--seeds 5` (0 … 4), `--seeds 0,3,7`, or `--seeds 7,` (seed 7 alone).

    >>> parse_seeds("3"), parse_seeds("0,3,7"), parse_seeds("7,")
    ([0, 1, 2], [0, 3, 7], [7])
    """
    shortened = text if len(text) <= 40 else f"{text[:39]}…"
    try:
        if "," in text:
            return list(map(int, text.removesuffix(",").split(",")))
        count = int(text)
    except ValueError:
        raise UsageError(
            f"--seeds {shortened}: expected a number like 5, a list like 0,3,7, or 7, for one seed"
        ) from None
    if count > MOST_SEEDS:
        raise UsageError(
            f"--seeds {shortened}: at most {MOST_SEEDS:,} seeds; one seed alone is written with a comma: 7,"
        )
    if count < 1:
        raise UsageError(f"--seeds {text}: give a positive number of seeds, or a list like 0,3,7")
    return list(range(count))


@contextmanager
def exit_when_interrupted() -> Iterator[None]:
    """Turn a stopped run into its message and the exit code 130."""
    from unseen.running.runner import Interrupted

    try:
        yield
    except Interrupted as stopped:
        typer.echo(f"{stopped}.", err=True)
        raise typer.Exit(INTERRUPTED) from None
