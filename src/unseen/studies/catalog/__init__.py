"""The studies that come with Unseen, one file per family of tasks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from unseen.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unseen.studies.build_trials import Settings
    from unseen.studies.grid import Level
    from unseen.studies.study import Study

    Axis = Mapping[Level, Settings]

_CATALOG = "unseen.studies.catalog"

STUDIES: Registry[Study] = Registry(
    "study",
    "unseen.studies",
    {
        "quickstart": (f"{_CATALOG}.quickstart:STUDY", "can a Transformer tell a-before-b from b-before-a?"),
        "retrieval-table2": (f"{_CATALOG}.retrieval:TABLE2", "what positions and self-attention each contribute"),
        "retrieval-lengths": (f"{_CATALOG}.retrieval:LENGTHS", "Transformers and LSTMs as sequences grow"),
        "rules-main": (f"{_CATALOG}.rules:MAIN", "modules or none, on tasks of 2 to 32 rules; do they specialize?"),
        "rules-confounds": (f"{_CATALOG}.rules:CONFOUNDS", "what the sizes given to modular models do to them"),
        "ctl-table1": (f"{_CATALOG}.ctl:TABLE1", "do networks compose functions across groups never seen together?"),
        "ctl-grid": (f"{_CATALOG}.ctl:GRID", "how much overlap of two paths lets a network mix them?"),
        "ctl-lengths": (f"{_CATALOG}.ctl:LENGTHS", "do networks compose longer chains than those of training?"),
        "gcog-distractors": (f"{_CATALOG}.gcog:DISTRACTORS", "questions about a few objects, asked among many"),
        "gcog-systematicity": (f"{_CATALOG}.gcog:SYSTEMATICITY", "operators with objects, or operators, never met"),
        "gcog-productivity": (f"{_CATALOG}.gcog:PRODUCTIVITY", "trees of questions deeper than those of training"),
        "gcog-layers": (f"{_CATALOG}.gcog:LAYERS", "do more layers or heads help with what was never seen?"),
        "gcog-pool": (f"{_CATALOG}.gcog:POOL", "does a fixed pool of questions keep models from fresh ones?"),
        "retrieval-noise": (f"{_CATALOG}.retrieval:NOISE", "do positions help, or the dropout that goes with them?"),
        "retrieval-scale": (f"{_CATALOG}.retrieval:SCALE", "do layers, heads or read-outs help, and longer sequences?"),
        "inside-ctl": (f"{_CATALOG}.inside:SYMBOL", "is a symbol that a network fails to compose there, and used?"),
        "inside-order": (f"{_CATALOG}.inside:ORDER", "does the later token carry the order of two features?"),
        "inside-modules": (f"{_CATALOG}.inside:MODULES", "do modules that specialise matter more when ablated?"),
        "rules-data": (f"{_CATALOG}.rules:DATA", "do modules help where data are scarce?"),
        "rules-routers": (f"{_CATALOG}.rules:ROUTERS", "does any router make modules specialize, and does it pay?"),
        "state-tracking": (f"{_CATALOG}.tracking:STATE_TRACKING", "who tracks a group's state in longer words?"),
        "recall": (f"{_CATALOG}.tracking:RECALL", "how large a state recalls all pairs of a context?"),
        "exam-zoo": ("unseen.exam.zoo:STUDY", "which architecture has which ability, on a battery of all families"),
    },
)


def option_axis(option: str, levels: Iterable[Level]) -> Axis:
    """Make an axis whose levels are the values of one option.

    >>> option_axis("task.length", (5, 10))
    {5: {'task': {'length': 5}}, 10: {'task': {'length': 10}}}
    """
    component, _, name = option.partition(".")
    return {level: {component: {name: level}} for level in levels}
