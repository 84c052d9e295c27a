"""Trials that go wrong: the others end as if nothing had happened, and what went wrong is said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

import unseen
from support.faulty import ALL, HEALED, HEALTHY, PLAIN, STUDY, processes, study
from support.small import tables
from unseen.cli.main import main
from unseen.store.store import Store
from unseen.studies.study import Study

HERE = Path(__file__).parents[1]


def inline(what: Study, out: Path, **given: object) -> Path:
    unseen.run(what, out, executor="inline", progress="none", **given)
    return out


def command(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """The command line in this process: exit code, output, errors."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(sys, "argv", ["unseen", *map(str, arguments)])
        main()
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out, said.err


def rows_of(path: Path, trials: Iterable[str]) -> list[tuple[str, ...]]:
    """Everything the store holds of some trials, exactly."""
    with Store.read(path) as store:
        frames = [frame[frame.trial.isin(list(trials))] for frame in (store.records(), store.curves(), store.trials())]
    # A column of whole numbers is one of floats where some other trial has none.
    return [
        tuple(repr(float(v) if isinstance(v, int | float) else v) for v in row)
        for frame in frames
        for row in frame.itertuples(index=False)
    ]


def trials_of(path: Path, seeds: Sequence[int] = range(99)) -> list[str]:
    with Store.read(path) as store:
        return list(store.trials().query("seed in @seeds").trial)


def by_seed(path: Path) -> dict[int, tuple[str, str, str, int]]:
    """(status, cause, traceback, step) by seed."""
    with Store.read(path) as store:
        trials, failures = store.trials(), store.failures().set_index("trial")
    causes = {trial: (row.cause, row.traceback) for trial, row in failures.iterrows()}
    return {row.seed: (row.status, *causes.get(row.trial, ("", "")), row.step) for row in trials.itertuples()}


@pytest.fixture(scope="module")
def disturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, subprocess.CompletedProcess[str]]:
    """A study with every fault, run by the command line on two workers: its file, its store, what was said."""
    place = tmp_path_factory.mktemp("faults")
    file = place / "faulty_study.py"
    file.write_text(f"import sys\nsys.path.insert(0, {str(HERE)!r})\nfrom support.faulty import STUDY as study\n")
    run = [sys.executable, "-m", "unseen", "run", str(file), "--out", str(place / "r"), "--workers=2", "--stack=4"]
    return file, place / "r", subprocess.run(run, capture_output=True, text=True)


def test_the_healthy_trials_end_as_if_nothing_had_happened(
    disturbed: tuple[Path, Path, object], tmp_path: Path
) -> None:
    _, out, _ = disturbed
    alone = inline(study(ALL, HEALTHY), tmp_path / "healthy")
    healthy = trials_of(alone)
    assert len(healthy) == len(HEALTHY) and rows_of(out, healthy) == rows_of(alone, healthy)
    assert {seed for seed, (status, *_) in by_seed(out).items() if status == "finished"} == set(HEALTHY)


def test_each_faulty_trial_is_reported_with_its_cause(
    disturbed: tuple[Path, Path, subprocess.CompletedProcess[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, done = disturbed
    found = {ALL[seed]: rest for seed, rest in by_seed(out).items() if ALL[seed]}
    assert found["raises"][:2] == ("failed", "ValueError: these training data can't be drawn")
    assert "faulty.py" in found["raises"][2] and "in sample" in found["raises"][2]
    assert found["memory"][0] == "failed" and "MemoryError: Unable to allocate" in found["memory"][1]
    assert found["exits"][:3] == ("failed", "the worker exited with code 3", "")
    assert found["killed"][0] == "failed" and "signal 9 (SIGKILL)" in found["killed"][1]
    assert "memory" in found["killed"][1]
    status, cause, _, step = found["not_finite"]
    assert (status, cause) == ("diverged", "") and 0 < step < 40

    assert done.returncode == 1
    *_, last = done.stderr.splitlines()
    assert last.startswith("error: 4 trials failed") and "--failures" in last and "--retry-failed" in last
    assert "Traceback" not in done.stderr
    assert "diverged: 1 run (plain seed 3)" in done.stdout and "failed: 4 runs" in done.stdout

    _, shown, _ = command(capsys, "results", out, "--failures")
    for seed, said in (
        (1, "ValueError: these training data"),
        (2, "signal 9 (SIGKILL)"),
        (4, "exited with code 3"),
        (6, "MemoryError: Unable to allocate"),
    ):
        (line,) = [line for line in shown.splitlines() if f"seed {seed}, after step 0" in line]
        assert said in line
    assert "faulty.py" in shown and "in sample" in shown


def test_failed_trials_are_tried_again_only_when_asked(
    disturbed: tuple[Path, Path, object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file, out, _ = disturbed
    before = tables(out)
    monkeypatch.setenv(HEALED, "1")
    code, _, said = command(capsys, "run", file, "--out", out)
    assert code == 1 and "4 trials failed" in said.splitlines()[-1]
    assert tables(out) == before
    undisturbed = inline(STUDY, tmp_path / "undisturbed")
    unseen.run(STUDY, out, workers=1, retry_failed=True, progress="none")
    ended = trials_of(out, [seed for seed, fault in enumerate(ALL) if fault != "not_finite"])
    assert rows_of(out, ended) == rows_of(undisturbed, ended)
    # A run that diverged has ended: it is a result, not a failure.
    assert {seed: status for seed, (status, *_) in by_seed(out).items() if status != "finished"} == {3: "diverged"}
    with Store.read(out) as store:
        assert len(store.failures()) == 0
    assert list((out / "checkpoints").iterdir()) == []


def test_a_late_fault_leaves_a_checkpoint_and_a_retry_goes_on_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Endless data are drawn 4 blocks of 64 at a time: the second draw, which fails, is for step 25.
    what = study(["", "late", ""], train_size=None)
    out = inline(what, tmp_path / "r", stack=3, chunk_seconds=0.01)
    status, cause, _, step = by_seed(out)[1]
    assert (status, cause) == ("failed", "ValueError: these training data can't be drawn")
    assert 0 < step <= 25
    with Store.read(out) as store:
        ((_, trials, _),) = store.checkpoints()
        spans = store.spans()
        before = spans[spans.trial.isin(trials)]
        assert store.failures().step.tolist() == [step] == [before.end.iloc[-1]]
    monkeypatch.setenv(HEALED, "1")
    undisturbed = inline(what, tmp_path / "undisturbed")
    others = trials_of(out, [0, 2])
    assert rows_of(out, others) == rows_of(undisturbed, others)

    inline(what, out, retry_failed=True, chunk_seconds=0.01)
    assert tables(out) == tables(undisturbed)
    with Store.read(out) as store:
        spans = store.spans()
    after = spans[spans.trial.isin(trials)]
    assert after.begin.tolist() == [0, *after.end[:-1]] and after.end.iloc[-1] == 40
    assert after[: len(before)].to_dict("list") == before.to_dict("list")


def test_a_model_that_raises_is_reported_and_the_others_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A class that raises in this process is refused before anything is written; on a worker it may be another one."""
    what = study(seeds=range(2), models={"plain": PLAIN, "stubborn": {"name": "stubborn"}})
    out = tmp_path / "r"
    with pytest.raises(unseen.UsageError, match="RuntimeError: this model answers nothing"):
        inline(what, out)
    assert not out.exists()
    monkeypatch.setattr("unseen.api.check_own_models", lambda trials: None)
    inline(what, out)
    with Store.read(out) as store:
        entries, failures = store.entries(), store.failures()
        assert entries.status.tolist() == ["finished"] * 2 + ["failed"] * 2
        assert all(
            "Stubborn on faulty/T1, split train: RuntimeError: this model answers nothing" in cause
            for cause in failures.cause
        )
        assert all("faulty.py" in text and "in forward" in text for text in failures.traceback)
    alone = inline(study(seeds=range(2)), tmp_path / "alone")
    assert rows_of(out, trials_of(alone)) == rows_of(alone, trials_of(alone))


def test_a_worker_killed_from_outside_is_replaced_and_nothing_fails(tmp_path: Path) -> None:
    what = study(seeds=range(4), steps=200)
    out, victims, commit = tmp_path / "r", list[int](), Store.commit

    def commit_and_kill(self: Store, *arguments: object) -> None:
        """When its first chunk is in the store, the worker is killed."""
        commit(self, *arguments)  # type: ignore[arg-type]
        if not victims:
            (worker,) = processes(os.getpid())
            victims.append(worker)
            os.kill(worker, signal.SIGKILL)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "commit", commit_and_kill)
        unseen.run(what, out, workers=1, stack=2, chunk_seconds=0.1, progress="none")
    assert len(victims) == 1
    with Store.read(out) as store:
        assert len(store.failures()) == 0
        spans = store.spans()
    assert len(set(workers_in(out)) - set(victims)) == 1, "its place was taken by another"
    for _, rows in spans.groupby("trial"):
        assert rows.begin.tolist() == [0, *rows.end[:-1]] and rows.end.iloc[-1] == 200
    assert tables(out) == tables(inline(what, tmp_path / "undisturbed"))
    assert processes(os.getpid()) == []


def workers_in(out: Path) -> list[int]:
    """The processes that have done a chunk."""
    with Store.read(out) as store:
        return [int(worker.rpartition(":")[2]) for worker in store.spans().worker]
