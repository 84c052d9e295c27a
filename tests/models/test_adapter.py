"""The adapter: any core on any spec, padding out of its way, masks by the name it asks for."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import unseen
from support.specimens import SPECS, random_inputs
from unseen.errors import UsageError
from unseen.models.context import Context, CountingContext
from unseen.spec import Spec
from unseen.training.stack import Stack


class Recurrent(unseen.Adapter):
    def core(self, width: int) -> nn.Module:
        return nn.LSTM(width, width, batch_first=True)


class Encoder(unseen.Adapter):
    class Options(unseen.Adapter.Options):
        layers: int = 1

    def core(self, width: int) -> nn.Module:
        layer = nn.TransformerEncoderLayer(width, 2, 2 * width, dropout=0.0, batch_first=True)
        return nn.TransformerEncoder(layer, self.options.layers, enable_nested_tensor=False)


class Linear(unseen.Adapter):
    def core(self, width: int) -> nn.Module:
        return nn.Linear(width, width)


def made(kind: type[unseen.Adapter], spec: Spec, **options: object) -> unseen.Adapter:
    module = unseen.build(unseen.model(kind, **{"width": 8, **options}), spec, seed=3)
    assert isinstance(module, unseen.Adapter)
    return module


def batch(spec: Spec, examples: int = 3) -> dict[str, Tensor]:
    return random_inputs(spec, examples, 0)


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("kind", [Recurrent, Encoder, Linear])
def test_the_prediction_has_the_shape_of_the_target_on_every_spec(kind: type[unseen.Adapter], name: str) -> None:
    spec = SPECS[name]
    along = (spec.stream(spec.target.along).length,) if spec.target.along else ()
    assert made(kind, spec)(batch(spec)).shape == (3, *along, spec.target.width)


def alone(module: unseen.Adapter, inputs: dict[str, Tensor]) -> Tensor:
    """Slow and obvious: every example for itself, its padding thrown away before the core sees anything."""
    answers = []
    for i in range(len(next(iter(inputs.values())))):
        tokens = module.embed({name: value[i : i + 1] for name, value in inputs.items()})
        mask = torch.ones(tokens.states.shape[:2], dtype=torch.bool) if tokens.mask is None else tokens.mask
        found = module.inner(tokens.states[mask][None])
        states = torch.zeros_like(tokens.states)
        states[mask] = (found[0] if isinstance(found, tuple) else found)[0]
        answers.append(module.read_out(states[:, tokens.read]))
    return torch.cat(answers)


@pytest.mark.parametrize("name", ["ctl", "gcog embedding", "rules/rnn"])
@pytest.mark.parametrize("kind", [Recurrent, Encoder])
def test_padding_is_as_if_it_were_not_there(kind: type[unseen.Adapter], name: str) -> None:
    """Of a core that reads from left to right without a mask, and of one that is given the mask: values, gradients."""
    inputs, module = batch(SPECS[name], 4), made(kind, SPECS[name])
    if "mask" in inputs:
        places = inputs["mask"].shape[1]
        inputs["mask"] = torch.arange(places) < torch.tensor([[1], [3], [2], [places]])
    ours, theirs = module(inputs), alone(module, inputs)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    parameters = list(module.parameters())
    weights = torch.randn(ours.shape, generator=torch.Generator().manual_seed(0))
    gradients = [
        torch.autograd.grad((answer * weights).sum(), parameters, materialize_grads=True) for answer in (ours, theirs)
    ]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


class Asking(nn.Module):
    """A core that is asked by one name; it remembers what it got."""

    def forward(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        self.got = attention_mask
        return x


class AskingBool(Asking):
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return super().forward(x, mask)


@pytest.mark.parametrize(("kind", "dtype"), [(Asking, torch.int64), (AskingBool, torch.bool)])
def test_a_core_gets_the_mask_by_the_name_it_asks_for(kind: type[Asking], dtype: torch.dtype) -> None:
    class Mine(unseen.Adapter):
        def core(self, width: int) -> nn.Module:
            return kind()

    inputs, module = batch(SPECS["ctl"]), made(Mine, SPECS["ctl"])
    inputs["mask"] = torch.arange(8) < torch.tensor([[2], [8], [5]])
    module(inputs)
    assert module.inner.got.dtype == dtype
    assert module.inner.got.tolist() == (torch.arange(9) < torch.tensor([[3], [9], [6]])).tolist()  # and the read-out
    module = made(Mine, SPECS["rules/rnn"])
    module(batch(SPECS["rules/rnn"]))
    assert module.inner.got is None


def test_traces_are_kept() -> None:
    for name, read in (("ctl", (3, 8)), ("rules/rnn", (3, 10, 8))):
        module, inputs = made(Linear, SPECS[name]), batch(SPECS[name])
        ctx = CountingContext(training=False)
        module(inputs, ctx)
        assert ctx.names == ["encoder.state", "readout.state"]
        kept = Context(wanted=ctx.names)
        answer = module(inputs, kept)
        assert kept.captured["readout.state"].shape == read
        torch.testing.assert_close(module.read_out.project(kept.captured["readout.state"]), answer)


def test_a_core_of_torch_operations_can_be_stacked() -> None:
    for name in ("ctl", "retrieval", "gcog embedding"):
        inputs = batch(SPECS[name])
        modules = [unseen.build(unseen.model(Linear, width=8), SPECS[name], seed) for seed in range(3)]
        stack = Stack(modules)
        predicted, _ = stack.predict(inputs)
        assert stack.together
        for one, module in zip(predicted, modules, strict=True):
            torch.testing.assert_close(one, module(inputs))


def test_order_is_known_unless_positions_are_none() -> None:
    spec, order = SPECS["retrieval"], torch.tensor([3, 1, 4, 0, 2])
    inputs = batch(spec)
    moved = {**inputs, "sequence": inputs["sequence"][:, order]}
    for positions, same in (("none", True), ("sinusoidal", False), ("learned", False)):
        module = made(Encoder, spec, positions=positions, layers=2).eval()
        assert torch.allclose(module(inputs), module(moved), atol=1e-6) is same


class Forgetful(unseen.Adapter):
    def core(self, width: int) -> nn.Module:  # type: ignore[empty-body]
        nn.Linear(width, width)


class TwoWays(unseen.Adapter):
    def core(self, width: int) -> nn.Module:
        return nn.LSTM(width, width, batch_first=True, bidirectional=True)


class Packed(Linear):
    def call(self, core: nn.Module, states: Tensor, mask: Tensor | None) -> dict[str, Tensor]:
        return {"last_hidden_state": core(states)}


def test_wrong_cores_are_refused() -> None:
    spec = SPECS["ctl"]
    with pytest.raises(UsageError, match=r"Forgetful\.core must return an nn\.Module, got None"):
        made(Forgetful, spec)
    with pytest.raises(UsageError, match=r"Adapter has no core: define core\(self, width\)"):
        made(unseen.Adapter, spec)
    with pytest.raises(UsageError, match=r"TwoWays returned shape \(3, 9, 16\); expected .* = \(3, 9, 8\)"):
        made(TwoWays, spec)(batch(spec))
    with pytest.raises(UsageError, match=r"Packed returned a dict; .* Override call"):
        made(Packed, spec)(batch(spec))
