"""Questions about coloured letters on a grid (gCOG): tasks, sentences, pictures."""

from __future__ import annotations

from unseen.tasks.gcog.distractor import Distractor
from unseen.tasks.gcog.pixels import decode, render
from unseen.tasks.gcog.productive import Productive
from unseen.tasks.gcog.schema import Schema
from unseen.tasks.gcog.sentences import read_sentence, write_sentence
from unseen.tasks.gcog.sheet import contact_sheet
from unseen.tasks.gcog.solver import solve
from unseen.tasks.gcog.systematic_operators import SystematicOperators
from unseen.tasks.gcog.systematic_trees import SystematicTrees

__all__ = [
    "Distractor",
    "Productive",
    "Schema",
    "SystematicOperators",
    "SystematicTrees",
    "contact_sheet",
    "decode",
    "read_sentence",
    "render",
    "solve",
    "write_sentence",
]
