"""The exponent of a curve, against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks.scaling_fit import exponents, fitted, upper_half
from scipy.stats import linregress

SIZES = (1, 2, 4, 8, 16, 32, 64)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0, 3.0])
def test_a_power_law_gives_its_power(power: float) -> None:
    found = fitted({n: 0.3 * n**power for n in SIZES})
    assert found.exponent == pytest.approx(power) and found.error == pytest.approx(0, abs=1e-6)


def test_three_points_by_hand() -> None:
    """Logarithms 0, 1, 2 of the sizes and 0, 1, 0 of the times: slope 0, residuals −1/3, 2/3, −1/3."""
    found = fitted({1: 1.0, 2: 2.0, 4: 1.0})
    assert found.exponent == pytest.approx(0)
    assert found.error == pytest.approx(math.sqrt((1 / 9 + 4 / 9 + 1 / 9) / 1 / 2))


def test_slope_and_error_are_those_of_a_regression() -> None:
    times = [1.0, 2.2, 3.7, 9.0, 14.0, 33.0, 71.0]
    right = linregress(np.log(SIZES), np.log(times))
    found = fitted(dict(zip(SIZES, times, strict=True)))
    assert (found.exponent, found.error) == pytest.approx((right.slope, right.stderr))


def test_two_points_have_no_error() -> None:
    assert fitted({2: 1.0, 4: 4.0}).exponent == pytest.approx(2) and math.isnan(fitted({2: 1.0, 4: 4.0}).error)


def test_a_constant_hides_the_power_from_all_sizes_more_than_from_the_upper_half() -> None:
    upper, whole = exponents("case", {n: 10 + n**2 for n in SIZES})
    assert (upper.figure, whole.figure) == ("exponent", "exponent, all sizes")
    assert whole.value < upper.value < 2
    assert upper.low is not None and upper.high is not None and upper.low < upper.value < upper.high


def test_the_upper_half_has_at_least_three_sizes() -> None:
    assert list(upper_half(dict.fromkeys((4, 1, 2), 1.0))) == [1, 2, 4]
    assert list(upper_half(dict.fromkeys((1, 2, 4, 8), 1.0))) == [2, 4, 8]
    assert list(upper_half(dict.fromkeys((1, 2), 1.0))) == [1, 2]


def test_few_sizes_have_one_exponent_and_two_no_margin() -> None:
    (three,) = exponents("case", {1: 1.0, 2: 2.0, 4: 5.0})
    (two,) = exponents("case", {1: 1.0, 2: 2.0})
    assert three.low is not None and two.low is None and two.high is None and two.value == pytest.approx(1)
