"""Offline runs of Weights & Biases: a folder per run, which `wandb sync` can upload."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from unseen.tracking import RunUpdate, State, TrackedRun


class WandB:
    """Folders `wandb/offline-run-…`. Their files can't be appended to, so a run is written once, when it has ended;
    the incomplete folder that a kill may have left is removed first."""

    live = False

    def __init__(self, path: Path) -> None:
        os.environ["WANDB_ERROR_REPORTING"] = "false"  # includes telemetry; wandb reads it when imported
        import wandb

        self._wandb: Any = wandb
        self._folders: dict[str, list[Path]] = {}
        for folder in (path / "wandb").glob("offline-run-*"):
            # offline-run-DATE-ID, where the id is that of the trial
            self._folders.setdefault(folder.name.rpartition("-")[2], []).append(folder)
        self._settings = wandb.Settings(
            mode="offline",
            root_dir=str(path),
            silent=True,
            console="off",
            disable_git=True,
            disable_code=True,
            disable_job_creation=True,
            save_code=False,
            x_disable_stats=True,
            x_disable_meta=True,
            x_disable_machine_info=True,
            x_save_requirements=False,
        )

    def holds(self, trial: str, state: State) -> bool:
        """Whether the run has a folder."""
        return trial in self._folders

    def write(self, run: TrackedRun, update: RunUpdate, state: State) -> State:
        """Write the whole run: its points by step, its records as summary."""
        for folder in self._folders.pop(run.trial, []):
            shutil.rmtree(folder)
        by_step: dict[int, dict[str, float]] = {}
        for step, name, value in update.points:
            by_step.setdefault(step, {})[name] = value
        wandb_run = self._wandb.init(
            project="unseen",
            id=run.trial,
            name=run.name,
            group=run.study,
            config=dict(run.config),
            settings=self._settings,
            reinit="create_new",  # one process writes many runs
        )
        for step, values in by_step.items():
            wandb_run.log(values, step=step)
        wandb_run.summary.update({**update.summary, "ending": update.ending})
        self._folders[run.trial] = [Path(wandb_run.dir).parent]
        wandb_run.finish()
        return {"written": True}

    def close(self) -> None:
        """End the process that wrote the files."""
        self._wandb.teardown()
