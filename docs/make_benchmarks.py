"""Fill the tables of docs/benchmarks.md with the figures of a run; the words between them are written by hand.

    python -m benchmarks --json benchmarks/latest.json
    python docs/make_benchmarks.py benchmarks/latest.json [MORE.json ...]

A table stands between `<!-- figures: NAME -->` and `<!-- end -->`. Of a benchmark that several files have, the first
counts. A file of `python -m benchmarks --design` has only the cases of targets: it fills the table of targets, and that
of the package, which no other run measures.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the benchmarks are no installed package

from benchmarks.results_file import SavedResults
from benchmarks.rows import Row
from benchmarks.targets import judged

PAGE = Path(__file__).with_name("benchmarks.md")
MARKER = re.compile(r"<!-- figures: ([a-z -]+) -->\n.*?<!-- end -->", re.S)
SIZES = (1, 4, 16, 20, 64)
KINDS = ("products", "elementwise work", "norms and softmax", "copies", "optimiser", "Python, NumPy and autograd")
Figures = Mapping[str, Sequence[Row]]
Cases = Mapping[str, Mapping[str, Row]]


def number(value: float) -> str:
    """Three digits, without an exponent.

    >>> number(0.12345), number(12.345), number(123456.0)
    ('0.123', '12.3', '123 456')
    """
    if abs(value) >= 100:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.3g}"


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table of Markdown, numbers to the right."""
    rule = ["---", *["--:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *lines))


def by_case(rows: Sequence[Row]) -> dict[str, dict[str, Row]]:
    """Rows by case and figure."""
    found: dict[str, dict[str, Row]] = {}
    for row in rows:
        found.setdefault(row.case, {})[row.figure] = row
    return found


def cell(figures: Mapping[str, Row], figure: str, unit: str = "") -> str:
    """A figure of a case, or nothing."""
    return number(figures[figure].value) + unit if figure in figures else ""


def percent(figures: Mapping[str, Row], figure: str) -> str:
    """A share of a case, or nothing."""
    return f"{100 * figures[figure].value:.0f} %" if figure in figures else ""


def best(figures: Mapping[str, Row]) -> str:
    """The fastest stack: `S=16`."""
    stacks = {name.removeprefix("stacked "): row.value for name, row in figures.items() if name.startswith("stacked ")}
    return min(stacks, key=stacks.__getitem__)


def targets(figures: Figures) -> str:
    """Every target, the worst figure for it, and the word."""
    head = ("what", "target", "measured", "", "worst case")
    return table(
        head,
        (
            (
                v.target.what,
                f"{v.target.sign} {number(v.target.number)}",
                "" if v.row is None else f"{number(v.row.value)} {v.row.unit}".strip(),
                v.word,
                "" if v.row is None else f"{v.row.case}, {v.row.figure}",
            )
            for v in judged(figures)
        ),
    )


def middle(row: Row) -> str:
    """The middle half of the rounds, if there were several."""
    known = row.low is not None and row.high is not None and row.rounds > 1
    return f"{number(row.low or 0)} to {number(row.high or 0)}" if known else ""


def machine(figures: Figures) -> str:
    """The limits of one core."""
    return table(
        ("one core", "rate", "middle half of rounds"),
        ((row.figure, f"{number(row.value)} {row.unit}", middle(row)) for row in figures["machine"]),
    )


def times(figures: Figures) -> str:
    """Milliseconds per model and step, and ratios."""
    head = (
        "case",
        "plain loop",
        "published loop",
        *(f"S = {s}" for s in SIZES),
        "fastest over plain",
        "over published",
        "two processes",
    )
    lines = []
    for case, found in by_case(figures["steps"]).items():
        size = best(found)
        lines.append(
            (
                case,
                cell(found, "plain loop"),
                cell(found, "published loop"),
                *(cell(found, f"stacked S={s}") for s in SIZES),
                cell(found, f"speed-up {size}"),
                cell(found, f"speed-up {size} over published"),
                cell(found, f"two processes {size}"),
            )
        )
    return table(head, lines)


def limits(figures: Figures) -> str:
    """How near the fastest stack is to the limits, and where its time goes."""
    head = ("case", "GFLOP", "S", "product share", "rate of own products", "roofline share", "bound", *KINDS)
    lines = []
    for case, found in by_case(figures["steps"]).items():
        size = best(found)
        bound = found[f"roofline share {size}"].note.removeprefix("bound: ")
        lines.append(
            (
                case,
                cell(found, "products"),
                size.removeprefix("S="),
                percent(found, f"product share {size}"),
                f"{100 * found[f'product share {size}'].value / found['time in products'].value:.0f} %",
                percent(found, f"roofline share {size}"),
                bound,
                *(percent(found, f"time in {k}") for k in KINDS),
            )
        )
    return table(head, lines)


def generators(figures: Figures) -> str:
    """Examples per second, and shares of steps."""
    head = ("case", "thousand examples per second", "seconds", "of a step without gating", "with joint gating")
    return table(
        head,
        (
            (
                case,
                number(found["examples per second"].value / 1e3),
                cell(found, "seconds"),
                percent(found, "share of a step gating=none"),
                percent(found, "share of a step gating=joint"),
            )
            for case, found in by_case(figures["generators"]).items()
        ),
    )


def memory(figures: Figures) -> str:
    """Megabytes at the peak and of the arrays that are needed."""
    found = by_case(figures["memory"])
    drawn, trained = ({k: v for k, v in found.items() if ("peak" in v) is kind} for kind in (True, False))
    return "\n\n".join(
        (
            table(
                ("generator, 16 384 examples", "peak, MB", "arrays, MB"),
                ((case, cell(rows, "peak"), cell(rows, "arrays")) for case, rows in drawn.items()),
            ),
            table(
                ("stack", "peak, MB, S = 1", "arrays", "peak, MB, S = 16", "arrays"),
                (
                    (case, *(cell(rows, f"{what} S={s}") for s in (1, 16) for what in ("peak", "arrays")))
                    for case, rows in trained.items()
                ),
            ),
        )
    )


def growth(figures: Figures) -> str:
    """The exponents of the curves."""
    lines = []
    for case, found in by_case(figures["growth"]).items():
        points = [row for name, row in found.items() if not name.startswith("exponent")]
        lines.append(
            (
                case,
                *(f"{points[i].figure.rpartition('=')[2]}: {number(points[i].value)}" for i in (0, -1)),
                cell(found, "exponent"),
                cell(found, "exponent, all sizes"),
            )
        )
    return table(("curve", "smallest, ms", "largest, ms", "exponent, larger sizes", "all sizes"), lines)


def plain(name: str) -> Callable[[Figures], str]:
    """All rows of a benchmark as they are."""

    def rows(figures: Figures) -> str:
        return table(
            ("case", "figure", "value", "middle half"),
            ((row.case, row.figure, f"{number(row.value)} {row.unit}".strip(), middle(row)) for row in figures[name]),
        )

    return rows


TABLES: dict[str, Callable[[Figures], str]] = {
    "targets": targets,
    "machine": machine,
    "times": times,
    "limits": limits,
    "generators": generators,
    "memory": memory,
    "growth": growth,
    **{
        name: plain(name)
        for name in (
            "package",
            "start",
            "alignment",
            "capture",
            "workers",
            "orchestration",
            "trials",
            "cluster",
            "size",
            "report",
            "estimate",
        )
    },
}


def main(files: Sequence[str]) -> None:
    """Fill all tables for which there are figures; the others are left as they are."""
    figures: dict[str, Sequence[Row]] = {}
    whole: set[str] = set()  # the benchmarks of which every case was measured
    for file in reversed(files):
        saved = SavedResults.read(Path(file))
        figures |= saved.figures
        is_design = bool(saved.asked.get("design"))
        whole = whole - saved.figures.keys() if is_design else whole | saved.figures.keys()
        whole |= {"package"} & saved.figures.keys()

    def fill(match: re.Match[str]) -> str:
        name = match[1]
        needed = {"times": "steps", "limits": "steps"}.get(name, name)
        if name != "targets" and needed not in whole:
            return match[0]
        return f"<!-- figures: {name} -->\n{TABLES[name](figures)}\n<!-- end -->"

    PAGE.write_text(MARKER.sub(fill, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
