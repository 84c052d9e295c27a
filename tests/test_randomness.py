"""Randomness: fixed numbers, pure blocks, right distributions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import special, stats

from unseen.randomness import Draws, RandomStream, inverse_normal, portable_log, stream

N = 40_000
LEAST = 1e-4
"""The least p-value that passes. The draws are fixed, so a test that passes once passes always."""

SHAPES = [((), ()), (0, (0,)), ((0,), (0,)), ((3, 0), (3, 0)), (5, (5,)), ((2, 3), (2, 3)), ([2, 2], (2, 2))]


def golden(block: int = 0) -> Draws:
    return stream("golden", "x", 0).block(block)


def draws(name: str) -> Draws:
    return stream("test", name).block()


class TestGolden:
    """Numbers that never change: all data of all tasks rest on them."""

    def test_key(self) -> None:
        assert stream("golden", "x", 0) == RandomStream((12022754619050897456, 6101263673731434973))

    def test_words(self) -> None:
        assert golden().words(3).tolist() == [8861658214873655462, 17196708327372505863, 3988681464486137655]
        assert golden(1).words(2).tolist() == [15336687383763276049, 3610690540838226061]

    def test_lanes(self) -> None:
        assert golden().lanes((2, 3), np.uint8).tolist() == [[166, 104, 119], [2, 50, 239]]
        assert golden().lanes(5, np.uint16).tolist() == [26790, 631, 61234, 31482, 17159]
        assert golden().lanes(2, np.uint32).tolist() == [41380006, 2063265586]

    def test_uniform(self) -> None:
        assert [x.hex() for x in golden().uniform(3).tolist()] == [
            "0x1.ebebbcc809ddap-2",
            "0x1.dd4df6392e148p-1",
            "0x1.bad52545a70c4p-3",
        ]

    def test_integers(self) -> None:
        assert golden().integers(10, 8).tolist() == [0, 4, 5, 9, 7, 2, 9, 8]
        assert golden().integers(np.array([2, 1000, 10**9]), 3).tolist() == [0, 480, 590000333]

    def test_bernoulli(self) -> None:
        assert golden().bernoulli(0.3, 12).astype(int).tolist() == [0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1]

    def test_permutations(self) -> None:
        assert golden().permutations(2, 6).tolist() == [[4, 2, 5, 0, 3, 1], [0, 1, 4, 3, 2, 5]]
        assert golden().permutation(7).tolist() == [4, 6, 2, 5, 0, 3, 1]

    def test_normal(self) -> None:
        assert [x.hex() for x in golden().normal(4).tolist()] == [
            "0x1.2b8e763cf85dap+1",
            "0x1.92cf67ed88080p-5",
            "-0x1.d203a9621a610p-3",
            "-0x1.7e1e58ca37b36p+0",
        ]


class TestStreams:
    def test_a_block_starts_with_the_same_bits_whatever_was_drawn_before(self) -> None:
        named = stream("test", "blocks")
        named.block(0).words(10_000)
        later = named.block(7).words(50)
        assert named.block(3).words(4).tolist() != later[:4].tolist()
        np.testing.assert_array_equal(named.block(7).words(50), later)

    def test_blocks_do_not_overlap(self) -> None:
        blocks = [stream("test", "apart").block(b).words(1_000) for b in range(50)]
        assert len(np.unique(np.concatenate(blocks))) == 50_000

    def test_draws_go_on_where_the_last_ended(self) -> None:
        piecewise = draws("on")
        parts = [piecewise.words(3), piecewise.words(5)]
        np.testing.assert_array_equal(np.concatenate(parts), draws("on").words(8))

    @pytest.mark.parametrize(
        "other",
        [
            ("data", "a", 1),
            ("data", "a", "0"),
            ("data", "b", 0),
            ("dropout", "a", 0),
            ("data", "a"),
            ("data", ["a", 0]),
            ("data", "a", False),
            ("data", "a", 0.0),
            ("data", "a", None),
        ],
    )
    def test_streams_of_other_names_differ(self, other: tuple[object, ...]) -> None:
        ours = stream("data", "a", 0)
        theirs = stream(str(other[0]), *other[1:])
        assert theirs != ours
        assert theirs.block().words(2).tolist() != ours.block().words(2).tolist()

    def test_order_of_keys_does_not_matter(self) -> None:
        assert stream("data", {"a": 1, "b": 2}) == stream("data", {"b": 2, "a": 1})

    def test_neighbouring_seeds_are_independent(self) -> None:
        one, two = stream("data", 0).block().uniform(N), stream("data", 1).block().uniform(N)
        assert stats.pearsonr(one, two).pvalue > LEAST

    def test_global_generator_is_left_alone(self) -> None:
        before = np.random.get_state()[1].tolist()  # noqa: NPY002
        draws("global").normal(100)
        assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


class TestShapes:
    @pytest.mark.parametrize(("shape", "expected"), SHAPES)
    def test_every_draw_has_the_shape_asked_for(self, shape: object, expected: tuple[int, ...]) -> None:
        for dtype in (np.uint8, np.uint16, np.uint32, np.uint64):
            lanes = draws("shape").lanes(shape, dtype)
            assert lanes.shape == expected and lanes.dtype == dtype
        for drawn in (
            draws("shape").uniform(shape),
            draws("shape").integers(3, shape),
            draws("shape").bernoulli(0.5, shape),
            draws("shape").bernoulli(1.0, shape),
            draws("shape").normal(shape),
        ):
            assert np.shape(drawn) == expected

    def test_permutations_of_nothing_and_of_one(self) -> None:
        assert draws("p").permutations(0, 3).shape == (0, 3)
        assert draws("p").permutations(3, 0).shape == (3, 0)
        assert draws("p").permutation(1).tolist() == [0]

    def test_certain_draws_consume_as_many_bits_as_uncertain_ones(self) -> None:
        after = []
        for p in (0.0, 0.5, 1.0):
            drawn = draws("certain")
            drawn.bernoulli(p, 9)
            after.append(drawn.words(1).tolist())
        assert after[0] == after[1] == after[2]


class TestDistributions:
    def test_uniform(self) -> None:
        x = draws("uniform").uniform(N)
        assert x.min() >= 0 and x.max() < 1
        assert stats.kstest(x, "uniform").pvalue > LEAST
        assert stats.pearsonr(x[:-1], x[1:]).pvalue > LEAST

    @pytest.mark.parametrize("high", [2, 3, 36, 630])
    def test_integers(self, high: int) -> None:
        counts = np.bincount(draws("integers").integers(high, N), minlength=high)
        assert len(counts) == high
        assert stats.chisquare(counts).pvalue > LEAST

    def test_integers_below_one_are_zero(self) -> None:
        assert not draws("integers").integers(1, N).any()

    def test_integers_with_a_bound_for_each(self) -> None:
        high = np.tile([2, 5, 7], 10_000)
        x = draws("bounds").integers(high, len(high))
        for bound in (2, 5, 7):
            assert stats.chisquare(np.bincount(x[high == bound], minlength=bound)).pvalue > LEAST

    @pytest.mark.parametrize("p", [0.2, 0.25, 0.5, 0.9])
    def test_bernoulli(self, p: float) -> None:
        assert stats.binomtest(int(draws("bernoulli").bernoulli(p, N).sum()), N, p).pvalue > LEAST

    def test_bernoulli_at_the_ends(self) -> None:
        assert not draws("ends").bernoulli(0.0, N).any()
        assert draws("ends").bernoulli(1.0, N).all()

    def test_normal(self) -> None:
        x = draws("normal").normal(1_000_000)
        assert stats.kstest(x, "norm").pvalue > LEAST
        assert stats.kstest(x[:4_000], "norm").pvalue > LEAST
        assert abs(x.mean()) < 4 / np.sqrt(len(x)) and abs(x.var() - 1) < 4 * np.sqrt(2 / len(x))
        assert stats.skewtest(x).pvalue > LEAST and stats.kurtosistest(x).pvalue > LEAST
        assert stats.pearsonr(x[:-1], x[1:]).pvalue > LEAST
        for far in (2, 3, 4):
            assert stats.binomtest(int((x > far).sum()), len(x), stats.norm.sf(far)).pvalue > LEAST
            assert stats.binomtest(int((x < -far).sum()), len(x), stats.norm.sf(far)).pvalue > LEAST

    def test_permutations_are_permutations_and_all_are_equally_likely(self) -> None:
        rows = draws("permutations").permutations(24_000, 4)
        np.testing.assert_array_equal(np.sort(rows, axis=1), np.tile(np.arange(4), (24_000, 1)))
        _, counts = np.unique(rows, axis=0, return_counts=True)
        assert len(counts) == 24
        assert stats.chisquare(counts).pvalue > LEAST

    @settings(derandomize=True, deadline=None, max_examples=50)
    @given(st.integers(1, 200))
    def test_one_permutation_has_every_number_once(self, length: int) -> None:
        assert sorted(draws("one").permutation(length).tolist()) == list(range(length))


class Told(np.random.Philox):
    """Words that are told, not drawn."""

    def __init__(self, lanes: NDArray[np.uint32]) -> None:
        self.told = lanes.astype("<u4")

    def random_raw(self, size: int) -> NDArray[np.uint64]:  # type: ignore[override]
        now, self.told = self.told[: 2 * size], self.told[2 * size :]
        return now.view("<u8")


class TestNormal:
    """The lines between exact quantiles: a normal number is a known function of its 32 bits."""

    def probability(self, lanes: NDArray[np.uint32]) -> NDArray[np.float64]:
        """How likely it is to lie below: what the inverse distribution function takes."""
        odd = (lanes | np.uint32(1)).astype(np.int64)
        odd = np.where(odd >= 2**31, odd - 2**32, odd)
        return np.where(odd < 0, -odd, 2**32 - odd) * 2.0**-32

    def test_every_number_is_within_1e_5_of_its_quantile(self) -> None:
        powers = np.uint64(1) << np.arange(32, dtype=np.uint64)
        near = np.concatenate([powers + d for d in (np.uint64(0), np.uint64(1), np.uint64(2**32 - 1))]) % 2**32
        edges = np.concatenate([2**e + (np.arange(256) << max(0, e - 8)) % 2**e for e in range(31)])
        lanes = np.concatenate([near, edges, 2**32 - 1 - edges, np.arange(0, 2**32, 40_009)]).astype(np.uint32)
        lanes = lanes[: len(lanes) // 2 * 2]
        found, exact = Draws(Told(lanes)).normal(len(lanes)), special.ndtri(self.probability(lanes))
        assert np.abs(found - exact).max() < 1e-5
        assert np.abs(found).max() == pytest.approx(6.23, abs=0.01)

    def test_mirrored_bits_give_mirrored_numbers_and_order_is_kept(self) -> None:
        lanes = np.concatenate([np.arange(1, 2**31, 99_990), 2**31 - 1 - 2 * np.arange(5_000)]).astype(np.uint32) | 1
        lanes = np.unique(lanes)[: len(np.unique(lanes)) // 2 * 2]
        mirrored = (2**32 - lanes.astype(np.uint64)).astype(np.uint32)
        positive, negative = (Draws(Told(given)).normal(len(lanes)) for given in (lanes, mirrored))
        np.testing.assert_array_equal(negative, -positive)
        assert (np.diff(positive) < 0).all() and (positive > 0).all()

    def test_numbers_do_not_depend_on_how_many_are_asked_for_at_once(self) -> None:
        whole = draws("chunks").normal(70_002)
        parts = draws("chunks")
        np.testing.assert_array_equal(np.concatenate([parts.normal(n) for n in (2, 20_000, 50_000)]), whole)

    def test_single_precision_is_the_rounded_number(self) -> None:
        single = draws("single").normal((50, 40), np.float32)
        assert single.dtype == np.float32
        np.testing.assert_array_equal(single, draws("single").normal((50, 40)).astype(np.float32))


class TestFunctions:
    """Our own logarithm and inverse normal distribution against SciPy's."""

    def test_log(self) -> None:
        x = np.concatenate([np.exp(np.linspace(-700, 700, 50_001)), np.linspace(0.5, 2, 50_001)])
        np.testing.assert_allclose(portable_log(x), np.log(x), rtol=1e-14, atol=0)

    def test_inverse_normal(self) -> None:
        powers = 2.0 ** -np.arange(1.0, 54.0)
        p = np.concatenate([powers, 1 - powers, np.linspace(1e-6, 1 - 1e-6, 100_001)])
        np.testing.assert_allclose(inverse_normal(p), special.ndtri(p), rtol=1e-14, atol=1e-14)

    def test_inverse_normal_is_odd_and_rises(self) -> None:
        p = np.arange(1.0, 2.0**12) * 2.0**-13  # exact, and so is 1 − p
        np.testing.assert_array_equal(inverse_normal(1 - p), -inverse_normal(p))
        assert (np.diff(inverse_normal(p)) > 0).all()
