"""The leaderboard of the site: all models whose records come with the package, in a table that can be sorted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from writing import fenced, table

from page import Page
from unseen.cli.leaderboard import HEADER, format_row
from unseen.compare.rank import Leaderboard, build_leaderboard
from unseen.store.shipped_records import read_index

HEAD = """# Leaderboard

All models of the [records](records.md) that come with the package, on every task and split: in significance groups, not ranks
([how they are made](exam.md#a-leaderboard)). A click on a heading sorts by it. Studies differ in recipe and size, so that a group is about one task, split
and rule for choosing weights. The same of your own runs, and of these beside them:
"""


def pages() -> Iterator[Page]:
    """One page."""
    yield Page("leaderboard.md", format_page(build_leaderboard([Path(path) for path in read_index()])))


def format_page(leaderboard: Leaderboard) -> str:
    """The page of a leaderboard: one table, as the browser sorts whole tables."""
    keys = ["task", "split", "metric", "weights"]
    rows = [[*(str(row[key]) for key in keys), *format_row(row)] for row in leaderboard.table.to_dict("records")]
    notes = "\n".join(f"* {note}" for note in leaderboard.notes)
    command = fenced("sh", "unseen compare --rank runs/mine runs/theirs published.zip")
    board = f'<div class="sortable" markdown>\n\n{table([*keys, *HEADER], rows)}\n\n</div>'
    return "\n\n".join([HEAD.rstrip(), command, notes, board]) + "\n"
