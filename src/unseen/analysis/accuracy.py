"""Scores of predictions: accuracy, absolute error, their means by the levels of a factor, and success rates of runs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unseen.errors import UsageError
from unseen.spec import TargetKind

if TYPE_CHECKING:
    import pandas as pd

CONVERGED = 0.95
"""A run has converged if its accuracy is at least this."""
SOLVED = 0.95
"""A run solves a split if its accuracy there is above this."""


@dataclass(frozen=True)
class Score:
    """A mean over `n` examples with its standard error; both are NaN without examples."""

    value: float
    standard_error: float
    n: int


def mean_by_level(values: NDArray[Any], factor: NDArray[Any]) -> pd.DataFrame:
    """The mean value at each level of a factor: columns level, value, standard_error, n.

    `values` has shape (N, …). A factor of shape (N,) has one level per example, and the values of an example are
    averaged first. A factor of shape (N, L) has one level per token; then `n` counts tokens, and the standard error is
    clustered by example, because the tokens of one example are not independent.

    >>> table = mean_by_level(np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([["a", "b"], ["b", "b"]]))
    >>> table["level"].tolist(), table["value"].round(4).tolist(), table["n"].tolist()
    (['a', 'b'], [1.0, 0.6667], [1, 3])
    """
    import pandas as pd  # inside, because training imports this module and needs no tables

    if not 1 <= factor.ndim <= values.ndim or factor.shape != values.shape[: factor.ndim]:
        raise UsageError(
            f"a factor has one level per example or per token: expected {values.shape[:1]} or the first "
            f"axes of {values.shape}, got {factor.shape}"
        )
    unit_values = values.reshape(factor.size, math.prod(values.shape[factor.ndim :])).mean(axis=1)
    levels, level_of_unit = np.unique(factor.reshape(-1), return_inverse=True)
    n = np.bincount(level_of_unit, minlength=len(levels))
    value = np.bincount(level_of_unit, unit_values, len(levels)) / n
    # Clustered standard error: the deviations of one example's tokens at one level are summed before they are squared.
    example = np.repeat(np.arange(len(factor)), factor.size // max(1, len(factor)))
    clusters, cluster_of_unit = np.unique(example * len(levels) + level_of_unit, return_inverse=True)
    deviation = np.bincount(cluster_of_unit, unit_values - value[level_of_unit], len(clusters))
    squares = np.bincount(clusters % max(1, len(levels)), deviation**2, len(levels))
    return pd.DataFrame({"level": levels, "value": value, "standard_error": np.sqrt(squares) / n, "n": n})


# Accuracy of binary and category targets.


def decide(prediction: NDArray[Any], kind: TargetKind) -> NDArray[Any]:
    """The answers of a model: yes if the logit is ≥ 0 (`binary`), or the class of the largest logit (`category`).

    >>> decide(np.array([[-0.1], [0.0]]), "binary").tolist()
    [[False], [True]]
    >>> decide(np.array([[0.2, 1.5, 0.3]]), "category").tolist()
    [1]
    """
    if kind == "real":
        raise UsageError("a real target has no right or wrong; accuracy needs a binary or category target")
    return np.asarray(prediction >= 0 if kind == "binary" else prediction.argmax(axis=-1))


def accuracy(prediction: NDArray[Any], targets: NDArray[Any], kind: TargetKind) -> Score:
    """The share of correct answers.

    `prediction` has the logits of one run, (N, …). An example with several answers (along a stream) enters with its
    share of correct ones, and counts once in the standard error, because its answers are not independent.

    >>> accuracy(np.array([[1.0], [-2.0], [3.0], [0.5]]), np.array([[1], [0], [0], [1]]), "binary")
    Score(value=0.75, standard_error=0.21650635094610965, n=4)
    """
    return _score(_correct(prediction, targets, kind))


def accuracy_by(
    prediction: NDArray[Any], targets: NDArray[Any], kind: TargetKind, factor: NDArray[Any]
) -> pd.DataFrame:
    """Accuracy at each level of a factor, of examples (N,) or of tokens (N, L); see `mean_by_level`.

    >>> table = accuracy_by(np.array([[1.0], [-2.0], [3.0]]), np.array([[1], [0], [0]]), "binary",
    ...                     np.array(["short", "long", "long"]))
    >>> table["level"].tolist(), table["value"].tolist(), table["n"].tolist()
    (['long', 'short'], [0.5, 1.0], [2, 1])
    """
    return mean_by_level(_correct(prediction, targets, kind), factor)


def share_correct(prediction: NDArray[Any], targets: NDArray[Any], kind: TargetKind) -> NDArray[np.float64]:
    """The share of correct answers of each example (N,): 0 or 1 where an example has one answer."""
    return _mean_per_example(_correct(prediction, targets, kind))


def kind_accuracy(prediction: NDArray[Any], targets: NDArray[Any], kinds: NDArray[Any]) -> Score:
    """The share of answers of the right kind, such as any colour where the question asks for a colour.

    `prediction` has the logits of one run, (N, …, classes); `kinds` (classes,) names the kind of each class.

    >>> kinds = np.array(["boolean", "boolean", "color"])
    >>> kind_accuracy(np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 2.0]]), np.array([1, 1]), kinds).value
    0.5
    """
    return _score(_correct_kind(prediction, targets, kinds))


def kind_accuracy_by(
    prediction: NDArray[Any], targets: NDArray[Any], kinds: NDArray[Any], factor: NDArray[Any]
) -> pd.DataFrame:
    """The share of answers of the right kind at each level of a factor; see `mean_by_level`.

    >>> table = kind_accuracy_by(np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 2.0]]), np.array([1, 1]),
    ...                          np.array(["boolean", "boolean", "color"]), np.array(["few", "many"]))
    >>> table["level"].tolist(), table["value"].tolist()
    (['few', 'many'], [1.0, 0.0])
    """
    return mean_by_level(_correct_kind(prediction, targets, kinds), factor)


def _score(values: NDArray[Any]) -> Score:
    """The mean over examples of their mean value (N, …)."""
    n = len(values)
    if n == 0:
        return Score(math.nan, math.nan, 0)
    per_example = _mean_per_example(values)
    return Score(float(per_example.mean()), float(per_example.std() / math.sqrt(n)), n)


def _mean_per_example(values: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(values.reshape(len(values), math.prod(values.shape[1:])).mean(axis=1), np.float64)


def _correct(prediction: NDArray[Any], targets: NDArray[Any], kind: TargetKind) -> NDArray[np.bool_]:
    """Which answers are correct, in the shape of the targets."""
    return np.asarray(_answers(prediction, targets, kind) == targets)


def _correct_kind(prediction: NDArray[Any], targets: NDArray[Any], kinds: NDArray[Any]) -> NDArray[np.bool_]:
    """Which answers are of the right kind, in the shape of the targets."""
    if prediction.shape[-1] != len(kinds):
        raise UsageError(f"expected a kind for each of {prediction.shape[-1]} classes, got {len(kinds)} kinds")
    return np.asarray(kinds[_answers(prediction, targets, "category")] == kinds[targets])


def _answers(prediction: NDArray[Any], targets: NDArray[Any], kind: TargetKind) -> NDArray[Any]:
    """The answers of a model, which must have the shape of the targets."""
    answers = decide(prediction, kind)
    if answers.shape != targets.shape:
        # NumPy would broadcast (N,) against (N, 1) to N × N comparisons and return a plausible number.
        raise UsageError(
            f"answers have shape {answers.shape} and targets {targets.shape}; give logits of one "
            "run in the target's shape (category: with one more axis)"
        )
    return answers


# Absolute error of real targets.


def absolute_error(prediction: NDArray[Any], targets: NDArray[Any]) -> Score:
    """The mean absolute error of one run. An example with several answers counts once in the standard error.

    >>> absolute_error(np.array([[1.0], [2.0]]), np.array([[0.0], [2.0]]))
    Score(value=0.5, standard_error=0.35355339059327373, n=2)
    """
    return _score(_distance(prediction, targets))


def relative_error(prediction: NDArray[Any], targets: NDArray[Any]) -> Score:
    """The mean absolute error divided by that of always answering 0: 0 is perfect, 1 is no better than answering 0.

    Errors on tasks whose targets differ in size can be compared and averaged only in these units.

    >>> relative_error(np.array([[1.0], [2.0]]), np.array([[2.0], [2.0]]))
    Score(value=0.25, standard_error=0.17677669529663687, n=2)
    """
    error = absolute_error(prediction, targets)
    zero = absolute_error(np.zeros_like(prediction), targets)
    return Score(error.value / zero.value, error.standard_error / zero.value, error.n)


def absolute_error_by(prediction: NDArray[Any], targets: NDArray[Any], factor: NDArray[Any]) -> pd.DataFrame:
    """The mean absolute error at each level of a factor, of examples (N,) or tokens (N, L); see `mean_by_level`.

    >>> absolute_error_by(np.array([[1.0], [2.0]]), np.array([[0.0], [2.0]]), np.array([0, 1]))["value"].tolist()
    [1.0, 0.0]
    """
    return mean_by_level(_distance(prediction, targets), factor)


def relative_error_by(prediction: NDArray[Any], targets: NDArray[Any], factor: NDArray[Any]) -> pd.DataFrame:
    """The mean absolute error at each level of a factor, divided by that of always answering 0 at this level.

    >>> relative_error_by(np.array([[1.0], [2.0]]), np.array([[2.0], [8.0]]), np.array([0, 1]))["value"].tolist()
    [0.5, 0.75]
    """
    errors = absolute_error_by(prediction, targets, factor)
    zero = absolute_error_by(np.zeros_like(prediction), targets, factor)["value"]
    return errors.assign(value=errors["value"] / zero, standard_error=errors["standard_error"] / zero)


def _distance(prediction: NDArray[Any], targets: NDArray[Any]) -> NDArray[np.float64]:
    if prediction.shape != targets.shape:
        raise UsageError(f"answers have shape {prediction.shape} and targets {targets.shape}")
    return np.asarray(np.abs(prediction.astype(np.float64) - targets))


# Success rates over runs.

_SUCCESS_COLUMNS = (
    "split",
    "runs",
    "diverged",
    "inside",
    "inside_spread",
    "converged",
    "converged_low",
    "converged_high",
    "accuracy",
    "accuracy_spread",
    "accuracy_converged",
    "accuracy_converged_spread",
    "solved",
    "solved_low",
    "solved_high",
)


def success_table(
    records: pd.DataFrame,
    by: Sequence[str],
    *,
    converged: float = CONVERGED,
    solved: float = SOLVED,
    selection: str = "last",
    inside: str = "iid",
    diverged: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Success rates beside means: one row for the runs that agree in the columns `by`, and for each split but `inside`.

    A run has converged if its accuracy on `inside` is at least `converged`; it solves a split if its accuracy there
    exceeds `solved`. The table has the mean over all runs beside the mean over converged runs, because the latter hides
    how many runs converged; rates come with Wilson intervals. `diverged` has a row with the columns `by` for
    each run that diverged: such a run left no record and counts as not converged. Runs that failed or have not finished
    are not counted.

    >>> import pandas as pd
    >>> rows = [(0, "iid", 1.0), (0, "ood/x", 0.99), (1, "iid", 1.0), (1, "ood/x", 0.5), (2, "iid", 0.4),
    ...         (2, "ood/x", 0.3)]
    >>> records = pd.DataFrame(rows, columns=["trial", "split", "value"]).assign(
    ...     model="m", selection="last", factor="", metric="accuracy")
    >>> success_table(records, ["model"])[["runs", "converged", "solved", "accuracy_converged"]].iloc[0].tolist()
    [3.0, 2.0, 1.0, 0.745]
    """
    import pandas as pd

    by = list(by)
    rows = records[(records["metric"] == "accuracy") & (records["factor"] == "") & (records["selection"] == selection)]
    wide = rows.pivot_table(index=[*by, "trial"], columns="split", values="value", sort=False, dropna=False)
    # With `dropna=False` the pivot also has combinations of levels that no run has.
    wide = wide.dropna(how="all")
    if inside not in wide:
        return pd.DataFrame(columns=[*by, *_SUCCESS_COLUMNS])
    diverged_runs: Counter[tuple[str, ...]] = Counter()
    if diverged is not None:
        diverged_runs.update(map(_level_key, diverged[by].itertuples(index=False)))
    table = []
    for group, runs in wide.groupby(level=by, sort=False, dropna=False):
        levels = group if isinstance(group, tuple) else (group,)
        lost = diverged_runs[_level_key(levels)]
        for split in runs:
            if split == inside or runs[split].isna().all():
                continue
            both = runs[[inside, split]].dropna()
            table.append([*levels, split, *_success_row(both[inside], both[split], converged, solved, lost)])
    return pd.DataFrame(table, columns=[*by, *_SUCCESS_COLUMNS])


def _level_key(levels: Iterable[object]) -> tuple[str, ...]:
    """Levels as text, because a missing level (NaN) does not equal itself."""
    return tuple(str(level) for level in levels)


def _success_row(inside: pd.Series, outside: pd.Series, converged: float, solved: float, diverged: int) -> list[float]:
    from unseen.stats.intervals import wilson  # inside, because nothing else here needs statistics

    learned = outside[inside >= converged]
    n_solved = int((learned > solved).sum())
    converged_interval = wilson(len(learned), len(outside) + diverged, covers="seeds")
    solved_low = solved_high = math.nan
    if len(learned):
        solved_interval = wilson(n_solved, len(learned), covers="seeds")
        solved_low, solved_high = solved_interval.low, solved_interval.high
    return [
        len(outside) + diverged,
        diverged,
        inside.mean(),
        inside.std(),
        len(learned),
        converged_interval.low,
        converged_interval.high,
        outside.mean(),
        outside.std(),
        learned.mean(),
        learned.std(),
        n_solved,
        solved_low,
        solved_high,
    ]
