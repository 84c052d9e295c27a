"""The ten-minute tutorial runs from top to bottom, and its models do what its words say."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import unseen
from support.blocks import OUTPUT, ROOT, blocks, run

PAGE = ROOT / "docs" / "tutorial.md"


def accuracies(folder: Path, split: str = "ood/single") -> pd.DataFrame:
    """Of the best weights, over all examples, a row per run."""
    records = unseen.results(folder)
    return records[
        (records.split == split)
        & (records.selection == "best")
        & (records.metric == "accuracy")
        & (records.factor == "")
    ]


def test_nothing_is_left_out() -> None:
    code = [block for block in blocks(PAGE) if block.language not in OUTPUT]
    assert len(code) >= 8 and not any(block.reason for block in code)


@pytest.mark.slow
def test_it_runs_and_its_models_do_what_it_says(tmp_path: Path) -> None:
    done = run(PAGE, tmp_path)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
    assert (tmp_path / "reading.html").read_text().startswith("<!")
    assert (tmp_path / "seeds.svg").read_text().startswith("<svg")
    lstm, transformer = (accuracies(tmp_path / "runs" / name).value for name in ("lstm", "transformer"))
    assert len(lstm) == len(transformer) == 3
    assert transformer.min() > 0.97 > lstm.mean()
    assert accuracies(tmp_path / "runs" / "lstm", "iid").value.mean() > lstm.mean() + 0.02
    found = accuracies(tmp_path / "runs" / "reading").groupby("attention").value
    assert set(found.groups) == {"neither", "encoder", "decoder"}
    assert found.min()["decoder"] > found.max()["neither"] + 0.2
