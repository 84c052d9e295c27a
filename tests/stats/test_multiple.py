from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from unseen.errors import UsageError
from unseen.stats import benjamini_hochberg

p_values = st.lists(st.floats(0, 1), min_size=1, max_size=20)
quick = settings(deadline=None, derandomize=True, max_examples=100)


def by_definition(p):
    """The smallest q at which the step-up procedure rejects each hypothesis."""
    m, order = len(p), sorted(range(len(p)), key=lambda k: p[k])
    adjusted = [0.0] * m
    for rank, k in enumerate(order):
        adjusted[k] = min([1.0] + [p[order[later]] * m / (later + 1) for later in range(rank, m)])
    return adjusted


@quick
@given(p_values)
def test_it_is_the_step_up_procedure(p):
    found = benjamini_hochberg(p)
    np.testing.assert_allclose(found, by_definition(p), atol=1e-15)
    np.testing.assert_allclose(found, stats.false_discovery_control(p))


@quick
@given(p_values)
def test_it_keeps_the_order_and_never_lowers_a_p_value(p):
    found = benjamini_hochberg(p)
    assert (found >= np.array(p) - 1e-15).all() and (found <= 1).all()
    assert (np.diff(found[np.argsort(p)]) >= -1e-15).all()


def test_the_example_of_benjamini_and_hochberg_1995():
    """15 p values of section 4.1: four are discoveries at q = 0.05, where Bonferroni finds three."""
    p = [
        0.0001,
        0.0004,
        0.0019,
        0.0095,
        0.0201,
        0.0278,
        0.0298,
        0.0344,
        0.0459,
        0.3240,
        0.4262,
        0.5719,
        0.6528,
        0.7590,
        1.0000,
    ]
    assert (benjamini_hochberg(p) <= 0.05).sum() == 4
    assert (np.array(p) * len(p) <= 0.05).sum() == 3


def test_what_was_not_tested_does_not_count():
    found = benjamini_hochberg([np.nan, 0.02, np.nan, 0.01])
    np.testing.assert_allclose(found, [np.nan, 0.02, np.nan, 0.02])
    assert benjamini_hochberg([]).tolist() == []
    assert np.isnan(benjamini_hochberg([None, None])).all()


@pytest.mark.parametrize("wrong", [[1.2], [-0.1, np.nan], [[0.1]], 0.5])
def test_wrong_use_is_answered(wrong):
    with pytest.raises(UsageError, match="p values between 0 and 1"):
        benjamini_hochberg(wrong)
