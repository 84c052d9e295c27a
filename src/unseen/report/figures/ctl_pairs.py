"""What the analysis `representation` left of CTL++ runs: which pairs work together (figure 6), and whether runs that
keep groups apart are those that fail (the question behind figures 3 and 9 to 11, for every seed)."""

from __future__ import annotations

from typing import Any

import pandas as pd

from unseen.metrics.success import CONVERGED
from unseen.report import theme
from unseen.report.figure import Drawing
from unseen.report.figures.ctl_runs import IID, NAMES, OOD, accuracies, measured, notes
from unseen.report.source import Source

NDR, REPEATING = "ctl-ndr", "ctl/R"
COMPATIBILITY = "representation/compatibility"
PARTS = {"cluster,symbol": "first function by cluster", "transition,symbol": "first function by group"}
"""What the rows of figure 6 are, (a) and (b)."""
SYMBOLS = 12
"""Panels at most."""
GAPS = {"representation/gap": "Groups apart", "representation/cluster_gain": "Clusters explain"}


def chosen(source: Source, task: str, worst: bool) -> pd.Series | None:
    """The NDR run that does worst, or best, on unseen transitions of a task; where some have learned it, of those."""
    rows = accuracies(source, [task], [NDR])
    rows = rows[rows["ood"].notna()]
    learned = rows[rows["iid"] >= CONVERGED]
    rows = (learned if len(learned) else rows).sort_values(["ood", "seed"], kind="stable")
    return rows.iloc[0 if worst else -1] if len(rows) else None


def described(run: pd.Series) -> str:
    """A run in words."""
    still = ", still learning" if run["still_learning"] == 1 else ""
    return (
        f"{NAMES[NDR]} on {run['task']}, seed {run['seed']}: accuracy {run['iid']:.3f} in distribution, "
        f"{run['ood']:.3f} on unseen transitions{still}."
    )


def pairs(source: Source) -> Drawing | None:
    """Figure 6: how often pairs of functions are right, by the first one's cluster or group and the second's group."""
    run = chosen(source, REPEATING, worst=True)
    if run is None:
        return None
    parts = []
    for factor in PARTS:
        rows = measured(source, [REPEATING], [NDR], factor)
        rows = rows[(rows["cell"] == run["cell"]) & (rows["metric"] == COMPATIBILITY)]
        place = rows["level"].str.rsplit(",", n=1).str
        between = place[0].str.rsplit("→", n=1).str
        parts.append(
            pd.DataFrame(
                {
                    "part": factor,
                    "first": between[0],
                    "second": between[1],
                    "symbol": place[1],
                    "value": rows["value"],
                    "pairs": rows["n"],
                }
            )
        )
    frame = pd.concat(parts, ignore_index=True)
    frame = frame[frame["first"] != "-1"]  # no state, so in no cluster
    if frame.empty:
        return None
    symbols = sorted(set(frame["symbol"]))
    said = [described(run), "Pairs of functions from different groups are unseen."]
    if len(symbols) > SYMBOLS:
        said.append(f"The first {SYMBOLS} of {len(symbols)} symbols; the others are in the data.")
    missing = [words for factor, words in PARTS.items() if not (frame["part"] == factor).any()]
    said += [f"This store has no numbers for the {words}." for words in missing]
    data = frame.assign(runs=1, cell=run["cell"], seed=run["seed"])
    shown = frame[frame["symbol"].isin(symbols[:SYMBOLS])]
    return Drawing(_tables(shown, symbols[:SYMBOLS]), data, tuple(said))


def _tables(frame: pd.DataFrame, symbols: list[str]) -> Any:
    """One row of panels for each part, a panel per symbol."""
    alt = theme.load_altair()
    rows = []
    for factor, words in PARTS.items():
        own = frame[frame["part"] == factor]
        if own.empty:
            continue
        named = (
            own["first"].map(lambda one: f"cluster {int(one) + 1}")
            if factor == "cluster,symbol"
            else ("group " + own["first"])
        )
        own = own.assign(named=named, panel="symbol " + own["symbol"], text=own["value"].map("{:.2f}".format))
        x = alt.X("second:N", title="second", axis=alt.Axis(labelAngle=0, ticks=False, domain=False))
        y = alt.Y("named:N", title=words, axis=alt.Axis(ticks=False, domain=False))
        base = alt.Chart()
        heat = base.mark_rect().encode(
            x=x,
            y=y,
            tooltip=[
                alt.Tooltip("named:N", title="first"),
                alt.Tooltip("second:N"),
                alt.Tooltip("symbol:N"),
                alt.Tooltip("value:Q", title="accuracy", format=".3f"),
                alt.Tooltip("pairs:Q"),
            ],
            color=alt.Color(
                "value:Q",
                scale=alt.Scale(domain=[0, 1], scheme="viridis"),
                legend=alt.Legend(title="accuracy", format=".1f", gradientLength=110),
            ),
        )
        text = base.mark_text(fontSize=11).encode(
            x=x,
            y=y,
            text="text:N",
            color={
                "condition": {"test": "datum.value > 0.6", "value": theme.GROUND["dark"]},
                "value": theme.GROUND["light"],
            },
        )
        rows.append(
            alt.layer(heat, text, data=own)
            .properties(width=alt.Step(40), height=alt.Step(34))
            .facet(
                column=alt.Column("panel:N", sort=[f"symbol {symbol}" for symbol in symbols], title=None), spacing=14
            )
        )
    return alt.vconcat(*rows, spacing=24).resolve_scale(color="shared")


def gaps(source: Source) -> Drawing | None:
    """Accuracy on unseen transitions against how far groups are apart, and how much clusters explain; a dot per run."""
    scores = accuracies(source, ["ctl/A", REPEATING])
    rows = measured(source, ["ctl/A", REPEATING])
    rows = rows[rows["metric"].isin(list(GAPS))].merge(scores[["cell", "iid", "ood"]], on="cell")
    rows = rows[rows["ood"].notna() & rows["value"].notna()]
    if rows.empty:
        return None
    frame = rows.assign(
        row=rows["metric"].map(GAPS),
        column=rows["task"],
        runs=1,
        learned=(rows["iid"] >= CONVERGED).astype(int),
        still_learning=(rows["still_learning"] == 1).astype(int),
    )
    frame = frame.sort_values(["metric", "task", "model", "seed"], ascending=[False, True, True, True])
    each = frame.drop_duplicates("cell")
    faint = int((each["learned"] == 0).sum())
    said = [f"Faint: {faint} of {len(each)} runs have an accuracy below {CONVERGED} in distribution."] if faint else []
    data = frame[
        ["metric", "task", "model", "seed", "cell", "iid", "ood", "value", "learned", "still_learning", "runs"]
    ]
    return Drawing(
        _scatter(frame), data.reset_index(drop=True), (*said, *notes(source, frame, ["ctl/A", REPEATING], [IID, OOD]))
    )


def _scatter(frame: pd.DataFrame) -> Any:
    alt = theme.load_altair()
    models = [model for model in NAMES if (frame["model"] == model).any()]
    scale = theme.colour_scale(models)
    x = alt.X(
        "ood:Q",
        title="accuracy on unseen transitions",
        scale=alt.Scale(domain=[0, 1.02], nice=False),
        axis=alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1]),
    )
    y = alt.Y("value:Q", title=None, axis=alt.Axis(tickCount=5))
    colour = alt.Color(
        "model:N",
        scale=scale,
        sort=models,
        title=None,
        legend=alt.Legend(orient="top", symbolType="circle", symbolOpacity=1),
    )
    base = alt.Chart()
    zero = (
        base.transform_aggregate(groupby=["row", "column"])
        .transform_calculate(zero="0")
        .mark_rule(strokeDash=[5, 4], strokeWidth=1.2)
        .encode(y="zero:Q")
    )
    dots = base.mark_point(size=64, strokeWidth=1.5).encode(
        x=x,
        y=y,
        color=colour,
        fill=alt.Fill("model:N", scale=scale, legend=None),
        opacity={"condition": {"test": "datum.learned > 0", "value": 0.85}, "value": 0.4},
        fillOpacity={"condition": {"test": "datum.still_learning > 0", "value": 0}, "value": 1},
        tooltip=[
            alt.Tooltip("model:N"),
            alt.Tooltip("seed:N"),
            alt.Tooltip("iid:Q", format=".3f"),
            alt.Tooltip("ood:Q", format=".3f"),
            alt.Tooltip("value:Q", format=".4f"),
            alt.Tooltip("still_learning:Q", title="still learning"),
        ],
    )
    rows, columns = (list(dict.fromkeys(frame[name])) for name in ("row", "column"))
    return (
        alt.layer(zero, dots, data=frame)
        .properties(width=330, height=190)
        .facet(
            column=alt.Column("column:N", sort=columns, title=None),
            row=alt.Row("row:N", sort=rows, title=None),
            spacing=20,
        )
        .resolve_scale(y="independent")
    )
