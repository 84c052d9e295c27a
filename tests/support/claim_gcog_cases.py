"""Made-up records of the gcog family with a known truth, and the verdicts that each claim can come to."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import pandas as pd

from support.claim_records import option_columns, option_text, spread_out
from unseen.claims import CLAIMS
from unseen.claims.claim import JudgedClaim
from unseen.claims.judge import judge
from unseen.claims.papers import gcog_measures as measures
from unseen.claims.papers.gcog import CROSS, DUAL, GRU, MODELS, PERCEIVER, RNN, SINGLE
from unseen.studies.catalog.gcog import RELEASED_POOLS
from unseen.training.recipe import published_recipe

SEEDS = 5
CROWD = "gcog/distractor"
OPERATORS, TREES, PRODUCTIVE = "gcog/systematic-operators", "gcog/systematic-trees", "gcog/productive"
Options = Mapping[str, Any]
DEFAULTS: Options = {}
SMALL: Options = {
    "coding": "embedding",
    "distractors": [1, 3],
    "features": [["shape", ["a", "b", "c", "d", "e", "f"]], ["color", ["red", "green", "blue", "yellow"]]],
    "grid": [5, 5],
}
Rows = list[dict[str, Any]]


def rows(
    task: str,
    model: str,
    scores: Mapping[str, float],
    *,
    options: Options = DEFAULTS,
    positions: str = "absolute",
    metric: str = "accuracy",
    width: float = 0.004,
    sizes: Mapping[str, int] | None = None,
    **levels: Any,
) -> Rows:
    """The records of one place on some splits, one per seed."""
    found = []
    columns = {**option_columns("task", task, **options), "model.positions": positions, **(sizes or {})}
    model_text = "" if positions == "absolute" else f"positions={positions}"
    identity = f"{option_text(options)} {model_text} {sorted(levels.items())}"
    for shift, (split, mean) in enumerate(scores.items()):
        for seed, value in enumerate(spread_out(mean, width, SEEDS, shift)):
            what = f"{task} {model} {seed} {identity}"
            found.append(
                {
                    "scale": "full",
                    **levels,
                    "task": task,
                    "model": model,
                    "positions": positions,
                    **columns,
                    "seed": seed,
                    "data_seed": seed,
                    "status": "finished",
                    "step": 100,
                    "not_converged": 0,
                    "selection": "last",
                    "split": split,
                    "factor": "",
                    "level": "",
                    "metric": metric,
                    "value": value,
                    "standard_error": float("nan"),
                    "n": 10_000,
                    "trial": hashlib.sha256(what.encode()).hexdigest()[:16],
                }
            )
    return found


def paper_sizes(task: str, model: str) -> dict[str, int]:
    """Width and hidden layers of the paper's models, and the samples of its training, as a runs table has them."""
    recipe = published_recipe(task, model)
    assert recipe is not None
    amount = {"recipe.steps": recipe.steps, "recipe.batch": recipe.batch}
    if model in (RNN, GRU):
        return {"model.width": 512, **amount}
    return {"model.width": 256, "model.hidden": 1024 if model == measures.BERT else 512, **amount}


def paper_rows(task: str, model: str, scores: Mapping[str, float], options: Options = DEFAULTS, **levels: Any) -> Rows:
    """The records of a model in the paper's own setting: the released questions, from a fixed pool."""
    options = {"preset": "released", "pool": RELEASED_POOLS[task], **options}
    return rows(task, model, scores, options=options, sizes=paper_sizes(task, model), width=0.001, **levels)


# -- the figures, as printed or described -----------------------------------------------------------------------------

CROWDED = {
    RNN: (0.45, 0.40, 0.36, 0.34),
    GRU: (0.60, 0.45, 0.40, 0.37),
    SINGLE: (0.75, 0.55, 0.50, 0.45),
    DUAL: (0.76, 0.56, 0.51, 0.46),
    CROSS: (0.96, 0.95, 0.94, 0.93),
    PERCEIVER: (0.97, 0.95, 0.94, 0.93),
}
MET = {RNN: 0.81, GRU: 0.82, SINGLE: 0.83, DUAL: 0.84, CROSS: 0.98, PERCEIVER: 0.985}
GROWN = {
    RNN: (0.55, 0.541),
    GRU: (0.54, 0.50),
    SINGLE: (0.50, 0.45),
    DUAL: (0.52, 0.47),
    CROSS: (0.592, 0.50),
    PERCEIVER: (0.754, 0.657),
}
POSITIONED = (SINGLE, DUAL, CROSS, PERCEIVER)


def distractors(options: Options = DEFAULTS, numbers: tuple[int, ...] = (10, 20, 30, 40)) -> Rows:
    """Figure 3; the range is in none of its numbers."""
    found = []
    for model, levels in CROWDED.items():
        new = {f"ood/distractors={n}": value for n, value in zip(numbers, levels, strict=False)}
        found += rows(
            CROWD,
            model,
            {
                "train": 0.97,
                "iid": 0.2,
                "iid/distractors=1": 0.98,
                "iid/distractors=5": 0.96,
                f"ood/distractors={numbers[-1]}-50": 0.01,
                **new,
            },
            options=options,
        )
        if not options:
            found += paper_rows(CROWD, model, {"train": 0.97, **new})
    return found


def operators(options: Options = DEFAULTS) -> Rows:
    """Figures 4a to c; without the leak as calculated."""
    found = []
    for model, met in MET.items():
        learned = 0.99 if model in (CROSS, PERCEIVER) else 0.96
        for split, value in (("clean", met), ("released", met), ("released-minus-leak", 2 * met - learned)):
            found += rows(
                OPERATORS,
                model,
                {"train": learned, "iid": learned, "ood/operators": value},
                width=0.001,
                options={**options, "split": split},
                hold_out=split,
            )
            if not options and split != "clean":
                scores = {"train": learned, "iid": learned, "ood/operators": value}
                changes = {} if split == "released" else {"split": split}
                found += paper_rows(OPERATORS, model, scores, changes, hold_out=split)
    return found


def trees(options: Options = DEFAULTS) -> Rows:
    """Figures 4d to f and 9."""
    found = []
    for model, (inside, outside) in GROWN.items():
        for positions in ("absolute", "relative")[: 1 + (model in POSITIONED)]:
            less = 0.04 * (positions == "relative")
            found += rows(
                TREES,
                model,
                {
                    "train": 0.985,
                    "iid": 0.9,
                    "iid/depth=3": inside - less,
                    "ood/trees": outside - less,
                    "ood/mixed-leaves": 0.1,
                },
                options=options,
                positions=positions,
            )
        if not options:
            found += paper_rows(TREES, model, {"train": 0.985, "iid/depth=3": inside, "ood/trees": outside})
    return found


def depths(options: Options = DEFAULTS) -> Rows:
    """Figures 5, 10 and 11."""
    found = []
    for model in MODELS:
        for positions in ("absolute", "relative")[: 1 + (model in POSITIONED)]:
            found += rows(
                PRODUCTIVE,
                model,
                {
                    "train": 0.96,
                    "iid": 0.96,
                    "iid/depth=1": 0.97,
                    "iid/depth=3": 0.95,
                    "ood/depth=5": 0.30,
                    "ood/depth=7": 0.29,
                },
                options=options,
                positions=positions,
                trained_on="1 and 3",
            )
        found += rows(
            PRODUCTIVE,
            model,
            {"train": 0.96, "iid": 0.96, "ood/depth=3": 0.34, "ood/depth=5": 0.30, "ood/depth=7": 0.28},
            options={**options, "train_depths": [1]},
            trained_on="1",
        )
    return found


def layers(options: Options = DEFAULTS) -> Rows:
    """Figure 6."""
    new = {CROWD: "ood/distractors=10", OPERATORS: "ood/operators", TREES: "ood/trees", PRODUCTIVE: "ood/depth=5"}
    found = []
    for task, split in new.items():
        for number in (1, 2, 3, 4):
            for heads in (1, 4, 8):
                score = 0.3 if task == PRODUCTIVE else 0.45 + 0.12 * number + 0.01 * heads
                found += rows(
                    task, measures.BERT, {"train": 0.96, split: score}, options=options, layers=number, heads=heads
                )
        if not options:
            found += paper_rows(task, measures.BERT, {"train": 0.96, split: 0.97}, layers=4, heads=8)
    return found


def similarity(options: Options = DEFAULTS) -> Rows:
    """Figure 7 alone: records of the analysis `similarity`, without those of more distractors."""
    near = {RNN: 2.0, GRU: 2.1, SINGLE: 10.0, DUAL: 10.1, CROSS: 20.0, PERCEIVER: 20.1}
    found = []
    for model, moved in near.items():
        found += rows(CROWD, model, {"train": 0.97, "iid": 0.97}, options=options)
        for side, away in (("stimulus", 0), ("target", 30)):  # all may move away, too: it is the order that counts
            found += rows(
                CROWD,
                model,
                {"ood/distractors=40-50": moved - away},
                options=options,
                metric=f"similarity/{side}_alignment",
            )
    return found


POOLS = {
    "10000": (0.98, 0.75, 0.60),
    "100000": (0.97, 0.86, 0.75),
    "1000000": (0.96, 0.93, 0.90),
    "fresh": (0.95, 0.95, 0.93),
}


def pools(options: Options = DEFAULTS, pools: Mapping[str, tuple[float, float, float]] = POOLS) -> Rows:
    """The prediction of the spec."""
    found = []
    for preset in ("clean", "released"):
        for model in (CROSS, PERCEIVER):
            for pool, scores in pools.items():
                changes: dict[str, Any] = {"preset": "released"} if preset == "released" else {}
                if pool != "fresh":
                    changes["pool"] = int(pool)
                found += rows(
                    TREES,
                    model,
                    dict(zip(("train", "iid", "iid/depth=3"), scores, strict=True)),
                    options={**options, **changes},
                    preset=preset,
                    distractors="some",
                    coding="integer",
                    pool=pool,
                )
    return found


def systematicity(options: Options = DEFAULTS) -> Rows:
    return operators(options) + trees(options)


OF_STUDY = {
    "gcog-distractors": distractors,
    "gcog-systematicity": systematicity,
    "gcog-productivity": depths,
    "gcog-layers": layers,
    "similarity": similarity,
    "gcog-pool": pools,
}


def frame(found: Rows) -> pd.DataFrame:
    """Records, with what claims must not read: other weights, levels, metrics, and another family."""
    table = pd.DataFrame(found)
    wrong = [
        table.assign(selection="best", value=0.5),
        table.assign(factor="operator", level="Exist", value=0.1),
        table.assign(metric="right_kind", value=1.0),
        table.assign(metric="loss", value=3.0),
    ]
    other = table.assign(task="ctl/A", trial="c" + table.trial, model="ctl-ndr", value=0.7)
    return pd.concat([table, *wrong, other], ignore_index=True)


@cache
def of_study(study: str, small: bool) -> pd.DataFrame:
    return frame(OF_STUDY[study](SMALL if small else DEFAULTS))


MADE_BY = {"gcog/similarity": "similarity"}
"""Where the records come from, if not from all that the study of the claim records."""


def published(name: str, small: bool = False) -> pd.DataFrame:
    return of_study(MADE_BY.get(name, CLAIMS.load(name).study), small).copy()


def found(name: str, records: pd.DataFrame) -> JudgedClaim:
    return judge(CLAIMS.load(name), records)


def changed(records: pd.DataFrame, split: str, value: float, metric: str = "accuracy", **places: Any) -> pd.DataFrame:
    chosen = (
        (records.split == split)
        & (records.metric == metric)
        & (records.selection == "last")
        & (records.factor == "")
        & records.task.str.startswith("gcog/")
    )
    for column, place in places.items():
        chosen &= records[column] == place
    assert chosen.any()
    return records.assign(value=records.value.where(~chosen, value + 0.001 * records.seed))


WRONG: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "gcog/distractors-learned": lambda r: changed(r, "train", 0.7, model=GRU),
    "gcog/distractors": lambda r: changed(r, "ood/distractors=40", 0.3, model=CROSS),
    "gcog/distractors-drop": lambda r: changed(r, "ood/distractors=20", 0.59, model=GRU),
    "gcog/distractors-weakest": lambda r: changed(r, "ood/distractors=10", 0.05, model=SINGLE),
    "gcog/operators-learned": lambda r: changed(r, "train", 0.8, model=GRU),
    "gcog/operators": lambda r: changed(r, "ood/operators", 0.45, model=RNN),
    "gcog/leak": lambda r: changed(r, "ood/operators", 0.90, model=RNN, hold_out="released-minus-leak"),
    "gcog/trees-learned": lambda r: changed(r, "train", 0.8, model=RNN),
    "gcog/trees": lambda r: changed(r, "ood/trees", 0.8, model=GRU),
    "gcog/trees-values": lambda r: changed(r, "iid/depth=3", 0.9, model=PERCEIVER),
    "gcog/relative-trees": lambda r: changed(r, "ood/trees", 0.9, model=PERCEIVER, positions="relative"),
    "gcog/productivity-learned": lambda r: changed(r, "train", 0.7, model=DUAL),
    "gcog/productivity": lambda r: changed(r, "ood/depth=7", 0.37, model=CROSS, trained_on="1 and 3"),
    "gcog/relative-productivity": lambda r: changed(r, "ood/depth=5", 0.5, model=CROSS, positions="relative"),
    "gcog/depth-1": lambda r: changed(r, "ood/depth=3", 0.5, model=CROSS),
    "gcog/layers-distractors": lambda r: changed(r, "ood/distractors=10", 0.1, layers=4),
    "gcog/layers-operators": lambda r: changed(r, "ood/operators", 0.1, layers=4),
    "gcog/layers-trees": lambda r: changed(r, "ood/trees", 0.1, layers=4),
    "gcog/layers-productivity": lambda r: changed(r, "ood/depth=5", 0.6, layers=4),
    "gcog/similarity": lambda r: changed(r, "ood/distractors=40-50", 25.0, "similarity/stimulus_alignment", model=GRU),
    "gcog/pool": lambda r: changed(r, "iid/depth=3", 0.5, pool="fresh"),
}

"""Each contradicts a headline criterion."""
DETAILS_WRONG: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "gcog/distractors-learned": lambda r: changed(r, "train", 0.93, model=GRU),
    "gcog/operators": lambda r: changed(r, "ood/operators", 0.96, model=PERCEIVER),
    "gcog/leak": lambda r: changed(r, "ood/operators", 0.78, model=RNN, hold_out="released-minus-leak"),
    "gcog/trees-learned": lambda r: changed(r, "train", 0.95, model=RNN),
    "gcog/trees": lambda r: changed(r, "ood/trees", 0.6, model=GRU),
    "gcog/relative-trees": lambda r: changed(r, "iid/depth=3", 0.65, model=CROSS, positions="relative"),
    "gcog/similarity": lambda r: changed(r, "ood/distractors=40-50", 25.0, "similarity/target_alignment", model=GRU),
}
"""Each contradicts details alone."""


def few(name: str) -> pd.DataFrame:
    records = published(name)
    return records[records.seed < 2]


SUPPORTED = {name: partial(lambda name: found(name, published(name)), name) for name in WRONG}
CONTRADICTED = {name: partial(lambda name: found(name, WRONG[name](published(name))), name) for name in WRONG}
UNDECIDED = {name: partial(lambda name: found(name, few(name)), name) for name in WRONG}
