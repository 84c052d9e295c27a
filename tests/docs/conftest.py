"""Pages are written for what the package registers, not for what other tests have put there beside it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from unseen.models import MODELS
from unseen.studies.study import STUDIES
from unseen.tasks import TASKS


@pytest.fixture(scope="module", autouse=True)
def only_the_package() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for registry in (TASKS, MODELS, STUDIES):
            own = {entry.name: entry for entry in registry if entry.target.startswith("unseen.")}
            patch.setattr(registry, "_entries", own)
        yield
