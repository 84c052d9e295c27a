"""The stores of the campaign hold trials of the catalogue, so that studies can take them over."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from unseen.store.store import Store
from unseen.studies.catalog import STUDIES
from unseen.studies.study import find_catalogued

STORES = sorted((Path(__file__).parents[2] / "campaign" / "stores").glob("*/store.sqlite"))


@pytest.mark.parametrize("file", STORES, ids=lambda file: file.parent.name)
def test_trials_of_a_catalogued_study_are_the_catalogue_s(file: Path, tmp_path: Path) -> None:
    shutil.copy(file, tmp_path)
    with Store.read(tmp_path) as store:
        entries = store.tables()[1]
        name, _, version = str(store.work["study"]).partition("@")
    if name not in STUDIES:
        assert name.endswith(("-pilot", "-pilot-long")) and min(entries["seed"]) >= 1_000, "a pilot on tuning seeds"
        return
    study = find_catalogued(name)
    assert version == str(study.version)
    trials: set[str] = set()
    for scale in study.scales:
        trials.update(entry.trial.id for entry in study.entries(scale))
    assert set(entries["trial"]) <= trials
