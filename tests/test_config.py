"""Configs: strict, frozen, and the source of ids."""

from __future__ import annotations

import pickle
from functools import cached_property
from typing import ClassVar, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ConfigDict, ValidationError, model_validator

from unseen.config import Config, canonical, digest
from unseen.errors import UsageError


class Recipe(Config):
    name: Literal["plain", "fancy"] = "plain"
    version: ClassVar[int] = 3
    steps: int = 100
    rate: float = 0.001
    clip: float | None = 1.0
    betas: tuple[float, ...] = (0.9, 0.999)
    table: tuple[tuple[int, int], ...] | None = None

    @model_validator(mode="after")
    def _steps_are_even(self) -> Recipe:
        if self.steps % 2:
            raise UsageError(f"steps must be even, got {self.steps}")
        return self


class Named(Config):
    width: int


def test_unknown_option_names_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        Recipe.parse({"name": "fancy", "setps": 10})
    assert str(caught.value) == "fancy: unknown option 'setps'. Did you mean 'steps'?"


def test_unknown_option_is_never_answered_with_name() -> None:
    with pytest.raises(UsageError, match="Known: betas, clip, rate, steps, table"):
        Recipe.parse({"nme": "fancy"})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"steps": "many"}, "plain: steps = 'many': Input should be a valid integer"),
        ({"steps": 3}, "plain: steps must be even, got 3"),
        ({"rate": float("nan")}, "plain: rate = nan: Input should be a finite number"),
        ({"rate": float("inf")}, "plain: rate = inf: Input should be a finite number"),
        ({"betas": [0.9, "x"]}, "plain: betas.1 = 'x': Input should be a valid number"),
    ],
)
def test_wrong_values_are_usage_errors_that_name_the_place(options: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        Recipe.parse({"name": "plain", **options})
    assert str(caught.value).startswith(words)


def test_missing_option_and_several_complaints() -> None:
    with pytest.raises(UsageError) as caught:
        Named.parse({"widht": 3})
    message = str(caught.value)
    assert message.startswith("Named: ")
    assert "option 'name' is missing" in message
    assert "option 'width' is missing" in message
    assert "unknown option 'widht'. Did you mean 'width'?" in message


def test_configs_are_frozen_and_hashable() -> None:
    recipe = Recipe()
    with pytest.raises(ValidationError):
        recipe.steps = 4  # type: ignore[misc]
    assert {recipe: 1}[Recipe(steps=100)] == 1


def test_options_drop_defaults_and_never_the_name() -> None:
    assert Recipe().options() == {"name": "plain"}
    assert Recipe(name="plain", steps=100, clip=1).options() == {"name": "plain"}
    assert Recipe(steps=20, clip=None).options() == {"name": "plain", "steps": 20, "clip": None}
    assert Named(name="x", width=1).options() == {"name": "x", "width": 1}


def test_tuples_become_lists_and_come_back() -> None:
    recipe = Recipe(betas=(0.5,), table=((1, 2), (3, 4)))
    assert recipe.options() == {"name": "plain", "betas": [0.5], "table": [[1, 2], [3, 4]]}
    assert Recipe.parse(recipe.options()) == recipe
    assert Recipe.parse({"betas": [0.9, 0.999]}).options() == {"name": "plain"}


def test_identity_has_the_version_and_does_not_see_how_a_value_was_written() -> None:
    assert Recipe(steps=20).identity() == {"version": 3, "name": "plain", "steps": 20}
    assert Recipe.parse({"rate": 1}).identity() == Recipe(rate=1.0).identity()
    assert canonical(Recipe(rate=1).identity()) == '{"name":"plain","rate":1.0,"version":3}'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": {"d": None, "c": True}}, '{"a":{"c":true,"d":null},"b":1}'),
        ([0.1, 1e-3, 1e22, 1.0, 3e-7], "[0.1,0.001,1e+22,1.0,3e-07]"),
        ((1, (2, 3)), "[1,[2,3]]"),
        ("−Pos", '"−Pos"'),
    ],
)
def test_canonical_text(value: object, text: str) -> None:
    assert canonical(value) == text


def test_canonical_refuses_what_is_no_json_number() -> None:
    with pytest.raises(ValueError, match="Out of range"):
        canonical(float("nan"))


def test_digest_is_fixed_for_ever() -> None:
    # The ids of every record anyone has ever stored depend on these.
    assert digest({}) == "44136fa355b3678a"
    assert digest(Recipe(steps=20, betas=(0.5,)).identity()) == "cc6ecee18c75a7ca"


@settings(derandomize=True, deadline=None, max_examples=50)
@given(st.dictionaries(st.text(max_size=5), st.integers() | st.floats(-1e300, 1e300), max_size=6))
def test_digest_does_not_depend_on_the_order_of_keys(value: dict[str, float]) -> None:
    assert digest(dict(reversed(value.items()))) == digest(value)


class Squares(Config):
    name: str = "squares"
    count: int = 3

    @cached_property
    def made(self) -> list[int]:
        return [n * n for n in range(self.count)]


def test_what_was_worked_out_stays_with_its_options() -> None:
    """A copy with other options must not say what the old ones gave; another process need not be sent it."""
    one = Squares()
    assert one.made == [0, 1, 4]
    assert one.model_copy(update={"count": 2}).made == [0, 1]
    sent = pickle.loads(pickle.dumps(one))
    assert sent == one
    assert "made" not in sent.__dict__
    assert sent.made == [0, 1, 4]


def test_its_text_is_written_once_and_is_no_option() -> None:
    one = Recipe(steps=10)
    assert one.as_json == one.model_dump_json()
    assert one.as_json is one.as_json
    assert list(one) == list(Recipe(steps=10)) and one == Recipe(steps=10)
    assert one.model_copy(update={"steps": 20}).as_json == Recipe(steps=20).as_json


class Open(Config):
    model_config = ConfigDict(extra="allow")

    name: str = "open"


def test_extra_values_of_a_config_that_allows_them_are_options_and_part_of_the_identity() -> None:
    """They have no field, and so no default: this is how a user's own model keeps its options."""
    assert Open.parse({"width": 8}).options() == {"name": "open", "width": 8}
    assert Open.parse({"width": 8}).identity() != Open.parse({"width": 9}).identity()
