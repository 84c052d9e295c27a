from __future__ import annotations

import numpy as np
import pytest

from unseen.analysis.probes import probe
from unseen.errors import UsageError
from unseen.randomness import Draws, stream


def draws(name: str = "probes") -> Draws:
    return stream("test", name).block()


def make(n: int = 600, count: int = 5) -> tuple[np.ndarray, np.ndarray]:
    values = draws("values").integers(count, n)
    noise = draws("noise").normal((n, 12))
    mixing = draws("mixing").normal((count, 12))
    return values, np.eye(count)[values] @ mixing + 0.1 * noise


def test_what_is_linear_is_found_and_what_is_absent_is_not() -> None:
    values, activations = make()
    found = probe(activations, values, draws(), count=5)
    assert found.accuracy == 1.0 and found.n == 300
    assert abs(found.control - 0.2) < 0.1 and found.selectivity > 0.7  # random labels of examples: chance
    absent = probe(draws("other").normal((600, 12)), values, draws(), count=5)
    assert abs(absent.accuracy - 0.2) < 0.1 and abs(absent.chance - 0.2) < 0.08


def test_a_probe_that_learns_the_variable_itself_is_not_selective() -> None:
    """Activations that are one-hot in the causes: any function of them can be learned, random ones as well."""
    causes = draws("causes").integers(12, 2000)
    values = draws("table").integers(5, 12)[causes]
    score = probe(np.eye(12)[causes], values, draws(), count=5, causes=causes[:, None])
    assert score.accuracy == 1.0 and score.control == 1.0 and score.selectivity == 0


def test_it_is_deterministic_and_leaves_out_examples_without_the_variable() -> None:
    values, activations = make()
    values[::3] = -1
    first = probe(activations, values, draws(), count=5)
    assert first == probe(activations, values, draws(), count=5)
    assert first.n == 200
    # What the others have does not matter.
    activations[::3] = 1e6
    assert probe(activations, values, draws(), count=5) == first


def test_constant_and_huge_columns_do_no_harm() -> None:
    values, activations = make()
    wide = np.hstack([activations * 1e4, np.full((600, 3), 7.0)])
    assert probe(wide, values, draws(), count=5).accuracy == 1.0


def test_wrong_inputs() -> None:
    with pytest.raises(UsageError, match=r"expects activations \(n, d\)"):
        probe(np.zeros((3, 2, 2)), np.zeros(3, np.int64), draws(), count=2)
    with pytest.raises(UsageError, match="at least 20 examples"):
        probe(np.zeros((30, 2)), np.full(30, -1), draws(), count=2)
