"""What the retrieval studies have in common: tasks, models, data, evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unseen.studies.grid import Level
from unseen.studies.parts import Settings

Axis = Mapping[Level, Settings]

# The analyses of the paper that are about each task; they leave measures beside the accuracies.
_ANALYSES = {
    "T1": ("R1", "R2", "R9"),
    "T2": ("R3", "R4"),
    "T3": ("R5",),
    "T4": ("R6",),
    "T5": ("R7",),
    "T6": ("R7",),
    "T7": ("R7",),
}

# The names of the paper's table 2.
TRANSFORMERS: Axis = {
    "T−Pos−Att": {"model": {"name": "retrieval-transformer", "positions": "none", "self_attention": False}},
    "T+Pos−Att": {"model": {"name": "retrieval-transformer", "positions": "sinusoidal", "self_attention": False}},
    "T−Pos+Att": {"model": {"name": "retrieval-transformer", "positions": "none", "self_attention": True}},
    "T+Pos+Att": {"model": {"name": "retrieval-transformer", "positions": "sinusoidal", "self_attention": True}},
}
LSTMS: Axis = {
    "LSTM": {"model": {"name": "retrieval-lstm", "form": "basic"}},
    "LSTM+Att": {"model": {"name": "retrieval-lstm", "form": "attention"}},
}
ALL = tuple(_ANALYSES)

# The paper trained five seeds on one published data set per task and length. So does every scale: intervals cover
# initialisation and dropout, not the draw of the data or their order.
DATA_SEED = 0

# Batch 100 and ten times the published learning rate: 1 000 steps are an epoch of the 100 000 training examples.
QUICK = {"batch": 100, "learning_rate": 1e-3}
PUBLISHED = {"name": "retrieval-paper"}

CONDITIONS = ("iid", "ood/single")  # the second is the paper's test

NOTES = (
    "data and query tables drawn with the measured properties of the published ones (preset released), not read from "
    "the published files",
    "a new order of the training data in every epoch (released code: one fixed order)",
)


def tasks(kinds: Sequence[str] | Mapping[str, int]) -> Axis:
    """The axis of tasks, each with its analyses and, if they are given, its steps."""
    steps = kinds if isinstance(kinds, Mapping) else {}
    return {
        f"retrieval/{kind}": {
            "task": {"name": f"retrieval/{kind}"},
            "evaluation": {"analyses": _ANALYSES[kind]},
            "recipe": {"steps": steps[kind]} if steps else {},
        }
        for kind in kinds
    }
