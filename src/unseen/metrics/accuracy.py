"""Right or wrong: decisions, accuracy, and accuracy by a factor."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from unseen.errors import UsageError
from unseen.metrics.levels import by_level
from unseen.spec import TargetKind


@dataclass(frozen=True)
class Score:
    """A mean over `n` examples with its standard error; both NaN where there are none."""

    value: float
    standard_error: float
    n: int


def decide(prediction: NDArray[Any], kind: TargetKind) -> NDArray[Any]:
    """What a model answers: yes iff the logit is ≥ 0 (`binary`), or the largest logit (`category`).

    >>> decide(np.array([[-0.1], [0.0]]), "binary").tolist()
    [[False], [True]]
    >>> decide(np.array([[0.2, 1.5, 0.3]]), "category").tolist()
    [1]
    """
    if kind == "real":
        raise UsageError("a real target has no right or wrong; accuracy needs a binary or category target")
    return np.asarray(prediction >= 0 if kind == "binary" else prediction.argmax(axis=-1))


def accuracy(prediction: NDArray[Any], targets: NDArray[Any], kind: TargetKind) -> Score:
    """The share of right answers.

    `prediction` is (N, …) logits of one run. An example with several answers (along a stream) counts by its
    own share of right ones, and as one in the standard error, because its answers are not independent.

    >>> accuracy(np.array([[1.0], [-2.0], [3.0], [0.5]]), np.array([[1], [0], [0], [1]]), "binary")
    Score(value=0.75, standard_error=0.21650635094610965, n=4)
    """
    return _score(_hits(prediction, targets, kind))


def accuracy_by(
    prediction: NDArray[Any], targets: NDArray[Any], kind: TargetKind, factor: NDArray[Any]
) -> pd.DataFrame:
    """Accuracy at each level of a factor, of examples (N,) or of tokens (N, L): see `by_level`.

    >>> found = accuracy_by(np.array([[1.0], [-2.0], [3.0]]), np.array([[1], [0], [0]]), "binary",
    ...                     np.array(["short", "long", "long"]))
    >>> found["level"].tolist(), found["value"].tolist(), found["n"].tolist()
    (['long', 'short'], [0.5, 1.0], [2, 1])
    """
    return by_level(_hits(prediction, targets, kind), factor)


def kind_accuracy(prediction: NDArray[Any], targets: NDArray[Any], kinds: NDArray[Any]) -> Score:
    """The share of answers of the right kind: a colour where a colour is asked for, be it the right one or not.

    `prediction` is (N, …, classes) logits of one run; `kinds` says of each class which kind it is.

    >>> kinds = np.array(["boolean", "boolean", "color"])
    >>> kind_accuracy(np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 2.0]]), np.array([1, 1]), kinds).value
    0.5
    """
    return _score(_kind_hits(prediction, targets, kinds))


def kind_accuracy_by(
    prediction: NDArray[Any], targets: NDArray[Any], kinds: NDArray[Any], factor: NDArray[Any]
) -> pd.DataFrame:
    """The share of answers of the right kind at each level of a factor: see `by_level`.

    >>> found = kind_accuracy_by(np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 2.0]]), np.array([1, 1]),
    ...                          np.array(["boolean", "boolean", "color"]), np.array(["few", "many"]))
    >>> found["level"].tolist(), found["value"].tolist()
    (['few', 'many'], [1.0, 0.0])
    """
    return by_level(_kind_hits(prediction, targets, kinds), factor)


def right(prediction: NDArray[Any], targets: NDArray[Any], kind: TargetKind) -> NDArray[np.float64]:
    """The share of right answers of each example (N,): 0 or 1 where an example has one answer."""
    return _per_example(_hits(prediction, targets, kind))


def _score(hits: NDArray[np.bool_]) -> Score:
    """The mean over examples of their share of hits."""
    share = _per_example(hits)
    n = len(share)
    if n == 0:
        return Score(math.nan, math.nan, 0)
    return Score(float(share.mean()), float(share.std() / math.sqrt(n)), n)


def _per_example(hits: NDArray[np.bool_]) -> NDArray[np.float64]:
    return np.asarray(hits.reshape(len(hits), math.prod(hits.shape[1:])).mean(axis=1), np.float64)


def _hits(prediction: NDArray[Any], targets: NDArray[Any], kind: TargetKind) -> NDArray[np.bool_]:
    """Which answers are right, in the shape of the targets."""
    return np.asarray(_answers(prediction, targets, kind) == targets)


def _kind_hits(prediction: NDArray[Any], targets: NDArray[Any], kinds: NDArray[Any]) -> NDArray[np.bool_]:
    """Which answers are of the right kind, in the shape of the targets."""
    if prediction.shape[-1] != len(kinds):
        raise UsageError(f"expected a kind for each of {prediction.shape[-1]} classes, got {len(kinds)} kinds")
    return np.asarray(kinds[_answers(prediction, targets, "category")] == kinds[targets])


def _answers(prediction: NDArray[Any], targets: NDArray[Any], kind: TargetKind) -> NDArray[Any]:
    """What a model answers, in the shape of the targets."""
    answer = decide(prediction, kind)
    if answer.shape != targets.shape:
        # NumPy would broadcast (N,) against (N, 1) to N × N comparisons and give a plausible number.
        raise UsageError(
            f"answers have shape {answer.shape} and targets {targets.shape}; give logits of one "
            "run in the target's shape (category: with one more axis)"
        )
    return answer
