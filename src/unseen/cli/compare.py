"""`unseen compare`: compare result directories."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from unseen.cli.option_text import text_width
from unseen.cli.output import (
    check_output,
    csv_text,
    escape_markdown,
    fit_table,
    printable,
    rows_for_json,
    write_output,
)
from unseen.names import format_level

if TYPE_CHECKING:
    from unseen.compare.compare import Comparison

_LONGEST_LEVEL = 40
_SHORTEST_SPLIT = 8

Format = Literal["table", "markdown", "latex", "csv", "json"]
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
    selection: Annotated[
        Selection | None,
        typer.Option(help="The best weights on validation, or the last (default: those that the studies show)."),
    ] = None,
    ranking: Annotated[
        bool, typer.Option("--rank", help="A leaderboard of all models instead; records files (.zip) may be among DIR.")
    ] = False,
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

    unseen compare --rank runs/lstm runs/mine published.zip --split iid
    """
    from unseen.compare.compare import compare as compare_directories
    from unseen.compare.run_groups import RunDirectory

    check_output(out, format)
    if ranking:
        from unseen.cli.leaderboard import format_leaderboard
        from unseen.compare.rank import build_leaderboard
        from unseen.errors import UsageError

        if selection is not None:
            raise UsageError("--rank has a row for every rule for choosing weights; leave --selection out")
        write_output(format_leaderboard(build_leaderboard(directories, metric=metric, split=split), format), out)
        return
    comparison = compare_directories(
        [RunDirectory.read(path) for path in directories], metric=metric, split=split, selection=selection
    )
    renderers = {"table": _as_table, "markdown": _as_markdown, "latex": _as_latex, "csv": _as_csv, "json": _as_json}
    write_output(renderers[format](comparison), out)
    if comparison.alarms and (out is not None or format in ("csv", "json")):
        typer.echo("\n".join(map(printable, comparison.alarms)), err=True)


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
    lines = [*(f"* {escape_markdown(line)}" for line in comparison.heading), ""]
    if comparison.alarms:
        lines += [*(f"**{escape_markdown(line.strip())}**  " for line in comparison.alarms), ""]
    if constant:
        lines += [f"Everywhere: {escape_markdown(constant)}", ""]
    for title, (header, *rows) in _make_blocks(comparison, axes):
        if title:
            lines += [f"**{escape_markdown(title)}**", ""]
        for row in (header, ["---"] * len(header), *rows):
            lines.append(f"| {' | '.join(map(escape_markdown, row))} |")
        lines.append("")
    return "\n".join([*lines, *(f"* {escape_markdown(note)}" for note in comparison.notes)])


def _as_latex(comparison: Comparison) -> str:
    """For a paper."""
    from unseen.cli.latex import format_comparison

    axes, constant = _varying_axes(comparison)
    blocks = [(title or comparison.heading[0], rows) for title, rows in _make_blocks(comparison, axes)]
    everywhere = [f"everywhere: {constant}"] if constant else []
    notes = [*comparison.heading, *comparison.alarms, *everywhere, *comparison.notes]
    return format_comparison(blocks, list(map(printable, notes)))


def _as_csv(comparison: Comparison) -> str:
    """For spreadsheets: every digit."""
    return csv_text(comparison.table)


def _as_json(comparison: Comparison) -> str:
    """For programs: every digit; NaN becomes null."""
    content = {
        "directories": comparison.heading,
        "alarms": comparison.alarms,
        "rows": rows_for_json(comparison.table),
        "notes": comparison.notes,
    }
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)


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
    from unseen.compare.compare import pair_title

    table = comparison.table
    names = [*axes, "metric"] if table["metric"].nunique() > 1 else list(axes)
    groups = list(table.groupby(["pair", "scale_a", "scale_b"], sort=False))
    letters = {pair_title(pair.letter): pair.letter for pair in comparison.pairs}
    blocks = []
    for (pair, scale_a, scale_b), rows in groups:
        title = ""
        if len(groups) > 1 or scale_a != scale_b:
            scale = scale_a if scale_a == scale_b else f"{scale_b or 'none'} − {scale_a or 'none'}"
            title = f"{pair}, scale {scale}" if scale else str(pair)
        header = [" · ".join(names), "split", "A", letters[str(pair)], f"{pair} [95 %]", "p", "adj. p", "pairs"]
        texts = [[*header, "not converged", "trials"], *(_format_row(row, names) for row in rows.to_dict("records"))]
        columns = []
        for number, column in enumerate(zip(*texts, strict=True)):
            if number == 0 or any(column[1:]):  # a column without any text is left out
                columns.append(map(printable, column))
        blocks.append((title, list(map(list, zip(*columns, strict=True)))))
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
    width = text_width(unbounded=True)
    fits = sum(widths) + 2 * (len(widths) - 1) <= width
    if not fits:
        # Lines that are still too long are cut at the split, the only other text of a user's choosing.
        widths[1] -= max(0, sum(widths[1:]) + 2 * len(widths[1:]) - width)
        if widths[1] < _SHORTEST_SPLIT:  # a narrow terminal
            return fit_table([[_cut(row[0], width), *row[1:]] for row in rows], 2)
    lines = []
    previous = None
    for configuration, *columns in rows:
        texts = [_cut(text, width).ljust(width) for text, width in zip(columns, widths[1:], strict=True)]
        repeated = configuration == previous
        previous = configuration
        if not fits:
            if not repeated:
                lines.append(_cut(configuration, width))
            texts = ["", *texts]
        elif widths[0]:
            texts = [("" if repeated else configuration).ljust(widths[0]), *texts]
        lines.append("  ".join(texts).rstrip())
    return lines


def _wrap(line: str) -> str:
    return textwrap.fill(printable(line), text_width(), subsequent_indent="    ", break_on_hyphens=False)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _shorten_level(level: Any) -> str:
    return _cut(format_level(level), _LONGEST_LEVEL)


def _format_number(value: float, sign: str = "") -> str:
    """Four digits after the point; numbers too small for that with one significant digit."""
    return format(value, f"{sign}z.4f" if abs(value) >= 5e-5 or value == 0 else f"{sign}.0e")


def _format_p(value: float) -> str:
    return f"{value:.2g}" if value == value else ""
