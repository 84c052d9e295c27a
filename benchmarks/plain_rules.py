"""The models of the rules family as anybody would write them: the yardstick for ours. They share no code with the zoo.

Gatings `none` and `joint`. Grouped layers are einsums over the modules, every module answers every token, answers are
mixed afterwards; `rewritten` (the MLP only) mixes before the second layer, as ours do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unseen.models.rules.sizes import mha_hidden, state_width

Inputs = Mapping[str, Tensor]


def two_layers(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    """Lin → ReLU → Lin."""
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))


class Grouped(nn.Module):
    """One affine map per module: (…, modules, inputs) → (…, modules, outputs)."""

    def __init__(self, modules: int, inputs: int, outputs: int) -> None:
        super().__init__()
        bound = 1 / math.sqrt(inputs)
        self.weight = nn.Parameter(torch.empty(modules, inputs, outputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(modules, outputs).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        return torch.einsum("...mi,mio->...mo", x, self.weight) + self.bias


class PlainMLP(nn.Module):
    """The MLP."""

    def __init__(self, gating: str, rules: int, width: int, rewritten: bool = False) -> None:
        super().__init__()
        core = 4 * width
        self.rules, self.joint, self.rewritten = rules, gating == "joint", rewritten
        self.number, self.rule = two_layers(1, width, width), two_layers(rules, width, width)
        if self.joint:
            self.first, self.second = Grouped(rules, 3 * width, core // rules), Grouped(rules, core // rules, core + 1)
        else:
            self.core = two_layers(3 * width, core, core)
        self.decoder = two_layers(core, width, 1)

    def forward(self, inputs: Inputs) -> Tensor:
        rule = F.one_hot(inputs["rule"], self.rules).to(inputs["x"].dtype)
        numbers = self.number(inputs["x"][..., None]).flatten(1)
        z = torch.cat([numbers, self.rule(rule)], -1)
        mixed = self.core(z) if not self.joint else self._rewritten(z) if self.rewritten else self._naive(z)
        answer: Tensor = self.decoder(mixed)
        return answer

    def _naive(self, z: Tensor) -> Tensor:
        answers = self.second(self.first(z[:, None].expand(-1, self.rules, -1)).relu())
        mixed: Tensor = (answers[..., :-1] * answers[..., -1:].softmax(-2)).sum(-2)
        return mixed

    def _rewritten(self, z: Tensor) -> Tensor:
        first = self.first.weight.transpose(0, 1).flatten(1)
        hidden = torch.addmm(self.first.bias.flatten(), z, first).relu().unflatten(1, (self.rules, -1))
        scores = (hidden * self.second.weight[..., -1]).sum(-1) + self.second.bias[:, -1]
        p = scores.softmax(-1)
        mixed = (hidden * p[..., None]).flatten(1) @ self.second.weight[..., :-1].flatten(0, 1)
        return torch.addmm(mixed, p, self.second.bias[:, :-1])


class PlainMHA(nn.Module):
    """The attention model, search 1, two heads per module."""

    def __init__(self, gating: str, rules: int, width: int) -> None:
        super().__init__()
        core, self.rules, self.joint = 4 * width, rules, gating == "joint"
        head = self.head = core // (2 * rules)
        self.encoder, self.decoder = two_layers(5 * rules, width, width), two_layers(width, width, 1)
        self.query, self.key, self.value = (nn.Linear(width, core) for _ in range(3))
        self.own = nn.Linear(width, head * rules if self.joint else head)
        hidden = mha_hidden(width, core, rules)
        self.output = (
            nn.Sequential(Grouped(rules, 3 * head, hidden), nn.ReLU(), Grouped(rules, hidden, width + 1))
            if self.joint
            else two_layers(core + head, 2 * width, width)
        )

    def forward(self, inputs: Inputs) -> Tensor:
        rule = F.one_hot(inputs["rule"], self.rules).to(inputs["features"].dtype)
        u = self.encoder(torch.cat([inputs["features"], rule], -1))
        query, key, value = (
            layer(u).unflatten(-1, (-1, self.head)).transpose(1, 2) for layer in (self.query, self.key, self.value)
        )
        scores = query * self.head**-0.5 @ key.transpose(-1, -2)
        own_token = torch.eye(u.shape[1], dtype=torch.bool)
        found = (scores.masked_fill(own_token, -math.inf).softmax(-1) @ value).transpose(1, 2)
        if self.joint:
            own = self.own(u).unflatten(-1, (self.rules, -1))
            answers = self.output(torch.cat([found.flatten(2).unflatten(-1, (self.rules, -1)), own], -1))
            mixed = (answers[..., :-1] * answers[..., -1:].softmax(-2)).sum(-2)
        else:
            mixed = self.output(torch.cat([found.flatten(2), self.own(u)], -1))
        answer: Tensor = self.decoder(mixed)
        return answer


class PlainRNN(nn.Module):
    """The recurrent model; without gating the library's LSTM."""

    def __init__(self, gating: str, rules: int, width: int, numbers: int = 32) -> None:
        super().__init__()
        self.rules, self.joint = rules, gating == "joint"
        state = self.state = state_width(width, 4 * width, rules) if self.joint else 4 * width
        self.encoder, self.decoder = two_layers(numbers + rules, width, width), two_layers(state, state, 1)
        if self.joint:
            self.input = nn.Linear(width, 4 * rules * state, bias=False)
            self.hidden = nn.Linear(state, 4 * rules * state, bias=False)
            self.score = nn.Parameter(torch.empty(rules, 8 * state).uniform_(-1, 1) / math.sqrt(8 * state))
        else:
            self.lstm = nn.LSTM(width, state, batch_first=True)

    def forward(self, inputs: Inputs) -> Tensor:
        rule = F.one_hot(inputs["rule"], self.rules).to(inputs["x"].dtype)
        u = self.encoder(torch.cat([inputs["x"], rule], -1))
        answer: Tensor = self.decoder(self._recur(u) if self.joint else self.lstm(u)[0])
        return answer

    def _recur(self, u: Tensor) -> Tensor:
        h = c = u.new_zeros(len(u), 1, self.state)
        states = []
        for step in u.unbind(1):
            parts = [part.unflatten(-1, (self.rules, -1)) for part in (self.input(step), self.hidden(h[:, 0]))]
            p = (torch.cat(parts, -1).relu() * self.score).sum(-1).softmax(-1)[..., None]
            i, f, o, g = (parts[0] + parts[1]).chunk(4, -1)
            trials = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = (p * o.sigmoid() * trials.tanh()).sum(1, keepdim=True)
            c = (p * trials).sum(1, keepdim=True)
            states.append(h)
        return torch.cat(states, 1)
