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
        "gcog-distractors": (f"{_HERE}.gcog_distractors:STUDY", "questions about a few objects, asked among many"),
        "gcog-systematicity": (f"{_HERE}.gcog_systematicity:STUDY", "operators with objects, or operators, never met"),
        "gcog-productivity": (f"{_HERE}.gcog_productivity:STUDY", "trees of questions deeper than those of training"),
        "gcog-layers": (f"{_HERE}.gcog_layers:STUDY", "do more layers or heads help with what was never seen?"),
        "gcog-pool": (f"{_HERE}.gcog_pool:STUDY", "does a fixed pool of questions keep models from fresh ones?"),
        "gcog-rsa": (f"{_HERE}.gcog_rsa:STUDY", "does training bring states closer to the stimulus or the answer?"),
        "retrieval-noise": (f"{_HERE}.retrieval_noise:STUDY", "do positions help, or the dropout that goes with them?"),
        "exam-zoo": (f"{_HERE}.exam_zoo:STUDY", "which architecture has which ability, on a battery of all families"),
    },
)
