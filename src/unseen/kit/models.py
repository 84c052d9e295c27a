"""The battery of a model: on a small task of every family that it does not refuse."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from unseen.engine.feed import target_tensor
from unseen.engine.fit import check_answers
from unseen.engine.predict import predictions
from unseen.engine.threads import one_thread
from unseen.errors import CheckFailed
from unseen.kit.cases import SEED, STEPS, Case, find_cases
from unseen.kit.plugins import Plugin
from unseen.kit.verdict import Verdict, tried
from unseen.models import options
from unseen.models.build import parameter_count
from unseen.models.layers.tape import CountingTape, Tape
from unseen.randomness import stream

STACKS = ((7, 3), (1, 2, 7, 4, 5))
"""Stacks in which the run of `SEED` must come out as it does alone."""
_CLOSE = 1e-4


def checks(plugin: Plugin) -> Iterator[tuple[str, Verdict]]:
    """Every check of a model. Tasks on which it can't be built, or does not answer, are not looked at further."""
    with one_thread():
        loaded = tried(lambda: _loads(plugin.name))
        yield "loads", loaded
        if loaded[0] == "FAIL":
            return
        cases: list[Case] = []
        yield "builds", tried(lambda: _builds(plugin, cases))
        for check, judge in CHECKS.items():
            if not cases:
                return
            found = [(case, tried(partial(judge, case))) for case in cases]
            yield check, _together(found)
            if check == "answers":
                cases = [case for case, verdict in found if verdict[0] != "FAIL"]


def _loads(name: str) -> Verdict:
    chosen = options(name)
    if options(**json.loads(json.dumps(chosen.options()))) != chosen:
        raise CheckFailed("its options written as JSON and read again are other options")
    return "ok", f"options {', '.join(k for k in type(chosen).model_fields if k not in ('name', 'source')) or 'none'}"


def _builds(plugin: Plugin, cases: list[Case]) -> Verdict:
    """Fill in the cases."""
    found, refused = find_cases(plugin)
    cases += found
    if not cases:
        name, said = next(iter(refused.items()))
        raise CheckFailed(f"it refuses every task; of {name} it says: {said}")
    counts = sorted(parameter_count(case.module) for case in cases)
    without = f"; it refuses {', '.join(refused)}" if refused else ""
    return "ok", (
        f"on {len(cases)} of {len(cases) + len(refused)} tasks, {counts[0]} to {counts[-1]} parameters{without}"
    )


def _answers(case: Case) -> Verdict:
    check_answers(case.stack, case.task, ["train"], type(case.module).__name__, data_seed=0)
    return "ok", "shape and type of the target, the same twice, each example for itself"


def _lengths(case: Case) -> Verdict:
    others = [name for name in case.task.conditions if name != "train"]
    check_answers(case.stack, case.task, others, type(case.module).__name__)
    return "ok", "every other condition, longer and shorter sequences among them"


def _tape(case: Case) -> Verdict:
    """Two passes of training with the same bits, torch's generator in two states; and one with other bits."""
    if not case.stack.takes_tape:
        first, second = (_trained_pass(case.module, case.inputs, None, seed) for seed in (0, 1))
        if not torch.equal(first, second):
            raise CheckFailed(
                "two passes of training differ: it has randomness of its own. Take "
                "forward(inputs, tape) and tape.dropout(x, p) instead of nn.Dropout"
            )
        return "ok", "no randomness, and no tape"
    counting = CountingTape()
    with torch.no_grad():
        case.module.train()(case.inputs, counting)
    bits = [
        torch.from_numpy(stream("kit", seed).block().lanes(counting.used, np.uint16).view(np.int16)) for seed in (0, 1)
    ]
    first, second = (_trained_pass(case.module, case.inputs, bits[0], seed) for seed in (0, 1))
    if not torch.equal(first, second):
        raise CheckFailed(
            "two passes of training with the same tape differ: it has randomness of its own. Use "
            "tape.dropout(x, p) instead of nn.Dropout, F.dropout or torch.rand"
        )
    if counting.used and torch.equal(first, _trained_pass(case.module, case.inputs, bits[1], 0)):
        raise CheckFailed("it takes dropout bits from the tape and does nothing with them")
    twice = [name for name in counting.names if counting.names.count(name) > 1]
    if twice:
        raise CheckFailed(f"it keeps two intermediates called '{twice[0]}'; give each a name of its own")
    return "ok", "randomness by the tape alone" if counting.used else "no randomness"


@torch.no_grad()
def _trained_pass(module: nn.Module, inputs: Mapping[str, Tensor], bits: Tensor | None, seed: int) -> Tensor:
    """A forward pass of training, as torch's generator stands after seeding."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        module.train()
        found: Tensor = module(inputs) if bits is None else module(inputs, Tape(bits))
        return found


def _stack(case: Case) -> Verdict:
    """The same bits alone and in every stack, after some steps and in what is predicted then."""
    examples, spec = case.examples, case.task.spec
    row, predicted = case.alone.stack.rows[0], predictions(case.alone.stack, examples, spec)["prediction"][0]
    for seeds in STACKS:
        stack, place = case.trained(seeds).stack, seeds.index(SEED)
        apart = float((stack.rows[place] - row).abs().max())
        if apart or (predictions(stack, examples, spec)["prediction"][place] != predicted).any():
            raise CheckFailed(
                f"among {len(seeds)} seeds a run differs from the same run alone by {apart:.1g} after "
                f"{STEPS} steps. Some of torch's layers round so; unseen.models.layers.linear.Linear, "
                "tanh and exp do not"
            )
    if not case.alone.stack.together:
        return "shown", "trained seed by seed, which is slower: torch.func.vmap refuses the module"
    return "ok", f"bit for bit the same alone and among {' and '.join(str(len(seeds)) for seeds in STACKS)}"


def _gradients(case: Case) -> Verdict:
    """After some steps, so that what starts at zero has moved."""
    stack, spec = case.alone.stack, case.task.spec
    targets = target_tensor(case.examples.targets, spec, torch.float32, "cpu")
    losses = stack.losses({k: v[None] for k, v in case.inputs.items()}, targets[None], spec.target, [SEED], STEPS)
    found = torch.autograd.grad(losses.sum(), list(stack.parameters.values()), allow_unused=True)
    idle = [
        name for name, gradient in zip(stack.parameters, found, strict=True) if gradient is None or not gradient.any()
    ]
    if idle:
        raise CheckFailed(f"no gradient reaches {len(idle)} of {len(found)} parameters: {', '.join(idle[:3])}")
    return "ok", "reach every parameter"


def _padding(case: Case) -> Verdict:
    """Other content where a stream is padded, and the padding cut off."""
    spec, masks = case.task.spec, [field for field in case.task.spec.inputs if field.kind == "mask"]
    padded = [field for field in masks if not case.inputs[field.name].all()]
    answers = case.stack.answer(case.inputs)
    for mask in padded:
        real, changed = case.inputs[mask.name].bool(), dict(case.inputs)
        along = [field for field in spec.along(mask.along) if field.kind != "mask"]
        for field in along:
            value = case.inputs[field.name]
            other = (value + 1) % field.width if field.kind == "category" else 1 - value
            changed[field.name] = torch.where(real if field.kind == "category" else real[..., None], value, other)
        if not torch.allclose(case.stack.answer(changed), answers, rtol=_CLOSE, atol=_CLOSE):
            raise CheckFailed(f"what stands where {mask.along} is padded ({mask.name} false) changes the answer")
        longest = int(real.sum(1).min())
        short = (real.sum(1) == longest).nonzero()[:1, 0]
        if not real[short, :longest].all() or spec.target.along == mask.along:
            continue
        names = {field.name for field in (*along, mask)}
        cut = {k: v[short, :longest] if k in names else v[short] for k, v in case.inputs.items()}
        if not torch.allclose(case.stack.answer(cut), answers[short], rtol=_CLOSE, atol=_CLOSE):
            raise CheckFailed(f"an answer changes when the padding of {mask.along} is cut off")
    return ("ok", "changes no answer") if padded else ("shown", "nothing is padded")


CHECKS: Mapping[str, Callable[[Case], Verdict]] = {
    "answers": _answers,
    "lengths": _lengths,
    "tape": _tape,
    "stack": _stack,
    "gradients": _gradients,
    "padding": _padding,
}


def _together(found: Sequence[tuple[Case, Verdict]]) -> Verdict:
    """One check on all tasks: what failed first, or what is said of most."""
    failed = [(case, reason) for case, (status, reason) in found if status == "FAIL"]
    if failed:
        case, reason = failed[0]
        place = "" if case.task.name in reason else f"{case.task.name}: "
        return "FAIL", place + reason + (f" · and on {len(failed) - 1} more" if len(failed) > 1 else "")
    verdicts = [verdict for _, verdict in found]
    best = [verdict for verdict in verdicts if verdict[0] == "ok"] or verdicts
    return best[0][0], f"{best[0][1]} · {len(best)} task{'s' * (len(best) > 1)}"
