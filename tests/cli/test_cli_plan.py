"""`unseen plan` as a user meets it: counts, times, what is left, and nothing run that was not asked for."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from unseen.cli.plan import plan
from unseen.errors import UsageError
from unseen.running import timing
from unseen.running.plan import START
from unseen.running.rates import WorkloadTimes
from unseen.store.store import Store
from unseen.studies.study import study
from unseen.studies.trial import Trial
from unseen.training.trainer import Trainer

app = typer.Typer()
app.command()(plan)

STUDY = """
from unseen.studies.grid import Grid
from unseen.studies.study import Study

def grids(scale):
    widths = {"smoke": (4,), "mini": (4, 6), "full": (4, 6, 8)}[scale]
    return [Grid(axes={"width": {w: {"model": {"width": w}} for w in widths}},
                 base={"task": {"name": "retrieval/T1", "length": 5, "train_size": 500, "evaluation_size": 300},
                       "model": {"name": "lstm"}, "recipe": {"steps": 100, "batch": 10}}, seeds=range(3))]

study = Study("tiny", 1, "How wide?", {"smoke": None, "mini": 1, "full": None}, grids, notes=("much smaller",))
"""


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A user's study; a machine on which every member and step takes 10 ms, and a cache of its own."""

    def probe(trial: Trial, sizes: Sequence[int], seconds: float, device: str) -> WorkloadTimes:
        return WorkloadTimes(dict.fromkeys(sizes, 0.010), dict.fromkeys(sizes, 0.001), tests=1.0, draw=0.0, build=0.0)

    monkeypatch.setattr(timing, "probe", probe)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "tiny.py").write_text(STUDY)
    return str(tmp_path / "tiny.py")


def text(*arguments: object) -> str:
    done = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def data(*arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text(*arguments, "--format", "json"))
    return found


def test_counts_times_levels_and_other_scales(tiny: str) -> None:
    found = data(tiny, "--workers", 2)
    assert (found["study"], found["scale"], found["trials"], found["steps"]) == ("tiny@1", "mini", 6, 600)
    assert {level: (row["trials"], row["steps"]) for level, row in found["levels"]["width"].items()} == {
        "4": (3, 300),
        "6": (3, 300),
    }
    assert sum(row["flops"] for row in found["levels"]["width"].values()) == found["flops"]
    answered = 2 * 300 + 4 * 300  # two validations, and two selections of two splits with 300 examples each
    assert found["core_seconds"] == pytest.approx(6 * (100 * 0.010 + answered * 0.001))
    assert found["wall_seconds"] == pytest.approx(START + found["core_seconds"] / 2)
    assert (found["at_most"], found["workloads"]) == (False, [2, 2])
    assert {scale: row["trials"] for scale, row in found["other_scales"].items()} == {"smoke": 3, "full": 9}
    assert found["other_scales"]["full"]["wall_seconds"] > found["wall_seconds"]
    assert found["deviations"][-1] == "much smaller"
    assert found["command"] == f"unseen run {tiny} --scale mini --out runs/tiny-mini --workers 2"


def test_other_seeds_than_the_study_has_are_a_difference(tiny: str) -> None:
    assert "2 seeds (full: 3)" in data(tiny, "--no-probe", "--seeds", 2)["deviations"]
    assert not any("seeds" in said for said in data(tiny, "--no-probe")["deviations"])


def test_the_budget_is_for_two_cores_whatever_the_workers(tiny: str) -> None:
    one, many = data(tiny, "--workers", 1), data(tiny, "--workers", 6)
    assert one["budget_seconds"] == 60
    assert one["seconds_on_two_cores"] == pytest.approx(START + (one["wall_seconds"] - START) / 2)
    assert one["seconds_on_two_cores"] == pytest.approx(many["seconds_on_two_cores"])
    assert "60 s on two cores; estimated 13 s: fits" in text(tiny)
    assert "estimated 89 s: DOES NOT FIT" in text(tiny, "--seeds", 30)
    assert "on two cores" not in text(tiny, "--scale", "full")


def test_without_a_probe_no_step_is_run_and_the_shipped_rates_estimate(
    tiny: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*given: object) -> None:
        raise AssertionError("a training step")

    monkeypatch.setattr(Trainer, "advance", forbidden)
    monkeypatch.setattr(timing, "probe", forbidden)
    report = data(tiny, "--no-probe")
    assert report["flops"] > 0 and report["core_seconds"] > 0
    assert report["wall_seconds"] > report["core_seconds"] / report["workers"]
    assert "by the rates of another machine (one core of" in " ".join(text(tiny, "--no-probe").split())


def test_what_needs_a_larger_machine_is_estimated_without_a_probe(tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A study for a cluster is planned on a laptop."""
    monkeypatch.setattr("unseen.memory.memory_limit", lambda: 100_000)
    with pytest.raises(UsageError, match="of memory; there are"):
        text(tiny)
    report = data(tiny, "--no-probe")
    assert report["core_seconds"] > 0 and set(report["other_scales"]) == {"smoke", "full"}
    assert "MORE than the" in text(tiny, "--no-probe")


def test_without_a_probe_the_time_is_by_what_was_measured_before(tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = data(tiny)
    monkeypatch.setattr(timing, "probe", None)
    found = data(tiny, "--no-probe")
    assert found["wall_seconds"] == measured["wall_seconds"] and found["other_scales"] == measured["other_scales"]
    assert "measured on 2 of 2 workloads" in text(tiny, "--no-probe")


def test_trials_that_may_stop_early_take_at_most_so_long(tiny: str) -> None:
    Path(tiny).write_text(STUDY.replace('"batch": 10', '"batch": 10, "plateau": 0.005'))
    assert data(tiny)["at_most"]
    said = text(tiny, "--workers", 1)
    assert "at most 22 s with 1 worker" in said and "trials may stop early" in said and "estimated at most 13 s" in said


def test_what_a_directory_has_is_not_counted_again(tiny: str, tmp_path: Path) -> None:
    out, entries = tmp_path / "runs", study(tiny).entries("mini")
    assert data(tiny, "--out", out)["left"]["ended"] == 0
    with Store.write(out) as store:
        store.add(entries, "mini")
        store.fail(entries[0].trial.id, "no reason")
        found = data(tiny, "--out", out)  # while another process writes
    assert (found["trials"], found["steps"]) == (6, 600)
    assert {key: found["left"][key] for key in ("directory", "ended", "failed", "steps")} == {
        "directory": str(out),
        "ended": 1,
        "failed": 1,
        "steps": 500,
    }
    assert [row["ended"] for row in found["levels"]["width"].values()] == [1, 0]
    said = text(tiny, "--out", out)
    one_line = " ".join(said.split())
    assert "1 of 6 trials" in one_line and "1 of them failed (--retry-failed tries again)" in one_line
    assert "steps left" in one_line
    assert said.splitlines()[-1] == f"unseen run {tiny} --scale mini --out {out}"


def test_people_get_plain_aligned_text_where_there_is_no_terminal(tiny: str) -> None:
    lines = text(tiny, "--workers", 1, "--seeds", 1).splitlines()
    assert lines[:2] == ["tiny@1, scale mini", "How wide?"]
    assert "time        11 s with 1 worker, 6 s of one core" in lines
    made_of = "start-up, data, steps, validations, evaluation of best and last weights; measured on 2 of 2 workloads"
    assert f"{'':12}{made_of}" in lines
    head, first = next((a, b) for a, b in pairwise(lines) if a.startswith("axis"))
    assert head.split() == ["axis", "level", "trials", "steps", "FLOPs", "core", "time"]
    assert first.split()[:4] == ["width", "4", "1", "100"]
    assert head.index("trials") + len("trials") == first.index(" 1 ") + 2
    assert not set("\x1b│─━") & set("".join(lines))


@pytest.mark.parametrize("columns", [50, 80, 200])
def test_no_figure_is_cut_where_names_are_long(tiny: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    file = Path(tiny)
    file.write_text(
        file.read_text().replace("{w: {", "{f'a level with a long name, {w} units of width in all of it': {")
    )
    told = text(tiny, "--no-probe")
    assert "…" not in told
    assert told.count("FLOP") > 4 and "300" in told


def test_a_plan_fits_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    lines = CliRunner().invoke(app, ["retrieval-table2", "--scale", "smoke", "--no-probe"]).output.splitlines()
    *others, command = lines
    assert command.startswith("unseen run retrieval-table2"), "a command is one line, so that it can be copied"
    assert max(map(len, others)) <= 50 and "differences from the paper:" in others


def test_a_catalogue_study_can_be_counted_by_name_and_version() -> None:
    assert data("retrieval-table2@2", "--scale", "full", "--no-probe")["trials"] == 140
    assert data("quickstart", "--no-probe")["scale"] == "mini"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["quickstrat"], "unknown study 'quickstrat'. Did you mean 'quickstart'?"),
        (["quickstart", "--scale", "smokey"], "no scale 'smokey'. Did you mean 'smoke'?"),
        (["nowhere.yaml"], "nowhere.yaml"),
    ],
)
def test_wrong_use_is_answered_with_what_to_do(arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError) as error:
        text(*arguments)
    assert message in str(error.value)


def test_the_command_imports_nothing_heavy_before_it_runs() -> None:
    program = "import sys, unseen.cli.plan; print(sorted(m for m in sys.modules if '.' not in m))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "'typer'" in loaded
    assert [m for m in ("torch", "numpy", "pandas", "pydantic") if f"'{m}'" in loaded] == []
