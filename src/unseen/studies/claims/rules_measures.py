"""What the claims of the rules family measure, run by run, from the tables of a store.

Errors are comparable between settings: the share of wrong answers, or the loss in units of the zero predictor's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

from unseen.metrics.activation import uniform_activation
from unseen.metrics.specialization import MATRIX_METRICS
from unseen.metrics.votes import CONDITIONS, CONTESTS, EXPERIMENT, GATINGS
from unseen.studies.claims.claim import Tables
from unseen.studies.claims.evidence import why_not
from unseen.studies.claims.rules_votes import Count, shared_votes

PLACES = ("architecture", "search", "setting", "gating", "rules", "width")
CONFOUNDS = ("encoder", "gate_hidden", "shared_state")
"""The axes of `rules-confounds`: sizes as published, and freed."""
NEEDED = ("setting", "gating", "rules", "width", "task_seed")
"""The axes without which runs are no evidence."""
_PLACED = (*PLACES, *CONFOUNDS, "task_seed", "seed", "data_seed")
MOST, FEWEST = "most rules", "fewest rules"
VOTE, DUEL = "share of votes", "share of duels"
LONGER = "error with longer sequences"
SOFT = "share of soft mixing"
STATE = 32
"""The numbers in the true state of rules/rnn."""
RELATIVE = ("alignment", "adaptation", "inverse_mutual_information")
"""Metrics that random gates do not have at zero."""
_SURE = 1e-6
"""As few nats of uncertainty are none."""


def columns(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs of the family, with the place of their number of rules among those of the architecture (`reach`; if it
    has one number only, among those of all), the number of experiments in the table, each of which has a vote, and the
    sizes that a study of confounds varies (empty where it does not)."""
    runs = runs[runs["task"].str.startswith("rules/")]
    if not set(NEEDED) <= set(runs):
        return runs.iloc[:0].assign(reach="")
    runs = runs[runs["gating"].isin(GATINGS)]
    search = runs["search"].map(lambda one: "" if pd.isna(one) else f"search {int(one)}") if "search" in runs else ""
    sizes = {name: runs[name].fillna("") if name in runs else "" for name in CONFOUNDS}
    runs = runs.assign(architecture=runs["task"].str.removeprefix("rules/"), search=search, **sizes)
    number = runs["rules"].astype(int)
    most, fewest = (number.groupby(runs["architecture"]).transform(end) for end in ("max", "min"))
    single = most == fewest
    most, fewest = most.mask(single, number.max()), fewest.mask(single, number.min())
    reach = np.select([number == most, number == fewest], [MOST, FEWEST], "between")
    return runs.assign(reach=reach, experiments=len(runs[list(EXPERIMENT)].drop_duplicates()))


def limited(runs: pd.DataFrame) -> pd.Series:
    """Whether width, not learning, bounds what a run can reach, for one gating or for all.

    rules/mha: a token has 4R numbers (in search 2, 6R of them by a linear code) to tell, an encoder narrower than that
    can't; these cells include all where the scorer of `operation` has fewer than 8 hidden units. rules/rnn: the shared
    state of the modular models is narrower than the state to be followed.
    """
    rules, width = runs["rules"].astype(float), runs["width"].astype(float)
    told = rules * runs["search"].map({"search 2": 6}).fillna(4)
    return (runs["architecture"] == "mha") & (width < told) | (runs["architecture"] == "rnn") & (
        _shared_state(rules, width) < STATE
    )


def _shared_state(rules: pd.Series, width: pd.Series) -> pd.Series:
    """The state that gives modular LSTMs the parameters of a monolithic one of width 4e, as the authors match them."""
    core = 4 * width
    square, linear, total = 4 * rules + 1, 4 * rules * width + 1, 5 * core**2 + (4 * width + 1) * core
    return ((linear**2 + 4 * square * total) ** 0.5 - linear) // (2 * square)


# -- votes and errors --------------------------------------------------------------------------------------------------

_ERRORS: Mapping[str, Mapping[str, str]] = {"error": CONDITIONS["id"], "OoD error": CONDITIONS["ood"]}
_LONGER = {LONGER: {"mha": "ood/length=30", "rnn": "ood/length=30"}}


def errors(tables: Tables, selection: str = "last", named: Mapping[str, Mapping[str, str]] = _ERRORS) -> pd.DataFrame:
    """`error` in distribution and `OoD error` of every run: the last weights', as the paper reports them. `named` has
    other names, each with the condition for every architecture."""
    whole = _whole(tables)
    rows = whole[whole["selection"] == selection]
    value = np.where(rows["metric"] == "accuracy", 1 - rows["value"], rows["value"])
    rows = rows.assign(value=value)[
        rows["metric"] == rows["setting"].map({"classification": "accuracy", "regression": "relative_loss"})
    ]
    return _stacked({name: rows[rows["condition"] == rows["architecture"].map(where)] for name, where in named.items()})


def longer(tables: Tables) -> pd.DataFrame:
    """`LONGER`: the error with sequences of length 30 and amplitudes as in training (the MLPs have no sequences)."""
    return errors(tables, named=_LONGER)


def votes(tables: Tables, count: Count = shared_votes, flipped: bool = False) -> pd.DataFrame:
    """The vote of every experiment for each gating, and for `joint` or `none` alone (the duel).

    Only usable runs, and seeds that all gatings have, count; each vote stands at one run of its experiment. `flipped`:
    those of RNN classification go to the highest error, as in the authors' aggregation.
    """
    found = _usable(errors(tables), tables)
    found = found[found["metric"] == "error"]
    if flipped:
        wrong = (found["architecture"] == "rnn") & (found["setting"] == "classification")
        found = found.assign(value=found["value"].where(~wrong, -found["value"]))
    first = found.sort_values("cell").drop_duplicates([*EXPERIMENT, "gating"])
    wide = found.pivot(index=[*EXPERIMENT, "seed", "data_seed"], columns="gating", values="value")
    cast = {}
    for name, contest in ((VOTE, CONTESTS["all"]), (DUEL, CONTESTS["joint against none"])):
        shares = count(wide.reindex(columns=list(contest)).dropna())
        shares = shares.rename_axis(columns="gating").reset_index().melt(list(EXPERIMENT), var_name="gating")
        cast[name] = first.drop(columns="value").merge(shares, on=[*EXPERIMENT, "gating"])
    return _stacked(cast)


# -- modules, curves, ranks --------------------------------------------------------------------------------------------


def specialization(tables: Tables) -> pd.DataFrame:
    """The specialization metrics, and those of `RELATIVE` once more in units of the random baseline's value."""
    whole = _whole(tables)
    rows = whole[(whole["selection"] == "last") & whole["metric"].str.startswith("specialization/")]
    found = {str(name).removeprefix("specialization/"): one for name, one in rows.groupby("metric")}
    for name in set(RELATIVE) & set(found):
        random = found[name]["rules"].map({rules: _random(name, rules) for rules in found[name]["rules"].unique()})
        found[f"relative {name}"] = found[name].assign(value=found[name]["value"] / random.where(random > 0))
    return _stacked(found)


def _random(metric: str, rules: int) -> float:
    """What a router scores that sends every rule to all modules alike."""
    return MATRIX_METRICS[metric](uniform_activation(rules), np.full(rules, 1 / rules))


def softness(tables: Tables) -> pd.DataFrame:
    """`SOFT`: of what is uncertain about the module once the rule is known, the share that is left once the token is.

    H(module | token) over H(module | rule): 1 where tokens are mixed softly and rules alone decide how; 0 where every
    token has one module, chosen by something other than the rule. None where the rule decides all.
    """
    names = ("token_entropy", "token_information", "mutual_information")
    found = specialization(tables)
    found = found[found["metric"].isin(names)]
    wide = found.pivot(index="cell", columns="metric", values="value").reindex(columns=list(names))
    rows = found.drop_duplicates("cell")
    entropy, of_token, of_rule = (rows["cell"].map(wide[name]) for name in names)
    soft = entropy * rows["rules"].map(lambda number: math.log(number)).astype(float)
    uncertain = soft + (of_token - of_rule).clip(lower=0)
    return _stacked({SOFT: rows.assign(value=soft / uncertain.where(uncertain > _SURE))})


def speeds(tables: Tables) -> pd.DataFrame:
    """`error during training`: the mean of the logged curve, the untrained network left out."""
    whole = _whole(tables)
    points = tables.curves() if len(whole) else whole
    if not len(points):
        return _stacked({})
    points = points[(points["step"] > 0) & (points["condition"] == "iid")].drop_duplicates(["cell", "step", "metric"])
    mean = points.groupby(["cell", "metric"])["value"].mean().unstack().reindex(columns=["accuracy", "loss"])
    last = whole[(whole["selection"] == "last") & (whole["condition"] == "iid")]
    unit = last.pivot(index="cell", columns="metric", values="value").reindex(columns=["relative_loss", "loss"])
    # Curves are of plain losses; the test data's zero predictor is the unit, as in the records.
    regression = mean["loss"] * (unit["relative_loss"] / unit["loss"])
    rows = whole.drop_duplicates("cell")
    wrong, lost = rows["cell"].map(1 - mean["accuracy"]), rows["cell"].map(regression)
    return _stacked(
        {"error during training": rows.assign(value=np.where(rows["setting"] == "classification", wrong, lost))}
    )


def ranks(tables: Tables) -> pd.DataFrame:
    """`OoD rank` of every run against its rank in distribution (`level`): the share of runs that are no worse, among
    the usable ones of equal architecture, search and setting."""
    found = _usable(errors(tables), tables)
    found = found.assign(rank=found.groupby(["metric", "architecture", "search", "setting"])["value"].rank(pct=True))
    inside = found[found["metric"] == "error"].set_index("cell")["rank"]
    outside = found[found["metric"] == "OoD error"]
    return _stacked(
        {
            "OoD rank": outside.assign(
                factor="rank in distribution", level=outside["cell"].map(inside), value=outside["rank"]
            )
        }
    )


def selections(tables: Tables) -> pd.DataFrame:
    """`change`, `OoD change`: how far the errors of the last and of the best weights of a run are from each other."""
    last, best = (errors(tables, name).set_index(["cell", "metric"]) for name in ("last", "best"))
    apart = last.assign(value=(last["value"] - best["value"].reindex(last.index)).abs()).reset_index()
    return apart.assign(metric=apart["metric"].str.replace("error", "change"))


def _usable(rows: pd.DataFrame, tables: Tables) -> pd.DataFrame:
    return rows[rows["cell"].isin(tables.runs["cell"][[reason == "" for reason in why_not(tables.runs)]])]


def _whole(tables: Tables) -> pd.DataFrame:
    """The overall records of the runs, with their places; none where the runs have no places."""
    runs = tables.runs
    records = tables.records[["cell", "selection", "condition", "factor", "level", "metric", "value", "n"]]
    if not {*PLACES, *NEEDED} <= set(runs):
        return records.iloc[:0].assign(**dict.fromkeys(_PLACED, ""))
    records = records[records["factor"] == ""].drop_duplicates(["cell", "selection", "condition", "metric"])
    # Sorted: sums round alike whatever the order of the records.
    return (
        runs[["cell", *_PLACED]]
        .merge(records, on="cell")
        .sort_values(["cell", "selection", "condition", "metric"], ignore_index=True)
    )


def _stacked(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Tables under the names of their metrics, one below the other."""
    named = [rows.assign(metric=name) for name, rows in tables.items()]
    empty = ["cell", "factor", "level", "metric", "value", "n", *_PLACED]
    return pd.concat(named, ignore_index=True) if named else pd.DataFrame(columns=empty)
