"""What is counted while examples pass by: how many, how their answers are spread, and a digest of every number."""

from __future__ import annotations

import hashlib

import numpy as np

from unseen.randomness import Floats
from unseen.spec import Target
from unseen.tasks.base import Array, Examples, Task
from unseen.tasks.verify.purity import fingerprint


class Tally:
    """Counts over the stretches of one part. Its digest depends on the data alone, not on format or stretches."""

    def __init__(self, task: Task) -> None:
        self._block, self._target = task.block, task.spec.target
        self._hash = hashlib.sha256()
        self.examples = 0
        self._spread: Floats = np.zeros(_places(self._target))

    def add(self, examples: Examples) -> None:
        """One stretch more; it begins where a block does."""
        for start in range(0, len(examples), self._block):
            self._hash.update(fingerprint(examples[start : start + self._block]).encode())
        self.examples += len(examples)
        self._spread += _spread(self._target, examples.targets)

    @property
    def digest(self) -> str:
        """The first 16 hex digits of a SHA-256 over names, dtypes, shapes and bytes."""
        return self._hash.hexdigest()[:16]

    @property
    def balance(self) -> dict[str, float]:
        """How the answers are spread, by name: shares of classes, or moments of a real target."""
        if not _counted(self._target):
            count, total, squares, sizes = self._spread.tolist()
            mean = total / count
            return {
                "mean": mean,
                "standard deviation": max(0.0, squares / count - mean**2) ** 0.5,
                "mean size": sizes / count,
            }
        shares = self._spread / self._spread.sum()
        if self._target.kind == "binary":
            return {"share of yes": float(shares[1])}
        return {
            "classes": int((shares > 0).sum()),
            "commonest class": int(shares.argmax()),
            "its share": float(shares.max()),
        }


def _counted(target: Target) -> bool:
    return target.kind != "real"


def _places(target: Target) -> int:
    return {"binary": 2, "category": target.width, "real": 4}[target.kind]


def _spread(target: Target, targets: Array) -> Floats:
    """How often each class occurs; of a real target how many, their sum, that of their squares and of their sizes."""
    values = targets.reshape(-1)
    if _counted(target):
        return np.bincount(values.astype(np.int64), minlength=_places(target)).astype(np.float64)
    real = values.astype(np.float64)
    return np.array([len(real), real.sum(), (real**2).sum(), np.abs(real).sum()])
