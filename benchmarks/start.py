"""How long it takes to begin: Python alone, the package, and commands that need no torch."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial

from benchmarks.rows import Asked, Row
from benchmarks.timing import timed

COMMANDS = {
    "python -c pass": ("-c", "pass"),
    "import unseen": ("-c", "import unseen"),
    "unseen --help": ("-m", "unseen", "--help"),
    "unseen tasks": ("-m", "unseen", "tasks"),
    "import torch": ("-c", "import torch"),
}
"""What is started, by the name of its case. Torch is there to compare: a command that trains has to wait for it."""


def start(asked: Asked) -> Iterator[Row]:
    """Rows of one figure, `seconds` from start to end by the wall clock, for each command in turn."""
    wanted = [name for name in COMMANDS if asked.wants(name)]
    asked.say(f"{len(wanted)} commands")
    found = timed({name: partial(_run, COMMANDS[name]) for name in wanted}, 1 if asked.quick else 9)
    for name, took in found.items():
        yield Row(name, "seconds", took.seconds, "s", "less", took.low, took.high, took.rounds)


def _run(arguments: tuple[str, ...]) -> None:
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
