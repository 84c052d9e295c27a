"""Sizes and starts as published, the names the paper uses, what is refused, and the examples of the real tasks."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from support.gcog_models import inputs, model, spec
from unseen.errors import UsageError
from unseen.models import MODELS, options
from unseen.models.build import build, parameter_count
from unseen.models.context import Context, CountingContext
from unseen.spec import Spec
from unseen.tasks import task
from unseen.training.batches import input_tensors

PAPER: Spec = task("gcog/productive").spec
SIZES: list[tuple[str, dict[str, Any], int]] = [
    ("RNN", {}, 494_218),
    ("GRU", {}, 1_339_018),
    ("SSTfmr", {}, 1_652_362),
    ("DSTfmr", {}, 3_230_602),
    ("CrossAttn", {}, 1_524_618),
    ("Perceiver", {}, 4_284_298),
    ("SSTfmr", {"positions": "relative"}, 1_638_026),
    ("DSTfmr", {"positions": "relative"}, 3_190_410),
    ("CrossAttn", {"positions": "relative"}, 1_484_426),
    ("Perceiver", {"positions": "relative"}, 4_244_106),
    ("SSTfmr", {"hidden": 256}, 763_530),
    ("DSTfmr", {"hidden": 256}, 1_488_522),
    ("CrossAttn", {"hidden": 256}, 1_226_122),
    ("Perceiver", {"hidden": 256}, 1_818_762),
    ("Perceiver", {"latents": "learned"}, 4_284_298 + 10 * 512),
    ("SSTfmr", {"positions": "relative", "causal": False}, 1_638_026 + 200 * 256),
    *(
        ("gcog-bert", {"layers": layers, "heads": 4, "positions": "absolute"}, count)
        for layers, count in ((1, 828_298), (2, 1_618_058), (3, 2_407_818), (4, 3_197_578))
    ),
    *(
        ("gcog-bert", {"layers": layers, "heads": heads}, count)
        for layers, counts in (
            (1, (813_962, 775_370, 768_938)),
            (2, (1_589_386, 1_512_202, 1_499_338)),
            (3, (2_364_810, 2_249_034, 2_229_738)),
            (4, (3_140_234, 2_985_866, 2_960_138)),
        )
        for heads, count in zip((1, 4, 8), counts, strict=True)
    ),
]


@pytest.mark.parametrize(("name", "given", "count"), SIZES, ids=str)
def test_as_many_parameters_as_published(name: str, given: dict[str, Any], count: int) -> None:
    assert parameter_count(build(options(name, **given), PAPER)) == count


def test_the_paper_s_names_are_other_names_of_the_same_models() -> None:
    names = {
        "RNN": "gcog-rnn",
        "GRU": "gcog-gru",
        "SSTfmr": "gcog-single-stream",
        "DSTfmr": "gcog-dual-stream",
        "CrossAttn": "gcog-cross-attention",
        "Perceiver": "gcog-perceiver",
    }
    for theirs, ours in names.items():
        assert options(theirs) == options(ours) and options(theirs).options() == {"name": ours}
        assert theirs in MODELS and theirs not in [entry.name for entry in MODELS]
    with pytest.raises(UsageError, match="Did you mean 'CrossAttn'"):
        options("CrosAttn")


def uniform(values: Tensor, bound: float) -> bool:
    """Whether values look uniform within ±bound."""
    values = values.detach()
    spread = values.std().item() / (bound / math.sqrt(3))
    return bool(0.9 * bound < values.abs().max() <= bound * (1 + 1e-6)) and 0.95 < spread < 1.05


def test_starts_as_published() -> None:
    module = build(options("gcog-perceiver", positions="relative"), PAPER)
    absolute, relative = module.streams.stimulus.block.attention, module.streams.rule.block.attention
    assert uniform(absolute.weight, math.sqrt(6 / 1024)) and not absolute.bias.any()
    assert uniform(absolute.output.weight, 1 / 16) and not absolute.output.bias.any()
    assert uniform(relative.weight, 1 / 16) and uniform(relative.bias, 1 / 16) and relative.output is None
    assert relative.table.weight.std().item() == pytest.approx(1, rel=0.02)
    query, key, value = module.to_rule.attention.weight.split([512, 256, 256])
    assert uniform(query, math.sqrt(6 / 1024))
    assert uniform(key, math.sqrt(6 / 768)) and uniform(value, math.sqrt(6 / 768))
    assert uniform(module.among.weight, math.sqrt(6 / 2048))
    assert uniform(module.streams.rule.embed.weight, 8**-0.5)
    assert uniform(module.streams.stimulus.embed.weight, 3**-0.5)
    assert uniform(module.mlp.layers[0].weight, 512**-0.5)
    joint = build(options("gcog-single-stream"), PAPER).stream.embed
    assert uniform(joint.weight, 11**-0.5) and joint.bias.abs().max() <= 11**-0.5 and joint.bias.any()
    for name in ("gcog-rnn", "gcog-gru"):
        recurrent = build(options(name), PAPER)
        for weight in (recurrent.input_weight, recurrent.state_weight, recurrent.input_bias, recurrent.state_bias):
            assert uniform(weight, 512**-0.5)
    categories = task("gcog/productive", coding="embedding").spec
    vectors = build(options("gcog-dual-stream"), categories).streams.rule.embed
    assert vectors.weight.std().item() == pytest.approx(1, rel=0.02) and not vectors.bias.any()
    latents = build(options("gcog-perceiver", latents="learned"), PAPER).latents
    assert latents.shape == (10, 512) and latents.std().item() == pytest.approx(0.02, rel=0.05)


NAMES = [
    "gcog-rnn",
    "gcog-gru",
    "gcog-single-stream",
    "gcog-dual-stream",
    "gcog-cross-attention",
    "gcog-perceiver",
    "gcog-bert",
]


@pytest.mark.parametrize("coding", ["integer", "onehot", "embedding"])
@pytest.mark.parametrize("name", NAMES)
def test_an_answer_does_not_depend_on_the_rest_of_the_batch(name: str, coding: str) -> None:
    made = task("gcog/productive", coding=coding)
    module = build(options(name, **({"layers": 2} if name == "gcog-bert" else {})), made.spec).double()
    examples = made.sample("train", 6, data_seed=0)
    given = input_tensors(examples.inputs, made.spec, torch.float64, "cpu")  # single precision rounds by some 2e-6
    lengths = given["rule_mask"].sum(1).tolist()
    assert {2, 5} <= set(lengths)
    with torch.no_grad():
        together = module(given)
        for i, length in enumerate(lengths):
            alone = {
                f.name: given[f.name][i : i + 1, :length] if f.along == "rule" else given[f.name][i : i + 1]
                for f in made.spec.inputs
            }
            torch.testing.assert_close(module(alone)[0], together[i], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_longer_questions_and_the_released_task(name: str) -> None:
    module = build(options(name, **({"layers": 2} if name == "gcog-bert" else {})), PAPER)
    made = task("gcog/productive")
    deep = input_tensors(made.sample("ood/depth=7", 2, data_seed=0).inputs, PAPER, torch.float32, "cpu")
    assert deep["rule"].shape[1] == 23 and module(deep).shape == (2, 138)
    released = task("gcog/productive", preset="released")
    assert [f.name for f in released.spec.inputs] == ["rule", "stimulus"]
    given = input_tensors(released.sample("train", 3, data_seed=0).inputs, released.spec, torch.float32, "cpu")
    assert build(options(name), released.spec)(given).shape == (3, 138)


TRACES: dict[str, dict[str, tuple[int, ...]]] = {
    "gcog-rnn": {"encoder.state": (5, 5, 10)},
    "gcog-single-stream": {"encoder.attention": (5, 1, 1, 18), "encoder.state": (5, 8)},
    "gcog-dual-stream": {
        "rule.attention": (5, 1, 1, 5),
        "rule.state": (5, 8),
        "stimulus.attention": (5, 1, 1, 13),
        "stimulus.state": (5, 8),
    },
    "gcog-cross-attention": {
        "rule.attention": (5, 1, 1, 5),
        "rule.state": (5, 8),
        "stimulus.attention": (5, 1, 13, 13),
        "stimulus.state": (5, 13, 8),
        "cross.attention": (5, 1, 1, 13),
    },
    "gcog-perceiver": {
        "rule.attention": (5, 1, 5, 5),
        "rule.state": (5, 5, 8),
        "stimulus.attention": (5, 1, 13, 13),
        "stimulus.state": (5, 13, 8),
        "cross.rule.attention": (5, 1, 1, 5),
        "cross.stimulus.attention": (5, 1, 1, 13),
    },
    "gcog-bert": {"encoder.0.attention": (5, 2, 18, 18), "encoder.attention": (5, 2, 1, 18)},
}


@pytest.mark.parametrize("name", TRACES)
def test_captured_activations(name: str) -> None:
    of = spec()
    sizes = {"gcog-rnn": {"width": 10}, "gcog-bert": {"width": 8, "layers": 2, "heads": 2}}
    module = model(name, of, **sizes.get(name, {"width": 8, "hidden": 10}))
    counting = CountingContext(training=False)
    module(inputs(of), counting)
    ctx = Context(wanted=counting.names)
    prediction = module(inputs(of), ctx)
    read = 8 if name == "gcog-bert" else 10
    assert {key: tuple(value.shape) for key, value in ctx.captured.items()} == {
        **TRACES[name],
        "readout.state": (5, read),
    }
    torch.testing.assert_close(module.head.answer(ctx.captured["readout.state"]), prediction)
    for key, weights in ctx.captured.items():
        if key.endswith("attention"):
            torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))
            if key.startswith("rule"):
                assert not weights.transpose(1, 3)[~inputs(of)["rule_mask"]].any(), "padding is not looked at"


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("gcog-single-stream", {"causal": False}, "causal=false belongs to positions=relative"),
        ("gcog-single-stream", {"positions": "relative", "stim_position": "fixed"}, "belong to positions=absolute"),
        ("gcog-bert", {"pos_dropout": 0.1}, "belong to positions=absolute"),
        ("gcog-dual-stream", {"latents": "learned"}, "unknown option 'latents'"),
        ("gcog-gru", {"activation": "tanh"}, "unknown option 'activation'"),
    ],
)
def test_switches_that_do_not_go_together(name: str, given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        options(name, **given)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(UsageError, match="does not split into 3 heads"):
        build(options("gcog-bert", heads=3), PAPER)
    with pytest.raises(UsageError, match="streams 'rule' and 'stimulus'"):
        build(options("gcog-rnn"), task("retrieval/T1").spec)
    of, long = spec(), spec(longest=101)
    rule = {f.name: torch.zeros(1, 101, f.width) for f in of.along("rule")}
    given = {**rule, "rule_mask": torch.ones(1, 101, dtype=torch.bool), "stimulus": torch.zeros(1, 13, 3)}
    with pytest.raises(UsageError, match="distances up to 99, 101 tokens arrived"):
        build(options("gcog-dual-stream", positions="relative"), long)(given)
    with pytest.raises(UsageError, match="room for a rule of 100 tokens, 101 arrived"):
        build(options("gcog-single-stream", stim_position="fixed"), long)(given)
    with pytest.raises(UsageError, match="a stimulus of 13 tokens, 12 arrived"):
        build(options("gcog-gru"), of)({**given, "stimulus": torch.zeros(1, 12, 3)})
