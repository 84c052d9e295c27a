"""The bits of `unseen.randomness` made where the numbers are needed: Philox in torch's integer operations.

NumPy's bits are made on the host and copied to a GPU at every step. Philox is counter-based: every word is a function of
key and counter alone, so a device can make all of them at once. The bits are the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from unseen.randomness import RandomStream

# Philox 4x64-10 (Salmon et al. 2011): the multipliers of a round, and what is added to the key after each.
_MULTIPLIERS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
_KEY_STEPS = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
_ROUNDS = 10
_LOW = 0xFFFFFFFF


def words(streams: Sequence[RandomStream], block: int, count: int, device: torch.device | str) -> Tensor:
    """The first raw 64-bit words of one block of each stream, (streams, count): int64 with the bits of NumPy's uint64."""
    groups = -(-count // 4)
    key_rows = []
    for named_stream in streams:
        first, second = named_stream.key
        key_rows.append([_signed(first), _signed(second)])
    keys = torch.tensor(key_rows, dtype=torch.int64).to(device)
    k0, k1 = keys[:, :1], keys[:, 1:]
    # NumPy counts before it draws, so the first four words are those of counter 1.
    c0 = torch.arange(1, groups + 1, device=device).expand(len(streams), -1)
    c1, c2 = torch.zeros_like(c0), torch.zeros_like(c0)
    c3 = torch.full_like(c0, block)
    for number in range(_ROUNDS):
        if number:
            k0, k1 = k0 + _signed(_KEY_STEPS[0]), k1 + _signed(_KEY_STEPS[1])
        high0, low0 = _multiply(c0, _MULTIPLIERS[0])
        high1, low1 = _multiply(c2, _MULTIPLIERS[1])
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
    return torch.stack([c0, c1, c2, c3], -1).flatten(1)[:, :count]


def lanes16(streams: Sequence[RandomStream], block: int, count: int, device: torch.device | str) -> Tensor:
    """The words read as 16-bit lanes, lowest bits first, (streams, count): int16 with the bits of `Draws.lanes`."""
    raw = words(streams, block, -(-count // 4), device)
    shifts = torch.arange(0, 64, 16, device=device)
    # The conversion keeps the lowest 16 bits, for any order of bytes on the device.
    return (raw[..., None] >> shifts).to(torch.int16).flatten(1)[:, :count]


def permutations(streams: Sequence[RandomStream], length: int, device: torch.device | str) -> Tensor:
    """One permutation of 0 … length − 1 per stream, as `Draws.permutation` gives from the stream's first block."""
    # Words are unsigned: flipping the sign bit makes their order that of signed integers.
    keys = words(streams, 0, length, device) ^ _signed(1 << 63)
    return torch.argsort(keys, dim=1, stable=True)


def _multiply(x: Tensor, factor: int) -> tuple[Tensor, Tensor]:
    """The upper and the lower 64 bits of a product of unsigned 64-bit integers, from products of 32-bit halves.

    A shift to the right copies the sign bit downwards, so the upper half of a number is masked after it.
    """
    factor_low, factor_high = factor & _LOW, factor >> 32
    x_low, x_high = x & _LOW, (x >> 32) & _LOW
    carried = x_low * factor_high + ((x_low * factor_low >> 32) & _LOW)
    crossed = x_high * factor_low + (carried & _LOW)
    high = x_high * factor_high + ((carried >> 32) & _LOW) + ((crossed >> 32) & _LOW)
    return high, x * _signed(factor)


def _signed(value: int) -> int:
    """The signed 64-bit integer with these bits, since torch has few operations on unsigned ones."""
    return value - (1 << 64) if value >= 1 << 63 else value
