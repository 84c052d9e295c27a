from __future__ import annotations

import pytest
import torch

from support.specimens import SPECS, prediction_shape, random_inputs
from unseen.errors import UsageError
from unseen.models.layers.embedding import Embed, ReadOut
from unseen.spec import Field, Spec, Stream, Target

WIDTH = 8


@pytest.mark.parametrize("name", SPECS)
def test_layout_and_shapes(name: str) -> None:
    spec = SPECS[name]
    inputs = random_inputs(spec, 3)
    tokens = Embed(spec, WIDTH, "sinusoidal")(inputs)
    length = sum(s.length for s in spec.streams) + bool(spec.along(None)) + (spec.target.along is None)
    assert tokens.states.shape == (3, length, WIDTH)
    assert len(tokens.token_positions) == length
    assert (tokens.mask is None) == all(f.kind != "mask" for f in spec.inputs)
    prediction = ReadOut(spec, WIDTH)(tokens.states[:, tokens.read])
    assert prediction.shape == prediction_shape(spec, 3)


def test_streams_then_what_is_given_once_then_the_read_out() -> None:
    spec = SPECS["retrieval"]
    embed = Embed(spec, WIDTH)
    inputs = random_inputs(spec, 2)
    tokens = embed(inputs)
    sequence = inputs["sequence"] @ embed.fields["sequence"].weight + embed.vectors[0]
    query = inputs["query"] @ embed.fields["query"].weight + embed.vectors[1]
    torch.testing.assert_close(tokens.states[:, :5], sequence)
    torch.testing.assert_close(tokens.states[:, 5], query)
    torch.testing.assert_close(tokens.states[:, 6], embed.read.expand(2, -1))
    assert tokens.read == slice(6, 7) and tokens.token_positions == (0, 1, 2, 3, 4, -1, -1)


def test_fields_of_a_stream_are_added_up() -> None:
    spec = SPECS["rules/rnn"]
    embed = Embed(spec, WIDTH)
    inputs = random_inputs(spec, 2)
    expected = inputs["x"] @ embed.fields["x"].weight + embed.fields["rule"].weight[inputs["rule"]]
    torch.testing.assert_close(embed(inputs).states, expected + embed.vectors[0])


def test_a_target_along_a_stream_is_read_there_and_comes_after_what_is_given_once() -> None:
    spec = Spec(
        (Stream("a", 4), Stream("b", 3, "set")),
        (Field("x", "real", 2, "a"), Field("y", "real", 1, "b"), Field("q", "category", 5)),
        Target("category", 6, "b"),
    )
    embed = Embed(spec, WIDTH)
    inputs = random_inputs(spec, 2)
    tokens = embed(inputs)
    assert embed.read is None and tokens.read == slice(5, 8)
    assert tokens.token_positions == (-1, 0, 1, 2, 3, 0, 0, 0)
    torch.testing.assert_close(tokens.states[:, 0], embed.fields["q"].weight[inputs["q"]] + embed.vectors[0])
    assert ReadOut(spec, WIDTH)(tokens.states[:, tokens.read]).shape == (2, 3, 6)


def test_the_mask_covers_every_token() -> None:
    spec = SPECS["gcog integer"]
    inputs = random_inputs(spec, 4)
    mask = Embed(spec, WIDTH)(inputs).mask
    assert mask.dtype == torch.bool and mask.shape == (4, 5 + 101 + 1)
    assert torch.equal(mask[:, :5], inputs["mask"]) and mask[:, 5:].all()


@pytest.mark.parametrize("positions", ["none", "sinusoidal", "rotary", "relative"])
def test_other_lengths_than_the_nominal_one(positions: str) -> None:
    spec = SPECS["retrieval"]
    embed = Embed(spec, WIDTH, positions)
    long = random_inputs(spec, 2, lengths={"sequence": 9})
    short = {"sequence": long["sequence"][:, :3], "query": long["query"]}
    tokens = embed(long)
    assert tokens.states.shape == (2, 11, WIDTH) and tokens.read == slice(10, 11)
    assert torch.equal(embed(short).states[:, :3], tokens.states[:, :3])


def test_learned_positions_know_the_nominal_length_only() -> None:
    spec = SPECS["retrieval"]
    embed = Embed(spec, WIDTH, "learned")
    embed(random_inputs(spec, 2))
    with pytest.raises(UsageError, match="5 places of stream 'sequence', 9 arrived"):
        embed(random_inputs(spec, 2, lengths={"sequence": 9}))


def test_integers_and_bytes_serve_as_bits() -> None:
    spec = SPECS["retrieval"]
    embed = Embed(spec, WIDTH)
    inputs = random_inputs(spec, 2)
    as_bytes = {k: v.to(torch.uint8) for k, v in inputs.items()}
    assert torch.equal(embed(inputs).states, embed(as_bytes).states)


def test_a_stream_of_nothing_is_refused() -> None:
    spec = Spec((Stream("s", 3),), (Field("m", "mask", 1, "s"),), Target("binary"))
    with pytest.raises(UsageError, match="'s' has no field to embed"):
        Embed(spec, WIDTH)
