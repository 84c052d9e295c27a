"""Fewer resamples: no assertion of these tests depends on the third digit of an interval."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from unseen.claims import quantity


@pytest.fixture(autouse=True, scope="session")
def few_resamples() -> Iterator[None]:
    """1 000 resamples in place of 10 000."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantity, "RESAMPLES", 1_000)
        yield
