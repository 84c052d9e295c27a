"""Copy the store of a finished piece to campaign/stores, without weights, and say when its runs can have begun.

    python campaign/collect.py DIRECTORY NAME [--began TIME]

Stores that were made before 18 November 2026, 14:20, do not tell when their runs began, which the registration of claims asks
for. For these, `--began` gives the time of the commit that made them: no run of theirs can be older than its code.
"""

from __future__ import annotations

import argparse
import sqlite3
from datetime import datetime
from pathlib import Path

STORES = Path(__file__).parent / "stores"


def main() -> None:
    """Copy one store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("name")
    parser.add_argument("--began", type=datetime.fromisoformat, help="time of the commit, with its time zone")
    options = parser.parse_args()
    target = STORES / options.name / "store.sqlite"
    target.parent.mkdir(parents=True, exist_ok=True)
    source = options.directory / "store.sqlite"
    if source.resolve() != target.resolve():
        target.unlink(missing_ok=True)
        with sqlite3.connect(source) as database:
            database.execute("VACUUM INTO ?", (str(target),))
    with sqlite3.connect(target) as database:
        if options.began is not None:
            database.execute(
                "UPDATE provenance SET facts = json_set(facts, '$.started', ?) WHERE facts ->> '$.started' IS NULL",
                (options.began.isoformat(),),
            )
        (ended,) = database.execute("SELECT count(*) FROM provenance").fetchone()
        (untold,) = database.execute("SELECT count(*) FROM provenance WHERE facts ->> '$.started' IS NULL").fetchone()
    print(f"{target}: {ended} trials have ended; {untold} of them do not tell when they began")


if __name__ == "__main__":
    main()
