"""Tables for papers: results and comparisons as LaTeX, with the rules of the package booktabs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from unseen.cli.summary import scores_by_configuration, split_by_metric
from unseen.errors import CheckFailed

if TYPE_CHECKING:
    import pandas as pd

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "−": r"$-$",
    "×": r"$\times$",
    "≥": r"$\ge$",
    "≤": r"$\le$",
    "·": r"$\cdot$",
    "…": r"\dots{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def latex_table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "", text_columns: int = 1) -> str:
    """A table for a paper, with the rules of the package booktabs; the first columns are text, the others numbers.

    A caption makes it a floating table.

    >>> print(latex_table(["model", "iid"], [["ctl_ndr", "0.99 ± 0.01"]]))
    % \\usepackage{booktabs}
    \\begin{tabular}{lr}
    \\toprule
    model & iid \\\\
    \\midrule
    ctl\\_ndr & 0.99 $\\pm$ 0.01 \\\\
    \\bottomrule
    \\end{tabular}
    """
    lines = [
        rf"\begin{{tabular}}{{{'l' * text_columns}{'r' * (len(header) - text_columns)}}}",
        r"\toprule",
        _latex_row(header),
    ]
    lines += [r"\midrule", *map(_latex_row, rows), r"\bottomrule", r"\end{tabular}"]
    if caption:
        lines = [r"\begin{table}", r"\centering", *lines, rf"\caption{{{escape_latex(caption)}}}", r"\end{table}"]
    return "\n".join([r"% \usepackage{booktabs}", *lines])


def _latex_row(texts: Sequence[str]) -> str:
    return " & ".join(map(escape_latex, texts)) + r" \\"


def escape_latex(text: str) -> str:
    """Text that LaTeX prints as it is."""
    printable = "".join(character if character.isprintable() else " " for character in text)
    return "".join(_LATEX.get(character, character) for character in printable)


def format_results(directory: Path) -> str:
    """The scores of a directory: a table per scale and metric, with a row per configuration and a column per split.

    A score is the mean over runs ± one standard deviation, of the weights that the study selects.
    """
    from unseen.store.store import Store
    from unseen.store.tables import identifying_axes, label_entries
    from unseen.studies.description import find_description

    with Store.read(directory) as store:
        records, entries = store.tables(overall=True)
        work = store.work
        description = find_description(work, store.description)
    if records.empty:
        raise CheckFailed(f"{directory} has no scores: no run has ended with one")
    labelled, columns = label_entries(entries)
    axes = identifying_axes(labelled, [axis for axis in columns if axis != "scale"]) or ["task", "model"]
    selection = "best" if description is None else description.selection
    tables = []
    scales = records["scale"].unique() if "scale" in records else [""]
    for scale in scales:
        rows = records if "scale" not in records else records[records["scale"] == scale]
        title = f"{work.get('study', 'training')} {scale}".strip()
        for scores in split_by_metric(rows[rows["selection"] == selection]):
            metric = scores["metric"].iloc[0].replace("_", " ").capitalize()
            caption = f"{metric} of {title}: mean ± one standard deviation over runs, {selection} weights."
            tables.append(_score_table(scores, axes, caption))
    return "\n\n".join(tables)


def format_table(table: pd.DataFrame) -> str:
    """Any table, with all its rows and columns."""
    rows = []
    for row in table.itertuples(index=False):
        rows.append(["" if value is None or value != value else str(value) for value in row])
    text_columns = max(1, sum(dtype.kind not in "biuf" for dtype in table.dtypes))
    return latex_table(list(map(str, table.columns)), rows, text_columns=min(text_columns, len(table.columns)))


def format_comparison(blocks: Sequence[tuple[str, list[list[str]]]], notes: Sequence[str]) -> str:
    """The blocks of a comparison (title, header and rows), with its notes as comments."""
    tables = [latex_table(header, rows, title, text_columns=2) for title, (header, *rows) in blocks]
    return "\n\n".join([*tables, *(f"% {escape_latex(note)}" for note in notes)])


def _score_table(records: pd.DataFrame, axes: Sequence[str], caption: str) -> str:
    splits = records["split"].unique().tolist()
    rows = []
    for configuration, by_split in scores_by_configuration(records, axes).items():
        runs = max(map(len, by_split.values()))
        rows.append([*configuration, str(runs), *(_format_score(by_split.get(split, [])) for split in splits)])
    return latex_table([*axes, "runs", *splits], rows, caption, text_columns=len(axes))


def _format_score(values: Sequence[float]) -> str:
    from math import isfinite
    from statistics import fmean, stdev

    finite = [value for value in values if isfinite(value)]
    if not finite:
        return ""
    spread = f" ± {stdev(finite):.3f}" if len(finite) > 1 else ""
    return f"{fmean(finite):.3f}{spread}"
