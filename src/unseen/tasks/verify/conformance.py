"""Whether examples have the form their spec says: names, shapes, kinds of number and ranges."""

from __future__ import annotations

from typing import Any

import numpy as np

from unseen.spec import Field, Spec, Target
from unseen.tasks.base import Examples

# The NumPy kinds of number that may carry a field or target: b bool, i and u integers, f floating.
_NUMBERS = {"real": "f", "bits": "biu", "binary": "biu", "category": "iu", "mask": "b"}
_FACTORS = "biufUT"


def misfits(spec: Spec, examples: Examples) -> list[str]:
    """What contradicts the spec, one clause each; empty if nothing does.

    The length of a stream may differ from its nominal one, but must be the same for all that lies along it.

    >>> spec = Spec((), (Field("x", "bits", 3),), Target("binary"))
    >>> misfits(spec, Examples({"x": np.zeros((2, 4), np.uint8)}, np.array([[0], [2]]), {}))
    ["input 'x' has shape (2, 4), expected (2, 3)", 'the target has values outside 0 … 1']
    """
    known, count = {field.name for field in spec.inputs}, len(examples)
    found = [f"input '{name}' is missing" for name in sorted(known - set(examples.inputs))]
    found += [f"input '{name}' is not in the spec" for name in sorted(set(examples.inputs) - known)]
    lengths: dict[str, int] = {}
    for field in spec.inputs:
        if field.name in examples.inputs:
            found += _judge(f"input '{field.name}'", field, examples.inputs[field.name], count, lengths)
    found += _judge("the target", spec.target, examples.targets, count, lengths)
    for name, values in examples.factors.items():
        if not isinstance(values, np.ndarray) or values.dtype.kind not in _FACTORS:
            found.append(f"factor '{name}' is no array of numbers, booleans or text")
        elif values.shape[:1] != (count,):
            found.append(f"factor '{name}' has shape {values.shape}, expected {count} along the first axis")
    return found


def _judge(what: str, form: Field | Target, values: Any, count: int, lengths: dict[str, int]) -> list[str]:
    """What is wrong with one array. The first array along a stream sets the length for the others."""
    kinds = _NUMBERS[form.kind]
    if not isinstance(values, np.ndarray) or values.dtype.kind not in kinds:
        has = values.dtype if isinstance(values, np.ndarray) else f"of type {type(values).__name__}"
        return [f"{what} is {has}; {form.kind} needs a NumPy dtype of kind {' or '.join(kinds)}"]
    shape: tuple[int, ...] = (count,)
    if form.along is not None:
        shape += (lengths.setdefault(form.along, values.shape[1] if values.ndim > 1 else 1),)
    if form.kind not in ("category", "mask"):
        shape += (form.width,)
    if values.shape != shape:
        return [f"{what} has shape {values.shape}, expected {shape}"]
    if form.kind == "real":
        return [] if np.isfinite(values).all() else [f"{what} has values that are not finite"]
    highest = form.width - 1 if form.kind == "category" else 1
    if values.size and (values.min() < 0 or values.max() > highest):
        return [f"{what} has values outside 0 … {highest}"]
    return []
