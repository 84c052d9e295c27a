"""The checks of one split of a task. Each examines a case and returns a status with an explanation."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from unseen.errors import CheckFailed, nearest
from unseen.spec import Field, Spec, Target
from unseen.tasks.base import Array, Artefact, DataSeed, Examples, Split, Task
from unseen.tasks.verify.baselines import BASELINES, MARGIN, score_answers, score_baselines
from unseen.tasks.verify.coverage import Lack, TrainingCoverage, describe_coverage, read_coverage
from unseen.tasks.verify.determinism import count_compared, find_batch_dependence, fingerprint
from unseen.tasks.verify.equivalence import Familiarity, TrainingFunctions, describe_familiar, read_functions

Status = Literal["ok", "known", "shown", "FAIL"]
Verdict = tuple[Status, str]

_TOLERANCE = 1e-5
"""How far a real target may be off by rounding."""
_DUPLICATES = 0.001
"""The share of repeated examples that needs no explanation."""
_SLACK = 0.005
"""How far a shortcut may exceed its ceiling beyond the sampling error."""
_RUN = 32
_SEEDS: tuple[DataSeed, ...] = (0, 1, "validation", "test")
_SUBSETS = 20


@dataclass(frozen=True)
class SplitCase:
    """One split: n examples, as many of other data seeds (`twin`), and the case of `train` to compare with."""

    task: Task
    split: Split
    examples: Examples
    twin: Examples
    train: SplitCase | None = None

    @cached_property
    def keys(self) -> list[bytes]:
        """A hash of the inputs of each example."""
        return _hash_inputs(self.examples)

    @cached_property
    def distinct(self) -> Examples:
        """The examples without repeats. In a small set, a baseline would otherwise be scored on what it was fitted on."""
        first_index: dict[bytes, int] = {}
        for index, key in enumerate(self.keys):
            first_index.setdefault(key, index)
        if len(first_index) == len(self.keys):
            return self.examples
        return self.examples[np.array(list(first_index.values()))]

    @cached_property
    def functions(self) -> TrainingFunctions | None:
        """The functions of the training examples, if this is their split."""
        return read_functions(self.task)

    @cached_property
    def coverage(self) -> TrainingCoverage:
        """The values and combinations that training has, if this is its split."""
        return read_coverage(self.task)

    @cached_property
    def familiarity(self) -> Familiarity | None:
        """Which of the examples compute what training does; None if the task does not say."""
        assert self.train is not None
        expressions = self.task.expressions(self.examples)
        functions = self.train.functions if expressions is not None else None
        return None if expressions is None or functions is None else functions.compare(expressions)

    @cached_property
    def lacking(self) -> list[Lack]:
        """The properties whose values or combinations training lacks."""
        assert self.train is not None
        return self.train.coverage.find_lacking(self.task, self.examples)

    @cached_property
    def coincidences(self) -> float:
        """The share of the twin's examples that occur here: what independent draws have in common."""
        return _share_among(_hash_inputs(self.twin), set(self.keys))


def draw_examples(task: Task, split: str, n: int, seed: int = 0) -> tuple[Examples, int]:
    """Return n examples and the next unused data seed. If a set is smaller than n, further seeds complete it."""
    size = task.size(split)
    if size is not None and size < 1:
        raise CheckFailed("the split has no examples")
    samples = []
    missing = n
    while missing:
        count = missing if size is None else min(size, missing)
        samples.append(task.sample(split, count, data_seed=seed))
        missing -= count
        seed += 1
    return Examples.concat(samples), seed


def check_spec(case: SplitCase) -> Verdict:
    """Compare names, shapes, dtypes and ranges with the spec."""
    violations = find_spec_violations(case.task.spec, case.examples)
    if violations:
        return "FAIL", "; ".join(violations)
    return "ok", "names, shapes, dtypes and ranges agree with the spec"


# The NumPy dtype kinds that may carry a field or target: b bool, i and u integers, f floating; of factors also text.
_DTYPE_KINDS = {"real": "f", "bits": "biu", "binary": "biu", "category": "iu", "mask": "b"}
_FACTOR_DTYPE_KINDS = "biufUT"


def find_spec_violations(spec: Spec, examples: Examples) -> list[str]:
    """Return what contradicts the spec, one clause each.

    The length of a stream may differ from its nominal length, but must be the same for all arrays along it.

    >>> spec = Spec((), (Field("x", "bits", 3),), Target("binary"))
    >>> find_spec_violations(spec, Examples({"x": np.zeros((2, 4), np.uint8)}, np.array([[0], [2]]), {}))
    ["input 'x' has shape (2, 4), expected (2, 3)", 'the target has values outside 0 … 1']
    """
    names = {field.name for field in spec.inputs}
    count = len(examples)
    violations = [f"input '{name}' is missing" for name in sorted(names - set(examples.inputs))]
    violations += [f"input '{name}' is not in the spec" for name in sorted(set(examples.inputs) - names)]
    lengths: dict[str, int] = {}
    for field in spec.inputs:
        if field.name in examples.inputs:
            array = examples.inputs[field.name]
            violations += _find_array_violations(f"input '{field.name}'", field, array, count, lengths)
    violations += _find_array_violations("the target", spec.target, examples.targets, count, lengths)
    for name, values in examples.factors.items():
        if not isinstance(values, np.ndarray) or values.dtype.kind not in _FACTOR_DTYPE_KINDS:
            violations.append(f"factor '{name}' is not an array of numbers, booleans or text")
        elif values.shape[:1] != (count,):
            violations.append(f"factor '{name}' has shape {values.shape}, expected {count} along the first axis")
    return violations


def _find_array_violations(
    subject: str, form: Field | Target, values: Any, count: int, lengths: dict[str, int]
) -> list[str]:
    """Return what is wrong with one array. The first array along a stream sets the length for the others."""
    dtype_kinds = _DTYPE_KINDS[form.kind]
    if not isinstance(values, np.ndarray) or values.dtype.kind not in dtype_kinds:
        actual = values.dtype if isinstance(values, np.ndarray) else f"of type {type(values).__name__}"
        return [f"{subject} is {actual}; {form.kind} needs a NumPy dtype of kind {' or '.join(dtype_kinds)}"]
    shape: tuple[int, ...] = (count,)
    if form.along is not None:
        shape += (lengths.setdefault(form.along, values.shape[1] if values.ndim > 1 else 1),)
    if form.kind not in ("category", "mask"):
        shape += (form.width,)
    if values.shape != shape:
        return [f"{subject} has shape {values.shape}, expected {shape}"]
    if form.kind == "real":
        return [] if np.isfinite(values).all() else [f"{subject} has values that are not finite"]
    highest = form.width - 1 if form.kind == "category" else 1
    if values.size and (values.min() < 0 or values.max() > highest):
        return [f"{subject} has values outside 0 … {highest}"]
    return []


def check_solver(case: SplitCase) -> Verdict:
    """Compare the targets with the plain solver, which sees nothing but the inputs, and what noise was added."""
    examples = case.examples
    targets = examples.targets
    noise = {name: examples.factors[name] for name in case.task.noise_factors(case.split.name)}
    solved = np.asarray(case.task.solve(Examples(examples.inputs, np.zeros_like(targets), noise)))
    if solved.shape != targets.shape:
        return "FAIL", f"the solver returns shape {solved.shape}, the generator {targets.shape}"
    if targets.dtype.kind == "f":
        agree: Array = np.isclose(solved, targets, _TOLERANCE, _TOLERANCE)
    else:
        agree = np.equal(solved, targets)
    wrong = np.logical_not(agree.reshape(len(targets), -1).all(1))
    if not wrong.any():
        return "ok", f"{len(examples)} of {len(examples)} targets agree"
    first = int(wrong.argmax())
    return "FAIL", (
        f"{wrong.sum()} of {len(examples)} targets differ, first at {first}: generator "
        f"{_shorten(targets[first].tolist())}, solver {_shorten(solved[first].tolist())}"
    )


def check_determinism(case: SplitCase) -> Verdict:
    """Draw examples in other batches, from other starts and in another order."""
    different = find_batch_dependence(case.task, case.split.name)
    if different:
        return "FAIL", f"examples {different[0]} differ if they are drawn alone ({len(different)} such ranges)"
    return "ok", "identical in any batch and order"


def check_process(case: SplitCase, other: str) -> Verdict:
    """Compare the fingerprint of the first examples with that of another process."""
    count = count_compared(case.task, case.split.name)
    ours = fingerprint(case.task.sample(case.split.name, count))
    if ours == other:
        return "ok", f"{count} examples, fingerprint {ours}"
    return "FAIL", f"another process draws other examples: here {ours}, there {other}"


def check_streams(case: SplitCase) -> Verdict:
    """Check that no run of examples of one data seed recurs under another, shifted or not."""
    name = case.split.name
    size = case.task.size(name)
    count = min(3 * case.task.block, len(case.examples))
    if size is not None:
        count = min(count, size)
    length = min(_RUN, count)
    seed_of_run: dict[bytes, DataSeed] = {}
    for seed in _SEEDS:
        keys = _hash_inputs(case.task.sample(name, count, data_seed=seed))
        for start in range(count - length + 1):
            # The first seed with this run of examples; any other seed with it shares the run.
            other = seed_of_run.setdefault(b"".join(keys[start : start + length]), seed)
            if other != seed:
                return "FAIL", f"data seeds {other!r} and {seed!r} share {length} consecutive examples"
    return "ok", f"data seeds {', '.join(map(str, _SEEDS))} share no {length} consecutive examples"


def check_duplicates(case: SplitCase) -> Verdict:
    """Count examples that repeat an earlier one.

    Independent draws repeat each other no more often than they coincide with those of another sample. So if two samples
    have as much in common, the draws are independent and the set of possible examples is small.
    """
    share = 1 - len(set(case.keys)) / len(case.keys)
    status, detail = _judge_coincidences(share, case.coincidences, len(case.examples), "repeat an earlier one")
    if status == "FAIL" and case.split.pooled:
        count = round(share * len(case.examples))
        return "shown", f"{count} of {len(case.examples)} examples repeat an earlier one: they come from a pool"
    return status, detail


def check_overlap(case: SplitCase) -> Verdict:
    """Count examples that occur in `train`, compared with what independent draws of either have in common."""
    assert case.train is not None
    share = _share_among(case.keys, set(case.train.keys))
    usual = max(case.coincidences, case.train.coincidences)
    return _judge_coincidences(share, usual, len(case.examples), "occur in train")


def _judge_coincidences(share: float, usual: float, n: int, predicate: str) -> Verdict:
    detail = f"{round(share * n)} of {n} examples {predicate}"
    if share <= _DUPLICATES:
        return "ok", detail
    if share <= usual + MARGIN * np.sqrt((share + usual) / n):
        return "shown", f"{detail}, and so do {usual:.2%} of independent draws: the set is small"
    return "FAIL", f"{detail} ({share:.2%}; allowed {_DUPLICATES:.1%}, independent draws have {usual:.2%})"


def check_unseen(case: SplitCase) -> Verdict:
    """Check that the values which the split declares unseen do not occur in `train`."""
    assert case.train is not None
    factors = case.split.unseen
    if not factors:
        return "shown", "the split declares no unseen factor"
    tested = _list_values(case.examples, factors)
    trained = _list_values(case.train.examples, factors)
    shared = tested & trained
    name = " × ".join(factors)
    if shared:
        example = _shorten(min(shared, key=repr))
        return "FAIL", f"{len(shared)} of {len(tested)} values of {name} occur in train, for example {example}"
    return "ok", f"none of the {len(tested)} values of {name} is among the {len(trained)} in train"


def check_equivalence(case: SplitCase) -> Verdict:
    """Show how many examples compute what training already has in another form."""
    if case.familiarity is None:
        return "shown", "the task does not say which examples compute the same"
    return "shown", describe_familiar(case.familiarity)


def check_coverage(case: SplitCase) -> Verdict:
    """Show which values of factors and variables, and which combinations of them, training lacks."""
    assert case.train is not None
    return "shown", describe_coverage(case.train.coverage, case.lacking)


def check_labels(case: SplitCase) -> Verdict:
    """Check the distribution of the targets.

    Binary targets must be balanced unless a ceiling `majority` is declared. The mean absolute error of always answering
    0 must be what a task with real targets declares.
    """
    targets = case.examples.targets
    target = case.task.spec.target
    if target.kind == "real":
        return _check_zero_loss(case)
    if target.kind == "category":
        counts = np.bincount(targets.reshape(-1).astype(np.int64))
        share = counts.max() / counts.sum()
        occurring = f"{(counts > 0).sum()} of {target.width} values occur"
        return "shown", f"{occurring}, the commonest in {share:.1%} of the answers (chance {target.chance:.1%})"
    yes = score_answers(targets)
    detail = f"{yes.accuracy:.1%} yes"
    if abs(yes.accuracy - target.chance) <= MARGIN * yes.error:
        return "ok", detail
    if "majority" in case.task.ceilings(case.split.name):
        return "known", f"{detail}, declared as the ceiling of majority"
    return "FAIL", f"{detail}, expected {target.chance:.1%} ± {MARGIN * yes.error:.1%}"


def _check_zero_loss(case: SplitCase) -> Verdict:
    targets = case.examples.targets.astype(np.float64)
    sizes = np.abs(targets).reshape(len(targets), -1).mean(1)
    loss = float(sizes.mean())
    error = float(sizes.std() / np.sqrt(len(sizes)))
    moments = f"mean {targets.mean():.4g}, standard deviation {targets.std():.4g}"
    detail = f"{moments}; always answering 0 is off by {loss:.4f}"
    declared = case.task.zero_loss(case.split.name)
    if declared is None:
        return "shown", detail
    # Twice the margin, because the declared value may itself be an estimate from fewer examples.
    margin = 2 * MARGIN * error
    within = abs(loss - declared) <= margin
    return "ok" if within else "FAIL", f"{detail}, declared {declared:.4f} ± {margin:.4f}"


def check_baselines(case: SplitCase) -> Iterator[tuple[str, Verdict]]:
    """Compare the generic baselines with chance and the declared ceilings.

    A stronger baseline may reach what a weaker one may. A leak is reported once, by the weakest baseline that finds it.
    """
    target = case.task.spec.target
    ceilings = case.task.ceilings(case.split.name)
    for name in ceilings:
        if name not in BASELINES:
            raise CheckFailed(
                f"a ceiling is declared for '{name}', which is not a baseline. {nearest(name, BASELINES)}"
            )
    allowed, unit = (0.0, " of the variance") if target.kind == "real" else (target.chance, "")
    for name, score in score_baselines(case.task.spec, case.distinct):
        allowed = max(allowed, ceilings.get(name, 0))
        margin = MARGIN * score.error
        passed = score.accuracy <= allowed + margin
        detail = f"{score.accuracy:.1%}{unit} ({score.note}), allowed {allowed:.1%} + {margin:.1%}"
        yield name, ("ok" if passed else "FAIL", detail)
        if not passed:
            allowed = score.accuracy


def check_shortcuts(case: SplitCase) -> Iterator[tuple[str, Verdict]]:
    """Compare the task's own shortcuts with their ceilings."""
    targets = case.examples.targets
    for shortcut in case.task.shortcuts(case.split.name):
        answers = np.asarray(shortcut.answer(case.examples)).reshape(targets.shape)
        score = score_answers(answers == targets)
        status: Status = "shown"
        detail = f"{score.accuracy:.1%} ± {score.error:.1%}"
        if shortcut.ceiling is not None:
            above = score.accuracy - shortcut.ceiling > MARGIN * score.error + _SLACK
            status = "FAIL" if above else "ok"
            detail += f", ceiling {shortcut.ceiling:.1%}"
        yield f"shortcut {shortcut.name}", (status, detail)


def check_artefacts(case: SplitCase) -> Iterator[tuple[str, Verdict]]:
    """Measure the artefacts of the task: each must be absent or declared."""
    for artefact in case.task.artefacts(case.split.name):
        value, margin = measure_artefact(artefact, case.examples)
        measured = f"{artefact.summary}: {value:.4g}, without it {artefact.absent:.4g} ± {margin:.2g}"
        detected = abs(value - artefact.absent) > margin
        verdict: Verdict
        if not artefact.known:
            verdict = ("FAIL", f"undeclared artefact: {measured}") if detected else ("ok", f"not detected: {measured}")
        elif not detected:
            verdict = "shown", f"known artefact (not detected): {measured}"
        elif artefact.at_most is not None and value > artefact.at_most + margin:
            verdict = (
                "FAIL",
                f"known artefact, but measured above its bound (at most {artefact.at_most:.4g}): {measured}",
            )
        else:
            verdict = "known", f"known artefact: {measured}"
        yield f"artefact {artefact.name}", verdict


def measure_artefact(artefact: Artefact, examples: Examples) -> tuple[float, float]:
    """Return an artefact's value, and how far it may be from absence by tolerance and sampling error.

    The standard error comes from the spread over 20 subsets; five of them, because it is estimated from few values.
    """
    values = [artefact.measure(examples[start::_SUBSETS]) for start in range(_SUBSETS)]
    error = float(np.std(values, ddof=1) / np.sqrt(_SUBSETS))
    return float(artefact.measure(examples)), artefact.tolerance + 5 * error


def _hash_inputs(examples: Examples) -> list[bytes]:
    columns = []
    for name in sorted(examples.inputs):
        # A contiguous copy, because only contiguous memory can be viewed as bytes.
        array = np.ascontiguousarray(examples.inputs[name])
        columns.append(array.reshape(len(examples), -1).view(np.uint8))
    return [hashlib.blake2b(row, digest_size=16).digest() for row in np.hstack(columns)]


def _share_among(keys: list[bytes], others: set[bytes]) -> float:
    return sum(key in others for key in keys) / len(keys)


def _list_values(examples: Examples, factors: tuple[str, ...]) -> set[tuple[Any, ...]]:
    """Return the values that a tuple of factors takes, as plain Python values."""
    columns = []
    for name in factors:
        if name not in examples.factors:
            raise CheckFailed(f"the examples have no factor '{name}'")
        rows = examples.factors[name].reshape(len(examples), -1)
        columns.append(rows[:, 0].tolist() if rows.shape[1] == 1 else list(map(tuple, rows.tolist())))
    return set(zip(*columns, strict=True))


def _shorten(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "…"
