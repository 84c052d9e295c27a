"""The four models of examples/your_models.py on one task of each family, trained for a few steps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import unseen

EXAMPLES = Path(__file__).parents[2] / "examples"
TASKS = {
    "rules": unseen.task("rules/rnn", rules=2, dimension=4, length=4),
    "ctl": unseen.task("ctl/A", symbols=4, functions=8, max_length=3, train_size=150, iid_size=40, ood_size=100),
    "gcog": unseen.task("gcog/distractor", grid=(3, 3), distractors=(1, 2), ood_distractors=(4,)),
    "retrieval": unseen.task("retrieval/T1", length=4, train_size=200, evaluation_size=100),
}
TOGETHER = {"Recurrent": False, "Stock": False, "StateSpace": True, "Bert": False}
"""Whether seeds can be trained as one: not with layers that vmap refuses, nor with dropout of torch's own."""


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.mark.parametrize("family", TASKS)
@pytest.mark.parametrize("model", TOGETHER)
@pytest.mark.filterwarnings("ignore:your_models.Bert. 1 of")
def test_a_foreign_model_trains_on_a_task_of_each_family(model: str, family: str) -> None:
    if model == "Bert":
        pytest.importorskip("transformers")
    task = TASKS[family]
    runs = unseen.train(
        task,
        unseen.model(f"your_models:{model}", width=8),
        seeds=2,
        stack=2,
        steps=3,
        batch=6,
        validate_every=3,
        validation_examples=20,
        evaluation=unseen.Evaluation(examples=30),
        progress="none",
    )
    assert set(runs.trials.status) == {"finished"}
    assert runs.trials.note.str.contains("member by member").tolist() == [not TOGETHER[model]] * 2
    whole = runs.table.query("factor == '' and metric == 'loss'")
    assert set(whole.split) == set(task.splits) - {"train"} and np.isfinite(whole.value).all()
    activations = runs.activations(n=5).activations[f"your_models:{model}", 1]
    assert {"prediction", "encoder.state", "readout.state"} == set(activations)
    begun = runs.curves.query("metric == 'loss' and step == 0").value.tolist()
    assert begun[0] != begun[1]


def test_one_of_them_on_the_command_line(tmp_path: Path) -> None:
    """From the directory it lies in, which `-P` takes off the path as an installed command does."""
    (tmp_path / "your_models.py").write_text((EXAMPLES / "your_models.py").read_text())
    small = [
        "length=4",
        "train_size=200",
        "evaluation_size=100",
        "batch=6",
        "validate_every=3",
        "validation_examples=20",
        "width=8",
        "layers=1",
    ]

    command = [
        sys.executable,
        "-P",
        "-m",
        "unseen",
        "train",
        "retrieval/T1",
        "your_models:Stock",
        "--seeds",
        "2",
        "--steps",
        "3",
        "--out",
        "runs",
        *(part for option in small for part in ("--set", option)),
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "over 2 seeds" in done.stdout
    table = unseen.results(tmp_path / "runs")
    assert set(table.model) == {"your_models:Stock"} and set(table.model_options) == {"layers=1 width=8"}
