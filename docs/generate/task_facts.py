"""What a task says about itself: its spec, its splits, and how far shortcuts lead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import unseen_shares
from task_examples import example, test_split
from writing import link, table

from unseen.spec import Field, GridShape, Stream, Target
from unseen.stats import wilson
from unseen.tasks.base import Task
from unseen.tasks.verify.baselines import BASELINES

WORDS = {
    "majority": "always the most frequent answer",
    "input-blind": "the most frequent answer to what is given once, blind to the streams",
    "single-feature": "the best threshold on one number of the input",
    "bag-of-tokens": "a linear map of what is given once and of the sum over each stream",
}


def given(task: Task) -> str:
    """Streams, fields and target."""
    spec = task.spec
    rows = [
        (
            f"`{field.name}`",
            _kind(field),
            str(field.width) if field.kind != "mask" else "–",
            _along(field.along, spec.streams),
        )
        for field in spec.inputs
    ]
    rows.append(("*target*", _kind(spec.target), str(spec.target.width), _along(spec.target.along, spec.streams)))
    factors = ", ".join(f"`{name}`" for name in example(task, "train").factors)
    by = ", ".join(f"`{name}`" for name in task.report_by)
    notes = [
        f"Besides inputs and target, every example has factors, the generative variables behind it: {factors}.",
        f"Accuracy is also reported by {by}." if by else "",
    ]
    return f"{table(('field', 'kind', 'width', 'along'), rows)}\n\n{' '.join(filter(None, notes))}"


def splits(task: Task) -> str:
    """What each split is, and what is unseen in it."""
    rows = [
        (f"`{name}`", one.summary, " × ".join(f"`{factor}`" for factor in one.unseen) or "–", _size(task, name))
        for name, one in task.splits.items()
    ]
    return (
        f"{table(('split', 'what it is', 'unseen', 'examples'), rows)}\n\n*Unseen*: the factor, or combination "
        f"of factors, whose values there never occur in `train`. Models are selected on `{task.validation}`."
    )


def really_unseen(task: Task, path: str) -> str:
    """How much of each split computes what training already has, and what training lacks; nothing for tasks not in the file."""
    shares = unseen_shares.read()
    shares = shares[(shares["task"] == task.name) & shares["split"].isin(task.splits)]
    if shares.empty:
        return ""
    has_short = bool(shares["short"].notna().any())
    head = ["split", "in the same form", "only in another form", "new", "training lacks (share of examples)"]
    if has_short:
        head.insert(4, "of one or two functions")
    rows = []
    for row in shares.to_dict("records"):
        lacking = row["lacking"] if isinstance(row["lacking"], str) else "–"
        names = ["same_form", "other_form", "new", *(["short"] if has_short else [])]
        rows.append([f"`{row['split']}`", *(_percent(row[name], row["n"]) for name in names), lacking])
    first = shares.iloc[0]
    size = task.size("train")
    whole = "all" if size is not None and first["training"] == size else "the first"
    intro = (
        f"Does training already have the function that an example asks for? Compared are up to {int(shares['n'].max()):,} test "
        f"examples of every split with {whole} {int(first['training']):,} training examples; "
        f"{link('how', 'inside.md', path)}. In brackets: 95 % intervals over test examples (Wilson)."
    )
    if has_short:
        intro += (
            " *Of one or two functions*: the share whose function is also that of a training chain of one or two functions, which "
            "may be known by heart."
        )
    return f"{intro}\n\n{table(head, rows)}"


def _percent(share: float, n: int) -> str:
    """A share of n examples with its interval; none beside 0 and 1, which splits mostly are by construction.

    >>> _percent(0.913, 1000), _percent(1.0, 1000)
    ('91.3 % [89.4, 92.9]', '100.0 %')
    """
    if share != share:
        return "–"
    text = f"{100 * share:.1f} %"
    if share in (0, 1):
        return text
    interval = wilson(round(share * n), int(n), covers="examples")
    return f"{text} [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def chance(task: Task) -> str:
    """What guessing is worth."""
    target, kinds = task.spec.target, task.answer_kinds
    if target.kind == "real":
        errors = {name: task.zero_loss(name) for name in task.splits}
        listed = [f"`{name}` {error:.4f}" for name, error in errors.items() if error is not None]
        return f"Always answering 0 has a mean absolute error of {', '.join(listed)}." if listed else ""
    if kinds is None:
        return f"Guessing is right with probability {target.chance:.3g}."
    by_kind = [f"{kind} 1 in {count}" for kind, count in Counter(kinds.tolist()).items()]
    return (
        f"Guessing among all {target.width} answers is right with probability {target.chance:.3g}; a model that "
        f"knows which kind of answer is asked for does better: {', '.join(by_kind)}."
    )


def shortcuts(task: Task) -> str:
    """How far shortcuts lead that do not do the task: what its definition allows them."""
    allowed = {name: _ceilings(task, name) for name in task.splits}
    chosen = "train", test_split(task).name
    rules = dict.fromkeys(rule for found in allowed.values() for rule in found)
    rows = []
    for rule in rules:
        some = [found[rule] for found in allowed.values() if rule in found]
        rows.append(
            (
                f"{rule}: {WORDS[rule]}" if rule in WORDS else rule,
                *(_share(allowed[name].get(rule)) for name in chosen),
                " … ".join(dict.fromkeys(map(_share, (min(some), max(some))))),
            )
        )
    what = "share of the variance" if task.spec.target.kind == "real" else "accuracy"
    head = "shortcut", *(f"`{name}`" for name in chosen), "all splits"
    return (
        (
            f"The highest {what} that shortcuts can reach, by the definition of the task. `unseen verify` tries these "
            f"shortcuts and fails if one does better.\n\n{table(head, rows)}"
        )
        if rows
        else ""
    )


def artefacts(task: Task) -> str:
    """What is measured besides."""
    found = {one.name: one for name in task.splits for one in task.artefacts(name)}
    rows = [(one.name, one.summary, "known, declared" if one.known else "absent") for one in found.values()]
    text = table(("artefact", "what is measured", "here"), rows)
    return f"It also measures artefacts, regularities that do not belong to the task:\n\n{text}" if rows else ""


def _ceilings(task: Task, split: str) -> Mapping[str, float]:
    """By rule, as `verify` has it: what a weaker one may reach a stronger one may, too."""
    declared, found = task.ceilings(split), dict[str, float]()
    allowed = 0.0 if task.spec.target.kind == "real" else task.spec.target.chance
    for name in BASELINES:
        allowed = max(allowed, float(declared.get(name, 0)))
        found[name] = allowed
    return found | {one.name: one.ceiling for one in task.shortcuts(split) if one.ceiling is not None}


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def _kind(what: Field | Target) -> str:
    return {"mask": "mask: true where the stream is real", "binary": "yes or no", "real": "real numbers"}.get(
        what.kind, what.kind
    )


def _along(name: str | None, streams: tuple[Stream, ...]) -> str:
    if name is None:
        return "once per example"
    stream = next(one for one in streams if one.name == name)
    order = stream.order
    how = f"grid of {order.rows} × {order.columns}" if isinstance(order, GridShape) else order
    return f"`{name}`: {how}, {stream.length} positions"


def _size(task: Task, split: str) -> str:
    size = task.size(split)
    return "endless" if size is None else f"{size:,}".replace(",", " ")
