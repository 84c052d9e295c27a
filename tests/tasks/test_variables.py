"""Variables of every task: their form, what they decide, and that plain brute force finds the same."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from unseen.errors import UsageError
from unseen.tasks import TASKS, task
from unseen.tasks.base import Examples, Task
from unseen.tasks.variables import NONE, Variable, get_variable

NAMES = [entry.name for entry in TASKS if entry.target.startswith("unseen.")]


def draw(chosen: Task, n: int = 60) -> Examples:
    return chosen.sample("iid" if "iid" in chosen.splits else "train", n, data_seed="test")


@pytest.mark.parametrize("name", NAMES)
def test_every_task_names_its_variables(name: str) -> None:
    chosen = task(name)
    for split in list(chosen.splits)[:3]:
        examples = chosen.sample(split, 40)
        # From the inputs alone: factors and targets are hidden.
        blind = Examples(examples.inputs, np.zeros_like(examples.targets), {})
        variables = chosen.variables(blind)
        assert variables
        for key, variable in variables.items():
            assert variable.values.shape == (40,) and variable.values.dtype == np.int64, key
            assert variable.values.max() < variable.count and variable.values.min() >= NONE, key
            for columns in (variable.causes, variable.context):
                assert columns is None or (columns.ndim == 2 and len(columns) == 40), key


@pytest.mark.parametrize("name", NAMES)
def test_its_own_value_changes_no_answer(name: str) -> None:
    chosen = task(name)
    examples = draw(chosen)
    for key, variable in chosen.variables(examples).items():
        if variable.causal:
            np.testing.assert_array_equal(chosen.answer_with(examples, key, variable.values), examples.targets, key)
            nothing = np.full(len(examples), NONE)
            np.testing.assert_array_equal(chosen.answer_with(examples, key, nothing), examples.targets, key)


@pytest.mark.parametrize("name", NAMES)
def test_equal_contexts_exchange_answers(name: str) -> None:
    """Of two examples with the same context, either has the other's answer once it has the other's value."""
    chosen = task(name)
    examples = draw(chosen, 250)
    for key, variable in chosen.variables(examples).items():
        if not variable.causal or variable.context is None:
            continue
        rows = variable.context.tolist()
        for first, second in itertools.pairwise(sorted(range(len(rows)), key=rows.__getitem__)):
            has_values = min(variable.values[[first, second]]) >= 0
            if has_values and rows[first] == rows[second]:
                pair = examples[np.array([first])]
                answer = chosen.answer_with(pair, key, variable.values[[second]])
                np.testing.assert_array_equal(answer[0], examples.targets[second], key)


def test_causes_decide_the_value() -> None:
    for name in ("ctl/A", "ctl/S", "retrieval/T6", "rules/mha"):
        examples = draw(task(name), 300)
        for key, variable in task(name).variables(examples).items():
            if variable.causes is not None:
                seen: dict[tuple[int, ...], int] = {}
                for causes, value in zip(variable.causes.tolist(), variable.values.tolist(), strict=True):
                    assert seen.setdefault(tuple(causes), value) == value, key


@pytest.mark.parametrize("order", ["backward", "forward"])
def test_ctl_follows_the_generators_factors(order: str) -> None:
    chosen = task("ctl/lengths", order=order)
    examples = chosen.sample("train", 200)
    variables = chosen.variables(examples)
    longest = int(examples.factors["length"].max())
    for k in range(longest + 1):
        np.testing.assert_array_equal(variables[f"symbol[{k}]"].values, examples.factors["symbols"][:, k])
    for k in range(1, longest + 1):
        np.testing.assert_array_equal(variables[f"function[{k}]"].values, examples.factors["functions"][:, k - 1])
        np.testing.assert_array_equal(variables[f"group[{k}]"].values, examples.factors["groups"][:, k - 1])
        token = variables[f"token[{k}]"].values
        here = np.flatnonzero(token >= 0)
        shown = examples.inputs["token"][here, token[here]] - chosen.spec.target.width
        np.testing.assert_array_equal(shown, examples.factors["functions"][here, k - 1])


def test_ctl_answers_with_another_symbol_by_hand() -> None:
    chosen = task("ctl/A")
    examples = chosen.sample("train", 50)
    tables = chosen.actual_world.tables
    length = examples.factors["length"]
    values = np.full(50, 3)
    answers = chosen.answer_with(examples, "symbol[1]", values)
    for index in range(50):
        symbol = 3
        for function in examples.factors["functions"][index, 1 : length[index]]:
            symbol = tables[function, symbol]
        assert answers[index] == symbol


def test_retrieval_by_moving_the_bit() -> None:
    """Moving the only occurrence of a feature in the input gives the answer that the variable promises."""
    chosen = task("retrieval/T6", length=6, features=10)
    examples = chosen.sample("ood/single", 300)
    variables = chosen.variables(examples)
    first, position = variables["first[0]"].values, variables["first_position[0]"].values
    occurs = examples.inputs["sequence"][np.arange(300), :, first].sum(1)
    once = np.flatnonzero((occurs == 1) & (position >= 0))
    assert len(once) > 50
    moved = (position + 3) % 6
    sequence = examples.inputs["sequence"].copy()
    sequence[once, position[once], first[once]] = 0
    sequence[once, moved[once], first[once]] = 1
    changed = Examples({**examples.inputs, "sequence": sequence}, examples.targets, {})[once]
    expected = chosen.answer_with(examples, "first_position[0]", moved)[once]
    np.testing.assert_array_equal(chosen.solve(changed), expected)
    assert (expected != examples.targets[once]).any()


@pytest.mark.parametrize("kind", ["T1", "T2", "T3", "T4", "T5"])
def test_retrieval_by_deleting_the_feature(kind: str) -> None:
    chosen = task(f"retrieval/{kind}", length=5, features=12)
    examples = chosen.sample("iid", 200)
    variables = chosen.variables(examples)
    pairs = 2 if kind == "T5" else 1
    assert f"order[{pairs - 1}]" in variables or kind == "T1"
    feature = variables["first[0]"].values
    sequence = examples.inputs["sequence"].copy()
    sequence[np.arange(200), :, feature] = 0
    changed = Examples({**examples.inputs, "sequence": sequence}, examples.targets, {})
    # A deleted feature may belong to the other pair, too: only then may the two differ.
    shared = np.zeros(200, bool)
    if pairs == 2:
        shared = (feature == variables["first[1]"].values) | (feature == variables["second[1]"].values)
    absent = chosen.answer_with(examples, "first_present[0]", np.zeros(200, np.int64))
    np.testing.assert_array_equal(chosen.solve(changed)[~shared], absent[~shared])


def test_rules_by_changing_the_input() -> None:
    for name, key, token in (("rules/mlp", "rule", None), ("rules/mha", "rule[2]", 2), ("rules/rnn", "rule[3]", 3)):
        chosen = task(name)
        examples = draw(chosen)
        other = (chosen.variables(examples)[key].values + 1) % 8
        rule = examples.inputs["rule"].copy()
        if token is None:
            rule[:] = other
        else:
            rule[:, token] = other
        changed = Examples({**examples.inputs, "rule": rule}, examples.targets, {})
        np.testing.assert_array_equal(chosen.answer_with(examples, key, other), chosen.solve(changed))


def test_rules_by_brute_force() -> None:
    chosen = task("rules/mha", setting="regression")
    examples = draw(chosen, 30)
    variables = chosen.variables(examples)
    rule = examples.inputs["rule"]
    blocks = examples.inputs["features"].reshape(30, 10, 8, 4).astype(np.float64)
    for n in (0, 7):
        own = blocks[np.arange(30), :, rule[:, n]]  # (B, N, 4)
        for column, side in ((0, "first"), (1, "second")):
            distance = np.abs(own[:, :, column] - own[:, n : n + 1, column])
            distance[:, n] = np.inf
            np.testing.assert_array_equal(variables[f"{side}_token[{n}]"].values, distance.argmin(1))
        moved = np.full(30, 4)
        answers = chosen.answer_with(examples, f"first_token[{n}]", moved)
        second = variables[f"second_token[{n}]"].values
        alpha, beta = chosen.parameters.alpha[rule[:, n]], chosen.parameters.beta[rule[:, n]]
        expected = alpha * own[:, 4, 2] + beta * own[np.arange(30), second, 3]
        np.testing.assert_allclose(answers[:, n, 0], expected, rtol=1e-5)
        others = np.delete(np.arange(10), n)
        np.testing.assert_array_equal(answers[:, others], chosen.solve(examples)[:, others])


def test_rnn_states_are_the_classes() -> None:
    chosen = task("rules/rnn")
    examples = draw(chosen)
    variables = chosen.variables(examples)
    for n in range(10):
        np.testing.assert_array_equal(variables[f"state[{n}]"].values, examples.targets[:, n, 0])


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("gcog/")])
def test_gcog_follows_the_generators_factors(name: str) -> None:
    chosen = task(name)
    for split in list(chosen.splits)[:2]:
        examples = chosen.sample(split, 100)
        variables = chosen.variables(examples)
        path = examples.factors["path"]
        for level in range(path.shape[1]):
            if f"branch[{level}]" in variables:
                np.testing.assert_array_equal(variables[f"branch[{level}]"].values, path[:, level])
        # The node on the path that is a leaf has the answer.
        nodes = np.stack([v.values for key, v in variables.items() if key.startswith("node")], 1)
        for row, turns, target in zip(nodes, path.tolist(), examples.targets, strict=True):
            node = 0
            for turn in turns:
                if turn >= 0:
                    node = 2 * node + (1 if turn else 2)
            assert row[node] == target


def test_gcog_by_moving_the_object() -> None:
    chosen = task("gcog/distractor", coding="embedding")
    examples = chosen.sample("train", 200)
    variables = chosen.variables(examples)
    place = variables["target_place"].values
    there = np.flatnonzero(place >= 0)
    stimulus = [name for name in examples.inputs if name.startswith("stimulus")]
    free = np.array([int(np.flatnonzero(row == 0)[5]) for row in examples.inputs[stimulus[0]]])
    inputs = {name: values.copy() for name, values in examples.inputs.items()}
    for name in stimulus:
        inputs[name][there, free[there]] = inputs[name][there, place[there]]
        inputs[name][there, place[there]] = 0
    moved = chosen.solve(Examples(inputs, examples.targets, {}))
    expected = chosen.answer_with(examples, "target_place", np.where(place >= 0, free, NONE))
    np.testing.assert_array_equal(moved, expected)
    assert (moved != examples.targets).mean() > 0.2


def test_wrong_variables_are_refused() -> None:
    variables = task("ctl/A").variables(task("ctl/A").sample("train", 5))
    with pytest.raises(UsageError, match=r"no variable 'symbol\[1'.*Did you mean"):
        get_variable(variables, "symbol[1")
    with pytest.raises(ValueError, match="outside"):
        Variable(np.array([0, 3]), 3)
    with pytest.raises(UsageError, match="does not say"):
        task("rules/rnn").answer_with(task("rules/rnn").sample("train", 5), "state[1]", np.zeros(5, np.int64))
