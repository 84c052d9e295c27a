"""Measure the rates that ship with the package (`unseen/running/rates.json`): `python -m benchmarks.make_rates [MODEL …]`.

For every model of the catalogue's studies, a few workloads between its cheapest and its most expensive one. With names
of models, only these are measured, and the rates of all others are kept. Run it alone on a quiet machine; it takes some
minutes.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from datetime import date
from importlib.metadata import version
from pathlib import Path

import unseen.running
from unseen.running.flops import step_cost
from unseen.running.provenance import cpu_name
from unseen.running.rates import FILE
from unseen.running.timing import SIZES, probe, workload
from unseen.studies.catalog import STUDIES
from unseen.studies.study import find_catalogued
from unseen.studies.trial import Trial

WORKLOADS = 4
"""How many workloads of each model are measured."""
SECONDS = 4.0
"""How long one of them may take."""
LARGEST = 2e10
"""The most FLOPs of a step that is measured: larger ones take, FLOP for FLOP, as long."""


def choose_trials(models: list[str]) -> dict[str, list[tuple[float, Trial]]]:
    """By model, trials of a few workloads spread over its range of FLOPs; an empty list means every model."""
    by_model: dict[str, dict[str, tuple[float, Trial]]] = {}
    for listed in STUDIES:
        study = find_catalogued(listed.name)
        for scale in study.scales:
            for entry in study.entries(scale, seeds=[0]):
                trial = entry.trial
                if models and trial.model.name not in models:
                    continue
                flops = step_cost(trial).flops
                if flops <= LARGEST:
                    by_model.setdefault(trial.model.name, {}).setdefault(workload(trial), (flops, trial))
    chosen = {}
    for model, workloads in by_model.items():
        ordered = sorted(workloads.values(), key=lambda pair: pair[0])
        last = len(ordered) - 1
        positions = sorted({round(last * number / (WORKLOADS - 1)) for number in range(WORKLOADS)})
        chosen[model] = [ordered[position] for position in positions]
    return chosen


def main() -> None:
    """Measure and write the file."""
    models = sys.argv[1:]
    file = Path(next(iter(unseen.running.__path__))) / FILE
    shipped = json.loads(file.read_text("utf-8"))
    rates = [rate for rate in shipped["rates"] if models and rate["model"] not in models]
    for model, pairs in sorted(choose_trials(models).items()):
        for flops, trial in pairs:
            times = probe(trial, SIZES, SECONDS, "cpu")
            rates.append({"model": model, "flops": flops, **asdict(times)})
            print(f"{model:24} {flops:12.4g} FLOPs {min(times.steps.values()):10.6f} s per step", flush=True)
    rates.sort(key=lambda rate: rate["model"])
    machine = f"one core of {cpu_name()}, torch {version('torch')}"
    if models and machine != shipped["machine"]:
        raise SystemExit(f"the other rates are of {shipped['machine']}, this is {machine}: measure all models")
    # If only some are measured, the day remains that on which most were.
    content = {"machine": machine, "date": shipped["date"] if models else str(date.today()), "rates": rates}
    file.write_text(json.dumps(content, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
