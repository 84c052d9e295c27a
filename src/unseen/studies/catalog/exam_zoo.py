"""`exam-zoo`: the battery of the exam for every backbone, all with as many parameters.

    unseen run exam-zoo --scale mini --out zoo

The matrix backbones × abilities, and the reference that `unseen exam` compares a model with: see docs/exam.md.
"""

from __future__ import annotations

from typing import Any

from unseen.models import BACKBONES
from unseen.studies.exam import BATTERY, NOTES, SEEDS
from unseen.studies.grid import Grid
from unseen.studies.study import Study

PARAMETERS = {"smoke": 10_000, "mini": 50_000, "full": 1_000_000}
"""The number of parameters that the width of each backbone comes nearest to, on every test; records say so
(`matched`)."""


WIDTHS: dict[str, dict[str, tuple[int, ...]]] = {
    "smoke": {
        "presence": (30, 35, 54, 20, 24, 28, 12, 20),
        "order": (30, 35, 54, 20, 24, 28, 12, 20),
        "tables": (34, 39, 65, 20, 28, 28, 12, 20),
        "chains": (34, 39, 66, 20, 28, 28, 12, 20),
        "scenes": (31, 35, 55, 20, 24, 28, 12, 16),
        "sums": (34, 40, 68, 20, 28, 32, 12, 20),
        "states": (33, 37, 62, 20, 24, 28, 12, 20),
    },
    "mini": {
        "presence": (74, 85, 140, 44, 60, 68, 28, 44),
        "order": (74, 85, 140, 44, 60, 68, 28, 44),
        "tables": (77, 89, 153, 44, 60, 68, 28, 44),
        "chains": (77, 89, 153, 44, 60, 68, 28, 44),
        "scenes": (74, 85, 141, 44, 60, 68, 28, 44),
        "sums": (78, 90, 155, 44, 60, 68, 28, 44),
        "states": (76, 88, 149, 44, 60, 68, 28, 44),
    },
    "full": {
        "presence": (348, 401, 688, 200, 272, 312, 128, 200),
        "order": (348, 401, 688, 200, 272, 312, 128, 200),
        "tables": (350, 403, 694, 204, 276, 312, 128, 204),
        "chains": (351, 405, 699, 204, 276, 312, 128, 204),
        "scenes": (344, 395, 670, 200, 272, 308, 128, 200),
        "sums": (352, 407, 703, 204, 276, 316, 128, 204),
        "states": (350, 404, 696, 204, 276, 312, 128, 204),
    },
}
"""By scale and test, the widths that `match` finds for `BACKBONES` in their order. Written down because to find them
takes a minute; the tests look whether it still finds them."""


def options(backbone: str, test: str, scale: str) -> dict[str, Any]:
    """The options of a backbone on a test."""
    return {"name": backbone, "width": WIDTHS[scale][test][BACKBONES.index(backbone)],
            "matched": {"by": "parameters", "to": PARAMETERS[scale]}}


def grids(scale: str) -> list[Grid]:
    """One grid per test, since widths depend on it: backbones × seeds."""
    return [Grid(axes={"test": {test: worlds[scale].settings},
                       "model": {name: {"model": options(name, test, scale)} for name in BACKBONES}},
                 base={}, seeds=range(SEEDS[scale]))
            for test, worlds in BATTERY.items()]


STUDY = Study(
    name="exam-zoo",
    version=1,
    question="Which architecture has which ability: every backbone on the same battery from all four families, with as "
             "many parameters?",
    scales={"smoke": 1, "mini": 45, "full": None},
    grids=grids,
    notes=NOTES,
)
