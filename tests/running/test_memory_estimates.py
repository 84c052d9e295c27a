"""Memory: estimated without allocating, against counts by hand and tensors that torch really keeps; too much is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from support.specimens import READ_BY, SPECS
from unseen import memory as limits
from unseen.errors import UsageError
from unseen.models import options
from unseen.models.build import build, parameter_count
from unseen.models.context import Context
from unseen.models.flops import blank_inputs
from unseen.running import memory
from unseen.running.memory import check_memory, estimate_memory
from unseen.running.runner import Settings
from unseen.spec import Spec
from unseen.studies.trial import Trial, model_config
from unseen.tasks import task
from unseen.training.process import check_device
from unseen.training.recipe import Evaluation, recipe


def trial(model: str = "lstm", batch: int = 10, length: int = 5, **given: Any) -> Trial:
    made = task("retrieval/T1", length=length, evaluation_size=100)
    return Trial(made, options(model, **given), recipe(batch=batch), Evaluation(), 0, 0)


@pytest.mark.parametrize(("name", "kind"), [(name, kinds[0]) for name, kinds in READ_BY.items()])
def test_every_model_is_sized_as_it_is_built_and_serves_afterwards(name: str, kind: str) -> None:
    """The meta device leaves nothing behind: a real model that shares cached constants still computes."""
    spec = SPECS[kind]
    module = build(options(name), spec)
    buffers = sum(buffer.numel() for buffer in module.buffers())
    assert memory._count_parameters(options(name), spec) == parameter_count(module) + buffers
    _, per_example = memory._count_activations(options(name), spec, spec)
    assert per_example > 0
    context = {"ctx": Context()}
    assert torch.isfinite(module(blank_inputs(spec, 2, torch.device("cpu")), **context)).all()


@pytest.mark.parametrize("model", ["transformer", "retrieval-transformer"])
def test_intermediates_are_about_those_that_autograd_keeps(model: str) -> None:
    """Two ways: what a forward pass makes, on the meta device, and what torch saves for the backward pass, in numbers."""
    asked = trial(model, batch=32)
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    module = build(asked.model, asked.task.spec)
    own = {parameter.untyped_storage().data_ptr() for parameter in module.parameters()}
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        module(blank_inputs(asked.task.spec, 32, torch.device("cpu")), Context())
    saved = sum(size for address, size in kept.items() if address not in own)
    estimate = estimate_memory(asked).activations / memory.BACKWARD
    assert saved / 2 < estimate < 6 * saved


def test_long_streams_follow_from_short_ones() -> None:
    spec = trial(length=300).task.spec
    for model in ("transformer", "lstm"):
        with torch.device("meta"):
            module = build(options(model, width=8), spec)
        assert memory._extrapolate(module, spec, 2) == pytest.approx(memory._intermediates(module, spec, 2), rel=0.01)


def test_what_does_not_fit_is_refused_with_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"would need about 192 TB .* narrower model"):
        check_memory([trial(width=1_000_000)])
    with pytest.raises(UsageError, match="width=1000000000 is too large: one of its weights alone takes"):
        check_memory([trial(width=1_000_000_000)])
    with pytest.raises(
        UsageError, match=r"deltanet .* can't be built: attention of width 128 does not split into 3 heads"
    ):
        check_memory([replace(trial(), model=options("deltanet", heads=3))])
    with pytest.raises(UsageError, match="smaller batch"):
        check_memory([trial(batch=10**9)])
    monkeypatch.setattr(limits, "memory_limit", lambda: 30_000_000)
    check_memory([trial()])
    with pytest.raises(UsageError, match=r"a stack of 50 times lstm on retrieval/T1 .* smaller stack"):
        check_memory([trial()], stack=50)


def test_a_model_that_refuses_its_options_is_refused_in_its_own_words() -> None:
    with pytest.raises(UsageError, match="deltanet heads=3 can't be built: attention of width 128 does not split"):
        check_memory([replace(trial(), model=options("deltanet", heads=3))])


class Heavy(nn.Module):
    """A user's module of 4 TB: it is refused on the meta device, where it costs nothing."""

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.layer = nn.Linear(1_000_000, 1_000_000)


class Looking(nn.Module):
    """A user's module that looks at its numbers can't be built on the meta device: it is not sized."""

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.layer = nn.Linear(36, 1)
        assert float(self.layer.weight.abs().max()) > 0


def test_a_user_s_module_is_sized_where_it_can_be() -> None:
    with pytest.raises(UsageError, match="would need about 20 TB"):
        check_memory([replace(trial(), model=model_config(Heavy))])
    assert estimate_memory(replace(trial(), model=model_config(Looking))).parameters == 0


def test_a_device_that_can_t_be_used_is_refused_by_name() -> None:
    assert check_device("cpu") == "cpu"
    for device, answer in {"cdua": "Did you mean 'cuda'", "meta": "Known: cpu", "cpu:x": "can't be used"}.items():
        with pytest.raises(UsageError, match=answer):
            check_device(device)
        with pytest.raises(UsageError, match=answer):
            Settings(device=device)


def test_of_a_long_reason_why_a_device_cannot_be_used_the_first_sentence_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*shape: int, device: str) -> None:
        raise NotImplementedError(f"Could not run 'empty' with the '{device}' backend. This could be {'long ' * 300}")

    monkeypatch.setattr(torch, "zeros", refuse)
    with pytest.raises(UsageError) as caught:
        check_device("mps")
    assert str(caught.value) == (
        "device 'mps' can't be used here: Could not run 'empty' with the 'mps' backend. The device cpu always can"
    )


def test_a_missing_extra_is_named_before_anything_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unseen.running.runner.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"unseen\[ray\]"):
        Settings(executor="ray")
