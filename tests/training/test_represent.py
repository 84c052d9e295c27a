"""The representation analysis on planted models whose states and faults are known."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unseen.models import options
from unseen.models.build import build
from unseen.models.context import NO_CONTEXT, Context
from unseen.tasks import task
from unseen.tasks.ctl.task import Lookup
from unseen.training.analyses import ctl_representation
from unseen.training.evaluate import FAMILY_ANALYSES, Measure, evaluate, left_out
from unseen.training.recipe import Evaluation
from unseen.training.stack import Stack

SMALL = {"symbols": 4, "functions": 8, "max_length": 3, "train_size": 150, "iid_size": 40, "ood_size": 50}
ASKED = Evaluation(splits=("iid",), examples=40, analyses=("representation",))


def made(name: str = "ctl/R", **given: Any) -> Lookup:
    found = task(name, **{**SMALL, **given})
    assert isinstance(found, Lookup)
    return found


class Planted(nn.Module):
    """Knows the answers, but for pairs (f1, f2, symbol between) that are planted as faults; keeps planted states.

    `states` is a table (functions, symbols, width): what is kept of a function alone at a symbol.
    """

    def __init__(self, of: Lookup, states: np.ndarray, faults: np.ndarray | None = None) -> None:
        super().__init__()
        functions, symbols = of.actual_world.tables.shape
        wrong = np.zeros((functions, functions, symbols), bool) if faults is None else faults
        self.register_buffer("tables", torch.from_numpy(of.actual_world.tables))
        self.register_buffer("states", torch.from_numpy(states.astype(np.float32)))
        self.register_buffer("faults", torch.from_numpy(wrong).long())
        self.symbols = symbols

    def forward(self, inputs: dict[str, Tensor], ctx: Context = NO_CONTEXT) -> Tensor:
        token, length = inputs["token"], inputs["mask"].sum(1) - 3  # SOS, functions from the outermost in, symbol, EOS

        def at(place: Tensor) -> Tensor:
            return token.gather(1, place.clamp(min=0)[:, None])[:, 0]

        symbol = at(length + 1)
        state = self.states[(at(length) - self.symbols).clamp(0, len(self.tables) - 1), symbol]
        fault = torch.zeros_like(symbol)
        before = at(length) - self.symbols
        for step in range(token.shape[1] - 3):
            function, real = at(length - step) - self.symbols, step < length
            function = function.clamp(0, len(self.tables) - 1)
            if step == 1:
                fault = torch.where(real, self.faults[before, function, symbol], 0)
            symbol = torch.where(real, self.tables[function, symbol], symbol)
        ctx.capture("readout.state", state)
        return F.one_hot((symbol + fault) % self.symbols, self.symbols).float()


def by_function(of: Lookup, labels: np.ndarray) -> np.ndarray:
    """States that say nothing but a label of the function."""
    return np.repeat(np.eye(4)[labels][:, None], len(of.actual_world.symbols), axis=1)


def analysed(of: Lookup, *modules: nn.Module) -> list[dict[tuple[str, str, str], Measure]]:
    rows = evaluate(Stack(list(modules)), of, ASKED)
    return [
        {(m.metric.removeprefix("representation/"), m.factor, m.level): m for m in one if "/" in m.metric}
        for one in rows
    ]


def test_states_of_the_group_and_states_of_the_outcome() -> None:
    of = made()
    world = of.actual_world
    outcome = np.eye(4)[world.tables]
    grouped, blind = analysed(of, Planted(of, by_function(of, world.group_of)), Planted(of, outcome))
    for factor, level in (("", ""), *(("symbol", s) for s in world.symbols)):
        values = {
            name: grouped[name, factor, level].value
            for name in ("within", "across", "gap", "silhouette", "clusters", "agreement")
        }
        assert values == {"within": 1, "across": 0, "gap": 1, "silhouette": 1, "clusters": 2, "agreement": 1}
        # Of the C(8, 4) = 70 labelings two have this gap.
        assert grouped["gap_p", factor, level].value == pytest.approx(2 / 70)
        values = {
            name: blind[name, factor, level].value for name in ("gap", "gap_p", "silhouette", "clusters", "agreement")
        }
        assert values == pytest.approx({"gap": 0, "gap_p": 1, "silhouette": 0, "clusters": 1, "agreement": 0})
    assert {grouped[key].split for key in grouped if key[0] == "gap"} == {"probe/singles"}
    assert grouped["gap", "symbol", "0"].n == 8 and grouped["gap", "", ""].n == 32
    assert grouped["accuracy", "", ""].value == 1 and grouped["accuracy", "", ""].n == 32
    # All pairs are right: there is nothing to explain.
    assert not any("gain" in name or "explained" in name for name, _, _ in grouped)
    assert grouped["compatibility", "", ""].value == 1


def test_one_shuffle_for_all_symbols() -> None:
    """The same gap at every symbol is one finding, not four: p is what it is at one symbol."""
    of = made(functions=10)
    labels = np.array([0, 0, 0, 0, 1, 0, 1, 1, 1, 1])
    (found,) = analysed(of, Planted(of, by_function(of, labels)))
    assert found["gap_p", "", ""].value == found["gap_p", "symbol", "2"].value > 0.02


def brute_compatibility(of: Lookup, faults: np.ndarray) -> dict[tuple[str, str], float]:
    """Every f1, f2 and start, one at a time."""
    world = of.actual_world
    groups = list(world.groups)
    right: dict[tuple[str, str], list[float]] = {}
    for f1, f2, start in itertools.product(range(len(world.names)), range(len(world.names)), range(len(world.symbols))):
        middle = int(world.tables[f1, start])
        transition = f"{groups[world.group_of[f1]]}→{groups[world.group_of[f2]]}"
        # The planted states are those of groups: the clusters at a symbol are the groups that can return it, in order.
        able = dict.fromkeys(int(world.group_of[f]) for f in range(len(world.names)) if middle in world.tables[f])
        cluster = f"{list(able).index(int(world.group_of[f1]))}→{groups[world.group_of[f2]]}"
        for key in (
            ("", ""),
            ("transition", transition),
            ("transition,symbol", f"{transition},{world.symbols[middle]}"),
            ("cluster,symbol", f"{cluster},{world.symbols[middle]}"),
        ):
            right.setdefault(key, []).append(float(not faults[f1, f2, middle]))
    return {key: float(np.mean(values)) for key, values in right.items()}


@pytest.mark.parametrize("given", [{}, {"bijective": False}, {"name": "ctl/A", "task_seed": 3}])
def test_compatibility_by_brute_force(given: dict[str, Any]) -> None:
    of = made(**given)
    faults = np.random.default_rng(0).random((8, 8, 4)) < 0.4
    (found,) = analysed(of, Planted(of, by_function(of, of.actual_world.group_of), faults))
    measured = {key[1:]: m.value for key, m in found.items() if key[0] == "compatibility"}
    assert measured == pytest.approx(brute_compatibility(of, faults))
    assert {m.split for key, m in found.items() if key[0] == "compatibility"} == {"probe/pairs"}


def test_clusters_that_predict_what_works() -> None:
    """As in the paper's Fig. 6: a small cluster inside group a works with a only, everything else with both."""
    of = made(functions=12)
    world = of.actual_world
    clusters = np.where(np.arange(12) < 3, 0, 1)
    assert world.group_of[:3].tolist() == [0, 0, 0]
    faults = np.zeros((12, 12, 4), bool)
    faults[:3, world.group_of == 1] = True
    (found,) = analysed(of, Planted(of, by_function(of, clusters), faults))
    for factor, level in (("", ""), ("symbol", "3")):
        assert found["cluster_explained", factor, level].value == pytest.approx(1)
        # 12 functions with 2 labels explain a share of 1/11 by chance.
        assert found["cluster_gain", factor, level].value == pytest.approx(10 / 11, abs=0.02)
        assert found["cluster_gain_p", factor, level].value < 0.02
        # Half of group a fails with b: 3 of 12 fail, the groups know that it is 3 of 6.
        assert found["group_explained", factor, level].value == pytest.approx(1 / 3)
        assert found["group_gain", factor, level].value == pytest.approx(1 / 3 - 1 / 11, abs=0.02)
    assert found["compatibility", "transition", "a→b"].value == 0.5
    assert found["compatibility", "transition", "b→a"].value == found["compatibility", "transition", "a→a"].value == 1


def test_random_clusters_gain_nothing() -> None:
    of = made(functions=12)
    clusters = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2])
    faults = np.random.default_rng(1).random((12, 12, 4)) < 0.5
    (found,) = analysed(of, Planted(of, by_function(of, clusters), faults))
    assert abs(found["cluster_gain", "", ""].value) < 0.03
    assert found["cluster_gain_p", "", ""].value > 0.05


def brute_cosines(of: Lookup, states: np.ndarray) -> np.ndarray:
    world = of.actual_world
    found = np.full((len(world.symbols), len(world.names), len(world.names)), np.nan)
    for outcome, f, g in itertools.product(range(len(world.symbols)), *[range(len(world.names))] * 2):
        ways = [[states[h, s] for s in range(len(world.symbols)) if world.tables[h, s] == outcome] for h in (f, g)]
        if all(ways):
            one, other = (np.mean(way, axis=0) for way in ways)
            found[outcome, f, g] = one @ other / math.sqrt((one @ one) * (other @ other))
    return found


@pytest.mark.parametrize("bijective", [True, False])
def test_cosines_of_all_preimages(bijective: bool) -> None:
    of = made(bijective=bijective)
    states = np.random.default_rng(2).normal(size=(2, 8, 4, 5)).astype(np.float32).astype(float)
    found = ctl_representation.cosines(Stack([Planted(of, one) for one in states]), of)
    assert found.shape == (2, 4, 8, 8)
    for member, own in zip(found, states, strict=True):
        np.testing.assert_allclose(member, brute_cosines(of, own), atol=1e-6)
    missing = [not (of.actual_world.tables == s).any(axis=1).all() for s in range(4)]
    assert any(missing) != bijective
    assert (np.isnan(found).any(axis=(0, 2, 3)) == missing).all()


def test_functions_without_an_outcome_are_left_out_of_it() -> None:
    """By brute force over the functions that have each outcome, and over all pairs together."""
    of = made(bijective=False, task_seed=1)
    world = of.actual_world
    states = np.random.default_rng(3).normal(size=(8, 4, 3)) + 2 * np.eye(2, 3)[world.group_of][:, None]
    (found,) = analysed(of, Planted(of, states))
    matrices = brute_cosines(of, states)
    all_pairs: dict[bool, list[float]] = {True: [], False: []}
    for s, matrix in enumerate(matrices):
        own: dict[bool, list[float]] = {True: [], False: []}
        for f, g in itertools.combinations(range(8), 2):
            if not math.isnan(matrix[f, g]):
                own[bool(world.group_of[f] == world.group_of[g])].append(matrix[f, g])
        if own[True] and own[False]:
            assert found["within", "symbol", str(s)].value == pytest.approx(np.mean(own[True]), abs=1e-6)
            assert found["across", "symbol", str(s)].value == pytest.approx(np.mean(own[False]), abs=1e-6)
        else:
            assert ("within", "symbol", str(s)) not in found
        for same in (True, False):
            all_pairs[same] += own[same]
    expected = np.mean(all_pairs[True]) - np.mean(all_pairs[False])
    assert found["gap", "", ""].value == pytest.approx(expected, abs=1e-6)


def test_states_of_zero_have_no_direction() -> None:
    of = made()
    states = by_function(of, of.actual_world.group_of)
    states[5] = 0
    (found,) = analysed(of, Planted(of, states))
    assert found["gap", "", ""].value == pytest.approx(1) and found["gap", "symbol", "1"].n == 7
    (found,) = analysed(of, Planted(of, 0 * states))
    assert ("gap", "", "") not in found and found["compatibility", "", ""].value == 1


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("ctl/A", {}),
        ("ctl/R", {"groups": 3, "functions": 9}),
        ("ctl/S", {"functions": 12, "bridge": 4, "shared": 1, "max_length": 4}),
        ("ctl/A", {"groups": 3, "functions": 9, "test_skips": (2,)}),
    ],
)
def test_real_models_of_all_variants(name: str, given: dict[str, Any]) -> None:
    """Alone and stacked the same to the last bit, and nothing else changes."""
    of = made(name, **given)
    built = [build(options("ctl-bilstm", width=8, embedding=8), of.spec, seed) for seed in (0, 1)]
    together = evaluate(Stack(built), of, ASKED)
    assert repr(together[1]) == repr(evaluate(Stack(built[1:]), of, ASKED)[0])
    plain = evaluate(Stack(built), of, Evaluation(splits=("iid",), examples=40))
    assert repr([m for m in together[0] if "representation" not in m.metric]) == repr(plain[0])
    found = {(m.metric, m.factor) for m in together[0]}
    assert {
        ("representation/gap_p", ""),
        ("representation/gap_p", "symbol"),
        ("representation/cluster_gain", ""),
        ("representation/compatibility", "transition,symbol"),
    } <= found
    assert left_out(Stack(built), of, ASKED) == []
    transitions = {
        m.level for m in together[0] if (m.metric, m.factor) == ("representation/compatibility", "transition")
    }
    assert transitions == set(of.sample("probe/pairs", of.size("probe/pairs") or 0).factors["transition"])


class Bare(nn.Module):
    """A user's model: no context, no intermediates."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = nn.Linear(1, 4)

    def forward(self, inputs: dict[str, Tensor]) -> Tensor:
        return self.answer(inputs["token"].sum(1, keepdim=True).float())


def test_what_is_missing_is_said() -> None:
    of = made()
    said = "representation left out: "
    assert left_out(Stack([Bare()]), of, ASKED) == [said + "the model captures no readout.state"]
    assert not any("representation" in m.metric for m in evaluate(Stack([Bare()]), of, ASKED)[0])
    lengths = task("ctl/lengths", symbols=4, composed=4, max_length=3, longer=((4, 5),), train_size=60, iid_size=10)
    bilstm = Stack([build(options("ctl-bilstm", width=8, embedding=8), lengths.spec, 0)])
    assert left_out(bilstm, lengths, ASKED) == [said + "ctl/lengths has no split probe/pairs"]
    other = task("retrieval/T1", length=3)
    seen = Stack([build(options("retrieval-transformer", width=4), other.spec, 0)])
    assert left_out(seen, other, ASKED) == [said + "it is about tasks with tables of functions (ctl)"]
    alone = made("ctl/R", functions=3, groups=3, train_size=30, iid_size=5, on_shortage="take_all")
    assert left_out(Stack([Planted(alone, by_function(alone, np.arange(3)))]), alone, ASKED) == [
        said + "it needs two functions of one group and two of different groups"
    ]


def test_the_table_of_analyses_and_the_names_agree() -> None:
    assert len(FAMILY_ANALYSES) > 4
    assert Evaluation(analyses=tuple(reversed(FAMILY_ANALYSES))).analyses == tuple(FAMILY_ANALYSES)
