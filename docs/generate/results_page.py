"""Results pages from the records that come with the package: `python docs/generate/results_page.py [STUDY ...]`.

Writes docs/results/STUDY-SCALE.md and its key figure. A page names its records file in its first line; a test proves that it
follows from it. What was found, and what could not be concluded, is written by hand in docs/generate/conclusions/STUDY-SCALE.md.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from what_helps import describe_what_helps
from writing import fenced, sections, table

from unseen.claims import CLAIMS
from unseen.claims.claim import JudgedClaim
from unseen.claims.criterion import PrintedNumber
from unseen.claims.judge_studies import judge_store
from unseen.claims.render import describe_coverage, describe_kind, explain_briefly, verdict_on
from unseen.report.figures.inside import inside_split
from unseen.report.inside_scores import (
    EXCHANGE,
    MOVED,
    PROBE,
    describe_inside,
    describe_relation,
    relate_ablation,
    tabulate_ablation,
    tabulate_inside,
)
from unseen.report.layout import sort_splits
from unseen.running.progress import duration
from unseen.stats import mean_interval
from unseen.store.records import RecordsFile, load
from unseen.store.shipped_records import read_index

MARK = re.compile(r"<!-- made from (\S+) by docs/generate/results_page\.py -->")
METRICS = ("accuracy", "relative_loss", "loss")
"""The metrics of a table: the first one that the records have."""


FIGURES = {
    "state-tracking": "groups/prefixes",
    "recall": "recall/states",
    "quickstart": "seeds",
    "retrieval-table2": "retrieval/table2",
    "gcog-pool": "gcog/pool",
    "gcog-distractors": "gcog/figure3",
    "ctl-table1": "ctl/table1",
    "inside-order": "inside/variable",
    "inside-ctl": "inside/variable",
    "inside-modules": "inside/ablation",
    "rules-routers": "rules/routers",
    "rules-data": "rules/data",
}
"""The key figure of a study."""
RESULTS = Path(__file__).parents[1] / "results"
CONCLUSIONS = Path(__file__).with_name("conclusions")


def results_page(path: Path) -> str:
    """The page of a records file: question, figure, verdicts, the papers' numbers, scores, deviations, cost, versions."""
    file = load(path)
    manifest = file.manifest
    state = ", not finished" if manifest.partial else ""
    head = f"<!-- made from {manifest.file_name} by docs/generate/results_page.py -->\n# {manifest.study}, {manifest.scale}{state}"
    judged = [verdict for verdict in judge_store(path).verdicts if verdict.verdict != "not run"]
    what_helps = describe_what_helps(file)
    bodies = {
        "Verdicts": _verdicts(judged),
        "Number by number": _numbers(judged),
        "Inside": _inside(file),
        "What helps": what_helps,
        "Scores": "" if what_helps else _scores(file),
        "What the paper prints": _printed(manifest.study),
        "Deviations from the paper": "\n".join(f"* {phrase}" for phrase in manifest.deviations),
        "Cost and versions": _cost(file),
        "The command": f"<!-- checked, not run: this is the whole study -->\n{fenced('sh', manifest.command)}",
    }
    parts = [head, manifest.question, _figure(file), _read_conclusions(file), sections(bodies)]
    return "\n\n".join(filter(None, parts)) + "\n"


def draw_figure(path: Path, target: Path) -> None:
    """Draw the key figure of a records file, from a directory that takes over its trials."""
    import unseen
    from unseen.report.data import Source
    from unseen.report.export import save
    from unseen.report.figures import figure

    manifest = load(path).manifest
    with tempfile.TemporaryDirectory() as folder:
        unseen.run(manifest.study, Path(folder, "store"), scale=manifest.scale, reuse=path)
        chosen = figure(FIGURES[manifest.study])
        drawing = chosen.draw(Source.read(Path(folder, "store"), manifest.scale))
        assert drawing is not None, f"{manifest.study} has no figure {chosen.name}"
        save(chosen, drawing, target)


def _page_name(file: RecordsFile) -> str:
    return f"{file.manifest.study}-{file.manifest.scale}"


def _read_conclusions(file: RecordsFile) -> str:
    """What somebody wrote about these runs: what was found, and what could not be concluded."""
    path = CONCLUSIONS / f"{_page_name(file)}.md"
    return path.read_text("utf-8").strip() if path.exists() else ""


def _figure(file: RecordsFile) -> str:
    if file.manifest.study not in FIGURES:
        return ""
    name = file.manifest.study
    caption = {
        "inside/variable": "probes and exchanges at every site and position, means over seeds with 95 % intervals",
        "rules/routers": "specialization and errors under each router and bias, every run a dot, means with 95 % intervals",
        "rules/data": "specialization and errors by the size of the training set, every run a dot, means with 95 % intervals",
        "inside/ablation": "the accuracy that is lost without a module, every run a dot, means with 95 % intervals",
    }.get(FIGURES[name], "every seed a dot, beside the paper's numbers where it prints them")
    return f"![The key figure of {name}: {caption}]({_page_name(file)}.svg)"


def _verdicts(judged: list[JudgedClaim]) -> str:
    """A row per claim that the runs can speak about."""
    rows = []
    for verdict in judged:
        claim = verdict.claim
        reason = explain_briefly(verdict)
        rows.append(
            [
                f"`{claim.name}`",
                claim.statement,
                f"**{verdict.verdict}**, {describe_kind(verdict)}",
                describe_coverage(verdict),
                reason,
            ]
        )
    if not rows:
        return ""
    intro = "By the rules under [statistics](../statistics.md); the criteria are [registered](../registered-claims.md)."
    return f"{intro}\n\n{table(['claim', 'statement', 'verdict', 'criteria', 'what it hangs on'], rows)}"


def _numbers(judged: list[JudgedClaim]) -> str:
    """Every printed number beside ours."""
    rows = []
    for verdict in judged:
        for finding in verdict.findings:
            criterion = finding.criterion
            if isinstance(criterion, PrintedNumber):
                spread = "" if criterion.spread is None else f" ± {criterion.spread:.3f}"
                ours = "" if finding.estimate is None else str(finding.estimate)
                rows.append([criterion.key, f"{criterion.value:.3f}{spread}", ours, verdict_on(finding)])
    if not rows:
        return ""
    intro = "A number *agrees* if the 90 % interval of ours minus the paper's lies within ± 3 points (± 5 where the printed standard deviation exceeds 2), and *differs* if it lies outside."
    return f"{intro}\n\n{table(['number', 'paper', 'ours', 'outcome'], rows)}"


def named_file(page: str) -> str | None:
    """The records file that a page was made from; None if it was written by hand."""
    match = MARK.match(page)
    return None if match is None else match[1]


def _scores(file: RecordsFile) -> str:
    """A row per configuration and split: the mean over its runs, its interval, and every run."""
    records = file.records
    chosen = records[(records["selection"] == file.manifest.selection) & (records["factor"] == "")]
    metric = next((name for name in METRICS if name in set(chosen["metric"])), None)
    if metric is None:
        return ""
    chosen = chosen[chosen["metric"] == metric]
    labels = [name for name in (*file.manifest.axes, "task", "model") if name in chosen]
    rows = []
    for key, runs in chosen.groupby([*labels, "split"], sort=False, dropna=False):
        values = runs.sort_values(["seed", "data_seed"])["value"]
        interval = ""
        if len(values) > 2:
            bounds = mean_interval(values)
            if metric == "accuracy":
                bounds = bounds.within(0.0, 1.0)
            interval = f"{bounds.low:.3f}–{bounds.high:.3f}"
        texts = ["" if pd.isna(level) else str(level) for level in key]
        rows.append([*texts, f"{values.mean():.3f}", interval, " ".join(f"{value:.3f}" for value in values)])
    intro = f"The metric is {metric}, of the {file.manifest.selection} weights; intervals are 95 %, Student's t over the runs."
    return f"{intro}\n\n{table([*labels, 'split', 'mean', 'interval', 'every run'], rows)}"


def _inside(file: RecordsFile) -> str:
    """Where variables are and whether they are used, and what modules are worth, if the records have it."""
    manifest, records = file.manifest, file.records
    names = dict.fromkeys(("task", "model", *manifest.axes))  # a study's own axes do not name these two
    labels = [name for name in names if records[name].nunique(dropna=False) > 1]
    parts = []
    inside = tabulate_inside(records, labels, manifest.selection)
    if len(inside):
        splits = sort_splits(dict.fromkeys(inside["split"]))
        shown = inside_split(inside)
        sentences = describe_inside(inside, labels, shown)
        parts.append("\n".join(f"* {sentence}" for sentence in sentences))
        for split in [shown, *(split for split in splits if split != shown)]:
            parts += [f"**On `{split}`**, the {manifest.selection} weights:", _inside_rows(inside, labels, split)]
    ablation = tabulate_ablation(records, [name for name in labels if name != "task_seed"], manifest.selection)
    if len(ablation):
        relation = relate_ablation(records, manifest.selection, "iid", manifest.axes)
        parts.append("\n".join(f"* {sentence}" for sentence in describe_relation(relation)))
        names = [name for name in labels if name != "task_seed"]
        rows = []
        for row in ablation.to_dict("records"):
            rows.append([*(str(row[name]) for name in names), row["split"], _interval(row), str(row["runs"])])
        parts.append(table([*names, "split", "accuracy lost without a module", "runs"], rows))
    return "\n\n".join(filter(None, parts))


def _inside_rows(inside: pd.DataFrame, labels: list[str], split: str) -> str:
    """A row per configuration, site and position, with both measures and every run of the exchanges."""
    rows = []
    chosen = inside[inside["split"] == split]
    measures = {PROBE: "probe", EXCHANGE: "exchange followed", MOVED: "own answers moved"}
    measures = {name: title for name, title in measures.items() if name in set(chosen["measure"])}
    for key, group in chosen.groupby([*labels, "variable", "site", "position"], sort=False, dropna=False):
        by_measure = {row["measure"]: row for row in group.to_dict("records")}
        cells = [_interval(by_measure[name]) if name in by_measure else "" for name in measures]
        exchange = by_measure.get(EXCHANGE)
        every = " ".join(f"{value:.2f}" for value in exchange["values"]) if exchange is not None else ""
        rows.append([*map(str, key), *cells, every])
    head = [*labels, "variable", "site", "position", *measures.values(), "exchange, every run"]
    return table(head, rows)


def _interval(row: Mapping[Hashable, Any]) -> str:
    interval = "" if row["low"] != row["low"] else f" [{row['low']:.3f}, {row['high']:.3f}]"
    return f"{row['mean']:.3f}{interval}"


def _printed(study: str) -> str:
    claims = [CLAIMS.load(entry.name) for entry in CLAIMS]
    lines = [f"* `{claim.name}`: {claim.printed}" for claim in claims if claim.study == study and claim.printed]
    return "\n".join(lines)


def _cost(file: RecordsFile) -> str:
    manifest = file.manifest
    cost = manifest.cost
    taken = f", {cost['taken_over']:.0f} of them taken over from elsewhere" if cost["taken_over"] else ""
    lines = [f"{cost['trials']:.0f} trials in {duration(cost['cpu_seconds'])} of processor time{taken}."]
    for facts in manifest.provenance:
        names = ("unseen", "torch", "numpy", "python", "cpu")
        lines.append("* " + ", ".join(f"{name} {facts[name]}" for name in names if name in facts))
    return "\n\n".join([lines[0], "\n".join(lines[1:])]).rstrip()


def main(studies: list[str]) -> None:
    """Write the pages and figures of these studies, or of all whose records come with the package."""
    for path, entry in read_index().items():
        if studies and entry.study not in studies:
            continue
        page = results_page(path)
        name = _page_name(load(path))
        (RESULTS / f"{name}.md").write_text(page, "utf-8")
        if entry.study in FIGURES:
            draw_figure(path, RESULTS / f"{name}.svg")


if __name__ == "__main__":
    main(sys.argv[1:])
