"""The reference that comes with the package: the scores of the backbones of `exam-zoo`, run by run."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from unseen.errors import CheckFailed

if TYPE_CHECKING:
    import pandas as pd

FILE = "reference.csv"
COLUMNS = (
    "backbone",
    "ability",
    "test",
    "task",
    "split",
    "metric",
    "seed",
    "value",
    "learned",
    "not_converged",
    "scale",
    "digest",
)
"""`learned` is 1 if the run has learned in distribution; `digest` identifies the version of the test."""


def read(path: Path | None = None) -> pd.DataFrame:
    """Read the reference of this release, or one from a file."""
    import pandas as pd

    with (files("unseen.exam").joinpath(FILE) if path is None else path).open("r", encoding="utf-8") as file:
        reference = pd.read_csv(file, dtype={"digest": str})
    if tuple(reference.columns) != COLUMNS:
        raise CheckFailed(f"{path or FILE} is no reference of the exam: expected the columns {', '.join(COLUMNS)}")
    return reference


def comparable(reference: pd.DataFrame, scores: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Select what was measured by the same tests as `scores`; and say what cannot be compared.

    Nothing is compared across versions of a test: rows of another digest are left out, and the test is named.
    """
    if reference.empty:
        return reference, ["There is no reference yet in this release: nothing to compare with."]
    keys = ["scale", "ability", "test"]
    tests = scores[[*keys, "digest"]].drop_duplicates()
    same = reference.merge(tests, on=[*keys, "digest"])[list(COLUMNS)]
    same_names = reference.merge(tests[keys].drop_duplicates(), on=keys)
    refused = sorted(set(same_names["test"][~same_names["digest"].isin(same["digest"])]))
    notes = []
    if refused:
        verb = "is" if len(refused) == 1 else "are"
        notes.append(f"Not compared with the reference: {', '.join(refused)} there {verb} of another version.")
    if same_names.empty and len(tests):
        scales = ", ".join(sorted(set(reference["scale"])))
        notes.append(f"The reference is of scale {scales}: nothing to compare with at this one.")
    return same, notes
