"""Runs of MLflow in a SQLite file: an experiment per study, curves and records as metrics, axes as parameters."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from unseen.tracking import RunUpdate, State, TrackedRun

TAG = "unseen.trial"
_MOST_METRICS = 1000
_MOST_PARAMS = 100
"""The largest batches that MLflow accepts."""


class MLflow:
    """A database `mlflow.db`, for `mlflow ui --backend-store-uri sqlite:///LOGS/mlflow.db`.

    A run is found by its tag. A point has the start time of its run plus one millisecond per step, so that a point
    written twice is the same row of the database.
    """

    live = True

    def __init__(self, path: Path) -> None:
        os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"  # MLflow reads it when it is imported
        from mlflow import entities
        from mlflow.tracking import MlflowClient

        logging.getLogger("mlflow").setLevel(logging.WARNING)
        self._entities = entities
        self._path = path.absolute()
        self._client = MlflowClient(tracking_uri=f"sqlite:///{self._path}/mlflow.db")
        self._experiments: dict[str, str] = {}

    def holds(self, trial: str, state: State) -> bool:
        """Whether the database exists."""
        return (self._path / "mlflow.db").is_file()

    def write(self, run: TrackedRun, update: RunUpdate, state: State) -> State:
        """Log points by step; for a run that has ended also its records, as `summary/…`, and how it ended."""
        state = state or self._begin(run)
        points = list(update.points)
        for name, value in update.summary.items():
            points.append((update.step, f"summary/{name}", value))
        metrics = []
        for step, name, value in points:
            metrics.append(self._entities.Metric(_clean_name(name), value, state["start"] + step, step))
        for batch in _batches(metrics, _MOST_METRICS):
            self._client.log_batch(state["run"], metrics=batch)
        if update.ending:
            status = "FAILED" if update.ending in ("failed", "diverged") else "FINISHED"
            self._client.set_tag(state["run"], "unseen.ending", update.ending)
            self._client.set_terminated(state["run"], status)
        return state

    def close(self) -> None:
        """Nothing to do: every transaction is complete."""

    def _begin(self, run: TrackedRun) -> State:
        """Find or create the run, and log its configuration."""
        experiment = self._find_experiment(run.study)
        existing = self._client.search_runs([experiment], f"tags.`{TAG}` = '{run.trial}'")
        if existing:
            info = existing[0].info
        else:
            info = self._client.create_run(experiment, tags={TAG: run.trial}, run_name=run.name).info
        params = [self._entities.Param(_clean_name(key), str(value)[:500]) for key, value in run.config.items()]
        for batch in _batches(params, _MOST_PARAMS):
            self._client.log_batch(info.run_id, params=batch)
        return {"run": info.run_id, "start": info.start_time}

    def _find_experiment(self, study: str) -> str:
        if study not in self._experiments:
            experiment: Any = self._client.get_experiment_by_name(study)
            if experiment:
                self._experiments[study] = experiment.experiment_id
            else:
                artifacts = (self._path / "artifacts").as_uri()
                self._experiments[study] = self._client.create_experiment(study, artifact_location=artifacts)
        return self._experiments[study]


def _batches(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _clean_name(text: str) -> str:
    """A name that MLflow accepts.

    >>> _clean_name("best/ood/length=30,amplitude=2/accuracy")
    'best/ood/length_30_amplitude_2/accuracy'
    """
    return re.sub(r"[^\w\-./ ]", "_", text)
