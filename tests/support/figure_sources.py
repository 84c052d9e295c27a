"""Sources with made-up numbers, without a store: what `Source.read` gives, of the rules and ctl families; and how a
drawing is rendered."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import vl_convert
from altair.utils.schemapi import debug_mode

from unseen.config import canonical
from unseen.report import theme
from unseen.report.data import Source
from unseen.report.figure import Drawing, Figure
from unseen.store.tables import all_options
from unseen.tasks import task as make_task

Run = Mapping[str, Any]
Numbers = Callable[[Run, np.random.Generator], Mapping[Any, float]]
"""(split, metric) or (split, metric, factor, level) → value."""
LONGEST = "ood/length=30,amplitude=2"
LENGTHS = (
    *(f"ood/length={n}" for n in (3, 5, 20, 30)),
    *(f"ood/length={n},amplitude=2" for n in (3, 5, 20, 30)),
    "ood/amplitude=2",
)
SPECIALIZATION = ("collapse_avg", "collapse_worst", "alignment", "adaptation", "inverse_mutual_information")
REPEATED: dict[str, Any] = {
    "symbols": 4,
    "functions": 8,
    "max_length": 3,
    "train_size": 150,
    "iid_size": 40,
    "ood_size": 100,
}


def quick(figure: Figure, source: Source) -> Drawing | None:
    """What a figure draws, not held against the schema part by part: `rendered` does so for the whole."""
    with debug_mode(False):
        return figure.draw(source)


def rendered(drawing: Drawing) -> str:
    """A chart as SVG, as every reader gets it: fails where it does not fit its schema, where Vega-Lite refuses it,
    and where it has a title or an ink of its own."""
    spec = drawing.chart.to_dict()
    assert "title" not in spec and set(spec.get("config", {})) <= {"view"}
    text = str(vl_convert.vegalite_to_svg({**spec, "config": theme.config("dark")}))
    assert text.startswith("<svg")
    return text


@cache
def identity(name: str, options: tuple[tuple[str, Any], ...]) -> str:
    """A task as a store names it."""
    return canonical(make_task(name, **dict(options)).identity())


def made_up(
    places: Sequence[Run],
    numbers: Numbers,
    axes: Sequence[str],
    task: Callable[[Run], Mapping[str, Any]],
    status: Callable[[Run], str] = lambda run: "finished",
    curve: Numbers | None = None,
    not_converged: Callable[[Run], int] = lambda run: 0,
    model_options: Callable[[Run], Mapping[str, Any]] = lambda run: {},
    directory: Path = Path("nowhere"),
) -> Source:
    """A source of these runs; `numbers` are of the last weights, and the best ones' are a decoy that none may read."""
    runs, records, points, tasks = [], [], [], {}
    for number, place in enumerate(places):
        options = dict(task(place))
        trial = hashlib.sha256(repr(sorted(place.items(), key=str)).encode()).hexdigest()[:16]
        tasks[trial] = identity(place["task"], tuple(options.items()))
        state = status(place)
        own = {
            **{axis: place.get(axis) for axis in axes},
            "scale": "mini",
            "task": place["task"],
            "task_options": " ".join(f"{k}={v}" for k, v in options.items()),
            "model": place["model"],
            "model_options": " ".join(f"{k}={v}" for k, v in model_options(place).items()),
            "recipe": "r",
            "recipe_options": "",
            "seed": place["seed"],
            "data_seed": place["seed"],
            "status": state,
            "step": 100,
            "not_converged": not_converged(place),
            "trial": trial,
        }
        typed = {
            "task": json.loads(tasks[trial]),
            "model": {"name": place["model"], **model_options(place)},
            "recipe": {"name": "r"},
        }
        options = {f"{part}.{k}": v for part, of in typed.items() for k, v in all_options(part, of).items()}
        runs.append(own | {"best_step": 50, "note": "", "cause": None} | options)
        if state not in ("finished", "stopped"):
            continue
        draws = np.random.default_rng([7, number])
        for key, value in numbers(place, draws).items():
            factor, level = key[2:] or ("", "")
            row = own | {
                "split": key[0],
                "factor": factor,
                "level": level,
                "metric": key[1],
                "standard_error": 0.001,
                "n": 100,
            }
            records += [row | {"selection": "last", "value": value}, row | {"selection": "best", "value": 0.123}]
        if curve is not None:
            points += [
                own | {"split": "iid", "step": step, "metric": metric, "value": value}
                for (step, metric), value in curve(place, draws).items()
            ]
    table = pd.DataFrame(records)
    curves = pd.DataFrame(points)
    columns = list(
        dict.fromkeys(
            [
                *axes,
                "task",
                "model",
                "seed",
                "status",
                "selection",
                "split",
                "factor",
                "level",
                "metric",
                "value",
                "trial",
                "not_converged",
                "task_options",
            ]
        )
    )
    return Source(
        directory,
        {"study": "made-up@1"},
        "mini",
        table if len(table) else pd.DataFrame(columns=columns),
        pd.DataFrame(runs),
        tuple(axes),
        tasks,
        lambda: curves,
    )


def rules_places(
    architectures: Sequence[str] = ("mlp", "mha", "rnn"),
    settings: Sequence[str] = ("classification", "regression"),
    rules: Sequence[int] = (2, 8),
    widths: Sequence[int] = (32, 128),
    tasks: int = 3,
    seeds: int = 2,
    searches: Sequence[int] = (1,),
) -> list[dict[str, Any]]:
    """The grid of the modularity paper, or a part of it."""
    return [
        {
            "architecture": a,
            "search": s,
            "setting": k,
            "gating": g,
            "rules": r,
            "width": w,
            "task_seed": t,
            "seed": n,
            "task": f"rules/{a}",
            "model": f"rules-{a}",
        }
        for a in architectures
        for s in (searches if a == "mha" else (None,))
        for k, g, r, w, t, n in product(
            settings, ("none", "joint", "operation", "truth"), rules, widths, range(tasks), range(seeds)
        )
    ]


GOODNESS = {"truth": 0.1, "operation": 0.2, "joint": 0.3, "none": 0.35}


def rules_numbers(run: Run, draws: np.random.Generator) -> dict[Any, float]:
    """Errors that grow with the rules and shrink with the width, and metrics by gating."""
    splits = ("iid", "ood/amplitude=2") if run["architecture"] == "mlp" else ("iid", *LENGTHS)
    found: dict[Any, float] = {}
    for split in splits:
        error = (
            GOODNESS[run["gating"]] * np.log2(run["rules"]) / np.log2(run["width"]) * (1 if split == "iid" else 1.6)
            + 0.02 * draws.random()
        )
        found |= (
            {(split, "accuracy"): 1 - error, (split, "loss"): 0.7}
            if run["setting"] == "classification"
            else {(split, "loss"): 2.5 * error, (split, "relative_loss"): error}
        )
    if run["gating"] != "none":
        level = 0.0 if run["gating"] == "truth" else GOODNESS[run["gating"]]
        found |= {
            ("iid", f"specialization/{name}"): level * (1 + 0.2 * place) + 0.05 * draws.random() * (level > 0)
            for place, name in enumerate(SPECIALIZATION)
        }
    return found


def rules_curve(run: Run, draws: np.random.Generator) -> dict[Any, float]:
    """Curves of five points; MLPs are trained half as long."""
    metric = "accuracy" if run["setting"] == "classification" else "loss"
    last = 50 if run["architecture"] == "mlp" else 100
    goodness = GOODNESS[run["gating"]]
    return {
        (step, metric): (
            0.5 + (0.5 - goodness) * step / 100 if metric == "accuracy" else 1.2 - (1.2 - goodness) * step / 100
        )
        + 0.01 * draws.random()
        for step in range(0, last + 1, 25)
    }


def rules_source(places: Sequence[Run] | None = None, **options: Any) -> Source:
    """A source of the rules family."""
    axes = ("architecture", "setting", "gating", "rules", "width", "task_seed", "search")
    settings: dict[str, Any] = {"axes": axes, "numbers": rules_numbers, "curve": rules_curve, **options}
    settings.setdefault("model_options", lambda run: {"gating": run["gating"], "width": run["width"]})
    return made_up(rules_places() if places is None else places, task=_rules_task, **settings)


def _rules_task(run: Run) -> dict[str, Any]:
    more = {"search": run["search"]} if run["search"] else {}
    return {"rules": run["rules"], "setting": run["setting"], "task_seed": run["task_seed"], **more}


def ctl_places(
    tasks: Sequence[str] = ("ctl/A", "ctl/R"),
    seeds: int = 4,
    models: Sequence[str] = ("ctl-bilstm", "ctl-transformer", "ctl-ndr"),
) -> list[dict[str, Any]]:
    """Tasks × models × seeds."""
    return [{"task": task, "model": model, "seed": seed} for task in tasks for model in models for seed in range(seeds)]


def ctl_numbers(run: Run, draws: np.random.Generator) -> dict[Any, float]:
    """Accuracies, and what the analysis `representation` leaves."""
    outside = {"ctl-bilstm": 0.9, "ctl-transformer": 0.3, "ctl-ndr": 0.6}[run["model"]] + 0.05 * draws.random()
    found: dict[Any, float] = {
        ("iid", "accuracy"): 0.5 if run["model"] == "ctl-transformer" else 0.99,
        ("ood/transition", "accuracy"): outside,
        ("probe/singles", "representation/gap"): 0.3 - 0.3 * outside,
        ("probe/pairs", "representation/cluster_gain"): 0.2 * draws.random(),
    }
    for symbol, second in product("01", "ab"):
        for factor, firsts in (("transition,symbol", "ab"), ("cluster,symbol", ("0", "1", "2"))):
            found |= {
                ("probe/pairs", "representation/compatibility", factor, f"{first}→{second},{symbol}"): float(
                    draws.random()
                )
                for first in firsts
            }
    return found


def ctl_source(places: Sequence[Run] | None = None, **options: Any) -> Source:
    """A source of the ctl family; S with the axes of the grid where the places have them."""
    given = ctl_places() if places is None else places
    axes = tuple(axis for axis in ("task", "model", "bridge", "shared") if axis in given[0])
    settings: dict[str, Any] = {"numbers": ctl_numbers, "axes": axes, **options}
    settings.setdefault(
        "task", lambda run: REPEATED if run["task"] != "ctl/S" else {"bridge": run["bridge"], "shared": run["shared"]}
    )
    return made_up(given, **settings)
