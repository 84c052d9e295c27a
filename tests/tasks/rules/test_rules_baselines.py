"""The ceilings: what straight lines reach, against simulation; the zero predictor, against data."""

from __future__ import annotations

import numpy as np
import pytest

from unseen.tasks import task
from unseen.tasks.rules import Coefficients
from unseen.tasks.verify.baselines import baselines
from unseen.tasks.verify.regressions import regressions

CASES = [
    ("rules/mlp", 1, "iid"),
    ("rules/mlp", 8, "iid"),
    ("rules/mha", 1, "ood/length=3"),
    ("rules/mha", 2, "iid"),
    ("rules/rnn", 1, "ood/length=3"),
    ("rules/rnn", 2, "iid"),
]


@pytest.mark.parametrize("setting", ["classification", "regression"])
@pytest.mark.parametrize(("name", "rules", "condition"), CASES)
def test_ceilings_are_what_the_baselines_reach(name: str, rules: int, condition: str, setting: str) -> None:
    """Both ways: a ceiling too low would fail sound tasks, one too high would let leaks pass."""
    made = task(name, rules=rules, setting=setting)
    n = 20_000 if name == "rules/mlp" else 30_000
    found = dict((regressions if setting == "regression" else baselines)(made.spec, made.sample(condition, n)))
    for baseline, ceiling in made.ceilings(condition).items():
        assert found[baseline].accuracy == pytest.approx(ceiling, abs=max(0.02, 4 * found[baseline].error))


def test_rules_that_cancel_leave_nothing() -> None:
    made = task("rules/mlp", rules=2)
    signs = np.array([-1.0, 1.0])
    made.__dict__["parameters"] = Coefficients(signs, signs)
    assert made.ceilings("iid") == pytest.approx({"single-feature": 0.5, "bag-of-tokens": 0.5})
