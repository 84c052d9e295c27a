"""Matching: the width found is the best there is, by counts that are checked by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from support.backbone_cases import Case, named
from support.specimens import SPECS, random_inputs
from unseen.errors import UsageError
from unseen.models import BACKBONES, options
from unseen.models.backbones.modular import ModularBlock
from unseen.models.build import build, parameter_count
from unseen.models.context import Context, CountingContext
from unseen.models.layers.encoder import EncoderBlock
from unseen.models.layers.ndr import NDRBlock
from unseen.models.matching import WIDEST, count_state, count_tokens, match, measure

UNITS = {"lstm": 1, "gru": 1, "rnn": 1, "s4d": 1, "mamba": 1}
"""Of the others widths are multiples of four heads."""
TARGETS = {"parameters": 30_000, "state": 900, "flops": 400_000}


@pytest.mark.parametrize("by", TARGETS)
@pytest.mark.parametrize("name", BACKBONES)
def test_no_other_width_comes_nearer(name: str, by: str) -> None:
    for task in ("rules/mlp", "ctl"):
        spec, to = SPECS[task], TARGETS[by]
        found = match(name, spec, by=by, to=to)
        unit = UNITS.get(name, 4)
        others = {
            w: abs(measure(options(name, width=w), spec, by) - to)
            for w in (found.width - unit, found.width, found.width + unit)
            if w >= 2
        }
        assert found.width % unit == 0 and min(others, key=lambda w: (others[w], w)) == found.width
        assert found.options() == {"name": name, "width": found.width, "matched": {"by": by, "to": to}}


@pytest.mark.parametrize("name", BACKBONES)
def test_counts_are_those_of_what_is_built(name: str) -> None:
    """Parameters by adding them up, operations by the library's counter, and no numbers are drawn for it."""
    before = torch.get_rng_state()
    for task in ("rules/mlp real", "gcog embedding"):
        spec, chosen = SPECS[task], options(name, width=24)
        module = build(chosen, spec, 3).requires_grad_(False)
        assert measure(chosen, spec, "parameters") == sum(p.numel() for p in module.parameters())
        if name != "lstm":  # of whose products that are added in place the library does not know
            totals = []
            for examples in (1, 2):
                counter = FlopCounterMode(display=False)
                with counter:
                    module(random_inputs(spec, examples))
                totals.append(counter.get_total_flops())
            assert measure(chosen, spec, "flops") == totals[1] - totals[0]
    assert torch.equal(torch.get_rng_state(), before)


def test_operations_of_the_lstm_by_hand() -> None:
    width, length = 24, 7  # five tokens, the query, the read-out token
    by_hand = 2 * 6 * 36 * width + length * 2 * 2 * width * 4 * width
    assert measure(options("lstm", width=width), SPECS["retrieval"], "flops") == by_hand


STATES: list[tuple[Case, str, int]] = [
    (("lstm", {"width": 6, "layers": 2}), "ctl", 2 * 2 * 6),
    (("gru", {"width": 6, "layers": 2}), "ctl", 2 * 6),
    (("rnn", {"width": 6}), "retrieval", 6),
    (("transformer", {"width": 8}), "ctl", 9 * 8),
    (("universal-transformer", {"width": 8, "layers": 5}), "retrieval", 7 * 8),
    (("ndr", {"width": 8}), "rules/rnn", 10 * 8),
    (("modular", {"width": 8, "modules": 2}), "rules/mlp", 2 * 8),
    (("perceiver", {"width": 8, "latents": 3}), "gcog integer", 3 * 8),
    (("moe-transformer", {"width": 8, "experts": 2}), "ctl", 9 * 8),
]
LINEAR_STATES: list[tuple[Case, int]] = [
    (("s4d", {"width": 6, "state": 5}), 2 * (2 * 5 * 6)),
    (("mamba", {"width": 6, "state": 5, "expand": 3, "kernel": 4}), 2 * (5 * 18 + 3 * 18)),
    (("gla", {"width": 6, "heads": 2, "layers": 3, "kernel": 1}), 3 * (2 * 3 * 3)),
    (("deltanet", {"width": 6, "heads": 3, "kernel": 3}), 2 * (3 * 2 * 2 + 2 * 6)),
]


@pytest.mark.parametrize(("case", "numbers"), LINEAR_STATES, ids=named)
def test_state_of_linear_recurrences_by_hand(case: Case, numbers: int) -> None:
    """States or matrices of every layer, and the tokens that a short convolution remembers; the task changes nothing."""
    for task in ("ctl", "retrieval"):
        assert measure(options(case[0], **case[1]), SPECS[task], "state") == numbers


@pytest.mark.parametrize(("case", "task", "numbers"), STATES, ids=named)
def test_state_is_what_is_carried(case: Case, task: str, numbers: int) -> None:
    """What recurrences hand on from step to step, and attention from layer to layer, counted in what they keep."""
    spec, chosen = SPECS[task], options(case[0], **case[1])
    assert count_state(chosen, spec) == measure(chosen, spec, "state") == numbers
    module, inputs = build(chosen, spec, 0), random_inputs(spec, 1)
    carried: list[Tensor] = []
    if case[0] == "perceiver":
        ctx = Context(wanted=["latents.state"])
        module(inputs, ctx)
        carried.append(ctx.captured["latents.state"])
    elif case[0] in ("lstm", "gru", "rnn"):
        for layer in module.recurrence.layers:
            layer.register_forward_hook(lambda _, __, states: carried.append(states[:, -1]))
        module(inputs)
        carried *= 2 if case[0] == "lstm" else 1  # the cell is as wide as the hidden state
    else:
        for part in module.modules():
            if isinstance(part, EncoderBlock | ModularBlock | NDRBlock):
                part.register_forward_pre_hook(lambda _, given: carried.append(given[0]))
        module(inputs)
        assert len(carried) == chosen.layers
        carried = carried[:1]
        assert carried[0].shape[1] == count_tokens(spec)
    assert sum(part.numel() for part in carried) == numbers


@pytest.mark.parametrize(
    ("name", "given", "unit"),
    [
        ("transformer", {"heads": 3, "positions": "rotary"}, 6),
        ("universal-transformer", {"heads": 5}, 5),
        ("modular", {"heads": 1, "modules": 30, "feedforward": 2}, 1),
    ],
)
def test_widths_can_be_built(name: str, given: dict[str, Any], unit: int) -> None:
    spec = SPECS["ctl"]
    found = match(name, spec, by="parameters", to=20_000, **given)
    assert found.width % unit == 0 and found.options().items() >= given.items()
    build(found, spec)
    assert parameter_count(build(found, spec)) == measure(found, spec, "parameters")


def test_out_of_reach() -> None:
    spec = SPECS["ctl"]
    for name, by, to, said in (
        ("lstm", "parameters", 10, r"'lstm' has at least \d+ parameters on this task, at width 2; 10 is out of reach"),
        (
            "transformer",
            "state",
            20,
            "'transformer' has at least 36 state on this task, at width 4; 20 is out of reach",
        ),
        ("gru", "state", WIDEST + 1, f"'gru' has at most {WIDEST} state on this task, at width {WIDEST}"),
        # 30 modules need as many hidden units, which are four to a channel.
        ("modular", "state", 50, "'modular' has at least 72 state on this task, at width 8; 50 is out of reach"),
    ):
        with pytest.raises(UsageError, match=said):
            match(name, spec, by=by, to=to, **({"modules": 30} if name == "modular" else {}))
    assert match("gru", spec, by="state", to=WIDEST).width == WIDEST
    assert match("transformer", spec, by="state", to=36).width == 4


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        (
            "ctl-ndr",
            {"by": "parameters", "to": 100},
            "'ctl-ndr' has fixed sizes; the models that can be matched are lstm",
        ),
        ("lstn", {"by": "parameters", "to": 100}, "unknown model 'lstn'"),
        ("lstm", {"by": "size", "to": 100}, "matched.by = 'size'"),
        ("lstm", {"by": "state", "to": 0}, "matched.to = 0"),
        ("lstm", {"by": "state", "to": 100, "width": 4}, "the width of 'lstm' is what match determines"),
        ("lstm", {"by": "state", "to": 100, "depth": 4}, "unknown option 'depth'"),
        (
            "transformer",
            {"by": "state", "to": 900, "positions": "learned", "places": 3},
            "places = 3: expected at least the 8 positions of stream 'tokens'",
        ),
    ],
)
def test_wrong_use(name: str, given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        match(name, SPECS["ctl"], **given)


def test_what_was_asked_for_is_part_of_the_identity_and_of_nothing_else() -> None:
    spec = SPECS["ctl"]
    found = match("lstm", spec, by="state", to=20)
    plain = options("lstm", width=10)
    assert found.width == 10 and found != plain and found.identity() != plain.identity()
    assert options("lstm", **{k: v for k, v in found.options().items() if k != "name"}) == found
    assert "matched" not in options("transformer", layers=3).identity()
    one, two = (build(chosen, spec, 1) for chosen in (found, plain))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    contexts = CountingContext(), CountingContext()
    inputs = random_inputs(spec, 2)
    assert torch.equal(one(inputs, contexts[0]), two(inputs, contexts[1])) and contexts[0].used == contexts[1].used
    assert isinstance(one, nn.Module)
