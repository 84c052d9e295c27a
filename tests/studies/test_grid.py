"""Grids: what is at which crossing, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unseen.errors import UsageError
from unseen.studies.grid import Grid
from unseen.studies.trial import Entry

BASE = {"task": {"name": "retrieval/T6"}, "model": {"name": "retrieval-transformer"}}
# Axes that touch different options, with levels to draw from; the last touches two parts at once.
OPTIONS: dict[str, dict[Any, dict[str, dict[str, Any]]]] = {
    "length": {n: {"task": {"length": n}} for n in range(5, 9)},
    "width": {n: {"model": {"width": n}} for n in (20, 30, 40)},
    "positions": {p: {"model": {"positions": p}} for p in ("none", "sinusoidal")},
    "attention": {a: {"model": {"self_attention": a}} for a in (True, False)},
    "pace": {
        "slow": {"recipe": {"steps": 90}, "evaluation": {"examples": 70}},
        "fast": {"recipe": {"steps": 30}, "evaluation": {"examples": 80}},
    },
}


def value(entry: Entry, part: str, option: str) -> object:
    return getattr(getattr(entry.trial, part), option)


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    names = draw(st.lists(st.sampled_from(sorted(OPTIONS)), unique=True, max_size=4))
    axes: dict[str, Mapping[Any, Any]] = {}
    for name in names:
        levels = draw(st.lists(st.sampled_from(list(OPTIONS[name])), unique=True, min_size=1))
        axes[name] = {level: OPTIONS[name][level] for level in levels}
    rules = []
    for _ in range(draw(st.integers(0, 2)) if names else 0):
        touched = draw(st.lists(st.sampled_from(names), unique=True, min_size=1, max_size=2))
        rules.append(
            {
                axis: draw(
                    st.one_of(
                        st.sampled_from(list(axes[axis])),
                        st.lists(st.sampled_from(list(axes[axis])), min_size=1, max_size=2),
                    )
                )
                for axis in touched
            }
        )
    seeds = draw(st.lists(st.integers(0, 50), unique=True, min_size=1, max_size=3))
    return Grid(axes, BASE, seeds, draw(st.sampled_from([None, 0, 7])), without=rules)


def excluded(grid: Grid, levels: Mapping[str, object]) -> bool:
    """Plainly: does any rule match?"""
    for rule in grid.without:
        if all(levels[axis] in (wanted if isinstance(wanted, list) else [wanted]) for axis, wanted in rule.items()):
            return True
    return False


@settings(derandomize=True, deadline=None, max_examples=60)
@given(grids())
def test_a_grid_is_the_product_of_its_axes_minus_what_is_left_out(grid: Grid) -> None:
    entries = grid.entries()
    whole = Grid(grid.axes, BASE, grid.seeds, grid.data_seed).entries()
    assert len(whole) == math.prod(map(len, grid.axes.values())) * len(grid.seeds)
    assert [e.levels for e in entries] == [e.levels for e in whole if not excluded(grid, e.levels)]
    assert len({e.trial.id for e in whole}) == len(whole)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(grids())
def test_the_settings_of_an_entry_are_what_its_levels_say(grid: Grid) -> None:
    for entry in grid.entries():
        assert list(entry.levels) == list(grid.axes)
        assert entry.trial.data_seed == (entry.trial.seed if grid.data_seed is None else grid.data_seed)
        for axis, level in entry.levels.items():
            for part, options in OPTIONS[axis][level].items():
                for option, wanted in options.items():
                    assert value(entry, part, option) == wanted


@settings(derandomize=True, deadline=None, max_examples=40)
@given(grids(), st.randoms(use_true_random=False))
def test_the_order_of_axes_levels_and_seeds_changes_no_id(grid: Grid, random: Any) -> None:
    def shuffled(found: Any) -> list[Any]:
        return random.sample(list(found), len(list(found)))

    axes = {
        axis: {level: grid.axes[axis][level] for level in shuffled(grid.axes[axis])} for axis in shuffled(grid.axes)
    }
    other = Grid(axes, BASE, shuffled(grid.seeds), grid.data_seed, without=shuffled(grid.without))
    assert {e.trial.id: e.levels for e in grid.entries()} == {e.trial.id: e.levels for e in other.entries()}


def test_later_axes_win_over_earlier_ones_and_over_the_base() -> None:
    grid = Grid(
        {"first": {"a": {"recipe": {"steps": 1, "batch": 1}}}, "second": {"b": {"recipe": {"steps": 2}}}},
        {**BASE, "recipe": {"steps": 3, "batch": 3, "clip": 3.0}},
        [0],
    )
    recipe = grid.entries()[0].trial.recipe
    assert (recipe.steps, recipe.batch, recipe.clip) == (2, 1, 3.0)


def test_a_level_may_change_task_model_and_recipe_together() -> None:
    worlds = {
        "order": {"task": {"name": "retrieval/T6"}, "model": {"name": "lstm"}, "recipe": {"steps": 5}},
        "one": {
            "task": {"name": "retrieval/T1"},
            "model": {"name": "transformer"},
            "recipe": {"name": "retrieval-paper"},
        },
    }
    grid = Grid({"world": worlds}, {}, [0])
    found = [(e.trial.task.name, e.trial.model.name, e.trial.recipe.name, e.trial.recipe.steps) for e in grid.entries()]
    assert found == [
        ("retrieval/T6", "lstm", "quick", 5),
        ("retrieval/T1", "transformer", "retrieval-paper", 1_000_000),
    ]


def test_axes_of_a_group_advance_together_and_cross_the_others() -> None:
    axes = {name: OPTIONS[name] for name in ("positions", "width", "attention")}
    grid = Grid(axes, BASE, [0], together=[["positions", "attention"]])
    found = [tuple(e.levels.values()) for e in grid.entries()]
    assert found == [(p, w, a) for p, a in (("none", True), ("sinusoidal", False)) for w in (20, 30, 40)]


def test_equal_parts_are_built_once() -> None:
    entries = Grid({"width": OPTIONS["width"]}, BASE, range(4)).entries()
    assert len({id(e.trial.task) for e in entries}) == 1
    assert len({id(e.trial.model) for e in entries}) == 3


def test_a_grid_without_axes_is_its_base() -> None:
    assert [(e.levels, e.trial.seed) for e in Grid({}, BASE, [3, 1]).entries()] == [({}, 3), ({}, 1)]


def test_levels_keep_their_type() -> None:
    levels = {True: {}, 2.5: {"recipe": {"clip": 2.5}}, "x": {"recipe": {"clip": 1}}}
    assert [type(e.levels["a"]) for e in Grid({"a": levels}, BASE, [0]).entries()] == [bool, float, str]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"axes": {"seed": {1: {}}}}, "axis 'seed': the records have a column of this name"),
        ({"axes": {"task_options": {1: {}}}}, "axis 'task_options': the records have a column"),
        ({"axes": {"recipe": {"quick": {}}}}, "axis 'recipe': the records have a column"),
        ({"axes": {"two words": {1: {}}}}, "axis 'two words': an axis is a column"),
        ({"axes": {"task": {"T1": {"task": {"name": "retrieval/T1"}}}}}, "called by the name of their task"),
        ({"axes": {"model": {"lstm": {"task": {"length": 5}}}}}, r"expected model: \{name: lstm\}"),
        ({"axes": {"a": {}}}, "axis 'a' has no levels"),
        ({"axes": {"a": {None: {}}}}, "axis 'a', level 'None': a level is a word"),
        ({"axes": {"a": {1: None}}}, "axis 'a', level '1': expected settings"),
        ({"axes": {"a": {1: {"modle": {}}}}}, "axis 'a', level '1': unknown part 'modle'. Did you mean 'model'?"),
        ({"axes": {"a": {1: {"model": 5}}}}, "axis 'a', level '1': model needs options by name, got 5"),
        ({"axes": {"a": {1: {"model": {"name": 5}}}}}, "axis 'a', level '1': model name = 5 is not a name"),
        ({"together": [["length", "hight"]]}, "together: unknown axis 'hight'"),
        ({"together": [["length", "width"]]}, "'length' has 4, 'width' has 3"),
        ({"together": [["length"], ["length"]]}, "axis 'length' is named 2 times"),
        ({"without": [{"lenght": 5}]}, "without: unknown axis 'lenght'. Did you mean 'length'?"),
        ({"without": [{"length": [5, 50]}]}, "axis 'length' has no level '50'. Did you mean '5'?"),
        ({"without": [{"length": {"a": 1}}]}, "axis 'length' has no level"),
        ({"seeds": []}, "give at least one seed"),
        ({"seeds": [1, 1]}, "and each once"),
    ],
)
def test_a_wrong_grid_is_refused_when_it_is_made(changed: dict[str, Any], message: str) -> None:
    right = {"axes": {name: OPTIONS[name] for name in ("length", "width")}, "base": BASE, "seeds": [0]}
    Grid(**right)
    with pytest.raises(UsageError, match=message):
        Grid(**{**right, **changed})


@pytest.mark.parametrize(
    ("base", "level", "message"),
    [
        (
            {},
            {"model": {"positons": "none"}},
            "^axis 'a', level 'x': model retrieval-transformer: unknown option 'positons'. Did you mean 'positions'",
        ),
        ({"model": {"positons": "none"}}, {"model": {"width": 5}}, "^base: model .*positons"),
        ({}, {"task": {"name": "retrieval/T9"}}, "^axis 'a', level 'x': unknown task 'retrieval/T9'. Did you mean"),
        ({}, {"recipe": {"name": "retrieval-papper"}}, "^axis 'a', level 'x': unknown recipe 'retrieval-papper'"),
        ({"recipe": {"steps": 5}}, {"recipe": {"steps": 0}}, "^axis 'a', level 'x': recipe .*steps = 0"),
        (
            {"model": {"self_attention": True}},
            {"model": {"feedforward": False}},
            "^axis 'a', level 'x': model .*feedforward",
        ),
        ({"model": {"widht": 5}}, {"model": {"lenght": 5}}, "^base and axis 'a', level 'x': model .*widht.*lenght"),
        (
            {},
            {"evaluation": {"splits": ["ood/singel"]}},
            "^axis 'a', level 'x': evaluation of .*'ood/singel'. Did you mean 'ood/single'",
        ),
        ({}, {"evaluation": {"analyses": ["R77"]}}, "^axis 'a', level 'x': evaluation .*R77"),
    ],
)
def test_a_wrong_option_is_answered_with_its_place(base: dict[str, Any], level: dict[str, Any], message: str) -> None:
    whole = {part: {**BASE.get(part, {}), **base.get(part, {})} for part in {**BASE, **base}}
    grid = Grid({"other": {"y": {}}, "a": {"x": level}}, whole, [0])
    with pytest.raises(UsageError, match=message):
        grid.entries()


def test_a_trial_needs_a_task_and_a_model() -> None:
    for part in BASE:
        rest = {k: v for k, v in BASE.items() if k != part}
        with pytest.raises(UsageError, match=f"no {part} is named"):
            Grid({}, rest, [0]).entries()


def test_seeds_are_whole_and_not_negative() -> None:
    with pytest.raises(UsageError, match="seeds are 0, 1, 2"):
        Grid({}, BASE, [-1]).entries()
