"""Runs of MLflow in a SQLite file: an experiment per study, curves and records as metrics, axes as parameters."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from unseen.studies.sinks import Memory, News, Run

TAG = "unseen.cell"
_MOST = {"metrics": 1000, "params": 100}
"""What MLflow takes at once."""


class MLflow:
    """A database `mlflow.db`, for `mlflow ui --backend-store-uri sqlite:///LOGS/mlflow.db`.

    A run is found by its tag, and a point has the time of the run's beginning plus one millisecond per step: written
    twice it is the same row of the database, which is there once.
    """

    live = True

    def __init__(self, path: Path) -> None:
        os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"  # read when it is imported
        from mlflow import entities
        from mlflow.tracking import MlflowClient

        logging.getLogger("mlflow").setLevel(logging.WARNING)
        self._entities, self._path = entities, path.absolute()
        self._client = MlflowClient(tracking_uri=f"sqlite:///{self._path}/mlflow.db")
        self._experiments: dict[str, str] = {}

    def holds(self, cell: str, memory: Memory) -> bool:
        """Whether the database is there."""
        return (self._path / "mlflow.db").is_file()

    def write(self, run: Run, news: News, memory: Memory) -> Memory:
        """Log points by step; of a run that has ended, its records too, as `summary/…`, and how it ended."""
        held = memory or self._begin(run)
        points = [*news.points, *((news.step, f"summary/{name}", value) for name, value in news.summary.items())]
        metrics = [
            self._entities.Metric(_name(name), value, held["start"] + step, step) for step, name, value in points
        ]
        for some in _batches(metrics, _MOST["metrics"]):
            self._client.log_batch(held["run"], metrics=some)
        if news.ending:
            self._client.set_tag(held["run"], "unseen.ending", news.ending)
            self._client.set_terminated(held["run"], "FAILED" if news.ending in ("failed", "diverged") else "FINISHED")
        return held

    def close(self) -> None:
        """Every transaction is done already."""

    def _begin(self, run: Run) -> Memory:
        experiment = self._experiment(run.study)
        found = self._client.search_runs([experiment], f"tags.`{TAG}` = '{run.cell}'")
        made = found[0] if found else self._client.create_run(experiment, tags={TAG: run.cell}, run_name=run.name)
        params = [self._entities.Param(_name(key), str(value)[:500]) for key, value in run.config.items()]
        for some in _batches(params, _MOST["params"]):
            self._client.log_batch(made.info.run_id, params=some)
        return {"run": made.info.run_id, "start": made.info.start_time}

    def _experiment(self, study: str) -> str:
        if study not in self._experiments:
            known: Any = self._client.get_experiment_by_name(study)
            self._experiments[study] = (
                known.experiment_id
                if known
                else self._client.create_experiment(study, artifact_location=(self._path / "artifacts").as_uri())
            )
        return self._experiments[study]


def _batches(things: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (things[start : start + size] for start in range(0, len(things), size))


def _name(text: str) -> str:
    """A name that MLflow accepts.

    >>> _name("best/ood/length=30,amplitude=2/accuracy")
    'best/ood/length_30_amplitude_2/accuracy'
    """
    return re.sub(r"[^\w\-./ ]", "_", text)
