"""Where the decoder looks: analyses R1, R4, R5 and R7 of the retrieval family.

Each takes (traces, targets, factors) and gives the table described in `unseen.metrics.traces.tabulate`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from unseen.metrics.accuracy import right
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

DECODER = "decoder.attention"


def attention_at(trace: Trace, positions: NDArray[np.int64]) -> NDArray[np.float64]:
    """The decoder's attention on one token of each example; NaN where the position is −1.

    >>> trace = {"decoder.attention": np.array([[0.75, 0.25], [0.5, 0.5]])}
    >>> attention_at(trace, np.array([1, -1])).tolist()
    [0.25, nan]
    """
    weight = np.take_along_axis(trace[DECODER], positions[:, None], axis=1)[:, 0]
    return np.where(positions >= 0, weight, np.nan)


def attention_by_correctness(traces: Traces, targets: Array, factors: Factors) -> pd.DataFrame:
    """R1: attention on the queried feature's token, over right and over wrong answers.

    Mean over the positives of T1; pooled over variants and seeds example by example, so a run with more
    errors weighs more in `wrong`. Published: correct 0.82, wrong 0.17.

    >>> trace = {"prediction": np.array([[2.0], [-1.0], [1.0]]),
    ...          "decoder.attention": np.array([[0.875, 0.125], [0.25, 0.75], [0.5, 0.5]])}
    >>> factors = {"positions": np.array([[0, -1], [0, -1], [-1, -1]]),
    ...            "occurrences": np.array([[1], [1], [0]])}
    >>> table = attention_by_correctness({("T+Pos+Att", 0): trace}, np.array([[1], [1], [0]]), factors)
    >>> from unseen.metrics import pooled
    >>> pooled(table)
    {'correct': 0.875, 'wrong': 0.25}
    """
    place, positive = forced_positions(factors)[:, 0], yes(targets)

    def measure(trace: Trace) -> Mapping[str, Mean]:
        weight, hit = attention_at(trace, place), right(trace["prediction"], targets, "binary") == 1
        return {"correct": mean(weight[positive & hit]), "wrong": mean(weight[positive & ~hit])}

    return tabulate(traces, targets, ["prediction", DECODER], measure)


def focus(traces: Traces, targets: Array, factors: Factors) -> pd.DataFrame:
    """R4: how far the most attended token is ahead of the second most attended one.

    Mean of (largest − second largest) attention over the positives of T2 with the features in different
    tokens (`yes/diff`), and over all examples (`all`). Published: 0.6 to 0.7 across variants.

    >>> trace = {"decoder.attention": np.array([[0.75, 0.125, 0.125], [0.5, 0.0, 0.5]])}
    >>> factors = {"scenario": np.array(["yes/diff", "no/none"])}
    >>> table = focus({("T-Pos-Att", 0): trace}, np.array([[1], [0]]), factors)
    >>> from unseen.metrics import pooled
    >>> pooled(table)
    {'yes/diff': 0.625, 'all': 0.3125}
    """
    different = factor(factors, "scenario") == "yes/diff"

    def measure(trace: Trace) -> Mapping[str, Mean]:
        top = np.partition(trace[DECODER], -2, axis=1)[:, -2:].astype(np.float64)
        ahead = top[:, 1] - top[:, 0]
        return {"yes/diff": mean(ahead[different]), "all": mean(ahead)}

    return tabulate(traces, targets, [DECODER], measure)


def target_attention(traces: Traces, targets: Array, factors: Factors) -> pd.DataFrame:
    """R5: attention on the one token that answers the question.

    Mean over the positives of T3 with a single target token (`target`), and apart for those with one feature
    of the pair (`one feature`) and with both in the same token (`both features`). Published: 0.6 to 0.7 for
    every variant.

    >>> trace = {"decoder.attention": np.array([[0.75, 0.25], [0.5, 0.5], [0.0, 1.0]])}
    >>> factors = {"scenario": np.array(["yes/a-only", "yes/both-same", "yes/both-diff"]),
    ...            "positions": np.array([[0, -1], [1, 1], [0, 1]]),
    ...            "occurrences": np.array([[1, 0], [1, 1], [1, 1]])}
    >>> table = target_attention({("T-Pos-Att", 0): trace}, np.array([[1], [1], [1]]), factors)
    >>> from unseen.metrics import pooled
    >>> pooled(table)
    {'target': 0.625, 'one feature': 0.75, 'both features': 0.5}
    """
    place = forced_positions(factors).max(axis=1)
    scenario = factor(factors, "scenario")
    one, both = np.isin(scenario, ["yes/a-only", "yes/b-only"]), scenario == "yes/both-same"

    def measure(trace: Trace) -> Mapping[str, Mean]:
        weight = attention_at(trace, place)
        return {
            "target": mean(weight[one | both]),
            "one feature": mean(weight[one]),
            "both features": mean(weight[both]),
        }

    return tabulate(traces, targets, [DECODER], measure)


def later_minus_earlier(traces: Traces, targets: Array, factors: Factors) -> pd.DataFrame:
    """R7: attention on the later minus the earlier of the two tokens that carry the chosen pair.

    Mean over positives with the pair in two tokens (T5: scenario `yes/diff`; T6 and T7: all), `positive`, and
    over negatives that have it in the wrong order, `wrong order`. All runs have the same examples, so a
    variant's value and spread are mean and standard deviation over seeds, as printed in the paper: T5
    0.03 ± 0.02 (T−Pos+Att) and 0.01 ± 0.01 (T+Pos+Att), T6 0.79 ± 0.005 and −0.14 ± 0.55, T7 0.46 ± 0.03 and
    0.16 ± 0.18. Large: self-attention carried the first feature into the state of the second token. A large
    spread: seeds differ in strategy.

    >>> trace = {"decoder.attention": np.array([[0.0, 0.125, 0.875], [0.25, 0.0, 0.75]])}
    >>> factors = {"scenario": np.array(["yes", "no/wrong-order"]), "positions": np.array([[1, 2], [2, 0]]),
    ...            "occurrences": np.array([[1, 1], [1, 1]])}
    >>> table = later_minus_earlier({("T-Pos+Att", 0): trace}, np.array([[1], [0]]), factors)
    >>> from unseen.metrics import pooled
    >>> pooled(table)
    {'positive': 0.75, 'wrong order': 0.5}
    """
    positions = forced_positions(factors)
    earlier, later = positions.min(axis=1), positions.max(axis=1)
    positive = yes(targets) & (earlier >= 0) & (earlier < later)
    wrong_order = factor(factors, "scenario") == "no/wrong-order"

    def measure(trace: Trace) -> Mapping[str, Mean]:
        difference = attention_at(trace, later) - attention_at(trace, earlier)
        return {"positive": mean(difference[positive]), "wrong order": mean(difference[wrong_order])}

    return tabulate(traces, targets, [DECODER], measure)
