"""The context of a forward pass: the only source of its randomness, and where it reports intermediates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import torch
from torch import Tensor

from unseen.errors import UsageError

_LANES = 1 << 16
"""The number of values of a 16-bit lane of dropout bits."""
Objective = Callable[[Tensor], Tensor]
"""A term of the training loss, as a function of the losses of the answers."""


class Context:
    """Hands out dropout masks in call order and collects the activations that were asked for.

    `bits` is a flat tensor of 16-bit lanes (int16), drawn by the caller from a named stream. Without it dropout is the
    identity: modules have no train or eval mode. A layer that is applied eight times gets eight masks. `wanted` names the
    activations to collect in `captured`; `replace` has, by name, the function that turns an activation into the one to
    continue with.

    In training, `step` and `steps` say how far it has come, for schedules such as a falling temperature; `objectives` are
    the terms that modules add to the loss.

    >>> ctx = Context(wanted=["encoder.state"])
    >>> x = ctx.capture("encoder.state", torch.ones(2))
    >>> ctx.captured["encoder.state"]
    tensor([1., 1.])
    >>> Context(replace={"encoder.state": torch.zeros_like}).capture("encoder.state", torch.ones(2))
    tensor([0., 0.])
    """

    def __init__(
        self,
        bits: Tensor | None = None,
        wanted: Collection[str] = (),
        replace: Mapping[str, Callable[[Tensor], Tensor]] | None = None,
        *,
        step: int = 0,
        steps: int | None = None,
    ) -> None:
        self.bits = bits
        self.step = step
        self.steps = steps
        self.objectives: list[Objective] = []
        self.used = 0
        self.wanted = frozenset(wanted)
        self.replace = dict(replace or {})
        # One set, so that an activation that is not requested costs one look-up.
        self.named = self.wanted | self.replace.keys()
        self.reported: set[str] = set()
        self.captured: dict[str, Tensor] = {}

    @property
    def training(self) -> bool:
        """Whether this is a pass of training: it has dropout bits, even if none are needed."""
        return self.bits is not None

    @property
    def progress(self) -> float:
        """The share of training that is over, 0 to 1; 1 in evaluation, and where the length of training is unknown."""
        return 1.0 if self.steps is None else self.step / self.steps

    def add_objective(self, objective: Objective) -> None:
        """Add a term to the training loss: a function of the losses of the answers, (B, …, width), which are constants.

        The value of the loss stays that of the task, the gradient is that of the sum (`unseen.training.loss`).
        """
        self.objectives.append(objective)

    def uniform(self, like: Tensor) -> Tensor:
        """Uniform noise in (0, 1), of the shape of `like`; each number takes two lanes of the bits. Only in training."""
        lanes = self._take(2 * like.numel(), f"uniform noise of shape {tuple(like.shape)}")
        high, low = lanes.view(2, *like.shape).to(torch.int32)
        # 16 + 7 bits and a half: exact in single precision, and never 0 or 1.
        number = (high + _LANES // 2) * 128 + (low & 127)
        uniform: Tensor = (number.to(like.dtype) + 0.5) / (_LANES * 128)
        return uniform

    def gumbel(self, like: Tensor) -> Tensor:
        """Gumbel noise, of the shape of `like`: −ln(−ln u). Only in training."""
        return -(-self.uniform(like).log()).log()

    def dropout(self, x: Tensor, p: float, *, scaled: bool = True) -> Tensor:
        """`x` with each entry dropped with probability p (a multiple of 2**-16); if `scaled`, the others are scaled up."""
        mask = self._mask(x, p, scaled)
        return x if mask is None else x * mask

    def add_dropped(self, x: Tensor, added: Tensor, p: float) -> Tensor:
        """x + dropout(added), in one pass over memory where product and sum would take two."""
        mask = self._mask(added, p)
        return x + added if mask is None else torch.addcmul(x, added, mask)

    def capture(self, name: str, value: Tensor) -> Tensor:
        """Report an intermediate under a name and return the value to continue with.

        Always continue with the result, `x = ctx.capture("encoder.state", x)`, so that an analysis can replace the value.
        What is collected is the value to continue with.
        """
        if name not in self.named:
            return value
        self.reported.add(name)
        if name in self.replace:
            value = self.replace[name](value)
        if name in self.wanted:
            # A copy: a module that goes on in place (`x += …`, an in-place ReLU) would change what was collected.
            self.captured[name] = value.clone()
        return value

    def _mask(self, x: Tensor, p: float, scaled: bool = True) -> Tensor | None:
        """The factor of each entry; None if all entries stay as they are."""
        dropped = _dropped_lanes(p)
        if self.bits is None or dropped == 0:
            return None
        lanes = self._take(x.numel(), "dropout").view(x.shape)
        # 1 where the lane is at least `first`, else 0, by clamping to two neighbouring integers: comparing to booleans
        # and converting back costs three times as much.
        first = dropped - _LANES // 2
        mask = lanes.clamp(first - 1, first).sub_(first - 1).to(x.dtype)
        return mask.mul_(_LANES / (_LANES - dropped)) if scaled else mask

    def _take(self, count: int, purpose: str) -> Tensor:
        """The next lanes of the bits."""
        if self.bits is None:
            raise UsageError(f"{purpose} is drawn in training alone; this context has no bits")
        start = self.used
        self.used += count
        if self.used > len(self.bits):
            raise UsageError(
                f"the context has {len(self.bits)} dropout lanes, {self.used} are needed so far; count them "
                "with a CountingContext on inputs of the same shape"
            )
        return self.bits[start : self.used]


class CountingContext(Context):
    """Counts the dropout lanes that a pass of training (or of evaluation) needs, without dropping anything.

    `names` lists the activations that the pass can capture.
    """

    def __init__(self, *, training: bool = True) -> None:
        super().__init__()
        self._training = training
        self.names: list[str] = []

    @property
    def training(self) -> bool:
        return self._training

    def capture(self, name: str, value: Tensor) -> Tensor:
        self.names.append(name)
        return value

    def uniform(self, like: Tensor) -> Tensor:
        self.used += 2 * like.numel()
        return torch.full_like(like, 0.5)

    def _mask(self, x: Tensor, p: float, scaled: bool = True) -> None:
        if _dropped_lanes(p):
            self.used += x.numel()


def _dropped_lanes(p: float) -> int:
    """The number of the 2**16 values of a lane for which an entry is dropped; never all."""
    return min(round(p * _LANES), _LANES - 1)


NO_CONTEXT = Context()

__all__ = ["NO_CONTEXT", "Context", "CountingContext", "Objective"]
