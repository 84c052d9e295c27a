"""The tiers of `make test-fast` name files and folders that exist."""

from __future__ import annotations

import pytest

from support.tiers import TESTS, TIERS


@pytest.mark.parametrize("tier", TIERS)
def test_every_place_of_a_tier_exists(tier: str) -> None:
    assert [place for place in TIERS[tier] if not (TESTS / place).exists()] == []
