from __future__ import annotations

import doctest
import importlib

import pandas as pd
import pytest

from unseen.metrics import ANALYSES
from unseen.tasks import TASKS


def test_the_table_is_complete_and_names_registered_tasks():
    assert list(ANALYSES) == [f"R{k}" for k in range(1, 10)]
    assert len({recipe.function for recipe in ANALYSES.values()}) == 9
    for recipe in ANALYSES.values():
        assert all(task in TASKS for task in recipe.tasks)
        assert all(printed.task in recipe.tasks for printed in recipe.published)


@pytest.mark.parametrize("name", [name for name in ANALYSES if name != "R8"])
def test_every_published_number_is_a_value_of_the_table_it_is_printed_for(plant, name):
    """Each published measure and variant is found, so that report and claims can join the two."""
    recipe = ANALYSES[name]
    for task in recipe.tasks:
        planted = plant(task.removeprefix("retrieval/"))
        variants = ("T-Pos-Att", "T-Pos+Att", "T+Pos+Att", "LSTM-attention")
        traces = {(variant, seed): planted.random_trace(seed) for variant in variants for seed in (0, 1)}
        table = recipe.function(traces, planted.targets, planted.factors)
        assert isinstance(table, pd.DataFrame)
        for printed in (one for one in recipe.published if one.task == task):
            rows = table[(table["variant"] == printed.variant) & (table["scope"] != "seed")]
            found = rows["r"] if printed.measure == "r" else rows[rows["measure"] == printed.measure]["value"]
            assert len(found) == 1 and found.notna().all()


def test_the_runs_are_not_changed_by_measuring(plant):
    planted = plant("T4")
    traces = {("T-Pos-Att", 0): planted.random_trace(0)}
    before = {name: array.copy() for name, array in traces["T-Pos-Att", 0].items()}
    ANALYSES["R4"].function(traces, planted.targets, planted.factors)
    ANALYSES["R6"].function(traces, planted.targets, planted.factors)
    assert all((traces["T-Pos-Att", 0][name] == array).all() for name, array in before.items())


@pytest.mark.parametrize("module", ["accuracy", "attention", "profile", "analyses", "strategy", "traces"])
def test_worked_examples(module):
    assert doctest.testmod(importlib.import_module(f"unseen.metrics.{module}")).failed == 0
