"""`runs.probe`, `runs.intervene`, `runs.ablate` and `unseen inspect` on small trained models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import unseen
from support.users import Plain
from unseen.cli.main import app
from unseen.errors import UsageError
from unseen.report.figures.inside import average_accuracy, inside_chart
from unseen.spec import Spec
from unseen.stats import mean_interval, wilson
from unseen.training.inside import average_over_seeds


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> unseen.Runs:
    task = unseen.task("retrieval/T6", length=4, features=8)
    out = tmp_path_factory.mktemp("inside") / "t6"
    return unseen.train(task, "retrieval-transformer", seeds=3, steps=30, batch=50, out=out, progress="none")


def test_probes_of_all_seeds(runs: unseen.Runs) -> None:
    table = runs.probe(["second_position[0]", "first[0]"], n=300)
    assert set(table["seed"]) == {0, 1, 2} and {"embed", "encoder.state"} <= set(table["site"])
    assert ((table["accuracy"] - table["control"]) == table["selectivity"]).all()
    assert table["accuracy"].between(0, 1).all()
    pd.testing.assert_frame_equal(table, runs.probe(["second_position[0]", "first[0]"], n=300))
    # Where the second feature is, is not at a token before all others: no token knows the future here.
    causal = table[(table["site"] == "encoder.state") & (table["position"] == "0") & (table["variable"] != "first[0]")]
    assert len(causal) == 3


def test_interchange_of_all_seeds(runs: unseen.Runs) -> None:
    table = runs.intervene("first_position[0]", n=100, sites=["encoder.state", "embed"])
    assert table["matched"].all()
    whole = table[table["position"] == "all"]
    assert len(whole) == 6
    # Everything that the query reads comes from the source, which has the same query: the source's own answer.
    both = whole[whole["site"] == "encoder.state"].set_index("seed")["accuracy"]
    embedded = whole[whole["site"] == "embed"].set_index("seed")["accuracy"]
    np.testing.assert_array_equal(both, embedded)
    at_later = runs.intervene("first_position[0]", n=100, sites=["encoder.state"], positions=["second_position[0]"])
    assert list(at_later["position"].unique()) == ["second_position[0]"]
    small = runs.intervene("first_position[0]", n=60, sites=["encoder.state"], positions=[1], dimension=2)
    assert {"control", "dimension"} <= set(small.columns)


def test_a_member_of_a_stack_is_intervened_on_as_alone(runs: unseen.Runs) -> None:
    alone = unseen.train(runs.task, "retrieval-transformer", seeds=[1], steps=30, batch=50, progress="none")
    table = runs.intervene("first_position[0]", n=80, sites=["encoder.state"])
    one = alone.intervene("first_position[0]", n=80, sites=["encoder.state"])
    pd.testing.assert_frame_equal(table[table["seed"] == 1].reset_index(drop=True), one)


def test_averages(runs: unseen.Runs) -> None:
    table = runs.intervene("first_position[0]", n=80, sites=["encoder.state"])
    means = unseen.average_over_seeds(table)
    pd.testing.assert_frame_equal(means, average_over_seeds(table))
    # The intervals of the table are over pairs: Wilson's.
    for row in table.to_dict("records"):
        interval = wilson(round(row["accuracy"] * row["n"]), row["n"], covers="examples")
        assert (row["low"], row["high"]) == (interval.low, interval.high)
    assert (means["seeds"] == 3).all() and (means["low"] <= means["accuracy"]).all()


def test_intervals_of_shares_stay_on_their_scale() -> None:
    rows = pd.DataFrame({"variable": "v", "site": "s", "position": "0", "accuracy": [0.0, 0.0, 0.4]})
    table = rows.assign(selectivity=rows["accuracy"] - 0.1, moved=1 - rows["accuracy"])
    for metric, lowest in (("accuracy", 0.0), ("moved", 0.0), ("selectivity", -1.0)):
        (mean,) = average_over_seeds(table, metric).to_dict("records")
        assert lowest <= mean["low"] < mean[metric] < mean["high"] <= 1.0, metric


def test_ablation(runs: unseen.Runs) -> None:
    parts = [unseen.Component("decoder.attention", position=p) for p in range(4)]
    table = runs.ablate(parts, how="zero", n=200)
    assert len(table) == 12 and (table["intact"] - table["accuracy"] == table["drop"]).all()
    assert len(runs.ablate(unseen.Component("encoder.attention", head=0), how="resample", n=100)) == 3


def test_wrong_use(runs: unseen.Runs) -> None:
    with pytest.raises(UsageError, match="no variable 'first_positon"):
        runs.probe("first_positon[0]")
    with pytest.raises(UsageError, match=r"no activation 'encoder\.stat'"):
        runs.probe("first[0]", sites=["encoder.stat"])
    with pytest.raises(UsageError, match="positions 0 … 3, not 7"):
        runs.probe("first[0]", sites=["encoder.state"], positions=[7])
    with pytest.raises(UsageError, match="not positions of tokens"):
        runs.probe("first[0]", sites=["encoder.state"], positions=["second[0]"])
    assert runs.sites()["encoder.state"] == (4, 100)


class OneSequence(nn.Module):
    """Reads the rule and then the stimulus as one sequence, and answers from a token of its own."""

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.tokens = nn.Identity()
        self.reader = nn.Identity()
        self.colors = spec.field("stimulus_color").width
        self.answer = nn.Linear(self.colors, spec.target.width)

    def forward(self, inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        rule = nn.functional.one_hot(inputs["rule_color"].long(), self.colors).float()
        stimulus = nn.functional.one_hot(inputs["stimulus_color"].long(), self.colors).float()
        states = self.tokens(torch.cat([rule, stimulus], 1))
        return self.answer(self.reader(states.mean(1, keepdim=True))[:, 0])


def test_places_are_counted_in_their_stream() -> None:
    # Where a site had the tokens of rule and stimulus, the place of the target was taken for one in the rule; and a
    # single read-out token passed for the first token of the stimulus.
    features = (("shape", ("a", "b", "c", "d")), ("color", ("red", "green", "blue", "cyan")))
    options = {"grid": (4, 4), "distractors": (1, 2), "ood_distractors": (4,), "features": features}
    task = unseen.task("gcog/distractor", coding="embedding", **options)
    runs = unseen.train(task, OneSequence, seeds=[0], steps=1, batch=10, progress="none")
    examples = task.sample(task.validation, 300, data_seed="test")
    rows = runs.probe("target", n=300, positions="target_place", sites=["tokens", "reader"])
    assert list(rows["site"]) == ["tokens"]
    # Four colours can be told apart there, and so a quarter of the sixteen objects can.
    place = task.variables(examples)["target_place"].values
    there = np.flatnonzero(place >= 0)
    assert (examples.inputs["stimulus_color"][there, place[there]] > 0).all()
    assert rows["accuracy"].iloc[0] > 2 * rows["chance"].iloc[0]
    exchanged = runs.intervene("target_place", n=100, positions="target_place", sites=["tokens", "reader"])
    assert set(exchanged.loc[exchanged["position"] != "all", "site"]) == {"tokens"}


@pytest.mark.parametrize("name", ["ctl-bilstm", "ctl-transformer", "ctl-ndr", "lstm", "perceiver"])
def test_the_token_of_a_function_is_the_one_that_shows_it(name: str) -> None:
    # The Bi-LSTM leaves out the start marker: its sites had the token of a function one place further to the right.
    task = unseen.task("ctl/A", functions=4, symbols=4, max_length=4, train_size=60, iid_size=10, ood_size=20)
    runs = unseen.train(task, unseen.model(name, width=16), seeds=[0], steps=1, batch=10, progress="none")
    rows = runs.probe("function[1]", "train", n=60, positions="token[1]").set_index("site")["accuracy"]
    assert rows["embed"] > 0.95, rows
    if name == "ctl-bilstm":  # one direction reads the tokens in reverse, and returns them in the order of the task
        assert rows["leftwards"] > 0.95, rows
    assert not any("latent" in site for site in rows.index)


def test_the_command(runs: unseen.Runs, tmp_path: Path) -> None:
    runner = CliRunner()
    listed = runner.invoke(app, ["inspect", str(runs.path)])
    assert listed.exit_code == 0 and "first_position[0]" in listed.output and "encoder.state" in listed.output
    options = ["--site", "encoder.state", "-n", "200"]
    shown = runner.invoke(app, ["inspect", str(runs.path), "first_position[0]", *options])
    assert shown.exit_code == 0, shown.output
    assert "interchange" in shown.output and "encoder.state" in shown.output and "[" in shown.output
    for name in ("inside.svg", "inside.csv"):
        written = runner.invoke(
            app, ["inspect", str(runs.path), "first_position[0]", *options, "--out", str(tmp_path / name)]
        )
        assert written.exit_code == 0, written.output
        assert (tmp_path / name).stat().st_size > 500
    assert "interchange" in (tmp_path / "inside.csv").read_text()
    # What is about a variable was ignored without one.
    for option in ("--site", "--position", "--split", "--out"):
        refused = runner.invoke(app, ["inspect", str(runs.path), option, "encoder.state"])
        assert isinstance(refused.exception, UsageError) and option in str(refused.exception)


def test_a_class_that_a_directory_names_runs_only_if_it_is_trusted(tmp_path: Path) -> None:
    small = unseen.task("retrieval/T6", length=4, features=8)
    kept = unseen.train(small, Plain, seeds=[0], steps=1, batch=10, progress="none", out=tmp_path / "plain")
    refused = CliRunner().invoke(app, ["inspect", str(kept.path)])
    assert isinstance(refused.exception, UsageError) and "--trust" in str(refused.exception)
    listed = CliRunner().invoke(app, ["inspect", str(kept.path), "--trust"])
    assert listed.exit_code == 0 and "answer" in listed.output


def test_wrong_components_are_refused(runs: unseen.Runs) -> None:
    part = unseen.Component
    for component, how, message in (
        (part("encoder.stat"), "zero", r"no activation 'encoder\.stat'.*'encoder\.state'"),
        (part("encoder.state", position=9), "zero", "positions 0 … 3, not 9"),
        (part("encoder.state", head=0), "zero", "'encoder.state' has no heads"),
        (part("encoder.attention", head=1), "mean", "heads 0 … 0, not 1"),
        (part("encoder.state", unit=100), "zero", "units 0 … 99, not 100"),
        (part("encoder.state"), "nois", "no ablation 'nois'. Did you mean 'noise'"),
        (part("embed.positions"), "mean", "the same for all examples"),
    ):
        with pytest.raises(UsageError, match=message):
            runs.ablate(component, how=how, n=100)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="n must be at least 2, and there are 1 pairs"):
        runs.intervene("first_position[0]", n=1, sites="encoder.state", dimension=1)
    single = runs.probe("first[0]", sites="encoder.state", positions="all", n=100)
    assert set(single["site"]) == {"encoder.state"} and set(single["position"]) == {"all"}


def test_noise_instead_of_positions_has_their_norm(runs: unseen.Runs) -> None:
    import torch

    from unseen.randomness import stream
    from unseen.training.interventions import noise_of_equal_norm

    assert runs.sites()["embed.positions"] == (4, 100)
    positions = torch.randn(2, 4, 100)
    noise = noise_of_equal_norm(positions, stream("test", "noise").block())
    torch.testing.assert_close(noise.norm(dim=-1), positions.norm(dim=-1))
    assert torch.nn.functional.cosine_similarity(noise, positions, dim=-1).abs().max() < 0.6
    # One position at a time, and the same noise for all examples: in one chunk or in several.
    table = runs.ablate(unseen.Component("embed.positions"), how="noise", n=200)
    assert len(table) == 3 and table["accuracy"].between(0, 1).all()
    model = runs.model(0)
    inputs = {"sequence": torch.rand(5, 4, 8).round()}
    embedded = model.embed(inputs["sequence"])
    model.embed.positions = None
    without = model.embed(inputs["sequence"])
    from unseen.models.layers.positions import sinusoids

    torch.testing.assert_close(
        embedded - without, sinusoids(4, 100, torch.float32, torch.device("cpu")).expand(5, 4, 100)
    )


def test_cut_edges_of_a_trained_attention(runs: unseen.Runs) -> None:
    import torch

    from unseen.training.evaluate import draw_examples
    from unseen.training.interventions import cut_edges, tensors
    from unseen.training.stack import Edit, Stack

    table = runs.cut("encoder.attention", query="second_position[0]", key="first_position[0]", n=300)
    assert list(table["seed"]) == [0, 1, 2] and (table["n"] <= 300).all()
    assert (table["drop"] == table["intact"] - table["accuracy"]).all()
    # Nobody attends to anything that comes later: cutting these edges changes nothing.
    later = runs.cut("encoder.attention", query=1, key=3, n=100)
    assert (later["changed"] == 0).all() and (later["drop"] == 0).all()
    reader = runs.cut("decoder.attention", key="all", n=100)
    assert reader["changed"].between(0, 1).all()
    # Only the state of the token that attends changes, to what the other weights give.
    stack = Stack([runs.model(0)])
    examples = draw_examples(runs.task, "iid", 50, "test")
    inputs = tensors(stack, runs.task, examples)
    where = torch.zeros(1, 50, 1, 4, 4, dtype=torch.bool)
    where[..., 2, 1] = True
    sites = ["encoder.attention", "encoder.state"]
    _, before = stack.predict(inputs, sites)
    _, after = stack.predict(inputs, sites, edits={"encoder.attention": Edit(cut_edges, (where,))})
    same = (before["encoder.state"] == after["encoder.state"]).flatten(0, 1).all(-1)
    assert same[:, [0, 1, 3]].all() and not same[:, 2].any()
    weights = before["encoder.attention"][0, :, 0, 2].clone()
    weights[:, 1] = 0
    torch.testing.assert_close(
        cut_edges(before["encoder.attention"], where)[0, :, 0, 2], weights / weights.sum(-1, keepdim=True)
    )
    with pytest.raises(UsageError, match=r"'encoder\.state' has no attention weights"):
        runs.cut("encoder.state", key=1)
    with pytest.raises(UsageError, match="single reader"):
        runs.cut("decoder.attention", query=1, key=1)


def test_the_picture_has_intervals_over_seeds(runs: unseen.Runs) -> None:
    table = runs.probe("first[0]", n=100, sites="encoder.state").assign(measure="probe")
    cells = average_accuracy(table)
    for row in cells.to_dict("records"):
        values = table[table["position"] == row["position"]]["accuracy"]
        interval = mean_interval(values, covers="initialisation")
        assert row["mean"] == pytest.approx(values.mean()) and row["runs"] == 3
        assert (row["low"], row["high"]) == (max(interval.low, 0), min(interval.high, 1))
    first = cells.iloc[0]
    assert f"{first['low']:.2f}–{first['high']:.2f}" in str(inside_chart(cells).to_dict())
