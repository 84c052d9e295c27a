"""What claims and figures of the rules family measure, run by run.

Errors are comparable between settings: the share of wrong answers, or the loss in units of the zero predictor's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from unseen.analysis.routing import uniform_activation
from unseen.analysis.specialization_metrics import MATRIX_METRICS
from unseen.analysis.votes import CONTESTS, EXPERIMENT, GATINGS, SPLITS
from unseen.claims.claim import Tables
from unseen.claims.evidence import exclusions
from unseen.claims.papers import option_column, stack_metrics
from unseen.names import family_of, name_in_family
from unseen.stats import FEWEST as FEWEST_SEEDS
from unseen.stats import benjamini_hochberg
from unseen.studies.catalog.rules import RULES, SEEDS, WIDTHS
from unseen.studies.catalog.rules import SAMPLE as NARROW_SAMPLE
from unseen.training.recipe import published_recipe

SEARCHES = {1: "search 1", 2: "search 2"}
"""The names of the versions of the search of rules/mha."""
CONFIGURATION = ("architecture", "search", "setting", "gating", "rules", "width")
CONFOUNDS = ("encoder", "gate_hidden", "shared_state")
"""The axes of `rules-confounds`: sizes as published, and freed."""
NEEDED = ("setting", "gating", "rules", "width", "task_seed")
"""The axes without which runs are no evidence."""
_RUN_COLUMNS = (*CONFIGURATION, *CONFOUNDS, "task_seed", "seed", "data_seed")
_COLUMNS = ("trial", "factor", "level", "metric", "value", "n", *_RUN_COLUMNS)
MOST, FEWEST = "most rules", "fewest rules"
VOTE, DUEL = "share of votes", "share of duels"
LONGER = "error with longer sequences"
SOFT = "share of soft mixing"
EXPERIMENTS = 1000
"""The paper's experiments, each with a vote: every architecture, search, setting, number of rules, width and task."""
TASK_SEEDS = tuple(SEEDS)
"""With `RULES` and `WIDTHS` the levels of the paper's experiments."""
SAMPLE = "sample"
"""The axis whose level names, on every run of a study, the frame that its experiments were drawn from at random."""
WHOLE_FRAME = "random sample of the paper's 1000 experiments"
NARROW_FRAME = NARROW_SAMPLE
FRAMES: Mapping[str, tuple[int, ...]] = {WHOLE_FRAME: WIDTHS, NARROW_FRAME: WIDTHS[:1]}
"""The frames that a study may declare, with their widths."""
SAME_AMOUNT = 0.01
"""Numbers of training examples that differ by less are equal: how many fill the last batch depends on its size."""
STATE = 32
"""The size of the true state of rules/rnn."""
RELATIVE = ("alignment", "adaptation", "inverse_mutual_information")
"""Metrics that are not zero for random gates."""
_CERTAIN = 1e-6
"""Fewer nats of uncertainty than this are none."""


def columns(runs: pd.DataFrame) -> pd.DataFrame:
    """Select the runs of the family and add what the claims name.

    `reach` says whether a run has the most or the fewest rules of its architecture (if that has one number only, of
    all). `experiments` is the number of experiments in the table, each of which has a vote, and `complete_or_sampled`
    says whether these are all of the paper's or a declared random sample of them. The sizes that a study of confounds
    varies are empty where they were not varied. `reduced` says whether a run has fewer training examples or a narrower
    model than the paper's, or is the one with the most rules and has fewer than the paper's most.
    """
    runs = runs[runs["task"].map(family_of) == "rules"]
    if not set(NEEDED) <= set(runs):
        return runs.iloc[:0].assign(reach="", reduced=False)
    runs = runs[runs["gating"].isin(GATINGS)]
    runs = runs.assign(architecture=runs["task"].map(name_in_family))
    searches = runs["search"] if "search" in runs else pd.Series(None, runs.index, dtype=object)
    runs["search"] = searches.map(lambda number: "" if pd.isna(number) else SEARCHES[int(number)]).astype(object)
    for name in CONFOUNDS:
        runs[name] = runs[name].fillna("") if name in runs else ""
    number = runs["rules"].astype(int)
    by_architecture = number.groupby(runs["architecture"])
    most = by_architecture.transform("max")
    fewest = by_architecture.transform("min")
    single = most == fewest
    most = most.mask(single, number.max())
    fewest = fewest.mask(single, number.min())
    runs["reach"] = np.select([number == most, number == fewest], [MOST, FEWEST], "between")
    runs["experiments"] = len(runs[list(EXPERIMENT)].drop_duplicates())
    comparable = is_complete(runs) or is_declared_sample(runs)
    runs["complete_or_sampled"] = pd.Series([comparable] * len(runs), runs.index, dtype=object)
    runs["reduced"] = _is_reduced(runs)
    return runs


def is_complete(runs: pd.DataFrame) -> bool:
    """Return whether there are as many experiments as in the paper."""
    return bool(len(runs)) and int(runs["experiments"].iloc[0]) == EXPERIMENTS


def is_declared_sample(runs: pd.DataFrame) -> bool:
    """Return whether all runs name the same frame of `FRAMES` on the axis `sample`, and belong to it."""
    if SAMPLE not in runs or runs.empty:
        return False
    frames = runs[SAMPLE].unique()
    if len(frames) != 1 or frames[0] not in FRAMES:
        return False
    widths = FRAMES[frames[0]]
    inside = runs["width"].isin(widths) & runs["rules"].isin(RULES) & runs["task_seed"].isin(TASK_SEEDS)
    return bool(inside.all())


def _is_reduced(runs: pd.DataFrame) -> pd.Series:
    """What is not known of a run does not count."""
    examples = _option_numbers(runs, "recipe.steps") * _option_numbers(runs, "recipe.batch")
    of_paper = {}
    for architecture in runs["architecture"].unique():
        recipe = published_recipe(f"rules/{architecture}", f"rules-{architecture}")
        of_paper[architecture] = math.nan if recipe is None else float(recipe.steps * recipe.batch)
    fewer_examples = examples / runs["architecture"].map(of_paper).astype(float) < 1 - SAME_AMOUNT
    narrower = runs["width"].astype(float) < min(WIDTHS)
    fewer_rules = (runs["reach"] == MOST) & (runs["rules"].astype(float) < max(RULES))
    return fewer_examples | narrower | fewer_rules


def _option_numbers(runs: pd.DataFrame, name: str) -> pd.Series:
    return pd.to_numeric(option_column(runs, name), errors="coerce")


def is_limited(runs: pd.DataFrame) -> pd.Series:
    """Return whether width, not learning, limits what a run can reach, for one gating or for all.

    In rules/mha a token has 4R numbers to encode (in search 2, 6R by a linear code), which a narrower encoder cannot;
    this includes all runs in which the scorer of `operation` has fewer than 8 hidden units. In rules/rnn the shared
    state of the modular models is narrower than the state that they must follow.
    """
    rules = runs["rules"].astype(float)
    width = runs["width"].astype(float)
    encoded = rules * runs["search"].map({SEARCHES[2]: 6}).fillna(4)
    narrow_encoder = (runs["architecture"] == "mha") & (width < encoded)
    narrow_state = (runs["architecture"] == "rnn") & (_shared_state(rules, width) < STATE)
    return narrow_encoder | narrow_state


def _shared_state(rules: pd.Series, width: pd.Series) -> pd.Series:
    """The state that gives modular LSTMs the parameters of a monolithic one of width 4e, as the authors match them."""
    # The positive root of square · s² + linear · s = total, rounded down.
    core = 4 * width
    square = 4 * rules + 1
    linear = 4 * rules * width + 1
    total = 5 * core**2 + (4 * width + 1) * core
    return ((linear**2 + 4 * square * total) ** 0.5 - linear) // (2 * square)


# -- errors -----------------------------------------------------------------------------------------------------------

_ERRORS: Mapping[str, Mapping[str, str]] = {"error": SPLITS["id"], "OoD error": SPLITS["ood"]}
_LONGER = {LONGER: {"mha": "ood/length=30", "rnn": "ood/length=30"}}


def errors(tables: Tables, selection: str = "last", splits: Mapping[str, Mapping[str, str]] = _ERRORS) -> pd.DataFrame:
    """`error` in distribution and `OoD error` of every run, of the last weights as the paper reports them.

    `splits` may name other errors, each with the split for every architecture.
    """
    rows = _overall_records(tables)
    rows = rows[rows["selection"] == selection]
    rows = rows.assign(value=np.where(rows["metric"] == "accuracy", 1 - rows["value"], rows["value"]))
    metric = rows["setting"].map({"classification": "accuracy", "regression": "relative_loss"})
    rows = rows[rows["metric"] == metric]
    by_name = {}
    for name, by_architecture in splits.items():
        by_name[name] = rows[rows["split"] == rows["architecture"].map(by_architecture)]
    return stack_metrics(by_name, _COLUMNS)


def longer(tables: Tables) -> pd.DataFrame:
    """`LONGER`: the error with sequences of length 30 and amplitudes as in training (the MLPs have no sequences)."""
    return errors(tables, splits=_LONGER)


# -- votes ------------------------------------------------------------------------------------------------------------

Count = Callable[[pd.DataFrame], pd.DataFrame]
"""Maps errors by experiment and seed, with a column for each gating, to the vote of each experiment."""
_DIGITS = 12
"""Mean errors that agree to this many decimals are tied."""


def shared_votes(errors: pd.DataFrame) -> pd.DataFrame:
    """Give the vote of an experiment to the gating with the smallest mean error; ties share it."""
    means = errors.groupby(level=list(EXPERIMENT)).mean().round(_DIGITS)
    best = means.eq(means.min(axis=1), axis=0)
    return best.div(best.sum(axis=1), axis=0)


def decided_votes(errors: pd.DataFrame, level: float = 0.95) -> pd.DataFrame:
    """Count only the votes of experiments whose best gating beats each other one significantly.

    By paired t tests over seeds. The largest p value is the experiment's, adjusted (Benjamini and Hochberg) over all
    experiments. With fewer than three seeds nothing is decided.
    """
    from scipy.special import stdtr  # inside, as wherever few calls need SciPy

    if errors.empty:
        return errors.groupby(level=list(EXPERIMENT)).mean()
    winner = errors.groupby(level=list(EXPERIMENT)).mean().idxmin(axis=1)
    winner_of_row = winner.reindex(errors.droplevel(["seed", "data_seed"]).index)
    best = errors.to_numpy()[np.arange(len(errors)), errors.columns.get_indexer(pd.Index(winner_of_row))]
    lead = errors.sub(best, axis=0).groupby(level=list(EXPERIMENT))
    mean = lead.mean().to_numpy()
    error = lead.sem().to_numpy()
    seeds = lead.size().to_numpy()
    # Leads without spread: certain if there is one, none at all if it is zero.
    t = np.divide(mean, error, out=np.where(mean > 0, np.inf, 0.0), where=error > 0)
    won = winner.to_numpy()[:, None] == errors.columns.to_numpy()
    p_values = np.where(won, 0.0, 2 * stdtr(np.maximum(seeds - 1, 1)[:, None], -t)).max(axis=1)
    decided = benjamini_hochberg(np.where(seeds < FEWEST_SEEDS, np.nan, p_values)) <= 1 - level
    return pd.DataFrame(won.astype(float), winner.index, errors.columns)[decided]


def votes(tables: Tables, count: Count = shared_votes, flipped: bool = False) -> pd.DataFrame:
    """The vote of every experiment for each gating, and for `joint` or `none` alone (the duel).

    Only usable runs, and seeds that all gatings have, count. Each vote is listed with one run of its experiment.
    `flipped` gives the votes of RNN classification to the highest error, as the authors' aggregation does.
    """
    rows = _select_usable(errors(tables), tables)
    rows = rows[rows["metric"] == "error"]
    if flipped:
        wrong = (rows["architecture"] == "rnn") & (rows["setting"] == "classification")
        rows = rows.assign(value=rows["value"].where(~wrong, -rows["value"]))
    first = rows.sort_values("trial").drop_duplicates([*EXPERIMENT, "gating"]).drop(columns="value")
    by_gating = rows.pivot(index=[*EXPERIMENT, "seed", "data_seed"], columns="gating", values="value")
    cast = {}
    for name, contest in ((VOTE, CONTESTS["all"]), (DUEL, CONTESTS["joint against none"])):
        shares = count(by_gating.reindex(columns=list(contest)).dropna())
        shares = shares.rename_axis(columns="gating").reset_index().melt(list(EXPERIMENT), var_name="gating")
        cast[name] = first.merge(shares, on=[*EXPERIMENT, "gating"])
    return stack_metrics(cast, _COLUMNS)


# -- modules, curves, ranks -------------------------------------------------------------------------------------------


def specialization(tables: Tables) -> pd.DataFrame:
    """The specialization metrics, and those of `RELATIVE` once more in units of what random gates score."""
    rows = _overall_records(tables)
    rows = rows[(rows["selection"] == "last") & rows["metric"].str.startswith("specialization/")]
    metrics = {}
    for name, values in rows.groupby("metric"):
        metrics[str(name).removeprefix("specialization/")] = values
    for name in RELATIVE:
        if name not in metrics:
            continue
        values = metrics[name]
        by_rules = {rules: random_score(name, rules) for rules in values["rules"].unique()}
        random = values["rules"].map(by_rules)
        metrics[f"relative {name}"] = values.assign(value=values["value"] / random.where(random > 0))
    return stack_metrics(metrics, _COLUMNS)


def random_score(metric: str, rules: int) -> float:
    """Return what a router scores that sends every rule to all modules alike.

    >>> [random_score(metric, 2) for metric in ("collapse_avg", "alignment", "inverse_mutual_information")]
    [0.0, 0.5, 1.0]
    """
    return float(MATRIX_METRICS[metric](uniform_activation(rules), np.full(rules, 1 / rules)))


def softness(tables: Tables) -> pd.DataFrame:
    """`SOFT`: of the uncertainty about the module given the rule, the share that remains given the token.

    This is H(module | token) over H(module | rule): 1 if tokens are mixed softly and rules alone decide how; 0 if every
    token has one module, chosen by something other than the rule; missing if the rule decides everything.
    """
    names = ["token_entropy", "token_information", "mutual_information"]
    rows = specialization(tables)
    rows = rows[rows["metric"].isin(names)]
    by_trial = rows.pivot(index="trial", columns="metric", values="value").reindex(columns=names)
    rows = rows.drop_duplicates("trial")
    entropy, token_information, rule_information = (rows["trial"].map(by_trial[name]) for name in names)
    soft = entropy * rows["rules"].map(lambda number: math.log(number)).astype(float)
    uncertainty = soft + (token_information - rule_information).clip(lower=0)
    return stack_metrics({SOFT: rows.assign(value=soft / uncertainty.where(uncertainty > _CERTAIN))})


def speeds(tables: Tables) -> pd.DataFrame:
    """`error during training`: the mean of the logged curve, without the untrained network."""
    records = _overall_records(tables)
    points = tables.curves() if len(records) else records
    if not len(points):
        return stack_metrics({}, _COLUMNS)
    points = points[(points["step"] > 0) & (points["split"] == "iid")].drop_duplicates(["trial", "step", "metric"])
    mean = points.groupby(["trial", "metric"])["value"].mean().unstack().reindex(columns=["accuracy", "loss"])
    last = records[(records["selection"] == "last") & (records["split"] == "iid")]
    unit = last.pivot(index="trial", columns="metric", values="value").reindex(columns=["relative_loss", "loss"])
    # Curves are of plain losses; the test data's zero predictor is the unit, as in the records.
    relative_loss = mean["loss"] * (unit["relative_loss"] / unit["loss"])
    rows = records.drop_duplicates("trial")
    wrong = rows["trial"].map(1 - mean["accuracy"])
    value = np.where(rows["setting"] == "classification", wrong, rows["trial"].map(relative_loss))
    return stack_metrics({"error during training": rows.assign(value=value)})


def ranks(tables: Tables) -> pd.DataFrame:
    """`OoD rank` of every run against its rank in distribution (`level`).

    A rank is the share of runs that are no worse among the usable ones of equal architecture, search and setting.
    """
    rows = _select_usable(errors(tables), tables)
    rows = rows.assign(rank=rows.groupby(["metric", "architecture", "search", "setting"])["value"].rank(pct=True))
    iid_rank = rows[rows["metric"] == "error"].set_index("trial")["rank"]
    ood = rows[rows["metric"] == "OoD error"]
    ood = ood.assign(factor="rank in distribution", level=ood["trial"].map(iid_rank), value=ood["rank"])
    return stack_metrics({"OoD rank": ood})


def selections(tables: Tables) -> pd.DataFrame:
    """`change`, `OoD change`: the distance between the errors of the last and of the best weights of a run."""
    last = errors(tables, "last").set_index(["trial", "metric"])
    best = errors(tables, "best").set_index(["trial", "metric"])
    distance = last.assign(value=(last["value"] - best["value"].reindex(last.index)).abs()).reset_index()
    return distance.assign(metric=distance["metric"].map({"error": "change", "OoD error": "OoD change"}))


def _select_usable(rows: pd.DataFrame, tables: Tables) -> pd.DataFrame:
    return rows[rows["trial"].isin(tables.runs["trial"][exclusions(tables.runs).isna()])]


def _overall_records(tables: Tables) -> pd.DataFrame:
    """The overall records of the runs with their configuration; none if the runs have no configuration."""
    runs = tables.runs
    records = tables.records[["trial", "selection", "split", "factor", "level", "metric", "value", "n"]]
    if not {*CONFIGURATION, *NEEDED} <= set(runs):
        return records.iloc[:0].assign(**dict.fromkeys(_RUN_COLUMNS, ""))
    keys = ["trial", "selection", "split", "metric"]
    records = records[records["factor"] == ""].drop_duplicates(keys)
    # Sorted, so that sums round alike whatever the order of the records.
    return runs[["trial", *_RUN_COLUMNS]].merge(records, on="trial").sort_values(keys, ignore_index=True)
