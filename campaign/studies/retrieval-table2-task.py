"""retrieval-table2, version 2, scale small, the runs of one task: a piece of the study (change TASK and STEPS, as in the catalogue).

Version 2 of the catalogue has the same trials (ids are compared when stores are collected). Batches are ten times the
paper's, and so is the learning rate; steps end at a plateau, after half of them at least.
"""

from dataclasses import replace

from unseen.studies.catalog.retrieval import TABLE2, TRANSFORMERS, _grid

TASK, STEPS = "T3", 6000
RECIPE = {
    "batch": 100,
    "learning_rate": 1e-3,
    "steps": STEPS,
    "plateau": 0.005,
    "least_steps": STEPS // 2,
    "validate_every": 500,
    "validation_examples": 4_000,
}


def grids(scale):
    return [_grid({"tasks": (TASK,), "seeds": 5, "recipe": RECIPE}, {"variant": TRANSFORMERS}, {"length": 10})]


study = replace(TABLE2, version=2, scales={"small": None}, grids=grids)
