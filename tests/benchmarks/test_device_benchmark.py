"""The sweep over stack sizes that docs/gpu.md names, on the device that is always there."""

from __future__ import annotations

import pytest
from benchmarks.device import main


def test_a_sweep(capsys: pytest.CaptureFixture[str]) -> None:
    main(["cpu", "--sizes", "1,3", "--steps", "2"])
    title, _, first, second = capsys.readouterr().out.splitlines()
    assert title == "retrieval-transformer on retrieval/T6, cpu"
    assert [int(line.split()[0]) for line in (first, second)] == [1, 3]
    assert all(float(line.split()[1]) > 0 and line.split()[2] == "-" for line in (first, second))
