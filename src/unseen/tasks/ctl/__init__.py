"""Compositional table lookup (CTL, CTL++, any sampling graph): tasks, worlds, and their files."""

from __future__ import annotations

from unseen.tasks.ctl.audit import read_examples, write_json_lines
from unseen.tasks.ctl.lengths import Lengths
from unseen.tasks.ctl.variants import Alternating, FromGraph, Staged
from unseen.tasks.ctl.world import Graph, World, load_world

__all__ = [
    "Alternating",
    "FromGraph",
    "Graph",
    "Lengths",
    "Staged",
    "World",
    "load_world",
    "read_examples",
    "write_json_lines",
]
