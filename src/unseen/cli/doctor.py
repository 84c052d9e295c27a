"""`unseen doctor`: is this installation sound?"""

from __future__ import annotations

import os
import platform
import sqlite3
from importlib.metadata import PackageNotFoundError, version

import typer

from unseen.errors import CheckFailed

EXTRAS = {
    "report": ("altair", "vl-convert-python"),
    "parquet": ("pyarrow",),
    "ray": ("ray",),
    "export": ("datasets", "pyarrow"),
    "tracking": ("tensorboard", "mlflow-skinny", "wandb"),
    "tune": ("optuna",),
}


def doctor() -> None:
    """Check the installation: versions, extras, and that stacked training gives the same bits as training alone."""
    from unseen.studies.provenance import cpu_name

    _say("machine", f"{cpu_name()}, {os.cpu_count()} cores, {platform.platform()}")
    _say("python", platform.python_version())
    for package in ("unseen", "torch", "numpy", "scipy", "pandas", "pydantic", "safetensors"):
        if not _installed(package):
            raise CheckFailed(f"{package} is missing: pip install 'unseen'")
        _say(package, version(package))
    _say("sqlite", sqlite3.sqlite_version)
    for extra, packages in EXTRAS.items():
        missing = [p for p in packages if not _installed(p)]
        hint = f"missing {', '.join(missing)}: pip install 'unseen[{extra}]'"
        _say(f"extra {extra}", hint if missing else "installed")
    same = _stack_equals_solo()
    _say("stack = solo", "bit for bit" if same else "DIFFERS on this machine")
    if not same:
        raise CheckFailed(
            "a stacked run differs from the same run alone on this machine: results will not be "
            "independent of the stack's size. Please report the processor and the torch version."
        )


def _say(what: str, found: str) -> None:
    typer.echo(f"{what:<14} {found}")


def _installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def _stack_equals_solo() -> bool:
    """Ten steps of three seeds together, and of the middle one alone."""
    from unseen.api import train
    from unseen.tasks import task

    tiny = task("retrieval/T1", length=5, train_size=1_000, evaluation_size=250)
    together, alone = (
        train(tiny, "retrieval-transformer", seeds=s, steps=10, batch=10, stack=3, progress="none")
        for s in ([0, 1, 2], [1])
    )
    first, second = (runs.model(1, "last").state_dict() for runs in (together, alone))
    return all(bool((first[k] == second[k]).all()) for k in first)
