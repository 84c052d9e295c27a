"""Write src/unseen/exam/reference.csv: what `unseen exam` compares models with.

    python docs/make_reference.py DIRECTORY [FILE]

DIRECTORY is a finished run of `exam-zoo`; every run and ability of its largest scale becomes a line. Other scales that
the file holds are kept, and so are other backbones: `exam-zoo` may be run with `--only model=NAME`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from unseen.exam import reference
from unseen.report.data import Source
from unseen.report.exam_scores import read_exam

HERE = Path(__file__).parent
OURS = HERE.parent / "src" / "unseen" / "exam" / reference.FILE


def main(directory: str, file: Path = OURS) -> None:
    """Read the scores of a directory and write them to a file."""
    source = Source.read(directory)
    if not source.name.startswith("exam-zoo@"):
        sys.exit(f"{directory} holds {source.name}; the reference is made from exam-zoo")
    if not source.runs["status"].isin(["finished", "stopped", "diverged"]).all():
        sys.exit(f"{directory} is not finished: run exam-zoo to its end first")
    found = read_exam(source)
    if found is None:
        sys.exit(f"{directory} has no scores")
    rows = found.scores.rename(columns={"model": "backbone"})[list(reference.COLUMNS)]
    held = reference.read(file) if file.exists() else rows[:0]
    others = held[(held["scale"] != source.scale) | ~held["backbone"].isin(rows["backbone"])]
    whole = pd.concat([others, rows], ignore_index=True) if len(others) else rows
    whole.to_csv(file, index=False, lineterminator="\n", float_format="%.6g")
    sys.stdout.write(
        f"{file}: {len(rows)} lines of scale {source.scale}, {len(others)} of other scales and backbones were there\n"
    )


if __name__ == "__main__":
    main(sys.argv[1], *map(Path, sys.argv[2:3]))
