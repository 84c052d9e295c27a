"""Attention among few tokens with many narrow heads, where no token attends to itself.

The examples of a batch are the last axis. Heads here are down to two channels wide and sequences ten tokens long: as
matrix products and softmaxes over rows of ten they would take more than ten times as long as this, which goes over
whole vector registers of examples, channel by channel and token by token.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from unseen.models.layers.per_member import save_intermediates

_BARRIER = -1e9
_BLOCK = 1 << 17
"""The number of attention weights that are processed at a time: this many stay in the cache."""


def attend_to_others(projected: Tensor, modules: int, heads: int) -> Tensor:
    """The results of each module's heads on the other tokens, beside the module's own channels of the token itself.

    `projected` (channels, N, B) holds queries, keys and values of all heads, rows in the order (module, head, channel),
    then the modules' own channels, (module, channel). Queries are already scaled. The result, (modules, (heads + 1) ·
    channels of a head, N, B), is the input of each module: its heads, then its own. A single token attends to itself.
    """
    if torch.compiler.is_compiling():
        return attend_by_autograd(projected, modules, heads)
    return _AttendToOthers.apply(projected, modules, heads, torch.is_grad_enabled())[0]  # type: ignore[no-any-return, no-untyped-call]


def attend_by_autograd(projected: Tensor, modules: int, heads: int) -> Tensor:
    """The same from plain operations: what `torch.compile` traces, since it makes its own backward pass."""
    query, key, value, itself = _split_channels(projected, modules, heads)
    scores = torch.einsum("mhcib,mhcjb->mhijb", query, key)
    diagonal = torch.eye(scores.shape[-2], dtype=torch.bool, device=scores.device)[..., None]
    weights = scores.masked_fill(diagonal, _BARRIER).softmax(-2)
    mixed = torch.einsum("mhijb,mhcjb->mhcib", weights, value)
    return torch.cat([mixed, itself[:, None]], 1).flatten(1, 2)


class _AttendToOthers(torch.autograd.Function):
    """One member of a stack after the other, some heads at a time; the weights are saved for the backward pass."""

    @staticmethod
    def forward(projected: Tensor, modules: int, heads: int, keep: bool) -> tuple[Tensor, Tensor]:
        lead = projected.shape[:-3]
        channels, tokens, batch = projected.shape[-3:]
        width = channels // ((3 * heads + 1) * modules)
        members = projected.reshape(-1, channels, tokens, batch)
        seen = projected.new_empty(len(members), modules, heads + 1, width, tokens, batch)
        saved = projected.new_empty(len(members) if keep else 0, modules, heads, tokens, tokens, batch)
        for index, member in enumerate(members):
            query, key, value, itself = _split_channels(member, modules, heads)
            seen[index, :, heads] = itself
            for block in _blocks(modules, heads, tokens * tokens * batch):
                scores = _products(query[block], key[block])
                # No token attends to itself; a single token does, because a softmax of one score is 1.
                scores.diagonal(dim1=-3, dim2=-2).fill_(_BARRIER)
                # Written where the backward pass needs them, without a copy.
                weights = torch.softmax(scores, -2, out=saved[index][block] if keep else None)
                _mix_values(weights, value[block], seen[index][block])
        return seen.view(*lead, modules, -1, tokens, batch), saved

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        save_intermediates(ctx, output, inputs[0])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        if gradients[0] is None:
            return None, None, None, None
        projected, saved = ctx.saved_tensors
        _, modules, heads, tokens, _, batch = saved.shape
        members = projected.reshape(-1, *projected.shape[-3:])
        d_seen = gradients[0].reshape(len(members), modules, heads + 1, -1, tokens, batch)
        d_projected = torch.empty_like(members)
        for index, member in enumerate(members):
            query, key, value, _ = _split_channels(member, modules, heads)
            d_query, d_key, d_value, d_own = _split_channels(d_projected[index], modules, heads)
            d_own.copy_(d_seen[index, :, heads])
            for block in _blocks(modules, heads, tokens * tokens * batch):
                weights, d_mixed = saved[index][block], d_seen[index][block]
                _mix_values(weights.transpose(-3, -2), d_mixed, d_value[block])
                d_scores = _products(d_mixed, value[block]).mul_(weights)
                # The backward pass of the softmax: a (d − Σ a d), with `d_scores` holding a d.
                d_scores.addcmul_(weights, d_scores.sum(-2, keepdim=True), value=-1)
                _mix_values(d_scores, key[block], d_query[block])
                _mix_values(d_scores.transpose(-3, -2), query[block], d_key[block])
        return d_projected.view(projected.shape), None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], projected: Tensor, *settings: Any) -> tuple[Any, Any]:
        return _AttendToOthers.apply(projected.movedim(in_dims[0] or 0, 0), *settings), (0, None)  # type: ignore[no-untyped-call]


def _split_channels(channels: Tensor, modules: int, heads: int) -> tuple[Tensor, ...]:
    """Queries, keys, values (modules, heads, width, N, B), and the modules' own channels (modules, width, N, B)."""
    width = len(channels) // ((3 * heads + 1) * modules)
    of_heads, itself = channels.split([3 * heads * modules * width, modules * width])
    query, key, value = of_heads.view(3, modules, heads, width, *channels.shape[1:])
    return query, key, value, itself.view(modules, width, *channels.shape[1:])


def _blocks(modules: int, heads: int, size: int) -> Iterator[tuple[slice, slice]]:
    """Some heads of some modules at a time, where `size` is the number of attention weights of one head."""
    # As many heads of one module as fit; if all of them do, as many modules as fit.
    some_heads = min(heads, max(1, _BLOCK // size))
    some_modules = max(1, _BLOCK // (size * heads))
    for module in range(0, modules, some_modules):
        for head in range(0, heads, some_heads):
            yield slice(module, module + some_modules), slice(head, min(head + some_heads, heads))


def _products(first: Tensor, second: Tensor) -> Tensor:
    """Sum over channels of first · second between every two tokens: twice (…, channels, N, B) → (…, N, N, B)."""
    first = first.unsqueeze(-2)
    second = second.unsqueeze(-3)
    # Channel by channel over whole registers of examples: a matrix product of two channels would not fill one.
    total = first[..., 0, :, :, :] * second[..., 0, :, :, :]
    for channel in range(1, first.shape[-4]):
        total.addcmul_(first[..., channel, :, :, :], second[..., channel, :, :, :])
    return total


def _mix_values(weights: Tensor, values: Tensor, out: Tensor) -> None:
    """Weighted sum over the second tokens' values: (…, N, N, B), (…, channels, N, B) → (…, channels, N, B)."""
    weights, values = weights.unsqueeze(-4), values.unsqueeze(-3)
    torch.mul(weights[..., 0, :], values[..., 0, :], out=out)
    for token in range(1, weights.shape[-2]):
        out.addcmul_(weights[..., token, :], values[..., token, :])
