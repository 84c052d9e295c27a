"""What every registered model promises, on stand-ins for the specs of every task."""

from __future__ import annotations

import re

import pytest
import torch
from specimens import SPECS, prediction_shape, random_inputs
from stacks import Members
from torch import Tensor

from unseen.errors import UsageError
from unseen.models import BACKBONES, MODELS, options
from unseen.models.build import build
from unseen.models.layers.tape import CountingTape, Tape
from unseen.spec import Grid, Spec

NAMES = [entry.name for entry in MODELS if entry.target.startswith("unseen.")]  # not the stand-ins of other tests
FLAT = ["gcog-rnn", "gcog-gru"]
"""They read a grid as one vector, whose length is that of the grid."""


def accepts(name: str, task: str) -> bool:
    """Whether the model reads the task; one that does not must say so in a line or two."""
    try:
        build(options(name), SPECS[task], 0)
    except UsageError as error:
        assert len(str(error).splitlines()) <= 2
        return False
    return True


PAIRS = [(name, task) for name in NAMES for task in SPECS if accepts(name, task)]


@pytest.mark.parametrize("name", NAMES)
def test_options_round_trip(name: str) -> None:
    chosen = options(name)
    assert chosen.options() == {"name": name}
    assert type(chosen).parse(chosen.model_dump()) == chosen
    with pytest.raises(UsageError, match=r"widht.*Did you mean 'width'"):
        options(name, widht=3)
    with pytest.raises(UsageError, match="dropout"):
        options(name, dropout=1.0)


def test_generic_models_read_every_task_and_family_models_their_own() -> None:
    assert {(name, task) for name in BACKBONES for task in SPECS} <= set(PAIRS)
    assert {name for name, _ in PAIRS} == set(NAMES)
    for name in set(NAMES) - set(BACKBONES):
        family = name.partition("-")[0]
        assert {re.split("[/ ]", task)[0] for other, task in PAIRS if other == name} == {family}


@pytest.mark.parametrize(("name", "task"), PAIRS)
def test_shapes_gradients_traces_and_lengths(name: str, task: str) -> None:
    spec = SPECS[task]
    module = build(options(name), spec, 0)
    loose = [s for s in spec.streams if not (name in FLAT and isinstance(s.order, Grid))]
    for lengths in ({}, {s.name: s.length + 3 for s in loose}, {s.name: 1 for s in loose}):
        inputs = random_inputs(spec, 3, lengths=lengths)
        counting = CountingTape()
        prediction = module(inputs, counting)
        assert prediction.shape == prediction_shape(spec, 3, lengths)
        assert prediction.isfinite().all()
        tape = Tape(wanted=counting.names)
        module(inputs, tape)
        assert set(tape.kept) == set(counting.names) and len(counting.names) == len(set(counting.names))
        assert all(len(kept) == 3 for kept in tape.kept.values())
    inputs = random_inputs(spec, 3)
    gradients = torch.autograd.grad(module(inputs).square().sum(), list(module.parameters()))
    for (parameter, _), gradient in zip(module.named_parameters(), gradients, strict=True):
        assert gradient.isfinite().all() and gradient.any(), parameter
    assert not list(module.buffers())


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
    everyone = [0, 1, 2]
    together, gradients = members.gradients(members.parameters(everyone), everyone, 0)
    for group in ([0], [2], [2, 1]):
        own, own_gradients = members.gradients(members.parameters(group), group, 0)
        assert torch.equal(own, together[group])
        for parameter, a, b in zip(members.names, own_gradients, gradients, strict=True):
            assert torch.equal(a, b[group]), parameter


MASKED = [task for task, spec in SPECS.items() if any(f.kind == "mask" for f in spec.inputs)]
SCHEMES = [
    ("lstm", {}),
    ("lstm", {"layers": 2}),
    *(("transformer", {"positions": p}) for p in ("none", "sinusoidal", "learned", "rotary", "relative")),
    ("transformer", {"norm": "post", "causal": True}),
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
