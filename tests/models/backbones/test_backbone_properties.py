"""What padding, order, later tokens, other examples and longer streams may change, and what not."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from support.backbone_cases import CASES, LINEAR, RECURRENT, STEPWISE, TRANSFORMERS, Case, double, named
from support.specimens import SPECS, random_inputs
from unseen.errors import UsageError
from unseen.models import options
from unseen.models.build import build
from unseen.models.context import Context, CountingContext
from unseen.spec import Field, GridShape, Spec, Stream, Target

seeds = settings(derandomize=True, deadline=None, max_examples=3)
CLOSE: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-9}

HOLES = {
    "once": Spec(
        (Stream("first", 5), Stream("second", 7, GridShape(2, 3)), Stream("third", 4)),
        (
            Field("a", "category", 6, "first"),
            Field("real", "mask", 1, "first"),
            Field("b", "real", 3, "second"),
            Field("c", "bits", 4, "third"),
            Field("there", "mask", 1, "third"),
            Field("q", "real", 2),
        ),
        Target("category", 4),
    ),
    "along": Spec(
        (Stream("other", 3), Stream("tokens", 6)),
        (
            Field("a", "category", 5, "other"),
            Field("x", "real", 3, "tokens"),
            Field("real", "mask", 1, "tokens"),
            Field("q", "category", 4),
        ),
        Target("real", 2, "tokens"),
    ),
}


def with_holes(spec: Spec, batch: int, seed: int) -> dict[str, Tensor]:
    """Random inputs in double precision, masked anywhere; something is left of every stream."""
    inputs = random_inputs(spec, batch, seed)
    generator = torch.Generator().manual_seed(seed)
    for field in spec.inputs:
        if field.kind == "mask":
            mask = torch.rand(inputs[field.name].shape, generator=generator) < 0.6
            mask[:, seed % mask.shape[1]] = True
            inputs[field.name] = mask
    return {k: v.double() if v.is_floating_point() else v for k, v in inputs.items()}


def masks(spec: Spec) -> dict[str | None, str]:
    return {f.along: f.name for f in spec.inputs if f.kind == "mask"}


@pytest.mark.parametrize("form", HOLES)
@pytest.mark.parametrize("case", CASES, ids=named)
@given(seed=st.integers(0, 1000))
@seeds
def test_padding_is_as_if_it_were_not_there(case: Case, form: str, seed: int) -> None:
    """Wherever it lies, its content makes no difference, not to a bit."""
    spec = HOLES[form]
    module, inputs = double(case, spec), with_holes(spec, 3, seed)
    prediction, noise = module(inputs), with_holes(spec, 3, seed + 1)
    changed = dict(inputs)
    for stream, mask in masks(spec).items():
        for field in spec.along(stream):
            if field.kind != "mask":
                real = inputs[mask] if field.kind == "category" else inputs[mask][..., None]
                changed[field.name] = torch.where(real, inputs[field.name], noise[field.name])
    again = module(changed)
    if spec.target.along:  # what is answered at padding itself is nobody's business
        real = inputs[masks(spec)[spec.target.along]]
        prediction, again = prediction[real], again[real]
    assert torch.equal(again, prediction)


@pytest.mark.parametrize("form", HOLES)
@pytest.mark.parametrize(
    "case", [c for c in CASES if c[0] in (*STEPWISE, "ndr") or c[1].get("positions") == "none"], ids=named
)
@given(seed=st.integers(0, 1000))
@seeds
def test_without_positions_holes_close(case: Case, form: str, seed: int) -> None:
    """Models that know no places, or only the order of tokens, read an example with holes like one without them."""
    spec = HOLES[form]
    module, inputs = double(case, spec), with_holes(spec, 1, seed)
    real = {stream: inputs[mask][0] for stream, mask in masks(spec).items()}
    dense = {f.name: inputs[f.name][:, real[f.along]] if f.along in real else inputs[f.name] for f in spec.inputs}
    expected = module(inputs)
    if spec.target.along:
        expected = expected[:, real[spec.target.along]]
    torch.testing.assert_close(module(dense), expected, **CLOSE)


SET = Spec(
    (Stream("tokens", 7, "set"),),
    (
        Field("x", "real", 3, "tokens"),
        Field("rule", "category", 4, "tokens"),
        Field("real", "mask", 1, "tokens"),
        Field("q", "real", 2),
    ),
    Target("real", 2, "tokens"),
)
ANY_ORDER = [c for c in CASES if c[0] not in (*STEPWISE, "ndr") and not c[1].get("causal")]


@pytest.mark.parametrize("case", ANY_ORDER, ids=named)
@given(seed=st.integers(0, 1000))
@seeds
def test_a_set_has_no_order(case: Case, seed: int) -> None:
    """Under every scheme: tokens in another order give the answers in that order, and one answer stays the same."""
    order = torch.randperm(7, generator=torch.Generator().manual_seed(seed))
    inputs = with_holes(SET, 3, seed)
    other = {f.name: inputs[f.name][:, order] if f.along else inputs[f.name] for f in SET.inputs}
    module = double(case, SET)
    real = other["real"]
    torch.testing.assert_close(module(other)[real], module(inputs)[:, order][real], **CLOSE)
    once = double(case, Spec(SET.streams, SET.inputs, Target("binary", 2)))
    torch.testing.assert_close(once(other), once(inputs), **CLOSE)


@pytest.mark.parametrize(
    "case", [c for c in CASES if c[1].get("positions", "sinusoidal") != "none" and not c[1].get("causal")], ids=named
)
def test_a_sequence_has_one(case: Case) -> None:
    """The counterpart: where there are positions, or the order tells, it makes a difference."""
    spec = Spec((Stream("tokens", 7),), SET.inputs, Target("real", 2))
    inputs = with_holes(spec, 3, 1)
    inputs["real"][:] = True
    other = {f.name: inputs[f.name].flip(1) if f.along else inputs[f.name] for f in spec.inputs}
    module = double(case, spec)
    assert (module(other) - module(inputs)).abs().min() > 1e-6


CAUSAL = RECURRENT + LINEAR + [c for c in TRANSFORMERS if c[1].get("causal")]


@pytest.mark.parametrize("case", CAUSAL, ids=named)
@given(seed=st.integers(0, 1000), cut=st.integers(1, 9))
@seeds
def test_no_token_knows_later_ones(case: Case, seed: int, cut: int) -> None:
    spec = SPECS["rules/rnn"]
    module = double(case, spec)
    inputs, other = (
        {k: v.double() if v.is_floating_point() else v for k, v in random_inputs(spec, 2, s).items()}
        for s in (seed, seed + 1)
    )
    mixed = {k: torch.cat([inputs[k][:, :cut], other[k][:, cut:]], 1) for k in inputs}
    torch.testing.assert_close(module(mixed)[:, :cut], module(inputs)[:, :cut], **CLOSE)
    assert not torch.allclose(module(mixed)[:, cut:], module(inputs)[:, cut:])


FORMS = {**{name: SPECS[name] for name in ("rules/mlp", "rules/mha", "ctl", "retrieval")}, **HOLES}


@pytest.mark.parametrize("task", FORMS)
@pytest.mark.parametrize("case", CASES, ids=named)
def test_examples_are_answered_one_by_one_and_nothing_is_drawn(case: Case, task: str) -> None:
    """Another batch changes no answer; two passes are equal; dropout comes from the context alone."""
    spec = FORMS[task]
    module = double(case, spec)
    inputs = {k: v.double() if v.is_floating_point() else v for k, v in random_inputs(spec, 4).items()}
    prediction, state = module(inputs), torch.get_rng_state()
    torch.testing.assert_close(module({k: v[[2, 0]] for k, v in inputs.items()}), prediction[[2, 0]], **CLOSE)
    counting = CountingContext()
    assert torch.equal(module(inputs, counting), prediction) and counting.used > 0
    one, two = (
        torch.randint(-(2**15), 2**15, (counting.used,), generator=torch.Generator().manual_seed(s), dtype=torch.int16)
        for s in (0, 1)
    )
    dropped = [module(inputs, Context(bits)) for bits in (one, one, two)]
    assert torch.equal(dropped[0], dropped[1]) and not torch.equal(dropped[0], dropped[2])
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("case", CASES, ids=named)
def test_traces_have_the_usual_names(case: Case) -> None:
    for task, rows in (("ctl", 1), ("rules/rnn", 10)):
        spec = SPECS[task]
        module, inputs, counting = (
            build(options(case[0], **case[1]), spec, 0),
            random_inputs(spec, 3),
            CountingContext(),
        )
        prediction = module(inputs, counting)
        ctx = Context(wanted=counting.names)
        module(inputs, ctx)
        width = case[1]["width"]
        assert ctx.captured["readout.state"].shape == ((3, width) if rows == 1 else (3, rows, width))
        torch.testing.assert_close(module.read_out.project(ctx.captured["readout.state"]), prediction)
        recurrent = case[0] in STEPWISE
        length = sum(s.length for s in spec.streams) + (rows == 1)
        assert ctx.captured["encoder.state"].shape == (3, length if recurrent else rows, width)
        if case[0] not in (*STEPWISE, "perceiver"):
            attention = ctx.captured["encoder.attention"]
            assert attention.shape == (3, case[1]["heads"], rows, length)
        assert ("gating.weights" in ctx.captured) == (
            case[0] == "moe-transformer" or (case[0] == "modular" and case[1].get("gating", "joint") != "none")
        )
        if "gating.weights" in ctx.captured:
            assert ctx.captured["gating.weights"].shape[:2] == (3, spec.streams[0].length)
            torch.testing.assert_close(ctx.captured["gating.weights"].sum(-1), torch.ones(3, spec.streams[0].length))


def test_learned_places_are_as_many_as_asked_for() -> None:
    spec = SPECS["rules/rnn"]
    for name in ("transformer", "universal-transformer", "perceiver", "modular", "moe-transformer"):
        given_places = {"width": 16, "heads": 2, "positions": "learned"}
        longer = random_inputs(spec, 2, lengths={"tokens": 13})
        with pytest.raises(UsageError, match=r"know 10 places of stream 'tokens', 13 arrived.*more places"):
            build(options(name, **given_places), spec)(longer)
        assert build(options(name, **given_places, places=13), spec)(longer).shape == (2, 13, 32)
        with pytest.raises(UsageError, match=r"places = 9: expected at least the 10 positions of stream 'tokens'"):
            build(options(name, **given_places, places=9), spec)
        with pytest.raises(UsageError, match=r"'none' have no position table"):
            options(name, width=16, positions="none", places=13)
    grid = build(options("transformer", width=8, positions="learned", places=7), SPECS["gcog integer"])
    assert [len(p) for p in grid.embed.positions["stimulus"].tables] == [10, 10]
    assert len(grid.embed.positions["rule"].tables[0]) == 7
    set_has_none = build(options("transformer", width=8, positions="learned", places=2), SPECS["rules/mha"])
    assert not list(set_has_none.embed.positions.parameters())


@pytest.mark.parametrize(
    ("name", "given_options", "said"),
    [
        ("transformer", {"width": 10}, "does not split into 4 heads"),
        ("universal-transformer", {"width": 12, "positions": "rotary"}, "even width, which rotary"),
        ("perceiver", {"width": 10}, "does not split into 4 heads"),
        ("ndr", {"width": 10}, "does not split into 4 heads"),
        ("modular", {"width": 4, "modules": 17}, "16 hidden units can't be divided among 17 modules"),
        ("moe-transformer", {"width": 10}, "does not split into 4 heads"),
        ("moe-transformer", {"experts": 2, "top_k": 3}, "top_k = 3 is more than the 2 experts"),
        ("gla", {"width": 10}, "does not split into 4 heads"),
        ("deltanet", {"width": 10}, "does not split into 4 heads"),
    ],
)
def test_sizes_that_can_not_be_are_refused(name: str, given_options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        build(options(name, **given_options), SPECS["ctl"])
