"""A registry as a table for people."""

from __future__ import annotations

from typing import Any

import typer

from unseen.registry import Registry


def listing(registry: Registry[Any], hint: str) -> None:
    """Print names and summaries, aligned, and what to do next."""
    entries = sorted(registry, key=lambda e: e.name)
    width = max(len(e.name) for e in entries)
    for entry in entries:
        typer.echo(f"{entry.name:<{width}}  {entry.summary}")
    typer.echo(f"\n{hint}", err=True)
