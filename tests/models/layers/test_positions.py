from __future__ import annotations

import math

import pytest
import torch

from unseen.errors import UsageError
from unseen.models.layers.positions import AddedPositions, RelativeScores, rotate, sinusoidal_code, sinusoids
from unseen.spec import GridShape, Stream

CPU = torch.device("cpu")


def test_sinusoids() -> None:
    table = sinusoids(7, 100, torch.float32, CPU)
    assert torch.equal(table[0], torch.tensor([0.0, 1.0] * 50))
    for place, channel in ((1, 0), (3, 1), (6, 98), (5, 47)):
        angle = place / 10_000 ** (2 * (channel // 2) / 100)
        expected = math.cos(angle) if channel % 2 else math.sin(angle)
        assert table[place, channel].item() == pytest.approx(expected, abs=1e-7)
    assert torch.equal(sinusoids(3, 100, torch.float32, CPU), table[:3])
    assert sinusoidal_code(torch.arange(2), 5).shape == (2, 5)


def test_a_table_made_while_evaluating_serves_in_training() -> None:
    with torch.inference_mode():
        table = sinusoids(11, 6, torch.float32, CPU)
    weight = torch.ones(11, 6, requires_grad=True)
    (gradient,) = torch.autograd.grad((weight * table).sum(), weight)
    assert torch.equal(gradient, table)


def test_a_grid_has_rows_and_columns_and_its_end_token_none() -> None:
    positions = AddedPositions(Stream("stimulus", 13, GridShape(3, 4)), 8, "sinusoidal")
    code = positions(13, torch.zeros(1))
    assert torch.equal(
        code[5], torch.cat([sinusoidal_code(torch.tensor([1]), 4), sinusoidal_code(torch.tensor([1]), 4)], 1)[0].float()
    )
    assert torch.equal(code[6, :4], code[5, :4]) and not torch.equal(code[6, 4:], code[5, 4:])
    assert not code[12].any()
    learned = AddedPositions(Stream("stimulus", 13, GridShape(3, 4)), 8, "learned")
    code = learned(13, torch.zeros(1))
    rows, columns = learned.tables
    assert torch.equal(code[7], rows[1] + columns[3]) and not code[12].any()
    assert learned(5, torch.zeros(1)).shape == (5, 8)


@pytest.mark.parametrize("scheme", ["none", "rotary", "relative"])
def test_these_schemes_add_nothing_to_a_sequence(scheme: str) -> None:
    assert AddedPositions(Stream("s", 5), 8, scheme)(5, torch.zeros(1)) is None


@pytest.mark.parametrize("scheme", ["none", "sinusoidal", "learned", "rotary", "relative"])
def test_a_set_has_no_positions(scheme: str) -> None:
    positions = AddedPositions(Stream("s", 5, "set"), 8, scheme)
    assert positions(5, torch.zeros(1)) is None and not list(positions.parameters())


def test_schemes_between_tokens_still_give_a_grid_its_rows_and_columns() -> None:
    grid = Stream("s", 12, GridShape(3, 4))
    expected = AddedPositions(grid, 8, "sinusoidal")(12, torch.zeros(1))
    assert torch.equal(AddedPositions(grid, 8, "rotary")(12, torch.zeros(1)), expected)
    assert AddedPositions(grid, 8, "none")(12, torch.zeros(1)) is None


def test_learned_positions_refuse_a_longer_stream() -> None:
    positions = AddedPositions(Stream("s", 5), 8, "learned")
    assert positions(3, torch.zeros(1)).shape == (3, 8)
    with pytest.raises(UsageError, match="know 5 places of stream 's', 6 arrived"):
        positions(6, torch.zeros(1))


def test_rotary_products_depend_on_differences_alone() -> None:
    query, key = torch.randn(2, 1, 6, dtype=torch.float64), torch.randn(2, 1, 6, dtype=torch.float64)

    def product(i: int, j: int) -> torch.Tensor:
        return (rotate(query, (i,)) * rotate(key, (j,))).sum(-1)

    torch.testing.assert_close(product(3, 5), product(10, 12), rtol=1e-12, atol=1e-12)
    assert not torch.allclose(product(3, 5), product(3, 6))
    torch.testing.assert_close(rotate(query, (0,)), query)
    torch.testing.assert_close(rotate(query, (9,)).norm(dim=-1), query.norm(dim=-1))


@pytest.mark.parametrize("places", [(0, 1, 2, 3, 4), (0, 0, 0, -1, 4)])
@pytest.mark.parametrize("heads", [1, 2])
def test_relative_scores_by_the_formula(places: tuple[int, ...], heads: int) -> None:
    layer = RelativeScores(8, heads).double()
    for p in (layer.content, layer.position):
        assert not p.any()
        p.data.normal_()
    size = 8 // heads
    query, key = torch.randn(2, 3, heads, 5, size, dtype=torch.float64).unbind(0)
    scores = layer(query[:, :, 1:4], key, places[1:4], places)
    for h in range(heads):
        for i in range(1, 4):
            for j in range(5):
                code = sinusoidal_code(torch.tensor([places[j] - places[i]]), 8)[0]
                position_key = (code @ layer.weight)[h * size : (h + 1) * size]
                expected = (query[:, h, i] + layer.content[h, 0]) * key[:, h, j]
                expected = expected + (query[:, h, i] + layer.position[h, 0]) * position_key
                torch.testing.assert_close(scores[:, h, i - 1, j], expected.sum(-1), rtol=1e-10, atol=1e-10)
