"""A tiny study whose claims wait for more steps: no model learns in the steps that it has."""

from __future__ import annotations

from unseen.studies.grid import Grid
from unseen.studies.study import Study

_PLAIN = {"name": "retrieval-transformer", "positions": "none", "self_attention": False}
_BASIC = {"name": "retrieval-lstm", "form": "basic"}
CLAIMS = (
    {
        "claim": "no-worse",
        "statement": "The LSTM is hardly worse, which says nothing as long as the other model has not learned.",
        "split": "iid",
        "headline": [{"better": {"variant": "basic"}, "than": {"variant": "plain"}, "by": -0.9}],
    },
    {
        "claim": "guesses",
        "statement": "The plain model is not far above chance.",
        "split": "iid",
        "headline": [{"below": 0.9, "runs": {"variant": "plain"}}],
    },
)


def grids(scale: str) -> list[Grid]:
    """Two models on one task; validated so often that a curve says whether a run has begun to learn."""
    recipe = {"steps": 20, "batch": 10, "validate_every": 2, "validation_examples": 100}
    return [
        Grid(
            axes={"variant": {"plain": {"model": _PLAIN}, "basic": {"model": _BASIC}}},
            base={
                "task": {"name": "retrieval/T1", "length": 3, "train_size": 500, "evaluation_size": 300},
                "recipe": recipe,
                "evaluation": {"examples": 300},
            },
            seeds=range(3),
        )
    ]


SLOW = Study("slow", 1, "Does it take longer?", {"smoke": None}, grids, own_claims=CLAIMS)
