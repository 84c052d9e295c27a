"""Specs: mistakes surface when they are written down."""

from __future__ import annotations

import math

import pytest

from unseen.errors import UsageError
from unseen.spec import Field, GridShape, Spec, Stream, Target

TOKENS = Stream("tokens", 10)
SPEC = Spec(
    (TOKENS, Stream("trials", 101, GridShape(10, 10))),
    (
        Field("token", "category", 30, "tokens"),
        Field("real", "mask", 1, "tokens"),
        Field("trial", "real", 3, "trials"),
        Field("query", "bits", 36),
    ),
    Target("category", 8),
)


@pytest.mark.parametrize(
    ("streams", "fields", "target", "words"),
    [
        ((TOKENS, TOKENS), (), Target("binary"), "two streams have the same name: tokens, tokens"),
        ((), (Field("x", "real"), Field("x", "bits")), Target("binary"), "two fields have the same name: x, x"),
        (
            (TOKENS,),
            (Field("x", "real", 1, "token"),),
            Target("binary"),
            "along 'token', which is not a stream. Did you mean",
        ),
        (
            (),
            (Field("x", "real", 1, "tokens"),),
            Target("binary"),
            "along 'tokens', which is not a stream. None are known",
        ),
        ((TOKENS,), (), Target("binary", 1, "tokenz"), "along 'tokenz', which is not a stream"),
        ((), (Field("x", "real", 0),), Target("binary"), "field 'x' needs a positive width"),
        ((), (Field("m", "mask"),), Target("binary"), "field 'm' needs a positive width, and a mask needs a stream"),
        ((), (), Target("category", 0), "the target needs a positive width, got 0"),
    ],
)
def test_mistakes_are_refused(
    streams: tuple[Stream, ...], fields: tuple[Field, ...], target: Target, words: str
) -> None:
    with pytest.raises(UsageError) as caught:
        Spec(streams, fields, target)
    assert words in str(caught.value)


def test_lookups() -> None:
    assert SPEC.field("query") == Field("query", "bits", 36)
    assert SPEC.stream("trials").order == GridShape(10, 10)
    assert [field.name for field in SPEC.along("tokens")] == ["token", "real"]
    assert [field.name for field in SPEC.along(None)] == ["query"]
    with pytest.raises(UsageError, match="no input field 'tokn'; it has token, real, trial, query"):
        SPEC.field("tokn")
    with pytest.raises(UsageError, match=r"no stream 'trial'\. Did you mean 'trials'"):
        SPEC.stream("trial")


def test_chance() -> None:
    assert Target("binary", 5).chance == 0.5
    assert Target("category", 8).chance == 0.125
    assert math.isnan(Target("real", 3).chance)


def test_specs_are_values() -> None:
    again = Spec(SPEC.streams, SPEC.inputs, SPEC.target)
    assert again == SPEC
    assert hash(again) == hash(SPEC)
