"""What every registered model promises, on stand-ins for the specs of every task."""

from __future__ import annotations

import re

import pytest
import torch
from torch import Tensor

from support.specimens import READ_BY, SPECS, prediction_shape, random_inputs
from support.stacks import Members, assert_same_bits
from unseen.errors import UsageError
from unseen.models import BACKBONES, MODELS, options
from unseen.models.build import build
from unseen.models.context import Context, CountingContext
from unseen.spec import GridShape, Spec, Target

NAMES = [entry.name for entry in MODELS if entry.target.startswith("unseen.")]  # not the stand-ins of other tests
FLAT = ["gcog-rnn", "gcog-gru"]
"""They read a grid as one vector, whose length is that of the grid."""


PAIRS = [(name, task) for name in NAMES for task in READ_BY[name]]
REFUSED = [(name, task) for name in NAMES for task in SPECS if task not in READ_BY[name]]
TARGETS = {"binary": Target("binary"), "category": Target("category", 8), "real": Target("real")}


@pytest.mark.parametrize("name", NAMES)
def test_options_round_trip(name: str) -> None:
    chosen = options(name)
    assert chosen.options() == {"name": name}
    assert type(chosen).parse(chosen.model_dump()) == chosen
    with pytest.raises(UsageError, match=r"widht.*Did you mean 'width'"):
        options(name, widht=3)
    with pytest.raises(UsageError, match="dropout"):
        options(name, dropout=1.0)


def test_every_registered_model_has_a_task() -> None:
    assert set(READ_BY) == set(NAMES) and all(READ_BY.values())


def assert_plain_refusal(name: str, spec: Spec) -> str:
    """The model refuses the task, in a sentence without the repr of an object."""
    with pytest.raises(UsageError) as refusal:
        build(options(name), spec, 0)
    message = str(refusal.value)
    assert len(message.splitlines()) <= 2
    assert not re.search(r"\w\(\w+=", message), message
    return message


@pytest.mark.parametrize(("name", "task"), REFUSED)
def test_family_models_refuse_the_tasks_of_other_families(name: str, task: str) -> None:
    message = assert_plain_refusal(name, SPECS[task])
    assert "this task has" in message or "the task has no input field" in message or "in this task" in message


ANSWERS = {"retrieval": ["binary"], "ctl": ["category"], "gcog": ["category"], "rules-mlp": ["binary", "real"]}
"""The targets, given once per example, that a family predicts; the other rules models predict along a stream."""


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("name", [name for name in NAMES if name not in BACKBONES])
def test_family_models_refuse_other_targets(name: str, kind: str) -> None:
    """The fields are those of the family; only the target differs."""
    spec = SPECS[READ_BY[name][0]]
    changed = Spec(spec.streams, spec.inputs, TARGETS[kind])
    if kind in ANSWERS.get(name, ANSWERS.get(name.partition("-")[0], [])):
        assert build(options(name), changed, 0)(random_inputs(changed, 2)).shape == prediction_shape(changed, 2)
    else:
        assert f"a {kind} target" in assert_plain_refusal(name, changed)


@pytest.mark.parametrize(("name", "task"), PAIRS)
def test_shapes_gradients_activations_and_lengths(name: str, task: str) -> None:
    spec = SPECS[task]
    module = build(options(name), spec, 0)
    loose = [s for s in spec.streams if not (name in FLAT and isinstance(s.order, GridShape))]
    for lengths in ({}, {s.name: s.length + 3 for s in loose}, {s.name: 1 for s in loose}):
        inputs = random_inputs(spec, 3, lengths=lengths)
        counting = CountingContext()
        prediction = module(inputs, counting)
        assert prediction.shape == prediction_shape(spec, 3, lengths)
        assert prediction.isfinite().all()
        ctx = Context(wanted=counting.names)
        module(inputs, ctx)
        assert set(ctx.captured) == set(counting.names) and len(counting.names) == len(set(counting.names))
        assert all(len(activation) == 3 for activation in ctx.captured.values())
    inputs = random_inputs(spec, 3)
    gradients = torch.autograd.grad(module(inputs).square().sum(), list(module.parameters()))
    for (parameter, _), gradient in zip(module.named_parameters(), gradients, strict=True):
        assert gradient.isfinite().all() and gradient.any(), parameter
    assert not list(module.buffers())


class Replacing(Context):
    """Replaces one activation: by a copy, or by other numbers."""

    def __init__(self, replaced: str, copy: bool) -> None:
        super().__init__()
        self.replaced, self.copy = replaced, copy

    def capture(self, name: str, value: Tensor) -> Tensor:
        if name != self.replaced:
            return value
        return value.clone() if self.copy else value.flip(-1) + 0.5


@pytest.mark.parametrize(("name", "task"), PAIRS)
def test_every_activation_can_be_replaced(name: str, task: str) -> None:
    """The pass continues with what `capture` returns: a copy changes nothing, other numbers change the prediction."""
    spec = SPECS[task]
    module = build(options(name), spec, 0)
    inputs = random_inputs(spec, 3)
    counting = CountingContext(training=False)
    prediction = module(inputs, counting)
    for activation in counting.names:
        torch.testing.assert_close(module(inputs, Replacing(activation, copy=True)), prediction)
        changed = module(inputs, Replacing(activation, copy=False))
        assert changed.shape == prediction.shape
        assert not torch.allclose(changed, prediction), activation


@pytest.mark.parametrize(("name", "task"), PAIRS)
def test_parameters_come_from_the_seed_and_touch_no_global_state(name: str, task: str) -> None:
    before = torch.get_rng_state()
    first, again, other = (build(options(name), SPECS[task], seed).state_dict() for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(first[k], again[k]) for k in first)
    assert any(not torch.equal(first[k], other[k]) for k in first)


@pytest.mark.parametrize(("name", "task"), PAIRS)
def test_a_stack_equals_its_members(name: str, task: str) -> None:
    members = Members(options(name), SPECS[task], batch=3, count=3)
    assert_same_bits(members, [[0], [2], [2, 1]])


MASKED = [task for task, spec in SPECS.items() if any(f.kind == "mask" for f in spec.inputs)]
SCHEMES = [
    ("lstm", {}),
    ("lstm", {"layers": 2}),
    *(("transformer", {"positions": p}) for p in ("none", "sinusoidal", "learned", "rotary", "relative")),
    ("transformer", {"norm": "post", "causal": True}),
    *((name, {}) for name in ("moe-transformer", "s4d", "mamba", "gla", "deltanet")),
]
CTL = [
    ("ctl-bilstm", {}),
    *((name, {"read_at": place}) for name in ("ctl-transformer", "ctl-ndr") for place in ("start", "end")),
    ("ctl-ndr", {"form": "original"}),
]
GCOG = [
    *((name, {}) for name in NAMES if name.startswith("gcog-")),
    *((name, {"positions": "relative"}) for name in ("gcog-single-stream", "gcog-dual-stream", "gcog-perceiver")),
    ("gcog-bert", {"positions": "absolute", "layers": 2}),
]
PADDED = [
    *((*scheme, task) for task in MASKED for scheme in SCHEMES),
    *((*model, "ctl") for model in CTL),
    *((*model, task) for model in GCOG for task in MASKED if task.startswith("gcog ")),
]


def repadded(spec: Spec, inputs: dict[str, Tensor], stream: str, real: Tensor) -> dict[str, Tensor]:
    """The same inputs with other content wherever the stream is padded."""
    noise = random_inputs(spec, len(real), seed=77)
    changed = dict(inputs)
    for field in spec.along(stream):
        if field.kind != "mask":
            kept = real if field.kind == "category" else real[..., None]
            changed[field.name] = torch.where(kept, inputs[field.name], noise[field.name])
    return changed


@pytest.mark.parametrize(("name", "given", "task"), PADDED, ids=str)
def test_padding_has_no_influence(name: str, given: dict[str, str], task: str) -> None:
    spec = SPECS[task]
    module = build(options(name, **given), spec, 0)
    inputs = random_inputs(spec, 4, seed=5)
    stream = spec.field("mask").along
    assert stream is not None
    prediction = module(inputs)
    assert not inputs["mask"].all()
    assert torch.equal(module(repadded(spec, inputs, stream, inputs["mask"])), prediction)
    for k in range(4):
        count = int(inputs["mask"][k].sum())
        alone = {
            f.name: inputs[f.name][k : k + 1, :count] if f.along == stream else inputs[f.name][k : k + 1]
            for f in spec.inputs
        }
        torch.testing.assert_close(module(alone)[0], prediction[k], rtol=1e-4, atol=1e-5)
