"""The answer of an exam in words: which abilities a model shows, above whom, and what it has not learned."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from unseen.claims.render import join_names
from unseen.exam.exam import INSIDE
from unseen.report.exam_scores import ExamResults, exam_table


def describe_exam(results: ExamResults) -> list[str]:
    """Paragraphs for each model of an exam: what it has learned, the abilities it shows, those it lacks."""
    table = exam_table(results)
    paragraphs = []
    for model, rows in table.groupby("model", sort=False):
        inside = rows[rows["ability"] == INSIDE]
        outside = rows[rows["ability"] != INSIDE]
        learned = inside[inside["learned"] > 0]
        unlearned = inside[inside["learned"] == 0]
        text = f"{model} has learned {len(learned)} of {len(inside)} tests in distribution"
        if len(learned):
            text += f" ({join_names(list(learned['test']))})"
        text += "."
        if len(unlearned):
            text += (
                f" Not learned: {join_names(list(unlearned['test']))}; so the abilities that these measure are unknown."
            )
        paragraphs.append(text)
        paragraphs.append(_describe_abilities(str(model), outside, results))
    return paragraphs


def _describe_abilities(model: str, rows: pd.DataFrame, results: ExamResults) -> str:
    """The abilities that lie above chance and shortcut, those that do not, and those that could not be measured."""
    demonstrated = []
    lacking = []
    unmeasured: list[str] = []
    for row in rows.to_dict("records"):
        name = f"{row['ability']} ({row['test']})"
        if math.isnan(row["score"]):
            unmeasured.append(name)
        elif _exceeds(row):
            demonstrated.append(f"{name}: {_describe_score(row)}")
        else:
            lacking.append(f"{name}: {_describe_score(row)}")
    for (untraced, ability), activations in results.untraced.items():
        if untraced == model:
            unmeasured.append(f"{ability} (the model does not report its {activations})")
    sentences = []
    if demonstrated:
        sentences.append(f"Abilities that it shows, above chance and every known shortcut: {'; '.join(demonstrated)}.")
    elif lacking:  # where nothing was measured, nothing is shown to be missing
        sentences.append("It shows none of the abilities above chance and every known shortcut.")
    if lacking:
        sentences.append(
            f"Learned in distribution, but not above chance or a shortcut beyond it: {'; '.join(lacking)}."
        )
    if unmeasured:
        sentences.append(f"Not measured: {join_names(unmeasured)}.")
    return " ".join(sentences)


def _exceeds(row: dict[Any, Any]) -> bool:
    """Whether a score, or the lower end of its interval if it has one, lies above chance and the best shortcut."""
    low = row["low"] if row["low"] == row["low"] else row["score"]
    ceiling = row["ceiling"] if row["ceiling"] == row["ceiling"] else -math.inf
    return bool(low > max(row["chance"], ceiling))


def _describe_score(row: dict[Any, Any]) -> str:
    interval = f" [{row['low']:.3f}, {row['high']:.3f}]" if row["low"] == row["low"] else ""
    remarks = [f"chance {row['chance']:.3f}"]
    if row["ceiling"] == row["ceiling"]:
        remarks.append(f"{row['shortcut']} {row['ceiling']:.3f}")
    if row["references"]:
        remarks.append(f"beside {row['references']} reference backbones: {row['standing']}")
    return f"{row['score']:.3f}{interval} ({', '.join(remarks)})"
