"""The order of rows comes from what they say, never from when they were written."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from support.store_builder import Levels, build
from unseen.cli.main import app

MODELS = ("lstm", "retrieval-transformer")


def curve(levels: Levels, seed: int) -> dict[tuple[int, str, str], float]:
    return {(step, "iid", "accuracy"): 0.5 + step / 3000 + seed / 100 for step in (100, 200)}


def status(levels: Levels, seed: int) -> str:
    return "failed" if seed == 1 else "finished"


def grow(path: Path, seed_lists: list[list[int]]) -> Path:
    """A store whose trials were entered, and whose results were committed, in this order of their seeds."""
    for seeds in seed_lists:
        build(path, axes={"model": MODELS}, seeds=seeds, status=status, curve=curve)
    return path


def csv(directory: Path, *flags: str) -> str:
    done = CliRunner().invoke(app, ["results", str(directory), "--format", "csv", *flags])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("flags", [[], ["--curves"], ["--trials"], ["--failures"], ["--success"]])
def test_a_store_that_grew_in_another_order_gives_the_same_table(flags: list[str], tmp_path: Path) -> None:
    whole = csv(grow(tmp_path / "whole", [[0, 1, 2, 3]]), *flags)
    assert whole.count("\n") > 1
    assert csv(grow(tmp_path / "backwards", [[3], [2], [1], [0]]), *flags) == whole
    assert csv(grow(tmp_path / "mixed", [[2, 0], [3, 1]]), *flags) == whole


def test_provenance_has_its_runs_in_the_same_order_too(tmp_path: Path) -> None:
    """The times differ, the trials do not."""
    order = []
    for name, seed_lists in (("whole", [[0, 1, 2, 3]]), ("backwards", [[3], [2], [1], [0]])):
        lines = csv(grow(tmp_path / name, seed_lists), "--provenance").splitlines()
        order.append([line.split(",")[0] for line in lines])
    assert len(order[0]) == 7
    assert order[0] == order[1]
