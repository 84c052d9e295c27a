"""How a wrong name is answered."""

from __future__ import annotations

import pytest

from unseen.errors import CheckFailed, UsageError, nearest


@pytest.mark.parametrize(
    ("name", "known", "answer"),
    [
        ("lenght", ["length", "preset"], "Did you mean 'length'?"),
        ("LENGTH", ["length"], "Did you mean 'length'?"),
        ("retrieval/t6", ["retrieval/T5", "retrieval/T6"], "Did you mean 'retrieval/T6'?"),
        ("zzz", ["b", "a"], "Known: a, b."),
        ("anything", [], "None are known."),
        ("on", iter(["one"]), "Did you mean 'one'?"),
    ],
)
def test_nearest(name: str, known: list[str], answer: str) -> None:
    assert nearest(name, known) == answer


def test_wrong_use_is_a_value_error_and_a_failed_check_is_not() -> None:
    # pydantic turns a ValueError raised in a validator into one of its own complaints, and nothing else.
    assert issubclass(UsageError, ValueError)
    assert not issubclass(CheckFailed, ValueError)
