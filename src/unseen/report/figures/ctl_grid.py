"""The CTL++ paper's figures 4, 7 and 8: accuracy on S by functions of the bridge and symbols shared there."""

from __future__ import annotations

from typing import Any

import pandas as pd

from unseen.report import theme
from unseen.report.figure import Drawing
from unseen.report.figures.ctl_runs import IID, OOD, accuracies, notes, unlearned
from unseen.report.means import means
from unseen.report.references import CHANCE, ORACLE, measured
from unseen.report.source import Source

TASK = "ctl/S"


def grid(source: Source, model: str) -> Drawing | None:
    """A heat map: mean ± standard deviation over seeds of the accuracy on unseen transitions."""
    rows = accuracies(source, [TASK], [model])
    rows = rows[rows["ood"].notna()]
    if rows.empty:
        return None
    rows = _placed(source, rows).assign(value=lambda one: one["ood"])
    by = ["bridge", "shared"]
    frame = means(rows, by)
    frame = frame.merge(rows.groupby(by)["value"].agg(deviation="std", worst="min", best="max").reset_index(), on=by)
    frame = frame.sort_values(by, ignore_index=True)
    said = [f"{text}." for text in [unlearned(rows)] if text]
    levels = measured(source, rows["cell"], [OOD])
    said += [f"Chance is {levels[CHANCE]:.3g}, an oracle has {levels[ORACLE]:.0f}."] if levels else []
    if frame["runs"].nunique() > 1:
        said.append(f"Cells stand for {frame['runs'].min()} to {frame['runs'].max()} runs.")
    return Drawing(
        _chart(frame), frame.assign(model=model), (*said, *notes(source, rows, [TASK], [IID, OOD], [model], "○: "))
    )


def _placed(source: Source, rows: pd.DataFrame) -> pd.DataFrame:
    """With the columns `bridge` and `shared`, from the task where the study has no such axes."""
    tasks = {cell: source.task(cell) for cell in rows["cell"]} if not {"bridge", "shared"} <= set(rows) else {}
    for name in ("bridge", "shared"):
        if name not in rows:
            rows = rows.assign(
                **{
                    name: pd.Series(
                        [getattr(tasks[cell], name, None) for cell in rows["cell"]], rows.index, dtype=object
                    )
                }
            )
    return rows[rows["bridge"].notna() & rows["shared"].notna()].astype({"bridge": int, "shared": int})


def _chart(frame: pd.DataFrame) -> Any:
    alt = theme.load_altair()
    text = [
        f"{mean:.2f}" + (f" ± {deviation:.2f}" if pd.notna(deviation) else "") + (" ○" if still else "")
        for mean, deviation, still in zip(frame["mean"], frame["deviation"], frame["still_learning"], strict=True)
    ]
    under = [f"{runs} run{'s' if runs != 1 else ''}" for runs in frame["runs"]]
    base = alt.Chart(frame.assign(text=text, under=under))
    plain = alt.Axis(labelAngle=0, ticks=False, domain=False)
    x = alt.X("shared:O", title="symbols shared at the bridge (k)", axis=plain)
    y = alt.Y("bridge:O", title="functions of the bridge (o)", sort="descending", axis=plain)
    ink = {"condition": {"test": "datum.mean > 0.6", "value": theme.GROUND["dark"]}, "value": theme.GROUND["light"]}
    heat = base.mark_rect().encode(
        x=x,
        y=y,
        tooltip=[
            alt.Tooltip("bridge:O"),
            alt.Tooltip("shared:O"),
            alt.Tooltip("mean:Q", format=".3f"),
            alt.Tooltip("low:Q", title="95 % from", format=".3f"),
            alt.Tooltip("high:Q", title="to", format=".3f"),
            alt.Tooltip("worst:Q", format=".3f"),
            alt.Tooltip("best:Q", format=".3f"),
            alt.Tooltip("runs:Q"),
            alt.Tooltip("still_learning:Q", title="still learning"),
        ],
        color=alt.Color(
            "mean:Q",
            scale=alt.Scale(domain=[0, 1], scheme="viridis"),
            legend=alt.Legend(title="accuracy", format=".1f", gradientLength=150),
        ),
    )
    return alt.layer(
        heat,
        base.mark_text(dy=-5, fontWeight=600).encode(x=x, y=y, text="text:N", color=ink),
        base.mark_text(dy=11, fontSize=10).encode(x=x, y=y, text="under:N", color=ink),
    ).properties(width=alt.Step(112), height=alt.Step(54))
