"""Recurrences that are linear in their state, each in two forms that compute the same.

The plain form walks from token to token; it defines the layer and is the reference of the tests. The fast form computes
many tokens at once: a convolution (`s4d`), a scan in a logarithmic number of steps (`mamba`), or chunks of tokens that
are matrix products inside, with a walk from chunk to chunk (`gla`, `deltanet`).

States start from zero. Tokens that write nothing and keep everything (value, strength and logarithm of the decay 0)
leave no trace, which is how padding is treated.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unseen.models.layers.linear import uniform_parameter

CHUNK = 16
"""Tokens of a chunk. Inside a chunk decays are divided by each other, so that they must not underflow: see `STRONGEST`."""
BLOCK = 128
"""Tokens of a block of the convolution: for each distance of blocks, a matrix of BLOCK × BLOCK numbers in every channel."""
STRONGEST = -4.0
"""The strongest decay of one token, as a logarithm: e to the power of CHUNK · 4 is far from the largest single number."""


class ShortConvolution(nn.Module):
    """Each channel of a token mixed with that of the tokens just before it: y_t = Σ_j w_j x_{t−j} + b, (B, T, channels).

    Before the first token there are zeros.
    """

    def __init__(self, channels: int, kernel: int) -> None:
        super().__init__()
        self.weight = uniform_parameter(kernel, kernel, channels)
        self.bias = uniform_parameter(kernel, channels)

    def forward(self, x: Tensor) -> Tensor:
        kernel, tokens = self.weight.shape[0], x.shape[1]
        padded = F.pad(x, (0, 0, kernel - 1, 0))
        mixed = x * self.weight[0] + self.bias
        for lag in range(1, kernel):
            mixed = mixed + padded[:, kernel - 1 - lag : kernel - 1 - lag + tokens] * self.weight[lag]
        return mixed


def convolve(kernel: Tensor, u: Tensor) -> Tensor:
    """y_t = Σ_{j ≤ t} K_{t−j} u_j for each channel: kernel (channels, T) and u (B, T, channels) → (B, T, channels).

    Tokens are taken in blocks of at most `BLOCK`, and the matrices of the blocks depend only on how far apart these are. So
    the memory grows with T and not with its square.
    """
    tokens = kernel.shape[-1]
    size = min(tokens, BLOCK)
    blocks = -(-tokens // size)
    after = blocks * size - tokens
    latest_first = F.pad(u.permute(2, 0, 1), (0, after)).unflatten(-1, (blocks, size)).flip(-1)
    sources = latest_first.transpose(1, 2).contiguous()  # (channels, blocks, B, size)
    padded = F.pad(kernel, (size - 1, after))
    results = torch.zeros_like(sources)
    for distance in range(blocks):
        # Row t holds K_{t − size + 1} … K_t, counted from the first token of the block that is `distance` blocks later.
        start = distance * size
        windows = padded[:, start : start + 2 * size - 1].unfold(-1, size, 1)
        earlier = sources[:, : blocks - distance].flatten(1, 2)
        products = torch.bmm(earlier, windows.mT.contiguous()).unflatten(1, (blocks - distance, -1))
        results = products if blocks == 1 else results + F.pad(products, (0, 0, 0, 0, distance, 0))
    return results.transpose(1, 2).flatten(2)[..., :tokens].permute(1, 2, 0).contiguous()


def decay_and_rotate_by_steps(rate: Tensor, turn: Tensor, real: Tensor, imaginary: Tensor, u: Tensor) -> Tensor:
    """The recurrence behind the kernel of `s4d`: h_t = λ h_{t−1} + u_t and y_t = 2 Re Σ_n c_n h_{t,n}.

    λ = exp(rate + i · turn) and c = real + i · imaginary are of shape (channels, n); u is (B, T, channels).
    """
    cosine, sine = rate.exp() * turn.cos(), rate.exp() * turn.sin()
    h_real = h_imaginary = u.new_zeros(len(u), *rate.shape)
    results = []
    for token in u.unbind(1):
        before = h_real
        h_real = cosine * before - sine * h_imaginary + token[..., None]
        h_imaginary = sine * before + cosine * h_imaginary
        results.append(2 * (real * h_real - imaginary * h_imaginary).sum(-1))
    return torch.stack(results, 1)


def scan_by_steps(decay: Tensor, added: Tensor) -> Tensor:
    """h_t = decay_t · h_{t−1} + added_t, elementwise: (B, T, …) → (B, T, …)."""
    state = torch.zeros_like(added[:, 0])
    states = []
    for factor, new in zip(decay.unbind(1), added.unbind(1), strict=True):
        state = torch.addcmul(new, factor, state)
        states.append(state)
    return torch.stack(states, 1)


def scan(decay: Tensor, added: Tensor) -> Tensor:
    """The same in a logarithmic number of steps: scan pairs of tokens, then fill in the tokens between the pairs."""
    tokens = decay.shape[1]
    if tokens == 1:
        return added
    pairs = tokens // 2
    first_decay, second_decay = decay[:, : 2 * pairs : 2], decay[:, 1::2]
    first, second = added[:, : 2 * pairs : 2], added[:, 1::2]
    # Two steps in a row are one step of the same form: its decay is the product, and it adds second + decay · first.
    at_odd = scan(first_decay * second_decay, torch.addcmul(second, second_decay, first))
    before = at_odd[:, : (tokens - 1) // 2]  # the states before the tokens 2, 4, …
    at_even = torch.cat([added[:, :1], torch.addcmul(added[:, 2::2], decay[:, 2::2], before)], 1)
    together = torch.stack([at_even[:, :pairs], at_odd], 2).flatten(1, 2)
    return together if tokens == 2 * pairs else torch.cat([together, at_even[:, -1:]], 1)


def gated_attention_by_steps(query: Tensor, key: Tensor, value: Tensor, log_decay: Tensor) -> Tensor:
    """S_t = diag(e^{log_decay_t}) S_{t−1} + k_t v_tᵀ and o_t = S_tᵀ q_t; everything is (B, heads, T, k)."""
    state = torch.zeros_like(key[:, :, 0, :, None] * value[:, :, 0, None, :])
    results = []
    for q, k, v, decay in zip(*(x.unbind(2) for x in (query, key, value, log_decay.exp())), strict=True):
        state = decay[..., None] * state + k[..., None] * v[..., None, :]
        results.append((state * q[..., None]).sum(-2))
    return torch.stack(results, 2)


def gated_attention(query: Tensor, key: Tensor, value: Tensor, log_decay: Tensor) -> Tensor:
    """The same in chunks; no `log_decay` may be below `STRONGEST`."""
    tokens = query.shape[2]
    query, key, value, log_decay = (split_chunks(x) for x in (query, key, value, log_decay))
    # From token j to token t of a chunk, a state decays by e^(total_t − total_j). The factor e^total_t goes to the query
    # and e^(−total_j) to the key, so that one matrix product has all pairs; `STRONGEST` bounds the second factor.
    total = log_decay.cumsum(3)
    remaining = total[..., -1:, :]  # after a whole chunk
    reached = query * total.exp()
    inside = (reached @ (key * (-total).exp()).mT).tril() @ value
    added = (key * (remaining - total).exp()).mT @ value
    remaining_rows = remaining.mT.exp()
    state = torch.zeros_like(added[:, :, 0])
    results = []
    for chunk in range(query.shape[2]):
        results.append(inside[:, :, chunk] + reached[:, :, chunk] @ state)
        state = remaining_rows[:, :, chunk] * state + added[:, :, chunk]
    return torch.cat(results, 2)[:, :, :tokens]


def delta_rule_by_steps(query: Tensor, key: Tensor, value: Tensor, strength: Tensor) -> Tensor:
    """S_t = S_{t−1} − β_t (S_{t−1} k_t − v_t) k_tᵀ and o_t = S_t q_t: what is stored under k_t moves towards v_t.

    Query, key and value are (B, heads, T, k), the strengths β (B, heads, T, 1).
    """
    state = torch.zeros_like(value[:, :, 0, :, None] * key[:, :, 0, None, :])
    results = []
    for q, k, v, beta in zip(*(x.unbind(2) for x in (query, key, value, strength)), strict=True):
        correction = beta * (v - (state * k[..., None, :]).sum(-1))
        state = state + correction[..., None] * k[..., None, :]
        results.append((state * q[..., None, :]).sum(-1))
    return torch.stack(results, 2)


def delta_rule(query: Tensor, key: Tensor, value: Tensor, strength: Tensor) -> Tensor:
    """The same in chunks.

    Inside a chunk the corrections u_t = β_t (v_t − S_{t−1} k_t) solve a triangular system, in which token t sees the
    corrections of the tokens before it: (1 + L) u = β (v − S k) with L_{tj} = β_t k_t · k_j for j < t.
    """
    tokens = query.shape[2]
    query, key, value, strength = (split_chunks(x) for x in (query, key, value, strength))
    weighted = strength * key
    system = (weighted @ key.mT).tril(-1)
    right_sides = torch.cat([strength * value, weighted], -1)
    # The diagonal of the system is 1 and is not read.
    solved: Tensor = torch.linalg.solve_triangular(system, right_sides, upper=False, unitriangular=True)
    values, keys = solved.split([value.shape[-1], key.shape[-1]], -1)
    seen = (query @ key.mT).tril()
    state = torch.zeros_like(key[:, :, 0].mT @ value[:, :, 0])
    results = []
    for chunk in range(query.shape[2]):
        corrections = values[:, :, chunk] - keys[:, :, chunk] @ state
        results.append(query[:, :, chunk] @ state + seen[:, :, chunk] @ corrections)
        state = state + key[:, :, chunk].mT @ corrections
    return torch.cat(results, 2)[:, :, :tokens]


def split_chunks(x: Tensor) -> Tensor:
    """(B, heads, T, k) → (B, heads, chunks, tokens of a chunk, k), with zeros after the last token."""
    size = min(CHUNK, x.shape[2])
    padded = F.pad(x, (0, 0, 0, -x.shape[2] % size))
    return padded.view(*x.shape[:2], -1, size, x.shape[-1])
