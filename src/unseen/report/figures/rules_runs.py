"""The runs behind the figures of the modularity paper: which ones belong to it, and their scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import pandas as pd

from unseen.analysis.votes import GATINGS
from unseen.claims.papers import option_column
from unseen.claims.papers import rules_measures as measures
from unseen.models.rules.sizes import parameter_count
from unseen.report.baselines import unseen_notes
from unseen.report.charts import MAX_DOTS, NOT_CONVERGED
from unseen.report.data import Source, means
from unseen.report.figure import HOLLOW, run_notes
from unseen.report.theme import colour_scale, load_altair, title_of
from unseen.store.tables import all_options

FAMILIES = tuple(map(title_of, GATINGS))
RANDOM = "Random"
CONFIGURATION = ("architecture", "setting", "search", "rules", "width")
"""The columns that, with the gating, identify a configuration of the paper's study."""
VARIED_OPTIONS = {"rules", "setting", "task_seed", "search", "gating", "width"}
"""The options of tasks and models that the paper varies."""
RUN, MEAN = "datum.kind === 'run'", "datum.kind === 'mean'"
INTERVAL = f"{MEAN} && isValid(datum.low)"
HOLLOW_FILL = {"condition": {"test": "datum.not_converged > 0", "value": 0}, "value": 1}
"""The opacity of the filling of a point: hollow if a run behind it had not converged."""


@dataclass(frozen=True)
class RulesRuns:
    """The runs of the paper's study in a store, and the scores of the last weights by run, split and metric.

    `left_out` describes runs of other tasks or models than the paper's; `pooled` are axes that the paper does not have.
    """

    source: Source
    runs: pd.DataFrame
    scores: pd.DataFrame
    left_out: str
    pooled: tuple[str, ...]

    @cached_property
    def by_setting(self) -> Mapping[tuple[str, str], RulesRuns]:
        """The runs of each architecture and setting, separated once for all figures."""
        scores = dict(list(self.scores.groupby(["architecture", "setting"])))
        groups = {}
        for (architecture, setting), runs in self.runs.groupby(["architecture", "setting"]):
            group_scores = scores.get((architecture, setting), self.scores.iloc[:0])
            groups[str(architecture), str(setting)] = replace(self, runs=runs, scores=group_scores)
        return groups

    def where(self, column: str, levels: Iterable[object]) -> RulesRuns:
        """Those with one of these levels in a column of runs and scores."""
        allowed = list(levels)
        runs = self.runs[self.runs[column].isin(allowed)]
        return replace(self, runs=runs, scores=self.scores[self.scores[column].isin(allowed)])

    def notes(self, drawn: pd.DataFrame, splits: Iterable[str] = ("iid",), mark: str = HOLLOW) -> tuple[str, ...]:
        """The notes under a figure of the runs in `drawn`; `mark` describes those that have not converged."""
        notes = run_notes(self.runs, drawn, mark=mark)
        if self.left_out:
            notes.append(self.left_out)
        if self.pooled:
            notes.append(f"Pooled over {', '.join(self.pooled)}, which the paper does not vary.")
        selected = self.source.runs["trial"].isin(self.runs["trial"])
        return (*notes, *unseen_notes(replace(self.source, runs=self.source.runs[selected]), splits))


_LAST_READ: list[RulesRuns] = []


def read_runs(source: Source, architecture: str = "", setting: str = "") -> RulesRuns | None:
    """The paper's runs in a store, or those of one architecture and setting; None if there are none.

    90 figures ask for the same source in turn, so the last answer is cached.
    """
    cached = _LAST_READ and _LAST_READ[0].source.records is source.records and _LAST_READ[0].source.runs is source.runs
    if not cached:
        _LAST_READ[:] = [_read_runs(source)]
    runs = _LAST_READ[0]
    if runs.scores.empty:
        return None
    return runs.by_setting.get((architecture, setting)) if architecture else runs


def _read_runs(source: Source) -> RulesRuns:
    runs = measures.columns(source.runs)
    extra = _extra_options(runs)
    # Runs with the paper's options, if there are any; a study of nothing but a variant is drawn as it is.
    options = "" if (extra == "").any() or extra.empty else extra.mode().iloc[0]
    others = extra[extra != options]
    left_out = ""
    if len(others):
        variants = sorted(set(others))
        listed = "; ".join(variants[:3]) + (" …" if len(variants) > 3 else "")
        left_out = f"{len(others)} runs with other options are not in it: {listed}."
    runs = runs[extra == options].assign(options=options)
    runs = runs.assign(equal_rules=option_column(runs, "task.prior") == "uniform")
    pooled = []
    for axis in source.axes:
        of_paper = axis in {*CONFIGURATION, "gating", "task_seed", "task", "model"}
        if len(runs) and not of_paper and runs[axis].nunique(dropna=False) > 1:
            pooled.append(axis)
    return RulesRuns(source, runs, _read_scores(source, runs, pooled), left_out, tuple(pooled))


def _extra_options(runs: pd.DataFrame) -> pd.Series:
    """The options of task and model that the paper does not vary and that differ from their defaults, as text."""
    columns = [str(name) for name in runs if str(name).startswith(("task.", "model."))]
    texts = []
    for run in runs[["task", "model", *columns]].to_dict("records"):
        differing = []
        for column in columns:
            component, _, option = column.partition(".")
            value = run[column]
            absent = value is None or value != value  # NaN: an option of other tasks or models
            if absent or option in VARIED_OPTIONS:
                continue
            if value != _default_options(component, str(run[component])).get(option):
                differing.append(f"{option}={value}")
        texts.append(" ".join(differing))
    return pd.Series(texts, runs.index, dtype=object)


@cache
def _default_options(component: str, name: str) -> dict[str, Any]:
    return all_options(component, {"name": name})


def _read_scores(source: Source, runs: pd.DataFrame, pooled: list[str]) -> pd.DataFrame:
    records = source.records
    if runs.empty or records.empty:
        return pd.DataFrame(columns=["trial", "split", "metric", "value"])
    rows = records[(records["selection"] == "last") & (records["factor"] == "") & records["trial"].isin(runs["trial"])]
    rows = rows[["trial", "selection", "split", "metric", "value"]].drop_duplicates(["trial", "split", "metric"])
    columns = [
        "trial",
        *CONFIGURATION,
        "gating",
        "task_seed",
        "seed",
        "not_converged",
        "options",
        "equal_rules",
        *pooled,
    ]
    described = runs[columns].drop_duplicates("trial").assign(family=runs["gating"].map(title_of))
    return described.merge(rows, on="trial")


def performance(scores: pd.DataFrame) -> pd.DataFrame:
    """The error in percent, or in regression the loss, of every run and split as `value`, with its `unit`.

    `relative` is the loss divided by that of the zero predictor.
    """
    rows = scores[scores["metric"] == np.where(scores["setting"] == "classification", "accuracy", "loss")]
    classified = rows["setting"] == "classification"
    rows = rows.assign(
        value=np.where(classified, 100 * (1 - rows["value"]), rows["value"]),
        unit=rows["setting"].map({"classification": "error %", "regression": "loss"}),
    )
    relative = scores[scores["metric"] == "relative_loss"].set_index(["trial", "split"])["value"]
    keys = pd.MultiIndex.from_frame(rows[["trial", "split"]])
    return rows.assign(relative=np.where(rows["setting"] == "regression", relative.reindex(keys).to_numpy(), np.nan))


_SEARCH_VERSIONS = {name: version for version, name in measures.SEARCHES.items()}


def count_parameters(rows: pd.DataFrame) -> pd.Series:
    """The number of parameters of the model of each row; NaN if the options are not the paper's."""
    columns = ["architecture", "setting", "search", "gating", "rules", "width", "options"]
    counts: dict[tuple[Any, ...], float] = {}
    for key in set(rows[columns].itertuples(index=False, name=None)):
        architecture, setting, search, gating, rules, width, options = key
        outputs = measures.STATE if (architecture, setting) == ("rnn", "regression") else 1
        version: dict[str, Any] = {"search": _SEARCH_VERSIONS[search]} if search else {}
        counts[key] = np.nan
        if not options:
            counts[key] = parameter_count(architecture, gating, int(rules), int(width), outputs=outputs, **version)
    return pd.Series([counts[key] for key in rows[columns].itertuples(index=False, name=None)], rows.index, dtype=float)


def means_and_runs(rows: pd.DataFrame, by: list[str]) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """A row per mean and, unless there are too many, a row per run (`kind`), with a note if there are too many."""
    table = means(rows, by, clusters="task_seed").rename(columns={"mean": "value"}).assign(kind="mean")
    if len(rows) > MAX_DOTS:
        return table, (f"Single runs ({len(rows):,}) are too many to be drawn.".replace(",", " "),)
    runs = rows[[*by, "value", "task_seed", "seed", "trial"]].assign(
        kind="run", runs=1, not_converged=(rows["not_converged"] == 1).astype(int)
    )
    return pd.concat([table, runs], ignore_index=True), ()


def with_integers(table: pd.DataFrame) -> pd.DataFrame:
    """The table with whole numbers as integers, although some rows lack them."""
    columns = ["rules", "width", "runs", "not_converged", "task_seed", "seed", "parameters"]
    return table.astype({name: "Int64" for name in columns if name in table})


# -- charts -----------------------------------------------------------------------------------------------------------


def present_families(table: pd.DataFrame) -> list[str]:
    """The model families of a table, in the order of the paper."""
    return [family for family in (*FAMILIES, RANDOM) if (table["family"] == family).any()]


def family_channels(table: pd.DataFrame, **legend: Any) -> tuple[Any, Any]:
    """Colour with a legend above the chart, and filling, of the families of a table."""
    alt = load_altair()
    families = present_families(table)
    scale = colour_scale(families)
    colour = alt.Color("family:N", scale=scale, sort=families, title=None, legend=alt.Legend(orient="top", **legend))
    return colour, alt.Fill("family:N", scale=scale, sort=families, legend=None)


def stroke_legend(**options: Any) -> dict[str, Any]:
    """The options of a legend for lines."""
    return {"symbolType": "stroke", "symbolStrokeWidth": 3, "symbolOpacity": 1, **options}


def interval_tooltips() -> list[Any]:
    """The bounds of an interval and the runs behind it."""
    alt = load_altair()
    return [
        alt.Tooltip("low:Q", title="95 % from", format=".4g"),
        alt.Tooltip("high:Q", title="to", format=".4g"),
        alt.Tooltip("runs:Q", title="runs"),
        alt.Tooltip("not_converged:Q", title=NOT_CONVERGED),
    ]


def run_tooltips() -> list[Any]:
    """The task and seed of a run."""
    alt = load_altair()
    return [
        alt.Tooltip("task_seed:N", title="task"),
        alt.Tooltip("seed:N", title="seed"),
        alt.Tooltip("not_converged:Q", title=NOT_CONVERGED),
    ]


def facet_rows_and_columns(layered: Any, table: pd.DataFrame) -> Any:
    """A layered chart in a panel for each `row` and `column` of its table; a single row has no header."""
    alt = load_altair()
    rows = list(dict.fromkeys(table["row"]))
    columns = list(dict.fromkeys(table["column"]))
    width = max(110, min(420, 940 // len(columns) - 42))
    layered.data = table
    facets = {"column": alt.Column("column:N", sort=columns, title=None)}
    if len(rows) > 1:
        facets["row"] = alt.Row("row:N", sort=rows, title=None)
    return layered.properties(width=width, height=150).facet(**facets, spacing=16)
