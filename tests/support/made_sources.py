"""What a store of one of our studies would hold, with made-up numbers and without the store."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from unseen.config import canonical
from unseen.report.data import Source, varied_axes
from unseen.store.tables import curves_table, records_table, runs_table
from unseen.studies.study import study as find_study
from unseen.studies.trial import Entry, evaluation_id

Key = tuple[str, str] | tuple[str, str, str, str]
"""(split, metric), or (split, metric, factor, level)."""
Numbers = Callable[[Entry], Mapping[Key, float]]


def made(
    name: str,
    scale: str,
    numbers: Numbers,
    *,
    best: Numbers | None = None,
    seeds: Sequence[int] = range(3),
    status: Callable[[Entry], str] = lambda entry: "finished",
    not_converged: Callable[[Entry], int | None] = lambda entry: 0,
    curve: Callable[[Entry], Mapping[tuple[int, str, str], float]] = lambda entry: {},
    only: Callable[[Entry], bool] = lambda entry: True,
) -> Source:
    """A source of a study at a scale. `numbers` are those of the last weights of a run, `best` of the best (default:
    half of them, so that who reads the wrong ones is found out); `only` keeps some of its entries."""
    entries = [entry for entry in find_study(name).entries(scale, seeds) if only(entry)]
    frame = pd.DataFrame(
        [
            {
                "scale": scale,
                "levels": json.dumps(dict(entry.levels)),
                "trial": entry.trial.id,
                "evaluation_id": evaluation_id(entry.trial.evaluation),
                "seed": entry.trial.seed,
                "data_seed": entry.trial.data_seed,
                "status": status(entry),
                "step": entry.trial.recipe.steps,
                "best_step": 1,
                "not_converged": not_converged(entry),
                "note": "",
                "cause": None,
                **{part: canonical(entry.trial.work[part]) for part in ("task", "model", "recipe")},
            }
            for entry in entries
        ]
    )
    records, points = [], []
    for entry in entries:
        if status(entry) != "finished":
            continue
        last = numbers(entry)
        ids = (entry.trial.id, evaluation_id(entry.trial.evaluation))
        other = {key: value / 2 for key, value in last.items()} if best is None else best(entry)
        for selection, found in (("last", last), ("best", other)):
            records += [
                (*ids, selection, key[0], *(key[2:] or ("", "")), key[1], value, 0.001, 1000)
                for key, value in found.items()
            ]
        points += [(entry.trial.id, *where, value) for where, value in curve(entry).items()]
    columns = [
        "trial",
        "evaluation_id",
        "selection",
        "split",
        "factor",
        "level",
        "metric",
        "value",
        "standard_error",
        "n",
    ]
    curves = pd.DataFrame(points, columns=["trial", "step", "split", "metric", "value"])
    runs = runs_table(frame)
    return Source(
        Path("made-up"),
        {"study": f"{name}@1"},
        scale,
        records_table(pd.DataFrame(records, columns=columns), frame),
        runs,
        varied_axes(frame, runs),
        dict(zip(frame["trial"], frame["task"], strict=True)),
        lambda: curves_table(curves, frame),
    )
