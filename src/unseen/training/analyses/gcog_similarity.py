"""Whether training makes the states of a gcog model more similar to the stimuli or to the targets.

The vectors that enter the classifier are compared with the stimuli (all tokens concatenated, always coded by integers)
and with the targets (one-hot), on single questions with the largest number of distractors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from unseen.analysis.representation import linear_cka, rsa
from unseen.errors import UsageError
from unseen.names import is_ood
from unseen.randomness import Floats, stream
from unseen.tasks.base import Array, Examples, Task
from unseen.tasks.gcog.encode import CODINGS
from unseen.tasks.gcog.variants import Distractor
from unseen.training.evaluate import Measure, Origin, Unavailable, predict
from unseen.training.recipe import SIMILARITY, Evaluation
from unseen.training.stack import Stack

STATE = "readout.state"
"""The activation that a gcog model captures: the vector that enters its classifier."""
SAMPLES = 800
"""The first examples of the test set. There each of the paper's eight operators comes 100 times (preset released: about
as often, because it draws and does not deal)."""
FOLDS = 10
"""Groups of samples left out in turn: 80 each, because then operators that are dealt are equally frequent in all. (In
groups of 100 they are not quite, and the error of what depends on operators comes out several times too large.)"""


def unavailable(stack: Stack, task: Task, origin: Origin | None = None) -> Unavailable | None:
    """Why there is nothing to compare; None if there is."""
    if not isinstance(task, Distractor):
        return Unavailable("it is about gcog/distractor")
    if not is_ood(_split(task)):
        return Unavailable("the task has no split with more distractors (ood_distractors)")
    if origin is None:
        return Unavailable("it needs the models before training")
    captured = predict(stack, task.sample(_split(task), 1, data_seed="test"), task.spec, [STATE])
    return None if STATE in captured else Unavailable.without([STATE])


def examples(task: Task, evaluation: Evaluation) -> int:
    """The number of examples that the analysis evaluates, before and after training."""
    return 2 * SAMPLES if isinstance(task, Distractor) and is_ood(_split(task)) else 0


def measures(stack: Stack, task: Task, evaluation: Evaluation, origin: Origin | None = None) -> list[list[Measure]]:
    """The similarity of states and stimuli (`stimulus_…`), and of states and targets (`target_…`), for every member.

    `…_distance_before`, `_after`: Procrustes distance of the two matrices of cosines between samples; `…_alignment`:
    distance before minus distance after, positive if training brought them closer, with a standard error over samples
    (a jackknife that leaves out a tenth of them at a time). Beside them `…_cka_before`, `_after`: linear CKA of the
    vectors, and `…_rsa_before`, `_after`: Pearson's correlation of the cosines; NaN where the states do not vary. The
    same for normally distributed features as wide as the states: `…_distance_random`, `…_cka_random`, `…_rsa_random`.

    A state that is zero (all its units dead), or not finite, has no direction: its cosine with every sample, itself
    included, is defined as zero.
    """
    assert isinstance(task, Distractor) and origin is not None
    split = _split(task)
    samples = task.sample(split, SAMPLES, data_seed="test")
    references = _make_references(task, samples)
    before = _states(origin.initial(), task, samples)
    after = _states(stack, task, samples)
    features = stream("random features", SIMILARITY).block().normal(before.shape[1:])
    random_values = _similarities("random", features, references)
    measures_by_member = []
    for initial, trained in zip(before, after, strict=True):
        values = {
            **_similarities("before", initial, references),
            **_similarities("after", trained, references),
            **random_values,
        }
        errors = {}
        for reference, vectors in references.items():
            name = f"{reference}_alignment"
            values[name] = values[f"{reference}_distance_before"] - values[f"{reference}_distance_after"]
            errors[name] = _jackknife(_units(initial), _units(trained), _units(vectors))
        member_measures = []
        for name, value in sorted(values.items()):
            error = errors.get(name, math.nan)
            member_measures.append(Measure(split, "", "", f"{SIMILARITY}/{name}", value, error, SAMPLES))
        measures_by_member.append(member_measures)
    return measures_by_member


def _split(task: Distractor) -> str:
    """The split with the most distractors: `ood/distractors=40-50`, as published."""
    return max(task.settings, key=lambda name: (is_ood(name), task.settings[name].plans[0].distractors[1]))


def _make_references(task: Distractor, samples: Examples) -> dict[str, Floats]:
    """The vectors that states are compared with, one for each sample."""
    stimuli = CODINGS["integer"].write(task.domain, task.two, task.tokens(samples))["stimulus"]
    return {
        "stimulus": stimuli.reshape(len(samples), -1).astype(np.float64),
        "target": np.eye(len(task.domain.answers))[samples.targets],
    }


def _states(stack: Stack, task: Task, samples: Examples) -> Floats:
    """The states of every member, (member, sample, width); zero where they are not finite."""
    states: Array = predict(stack, samples, task.spec, [STATE])[STATE]
    states = states.reshape(len(stack), len(samples), -1).astype(np.float64)
    return np.where(np.isfinite(states).all(axis=2, keepdims=True), states, 0.0)


def _similarities(stage: str, states: Floats, references: Mapping[str, Floats]) -> dict[str, float]:
    """Every measure of similarity to every reference, by name."""
    values = {}
    unit_states = _units(states)
    for reference, vectors in references.items():
        unit_vectors = _units(vectors)
        values[f"{reference}_distance_{stage}"] = _distance(unit_states, unit_vectors)
        values[f"{reference}_cka_{stage}"] = _if_varying(linear_cka, states, vectors)
        cosines = unit_states @ unit_states.T
        values[f"{reference}_rsa_{stage}"] = _if_varying(rsa, cosines, unit_vectors @ unit_vectors.T)
    return values


def _if_varying(measure: Callable[[Floats, Floats], float], a: Floats, b: Floats) -> float:
    """A measure, or NaN if one of the arguments is constant, which both measures refuse."""
    try:
        return measure(a, b)
    except UsageError:
        return math.nan


def _units(vectors: Floats) -> Floats:
    """Vectors of length 1 in the same directions; zero stays zero."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0, length, 1.0))


def _distance(a: Floats, b: Floats) -> float:
    """`procrustes` of the matrices of cosines, a · aᵀ and b · bᵀ, from the unit vectors themselves.

    If R and S are the triangles of their QR decompositions, the singular values of the product of the two matrices are
    those of R (aᵀ b) Sᵀ, which is only as large as the vectors are long.
    """
    triangle_a = np.asarray(np.linalg.qr(a, mode="r"))
    triangle_b = np.asarray(np.linalg.qr(b, mode="r"))
    nuclear = float(np.linalg.svd(triangle_a @ (a.T @ b) @ triangle_b.T, compute_uv=False).sum())
    squares = float(((a.T @ a) ** 2).sum()) + float(((b.T @ b) ** 2).sum())
    return math.sqrt(max(0.0, squares - 2 * nuclear))


def _jackknife(before: Floats, after: Floats, reference: Floats) -> float:
    """The standard error of the alignment over samples, from leaving out each fold in turn.

    Distances grow in proportion to the number of samples, so those of fewer are scaled to that of all.
    """
    fold_of_sample = np.arange(len(reference)) * FOLDS // len(reference)
    alignments = []
    for fold in range(FOLDS):
        remaining = fold_of_sample != fold
        distance_before = _distance(before[remaining], reference[remaining])
        distance_after = _distance(after[remaining], reference[remaining])
        alignment = distance_before - distance_after
        alignments.append(alignment * len(reference) / np.count_nonzero(remaining))
    # The jackknife's variance, (g − 1) / g times the sum of squared deviations of g estimates.
    return math.sqrt((FOLDS - 1) * float(np.var(alignments)))
