"""Counting the examples of a language, numbering them, and drawing numbers: exact, vectorised, without rejection.

An example of a lookup task is a start symbol and a chain of functions. All examples of one length that an automaton
accepts are numbered 0 … N − 1, by start symbol, then by the functions in order of application, ascending by id. So
drawing examples uniformly is drawing numbers, and drawing different ones is drawing a subset of the numbers.

Numbers below 2**62 are `int64` arrays. Larger ones (chains of some 20 functions or more) are arrays of Python integers,
which the same formulas handle.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unseen.errors import UsageError
from unseen.randomness import Bools, Draws, Floats, Ints, portable_log

if TYPE_CHECKING:  # the world draws its tables with this module, and automata are made from worlds
    from unseen.tasks.ctl.automaton import Automaton

Numbers = NDArray[Any]
"""`int64`, or Python integers in an array of objects."""
Walks = tuple[Ints, Ints]
"""Start symbols (B,) and functions in order of application (B, length)."""

_LARGEST_INT = 2**62  # from here on numbers are Python integers; sums of two smaller ones still fit into 64 bits
_LOW_HALF = np.uint64(0xFFFFFFFF)
_HALF_BITS = np.uint64(32)


# Drawing numbers


def number_dtype(bound: int) -> np.dtype[Any]:
    """The dtype that holds every number up to a bound."""
    return np.dtype(np.int64) if bound < _LARGEST_INT else np.dtype(object)


def draw_below(draws: Draws, bounds: Numbers) -> Numbers:
    """Draw one number per bound, uniform on 0 … bound − 1; the bias is below 2**−64 for any bound.

    A random fraction with at least 64 bits more than the bound is multiplied by the bound and rounded down.
    """
    if bounds.dtype != object:
        # The fraction has 128 bits (high, low). Of the 192-bit product high·b·2**64 + low·b only the top 64 are needed:
        # those of high·b, plus a carry if the lower half of high·b and the upper half of low·b overflow together.
        high, low = draws.words(2 * len(bounds)).reshape(2, -1)
        factor = bounds.astype(np.uint64)
        middle = high * factor  # modulo 2**64
        carry = middle + _upper_product(low, factor) < middle  # a wrapped sum is smaller than its terms
        return (_upper_product(high, factor) + carry).astype(np.int64)
    word_count = max(int(bound).bit_length() for bound in bounds) // 64 + 2
    rows = draws.words(word_count * len(bounds)).reshape(-1, word_count).tolist()
    numbers = np.empty(len(bounds), object)
    for index, (row, bound) in enumerate(zip(rows, bounds, strict=True)):
        fraction = 0
        for value in row:
            fraction = fraction << 64 | value
        numbers[index] = (fraction * int(bound)) >> (64 * word_count)
    return numbers


def _upper_product(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The upper 64 bits of the products of 64-bit numbers: schoolbook multiplication of their 32-bit halves."""
    a_low, a_high = a & _LOW_HALF, a >> _HALF_BITS
    b_low, b_high = b & _LOW_HALF, b >> _HALF_BITS
    # Neither sum can overflow: (2³² − 1)² + 2 (2³² − 1) is 2⁶⁴ − 1.
    cross = a_high * b_low + (a_low * b_low >> _HALF_BITS)
    other_cross = a_low * b_high + (cross & _LOW_HALF)
    upper: NDArray[np.uint64] = a_high * b_high + (cross >> _HALF_BITS) + (other_cross >> _HALF_BITS)
    return upper


def draw_subset(draws: Draws, population: int, count: int) -> Numbers:
    """Draw `count` different numbers below `population`, every set equally likely, in no particular order.

    This is Floyd's algorithm: for each top number j = population − count … population − 1, draw t ≤ j and select t, or
    j itself if t was selected before.

    >>> from unseen.randomness import stream
    >>> sorted(draw_subset(stream("doctest").block(), 5, 5).tolist())
    [0, 1, 2, 3, 4]
    """
    if not 0 <= count <= population:
        raise UsageError(f"cannot draw {count} different numbers: only {population} exist")
    first_top = population - count
    tops = np.arange(count, dtype=number_dtype(population)) + first_top
    if not count:
        return tops
    candidates = draw_below(draws, tops + 1)
    # Which steps select their top number instead of their candidate? Those whose candidate was selected before:
    # (1) it was the candidate of an earlier step, which selected it if it was not selected already;
    _, first_occurrences = np.unique(candidates, return_index=True)
    replaced = np.ones(count, np.bool_)
    replaced[first_occurrences] = False
    # (2) it is the top number of an earlier step that was itself replaced. Such pointers lead back from step to step,
    # so repeating the rule until nothing changes ends after as many rounds as the longest chain of pointers.
    points_to_top = (candidates >= first_top) & (candidates < tops)
    pointed_step = np.where(points_to_top, candidates - first_top, np.arange(count)).astype(np.int64)
    while True:
        updated = replaced | (points_to_top & replaced[pointed_step])
        if (updated == replaced).all():
            return np.where(replaced, tops, candidates)
        replaced = updated


def skip_excluded(numbers: Numbers, excluded: Numbers) -> Numbers:
    """Translate numbers that count only what is not excluded into numbers that count everything.

    `excluded` is sorted, without repeats. Before the excluded number e[i] lie e[i] − i numbers that are not excluded,
    so a number has to jump over all e[i] with e[i] − i ≤ number.

    >>> skip_excluded(np.array([0, 1, 2, 3]), np.array([1, 2, 5])).tolist()
    [0, 3, 4, 6]
    """
    return numbers + np.searchsorted(excluded - np.arange(len(excluded)), numbers, side="right")


# Counting and numbering examples


@dataclass(frozen=True)
class Level:
    """Running sums over the functions that may come next, with a certain number of functions to go.

    - `before` (positions, functions): how many continuations begin with a smaller function;
    - `through`, flat: how many begin with this or a smaller function. Row p is shifted by p · `stride`, which is more
      than any row's total, so that the whole array ascends and a single search serves all rows at once.
    """

    before: Numbers
    through: Numbers
    stride: int


class Enumeration:
    """The examples that an automaton accepts over certain tables (functions, symbols), counted and numbered.

    A *position* is where a walk is: state · symbols + symbol. C(r, p), the number of ways to complete a walk from
    position p with r more functions, is 1 or 0 for r = 0 (may it end there?), and otherwise the sum of C(r − 1, ·) over
    the positions to which the legal functions lead.
    """

    def __init__(self, automaton: Automaton, tables: Ints) -> None:
        self.automaton = automaton
        self.tables = tables
        self.symbols: int = tables.shape[1]
        # The position after each function, (positions, functions). Where a function is illegal (state −1) any valid
        # index does, because `_legal` removes it.
        after = np.maximum(automaton.next_state, 0)[:, None, :] * self.symbols + tables.T[None]
        self.after: Ints = after.reshape(-1, len(tables))
        legal = automaton.legal.transpose(0, 2, 1) & (automaton.next_state >= 0)[:, None, :]
        self._legal = legal.reshape(self.after.shape)
        # Python integers: counts of long chains exceed 64 bits.
        self._counts: list[Numbers] = [np.repeat(automaton.final.astype(object) * 1, self.symbols)]
        self._levels: dict[int, Level] = {}

    def counts(self, remaining: int) -> Numbers:
        """C(remaining, position) as Python integers, (positions,)."""
        while len(self._counts) <= remaining:
            self._counts.append(self.continuations(len(self._counts)).sum(-1))
        return self._counts[remaining]

    def continuations(self, remaining: int) -> Numbers:
        """How many completions begin with each function, (positions, functions)."""
        ways: Numbers = self._legal * self.counts(remaining - 1)[self.after]
        return ways

    def viable(self, remaining: int) -> Bools:
        """Which functions may come next and can be completed, (positions, functions)."""
        viable: Bools = self.continuations(remaining) > 0
        return viable

    def start_counts(self, length: int) -> Numbers:
        """How many examples of a length start with each symbol, as Python integers."""
        return self.counts(length)[: self.symbols]  # state 0 is the start

    def total(self, length: int) -> int:
        """How many examples of a length there are."""
        return int(self.start_counts(length).sum())

    def totals(self, lengths: Iterable[int]) -> dict[int, int]:
        """How many examples of each of these lengths there are."""
        return {length: self.total(length) for length in lengths}

    def unrank(self, numbers: Numbers, length: int) -> Walks:
        """The examples of a length with these numbers."""
        begins = self.start_counts(length)
        through = np.cumsum(begins).astype(numbers.dtype)
        # Side "right": a number equal to a running sum belongs to the next symbol, and symbols without examples, whose
        # sum does not rise, are passed over.
        start = position = np.searchsorted(through, numbers, side="right")
        remainder = numbers - (through - begins.astype(numbers.dtype))[start]
        functions = np.empty((len(numbers), length), np.int64)
        for step in range(length):
            # The remainder is the number among the completions from this position; the running sums say with which
            # function that completion begins, and what remains after the completions of smaller functions.
            level = self._level(length - step)
            shift = position.astype(level.through.dtype) * level.stride
            index = np.searchsorted(level.through, remainder.astype(level.through.dtype) + shift, side="right")
            functions[:, step] = index - position * len(self.tables)
            remainder = remainder - level.before[position, functions[:, step]]
            position = self.after[position, functions[:, step]]
        return start, functions

    def rank(self, start: Ints, functions: Ints) -> Numbers:
        """The numbers of examples of one length; −1 for those that the automaton does not accept."""
        length = functions.shape[1]
        begins = self.start_counts(length)
        # The examples before this one: with smaller start symbols, then, step by step, with smaller functions.
        number = (np.cumsum(begins) - begins).astype(number_dtype(self.total(length)))[start]
        accepted = begins[start] > 0
        position = start
        for step in range(length):
            function = functions[:, step]
            number = number + self._level(length - step).before[position, function]
            accepted = accepted & self.viable(length - step)[position, function]
            position = self.after[position, function]
        return np.where(accepted, number, -1)

    def covered(self, lengths: Iterable[int]) -> Bools:
        """Which functions occur in some example of these lengths, (functions,)."""
        covered = np.zeros(len(self.tables), np.bool_)
        for length in lengths:
            # Forward over the positions that examples of this length reach, from those of the start state.
            reached = np.arange(len(self.after)) < self.symbols
            for remaining in range(length, 0, -1):
                steps = reached[:, None] & self.viable(remaining)
                covered |= steps.any(0)
                reached = np.zeros_like(reached)
                reached[self.after[steps]] = True
        return covered

    def _level(self, remaining: int) -> Level:
        if remaining not in self._levels:
            ways = self.continuations(remaining)
            through = np.cumsum(ways, axis=1)
            # More than any total: the last sum of a row plus its shift stays below the shift of the next row.
            stride = int(through[:, -1].max()) + 1
            dtype = number_dtype(stride * (len(through) + 1))
            shift = np.arange(len(through)).astype(dtype)[:, None] * stride
            before = (through - ways).astype(dtype)
            self._levels[remaining] = Level(before, (through.astype(dtype) + shift).reshape(-1), stride)
        return self._levels[remaining]


# Drawing examples step by step, as the published code does


def draw_walks(examples: Enumeration, draws: Draws, count: int, length: int) -> Walks:
    """Draw examples of one length independently: a start symbol, then each function uniformly among the viable ones.

    That is uniform over examples only where every position offers the same number of functions. Functions after which
    the example could not be completed are not viable, so no walk gets stuck.
    """
    possible = np.flatnonzero(examples.start_counts(length) > 0)
    start = position = possible[draws.integers(len(possible), count)]
    functions = np.empty((count, length), np.int64)
    for step in range(length):
        viable = examples.viable(length - step)
        order = np.argsort(~viable, axis=1, kind="stable")  # viable functions first, ascending
        choice = draws.integers(viable.sum(1)[position], count)
        functions[:, step] = order[position, choice]
        position = examples.after[position, functions[:, step]]
    return start, functions


def walk_probabilities(examples: Enumeration, walks: Walks) -> Floats:
    """The probability with which `draw_walks` draws each of these examples, among those of its length."""
    position, functions = walks
    length = functions.shape[1]
    probability = np.full(len(position), 1 / max(1, int((examples.start_counts(length) > 0).sum())))
    for step in range(length):
        probability /= examples.viable(length - step).sum(1)[position]
        position = examples.after[position, functions[:, step]]
    return probability


def draw_distinct_walks(examples: Enumeration, draws: Draws, count: int, length: int, excluded: Numbers) -> Numbers:
    """The numbers of `count` different examples, none of them excluded, drawn step by step with repeats dropped."""
    total = examples.total(length)
    if count + len(excluded) > total:
        raise UsageError(
            f"cannot draw {count} different examples of {length} functions: only {total - len(excluded)} exist"
        )
    if 2 * (count + len(excluded)) > total:
        # Dropping repeats would take for ever when few examples are left. Instead every example gets the random key
        # log(u) / probability, and the largest keys win: the same distribution (weighted sampling without replacement,
        # Efraimidis and Spirakis 2006).
        numbers = np.setdiff1d(np.arange(total), excluded)
        uniform = draws.uniform(len(numbers)) + 2.0**-54  # never zero, so that the logarithm exists
        keys = portable_log(uniform) / walk_probabilities(examples, examples.unrank(numbers, length))
        return numbers[np.argsort(-keys, kind="stable")[:count]]
    selected = np.empty(0, number_dtype(total))
    while len(selected) < count:
        # Twice as many as are missing, and some: few rounds are needed although at most half of all are used up.
        fresh = examples.rank(*draw_walks(examples, draws, 2 * (count - len(selected)) + 16, length))
        joined = np.concatenate([selected, fresh[~np.isin(fresh, excluded)]])
        _, first_occurrences = np.unique(joined, return_index=True)
        selected = joined[np.sort(first_occurrences)][:count]  # in the order in which they were drawn
    return selected
