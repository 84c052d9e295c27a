"""Train trials of a records file again, from the identities in its manifest, and compare every number bit for bit.

    python campaign/repeat.py FILE [TRIAL ...]

Without ids it takes the first two trials of the file. The numbers are the same on the same kind of machine, with the same
versions and the same `MKL_CBWR`: the manifest names them, and what differs here is said. It does not name the instruction set, by which NumPy's OpenBLAS
chooses kernels: if only a few measures differ in their last bits, try `OPENBLAS_CORETYPE=Haswell`.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import pandas as pd

import unseen
from unseen.models import options
from unseen.running.provenance import provenance
from unseen.store.records import RecordsFile, load
from unseen.tasks import recorded_task
from unseen.training.recipe import Evaluation, recipe

KEYS = ["selection", "split", "factor", "level", "metric"]
FACTS = ("cpu", "torch", "numpy", "MKL_CBWR")
"""What the bits of a training may depend on."""


def describe_machine(file: RecordsFile) -> list[str]:
    """What is different here from the machines that made the file; empty if nothing is."""
    here = provenance()
    differences = []
    for name in FACTS:
        there = {facts.get(name) for facts in file.manifest.provenance}
        if there != {here.get(name)}:
            differences.append(f"{name} is {here.get(name)} here, {', '.join(map(str, there))} there")
    return differences


def repeat(file: RecordsFile, trial: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The numbers of one trial as recorded, and as trained again alone, in one order."""
    identity = file.manifest.trials[trial]
    recorded = file.records[file.records["trial"] == trial]
    (evaluation_id,) = set(file.entries.loc[file.entries["trial"] == trial, "evaluation_id"])
    runs = unseen.train(
        recorded_task(**_without_version(identity["task"])),
        options(**_without_version(identity["model"])),
        seeds=[identity["seed"]],
        data_seed=identity["data_seed"],
        recipe=recipe(**_without_version(identity["recipe"])),
        evaluation=Evaluation.parse(_without_version(file.manifest.evaluations[evaluation_id])),
        progress="none",
    )
    assert set(runs.table["trial"]) == {trial}, "this code gives the trial another identity"
    tables = []
    for table in (recorded, runs.table):
        tables.append(table[[*KEYS, "value", "n"]].sort_values(KEYS, ignore_index=True))
    return tables[0], tables[1]


def _without_version(identity: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in identity.items() if name != "version"}


def main() -> int:
    """Repeat trials and say how many of their numbers are the same."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("trials", nargs="*")
    chosen = parser.parse_args()
    file = load(chosen.file)
    for difference in describe_machine(file):
        print(difference)
    differing = 0
    for trial in chosen.trials or list(file.manifest.trials)[:2]:
        recorded, again = repeat(file, trial)
        if not recorded[KEYS].equals(again[KEYS]):
            print(f"{trial}: other numbers were measured than the {len(recorded)} recorded ones")
            differing += len(recorded)
            continue
        unequal = recorded["value"].ne(again["value"]) & ~(recorded["value"].isna() & again["value"].isna())
        differing += int(unequal.sum())
        print(f"{trial}: {len(recorded) - unequal.sum()} of {len(recorded)} numbers are equal, bit for bit")
        if unequal.any():
            largest = (recorded["value"] - again["value"])[unequal].abs().max()
            names = ", ".join(sorted(set(recorded.loc[unequal, "metric"])))
            print(f"  the others differ by {largest:.1e} at most: {names}")
    return int(differing > 0)


if __name__ == "__main__":
    os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")
    sys.exit(main())
