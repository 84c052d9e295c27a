"""The rules of a task: what the authors' sampler draws from a task seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, overload

import numpy as np

from unseen.errors import UsageError, nearest
from unseen.randomness import Floats

Process = Literal["mlp", "mha", "rnn"]
Spread = Literal["deviation", "variance"]
"""How the paper's 1/√32 for the entries of A and B is read (D5). As a variance it makes states grow 2.4-fold a step."""

PROCESSES: tuple[Process, ...] = ("mlp", "mha", "rnn")


@dataclass(frozen=True)
class Coefficients:
    """Rules of mlp and mha: y = alpha[r] · first + beta[r] · second. Both (R,)."""

    alpha: Floats
    beta: Floats


@dataclass(frozen=True)
class Matrices:
    """Rules of rnn, for row vectors: s_n = Σ_o s_(n−o) · A[r, o − 1] + x_n · B[r]; the read-out is s_n · w.

    `A` is (R, order, D, D), `B` (R, D, D), `w` (D,).
    """

    A: Floats
    B: Floats
    w: Floats


@overload
def task_parameters(process: Literal["mlp", "mha"], rules: int, task_seed: int) -> Coefficients: ...
@overload
def task_parameters(
    process: Literal["rnn"], rules: int, task_seed: int, *, dimension: int = ..., order: int = ..., spread: Spread = ...
) -> Matrices: ...
def task_parameters(
    process: Process,
    rules: int,
    task_seed: int,
    *,
    dimension: int = 32,
    order: int = 1,
    spread: Spread = "deviation",
) -> Coefficients | Matrices:
    """The rules of a task seed, drawn as the authors draw them; their five tasks are the seeds 0 … 4.

    It is NumPy's legacy generator, whose numbers are frozen, because no other gives the same tasks. Nothing else
    draws from it.

    >>> task_parameters("mlp", 2, 0).alpha.round(4).tolist()
    [1.7641, 0.4002]
    """
    generator = np.random.RandomState(task_seed)
    if process in ("mlp", "mha"):
        alpha = generator.standard_normal(rules)
        return Coefficients(alpha, generator.standard_normal(rules))
    if process == "rnn":
        power = {"deviation": 0.5, "variance": 0.25}[spread]
        carry = generator.standard_normal((rules, order, dimension, dimension)) / (order * dimension) ** power
        take = generator.standard_normal((rules, dimension, dimension)) / dimension**power
        return Matrices(carry, take, generator.standard_normal(dimension))
    raise UsageError(f"unknown process '{process}'. {nearest(process, PROCESSES)}")
