"""`unseen compare`: compare result directories."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from unseen.cli.output import check_folder, format_level, write_output

if TYPE_CHECKING:
    from unseen.compare.compare import Comparison

WIDTH = 120
"""The width of a table on the terminal."""
_LONGEST_LEVEL = 40

Format = Literal["table", "markdown", "csv", "json"]
Selection = Literal["best", "last"]


def compare(
    directories: Annotated[
        list[Path],
        typer.Argument(metavar="DIR", help="Directories that `train` or `run` wrote; each is compared with the first."),
    ],
    metric: Annotated[
        str | None, typer.Option(help="Default: accuracy; where there is none, the relative loss, or else the loss.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="One split (default: all that both directories have).")] = None,
    selection: Annotated[Selection, typer.Option(help="The best weights on validation, or the last.")] = "best",
    format: Annotated[Format, typer.Option(help="Output format.")] = "table",
    out: Annotated[Path | None, typer.Option(help="A file to write instead of printing.")] = None,
) -> None:
    """Compare result directories: the difference for every configuration that they share, with a paired test.

    Runs are paired by their seeds. Trials that both directories hold must have the same numbers; if not, they are
    listed.

    Examples:

    unseen compare runs/before runs/after

    unseen compare runs/plain runs/dropout runs/wide --split ood/single

    unseen compare runs/mini runs/full --selection last --format markdown --out compared.md

    unseen compare runs/here runs/cluster --format csv --out compared.csv
    """
    from unseen.compare.compare import compare as compare_directories
    from unseen.compare.run_groups import RunDirectory

    check_folder(out)
    comparison = compare_directories(
        [RunDirectory.read(path) for path in directories], metric=metric, split=split, selection=selection
    )
    renderers = {"table": _as_table, "markdown": _as_markdown, "csv": _as_csv, "json": _as_json}
    write_output(renderers[format](comparison), out)
    if comparison.alarms and (out is not None or format in ("csv", "json")):
        typer.echo("\n".join(map(_printable, comparison.alarms)), err=True)


def _as_table(comparison: Comparison) -> str:
    """For a terminal: one line per configuration and split."""
    axes, constant = _varying_axes(comparison)
    lines = [*map(_wrap, comparison.heading), ""]
    if comparison.alarms:
        lines += [*map(_wrap, comparison.alarms), ""]
    if constant:
        lines += [_wrap(f"everywhere: {constant}"), ""]
    for title, rows in _make_blocks(comparison, axes):
        if title:
            lines.append(title)
        lines += [*_align_block(rows), ""]
    return "\n".join([*lines, *map(_wrap, comparison.notes)])


def _as_markdown(comparison: Comparison) -> str:
    """For a document."""
    axes, constant = _varying_axes(comparison)
    lines = [*(f"* {_escape(line)}" for line in comparison.heading), ""]
    if comparison.alarms:
        lines += [*(f"**{_escape(line.strip())}**  " for line in comparison.alarms), ""]
    if constant:
        lines += [f"Everywhere: {_escape(constant)}", ""]
    for title, (header, *rows) in _make_blocks(comparison, axes):
        if title:
            lines += [f"**{_escape(title)}**", ""]
        for row in (header, ["---"] * len(header), *rows):
            lines.append(f"| {' | '.join(map(_escape, row))} |")
        lines.append("")
    return "\n".join([*lines, *(f"* {_escape(note)}" for note in comparison.notes)])


def _as_csv(comparison: Comparison) -> str:
    """For spreadsheets: every digit."""
    return comparison.table.to_csv(index=False)


def _as_json(comparison: Comparison) -> str:
    """For programs: every digit; NaN becomes null."""
    rows = comparison.table.astype(object).where(comparison.table.notna(), None).to_dict("records")
    return json.dumps(
        {"directories": comparison.heading, "alarms": comparison.alarms, "rows": rows, "notes": comparison.notes},
        indent=1,
        ensure_ascii=False,
        allow_nan=False,
    )


def _varying_axes(comparison: Comparison) -> tuple[list[str], str]:
    """The axes whose levels differ between rows, and the other axes as text."""
    varying = []
    constant = []
    for axis in comparison.axes:
        levels = comparison.table[axis]
        if levels.map(str).nunique() > 1:
            varying.append(axis)
        elif _shorten_level(levels.iloc[0]):
            constant.append(f"{axis} {_shorten_level(levels.iloc[0])}")
    return varying, " · ".join(constant)


def _make_blocks(comparison: Comparison, axes: Sequence[str]) -> list[tuple[str, list[list[str]]]]:
    """(title, header and rows as text) for every pair of directories and of scales; empty columns are left out."""
    table = comparison.table
    names = [*axes, "metric"] if table["metric"].nunique() > 1 else list(axes)
    groups = list(table.groupby(["pair", "scale_a", "scale_b"], sort=False))
    blocks = []
    for (pair, scale_a, scale_b), rows in groups:
        title = ""
        if len(groups) > 1 or scale_a != scale_b:
            scale = scale_a if scale_a == scale_b else f"{scale_b or 'none'} − {scale_a or 'none'}"
            title = f"{pair}, scale {scale}" if scale else str(pair)
        letter = str(pair).partition(" ")[0]
        header = [" · ".join(names), "split", "A", letter, f"{pair} [95 %]", "p", "adj. p", "pairs"]
        texts = [[*header, "not converged", "trials"], *(_format_row(row, names) for row in rows.to_dict("records"))]
        columns = [list(column) for column in zip(*texts, strict=True)]
        columns = [column for i, column in enumerate(columns) if i == 0 or any(column[1:])]
        blocks.append((title, [[_printable(text) for text in row] for row in zip(*columns, strict=True)]))
    return blocks


def _format_row(row: dict[Any, Any], names: Sequence[str]) -> list[str]:
    difference = _format_number(row["difference"], "+")
    if row["low"] == row["low"]:  # not NaN
        interval = f"[{_format_number(row['low'], '+')}, {_format_number(row['high'], '+')}]"
        difference += f" {interval}{'*' * row['indicative']}"
    if row["changed"]:
        trials = f"CHANGED {row['changed']}/{row['runs_a']}"
    elif row["identical"] in (0, row["runs_a"]):
        trials = row["trials"]
    else:
        trials = f"same {row['identical']}/{row['runs_a']}"
    return [
        " · ".join(_shorten_level(row[name]) or "–" for name in names),
        _shorten_level(row["split"]),
        _format_number(row["mean_a"]),
        _format_number(row["mean_b"]),
        difference,
        _format_p(row["p"]),
        _format_p(row["p_adjusted"]),
        str(row["pairs"]) if row["test"] == "paired" else f"{row['runs_a']}+{row['runs_b']}",
        f"{row['not_converged_a']}, {row['not_converged_b']}",
        trials,
    ]


def _align_block(rows: list[list[str]]) -> list[str]:
    """Aligned lines. The configuration is the first column if the lines then fit, else a heading above its rows."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    fits = sum(widths) + 2 * (len(widths) - 1) <= WIDTH
    if not fits:
        # Lines that are still too long are cut at the split, the only other text of a user's choosing.
        widths[1] -= max(0, sum(widths[1:]) + 2 * len(widths[1:]) - WIDTH)
    lines = []
    previous = None
    for configuration, *columns in rows:
        texts = [_cut(text, width).ljust(width) for text, width in zip(columns, widths[1:], strict=True)]
        repeated = configuration == previous
        previous = configuration
        if not fits:
            if not repeated:
                lines.append(_cut(configuration, WIDTH))
            texts = ["", *texts]
        elif widths[0]:
            texts = [("" if repeated else configuration).ljust(widths[0]), *texts]
        lines.append("  ".join(texts).rstrip())
    return lines


def _wrap(line: str) -> str:
    return textwrap.fill(_printable(line), WIDTH, subsequent_indent="    ", break_on_hyphens=False)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _shorten_level(level: Any) -> str:
    return _cut(format_level(level), _LONGEST_LEVEL)


def _format_number(value: float, sign: str = "") -> str:
    """Four digits after the point; numbers too small for that with one significant digit."""
    return format(value, f"{sign}z.4f" if abs(value) >= 5e-5 or value == 0 else f"{sign}.0e")


def _format_p(value: float) -> str:
    return f"{value:.2g}" if value == value else ""


def _printable(text: str) -> str:
    """Text without control characters: they could take over a terminal, or break a line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _escape(text: str) -> str:
    """Text that Markdown does not interpret."""
    return "".join(f"\\{c}" if c in "\\`*_[]<>|#~" else c for c in _printable(text))
