"""The store that the report is measured on: full, sound, and of as many runs as it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.report import VALIDATIONS, fill, report
from benchmarks.rows import Asked

from unseen.store.store import Store


def test_the_made_up_store_is_whole(tmp_path: Path) -> None:
    assert fill(tmp_path / "store", range(1)) == 400
    with Store.read(tmp_path / "store") as store:
        assert set(store.status().values()) == {"finished"} and len(store.status()) == 400
        records = store.records()
        assert len(records) == 400 * 20 and records.value.between(0, 1).all()
        assert len(store.points()) == 400 * VALIDATIONS * 2
        means = records.query("metric == 'accuracy' and factor == ''").groupby("variant", sort=False).value.mean()
        assert means.is_monotonic_increasing and len(means) == 4


@pytest.mark.slow
def test_the_benchmark_runs() -> None:
    rows = {row.figure: row.value for row in report(Asked(quick=True, only="runs=400"))}
    assert 0.5 < rows["size of the page"] < 25
    assert list(rows)[:3] == ["size of the page", "written", "written, CPU time"] and min(rows.values()) > 0
