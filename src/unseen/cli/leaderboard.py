"""A leaderboard as text, for `unseen compare --rank`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from unseen.cli.output import align_columns, csv_text, escape_markdown, printable, rows_for_json

if TYPE_CHECKING:
    from unseen.compare.rank import Leaderboard

HEADER = ("group", "model", "mean", "95 % interval", "runs", "above", "level with", "below", "smallest difference")


def format_leaderboard(leaderboard: Leaderboard, format: str) -> str:
    """The leaderboard as a table, Markdown, LaTeX, CSV or JSON; the last two have every digit."""
    if format == "csv":
        return csv_text(leaderboard.table)
    if format == "json":
        content = {
            "directories": leaderboard.heading,
            "rows": rows_for_json(leaderboard.table),
            "notes": leaderboard.notes,
        }
        return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    blocks = []
    for (task, split, metric, weights), rows in leaderboard.table.groupby(
        ["task", "split", "metric", "weights"], sort=False
    ):
        title = f"{task}: {metric} on {split}, weights {weights}"
        blocks.append((printable(title), [list(HEADER), *map(format_row, rows.to_dict("records"))]))
    if format == "latex":
        from unseen.cli.latex import format_comparison

        return format_comparison(blocks, [*map(printable, leaderboard.heading), *leaderboard.notes])
    lines = []
    mark = "* " if format == "markdown" else ""
    lines += [f"{mark}{printable(line)}" for line in leaderboard.heading]
    for title, (header, *body) in blocks:
        lines.append("")
        if format == "markdown":
            lines += [
                f"**{escape_markdown(title)}**",
                "",
                _join(header),
                _join(["---"] * len(header)),
                *map(_join, body),
            ]
        else:
            lines += [title, *align_columns([header, *body])]
    return "\n".join([*lines, "", *(f"{mark}{note}" for note in leaderboard.notes)])


def format_row(row: dict[Any, Any]) -> list[str]:
    """The cells of a line of the leaderboard, below `HEADER`."""
    grouped = row["group"] == row["group"] and row["group"] is not None  # not NaN
    interval = f"{row['low']:.4f} to {row['high']:.4f}" if row["low"] == row["low"] else ""
    difference = row["smallest_difference"]
    counts = [str(row[name]) if grouped else "" for name in ("above", "level", "below")]
    return [
        str(int(row["group"])) if grouped else "",
        printable(row["model"]),
        f"{row['mean']:.4f}",
        interval,
        str(row["runs"]),
        *counts,
        f"{difference:.4f}" if difference == difference else "",
    ]


def _join(texts: list[str]) -> str:
    return f"| {' | '.join(map(escape_markdown, texts))} |"
