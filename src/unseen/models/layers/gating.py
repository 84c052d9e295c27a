"""Gating: how a modular model chooses modules. It gives each token one weight per module.

| gating | shown as | weights |
|---|---|---|
| `none` | Monolithic | there is one module |
| `joint` | Modular | softmax of a score that each module computes from its own hidden units |
| `operation` | Modular-op | softmax of scores computed from the rule alone |
| `truth` | GT-Modular | 1 for the module of the rule |

Under `operation` and `truth` the weights are a table, rules × modules, of which a token takes the row of its rule.
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unseen.errors import UsageError
from unseen.models.layers.constants import constant
from unseen.models.layers.linear import Linear

Gating = Literal["none", "joint", "operation", "truth"]


@constant
def truth(partition: tuple[int, ...], modules: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The table of gating `truth`: 1 where the module is the rule's, (rules, modules)."""
    return F.one_hot(torch.tensor(partition, device=device), modules).to(dtype)


def parted(partition: tuple[int, ...] | None, rules: int, modules: int) -> tuple[int, ...]:
    """The module of each rule: the given one, checked, or the rule modulo the number of modules.

    >>> parted(None, rules=5, modules=2)
    (0, 1, 0, 1, 0)
    """
    if partition is None:
        return tuple(rule % modules for rule in range(rules))
    if len(partition) != rules or not set(partition) <= set(range(modules)):
        raise UsageError(
            f"partition {partition}: expected one module, 0 to {modules - 1}, for each of the task's {rules} rules"
        )
    return partition


class Gate(nn.Module):
    """The weights that depend on the rule alone; gatings `none` and `joint` have none."""

    def __init__(self, gating: Gating, rules: int, modules: int, partition: tuple[int, ...] | None = None) -> None:
        super().__init__()
        self.gating, self.count = gating, modules
        self.partition = parted(partition, rules, modules) if gating == "truth" else ()

    def forward(self, rule: Tensor, scores: Tensor | None, like: Tensor) -> Tensor | None:
        """The weights (modules, T) of tokens with these rules (T,), from the scores (rules, modules) of every rule."""
        if scores is not None:
            table = scores.softmax(-1)
        elif self.gating == "truth":
            table = truth(self.partition, self.count, like.dtype, like.device)
        else:
            return None
        return F.embedding(rule, table).mT


class RuleTable(nn.Module):
    """Lin(rules, hidden) → ReLU → Lin(hidden, outputs) of every rule's one-hot code at once: (rules, outputs).

    There are fewer rules than tokens, so tokens take rows of the table instead of computing their own.
    """

    def __init__(self, rules: int, hidden: int, outputs: int, *, bias: bool = True) -> None:
        super().__init__()
        self.first, self.second = Linear(rules, hidden, bias=bias), Linear(hidden, outputs, bias=bias)

    def forward(self) -> Tensor:
        codes = self.first.weight if self.first.bias is None else self.first.weight + self.first.bias
        table: Tensor = self.second(codes.relu())
        return table
