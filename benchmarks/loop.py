"""A training loop as people write it: a module, batches of a ready array, `loss.backward()`, `optimizer.step()`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.cases import Case
from unseen.models.context import Context
from unseen.spec import Target
from unseen.training.batches import input_tensors, target_tensor
from unseen.training.recipe import Recipe

_EXAMPLES = 4096
_OPTIMISERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
}
_LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "binary": F.binary_cross_entropy_with_logits,
    "category": F.cross_entropy,
    "real": F.l1_loss,
}
Data = tuple[Mapping[str, Tensor], Tensor]


class LoopContext(Context):
    """Dropout as torch does it, from its global generator."""

    @property
    def training(self) -> bool:
        return True

    def dropout(self, x: Tensor, p: float, *, scaled: bool = True) -> Tensor:
        dropped = F.dropout(x, p)
        return dropped if scaled else dropped * (1 - p)

    def add_dropped(self, x: Tensor, added: Tensor, p: float) -> Tensor:
        return x + self.dropout(added, p)


def plain_loop(case: Case) -> Callable[[], None]:
    """A step of the case's own module in a plain loop, each time it is called."""
    module = case.module()
    return _loop(module, lambda inputs: module(inputs, LoopContext()), case)


def published_loop(case: Case, figure: str) -> Callable[[], None]:
    """A step of a module that was written by hand, in the same loop."""
    module = case.published[figure]()
    return _loop(module, lambda inputs: ask(module, case, inputs), case)


def ask(module: nn.Module, case: Case, inputs: Mapping[str, Tensor]) -> Tensor:
    """What a module written by hand answers."""
    answer: Tensor = module(*(inputs[name] for name in case.takes)) if case.takes else module(inputs)
    return answer


def loss(prediction: Tensor, targets: Tensor, target: Target) -> Tensor:
    """The library's loss for a kind of target."""
    if target.kind == "category":
        return _LOSSES["category"](prediction.flatten(0, -2), targets.flatten())
    return _LOSSES[target.kind](prediction, targets)


def ready(case: Case, examples: int = _EXAMPLES) -> Data:
    """Training examples as tensors."""
    made = case.make_task()
    drawn = made.sample("train", examples)
    return (
        input_tensors(drawn.inputs, made.spec, torch.float32, "cpu"),
        target_tensor(drawn.targets, made.spec, torch.float32, "cpu"),
    )


def _loop(module: nn.Module, answer: Callable[[Mapping[str, Tensor]], Tensor], case: Case) -> Callable[[], None]:
    used, target = case.make_recipe(), case.make_task().spec.target
    optimiser, batches = _optimiser(module, used), _batches(ready(case), case.batch)

    def step() -> None:
        inputs, targets = next(batches)
        optimiser.zero_grad()
        loss(answer(inputs), targets, target).backward()
        if used.clip is not None:
            nn.utils.clip_grad_norm_(module.parameters(), used.clip)
        optimiser.step()

    return step


def _optimiser(module: nn.Module, used: Recipe) -> torch.optim.Optimizer:
    return _OPTIMISERS[used.optimiser](module.parameters(), lr=used.learning_rate, weight_decay=used.weight_decay)


def _batches(data: Data, batch: int) -> Iterator[Data]:
    """Shuffled batches without end, as from a `DataLoader` without its workers."""
    inputs, targets = data
    generator = torch.Generator().manual_seed(0)
    while True:
        for index in torch.randperm(len(targets), generator=generator).split(batch):
            if len(index) == batch:
                yield {name: value[index] for name, value in inputs.items()}, targets[index]
