"""The program `unseen` for tests: in a process of its own, or without starting one.

An interpreter with torch takes two seconds to start, a command a few hundredths. So most tests call `inside`, which
runs the same `main`; `outside` is for what only a process shows, and for one call of every command.
"""

from __future__ import annotations

import io
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from unseen.cli.main import main
from unseen.models import MODELS
from unseen.studies.study import STUDIES
from unseen.tasks import TASKS

Done = subprocess.CompletedProcess[str]


def outside(*arguments: object, cwd: Path | None = None) -> Done:
    """The real command."""
    return subprocess.run(
        [sys.executable, "-m", "unseen", *map(str, arguments)], capture_output=True, text=True, cwd=cwd
    )


def inside(*arguments: object, cwd: Path | None = None) -> Done:
    """The same call in this process: its exit code, and what it wrote."""
    argv, code = ["unseen", *map(str, arguments)], 0
    with (
        pytest.MonkeyPatch.context() as patch,
        warnings.catch_warnings(),
        redirect_stdout(io.StringIO()) as output,
        redirect_stderr(io.StringIO()) as errors,
    ):
        # What a command does to its own process is undone after it.
        patch.setattr(sys, "argv", argv)
        patch.setattr(sys, "path", [*sys.path])
        patch.setattr(warnings, "formatwarning", warnings.formatwarning)
        # Warnings go to the error stream, as they do without pytest.
        patch.setattr(warnings, "showwarning", _show_warning)
        warnings.resetwarnings()
        if cwd is not None:
            patch.chdir(cwd)
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
    return Done(argv, code, output.getvalue(), errors.getvalue())


@contextmanager
def only_the_package() -> Iterator[None]:
    """What the package registers, without what other tests have put beside it in this process."""
    with pytest.MonkeyPatch.context() as patch:
        for registry in (TASKS, MODELS, STUDIES):
            package_entries = {entry.name: entry for entry in registry if entry.target.startswith("unseen.")}
            patch.setattr(registry, "_entries", package_entries)
        yield


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: object = None,
    line: str | None = None,
) -> None:
    sys.stderr.write(warnings.formatwarning(message, category, filename, lineno, line))
