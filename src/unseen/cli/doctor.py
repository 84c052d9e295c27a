"""`unseen doctor`: check the installation."""

from __future__ import annotations

import os
import platform
import sqlite3

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
    """Check the installation: versions, extras, and that a seed trained in a stack equals the seed trained alone."""
    from importlib.metadata import version

    from unseen.running.provenance import cpu_name

    _print_line("machine", f"{cpu_name()}, {os.cpu_count()} cores, {platform.platform()}")
    _print_line("python", platform.python_version())
    for package in ("unseen", "torch", "numpy", "scipy", "pandas", "pydantic", "safetensors"):
        if not _is_installed(package):
            raise CheckFailed(f"{package} is missing: pip install 'unseen'")
        _print_line(package, version(package))
    _print_line("sqlite", sqlite3.sqlite_version)
    for extra, packages in EXTRAS.items():
        missing = [package for package in packages if not _is_installed(package)]
        hint = f"missing {', '.join(missing)}: pip install 'unseen[{extra}]'"
        _print_line(f"extra {extra}", hint if missing else "installed")
    equal = _stack_equals_solo()
    _print_line("stack = solo", "bit for bit" if equal else "DIFFERS on this machine")
    if not equal:
        raise CheckFailed(
            "a stacked run differs from the same run alone on this machine: results will depend on the size of the "
            "stack. Please report the processor and the torch version."
        )


def _print_line(title: str, text: str) -> None:
    typer.echo(f"{title:<14} {text}")


def _is_installed(package: str) -> bool:
    from importlib.metadata import PackageNotFoundError, version

    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def _stack_equals_solo() -> bool:
    """Train three seeds for ten steps as a stack, and the middle one alone; compare its weights bit by bit."""
    from unseen.api import train
    from unseen.tasks import task

    tiny = task("retrieval/T1", length=5, train_size=1_000, evaluation_size=250)
    weights = []
    for seeds in ([0, 1, 2], [1]):
        runs = train(tiny, "retrieval-transformer", seeds=seeds, steps=10, batch=10, stack=3, progress="none")
        weights.append(runs.model(1, "last").state_dict())
    stacked, solo = weights
    return all(bool((stacked[name] == solo[name]).all()) for name in stacked)
