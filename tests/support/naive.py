"""The three models as the paper's equations say, module by module and token by token: slow, obvious, autograd's own.

They read the parameters of a model of the zoo and share nothing else with it. Rows are tokens; one-hot codes are
written out; every module runs on everything; outputs are mixed after the second layer.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Inputs = Mapping[str, Tensor]


def two_layers(x: Tensor, first: nn.Module, second: nn.Module) -> Tensor:
    """Lin → ReLU → Lin."""
    hidden = x @ first.weight + (0 if first.bias is None else first.bias)
    return torch.relu(hidden) @ second.weight + (0 if second.bias is None else second.bias)


def weights_of(model: nn.Module, rule: Tensor, scores: list[Tensor], coded: Tensor) -> Tensor:
    """p for every token, modules last, by the definition of each gating."""
    gating, modules = model.sizes.gating, model.sizes.modules
    if gating == "joint":
        return torch.softmax(torch.stack(scores, -1), -1)
    if gating == "truth":
        return F.one_hot(torch.tensor(model.gate.partition)[rule], modules).to(coded.dtype)
    return torch.softmax(coded, -1)


def modules_of(core: nn.Module, modules: int) -> list[tuple[Tensor, ...]]:
    """(W, b, W′, b′, score weight, score bias) of each module of a mixture."""
    units, width = core.first_bias.shape[1], core.first.shape[1]
    first = core.first.reshape(-1, width, modules // len(core.first), units).permute(0, 2, 1, 3)
    first = first.reshape(modules, width, units)
    second, second_bias = core.second.split([modules * units, modules])
    second = second.view(modules, units, -1)
    found = []
    for m in range(modules):
        score = () if core.score is None else (core.score[m], core.score_bias[m])
        found.append((first[m], core.first_bias[m], second[m], second_bias[m], *score))
    return found


def mixed(model: nn.Module, seen: list[Tensor], rule: Tensor, coded: Tensor) -> tuple[Tensor, Tensor | None]:
    """Σ_m p_m f_m(what module m sees), and p."""
    answers, scores = [], []
    for x, (w, b, w2, b2, *score) in zip(seen, modules_of(model.core, model.sizes.modules), strict=True):
        hidden = torch.relu(x @ w + b)
        answers.append(hidden @ w2 + b2)
        if score:
            scores.append(hidden @ score[0] + score[1])
    if model.sizes.gating == "none":
        return answers[0], None
    p = weights_of(model, rule, scores, coded)
    return (torch.stack(answers, -1) * p[..., None, :]).sum(-1), p


def mlp(model: nn.Module, inputs: Inputs) -> tuple[Tensor, Tensor | None]:
    x, rule = inputs["x"], inputs["rule"]
    onehot = F.one_hot(rule, model.sizes.rules).to(x.dtype)
    code = two_layers(onehot, model.rule.first, model.rule.second)
    numbers = [two_layers(x[:, i : i + 1], model.number[0], model.number[2]) for i in range(x.shape[1])]
    z = torch.cat([*numbers, code], -1)
    coded = code @ model.scorer.weight + model.scorer.bias if model.scorer is not None else z
    core, p = mixed(model, [z] * model.sizes.modules, rule, coded)
    return two_layers(core, model.decoder.hidden, model.decoder.answer), p


def encoded(model: nn.Module, features: Tensor, rule: Tensor) -> tuple[Tensor, Tensor]:
    """The encoder on [features, one-hot], and the one-hot."""
    onehot = F.one_hot(rule, model.sizes.rules).to(features.dtype)
    return two_layers(torch.cat([features, onehot], -1), model.encoder.hidden, model.encoder.output), onehot


def mha(model: nn.Module, inputs: Inputs) -> tuple[Tensor, Tensor | None]:
    u, onehot = encoded(model, inputs["features"], inputs["rule"])
    sizes, tokens = model.sizes, u.shape[1]
    modules, heads, width = sizes.modules, sizes.heads, sizes.head
    projected = u @ model.project.weight + model.project.bias
    *looking, own = projected.split([modules * heads * width] * 3 + [modules * width], -1)
    query, key, value = (part.unflatten(-1, (modules, heads, width)) for part in looking)
    others = ~torch.eye(tokens, dtype=torch.bool)
    seen = []
    for m in range(modules):
        found = []
        for h in range(heads):
            scores = (query[:, :, m, h] / width**0.5) @ key[:, :, m, h].transpose(1, 2)
            attention = torch.softmax(scores.masked_fill(~others, -torch.inf), -1)
            found.append(attention @ value[:, :, m, h])
        seen.append(torch.cat([*found, own[..., m * width : (m + 1) * width]], -1))
    coded = two_layers(onehot, model.scorer.first, model.scorer.second) if model.scorer is not None else u
    core, p = mixed(model, seen, inputs["rule"], coded)
    return two_layers(core, model.decoder.hidden, model.decoder.answer), p


def lstm(u: Tensor, v: Tensor, bias: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """New hidden state and memory; gates in the order input, forget, output, candidate."""
    i, f, o, g = (u + v + bias).unbind(-2)
    cell = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(cell), cell


def elman(u: Tensor, v: Tensor, bias: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    return torch.tanh(u + v + bias)[..., 0, :], c


def rnn(model: nn.Module, inputs: Inputs) -> tuple[Tensor, Tensor | None]:
    code, onehot = encoded(model, inputs["x"], inputs["rule"])
    sizes, cell = model.sizes, {"lstm": lstm, "elman": elman}[model.sizes.cell]
    h = c = code.new_zeros(len(code), sizes.inner)
    coded = two_layers(onehot, model.scorer.first, model.scorer.second) if model.scorer is not None else code
    states, weights = [], []
    for n in range(code.shape[1]):
        news, scores = [], []
        for m in range(sizes.modules):
            u = torch.einsum("bi,igh->bgh", code[:, n], model.input_weight[:, :, m])
            v = torch.einsum("bi,igh->bgh", h, model.state_weight[:, :, m])
            bias = 0 if model.bias is None else model.bias[:, :, m].sum(0)
            news.append(cell(u, v, bias, c))
            if model.score is not None:
                parts = torch.relu(torch.stack([u, v], 1))
                scores.append((parts * model.score[:, :, m]).flatten(1).sum(1))
        if sizes.gating == "none":
            h, c = news[0]
        else:
            p = weights_of(model, inputs["rule"][:, n], scores, coded[:, n])
            h, c = (sum(p[:, m : m + 1] * new[k] for m, new in enumerate(news)) for k in (0, 1))
            weights.append(p)
        states.append(h)
    answer = two_layers(torch.stack(states, 1), model.decoder.hidden, model.decoder.answer)
    return answer, torch.stack(weights, 1) if weights else None


NAIVE = {"rules-mlp": mlp, "rules-mha": mha, "rules-rnn": rnn}
