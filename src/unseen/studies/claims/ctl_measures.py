"""What the claims of the ctl family measure, run by run, from the tables of a store: the last weights', as reported."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from unseen.metrics.success import CONVERGED, SOLVED
from unseen.studies.claims.claim import Tables

FUNCTIONS = 32
"""The functions of the paper's world, for which its numbers are printed."""
KEPT = 0.5
"""The IID accuracy above which the authors kept a Transformer."""
CHANCE = 0.05
"""Groups that shuffled ones are so seldom as far apart as are apart."""
_NEW = "ood/transition"


def columns(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs of the family on a sampling graph, with the number of functions; on S with the size of the bridge and
    the symbols shared there, and their places among those that were run (`bridge_size`, `overlap`; `fewer` where the
    bridge is smaller than the largest)."""
    runs = runs[runs["task"].isin(["ctl/A", "ctl/R", "ctl/S"])]
    found = runs.assign(functions=runs["task_options"].map(functions_of).astype(int))
    for axis, name in (("bridge", "bridge_size"), ("shared", "overlap")):
        if axis in found:
            level = found[axis].astype(float)
            found[name] = np.select([level == level.max(), level == level.min()], ["most", "least"], "between")
    if "bridge_size" in found:
        found["fewer"] = np.where(found["bridge_size"] == "most", "", "fewer")
    return found


def functions_of(options: str) -> int:
    """The number of functions behind the options that differ from the defaults.

    >>> functions_of("symbols=4 functions=16"), functions_of("")
    (16, 32)
    """
    named = dict(part.split("=", 1) for part in options.split() if "=" in part)
    return int(named.get("functions", FUNCTIONS))


def accuracies(tables: Tables) -> pd.DataFrame:
    """`IID` of every run and whether it `converged`; of converged runs `OOD`, and whether that is `solved`.

    Out of distribution a run that has not learned its task says nothing of what it would do. Beside them, for printed
    numbers, `IID as published`, `OOD as published` and `solved as published`: of all Bi-LSTMs and NDRs, and of
    Transformers with an IID accuracy of more than 0.5.
    """
    whole = _last(tables)
    whole = whole[(whole["metric"] == "accuracy") & (whole["factor"] == "")]
    inside, outside = (whole[whole["condition"] == condition] for condition in ("iid", _NEW))
    learned = inside["cell"][inside["value"] >= CONVERGED]
    kept = inside["cell"][(inside["value"] > KEPT) | (inside["model"] != "ctl-transformer")]
    published, outside = (outside[outside["cell"].isin(cells)] for cells in (kept, learned))
    return _stacked(
        {
            "IID": inside,
            "IID as published": inside[inside["cell"].isin(kept)],
            "converged": inside.assign(value=(inside["value"] >= CONVERGED).astype(float)),
            "OOD": outside,
            "solved": _solved(outside),
            "OOD as published": published,
            "solved as published": _solved(published),
        }
    )


def _solved(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(value=(rows["value"] > SOLVED).astype(float))


def representations(tables: Tables) -> pd.DataFrame:
    """What the analysis `representation` leaves of converged runs: `gap` (cosines of outputs within groups minus across
    groups), also of failed ones alone (`gap of failed runs`), and against OOD accuracy; so the `cluster gain`.

    Of failed runs also the `group gain`, and how far clusters and groups agree; of failed and of solved ones whether
    the groups are `apart`, beyond what shuffled groups would be.
    """
    scores = accuracies(tables)
    outside = scores[scores["metric"] == "OOD"].set_index("cell")["value"]
    whole = _last(tables)
    whole = whole[(whole["factor"] == "") & whole["cell"].isin(outside.index)]
    found = {
        name: whole[whole["metric"] == f"representation/{name}"]
        for name in ("gap", "gap_p", "agreement", "cluster_gain", "group_gain")
    }
    gap, apart = found["gap"], found["gap_p"]
    apart = apart.assign(value=(apart["value"] < CHANCE).astype(float))
    failed = whole["cell"][whole["cell"].map(outside) <= SOLVED]
    of_failed = {name: rows[rows["cell"].isin(failed)] for name, rows in {**found, "apart": apart}.items()}
    against = gap.assign(factor="OOD accuracy", level=gap["cell"].map(outside))
    return _stacked(
        {
            "gap": gap,
            "gap of failed runs": of_failed["gap"],
            "gap and accuracy": against,
            "cluster gain of failed runs": of_failed["cluster_gain"],
            "group gain of failed runs": of_failed["group_gain"],
            "agreement of failed runs": of_failed["agreement"],
            "groups apart in failed runs": of_failed["apart"],
            "groups apart in solved runs": apart[~apart["cell"].isin(failed)],
        }
    )


def by_length(tables: Tables) -> pd.DataFrame:
    """`OOD by length` of converged runs: the accuracy on unseen transitions for every number of functions."""
    scores, rows = accuracies(tables), _last(tables)
    rows = rows[
        (rows["metric"] == "accuracy")
        & (rows["condition"] == _NEW)
        & (rows["factor"] == "length")
        & rows["cell"].isin(scores["cell"][scores["metric"] == "OOD"])
    ]
    return _stacked({"OOD by length": rows})


def length_columns(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs of the original task; where both orders of reading were run, those that read the functions backward."""
    runs = runs[runs["task"] == "ctl/lengths"]
    return runs[runs["order"] == "backward"] if "order" in runs else runs


def longer(tables: Tables) -> pd.DataFrame:
    """`longer`: accuracy on the longest chains, of the weights that did best on somewhat longer ones."""
    rows = tables.records
    rows = rows[
        (rows["selection"] == "best")
        & (rows["metric"] == "accuracy")
        & (rows["factor"] == "")
        & rows["condition"].str.match(r"ood/length=\d+(-\d+)?$")
        & rows["cell"].isin(tables.runs["cell"])
    ]
    reach = rows["condition"].str.extract(r"(\d+)$")[0].astype(float)
    return rows[reach == reach.groupby(rows["cell"]).transform("max")].assign(metric="longer")


def _last(tables: Tables) -> pd.DataFrame:
    records, runs = tables.records, tables.runs
    named = [name for name in runs if name not in records or name == "cell"]
    return records[records["selection"] == "last"].merge(runs[named], on="cell")


def _stacked(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Tables under the names of their metrics, one below the other."""
    return pd.concat([rows.assign(metric=name) for name, rows in tables.items()], ignore_index=True)
