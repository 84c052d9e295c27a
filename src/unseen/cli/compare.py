"""`unseen compare`: studies, or versions of one, side by side."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unseen.cli.output import check_folder, write

if TYPE_CHECKING:
    from unseen.studies.compare import Comparison

WIDTH = 120
"""The width of a table for people."""
_LONGEST = 40
"""So many letters of a name are shown."""


class Format(StrEnum):
    """How to print a comparison."""

    table = "table"
    markdown = "markdown"
    csv = "csv"
    json = "json"


class Selection(StrEnum):
    """Whose numbers."""

    best = "best"
    last = "last"


def compare(
    directories: Annotated[
        list[Path],
        typer.Argument(metavar="DIR", help="Directories that `train` or `run` wrote; each is compared with the first."),
    ],
    metric: Annotated[
        str | None, typer.Option(help="Default: accuracy; where there is none, the relative loss, or else the loss.")
    ] = None,
    condition: Annotated[str | None, typer.Option(help="One condition; default: all that both have.")] = None,
    selection: Annotated[Selection, typer.Option(help="The best weights on validation, or the last.")] = Selection.best,
    format: Annotated[Format, typer.Option(help="For people, for documents, or for programs.")] = Format.table,
    out: Annotated[Path | None, typer.Option(help="A file to write instead of printing.")] = None,
) -> None:
    """Put studies or versions side by side: the difference at every place that both have, with a paired test.

    Runs are paired by their seeds; cells that both hold must have the same numbers, and are listed if not.

    Examples:

    unseen compare runs/before runs/after

    unseen compare runs/plain runs/dropout runs/wide --condition ood/single

    unseen compare runs/mini runs/full --selection last --format markdown --out compared.md

    unseen compare runs/here runs/cluster --format csv --out compared.csv
    """
    from unseen.studies.compare import compare as compare_sides
    from unseen.studies.sides import Side

    check_folder(out)
    found = compare_sides(
        [Side.read(path) for path in directories], metric=metric, condition=condition, selection=selection.value
    )
    texts = {Format.table: as_table, Format.markdown: as_markdown, Format.csv: as_csv, Format.json: as_json}
    write(texts[format](found), out)
    if found.alarms and (out is not None or format in (Format.csv, Format.json)):
        typer.echo("\n".join(map(_plain, found.alarms)), err=True)


def as_table(found: Comparison) -> str:
    """For a terminal: a line per place and condition, places as headings where lines would get too long."""
    names, constant = _varying(found)
    lines = [*map(_wrapped, found.heading), "", *map(_wrapped, found.alarms), *[""] * bool(found.alarms)]
    lines += [_wrapped(f"everywhere: {constant}"), ""] if constant else []
    for title, rows in _blocks(found, names):
        lines += [*[title] * bool(title), *_aligned(rows), ""]
    return "\n".join([*lines, *map(_wrapped, found.notes)])


def as_markdown(found: Comparison) -> str:
    """For a document."""
    names, constant = _varying(found)
    lines = [*(f"* {_escaped(line)}" for line in found.heading), ""]
    lines += [f"**{_escaped(line.strip())}**  " for line in found.alarms] + [""] * bool(found.alarms)
    lines += [f"Everywhere: {_escaped(constant)}", ""] if constant else []
    for title, rows in _blocks(found, names):
        table = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
        lines += [*[f"**{_escaped(title)}**", ""] * bool(title)]
        lines += [*(f"| {' | '.join(map(_escaped, row))} |" for row in table), ""]
    return "\n".join([*lines, *(f"* {_escaped(note)}" for note in found.notes)])


def as_csv(found: Comparison) -> str:
    """For spreadsheets: every digit."""
    return found.table.to_csv(index=False)


def as_json(found: Comparison) -> str:
    """For programs: every digit; what is not a number is null."""
    whole = found.table.astype(object)
    rows = whole.where(found.table.notna(), None).to_dict("records")
    return json.dumps(
        {"directories": found.heading, "alarms": found.alarms, "rows": rows, "notes": found.notes},
        indent=1,
        ensure_ascii=False,
        allow_nan=False,
    )


def _varying(found: Comparison) -> tuple[list[str], str]:
    """The columns of a place that differ between rows; and the others in words."""
    several = [name for name in found.axes if found.table[name].map(str).nunique() > 1]
    rest = [name for name in found.axes if name not in several and _shown(found.table[name].iloc[0])]
    return several, " · ".join(f"{name} {_shown(found.table[name].iloc[0])}" for name in rest)


def _blocks(found: Comparison, names: Sequence[str]) -> list[tuple[str, list[list[str]]]]:
    """(title, head and rows as text) for every pair of directories and of scales; columns that say nothing are gone."""
    blocks = []
    names = [*names, *["metric"] * (found.table["metric"].nunique() > 1)]
    groups = list(found.table.groupby(["pair", "scale_a", "scale_b"], sort=False))
    for (pair, a, b), rows in groups:
        letter = str(pair).partition(" ")[0]
        scale = a if a == b else f"{b or 'none'} − {a or 'none'}"
        title = f"{pair}{f', scale {scale}' * bool(scale)}" if len(groups) > 1 or a != b else ""
        table = [
            [
                " · ".join(names),
                "condition",
                "A",
                letter,
                f"{pair} [95 %]",
                "p",
                "adj. p",
                "pairs",
                "learning",
                "cells",
            ],
            *(_row(row, names) for row in rows.to_dict("records")),
        ]
        used = [i for i in range(len(table[0])) if i == 0 or any(row[i] for row in table[1:])]
        blocks.append((title, [[_plain(row[i]) for i in used] for row in table]))
    return blocks


def _row(row: dict[Any, Any], names: Sequence[str]) -> list[str]:
    low, high = row["low"], row["high"]
    interval = f" [{_number(low, '+')}, {_number(high, '+')}]{'*' * row['indicative']}" if low == low else ""
    pairs = row["pairs"]
    cells = (
        f"CHANGED {row['changed']}/{row['runs_a']}"
        if row["changed"]
        else row["cells"]
        if row["identical"] in (0, row["runs_a"])
        else f"same {row['identical']}/{row['runs_a']}"
    )
    return [
        " · ".join(_shown(row[name]) or "–" for name in names),
        _shown(row["condition"]),
        _number(row["mean_a"]),
        _number(row["mean_b"]),
        _number(row["difference"], "+") + interval,
        _p(row["p"]),
        _p(row["p_adjusted"]),
        str(pairs) if row["test"] == "paired" else f"{row['runs_a']}+{row['runs_b']}",
        f"{row['still_learning_a']}, {row['still_learning_b']}",
        cells,
    ]


def _aligned(table: list[list[str]]) -> list[str]:
    """The rows under their heads. The place is the first column if a line then fits, else a heading of its rows."""
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    beside = sum(widths) + 2 * (len(widths) - 1) <= WIDTH
    # What is too long is cut at the condition: the only other text that a user has named.
    widths[1] -= 0 if beside else max(0, sum(widths[1:]) + 2 * len(widths[1:]) - WIDTH)
    lines, place = [], None
    for row in table:
        first = ("" if row[0] == place else row[0]).ljust(widths[0]) if beside else ""
        lines += [_cut(row[0], WIDTH)] * (not beside and row[0] != place)
        place = row[0]
        rest = (_cut(text, width).ljust(width) for text, width in zip(row[1:], widths[1:], strict=True))
        lines.append("  ".join([*[first] * (not beside or widths[0] > 0), *rest]).rstrip())
    return lines


def _wrapped(line: str) -> str:
    return textwrap.fill(_plain(line), WIDTH, subsequent_indent="    ", break_on_hyphens=False)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _shown(level: Any) -> str:
    """A level as text, not too long; nothing where a cell has no level on the axis."""
    return "" if level is None or level != level else _cut(str(level), _LONGEST)


def _number(value: float, sign: str = "") -> str:
    """Four digits after the point; of smaller numbers the one that counts."""
    return format(value, f"{sign}z.4f" if abs(value) >= 5e-5 or value == 0 else f"{sign}.0e")


def _p(value: float) -> str:
    return f"{value:.2g}" if value == value else ""


def _plain(text: str) -> str:
    """Text that can't take over a terminal or break a line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _escaped(text: str) -> str:
    """Text that stays text in Markdown."""
    return "".join(f"\\{c}" if c in "\\`*_[]<>|#~" else c for c in _plain(text))
