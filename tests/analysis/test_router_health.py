"""Router health: extremes by hand, agreement with SciPy, a router of the package, wrong inputs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import entropy

import unseen
from unseen.analysis import measure_router_health, router_health_table
from unseen.errors import UsageError


def test_extremes() -> None:
    even = measure_router_health(np.full((2, 5, 4), 0.25))
    assert even.load_entropy == pytest.approx(1) and even.token_entropy == pytest.approx(1) and even.dead == ()
    assert even.tokens == 10 and set(even.largest.values()) == {0.25}
    collapsed = measure_router_health(np.eye(4)[np.zeros(20, int)])
    assert collapsed.load_entropy == collapsed.token_entropy == 0 and collapsed.dead == (1, 2, 3)
    sharp = measure_router_health(np.eye(4)[np.arange(20) % 4])
    assert sharp.load_entropy == pytest.approx(1) and sharp.token_entropy == 0
    assert measure_router_health(np.ones((3, 1))).load_entropy == 0


def test_against_scipy_and_numpy() -> None:
    weights = np.random.default_rng(0).dirichlet(np.ones(5), size=(30, 7))
    health = measure_router_health(weights)
    assert health.load_entropy == pytest.approx(entropy(weights.mean((0, 1))) / np.log(5))
    assert health.token_entropy == pytest.approx(entropy(weights, axis=-1).mean() / np.log(5))
    assert health.largest[95] == pytest.approx(np.percentile(weights.max(-1), 95))


def test_dead_is_a_share_of_an_even_load() -> None:
    weights = np.array([[0.49, 0.49, 0.02]])
    assert measure_router_health(weights).dead == () and measure_router_health(weights, dead=0.1).dead == (2,)


@pytest.mark.parametrize("weights", [[], [0.5, 0.5], [[0.5, 0.6]], [[1.5, -0.5]]], ids=str)
def test_what_is_no_distribution_is_refused(weights: list[float]) -> None:
    with pytest.raises(UsageError, match="router weights"):
        measure_router_health(weights)


def test_the_experts_of_a_trained_model_layer_by_layer() -> None:
    model = unseen.model("moe-transformer", width=16, heads=2, experts=4, top_k=1)
    runs = unseen.train(unseen.task("rules/mha", rules=2), model, seeds=1, steps=5)
    (captured,) = runs.activations("iid", 20).activations.values()
    layers = {name: values for name, values in captured.items() if name.startswith("gating.")}
    assert list(layers) == ["gating.0.weights", "gating.weights"]
    table = router_health_table(layers)
    assert table["experts"].tolist() == [4, 4] and (table["token entropy"] == 0).all()
