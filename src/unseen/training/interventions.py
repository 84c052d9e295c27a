"""Interventions on trained models: exchange, ablate or cut activations, for all members of a stack at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from unseen.analysis.interchange import InterchangeScore, Pairs, score_pairs
from unseen.errors import UsageError, nearest
from unseen.randomness import Draws
from unseen.tasks.base import Array, Examples, Task
from unseen.training.batches import input_tensors, target_tensor
from unseen.training.evaluate import CHUNK
from unseen.training.loss import loss
from unseen.training.stack import Edit, Stack, State

Ablation = Literal["zero", "mean", "resample", "noise"]
ALL = -1
"""The position that means all positions of a site."""
_BATCHES = 11, 13
"""Two numbers of examples: the axis of an activation that changes from one to the other is that of the examples."""


# -- edits ------------------------------------------------------------------------------------------------------------


def exchange(value: Tensor, source: Tensor, where: Tensor) -> Tensor:
    """The source's activation where the mask is true. Its own activation changes no bit."""
    return torch.where(where, source, value)


def exchange_subspace(value: Tensor, source: Tensor, where: Tensor, basis: Tensor) -> Tensor:
    """The source's component in a subspace, whose orthonormal basis is (width, k), and the value's own in the rest."""
    exchanged = value + ((source - value) @ basis) @ basis.mT
    return torch.where(where, exchanged, value)


def cut_edges(weights: Tensor, where: Tensor) -> Tensor:
    """Attention weights (…, T, U) without the edges where the mask is true; the others are scaled to add up to 1 again.

    Where all edges are cut, nothing is attended to. Tokens of which no edge is cut keep every bit of their weights.
    """
    remaining = weights.masked_fill(where, 0)
    total = remaining.sum(-1, keepdim=True)
    scaled = remaining / torch.where(total > 0, total, torch.ones_like(total))
    return torch.where(where.any(-1, keepdim=True), scaled, weights)


def mask_positions(shape: Sequence[int], position: int | Array) -> Tensor:
    """Where an activation of this shape (B, …) is exchanged: at one position of its second axis that is the same for all
    examples, at those of each example, (B,) or (B, K) with −1 for none, or everywhere (`ALL`)."""
    mask = torch.zeros(tuple(shape[:2]), dtype=torch.bool)
    if isinstance(position, int):
        if position == ALL:
            mask[:] = True
        else:
            mask[:, position] = True
    else:
        positions = position.reshape(len(position), -1)
        rows, columns = np.nonzero(positions >= 0)
        mask[torch.as_tensor(rows), torch.as_tensor(positions[rows, columns])] = True
    return mask.reshape(*mask.shape, *[1] * (len(shape) - 2)).expand(tuple(shape))


# -- where ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Site:
    """The name of an activation, its shape for one example (tokens, width) or (width,), and whether it has tokens.

    Token p of a task is token p + `token_offset` here: −1 for a model that leaves out the first, 1 for one that puts a token
    of its own before them. A model says so by an attribute of that name.
    """

    name: str
    shape: tuple[int, ...]
    token_offset: int = 0

    @property
    def tokens(self) -> int:
        """The number of positions at which it can be exchanged by itself; 0 if it is one vector."""
        return self.shape[0] if len(self.shape) == 2 else 0


def list_sites(stack: Stack, task: Task, examples: Examples, names: Sequence[str] | str = ()) -> list[Site]:
    """The sites of these names; without names, those where a state is: what the model reports, what its own submodules
    return, and what the blocks inside them return, if it is a vector, or a vector per token."""
    if isinstance(names, str):
        names = [names]
    shapes = list_shapes(stack, task, examples)
    offset = int(getattr(stack.skeleton, "token_offset", 0))
    if names:
        return [Site(name, _find_shape(shapes, name), offset) for name in names]
    submodules = dict(stack.skeleton.named_modules())
    reported = set(stack.names(tensors(stack, task, _repeat(examples, _BATCHES[0]))))
    sites = []
    for name, shape in shapes.items():
        path = name.partition(":")[0]
        is_block = path in submodules and ("." not in path or any(submodules[path].children()))
        if shape is not None and len(shape) in (1, 2) and (name in reported or is_block):
            sites.append(Site(name, shape, offset))
    return sites


def list_shapes(stack: Stack, task: Task, examples: Examples) -> dict[str, tuple[int, ...] | None]:
    """The shape of every activation for one example; None where the first axis is not that of the examples.

    Another axis may by chance have the size of the examples (2 rules, 5 tokens), so two sizes are compared.
    """
    first, second = (stack.sites(tensors(stack, task, _repeat(examples, size))) for size in _BATCHES)
    shapes: dict[str, tuple[int, ...] | None] = {}
    for name, shape in first.items():
        other = second.get(name, ())
        by_example = bool(shape and other) and (shape[0], other[0]) == _BATCHES and shape[1:] == other[1:]
        shapes[name] = shape[1:] if by_example else None
    return shapes


def _find_shape(shapes: Mapping[str, tuple[int, ...] | None], name: str) -> tuple[int, ...]:
    """The shape of a named activation for one example."""
    if name not in shapes:
        raise UsageError(f"the model has no activation '{name}'. {nearest(name, shapes)}")
    shape = shapes[name]
    if shape is None:
        by_example = [site for site, example_shape in shapes.items() if example_shape is not None]
        raise UsageError(
            f"the first axis of '{name}' is not that of the examples, so an example has no value of its own there. "
            f"{nearest(name, by_example)}"
        )
    return shape


def _repeat(examples: Examples, size: int) -> Examples:
    """`size` examples: these, repeated as often as needed."""
    return examples[np.arange(size) % len(examples)]


def tensors(stack: Stack, task: Task, examples: Examples) -> State:
    """The inputs of examples as tensors of the stack."""
    return input_tensors(examples.inputs, task.spec, stack.dtype, str(stack.rows.device))


# -- interchange ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Exchange:
    """Where activations are exchanged: a site, a position or those of each example, (B,) or (B, K) with −1 for none (`ALL`:
    the whole site), and the basis of a subspace (members, width, k); None for all of the activation."""

    site: str
    position: int | Array = ALL
    basis: Tensor | None = None


def interchange(stack: Stack, task: Task, pairs: Pairs, exchanges: Sequence[Exchange]) -> list[list[InterchangeScore]]:
    """The score of every exchange, and in it of every member, over the pairs that have its position."""
    predictions: list[list[Array]] = [[] for _ in exchanges]
    base_answers: list[Array] = []
    source_answers: list[Array] = []
    sites = sorted({exchange.site for exchange in exchanges})
    for rows in _chunks(len(pairs)):
        chunk = pairs[rows]
        source_answer, sources = stack.predict(tensors(stack, task, chunk.sources), sites)
        bases = tensors(stack, task, chunk.bases)
        base_answer, _ = stack.predict(bases)
        source_answers.append(source_answer.cpu().numpy())
        base_answers.append(base_answer.cpu().numpy())
        for index, chosen_exchange in enumerate(exchanges):
            edit = make_exchange(chosen_exchange, sources[chosen_exchange.site], rows)
            answer, _ = stack.predict(bases, edits={chosen_exchange.site: edit})
            predictions[index].append(answer.cpu().numpy())
    kind = task.spec.target.kind
    intact_bases = np.concatenate(base_answers, axis=1)
    intact_sources = np.concatenate(source_answers, axis=1)
    scores = []
    for chosen_exchange, answers in zip(exchanges, predictions, strict=True):
        present = has_position(chosen_exchange.position, len(pairs))
        present_pairs = pairs[present]
        scores_by_member = []
        for prediction, base, source in zip(np.concatenate(answers, axis=1), intact_bases, intact_sources, strict=True):
            intact = (base[present], source[present])
            scores_by_member.append(score_pairs(prediction[present], present_pairs, kind, intact))
        scores.append(scores_by_member)
    return scores


def has_position(position: int | Array, n: int) -> Array:
    """Which of n examples have a position."""
    if isinstance(position, int):
        return np.ones(n, bool)
    return np.asarray((position.reshape(n, -1) >= 0).any(1))


def make_exchange(chosen_exchange: Exchange, source: Tensor, rows: slice = slice(None)) -> Edit:
    """The edit that exchanges activations for those of the source, (members, B, …)."""
    position = chosen_exchange.position if isinstance(chosen_exchange.position, int) else chosen_exchange.position[rows]
    where = mask_positions(source.shape[1:], position).expand(source.shape).to(source.device)
    if chosen_exchange.basis is None:
        return Edit(exchange, (source, where))
    return Edit(exchange_subspace, (source, where, chosen_exchange.basis))


def _chunks(n: int) -> Iterator[slice]:
    for start in range(0, n, CHUNK):
        yield slice(start, min(start + CHUNK, n))


# -- subspaces --------------------------------------------------------------------------------------------------------


def random_basis(stack: Stack, width: int, dimension: int, draws: Draws) -> Tensor:
    """A random subspace for every member, (members, width, dimension): the control of a learned one."""
    numbers = draws.normal((len(stack), width, dimension))
    basis: Tensor = torch.linalg.qr(torch.from_numpy(numbers))[0].to(stack.rows)
    return basis


def learn_basis(
    stack: Stack,
    task: Task,
    pairs: Pairs,
    site: Site,
    position: int | Array,
    dimension: int,
    draws: Draws,
    *,
    steps: int = 100,
    batch: int = 100,
    learning_rate: float = 0.05,
) -> Tensor:
    """The subspace of an activation in which a variable is exchanged best, for every member: (members, width, dimension).

    Distributed alignment search (Geiger et al., 2024): gradient descent on the loss of the expected answers. Test it on
    other pairs.
    """
    width = site.shape[-1]
    if not 1 <= dimension <= width:
        raise UsageError(f"the subspace of '{site.name}' has 1 to {width} dimensions, got {dimension}")
    free = random_basis(stack, width, dimension, draws).requires_grad_()
    optimizer = torch.optim.Adam([free], lr=learning_rate)
    target = task.spec.target
    for _ in range(steps):
        rows = draws.integers(len(pairs), batch)
        batch_pairs = pairs[rows]
        _, sources = stack.predict(tensors(stack, task, batch_pairs.sources), [site.name])
        # Orthonormal at every step: the optimizer moves any matrix, and its column space is the subspace.
        basis = torch.linalg.qr(free)[0]
        batch_positions = position if isinstance(position, int) else position[rows]
        edit = make_exchange(Exchange(site.name, batch_positions, basis), sources[site.name])
        bases = tensors(stack, task, batch_pairs.bases)
        answer, _ = stack.predict(bases, edits={site.name: edit}, differentiable=True)
        expected = target_tensor(batch_pairs.expected, task.spec, stack.dtype, str(stack.rows.device))
        # No loss depends on the basis of another member, so the gradient of the sum is that of each loss.
        total = torch.stack([loss(prediction, expected, target) for prediction in answer]).sum()
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
    learned: Tensor = torch.linalg.qr(free.detach())[0]
    return learned


# -- ablation ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Component:
    """A component of an activation that is ablated: a position, a unit of the last axis (a module of gating weights), or a
    head of attention weights (B, heads, T, U). None: all of them."""

    site: str
    position: int | None = None
    unit: int | None = None
    head: int | None = None

    def index(self, shape: Sequence[int]) -> tuple[int | slice, ...]:
        """Where it is in an activation whose axes, after that of the examples, have these sizes."""
        has_heads = len(shape) == 3
        if self.head is not None and not has_heads:
            raise UsageError(
                f"'{self.site}' has no heads: its shape for one example is {tuple(shape)}, that of attention weights with "
                "heads is (heads, tokens, tokens); leave head out"
            )
        axes = {"head": 0, "position": 1 if has_heads else 0, "unit": len(shape) - 1}
        index: list[int | slice] = [slice(None)] * len(shape)
        for name, axis in axes.items():
            number = getattr(self, name)
            if number is None:
                continue
            if not 0 <= number < shape[axis]:
                raise UsageError(f"'{self.site}' has the {name}s 0 … {shape[axis] - 1}, not {number}")
            index[axis] = number
        return tuple(index)


def ablate(
    stack: Stack, task: Task, examples: Examples, components: Sequence[Component], how: Ablation, draws: Draws
) -> Iterator[tuple[Component, Array]]:
    """The predictions of every member (members, B, …) without each component.

    It is set to zero, to its mean over the examples, to its value in another example of the same chunk (`resample`), or to
    random vectors of equal length (`noise`), which are the same for all examples where the activation is: position
    embeddings.
    """
    if how not in get_args(Ablation):
        raise UsageError(f"there is no ablation '{how}'. {nearest(str(how), get_args(Ablation))}")
    shapes = list_shapes(stack, task, examples)
    for component in components:  # all of them are checked before the first is tried
        _index_component(stack, task, examples, shapes, component, how)
    by_example = sorted({component.site for component in components if shapes[component.site] is not None})
    means = _mean_activations(stack, task, examples, by_example) if how == "mean" else {}
    partners = draws.permutation(len(examples))
    for component in components:
        index = _index_component(stack, task, examples, shapes, component, how)
        common_noise: Tensor | None = None
        answers = []
        for rows in _chunks(len(examples)):
            inputs = tensors(stack, task, examples[rows])
            _, activations = stack.predict(inputs, [component.site])
            intact = activations[component.site]
            if how == "zero":
                instead = torch.zeros_like(intact)
            elif how == "mean":
                instead = means[component.site][:, None].expand(intact.shape)
            elif how == "resample":
                others = tensors(stack, task, examples[partners[rows]])
                instead = stack.predict(others, [component.site])[1][component.site]
            elif shapes[component.site] is not None:
                instead = noise_of_equal_norm(intact, draws)
            else:
                common_noise = noise_of_equal_norm(intact, draws) if common_noise is None else common_noise
                instead = common_noise
            where = torch.zeros(intact.shape[1:], dtype=torch.bool)
            where[index] = True
            edit = Edit(exchange, (instead, where.to(intact.device).expand(intact.shape)))
            answer, _ = stack.predict(inputs, edits={component.site: edit})
            answers.append(answer.cpu().numpy())
        yield component, np.concatenate(answers, axis=1)


def noise_of_equal_norm(value: Tensor, draws: Draws) -> Tensor:
    """Vectors in random directions that are as long as those along the last axis."""
    noise = torch.from_numpy(draws.normal(tuple(value.shape))).to(value)
    scaled: Tensor = noise * (value.norm(dim=-1, keepdim=True) / noise.norm(dim=-1, keepdim=True))
    return scaled


def _index_component(
    stack: Stack,
    task: Task,
    examples: Examples,
    shapes: Mapping[str, tuple[int, ...] | None],
    component: Component,
    how: Ablation,
) -> tuple[int | slice, ...]:
    """Where a component is in its activation; one that there is not is refused."""
    if component.site not in shapes:
        raise UsageError(f"the model has no activation '{component.site}'. {nearest(component.site, shapes)}")
    shape = shapes[component.site]
    if shape is not None:
        return (slice(None), *component.index(shape))
    if how not in ("zero", "noise"):
        raise UsageError(
            f"'{component.site}' is the same for all examples: it can be replaced by zero or by noise, not by '{how}'"
        )
    return component.index(stack.sites(tensors(stack, task, _repeat(examples, 1)))[component.site])


def _mean_activations(stack: Stack, task: Task, examples: Examples, sites: Sequence[str]) -> State:
    sums: dict[str, Any] = {}
    for rows in _chunks(len(examples)):
        _, activations = stack.predict(tensors(stack, task, examples[rows]), sites)
        for site, values in activations.items():
            sums[site] = sums.get(site, 0) + values.double().sum(1)
    return {site: (total / len(examples)).to(stack.dtype) for site, total in sums.items()}


# -- edges ------------------------------------------------------------------------------------------------------------


def cut(stack: Stack, task: Task, examples: Examples, edges: Mapping[str, tuple[int | Array, int | Array]]) -> Array:
    """The predictions of every member if, at attention sites (B, heads, T, U), no token at the first position attends to
    one at the second. A position is one for all examples, one for each (−1 for none), or `ALL`.

    Attention weights without heads, (B, U), are those of a single reader: its position is `ALL`.
    """
    answers = []
    for rows in _chunks(len(examples)):
        inputs = tensors(stack, task, examples[rows])
        _, activations = stack.predict(inputs, sorted(edges))
        edits = {}
        for site, (query, key) in edges.items():
            weights = activations[site]
            shape = weights.shape[1:]
            where = mask_positions((shape[0], shape[-1]), key if isinstance(key, int) else key[rows])
            if len(shape) > 2:
                query = query if isinstance(query, int) else query[rows]
                attends = mask_positions((shape[0], shape[-2]), query)
                where = attends[:, None, :, None] & where[:, None, None, :]
            edits[site] = Edit(cut_edges, (where.to(weights.device).expand(weights.shape),))
        answers.append(stack.predict(inputs, edits=edits)[0].cpu().numpy())
    return np.concatenate(answers, axis=1)
