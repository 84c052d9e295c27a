"""The runs behind the figures of the modularity paper: which belong there, and what they scored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from unseen.metrics.activation import uniform_activation
from unseen.metrics.specialization import MATRIX_METRICS
from unseen.metrics.votes import GATINGS
from unseen.models.rules.counts import parameter_count
from unseen.report import theme
from unseen.report.figures.notes import HOLLOW, run_notes
from unseen.report.means import means
from unseen.report.references import unseen_notes
from unseen.report.source import Source
from unseen.studies.claims import rules_measures as measures

FAMILIES = tuple(theme.title_of(gating) for gating in GATINGS)
RANDOM = "Random"
SPECIALIZATION = "specialization/"
METRICS = {
    "collapse_avg": "Collapse-Avg",
    "collapse_worst": "Collapse-Worst",
    "alignment": "Alignment",
    "adaptation": "Adaptation",
    "inverse_mutual_information": "Inverse mutual information",
}
"""The five metrics as people read them, in the order of figures 5 and 6. Of all of them low is good."""
PLACE = ("architecture", "setting", "search", "rules", "width")
DOTS = 2_000
"""Above so many runs only means are drawn."""
_OWN_OPTIONS = {"rules", "setting", "task_seed", "search", "gating", "width"}
"""The options that the paper varies."""


@dataclass(frozen=True)
class Runs:
    """The runs of the paper's study in a store, and the last weights' scores: one row per run, condition and metric.

    `others` says which runs are left out since they are of another task or model than the paper's; `pooled` names axes
    that the paper does not have.
    """

    source: Source
    runs: pd.DataFrame
    scores: pd.DataFrame
    others: str
    pooled: tuple[str, ...]

    @cached_property
    def parts(self) -> Mapping[tuple[str, str], Runs]:
        """The runs of each architecture and setting, taken apart once for all figures."""
        of_scores = dict(list(self.scores.groupby(["architecture", "setting"])))
        return {
            (str(architecture), str(setting)): replace(
                self, runs=runs, scores=of_scores.get((architecture, setting), self.scores.iloc[:0])
            )
            for (architecture, setting), runs in self.runs.groupby(["architecture", "setting"])
        }

    def of(self, **levels: object) -> Runs:
        """Those at these levels, of the columns that say where a run stands; a tuple is any of its levels."""
        found = self
        for column, level in levels.items():
            wanted = level if isinstance(level, tuple) else (level,)
            found = replace(
                found,
                runs=found.runs[found.runs[column].isin(wanted)],
                scores=found.scores[found.scores[column].isin(wanted)],
            )
        return found

    def notes(self, drawn: pd.DataFrame, conditions: Iterable[str] = ("iid",), mark: str = HOLLOW) -> tuple[str, ...]:
        """What to say under a figure for which the runs in `drawn` (a row per run at least) were used; `mark` is how
        those are drawn that were still learning."""
        said = [*run_notes(self.runs, drawn, mark=mark), *([self.others] if self.others else [])]
        said += [f"Pooled over {', '.join(self.pooled)}, which the paper does not vary."] if self.pooled else []
        here = self.source.runs["cell"].isin(self.runs["cell"])
        return (*said, *unseen_notes(replace(self.source, runs=self.source.runs[here]), conditions))


_LAST: list[Runs] = []


def read(source: Source) -> Runs | None:
    """The paper's runs in a store; None where there is none. 90 figures ask in turn, so the last answer is kept."""
    if not (_LAST and _LAST[0].source.records is source.records and _LAST[0].source.runs is source.runs):
        _LAST[:] = [_read(source)]
    return _LAST[0] if len(_LAST[0].scores) else None


def _read(source: Source) -> Runs:
    runs = measures.columns(source.runs)
    extra = _extra_options(runs)
    # The paper's own where there are some; a study of nothing but a variant is drawn as it is.
    chosen = "" if (extra == "").any() or not len(extra) else extra.mode().iloc[0]
    left = sorted(set(extra[extra != chosen]))
    others = (
        (
            f"{int((extra != chosen).sum())} runs with other options are not in it: {'; '.join(left[:3])}"
            f"{' …' if len(left) > 3 else ''}."
        )
        if left
        else ""
    )
    runs = runs[extra == chosen].assign(options=chosen)
    pooled = (
        tuple(
            axis
            for axis in source.axes
            if axis not in {*PLACE, "gating", "task_seed", "task", "model"} and runs[axis].nunique(dropna=False) > 1
        )
        if len(runs)
        else ()
    )
    return Runs(source, runs, _scores(source, runs, pooled), others, pooled)


def _extra_options(runs: pd.DataFrame) -> pd.Series:
    """The options of task and model that the paper does not vary, as a text."""
    said = (runs["task_options"] + " " + runs["model_options"]).astype(object)
    known = {
        text: " ".join(part for part in text.split() if part.partition("=")[0] not in _OWN_OPTIONS)
        for text in set(said)
    }
    return said.map(known)


def _scores(source: Source, runs: pd.DataFrame, pooled: tuple[str, ...]) -> pd.DataFrame:
    records = source.records
    if not len(runs) or not len(records):
        return pd.DataFrame(columns=["cell", "condition", "metric", "value"])
    rows = records[(records["selection"] == "last") & (records["factor"] == "") & records["cell"].isin(runs["cell"])]
    rows = rows[["cell", "selection", "condition", "metric", "value"]].drop_duplicates(["cell", "condition", "metric"])
    named = ["cell", *PLACE, "gating", "task_seed", "seed", "still_learning", "options", *pooled]
    placed = runs[named].drop_duplicates("cell").assign(family=runs["gating"].map(theme.title_of))
    return placed.merge(rows, on="cell")


def performance(scores: pd.DataFrame) -> pd.DataFrame:
    """`value` of every run and condition: its error in percent, or in regression its loss; `relative` is the loss in
    units of the zero predictor's; `unit` says which."""
    classified = scores["setting"] == "classification"
    rows = scores[scores["metric"] == np.where(classified, "accuracy", "loss")]
    relative = scores[(scores["metric"] == "relative_loss")].set_index(["cell", "condition"])["value"]
    found = rows.assign(
        value=np.where(rows["setting"] == "classification", 100 * (1 - rows["value"]), rows["value"]),
        unit=rows["setting"].map({"classification": "error %", "regression": "loss"}),
    )
    keys = pd.MultiIndex.from_frame(found[["cell", "condition"]])
    return found.assign(relative=np.where(found["setting"] == "regression", relative.reindex(keys).to_numpy(), np.nan))


def random(metric: str, rules: int) -> float:
    """What a router scores by definition that sends every rule to all modules alike.

    >>> [random(metric, 2) for metric in ("collapse_avg", "alignment", "inverse_mutual_information")]
    [0.0, 0.5, 1.0]
    """
    return float(MATRIX_METRICS[metric](uniform_activation(rules), np.full(rules, 1 / rules)))


def parameters(rows: pd.DataFrame) -> pd.Series:
    """How many parameters the model of each row has; missing where the options are not the paper's."""
    columns = ["architecture", "setting", "search", "gating", "rules", "width", "options"]
    known = {key: _parameters(*key) for key in set(rows[columns].itertuples(index=False, name=None))}
    return pd.Series([known[key] for key in rows[columns].itertuples(index=False, name=None)], rows.index, dtype=float)


def _parameters(
    architecture: str, setting: str, search: str, gating: str, rules: int, width: int, options: str
) -> float:
    if options:
        return np.nan
    outputs = measures.STATE if (architecture, setting) == ("rnn", "regression") else 1
    more = {"search": int(search.rpartition(" ")[2])} if search else {}
    return parameter_count(architecture, gating, int(rules), int(width), outputs=outputs, **more)  # type: ignore[arg-type]


def with_dots(rows: pd.DataFrame, by: list[str]) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """What is drawn: a row per mean and, unless they are too many, a row per run (`kind`); and a note if they are."""
    found = means(rows, by, clusters="task_seed").rename(columns={"mean": "value"}).assign(kind="mean")
    if len(rows) > DOTS:
        return found, (f"Single runs ({len(rows):,}) are too many to be drawn.".replace(",", " "),)
    each = rows[[*by, "value", "task_seed", "seed", "cell"]].assign(
        kind="run", runs=1, still_learning=(rows["still_learning"] == 1).astype(int)
    )
    return pd.concat([found, each], ignore_index=True), ()


def whole(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with whole numbers where they are whole, though some rows have none."""
    columns = ["rules", "width", "runs", "still_learning", "task_seed", "seed", "parameters"]
    return frame.astype({name: "Int64" for name in columns if name in frame})
