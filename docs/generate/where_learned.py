"""Where each model of the papers has learned its training distribution: `python docs/generate/where_learned.py`.

Writes docs/learned.md from the records that come with the package and, for models that these lack, from the stores of pilots in
campaign/stores. Only numbers in distribution are read.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from writing import table

from unseen.models import BACKBONES, MODELS
from unseen.store.records import load
from unseen.store.shipped_records import read_index
from unseen.store.store import Store

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "learned.md"
PILOTS = ("gcog-bert-pilot",)
VARIANTS = ("variant", "gating", "layers", "heads")
"""The axes that make one model of a paper several."""
LEARNED = 0.95
"""The accuracy in distribution from which a run counts as having learned."""

HEAD = """# Where each model has learned

What a model does out of distribution says something about the model only if it has learned its training distribution. This page lists, for every
model of the four papers, the study in which most of its runs did, and the models that no study with records has. It is made from
the [records](records.md) that come with the package by `docs/generate/where_learned.py`.

The number is the accuracy in distribution (`iid`) of the weights that the study judges. A run has *learned* with at least 0.95. Worlds, widths and
training are those of the study named, nearly always smaller than the papers': the page of the study lists every deviation. Pilots that failed are in `campaign/README.md` of
the repository.
"""


def page() -> str:
    """The page: a row per model and variant, then the models without any finished run."""
    runs = pd.concat(_read_runs(), ignore_index=True)
    papers = [entry.name for entry in MODELS if entry.name not in BACKBONES]
    rows, missing = [], []
    for model in papers:
        own = runs[runs["model"] == model]
        if own.empty:
            missing.append(f"`{model}`")
        for variant, group in own.groupby("name", sort=False):
            rows.append([f"`{model}`", str(variant), *_describe_best(group)])
    head = ["model", "variant", "where", "runs that learned", "mean", "least", "most"]
    lines = [HEAD, table(head, rows)]
    if missing:
        lines.append(
            f"**Without records**: {', '.join(missing)}. What their claims wait for is in [the ledger](claims.md), with the command that would run it."
        )
    return "\n\n".join(line.strip() for line in lines) + "\n"


def _describe_best(group: pd.DataFrame) -> list[str]:
    """The configuration in which the largest share of runs has learned, of equal ones that with the largest mean, as cells."""
    values = group.groupby("configuration", sort=False)["value"]
    ranks = pd.DataFrame({"learned": values.apply(lambda v: (v >= LEARNED).mean()), "mean": values.mean()})
    best = group[
        group["configuration"] == ranks.sort_values(["learned", "mean"], ascending=False, kind="stable").index[0]
    ]
    accuracy = best["value"]
    learned = int((accuracy >= LEARNED).sum())
    numbers = [f"{number:.3f}" for number in (accuracy.mean(), accuracy.min(), accuracy.max())]
    where = f"`{best['task'].iloc[0]}` in {best['source'].iloc[0]}"
    return [where, f"{learned} of {len(best)}", *numbers]


def _read_runs() -> Iterator[pd.DataFrame]:
    """A row per run with its accuracy in distribution, its variant's name, and where it is from."""
    for path, entry in read_index().items():
        file = load(path)
        source = f"[{entry.study}, {entry.scale}](results/{entry.study}-{entry.scale}.md)"
        yield _select(file.records, file.manifest.selection, source)
    for name in PILOTS:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(ROOT / "campaign" / "stores" / name / "store.sqlite", folder)
            with Store.read(Path(folder)) as store:
                yield _select(store.tables()[0], "last", f"the pilot `{name}` on tuning seeds, `campaign/`")


def _select(records: pd.DataFrame, selection: str, source: str) -> pd.DataFrame:
    chosen = records[(records["split"] == "iid") & (records["metric"] == "accuracy") & (records["factor"] == "")]
    chosen = chosen[chosen["selection"] == selection]
    labels = ["task", "task_options", "model_options", "recipe_options"]
    # Options that only number the task drawn are no configuration of their own: tasks of rules are the units there.
    texts = chosen[labels].fillna("").astype(str).replace(r" ?\btask_seed=\d+", "", regex=True)
    names = [axis for axis in VARIANTS if axis in chosen]
    variants = chosen[names].apply(_name_variant, axis=1) if names else ""
    return pd.DataFrame(
        {
            "model": chosen["model"],
            "task": chosen["task"],
            "name": variants,
            "configuration": source + texts.agg("|".join, axis=1),
            "source": source,
            "value": chosen["value"],
        }
    )


def _name_variant(levels: pd.Series) -> str:
    """`joint`, or `layers 4, heads 1`."""
    named = ("variant", "gating")
    return ", ".join(str(level) if axis in named else f"{axis} {level}" for axis, level in levels.items())


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
