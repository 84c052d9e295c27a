"""The checks of one condition of a task. Each looks at a case and gives a verdict."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from unseen.errors import CheckFailed, nearest
from unseen.tasks.base import Array, Artefact, Condition, DataSeed, Examples, Shortcut, Task
from unseen.tasks.verify.baselines import BASELINES, MARGIN, baselines, score
from unseen.tasks.verify.conformance import misfits
from unseen.tasks.verify.purity import fingerprint, impurities, reach
from unseen.tasks.verify.regressions import regressions

Status = Literal["ok", "known", "shown", "FAIL"]
Verdict = tuple[Status, str]

_TOLERANCE = 1e-5
_DUPLICATES = 0.001
_SLACK = 0.005
_RUN = 32
_SEEDS: tuple[DataSeed, ...] = (0, 1, "validation", "test")


@dataclass(frozen=True)
class Case:
    """One condition: n examples, as many of other data seeds (`twin`), and the case of `train` to compare."""

    task: Task
    condition: Condition
    examples: Examples
    twin: Examples
    train: Case | None = None

    @cached_property
    def keys(self) -> list[bytes]:
        """A hash of the inputs of each example."""
        return _keys(self.examples)

    @cached_property
    def distinct(self) -> Examples:
        """The examples without repeats: where the set is small, a baseline would meet in the second half what it was
        fitted on in the first."""
        first: dict[bytes, int] = {}
        for place, key in enumerate(self.keys):
            first.setdefault(key, place)
        return self.examples if len(first) == len(self.keys) else self.examples[np.array(list(first.values()))]

    @cached_property
    def repeats(self) -> float:
        """Share of examples that repeat an earlier one."""
        return 1 - len(set(self.keys)) / len(self.keys)

    @cached_property
    def coincidences(self) -> float:
        """Share of the twin's examples that occur here: what independent draws have in common."""
        return _share(_keys(self.twin), set(self.keys))


def draw(task: Task, condition: str, n: int, seed: int = 0) -> tuple[Examples, int]:
    """n examples and the next free data seed; where a set is smaller than n, the following seeds go on."""
    size, parts, missing = task.size(condition), [], n
    if size is not None and size < 1:
        raise CheckFailed("the condition has no examples")
    while missing:
        take = missing if size is None else min(size, missing)
        parts.append(task.sample(condition, take, data_seed=seed))
        missing, seed = missing - take, seed + 1
    return Examples.concat(parts), seed


def check_spec(case: Case) -> Verdict:
    """Names, shapes, kinds of number and ranges against the spec."""
    found = misfits(case.task.spec, case.examples)
    return ("FAIL", "; ".join(found)) if found else ("ok", "names, shapes, kinds and ranges as the spec has them")


def check_solver(case: Case) -> Verdict:
    """The targets against the plain solver, which gets to see nothing but the inputs."""
    examples = case.examples
    solved = np.asarray(case.task.solve(Examples(examples.inputs, np.zeros_like(examples.targets), {})))
    if solved.shape != examples.targets.shape:
        return "FAIL", f"the solver gives shape {solved.shape}, the generator {examples.targets.shape}"
    wrong = _unequal(solved, examples.targets)
    if not wrong.any():
        return "ok", f"{len(examples)} of {len(examples)} targets agree"
    first = int(wrong.argmax())
    return "FAIL", (
        f"{wrong.sum()} of {len(examples)} targets differ, first at {first}: generator "
        f"{_brief(examples.targets[first])}, solver {_brief(solved[first])}"
    )


def check_purity(case: Case) -> Verdict:
    """Examples drawn in other batches, from other starts and in another order."""
    found = impurities(case.task, case.condition.name)
    if found:
        return "FAIL", f"examples {found[0]} differ when drawn alone ({len(found)} such ranges)"
    return "ok", "the same in any batch and order"


def check_process(case: Case, there: str) -> Verdict:
    """The fingerprint of the first examples against the one that another process sent."""
    count = reach(case.task, case.condition.name)
    here = fingerprint(case.task.sample(case.condition.name, count))
    if here == there:
        return "ok", f"{count} examples, fingerprint {here}"
    return "FAIL", f"another process has other examples: here {here}, there {there}"


def check_streams(case: Case) -> Verdict:
    """No stretch of examples of one data seed comes again under another, shifted or not."""
    task, name = case.task, case.condition.name
    size = task.size(name)
    count = min(3 * task.block, len(case.examples), size if size is not None else 3 * task.block)
    run = min(_RUN, count)
    seen: dict[bytes, DataSeed] = {}
    for seed in _SEEDS:
        keys = _keys(task.sample(name, count, data_seed=seed))
        for stretch in {b"".join(keys[i : i + run]) for i in range(count - run + 1)}:
            if seen.setdefault(stretch, seed) != seed:
                return "FAIL", f"data seeds {seen[stretch]!r} and {seed!r} share {run} examples in a row"
    return "ok", f"data seeds {', '.join(map(str, _SEEDS))} share no {run} examples in a row"


def check_duplicates(case: Case) -> Verdict:
    """Examples that repeat an earlier one.

    Independent draws repeat each other no more often than they coincide with those of another sample. So if
    two samples have as much in common, the draws are in order and the set of possible examples is small.
    """
    word, detail = _coincidences(case.repeats, case.coincidences, len(case.examples), "repeat an earlier one")
    if word == "FAIL" and case.condition.pooled:
        return "shown", f"{detail.partition(' (')[0]}, because they come from a pool"
    return word, detail


def check_overlap(case: Case) -> Verdict:
    """Examples that occur in `train`, against what independent draws of either have in common."""
    assert case.train is not None
    shared = _share(case.keys, set(case.train.keys))
    usual = max(case.coincidences, case.train.coincidences)
    return _coincidences(shared, usual, len(case.examples), "occur in train")


def _coincidences(found: float, usual: float, n: int, what: str) -> Verdict:
    detail = f"{round(found * n)} of {n} examples {what}"
    if found <= _DUPLICATES:
        return "ok", detail
    if found <= usual + MARGIN * np.sqrt((found + usual) / n):
        return "shown", f"{detail}; so do {usual:.2%} of independent draws: the set is small"
    return "FAIL", f"{detail} ({found:.2%}; allowed {_DUPLICATES:.1%}, independent draws have {usual:.2%})"


def check_unseen(case: Case) -> Verdict:
    """What the condition calls unseen, against the examples of `train`."""
    assert case.train is not None
    names = case.condition.unseen
    if not names:
        return "shown", "nothing is called unseen here"
    here, there = _values(case.examples, names), _values(case.train.examples, names)
    shared = here & there
    if shared:
        one = _brief(min(shared, key=repr))
        return "FAIL", f"{len(shared)} of {len(here)} values of {' × '.join(names)} occur in train, e.g. {one}"
    return "ok", f"none of {len(here)} values of {' × '.join(names)} is among the {len(there)} in train"


def check_labels(case: Case) -> Verdict:
    """The balance of the targets; yes and no must be even unless a ceiling `majority` is declared.

    Of a real target, what always answering 0 is off by must be what the task says it is.
    """
    targets, kind = case.examples.targets, case.task.spec.target.kind
    chance = case.task.spec.target.chance
    if kind == "real":
        return _zero(case)
    if kind == "category":
        counts = np.bincount(targets.reshape(-1).astype(np.int64))
        share = f"{counts.max() / counts.sum():.1%} have the commonest (chance {chance:.1%})"
        return "shown", f"{(counts > 0).sum()} of {case.task.spec.target.width} values occur, {share}"
    yes = score(targets)
    detail = f"{yes.accuracy:.1%} yes"
    if abs(yes.accuracy - chance) <= MARGIN * yes.error:
        return "ok", detail
    if "majority" in case.task.ceilings(case.condition.name):
        return "known", f"{detail}, declared as ceiling of majority"
    return "FAIL", f"{detail}, expected {chance:.1%} ± {MARGIN * yes.error:.1%}"


def _zero(case: Case) -> Verdict:
    targets = case.examples.targets.astype(np.float64)
    sizes = np.abs(targets).reshape(len(targets), -1).mean(1)
    found, error = float(sizes.mean()), float(sizes.std() / np.sqrt(len(sizes)))
    moments = f"mean {targets.mean():.4g}, standard deviation {targets.std():.4g}"
    detail = f"{moments}; always answering 0 is off by {found:.4f}"
    declared = case.task.zero_loss(case.condition.name)
    if declared is None:
        return "shown", detail
    # What is declared may itself be an estimate, from fewer examples.
    margin = 2 * MARGIN * error
    within = abs(found - declared) <= margin
    return "ok" if within else "FAIL", f"{detail}, declared {declared:.4f} ± {margin:.4f}"


def check_baselines(case: Case) -> Iterator[tuple[str, Verdict]]:
    """The generic baselines against chance and the declared ceilings.

    What a weaker baseline may reach a stronger one may, too; and a leak is reported once, by the weakest that
    finds it.
    """
    spec, ceilings = case.task.spec, case.task.ceilings(case.condition.name)
    for name in set(ceilings) - set(BASELINES):
        raise CheckFailed(f"a ceiling is declared for '{name}', which is no baseline. {nearest(name, BASELINES)}")
    real = spec.target.kind == "real"
    allowed, what = (0.0, " of the variance") if real else (spec.target.chance, "")
    for name, found in (regressions if real else baselines)(spec, case.distinct):
        allowed, margin = max(allowed, ceilings.get(name, 0)), MARGIN * found.error
        passed = found.accuracy <= allowed + margin
        detail = f"{found.accuracy:.1%}{what} ({found.note}), allowed {allowed:.1%} + {margin:.1%}"
        yield name, ("ok" if passed else "FAIL", detail)
        allowed = allowed if passed else found.accuracy


def check_shortcuts(case: Case) -> Iterator[tuple[str, Verdict]]:
    """The task's own shortcuts against their ceilings."""
    for shortcut in case.task.shortcuts(case.condition.name):
        yield f"shortcut {shortcut.name}", _shortcut(case, shortcut)


def _shortcut(case: Case, shortcut: Shortcut) -> Verdict:
    targets = case.examples.targets
    answers = np.asarray(shortcut.answer(case.examples)).reshape(targets.shape)
    found = score(answers == targets)
    detail = f"{found.accuracy:.1%} ± {found.error:.1%}"
    if shortcut.ceiling is None:
        return "shown", detail
    above = found.accuracy - shortcut.ceiling > MARGIN * found.error + _SLACK
    return "FAIL" if above else "ok", f"{detail}, ceiling {shortcut.ceiling:.1%}"


_PARTS = 20


def check_artefacts(case: Case) -> Iterator[tuple[str, Verdict]]:
    """The task's artefacts: absent, declared, or a defect."""
    for artefact in case.task.artefacts(case.condition.name):
        yield f"artefact {artefact.name}", _artefact(case, artefact)


def measured(artefact: Artefact, examples: Examples) -> tuple[float, float]:
    """An artefact's figure, and how far it may lie from absence by tolerance and sampling error.

    The error comes from the spread over parts of the data; five of them, because it is estimated from 20 values.
    """
    parts = [artefact.measure(examples[start::_PARTS]) for start in range(_PARTS)]
    error = float(np.std(parts, ddof=1) / np.sqrt(_PARTS))
    return float(artefact.measure(examples)), artefact.tolerance + 5 * error


def _artefact(case: Case, artefact: Artefact) -> Verdict:
    found, margin = measured(artefact, case.examples)
    detail = f"{artefact.summary}: {found:.4g}, without it {artefact.absent:.4g} ± {margin:.2g}"
    if abs(found - artefact.absent) <= margin:
        return ("shown", f"declared, not seen here: {detail}") if artefact.known else ("ok", f"absent: {detail}")
    if artefact.known and artefact.at_most is not None and found > artefact.at_most + margin:
        return "FAIL", f"declared, but at most {artefact.at_most:.4g}: {detail}"
    return ("known", f"declared: {detail}") if artefact.known else ("FAIL", f"not declared: {detail}")


def _keys(examples: Examples) -> list[bytes]:
    arrays = [np.ascontiguousarray(examples.inputs[name]) for name in sorted(examples.inputs)]
    joined = np.hstack([array.reshape(len(examples), -1).view(np.uint8) for array in arrays])
    return [hashlib.blake2b(row, digest_size=16).digest() for row in joined]


def _share(keys: list[bytes], among: set[bytes]) -> float:
    return sum(key in among for key in keys) / len(keys)


def _values(examples: Examples, names: tuple[str, ...]) -> set[tuple[Any, ...]]:
    """The values that a tuple of factors takes, as plain Python values."""
    columns = []
    for name in names:
        if name not in examples.factors:
            raise CheckFailed(f"the examples have no factor '{name}'")
        rows = examples.factors[name].reshape(len(examples), -1)
        columns.append(rows[:, 0].tolist() if rows.shape[1] == 1 else [tuple(row) for row in rows.tolist()])
    return set(zip(*columns, strict=True))


def _unequal(solved: Array, targets: Array) -> Array:
    """Which examples have a target that differs."""
    real = targets.dtype.kind == "f"
    agree: Array = np.isclose(solved, targets, _TOLERANCE, _TOLERANCE) if real else np.equal(solved, targets)
    return np.logical_not(agree.reshape(len(targets), -1).all(1))


def _brief(value: object) -> str:
    text = str(value.tolist() if isinstance(value, np.ndarray) else value)
    return text if len(text) <= 60 else text[:57] + "…"
