from __future__ import annotations

import numpy as np
import pytest

import unseen
from unseen.tasks import TASKS
from unseen.tasks.base import Examples
from unseen.training.analyses.inside_measures import choose_subject

NAMES = [entry.name for entry in TASKS if entry.target.startswith("unseen.")]


@pytest.mark.parametrize("name", NAMES)
def test_the_subject_of_every_task_is_one_of_its_variables(name: str) -> None:
    task = unseen.task(name)
    subject = choose_subject(task)
    assert subject is not None
    variables = task.variables(task.sample("train", 60))
    assert variables[subject.variable].causal
    for position in subject.positions:
        assert position == "all" or position.isdigit() or variables[position].positions


def test_records_of_probes_and_interchange() -> None:
    task = unseen.task("ctl/A")
    evaluation = unseen.Evaluation(splits=("iid", "ood/any"), examples=200, analyses=("interchange", "probes"))
    options = unseen.model("ctl-transformer", width=16, heads=2, feedforward=16, layers=2)
    runs = unseen.train(task, options, seeds=2, steps=5, batch=20, evaluation=evaluation, progress="none")
    table = runs.table[runs.table["factor"] == "variable,site,position"]
    assert set(table["metric"]) == {
        "probes/accuracy",
        "probes/selectivity",
        "interchange/accuracy",
        "interchange/unchanged",
        "interchange/moved",
    }
    assert {"symbol[1],encoder.state,token[1]", "symbol[1],encoder.blocks.0:1,all"} <= set(table["level"])
    assert set(table["split"]) == {"iid", "ood/any"}


def test_ablation_of_modules() -> None:
    task = unseen.task("rules/mlp", rules=2)
    evaluation = unseen.Evaluation(splits=("iid",), examples=100, analyses=("ablation",))
    options = unseen.model("rules-mlp", gating="operation")
    runs = unseen.train(task, options, seeds=2, steps=5, batch=20, evaluation=evaluation, progress="none")
    drops = runs.table[runs.table["metric"] == "ablation/drop"]
    assert len(drops) and set(drops["factor"]) == {"module"}
    mean = runs.table[runs.table["metric"] == "ablation/mean_drop"]
    by_seed = drops.groupby(["seed", "selection"])["value"].mean()
    for row in mean.to_dict("records"):
        assert by_seed[row["seed"], row["selection"]] == pytest.approx(row["value"])


def test_accuracy_on_known_and_new_functions() -> None:
    task = unseen.task("ctl/A", functions=8, train_size=2000)
    options = unseen.model("ctl-transformer", width=16, heads=2, feedforward=16, layers=2)
    runs = unseen.train(task, options, seeds=2, steps=5, batch=20, progress="none")
    table = runs.accuracy_by_function("ood/transition", n=500)
    assert list(table["function"]) == ["known", "new"] * 2
    assert (table.groupby("seed")["n"].sum() == 500).all() and (table["n"] > 0).all()
    weighted = (table["accuracy"] * table["n"]).groupby(table["seed"]).sum() / 500
    for seed in (0, 1):
        score = unseen.evaluate(runs.model(seed), task, splits=("ood/transition",), examples=500)
        overall = score[(score["metric"] == "accuracy") & (score["factor"] == "")]["value"].iloc[0]
        assert weighted[seed] == pytest.approx(overall)


def test_known_and_new_functions_as_records() -> None:
    task = unseen.task("ctl/A", functions=8, train_size=2000)
    evaluation = unseen.Evaluation(splits=("iid", "ood/transition"), examples=300, analyses=("functions",))
    options = unseen.model("ctl-transformer", width=16, heads=2, feedforward=16, layers=2)
    runs = unseen.train(task, options, seeds=2, steps=5, batch=20, evaluation=evaluation, progress="none")
    records = runs.table[(runs.table["metric"] == "functions/accuracy") & (runs.table["selection"] == "best")]
    assert set(records["factor"]) == {"function"} and set(records["level"]) == {"known", "new"}
    table = runs.accuracy_by_function("ood/transition", n=300).set_index(["seed", "function"])
    for row in records[records["split"] == "ood/transition"].to_dict("records"):
        expected = table.loc[(row["seed"], row["level"])]
        assert (row["value"], row["n"]) == (expected["accuracy"], expected["n"])
    # By brute force: the maps that the tables of every training chain, one after the other, make of the symbols.
    tables = task.actual_world.tables

    def maps(examples: Examples) -> list[bytes]:
        maps_of_chains = []
        for functions in examples.factors["functions"].tolist():
            symbols = np.arange(8)
            for function in functions:
                symbols = tables[function][symbols] if function >= 0 else symbols
            maps_of_chains.append(symbols.tobytes())
        return maps_of_chains

    for seed in (0, 1):
        known = set(maps(task.sample("train", 2000, data_seed=seed)))
        count = sum(each in known for each in maps(task.sample("ood/transition", 300, data_seed="test")))
        assert table.loc[(seed, "known"), "n"] == count


def test_two_rules_are_not_mistaken_for_the_examples() -> None:
    # Activations whose first axis are the rules (2) or the modules were taken for those of a batch of two examples.
    task = unseen.task("rules/mlp", rules=2)
    evaluation = unseen.Evaluation(splits=("iid",), examples=100, analyses=("probes", "interchange"))
    options = unseen.model("rules-mlp", gating="operation")
    runs = unseen.train(task, options, seeds=2, steps=5, batch=20, evaluation=evaluation, progress="none")
    measured = runs.table[runs.table["metric"] == "probes/accuracy"]
    assert set(measured["level"].str.split(",").str[0]) == {"rule"}
    assert set(runs.probe("rule", n=100)["n"]) == {50}


def test_other_errors_than_missing_pairs_are_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    from unseen.analysis.interchange import NoPairs
    from unseen.errors import UsageError
    from unseen.models.build import build
    from unseen.training.analyses import interchange
    from unseen.training.stack import Stack

    task = unseen.task("retrieval/T1", length=4, features=8)
    stack = Stack([build(unseen.model("retrieval-transformer", width=8), task.spec, 0)])
    evaluation = unseen.Evaluation(splits=("iid",), examples=100)
    for error in (UsageError("something else"), NoPairs("no pairs")):

        def fail(*_: object, error: UsageError = error) -> None:
            raise error

        monkeypatch.setattr(interchange, "interchange_table", fail)
        if isinstance(error, NoPairs):
            assert interchange.measures(stack, task, evaluation) == [[]]
        else:
            with pytest.raises(UsageError, match="something else"):
                interchange.measures(stack, task, evaluation)
