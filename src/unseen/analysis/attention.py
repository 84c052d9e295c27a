"""The analyses R1 to R9 of the retrieval paper: where the decoder attends, and where models are right.

Each analysis takes (run_activations, targets, factors) and returns the table described in
`unseen.analysis.activations.tabulate`; R2 and R8 return tables of their own. `ANALYSES` lists them with the numbers
that the paper printed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from unseen.analysis.accuracy import accuracy_by, decide, share_correct
from unseen.analysis.activations import (
    Activations,
    Array,
    Factors,
    Mean,
    RunActivations,
    check_activations,
    forced_positions,
    get_factor,
    mean_of,
    positives,
    tabulate,
)
from unseen.errors import UsageError

DECODER = "decoder.attention"


def attention_at(activations: Activations, positions: NDArray[np.int64]) -> NDArray[np.float64]:
    """The decoder's attention on one token of each example (N,); NaN where the position is −1.

    >>> activations = {"decoder.attention": np.array([[0.75, 0.25], [0.5, 0.5]])}
    >>> attention_at(activations, np.array([1, -1])).tolist()
    [0.25, nan]
    """
    weight = np.take_along_axis(activations[DECODER], positions[:, None], axis=1)[:, 0]
    return np.where(positions >= 0, weight, np.nan)


def attention_by_correctness(run_activations: RunActivations, targets: Array, factors: Factors) -> pd.DataFrame:
    """R1: attention on the queried feature's token, over correct and over wrong answers.

    Mean over the positives of T1; pooled over variants and seeds example by example, so that a run with more errors
    weighs more in `wrong`. Published: correct 0.82, wrong 0.17.

    >>> activations = {"prediction": np.array([[2.0], [-1.0], [1.0]]),
    ...                "decoder.attention": np.array([[0.875, 0.125], [0.25, 0.75], [0.5, 0.5]])}
    >>> factors = {"positions": np.array([[0, -1], [0, -1], [-1, -1]]),
    ...            "occurrences": np.array([[1], [1], [0]])}
    >>> table = attention_by_correctness({("T+Pos+Att", 0): activations}, np.array([[1], [1], [0]]), factors)
    >>> from unseen.analysis import pooled_values
    >>> pooled_values(table)
    {'correct': 0.875, 'wrong': 0.25}
    """
    position = forced_positions(factors)[:, 0]
    positive = positives(targets)

    def measure(activations: Activations) -> Mapping[str, Mean]:
        weight = attention_at(activations, position)
        correct = share_correct(activations["prediction"], targets, "binary") == 1
        return {"correct": mean_of(weight[positive & correct]), "wrong": mean_of(weight[positive & ~correct])}

    return tabulate(run_activations, targets, ["prediction", DECODER], measure)


def accuracy_by_position(run_activations: RunActivations, targets: Array, factors: Factors) -> pd.DataFrame:
    """The points behind R2: accuracy on T1's positives by the queried feature's token.

    Columns: variant, seed, position, value, n; one row per run and position that occurs.

    >>> activations = {"prediction": np.array([[1.0], [-1.0], [1.0]])}
    >>> factors = {"positions": np.array([[0, -1], [1, -1], [1, -1]]), "occurrences": np.ones((3, 1), int)}
    >>> accuracy_by_position({("T+Pos+Att", 0): activations}, np.array([[1], [1], [1]]), factors)["value"].tolist()
    [1.0, 0.5]
    """
    check_activations(run_activations, targets, ["prediction"])
    positive = positives(targets)
    position = forced_positions(factors)[:, 0]
    tables = []
    for (variant, seed), activations in run_activations.items():
        table = accuracy_by(activations["prediction"][positive], targets[positive], "binary", position[positive])
        tables.append(table.rename(columns={"level": "position"}).assign(variant=variant, seed=seed))
    return pd.concat(tables, ignore_index=True)[["variant", "seed", "position", "value", "n"]]


def position_effect(run_activations: RunActivations, targets: Array, factors: Factors) -> pd.DataFrame:
    """R2: Pearson correlation of the queried feature's position with the accuracy there.

    Points are runs × positions (T1, positives): first all runs of the variants with self-attention (`+Att`) together
    and those without (`-Att`), then each variant, then each seed; variants with other names have no pooled row.
    Columns: scope, variant, seed, r, p (two-sided, as if points of one run were independent), n points. r and p are
    NaN below three points or where the accuracy does not vary. Published: r = −0.51, highly significant, for +Att; not
    significant for −Att.

    >>> activations = {"prediction": np.array([[1.0], [1.0], [1.0], [-1.0], [-1.0], [-1.0]])}
    >>> factors = {"positions": np.array([[0], [0], [1], [1], [2], [2]]), "occurrences": np.ones((6, 1), int)}
    >>> table = position_effect({("T-Pos+Att", 0): activations}, np.ones((6, 1), int), factors)
    >>> table[["scope", "variant", "r", "n"]].round(3).to_numpy().tolist()[0]
    ['pooled', '+Att', -1.0, 3]
    """
    points = accuracy_by_position(run_activations, targets, factors)
    ending = points["variant"].str.replace("−", "-").str[-4:]  # variants are spelled with minus or hyphen
    rows: list[tuple[Any, ...]] = []
    for name in ("+Att", "-Att"):
        if (ending == name).any():
            rows.append(("pooled", name, None, *_correlate(points[ending == name])))
    for variant, group in points.groupby("variant", sort=False):
        rows.append(("variant", variant, None, *_correlate(group)))
    for run, group in points.groupby(["variant", "seed"], sort=False):
        rows.append(("seed", *run, *_correlate(group)))
    return pd.DataFrame(rows, columns=["scope", "variant", "seed", "r", "p", "n"]).astype({"seed": "Int64"})


def _correlate(points: pd.DataFrame) -> tuple[float, float, int]:
    position = points["position"].to_numpy(np.float64)
    value = points["value"].to_numpy(np.float64)
    if len(points) < 3 or np.ptp(position) == 0 or np.ptp(value) == 0:
        return math.nan, math.nan, len(points)
    from scipy.stats import pearsonr  # inside, because importing it takes most of a second

    correlation = pearsonr(position, value)
    return float(correlation.statistic), float(correlation.pvalue), len(points)


def error_profile(run_activations: RunActivations, targets: Array, factors: Factors) -> pd.DataFrame:
    """R3: accuracy in the four scenarios of T2, and the two comparisons.

    Means over the examples of a scenario: `yes/same`, `yes/diff`, `no/none`, `no/one` (either feature alone); then
    `yes/diff - yes/same` and `no/one - no/none`. Published: about −0.25 (misses across tokens) and about −0.40 (false
    alarms on one feature).

    >>> scenario = np.array(["yes/same", "yes/diff", "no/none", "no/a-only", "no/b-only"])
    >>> activations = {"prediction": np.array([[1.0], [-1.0], [-1.0], [-1.0], [1.0]])}
    >>> targets = np.array([[1], [1], [0], [0], [0]])
    >>> table = error_profile({("T-Pos-Att", 0): activations}, targets, {"scenario": scenario})
    >>> from unseen.analysis import pooled_values
    >>> pooled_values(table)  # doctest: +NORMALIZE_WHITESPACE
    {'yes/same': 1.0, 'yes/diff': 0.0, 'no/none': 1.0, 'no/one': 0.5,
     'yes/diff - yes/same': -1.0, 'no/one - no/none': -0.5}
    """
    scenario = get_factor(factors, "scenario")
    members = {name: scenario == name for name in ("yes/same", "yes/diff", "no/none")}
    members["no/one"] = np.isin(scenario, ["no/a-only", "no/b-only"])

    def measure(activations: Activations) -> Mapping[str, Mean]:
        correct = share_correct(activations["prediction"], targets, "binary")
        means = {name: mean_of(correct[member]) for name, member in members.items()}
        for hard_name, easy_name in (("yes/diff", "yes/same"), ("no/one", "no/none")):
            hard = means[hard_name]
            easy = means[easy_name]
            difference = Mean(math.nan, 0)
            if hard.n and easy.n:
                difference = Mean(hard.value - easy.value, hard.n + easy.n)
            means[f"{hard_name} - {easy_name}"] = difference
        return means

    return tabulate(run_activations, targets, ["prediction"], measure)


def focus(run_activations: RunActivations, targets: Array, factors: Factors) -> pd.DataFrame:
    """R4: how far the most attended token is ahead of the second most attended one.

    Mean of (largest − second largest) attention over the positives of T2 with the features in different tokens
    (`yes/diff`), and over all examples (`all`). Published: 0.6 to 0.7 across variants.

    >>> activations = {"decoder.attention": np.array([[0.75, 0.125, 0.125], [0.5, 0.0, 0.5]])}
    >>> factors = {"scenario": np.array(["yes/diff", "no/none"])}
    >>> table = focus({("T-Pos-Att", 0): activations}, np.array([[1], [0]]), factors)
    >>> from unseen.analysis import pooled_values
    >>> pooled_values(table)
    {'yes/diff': 0.625, 'all': 0.3125}
    """
    different = get_factor(factors, "scenario") == "yes/diff"

    def measure(activations: Activations) -> Mapping[str, Mean]:
        top_two = np.partition(activations[DECODER], -2, axis=1)[:, -2:].astype(np.float64)
        lead = top_two[:, 1] - top_two[:, 0]
        return {"yes/diff": mean_of(lead[different]), "all": mean_of(lead)}

    return tabulate(run_activations, targets, [DECODER], measure)


def target_attention(run_activations: RunActivations, targets: Array, factors: Factors) -> pd.DataFrame:
    """R5: attention on the single token that answers the question.

    Mean over the positives of T3 with a single target token (`target`), and separately for those with one feature of
    the pair (`one feature`) and with both in the same token (`both features`). Published: 0.6 to 0.7 for every
    variant.

    >>> activations = {"decoder.attention": np.array([[0.75, 0.25], [0.5, 0.5], [0.0, 1.0]])}
    >>> factors = {"scenario": np.array(["yes/a-only", "yes/both-same", "yes/both-diff"]),
    ...            "positions": np.array([[0, -1], [1, 1], [0, 1]]),
    ...            "occurrences": np.array([[1, 0], [1, 1], [1, 1]])}
    >>> table = target_attention({("T-Pos-Att", 0): activations}, np.array([[1], [1], [1]]), factors)
    >>> from unseen.analysis import pooled_values
    >>> pooled_values(table)
    {'target': 0.625, 'one feature': 0.75, 'both features': 0.5}
    """
    position = forced_positions(factors).max(axis=1)  # an absent feature has position −1
    scenario = get_factor(factors, "scenario")
    one_feature = np.isin(scenario, ["yes/a-only", "yes/b-only"])
    both_features = scenario == "yes/both-same"

    def measure(activations: Activations) -> Mapping[str, Mean]:
        weight = attention_at(activations, position)
        return {
            "target": mean_of(weight[one_feature | both_features]),
            "one feature": mean_of(weight[one_feature]),
            "both features": mean_of(weight[both_features]),
        }

    return tabulate(run_activations, targets, [DECODER], measure)


def favoured_feature(run_activations: RunActivations, targets: Array, factors: Factors) -> pd.DataFrame:
    """R6: does a model judge a pair by one of its features?

    For each run and query of T4, the favourite is the feature whose token gets the larger mean attention over the
    positives with the features in different tokens (the first, in a tie). Measures:

    * `favoured`, `other`: attention on the token of either feature, mean over those positives. Published: about 0.9
      and 0.05.
    * `agreement` of all answers to these queries with the rule *yes iff the favourite occurs*.
    * `agreement where the rule errs`, which tells the rule (1) from a perfect model (0). A perfect model has a plain
      agreement of 0.875.
    * `low favoured`: the share of queries whose favourite is the low feature.

    The same query twice: first the pair in tokens 0 and 1, then only the favourite; the model says yes both times.

    >>> activations = {"prediction": np.array([[1.0], [1.0]]),
    ...                "decoder.attention": np.array([[0.875, 0.125], [0.5, 0.5]])}
    >>> factors = {"scenario": np.array(["yes/diff", "no/a-only"]), "query_id": np.array([7, 7]),
    ...            "relevant": np.array([[3, 20], [3, 20]]), "positions": np.array([[0, 1], [1, -1]]),
    ...            "occurrences": np.array([[1, 1], [1, 0]])}
    >>> table = favoured_feature({("T+Pos-Att", 0): activations}, np.array([[1], [0]]), factors)
    >>> from unseen.analysis import pooled_values
    >>> pooled_values(table)  # doctest: +NORMALIZE_WHITESPACE
    {'favoured': 0.875, 'other': 0.125, 'agreement': 1.0, 'agreement where the rule errs': 1.0,
     'low favoured': 1.0}
    """
    positions = forced_positions(factors)
    different = get_factor(factors, "scenario") == "yes/diff"
    pairs = get_factor(factors, "relevant")
    positive = positives(targets)
    rows = np.arange(len(targets))
    _, first_row, query = np.unique(get_factor(factors, "query_id"), return_index=True, return_inverse=True)
    queries = len(first_row)
    has_favourite = np.bincount(query[different], minlength=queries) > 0
    # All examples of a query have the same pair, so its first example tells which slot has the low feature.
    low_slot = (pairs[first_row, 1] < pairs[first_row, 0]).astype(np.int64)

    def measure(activations: Activations) -> Mapping[str, Mean]:
        weight = np.stack([attention_at(activations, positions[:, slot]) for slot in (0, 1)], axis=1)
        totals = [np.bincount(query[different], weight[different, slot], queries) for slot in (0, 1)]
        favourite = (totals[1] > totals[0]).astype(np.int64)
        slot = favourite[query]
        counted = has_favourite[query]
        rule_answer = positions[rows, slot] >= 0
        agrees = decide(activations["prediction"], "binary")[:, 0] == rule_answer
        return {
            "favoured": mean_of(weight[rows, slot][different]),
            "other": mean_of(weight[rows, 1 - slot][different]),
            "agreement": mean_of(agrees[counted]),
            "agreement where the rule errs": mean_of(agrees[counted & (rule_answer != positive)]),
            "low favoured": mean_of((favourite == low_slot)[has_favourite]),
        }

    return tabulate(run_activations, targets, ["prediction", DECODER], measure)


def later_minus_earlier(run_activations: RunActivations, targets: Array, factors: Factors) -> pd.DataFrame:
    """R7: attention on the later minus the earlier of the two tokens that carry the chosen pair.

    Mean over positives with the pair in two tokens (T5: scenario `yes/diff`; T6 and T7: all), `positive`, and over
    negatives that have it in the wrong order, `wrong order`. All runs have the same examples, so a variant's value and
    spread are mean and standard deviation over seeds, as the paper prints them: T5 0.03 ± 0.02 (T−Pos+Att) and
    0.01 ± 0.01 (T+Pos+Att), T6 0.79 ± 0.005 and −0.14 ± 0.55, T7 0.46 ± 0.03 and 0.16 ± 0.18. A large value means that
    self-attention carried the first feature into the state of the second token, a large spread that seeds differ in
    strategy.

    >>> activations = {"decoder.attention": np.array([[0.0, 0.125, 0.875], [0.25, 0.0, 0.75]])}
    >>> factors = {"scenario": np.array(["yes", "no/wrong-order"]), "positions": np.array([[1, 2], [2, 0]]),
    ...            "occurrences": np.array([[1, 1], [1, 1]])}
    >>> table = later_minus_earlier({("T-Pos+Att", 0): activations}, np.array([[1], [0]]), factors)
    >>> from unseen.analysis import pooled_values
    >>> pooled_values(table)
    {'positive': 0.75, 'wrong order': 0.5}
    """
    positions = forced_positions(factors)
    earlier = positions.min(axis=1)
    later = positions.max(axis=1)
    positive = positives(targets) & (earlier >= 0) & (earlier < later)
    wrong_order = get_factor(factors, "scenario") == "no/wrong-order"

    def measure(activations: Activations) -> Mapping[str, Mean]:
        difference = attention_at(activations, later) - attention_at(activations, earlier)
        return {"positive": mean_of(difference[positive]), "wrong order": mean_of(difference[wrong_order])}

    return tabulate(run_activations, targets, [DECODER], measure)


def length_curves(records: pd.DataFrame) -> pd.DataFrame:
    """R8: accuracy against sequence length, over seeds.

    `records` has the columns variant, seed, length, accuracy, one row per run of one task; the result has variant,
    length, value (mean over seeds), spread (their sample standard deviation), runs. The paper prints the curves without
    numbers.

    >>> records = pd.DataFrame({"variant": "LSTM", "seed": [0, 1], "length": 5, "accuracy": [0.5, 1.0]})
    >>> length_curves(records)[["variant", "length", "value", "runs"]].to_numpy().tolist()
    [['LSTM', 5, 0.75, 2]]
    """
    missing = {"variant", "seed", "length", "accuracy"} - set(records.columns)
    if missing:
        raise UsageError(
            f"length curves need the columns variant, seed, length, accuracy; missing: {', '.join(sorted(missing))}"
        )
    repeated = records.duplicated(["variant", "seed", "length"])
    if repeated.any():
        first = records[repeated].iloc[0]
        raise UsageError(
            f"{first['variant']}, seed {first['seed']}, length {first['length']} has more than "
            "one record; select one task, one split and one recipe"
        )
    groups = records.sort_values("length", kind="stable").groupby(["variant", "length"], sort=False)["accuracy"]
    curves = groups.agg(value="mean", spread="std", runs="count").reset_index()
    order = records["variant"].unique().tolist()
    return curves.sort_values("variant", key=lambda v: v.map(order.index), kind="stable", ignore_index=True)


def strategy_switch(run_activations: RunActivations, targets: Array, factors: Factors) -> pd.DataFrame:
    """R9: attention on the queried feature's token compared with uniform attention, at one sequence length.

    Mean over the positives of T1: `target`, and `target - uniform`, from which 1/length is subtracted; the column
    `length` lets tables of several lengths be joined. Published for the attention LSTM: about 0.2 at length 5, which is
    uniform, and about 0.85 at length 30.

    >>> activations = {"decoder.attention": np.array([[0.25, 0.75, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25]])}
    >>> factors = {"positions": np.array([[1, -1], [-1, -1]]), "occurrences": np.array([[1], [0]])}
    >>> table = strategy_switch({("LSTM-attention", 0): activations}, np.array([[1], [0]]), factors)
    >>> from unseen.analysis import pooled_values
    >>> pooled_values(table)
    {'target': 0.75, 'target - uniform': 0.5}
    """
    position = forced_positions(factors)[:, 0]
    positive = positives(targets)

    def measure(activations: Activations) -> Mapping[str, Mean]:
        weight = attention_at(activations, position)[positive]
        uniform = 1 / activations[DECODER].shape[1]
        return {"target": mean_of(weight), "target - uniform": mean_of(weight - uniform)}

    table = tabulate(run_activations, targets, [DECODER], measure)
    table.insert(3, "length", next(iter(run_activations.values()))[DECODER].shape[1])
    return table


# The table of analyses.


@dataclass(frozen=True)
class PublishedNumber:
    """A printed number: the measure it is a value of, the task, the variant and the length.

    `high` is the upper end where the paper printed a range, `spread` the standard deviation over seeds if printed.
    """

    measure: str
    value: float
    task: str
    variant: str = "all"
    high: float | None = None
    spread: float | None = None
    length: int = 10


class Summary(NamedTuple):
    """A number that an analysis keeps of one run, over `n` examples: enough to pool runs without their activations.

    `factor` and `level` name the subset of examples (`position`, `3`), or are empty.
    """

    factor: str
    level: str
    measure: str
    value: float
    n: int


@dataclass(frozen=True)
class Analysis:
    """An analysis: a function of (run_activations, targets, factors), or of a frame of records for R8.

    `needs` are the intermediates that it reads beside the predictions; None if it reads records, not activations. The
    analysis is meant for the split `split`, in which the queried features occur once. Where `function` is not a mean
    over examples (a correlation), `points` returns the numbers that it reads: one row per run and position.
    """

    title: str
    function: Callable[..., pd.DataFrame]
    tasks: tuple[str, ...]
    published: tuple[PublishedNumber, ...] = ()
    needs: tuple[str, ...] | None = (DECODER,)
    split: str = "ood/single"
    points: Callable[..., pd.DataFrame] | None = None

    def summarise(self, activations: Activations, targets: Array, factors: Factors) -> list[Summary]:
        """The numbers to keep of one run, so that runs can be pooled later; empty means are left out.

        >>> activations = {"prediction": np.array([[2.0], [-1.0]]),
        ...                "decoder.attention": np.array([[0.75, 0.25], [0.5, 0.5]])}
        >>> factors = {"positions": np.array([[0, -1], [-1, -1]]), "occurrences": np.array([[1], [0]])}
        >>> ANALYSES["R1"].summarise(activations, np.array([[1], [0]]), factors)
        [Summary(factor='', level='', measure='correct', value=0.75, n=1)]
        >>> ANALYSES["R2"].summarise(activations, np.array([[1], [0]]), factors)
        [Summary(factor='position', level='0', measure='accuracy', value=1.0, n=1)]
        """
        if self.needs is None:
            return []
        runs = {("run", 0): activations}
        summaries = []
        if self.points is not None:
            table = self.points(runs, targets, factors)
            for position, value, n in zip(table["position"], table["value"], table["n"], strict=True):
                summaries.append(Summary("position", str(position), "accuracy", float(value), int(n)))
            return summaries
        table = self.function(runs, targets, factors)
        table = table[(table["scope"] == "seed") & (table["n"] > 0)]
        for measure, value, n in zip(table["measure"], table["value"], table["n"], strict=True):
            summaries.append(Summary("", "", measure, float(value), int(n)))
        return summaries


_ALL = tuple(f"retrieval/T{k}" for k in range(1, 8))
_T1, _T2, _T3, _T4, _T5, _T6, _T7 = _ALL

ANALYSES: dict[str, Analysis] = {
    "R1": Analysis(
        "Attention on the queried feature, by correctness",
        attention_by_correctness,
        (_T1,),
        (PublishedNumber("correct", 0.82, _T1), PublishedNumber("wrong", 0.17, _T1)),
    ),
    "R2": Analysis(
        "Correlation of position and accuracy",
        position_effect,
        (_T1,),
        (PublishedNumber("r", -0.51, _T1, "+Att"),),
        needs=(),
        points=accuracy_by_position,
    ),
    "R3": Analysis(
        "Accuracy by scenario",
        error_profile,
        (_T2,),
        (PublishedNumber("yes/diff - yes/same", -0.25, _T2), PublishedNumber("no/one - no/none", -0.40, _T2)),
        needs=(),
    ),
    "R4": Analysis(
        "Lead of the most attended token", focus, (_T2,), (PublishedNumber("yes/diff", 0.6, _T2, high=0.7),)
    ),
    "R5": Analysis(
        "Attention on the token that answers",
        target_attention,
        (_T3,),
        (PublishedNumber("target", 0.6, _T3, high=0.7),),
    ),
    "R6": Analysis(
        "One-feature strategy",
        favoured_feature,
        (_T4,),
        (PublishedNumber("favoured", 0.90, _T4), PublishedNumber("other", 0.05, _T4)),
    ),
    "R7": Analysis(
        "Attention on the later minus the earlier token",
        later_minus_earlier,
        (_T5, _T6, _T7),
        (
            PublishedNumber("positive", 0.03, _T5, "T-Pos+Att", spread=0.02),
            PublishedNumber("positive", 0.01, _T5, "T+Pos+Att", spread=0.01),
            PublishedNumber("positive", 0.79, _T6, "T-Pos+Att", spread=0.005),
            PublishedNumber("positive", -0.14, _T6, "T+Pos+Att", spread=0.55),
            PublishedNumber("positive", 0.46, _T7, "T-Pos+Att", spread=0.03),
            PublishedNumber("positive", 0.16, _T7, "T+Pos+Att", spread=0.18),
        ),
    ),
    "R8": Analysis("Accuracy against length", length_curves, _ALL, needs=None),
    "R9": Analysis(
        "Uniform or focused reading by length",
        strategy_switch,
        (_T1,),
        (
            PublishedNumber("target", 0.20, _T1, "LSTM-attention", length=5),
            PublishedNumber("target", 0.85, _T1, "LSTM-attention", length=30),
        ),
    ),
}
