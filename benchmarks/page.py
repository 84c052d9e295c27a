"""The page about a run: targets first, then what has changed, the steps, and every figure. Needs the extra `report`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks import BENCHMARKS
from benchmarks.charts import Drawn, charts
from benchmarks.compare_runs import compare
from benchmarks.results_file import SavedResults
from benchmarks.rows import Row
from benchmarks.targets import judged
from unseen.report import html_assets, theme
from unseen.report.page import chart_config

ICONS = {
    "met": ("supported", "✓"),
    "missed": ("contradicted", "✕"),
    "not measured": ("not-run", "–"),
    "better": ("supported", "↑"),
    "worse": ("contradicted", "↓"),
    "other": ("undecided", "≠"),
}
"""How a word looks: the class of its chip, and its sign."""
COLUMNS = ("case", "figure", "value", "unit", "low", "high", "rounds", "note")


def page(saved: SavedResults, before: SavedResults | None = None) -> str:
    """The whole page as text; it loads nothing."""
    drawn = charts(saved.figures)
    verdicts = judged(saved.figures)
    context = {
        "saved": saved,
        "before": before,
        "icons": ICONS,
        "charts": drawn,
        "number": number,
        "verdicts": verdicts,
        "counted": Counter(one.word for one in verdicts),
        "compared": compare(saved.figures, before.figures) if before else None,
        "steps": _steps(saved.figures.get("steps", ())),
        "summaries": {entry.name: entry.summary for entry in BENCHMARKS},
        "style": html_assets.raw(html_assets.text("report.css")),
        "scripts": html_assets.scripts(charts=bool(drawn)),
        "policy": html_assets.policy(charts=bool(drawn)),
        "specs": {name: _spec(one) for name, one in drawn.items()},
        "data": {
            "configs": {paper: chart_config(paper) for paper in ("light", "dark")},
            "figures": {name: _table(rows) for name, rows in saved.figures.items()},
        },
    }
    return html_assets.render("bench.html", context)


def number(value: float) -> str:
    """Three digits, thousands apart.

    >>> number(0.03456), number(1.5), number(254321.0)
    ('0.0346', '1.5', '254\\u202f000')
    """
    short = float(f"{value:.3g}")
    return f"{short:,.0f}".replace(",", "\u202f") if abs(short) >= 1000 else f"{short:.3g}"


def _steps(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """One line for each case: the loops, the best stack, and how near it is to the limits."""
    by_case: dict[str, dict[str, Row]] = {}
    for row in rows:
        by_case.setdefault(row.case, {})[row.figure] = row
    return [_line(case, found) for case, found in by_case.items() if any(name.startswith("stacked") for name in found)]


def _line(case: str, found: Mapping[str, Row]) -> dict[str, Any]:
    stacked = [row for name, row in found.items() if name.startswith("stacked ")]
    size = min(stacked, key=lambda row: row.value).figure.removeprefix("stacked ")
    wanted = {
        "plain": "plain loop",
        "published": "published loop",
        "stacked": f"stacked {size}",
        "gain": f"speed-up {size}",
        "over": f"speed-up {size} over published",
        "share": f"product share {size}",
        "roof": f"roofline share {size}",
    }
    two = next((row for name, row in found.items() if name.startswith("two processes")), None)
    return {
        "case": case,
        "size": size,
        "two": two,
        **{key: found.get(name) for key, name in wanted.items()},
        "left_out": [name.removeprefix("left out ") for name in found if name.startswith("left out")],
    }


def _table(rows: Sequence[Row]) -> dict[str, Any]:
    return {
        "columns": list(COLUMNS),
        "rows": [[getattr(row, name) for name in COLUMNS] for row in rows],
        "all": len(rows),
    }


def _spec(drawn: Drawn) -> Any:
    alt = theme.load_altair()
    with alt.data_transformers.enable("default", max_rows=None):
        spec = drawn.chart.to_dict(validate=False)
    spec.pop("config", None)
    return spec
