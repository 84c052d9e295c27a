"""The studies that come with Unseen, one file each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unseen.registry import Registry

if TYPE_CHECKING:
    from unseen.studies.study import Study

_HERE = "unseen.studies.catalog"

STUDIES: Registry[Study] = Registry(
    "study",
    "unseen.studies",
    {
        "quickstart": (f"{_HERE}.quickstart:STUDY", "can a Transformer tell a-before-b from b-before-a?"),
        "retrieval-table2": (f"{_HERE}.retrieval_table2:STUDY", "what positions and self-attention each contribute"),
        "retrieval-lengths": (f"{_HERE}.retrieval_lengths:STUDY", "Transformers and LSTMs as sequences grow"),
        "rules-main": (f"{_HERE}.rules_main:STUDY", "modules or none, on tasks of 2 to 32 rules; do they specialize?"),
        "rules-confounds": (f"{_HERE}.rules_confounds:STUDY", "what the sizes given to modular models do to them"),
        "ctl-table1": (f"{_HERE}.ctl_table1:STUDY", "do networks compose functions across groups never seen together?"),
        "ctl-grid": (f"{_HERE}.ctl_grid:STUDY", "how much overlap of two paths lets a network mix them?"),
        "ctl-lengths": (f"{_HERE}.ctl_lengths:STUDY", "do networks compose longer chains than those of training?"),
        "retrieval-noise": (f"{_HERE}.retrieval_noise:STUDY", "do positions help, or the dropout that goes with them?"),
    },
)
