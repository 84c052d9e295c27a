"""The reference that comes with the package: how the backbones of `exam-zoo` did, run by run."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from unseen.errors import CheckFailed

if TYPE_CHECKING:
    import pandas as pd

FILE = "exam_reference.csv"
COLUMNS = (
    "backbone",
    "ability",
    "test",
    "task",
    "condition",
    "metric",
    "seed",
    "value",
    "learned",
    "still_learning",
    "scale",
    "digest",
)
"""`learned`: 1 if the run has learned in distribution; `digest`: which version of the test it is (`digest_of`)."""


def read(path: Path | None = None) -> pd.DataFrame:
    """The reference of this release, or one in a file."""
    import pandas as pd

    with (files("unseen.studies").joinpath(FILE) if path is None else path).open("r", encoding="utf-8") as file:
        found = pd.read_csv(file, dtype={"digest": str})
    if tuple(found.columns) != COLUMNS:
        raise CheckFailed(f"{path or FILE} is no reference of the exam: expected the columns {', '.join(COLUMNS)}")
    return found


def comparable(reference: pd.DataFrame, scores: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Of a reference, what was measured by the tests that `scores` are of, and what to say about the rest.

    Nothing is compared across versions of a test: rows of another digest are left out, and the test is named.
    """
    if reference.empty:
        return reference, ["There is no reference yet in this release: nothing to compare with."]
    keys = ["scale", "ability", "test"]
    asked = scores[[*keys, "digest"]].drop_duplicates()
    same = reference.merge(asked, on=[*keys, "digest"])[list(COLUMNS)]
    held = reference.merge(asked[keys].drop_duplicates(), on=keys)
    refused = sorted(set(held["test"][~held["digest"].isin(same["digest"])]))
    said = []
    if refused:
        said.append(f"Not compared with the reference: {', '.join(refused)} there {_is(refused)} of another version.")
    if held.empty and len(asked):
        scales = ", ".join(sorted(set(reference["scale"])))
        said.append(f"The reference is of scale {scales}: nothing to compare with at this one.")
    return same, said


def _is(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"
