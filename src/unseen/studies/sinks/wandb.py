"""Offline runs of Weights & Biases: a folder per run, for `wandb sync` if its owner wants to."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from unseen.studies.sinks import Memory, News, Run


class WandB:
    """Folders `wandb/offline-run-…`. Their files can't be gone on with, so a run is written once, when it has ended;
    what a kill left of one is removed first."""

    live = False

    def __init__(self, path: Path) -> None:
        os.environ["WANDB_ERROR_REPORTING"] = "false"  # and with it all telemetry; read when it is imported
        import wandb

        self._wandb: Any = wandb
        self._folders: dict[str, list[Path]] = {}
        for folder in (path / "wandb").glob("offline-run-*"):
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

    def holds(self, cell: str, memory: Memory) -> bool:
        """Whether the run's folder was there, or has been made."""
        return cell in self._folders

    def write(self, run: Run, news: News, memory: Memory) -> Memory:
        """The whole run: its points by step, its records as summary."""
        for folder in self._folders.pop(run.cell, []):
            shutil.rmtree(folder)
        by_step: dict[int, dict[str, float]] = {}
        for step, name, value in news.points:
            by_step.setdefault(step, {})[name] = value
        made = self._wandb.init(
            project="unseen",
            id=run.cell,
            name=run.name,
            group=run.study,
            config=dict(run.config),
            settings=self._settings,
            reinit="create_new",
        )
        for step, values in by_step.items():
            made.log(values, step=step)
        made.summary.update({**news.summary, "ending": news.ending})
        folder = Path(made.dir).parent
        made.finish()
        self._folders[run.cell] = [folder]
        return {"written": True}

    def close(self) -> None:
        """End the process that wrote the files."""
        self._wandb.teardown()
