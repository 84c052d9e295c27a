"""Errors and losses of the modularity paper: against capacity (figures 9, 10, …), and against the rules (figure 4)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from unseen.metrics.votes import CONDITIONS
from unseen.report.figure import Drawing
from unseen.report.figures.rules_panels import dodged, lines
from unseen.report.figures.rules_runs import FAMILIES, parameters, performance, read, whole, with_dots
from unseen.report.source import Source

CHANCE = 50.0
"""The error in percent of answering at random: classes are balanced."""
_NEAR = 0.6
"""A reference is drawn where the largest value comes to this share of it; else it would press all else to the axis."""
_TOOLTIP = [("family:N", "model", ""), ("rules:Q", "rules", ""), ("value:Q", "value", ".4g")]
NAMES = {"mlp": "MLP", "mha": "MHA", "rnn": "RNN"}


def capacity(source: Source, architecture: str, setting: str, condition: str) -> Drawing | None:
    """A panel for each number of rules (and row for each search): performance against the width of the encoder."""
    found = read(source)
    study = found.parts.get((architecture, setting)) if found is not None else None
    if study is None:
        return None
    rows = performance(study.scores[study.scores["condition"] == condition])
    rows = rows.sort_values(["search", "rules", "width"])
    if rows.empty:
        return None
    rows = rows.assign(row=rows["search"], column=_rules(rows["rules"]))
    frame, said = _frame(rows, ["row", "column", "unit", "search", "rules", "width", "family", "gating"])
    frame = _with_parameters(frame, rows)
    hints = [*_TOOLTIP, ("width:Q", "width", ""), ("parameters:Q", "parameters", ",.0f"), *_relative(setting)]
    references, told = _references(frame, rows, ["row", "column"])
    drawn = _ordered(pd.concat([dodged(frame, "width"), references], ignore_index=True), rows)
    chart = lines(drawn, "width", "encoder width (log)", rows["unit"].iloc[0], hints)
    return Drawing(chart, _data(drawn), (*said, *told, *study.notes(rows, [condition])))


def overview(source: Source) -> Drawing | None:
    """Figure 4: rows of architectures, columns of settings in and out of distribution, x the number of rules."""
    study = read(source)
    if study is None:
        return None
    tested = {condition for where in CONDITIONS.values() for condition in where.values()}
    found = performance(study.scores[study.scores["condition"].isin(tested)])
    parts = []
    for place, words in (("id", "ID"), ("ood", "OoD")):
        here = found[found["condition"] == found["architecture"].map(CONDITIONS[place])]
        parts.append(
            here.assign(
                column=here["setting"].str.capitalize() + " " + words + ": " + here["unit"],
                where=place,
                row=here["architecture"].map(NAMES),
            )
        )
    rows = pd.concat(parts, ignore_index=True)
    if rows.empty:
        return None
    order = {name: number for number, name in enumerate(NAMES.values())}
    rows = rows.sort_values(
        ["row", "setting", "where", "rules"],
        key=lambda one: one.map(order) if one.name == "row" else one,
        kind="stable",
    )
    frame, said = _frame(rows, ["row", "column", "unit", "rules", "family"])
    references, told = _references(frame, rows, ["row", "column"])
    drawn = _ordered(pd.concat([dodged(frame, "rules"), references], ignore_index=True), rows)
    hints = [*_TOOLTIP, *_relative("regression")]
    conditions = dict.fromkeys(rows["condition"])
    return Drawing(
        lines(drawn, "rules", "rules (log)", None, hints), _data(drawn), (*said, *told, *study.notes(rows, conditions))
    )


def _rules(rules: pd.Series) -> pd.Series:
    return rules.map(lambda number: f"{number} rule{'s' if number != 1 else ''}")


def _relative(setting: str) -> list[tuple[str, str, str]]:
    return [("relative:Q", "of the zero predictor's", ".3f")] if setting == "regression" else []


def _frame(rows: pd.DataFrame, by: list[str]) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Means, and runs if they are few, each with the mean loss in units of the zero predictor's."""
    frame, said = with_dots(rows, by)
    relative = rows.groupby(by, dropna=False, sort=False)["relative"].mean().rename("relative").reset_index()
    return frame.merge(relative, on=by, how="left"), said


def _with_parameters(frame: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    one = rows.iloc[0]
    placed = frame.assign(architecture=one["architecture"], setting=one["setting"], options=one["options"])
    return placed.assign(parameters=parameters(placed))


def _references(frame: pd.DataFrame, rows: pd.DataFrame, panel: list[str]) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Chance, or the zero predictor's mean loss, in panels where something comes near; and what to say of the rest."""
    rows = rows.assign(zero=np.where(rows["setting"] == "classification", CHANCE, rows["value"] / rows["relative"]))
    zero = rows.groupby([*panel, "unit"], sort=False)["zero"].mean().reset_index()
    largest = frame.groupby(panel, sort=False)["value"].max().rename("largest").reset_index()
    found = zero.merge(largest, on=panel)
    near = found["largest"] >= _NEAR * found["zero"]
    drawn = found[near].rename(columns={"zero": "value"}).drop(columns="largest")
    drawn = drawn.assign(
        kind="reference",
        runs=0,
        still_learning=0,
        label=drawn["unit"].map({"error %": "chance", "loss": "zero predictor"}),
    )
    far = set(found["unit"][~near & found["zero"].notna()])
    words = {
        "error %": f"Chance is an error of {CHANCE:.0f} %, above the panels that do not show it.",
        "loss": "The zero predictor's loss is above the panels that do not show it; losses in its units are in "
        "the data.",
    }
    return drawn, tuple(text for unit, text in words.items() if unit in far)


def _ordered(frame: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Panels in the order of the rows, families in theirs."""
    for name in ("row", "column"):
        frame[name] = pd.Categorical(frame[name], list(dict.fromkeys(rows[name])), ordered=True)
    frame["family"] = pd.Categorical(frame["family"], FAMILIES, ordered=True)
    frame = frame.sort_values(["row", "column", "kind", "family"], kind="stable", ignore_index=True)
    return frame.astype({"row": object, "column": object, "family": object})


def _data(frame: pd.DataFrame) -> pd.DataFrame:
    return whole(frame).drop(columns=["place", "gating", "architecture", "setting", "options"], errors="ignore")
