"""Named streams of random bits, and draws from them.

NumPy promises that the raw output of a bit generator never changes, but not so for the methods of `Generator`.
Therefore every draw here is a few lines over raw Philox words, with IEEE-exact operations only: the same name leads to
the same numbers on every machine and in every release.

A stream is divided into blocks. Block *b* starts at counter [0, 0, 0, b] of the stream's key, 2**192 words away from
the next one, so any block can be drawn without its predecessors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unseen.config import canonical

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Shape = int | Sequence[int]


@dataclass(frozen=True)
class RandomStream:
    """A 128-bit Philox key, made by `stream`, whose numbers are drawn block by block."""

    key: tuple[int, int]

    def block(self, index: int = 0) -> Draws:
        """The draws of one block; the same block always starts with the same bits."""
        return Draws(np.random.Philox(key=np.array(self.key, np.uint64), counter=[0, 0, 0, index]))


def stream(purpose: str, *identity: object) -> RandomStream:
    """The stream of a purpose and an identity (JSON values), keyed by a hash of both, never by arithmetic on a seed.

    >>> stream("data", "retrieval/T1", 0) == stream("data", "retrieval/T1", 0)
    True
    >>> stream("data", "retrieval/T1", 0) == stream("data", "retrieval/T1", 1)
    False
    """
    hashed = hashlib.blake2b(canonical([purpose, *identity]).encode(), digest_size=16).digest()
    return RandomStream((int.from_bytes(hashed[:8], "little"), int.from_bytes(hashed[8:], "little")))


class Draws:
    """Numbers drawn in order from one block. Every method is vectorised and consumes whole words."""

    def __init__(self, bits: np.random.Philox) -> None:
        self._bits = bits

    def words(self, count: int) -> NDArray[np.uint64]:
        """Raw 64-bit words."""
        return self._bits.random_raw(count)

    def lanes(self, shape: Shape, dtype: type[np.unsignedinteger]) -> NDArray[np.unsignedinteger]:
        """Raw words read as smaller unsigned integers, lowest bits first."""
        count = _size(shape)
        per_word = 8 // np.dtype(dtype).itemsize
        words = self.words(-(-count // per_word))  # rounded up: a draw consumes whole words
        return words.astype("<u8", copy=False).view(np.dtype(dtype).newbyteorder("<"))[:count].reshape(shape)

    def uniform(self, shape: Shape = ()) -> Floats:
        """Uniform on [0, 1): multiples of 2**-53."""
        # The upper 53 bits fill the mantissa exactly, so neither the conversion nor the product rounds.
        return (self.words(_size(shape)) >> np.uint64(11)).reshape(shape).astype(np.float64) * 2.0**-53

    def integers(self, high: int | Ints, shape: Shape = ()) -> Ints:
        """Uniform on 0 … high − 1, high ≤ 2**32, or an array that broadcasts to the shape; bias below high / 2**32."""
        # Lemire's method without rejection: the upper half of a 64-bit product.
        lanes = self.lanes(shape, np.uint32).astype(np.uint64)
        return ((lanes * np.asarray(high, np.uint64)) >> np.uint64(32)).astype(np.int64)

    def bernoulli(self, p: float, shape: Shape = ()) -> Bools:
        """True with probability p, rounded to a multiple of 2**-16 (so 0, 1/4 and 1/2 are exact)."""
        threshold = round(p * 65536)
        if threshold >= 65536:
            self.lanes(shape, np.uint16)  # consumed for any p, so that later draws do not depend on it
            return np.ones(shape, np.bool_)
        return self.lanes(shape, np.uint16) < np.uint16(threshold)

    def permutations(self, count: int, length: int) -> Ints:
        """`count` independent permutations of 0 … length − 1, one per row."""
        # Sorting random words is a uniform permutation but for ties, of probability below length² / 2⁶⁵; the stable
        # sort settles them the same way on every machine.
        return np.argsort(self.words(count * length).reshape(count, length), axis=1, kind="stable")

    def permutation(self, length: int) -> Ints:
        """One permutation of 0 … length − 1."""
        order: Ints = self.permutations(1, length)[0]
        return order

    def normal(self, shape: Shape = (), dtype: type[np.floating] = np.float64) -> NDArray[Any]:
        """Standard normal, one 32-bit lane each: exact at 3 968 quantiles per side, linear between them.

        A lane is made odd, so that it is never 0. Its sign is the sign of the number, its size the probability of a
        larger number. There are 128 lines for every halving of that probability, so that no number is off by 10**-5,
        however far out; the largest is 6.2.
        """
        lines = _normal_lines()
        count = _size(shape)
        numbers = np.empty(count, dtype)
        for start in range(0, count, _CHUNK):
            lanes = self.lanes(min(_CHUNK, count - start), np.uint32).view("<i4")
            # In place on the words that were just drawn, which no other array shares.
            lanes |= np.int32(1)
            odd = lanes.astype(np.float64)
            line = lines.take(_line_index(odd))
            odd *= line.imag  # the slope
            odd += line.real  # the intercept
            numbers[start : start + _CHUNK] = odd
        return numbers.reshape(shape)


def _size(shape: Shape) -> int:
    return int(np.prod(shape, dtype=np.int64)) if shape != () else 1


def portable_log(x: Floats) -> Floats:
    """The natural logarithm from +, −, ×, ÷ alone, because those of libraries differ in the last bit between machines.

    ln x = e ln 2 + 2 artanh((m − 1) / (m + 1)) for x = m · 2**e with m between √½ and √2.
    """
    mantissa, exponent = np.frexp(x)
    small = mantissa < 0.7071067811865476
    mantissa = np.where(small, mantissa * 2, mantissa)
    exponent = exponent - small
    z = (mantissa - 1) / (mantissa + 1)
    square = z * z
    series = np.zeros_like(z)
    for k in range(23, 0, -2):  # Horner's scheme for the series of artanh
        series = series * square + 1 / k
    logarithm: Floats = exponent * 0.6931471805599453 + 2 * z * series
    return logarithm


def _ratio(x: Floats, numerator: Sequence[float], denominator: Sequence[float]) -> Floats:
    """A ratio of two polynomials by Horner's scheme."""
    top = np.zeros_like(x)
    bottom = np.zeros_like(x)
    for a, b in zip(reversed(numerator), reversed(denominator), strict=True):
        top = top * x + a
        bottom = bottom * x + b
    return top / bottom


def inverse_normal(p: Floats) -> Floats:
    """The quantile function of the normal distribution by algorithm AS 241 (Wichura 1988)."""
    q = p - 0.5
    centre = q * _ratio(0.180625 - q * q, *_CENTRE)
    r = np.sqrt(-portable_log(np.minimum(p, 1 - p)))
    tail = np.where(r <= 5, _ratio(r - 1.6, *_MIDDLE), _ratio(r - 5, *_FAR))
    return np.where(np.abs(q) <= 0.425, centre, np.copysign(tail, q))


_CHUNK = 2**14
"""How many normal numbers are made at a time, few enough for the processor's cache; even, or lanes would be lost."""
_LINE_BITS = 7
"""The number of bits after the leading one that select a line: 128 lines for every halving of the probability."""


def _line_index(odd: Floats) -> Ints:
    """The line of a number: its sign, exponent and first bits of the mantissa, read from its IEEE representation."""
    return (odd.view(np.uint64) >> np.uint64(52 - _LINE_BITS)).view(np.int64)


@cache
def _normal_lines() -> NDArray[np.complex128]:
    """Intercept and slope of each line, by `_line_index`, as one complex number, so that one lookup fetches both.

    Most entries of the table are never used.
    """
    edges = np.ldexp(1 + np.arange(2**_LINE_BITS) / 2**_LINE_BITS, np.arange(31)[:, None]).reshape(-1)
    edges = np.append(edges, 2.0**31)
    quantiles = -inverse_normal(edges * 2.0**-32)
    slope = np.diff(quantiles) / np.diff(edges)
    intercept = quantiles[:-1] - slope * edges[:-1]
    lines = np.zeros(2 ** (12 + _LINE_BITS), np.complex128)
    for sign in (1, -1):
        lines[_line_index(sign * edges[:-1])] = sign * intercept + 1j * slope
    return lines


# Coefficients of AS 241 (Wichura 1988), constant term first.
_CENTRE = (
    (
        3.3871328727963666080e0,
        1.3314166789178437745e2,
        1.9715909503065514427e3,
        1.3731693765509461125e4,
        4.5921953931549871457e4,
        6.7265770927008700853e4,
        3.3430575583588128105e4,
        2.5090809287301226727e3,
    ),
    (
        1.0,
        4.2313330701600911252e1,
        6.8718700749205790830e2,
        5.3941960214247511077e3,
        2.1213794301586595867e4,
        3.9307895800092710610e4,
        2.8729085735721942674e4,
        5.2264952788528545610e3,
    ),
)
_MIDDLE = (
    (
        1.42343711074968357734e0,
        4.63033784615654529590e0,
        5.76949722146069140550e0,
        3.64784832476320460504e0,
        1.27045825245236838258e0,
        2.41780725177450611770e-1,
        2.27238449892691845833e-2,
        7.74545014278341407640e-4,
    ),
    (
        1.0,
        2.05319162663775882187e0,
        1.67638483018380384940e0,
        6.89767334985100004550e-1,
        1.48103976427480074590e-1,
        1.51986665636164571966e-2,
        5.47593808499534494600e-4,
        1.05075007164441684324e-9,
    ),
)
_FAR = (
    (
        6.65790464350110377720e0,
        5.46378491116411436990e0,
        1.78482653991729133580e0,
        2.96560571828504891230e-1,
        2.65321895265761230930e-2,
        1.24266094738807843860e-3,
        2.71155556874348757815e-5,
        2.01033439929228813265e-7,
    ),
    (
        1.0,
        5.99832206555887937690e-1,
        1.36929880922735805310e-1,
        1.48753612908506148525e-2,
        7.86869131145613259100e-4,
        1.84631831751005468180e-5,
        1.42151175831644588870e-7,
        2.04426310338993978564e-15,
    ),
)
