"""Questions about coloured letters on a grid (gCOG): the tasks, their sentences and their pictures."""

from __future__ import annotations

from unseen.tasks.gcog.render import decode, draw_contact_sheet, render
from unseen.tasks.gcog.schema import Schema
from unseen.tasks.gcog.solver import solve
from unseen.tasks.gcog.text import read_sentence, write_sentence
from unseen.tasks.gcog.variants import Distractor, Productive, SystematicOperators, SystematicTrees

__all__ = [
    "Distractor",
    "Productive",
    "Schema",
    "SystematicOperators",
    "SystematicTrees",
    "decode",
    "draw_contact_sheet",
    "read_sentence",
    "render",
    "solve",
    "write_sentence",
]
