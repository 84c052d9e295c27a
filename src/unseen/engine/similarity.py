"""What the states of a gcog model are like, before and after training: more like what it sees, or what it answers?

The vectors that enter the classifier are compared with the stimuli (all tokens one after the other, coded by integers
whatever the model reads) and with the targets (one-hot), on single questions among the most distractors there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from unseen.engine.measure import Measure
from unseen.engine.origin import Origin
from unseen.engine.predict import NOT_KEPT, predictions
from unseen.engine.recipe import SIMILARITY, Evaluation
from unseen.engine.stack import Stack
from unseen.errors import UsageError
from unseen.metrics.representation import linear_cka, rsa
from unseen.randomness import Floats, stream
from unseen.tasks.base import Array, Examples, Task
from unseen.tasks.gcog.codings import CODINGS
from unseen.tasks.gcog.distractor import Distractor

STATE = "readout.state"
"""The trace that a gcog model keeps: the vector that enters its classifier."""
SAMPLES = 800
"""The first examples of the test set. There each of the paper's eight operators comes 100 times (preset released: about
as often, because it draws and does not deal)."""
FOLDS = 10
"""Groups of samples left out in turn: 80 each, because then operators that are dealt are equally frequent in all. (In
groups of 100 they are not quite, and the error of what depends on operators comes out several times too large.)"""


def why_not(stack: Stack, task: Task, origin: Origin | None = None) -> str:
    """Why there is nothing to compare; empty if there is."""
    if not isinstance(task, Distractor):
        return "it is about gcog/distractor"
    if not _condition(task).startswith("ood/"):
        return "the task has no condition with more distractors (ood_distractors)"
    if origin is None:
        return "it needs the models before training"
    kept = predictions(stack, task.sample(_condition(task), 1, data_seed="test"), task.spec, [STATE])
    return "" if STATE in kept else f"{NOT_KEPT}{STATE}"


def examples(task: Task, evaluation: Evaluation) -> int:
    """How many examples are looked at, before and after training."""
    return 2 * SAMPLES if isinstance(task, Distractor) and _condition(task).startswith("ood/") else 0


def measures(stack: Stack, task: Task, evaluation: Evaluation, origin: Origin | None = None) -> list[list[Measure]]:
    """How alike states and stimuli (`stimulus_…`), states and targets (`target_…`) are, of every member.

    `…_distance_before`, `_after`: Procrustes distance of the two matrices of cosines between samples; `…_alignment`:
    distance before minus distance after, positive if training brought them closer, with a standard error over samples
    (a jackknife that leaves out a tenth of them at a time). Beside them `…_cka_before`, `_after`: linear CKA of the
    vectors, and `…_rsa_before`, `_after`: Pearson's correlation of the cosines; NaN where the states do not vary. The
    same of normally distributed features as wide as the states: `…_distance_random`, `…_cka_random`, `…_rsa_random`.

    A state that is zero (all its units dead), or not finite, has no direction: it is like no sample, itself included,
    so that its row and its column of cosines are zero.
    """
    assert isinstance(task, Distractor) and origin is not None
    condition = _condition(task)
    shown = task.sample(condition, SAMPLES, data_seed="test")
    sides = _sides(task, shown)
    before, after = (_states(of, task, shown) for of in (origin.initial(), stack))
    features = stream("random features", SIMILARITY).block().normal(before.shape[1:])
    random = list(_likenesses("random", features, sides))
    found = []
    for first, last in zip(before, after, strict=True):
        named = dict([*_likenesses("before", first, sides), *_likenesses("after", last, sides), *random])
        errors = {
            f"{side}_alignment": _jackknife(_units(first), _units(last), _units(vectors))
            for side, vectors in sides.items()
        }
        named |= {
            f"{side}_alignment": named[f"{side}_distance_before"] - named[f"{side}_distance_after"] for side in sides
        }
        found.append(
            [
                Measure(condition, "", "", f"{SIMILARITY}/{name}", value, errors.get(name, math.nan), SAMPLES)
                for name, value in sorted(named.items())
            ]
        )
    return found


def _condition(task: Distractor) -> str:
    """The condition with the most distractors: `ood/distractors=40-50`, as published."""
    return max(task.settings, key=lambda name: (name.startswith("ood/"), task.settings[name].plans[0].distractors[1]))


def _sides(task: Distractor, shown: Examples) -> dict[str, Floats]:
    """What states are compared with: a vector for each sample."""
    stimuli = CODINGS["integer"].write(task.domain, task.two, task.tokens(shown))["stimulus"]
    return {
        "stimulus": stimuli.reshape(len(shown), -1).astype(np.float64),
        "target": np.eye(len(task.domain.answers))[shown.targets],
    }


def _states(stack: Stack, task: Task, shown: Examples) -> Floats:
    """The states of every member, (member, sample, width); zero where they are not finite."""
    kept: Array = predictions(stack, shown, task.spec, [STATE])[STATE]
    kept = kept.reshape(len(stack), len(shown), -1).astype(np.float64)
    return np.where(np.isfinite(kept).all(axis=2, keepdims=True), kept, 0.0)


def _likenesses(stage: str, states: Floats, sides: Mapping[str, Floats]) -> Iterator[tuple[str, float]]:
    """Each measure of likeness to each side, by name."""
    one = _units(states)
    for side, vectors in sides.items():
        other = _units(vectors)
        yield f"{side}_distance_{stage}", _distance(one, other)
        yield f"{side}_cka_{stage}", _if_varying(linear_cka, states, vectors)
        yield f"{side}_rsa_{stage}", _if_varying(rsa, one @ one.T, other @ other.T)


def _if_varying(measure: Callable[[Floats, Floats], float], one: Floats, other: Floats) -> float:
    """Both measures refuse a side that is constant."""
    try:
        return measure(one, other)
    except UsageError:
        return math.nan


def _units(vectors: Floats) -> Floats:
    """Vectors of length 1 in the same directions; zero stays zero."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0, length, 1.0))


def _distance(one: Floats, other: Floats) -> float:
    """`procrustes` of the matrices of cosines, one · oneᵀ and other · otherᵀ, from the unit vectors themselves.

    If R and S are the triangles of their QR decompositions, the singular values of the product of the two matrices are
    those of R (oneᵀ other) Sᵀ, which is only as large as the vectors are long.
    """
    first, second = (np.asarray(np.linalg.qr(side, mode="r")) for side in (one, other))
    nuclear = float(np.linalg.svd(first @ (one.T @ other) @ second.T, compute_uv=False).sum())
    squares = float(((one.T @ one) ** 2).sum()) + float(((other.T @ other) ** 2).sum())
    return math.sqrt(max(0.0, squares - 2 * nuclear))


def _jackknife(before: Floats, after: Floats, other: Floats) -> float:
    """The standard error of the alignment over samples, from leaving out each fold in turn.

    Distances grow in proportion to the number of samples, so those of fewer are scaled to that of all.
    """
    folds, found = np.arange(len(other)) * FOLDS // len(other), []
    for fold in range(FOLDS):
        rest = folds != fold
        moved = _distance(before[rest], other[rest]) - _distance(after[rest], other[rest])
        found.append(moved * len(other) / np.count_nonzero(rest))
    return math.sqrt((FOLDS - 1) * float(np.var(found)))
