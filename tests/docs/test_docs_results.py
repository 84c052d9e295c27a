"""Results pages follow from the records files that they name."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
from scipy.stats import ttest_1samp

from support.blocks import ROOT
from support.store_builder import build
from unseen.models import BACKBONES, MODELS
from unseen.store.make_records import make_records, write_records
from unseen.store.shipped_records import FOLDER, check_index, read_index
from unseen.store.store import Store

sys.path.append(str(ROOT / "docs" / "generate"))
from results_page import named_file, results_page
from what_helps import describe_what_helps
from where_learned import page as list_where_learned

PAGES = ROOT / "docs" / "results"


def test_a_page_says_what_the_records_say(tmp_path: Path) -> None:
    path = build(tmp_path / "store", study="made-up@1", axes={"variant": ["plain", "basic"]}, seeds=range(3))
    with Store.write(path) as store:
        scale = {"trials": 6, "seeds": [0, 1, 2], "minutes": None, "deviations": ["3 seeds (5)"]}
        facts = {"question": "Is it so?", "axes": [], "claims": [], "notes": [], "selection": "best"}
        store.describe({**facts, "scales": {"mini": scale}})
    with Store.read(path) as store:
        (made,) = make_records([store])
    file = write_records(made, tmp_path)
    page = results_page(file)
    assert named_file(page) == file.name == "made-up@1-mini.zip"
    assert "# made-up, mini\n\nIs it so?\n" in page
    rows = [line for line in page.splitlines() if line.startswith("| plain")]
    scores = [line.split(" | ")[4:] for line in rows if "| ood/single |" in line]
    (mean, interval, runs), *_ = scores
    assert (mean, runs) == ("0.810", "0.800 0.810 0.820 |")  # by hand: .80, .81 and .82
    assert interval == "0.785–0.835"  # 0.81 ± 4.303 × 0.01 / √3, the t quantile of two degrees of freedom
    assert "* 3 seeds (5)" in page and "6 trials in 6 s of processor time." in page
    assert "unseen run made-up --scale mini --out DIRECTORY" in page
    assert results_page(file) == page


def test_every_page_that_names_a_records_file_follows_from_it() -> None:
    pages = {path: named_file(path.read_text()) for path in sorted(PAGES.glob("*.md"))}
    assert len(pages) > 3
    for path, name in pages.items():
        if name is not None:
            assert path.read_text() == results_page(FOLDER / name), f"{path.name} does not follow from {name}"


def test_studies_that_look_inside_say_what_could_not_be_concluded() -> None:
    inside = [entry for entry in read_index().values() if entry.study.startswith("inside-")]
    assert {entry.study for entry in inside} >= {"inside-order", "inside-modules"}
    for entry in inside:
        page = (PAGES / f"{entry.study}-{entry.scale}.md").read_text("utf-8")
        assert "## What was found" in page and "## What could not be concluded" in page, entry.study
        assert f"({entry.study}-{entry.scale}.svg)" in page and (PAGES / f"{entry.study}-{entry.scale}.svg").exists()


def test_every_verdict_on_the_page_of_claims_follows_from_the_shipped_records() -> None:
    assert not check_index()
    format_page = runpy.run_path(str(ROOT / "docs" / "make_claims.py"))["format_page"]
    page = format_page([str(path.relative_to(ROOT)) for path in read_index()])
    assert (ROOT / "docs" / "claims.md").read_text("utf-8") == page, (
        "run `python docs/make_claims.py src/unseen/records/*.zip`"
    )


def test_the_list_of_where_models_have_learned_follows_from_the_records() -> None:
    page = (ROOT / "docs" / "learned.md").read_text("utf-8")
    assert page == list_where_learned(), "run `python docs/generate/where_learned.py`"
    listed = {entry.name for entry in MODELS if entry.name not in BACKBONES and f"`{entry.name}`" in page}
    assert listed == {entry.name for entry in MODELS} - set(BACKBONES)
    # By hand from the page of the study: five Bi-LSTMs, all at 1.000 on A.
    assert (
        "| `ctl-bilstm` |  | `ctl/A` in [ctl-table1, mini](results/ctl-table1-mini.md) | 5 of 5 | 1.000 | 1.000 |"
        in page
    )


def test_what_helps_compares_routers_within_tasks_at_the_best_learning_rate() -> None:
    alignments = {"softmax": [0.90, 0.80, 0.95, 0.85], "top-1": [0.40, 0.30, 0.44, 0.36]}
    rows = []
    for (routing, values), rate, task in product(alignments.items(), (0.001, 0.003), range(4)):
        trial = f"{routing} {rate} {task}"
        # The higher rate is better in distribution, and out of it much worse.
        error, beyond = (0.10, 0.20) if rate == 0.001 else (0.05, 0.50 + 0.01 * task)
        shown = values[task] if rate == 0.003 else 0.0
        for split, metric, value in (
            ("iid", "accuracy", 1 - error),
            ("ood/amplitude=2", "accuracy", 1 - beyond),
            ("iid", "specialization/alignment_normalised", shown),
            ("iid", "specialization/collapse_avg", 0.2),
            ("iid", "loss", 7.0),
        ):
            rows.append((trial, routing, rate, task, "last", "", split, metric, value, 0))
            rows.append((trial, routing, rate, task, "best", "", split, metric, 0.0, 0))
    columns = ["trial", "routing", "learning_rate", "task_seed", "selection", "factor", "split", "metric"]
    records = pd.DataFrame(rows, columns=[*columns, "value", "not_converged"]).assign(
        setting="classification", gating="joint"
    )
    axes = ["setting", "gating", "routing", "learning_rate", "task_seed"]
    manifest = SimpleNamespace(study="rules-routers", selection="last", axes=axes)
    page = describe_what_helps(SimpleNamespace(records=records, manifest=manifest))
    differences = [after - before for after, before in zip(alignments["top-1"], alignments["softmax"], strict=True)]
    low, high = ttest_1samp(differences, 0).confidence_interval()
    expected = f"{sum(differences) / 4:+.3f} [{low:+.3f}, {high:+.3f}]"
    assert f"| classification | joint | top-1 | {expected} | +0.000 [+0.000, +0.000] |" in page
    assert "* relative alignment is lower, of 1 comparisons: classification, joint, top-1." in page
    assert "* error out of distribution is lower, of 1 comparisons: nowhere." in page
    (values,) = [line for line in page.splitlines() if line.startswith("| classification | joint | softmax | 0.003 |")]
    assert values.endswith("| 4 |") and "0.875 [" in values and "0.050 [" in values and "0.515 [" in values
    manifest.study = "recall"
    assert describe_what_helps(SimpleNamespace(records=records, manifest=manifest)) == ""


def test_what_helps_asks_whether_modules_gain_more_where_data_are_scarce() -> None:
    # Without modules: error .10 at both sizes. With them, less by these numbers, one per task.
    gains = {"256": [0.04, 0.05, 0.06], "endless": [0.01, 0.03, 0.02]}
    rows = []
    for size, gating, task in product(gains, ("none", "joint"), range(3)):
        error = 0.10 - (gains[size][task] if gating == "joint" else 0.0)
        for split, metric, value in (
            ("iid", "accuracy", 1 - error),
            ("ood/amplitude=2", "accuracy", 0.5),
            ("train", "accuracy", 1.0),
            ("iid", "specialization/alignment_normalised", 0.001 if task else 0.9),
            ("iid", "specialization/collapse_avg", 0.2),
        ):
            if gating == "joint" or not metric.startswith("specialization/"):
                trial = f"{size} {gating} {task}"
                rows.append((trial, "regression", gating, size, task, "best", "", split, metric, value, 0))
    columns = ["trial", "setting", "gating", "train_size", "task_seed", "selection", "factor", "split", "metric"]
    records = pd.DataFrame(rows, columns=[*columns, "value", "not_converged"])
    entries = pd.DataFrame({"trial": records["trial"].unique(), "best_step": 10})
    manifest = SimpleNamespace(study="rules-data", selection="best", axes=["setting", "gating", "train_size"])
    page = describe_what_helps(SimpleNamespace(records=records, manifest=manifest, entries=entries))
    _, title, scarce = page.partition(
        "**The difference from gating none at train_size 256 minus that at endless** (below 0 is better; named by setting, gating):"
    )
    assert title
    differences = [some - more for more, some in zip(gains["256"], gains["endless"], strict=True)]
    low, high = ttest_1samp(differences, 0).confidence_interval()
    expected = f"{sum(differences) / 3:+.3f} [{low:+.3f}, {high:+.3f}]"
    assert f"| regression | joint | {expected} | +0.000 [+0.000, +0.000] |" in scarce
    assert '<details markdown="1">\n<summary>All differences: 1</summary>\n\n|' in scarce
    # The interval of an alignment ends where alignments end; that of a loss does not.
    (values,) = [line for line in page.splitlines() if line.startswith("| regression | joint | 256 | 0.301")]
    assert "0.301 [0.000, 1.000]" in values


def test_the_inside_of_different_models_is_not_averaged(tmp_path: Path) -> None:
    level = "first_position[0],embed,all"
    values = {"retrieval-transformer": 0.9, "retrieval-lstm": 0.1}

    def numbers(levels: Mapping[str, Any], seed: int) -> dict[Any, float]:
        value = values[levels["model"]] + 0.01 * seed
        return {
            ("iid", "accuracy"): 0.9,
            ("ood/single", "interchange/accuracy", "variable,site,position", level): value,
            ("ood/single", "interchange/moved", "variable,site,position", level): value / 2,
        }

    path = build(tmp_path / "store", axes={"model": list(values)}, metrics=numbers, seeds=range(2))
    with Store.write(path) as store:
        scale = {"trials": 4, "seeds": [0, 1], "minutes": None, "deviations": []}
        facts = {"question": "Is it so?", "axes": [], "claims": [], "notes": [], "selection": "best"}
        store.describe({**facts, "scales": {"mini": scale}})
    with Store.read(path) as store:
        (made,) = make_records([store])
    page = results_page(write_records(made, tmp_path))
    assert (
        "| model | variable | site | position | exchange followed | own answers moved | exchange, every run |" in page
    )
    assert "| retrieval-transformer | first_position[0] | embed | all | 0.905 | 0.453 | 0.90 0.91 |" in page
    assert "| retrieval-lstm | first_position[0] | embed | all | 0.105 | 0.053 | 0.10 0.11 |" in page
