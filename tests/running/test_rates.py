"""The shipped rates: every model of the catalogue has one, and prices do not depend on the machine."""

from __future__ import annotations

import pytest

from unseen.running import timing
from unseen.running.flops import step_cost
from unseen.running.rates import Rate, ShippedRates, WorkloadTimes, shipped_rates
from unseen.running.timing import Timing
from unseen.studies.catalog import STUDIES
from unseen.studies.study import find_catalogued


def times(seconds: float) -> WorkloadTimes:
    return WorkloadTimes({1: seconds}, {1: seconds / 100}, 1.0, 0.0, 0.0)


def test_the_nearest_workload_of_the_same_model_counts_flop_for_flop() -> None:
    rates = ShippedRates(
        "a machine",
        (Rate("lstm", 1e6, times(0.001)), Rate("lstm", 1e8, times(0.050)), Rate("gru", 2e6, times(0.004))),
    )
    assert rates.times("lstm", 2e6).step(1) == pytest.approx(0.002)
    assert rates.times("lstm", 5e7).step(1) == pytest.approx(0.025)
    assert rates.times("gru", 1e8).step(1) == pytest.approx(0.200)
    assert rates.times("mine:Model", 2e6).step(1) == pytest.approx(0.004), "any model's, where it has none of its own"


def test_every_model_of_the_catalogue_has_a_rate() -> None:
    models = set()
    for listed in STUDIES:
        study = find_catalogued(listed.name)
        models |= {entry.trial.model.name for entry in study.entries(study.default_scale, seeds=[0])}
    assert models <= {rate.model for rate in shipped_rates().rates}


def test_a_price_needs_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "probe", None)
    trial = find_catalogued("quickstart").entries("mini", seeds=[0])[0].trial
    seconds = Timing().seconds(trial)
    rate = shipped_rates().times(trial.model.name, step_cost(trial).flops)
    assert seconds > trial.recipe.steps * rate.step(rate.best_size)
    assert 1 < seconds < 1000
