"""What strategy a model has settled on: the favoured feature (R6) and uniform or focused reading (R9)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from unseen.metrics.accuracy import decide
from unseen.metrics.attention import DECODER, attention_at
from unseen.metrics.traces import (
    Array,
    Factors,
    Mean,
    Trace,
    Traces,
    factor,
    forced_positions,
    mean,
    tabulate,
    yes,
)


def favoured_feature(traces: Traces, targets: Array, factors: Factors) -> pd.DataFrame:
    """R6: does a model judge a pair by one of its features?

    For each run and query of T4, the favourite is the feature whose token gets the larger mean attention over
    the positives with the features in different tokens (the first, in a tie). Measures:

    * `favoured`, `other`: attention on the token of either feature, mean over those positives. Published:
      about 0.9 and 0.05.
    * `agreement` of all answers to these queries with the rule *yes iff the favourite occurs*.
    * `agreement where the rule errs`, which tells the rule (1) from a perfect model (0). Of the plain
      agreement a perfect model has 0.875.
    * `low favoured`: the share of queries whose favourite is the low feature.

    One query twice: the pair in tokens 0 and 1, then only the favourite; the model says yes both times.

    >>> trace = {"prediction": np.array([[1.0], [1.0]]),
    ...          "decoder.attention": np.array([[0.875, 0.125], [0.5, 0.5]])}
    >>> factors = {"scenario": np.array(["yes/diff", "no/a-only"]), "query_id": np.array([7, 7]),
    ...            "relevant": np.array([[3, 20], [3, 20]]), "positions": np.array([[0, 1], [1, -1]]),
    ...            "occurrences": np.array([[1, 1], [1, 0]])}
    >>> table = favoured_feature({("T+Pos-Att", 0): trace}, np.array([[1], [0]]), factors)
    >>> from unseen.metrics import pooled
    >>> pooled(table)  # doctest: +NORMALIZE_WHITESPACE
    {'favoured': 0.875, 'other': 0.125, 'agreement': 1.0, 'agreement where the rule errs': 1.0,
     'low favoured': 1.0}
    """
    positions, different = forced_positions(factors), factor(factors, "scenario") == "yes/diff"
    pairs, positive, rows = factor(factors, "relevant"), yes(targets), np.arange(len(targets))
    _, first, query = np.unique(factor(factors, "query_id"), return_index=True, return_inverse=True)
    known = np.bincount(query[different], minlength=len(first)) > 0
    low = (pairs[first, 1] < pairs[first, 0]).astype(np.int64)

    def measure(trace: Trace) -> Mapping[str, Mean]:
        weight = np.stack([attention_at(trace, positions[:, slot]) for slot in (0, 1)], axis=1)
        totals = [np.bincount(query[different], column, len(first)) for column in weight[different].T]
        favourite = (totals[1] > totals[0]).astype(np.int64)
        slot, counted = favourite[query], known[query]
        rule = positions[rows, slot] >= 0
        agrees = decide(trace["prediction"], "binary")[:, 0] == rule
        return {
            "favoured": mean(weight[rows, slot][different]),
            "other": mean(weight[rows, 1 - slot][different]),
            "agreement": mean(agrees[counted]),
            "agreement where the rule errs": mean(agrees[counted & (rule != positive)]),
            "low favoured": mean((favourite == low)[known]),
        }

    return tabulate(traces, targets, ["prediction", DECODER], measure)


def strategy_switch(traces: Traces, targets: Array, factors: Factors) -> pd.DataFrame:
    """R9: attention on the queried feature's token against attention spread evenly, at one sequence length.

    Mean over the positives of T1: `target`, and `target - uniform` with 1/length taken off; the column
    `length` lets tables of several lengths be joined. Published for the attention LSTM: about 0.2 at length
    5, which is uniform, and about 0.85 at length 30.

    >>> trace = {"decoder.attention": np.array([[0.25, 0.75, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25]])}
    >>> factors = {"positions": np.array([[1, -1], [-1, -1]]), "occurrences": np.array([[1], [0]])}
    >>> table = strategy_switch({("LSTM-attention", 0): trace}, np.array([[1], [0]]), factors)
    >>> from unseen.metrics import pooled
    >>> pooled(table)
    {'target': 0.75, 'target - uniform': 0.5}
    """
    place, positive = forced_positions(factors)[:, 0], yes(targets)

    def measure(trace: Trace) -> Mapping[str, Mean]:
        weight = attention_at(trace, place)[positive]
        return {"target": mean(weight), "target - uniform": mean(weight - 1 / trace[DECODER].shape[1])}

    table = tabulate(traces, targets, [DECODER], measure)
    table.insert(3, "length", next(iter(traces.values()))[DECODER].shape[1])
    return table
