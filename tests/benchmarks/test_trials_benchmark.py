"""The benchmark of many trials, with few: what its figures are made of."""

from __future__ import annotations

import pytest
from benchmarks.rows import Asked
from benchmarks.studies import Commit
from benchmarks.trials import FITTED, STACK, UNITS, tiny, trials, written

from unseen.running.stacks import stack_key


@pytest.mark.parametrize("count", [10, 100, 10_000])
def test_tiny_trials_are_as_many_as_asked_and_of_one_shape(count: int) -> None:
    found = [entry.trial for entry in tiny(count)]
    assert len({trial.id for trial in found}) == len(found) == count
    assert len({stack_key(trial) for trial in found[:100]}) == 1


def test_writing_is_measured_at_both_ends_of_a_run() -> None:
    """Ten records a commit. The first of thirty takes 10 µs of CPU in 30 µs, each next one 10 and 20 more."""
    seen = [
        Commit(came=i, written=i + 30e-6 + i * 30e-6, seconds=0, cpu_before=i, cpu_after=i + 10e-6 * (1 + i))
        for i in range(30)
    ]
    found = written(seen, records=10)
    assert found["writing per record, first tenth"] == pytest.approx([1, 2, 3], rel=1e-3)
    assert found["writing per record, last tenth"] == pytest.approx([28, 29, 30], rel=1e-3)
    assert found["waiting per record, last tenth"] == pytest.approx([56, 58, 60], rel=1e-3)
    assert len(written(seen[:1], 10)["writing per record, last tenth"]) == 1


@pytest.mark.slow
def test_rows() -> None:
    rows = list(trials(Asked(quick=True)))
    for count in (10, 40):
        own = {row.figure: row for row in rows if row.case == f"trials={count}"}
        assert set(own) == set(UNITS) and all(row.unit == UNITS[figure] for figure, row in own.items())
        assert all(row.value > 0 for figure, row in own.items() if "grown" not in figure)
        assert own["writing per record, first tenth"].rounds == max(1, count // STACK // 10)
    assert [row.case for row in rows if row.figure == "exponent"] == [f"{figure} over trials" for figure in FITTED]


def test_only_the_trials_that_were_asked_for_are_run(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def measured(count: int) -> dict[str, list[float]]:
        asked.append(count)
        return {figure: [float(count)] for figure in UNITS}

    monkeypatch.setattr("benchmarks.trials._measured", measured)
    rows = list(trials(Asked(only="0000")))
    assert asked == [10_000] and [row.figure for row in rows] == list(UNITS)
    whole = list(trials(Asked()))
    assert asked[1:] == [10, 100, 1_000, 10_000]
    assert [row.value for row in whole if row.figure == "exponent"] == pytest.approx([1] * len(FITTED))
