"""The ten-minute tutorial runs from top to bottom, and its models do what its words say."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from blocks import OUTPUT, ROOT, blocks, run

import unseen

PAGE = ROOT / "docs" / "tutorial.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the page was run."""
    found = tmp_path_factory.mktemp("tutorial")
    done = run(PAGE, found)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
    return found


def accuracies(folder: Path, condition: str = "ood/single") -> pd.DataFrame:
    """Of the best weights, over all examples, a row per run."""
    records = unseen.results(folder)
    return records[(records.condition == condition) & (records.selection == "best") & (records.metric == "accuracy")
                   & (records.factor == "")]


def test_nothing_is_left_out() -> None:
    code = [block for block in blocks(PAGE) if block.language not in OUTPUT]
    assert len(code) >= 8 and not any(block.reason for block in code)


@pytest.mark.slow
def test_it_leaves_what_it_says(folder: Path) -> None:
    assert (folder / "reading.html").read_text().startswith("<!")
    assert (folder / "seeds.svg").read_text().startswith("<svg")


@pytest.mark.slow
def test_the_transformer_is_right_and_the_lstm_loses_where_the_feature_occurs_once(folder: Path) -> None:
    lstm, transformer = (accuracies(folder / "runs" / name).value for name in ("lstm", "transformer"))
    assert len(lstm) == len(transformer) == 3
    assert transformer.min() > 0.97 > lstm.mean()
    assert accuracies(folder / "runs" / "lstm", "iid").value.mean() > lstm.mean() + 0.02


@pytest.mark.slow
def test_it_is_the_attention_of_the_decoder(folder: Path) -> None:
    found = accuracies(folder / "runs" / "reading").groupby("attention").value
    assert set(found.groups) == {"neither", "encoder", "decoder"}
    assert found.min()["decoder"] > found.max()["neither"] + 0.2
