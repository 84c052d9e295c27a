"""Pages are written for what the package registers, not for what other tests have put there beside it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.program import only_the_package


@pytest.fixture(scope="module", autouse=True)
def package_alone() -> Iterator[None]:
    with only_the_package():
        yield
