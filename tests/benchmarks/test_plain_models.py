"""The loops we compare with train what they say: models written by hand, given our weights, have our loss.

Those of the gcog family are compared in `tests/models/gcog/test_gcog_models.py`, in values and gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pytest
import torch
from benchmarks.cases import CASES, Case, case_of, rules_case
from benchmarks.loop import LoopContext, ask, loss, plain_loop, published_loop, ready
from torch import Tensor, nn

from unseen.models.build import parameter_count
from unseen.training.loss import loss as our_loss

State = Mapping[str, Tensor]
_RETRIEVAL = {
    "embed": "embed.linear",
    "query": "decoder.query",
    "in_projection": "encoder.blocks.0.attention.input",
    "out_projection": "encoder.blocks.0.attention.output",
    "first": "encoder.blocks.0.expand",
    "second": "encoder.blocks.0.contract",
    "norm1": "encoder.blocks.0.norm_first",
    "norm2": "encoder.blocks.0.norm_second",
    "hidden": "decoder.hidden",
    "answer": "decoder.answer",
}
_ENDS = {
    "encoder.0": "encoder.hidden",
    "encoder.2": "encoder.output",
    "decoder.0": "decoder.hidden",
    "decoder.2": "decoder.answer",
}


def linear(ours: State, names: Mapping[str, str]) -> dict[str, Tensor]:
    """Layers by their names there and here; the library keeps weights the other way round."""
    return {
        f"{there}.{part}": ours[f"{here}.{part}"].t() for there, here in names.items() for part in ("weight", "bias")
    }


def mixture(ours: State, first: str, second: str) -> dict[str, Tensor]:
    """Two layers of modules: ours has scores apart, and the biases of the second layer below its weights."""
    modules, hidden = ours["core.first_bias"].shape
    weight = ours["core.first"]
    grouped = weight if len(weight) == modules else weight[0].unflatten(1, (modules, hidden)).transpose(0, 1)
    answers, biases = ours["core.second"][: modules * hidden], ours["core.second"][modules * hidden :]
    made = {f"{first}.weight": grouped, f"{first}.bias": ours["core.first_bias"]}
    if "core.score" in ours:
        return made | {
            f"{second}.weight": torch.cat([answers.unflatten(0, (modules, hidden)), ours["core.score"][..., None]], -1),
            f"{second}.bias": torch.cat([biases, ours["core.score_bias"][:, None]], -1),
        }
    return {
        f"{first}.weight": grouped[0].T,
        f"{first}.bias": ours["core.first_bias"][0],
        f"{second}.weight": answers.T,
        f"{second}.bias": biases[0],
    }


def mlp(ours: State) -> dict[str, Tensor]:
    names = {
        "number.0": "number.0",
        "number.2": "number.2",
        "rule.0": "rule.first",
        "rule.2": "rule.second",
        "decoder.0": "decoder.hidden",
        "decoder.2": "decoder.answer",
    }
    joint = "core.score" in ours
    return linear(ours, names) | mixture(ours, *(("first", "second") if joint else ("core.0", "core.2")))


def mha(ours: State) -> dict[str, Tensor]:
    core = 128
    parts = (core, core, core, ours["project.bias"].numel() - 3 * core)
    made = linear(ours, _ENDS) | mixture(ours, "output.0", "output.2")
    for kind in ("weight", "bias"):
        for name, part in zip(("query", "key", "value", "own"), ours[f"project.{kind}"].split(parts, -1), strict=True):
            made[f"{name}.{kind}"] = part.t()
    return made


def rnn(ours: State) -> dict[str, Tensor]:
    made = linear(ours, _ENDS)
    if "score" in ours:
        by_module = {
            name: ours[f"{mine}_weight"].permute(2, 1, 3, 0).flatten(0, 2)
            for name, mine in (("input", "input"), ("hidden", "state"))
        }
        return (
            made
            | {f"{name}.weight": value for name, value in by_module.items()}
            | {"score": ours["score"].permute(2, 0, 1, 3).flatten(1)}
        )
    as_library = [0, 1, 3, 2]  # ours: input, forget, output, trial
    made |= {
        f"lstm.weight_{there}_l0": ours[f"{mine}_weight"][:, as_library, 0].flatten(1).T
        for there, mine in (("ih", "input"), ("hh", "state"))
    }
    return made | {
        f"lstm.bias_{there}_l0": ours["bias"][place, as_library, 0].flatten()
        for place, there in enumerate(("ih", "hh"))
    }


WEIGHTS: dict[str, Callable[[State], dict[str, Tensor]]] = {
    "retrieval-transformer": lambda ours: linear(ours, _RETRIEVAL),
    "rules-mlp": mlp,
    "rules-mha": mha,
    "rules-rnn": rnn,
}


def compared() -> Iterator[tuple[Case, str]]:
    yield case_of("retrieval-transformer batch=10"), "published loop"
    for kind in ("mlp", "mha", "rnn"):
        for gating in ("none", "joint"):
            case = rules_case(kind, 32, 8, gating)
            yield from ((case, figure) for figure in case.published)


@pytest.mark.parametrize(("case", "figure"), list(compared()), ids=lambda one: getattr(one, "name", one))
def test_written_by_hand_and_ours_have_the_same_loss(case: Case, figure: str) -> None:
    ours, theirs = case.module(3).double(), case.published[figure]().double().eval()
    theirs.load_state_dict(WEIGHTS[case.model](dict(ours.named_parameters())), strict=False)
    inputs, targets = ready(case, 32)
    given = {name: value.double() if value.is_floating_point() else value for name, value in inputs.items()}
    target = case.make_task().spec.target
    expected = our_loss(ours(given), targets.double(), target)
    torch.testing.assert_close(loss(ask(theirs, case, given), targets.double(), target), expected, rtol=1e-9, atol=0)


def test_every_parameter_of_a_plain_model_is_compared() -> None:
    """So `strict=False` above lets nothing slip but buffers that are worked out."""
    for case, figure in compared():
        names = {name for name, _ in case.published[figure]().named_parameters()}
        assert names == WEIGHTS[case.model](dict(case.module().named_parameters())).keys()


@pytest.mark.parametrize("case", [case for case in CASES if case.published], ids=lambda case: case.name)
def test_written_by_hand_and_ours_are_of_one_size(case: Case) -> None:
    for make in case.published.values():
        assert parameter_count(make()) == parameter_count(case.module())


def test_loops_change_every_parameter(monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of("retrieval-transformer batch=10")
    module = case.module()
    before = {name: value.clone() for name, value in module.named_parameters()}
    monkeypatch.setattr(Case, "module", lambda self, seed=0: module)
    step = plain_loop(case)
    step()
    assert all((value != before[name]).any() for name, value in module.named_parameters())


def test_a_published_loop_learns() -> None:
    case = rules_case("mlp", 32, 2, "none")
    made = case.published["published loop"]()
    step = published_loop(Case(**{**vars(case), "published": {"it": lambda: made}}), "it")
    inputs, targets = ready(case, 512)
    target = case.make_task().spec.target
    first = loss(ask(made, case, inputs), targets, target).item()
    for _ in range(60):
        step()
    assert loss(ask(made, case, inputs), targets, target).item() < first


def test_dropout_of_a_loop_is_the_librarys() -> None:
    x = torch.ones(20_000)
    dropped = LoopContext().dropout(x, 0.2)
    assert set(dropped.unique().tolist()) == {0.0, 1.25} and LoopContext().training
    assert abs((dropped == 0).float().mean().item() - 0.2) < 0.02
    assert set(LoopContext().dropout(x, 0.2, scaled=False).unique().tolist()) == {0.0, 1.0}
    assert isinstance(case_of("retrieval-transformer batch=10").published["published loop"](), nn.Module)
