"""The study `exam-zoo`: the battery of the exam for every backbone, with about the same number of parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unseen.exam.exam import BATTERY, NOTES, SEEDS
from unseen.models import BACKBONES
from unseen.studies.grid import Grid
from unseen.studies.study import Study

if TYPE_CHECKING:
    from unseen.studies.catalog import Axis

PARAMETERS = {"smoke": 10_000, "mini": 20_000, "full": 1_000_000}
"""The number of parameters that the width of each backbone comes closest to on every test (`matched` in records)."""
DROPOUT = {"smoke": 0.0, "mini": 0.0, "full": 0.1}
"""Models as small as those of `mini` cannot spare a tenth of their units."""

WIDTHS: dict[str, dict[str, tuple[int, ...]]] = {
    "smoke": {
        "presence": (33, 38, 64, 20, 24, 28, 12, 20, 16, 24, 16, 20, 24),
        "order": (33, 38, 64, 20, 24, 28, 12, 20, 16, 24, 16, 20, 24),
        "tables": (34, 39, 66, 20, 28, 28, 12, 20, 16, 24, 17, 20, 24),
        "chains": (34, 39, 66, 20, 28, 28, 12, 20, 16, 24, 17, 20, 24),
        "scenes": (32, 36, 58, 20, 24, 28, 12, 20, 16, 23, 16, 20, 24),
        "sums": (34, 40, 68, 20, 28, 32, 12, 20, 16, 25, 17, 20, 24),
        "states": (33, 37, 62, 20, 24, 28, 12, 20, 16, 24, 16, 20, 24),
    },
    "mini": {
        "presence": (48, 55, 93, 28, 36, 44, 16, 28, 20, 37, 25, 32, 32),
        "order": (48, 55, 93, 28, 36, 44, 16, 28, 20, 37, 25, 32, 32),
        "tables": (48, 56, 95, 28, 36, 44, 16, 28, 20, 37, 26, 32, 32),
        "chains": (48, 56, 95, 28, 36, 44, 16, 28, 20, 37, 26, 32, 32),
        "scenes": (46, 53, 87, 28, 36, 40, 16, 28, 20, 36, 25, 28, 32),
        "sums": (49, 56, 97, 28, 40, 44, 16, 28, 20, 37, 26, 32, 32),
        "states": (47, 54, 91, 28, 36, 40, 16, 28, 20, 36, 25, 28, 32),
    },
    "full": {
        "presence": (348, 401, 688, 200, 272, 312, 128, 200, 156, 305, 213, 220, 248),
        "order": (348, 401, 688, 200, 272, 312, 128, 200, 156, 305, 213, 220, 248),
        "tables": (350, 403, 694, 204, 276, 312, 128, 204, 156, 306, 214, 220, 248),
        "chains": (351, 405, 699, 204, 276, 312, 128, 204, 156, 307, 214, 224, 248),
        "scenes": (344, 395, 670, 200, 272, 308, 128, 200, 156, 301, 211, 220, 244),
        "sums": (352, 407, 703, 204, 276, 316, 128, 204, 156, 308, 215, 224, 248),
        "states": (350, 404, 696, 204, 276, 312, 128, 204, 156, 307, 214, 220, 248),
    },
}
"""By scale and test, the widths that `match` finds for `BACKBONES` in their order. They are written down because finding
them takes a minute; the tests check that it still finds them."""


def options(backbone: str, test: str, scale: str) -> dict[str, Any]:
    """The options of a backbone on a test."""
    return {
        "name": backbone,
        "width": WIDTHS[scale][test][BACKBONES.index(backbone)],
        "dropout": DROPOUT[scale],
        "matched": {"by": "parameters", "to": PARAMETERS[scale]},
    }


def _grids(scale: str) -> list[Grid]:
    """The battery of the exam for every backbone, all with about as many parameters.

    It gives the matrix of backbones × abilities, and the reference that `unseen exam` compares a model with.
    """
    grids = []
    for test, worlds in BATTERY.items():  # a grid per test, since widths depend on it
        backbones: Axis = {name: {"model": options(name, test, scale)} for name in BACKBONES}
        axes: dict[str, Axis] = {"test": {test: worlds[scale].settings}, "model": backbones}
        grids.append(Grid(axes=axes, base={}, seeds=range(SEEDS[scale])))
    return grids


STUDY = Study(
    name="exam-zoo",
    version=1,
    question="Which architecture has which ability: every backbone on the same battery from the four papers' families, "
    "with as many parameters?",
    scales={"smoke": 1, "mini": 75, "full": None},
    grids=_grids,
    notes=NOTES,
)
