"""Studies of a user's own: a YAML file that is data, or a Python file that defines `study`. See docs/studies.md."""

from __future__ import annotations

import runpy
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from unseen.errors import UsageError, nearest
from unseen.studies.grid import Grid, Level, as_levels, check_axis, check_levels
from unseen.studies.lines import Lined, at, read_yaml
from unseen.studies.parts import BUILD, Fragment
from unseen.studies.study import SCALES, Study

_CROSSING = ("axes", "together", "without")
_STUDY = (
    "study",
    "version",
    "question",
    "claims",
    "notes",
    "seeds",
    "data_seed",
    "base",
    "grids",
    "scales",
    *_CROSSING,
)
_SCALE = ("seeds", "base", "only", "minutes")


def load(path: Path) -> Study:
    """The study of a file; whatever is wrong is answered with the file, and with the line if it is YAML."""
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file")
    return _load_python(path) if path.suffix == ".py" else _load_yaml(path)


def _load_python(path: Path) -> Study:
    """Execute a file: it is the user's own code, as if they had run it."""
    try:
        found = runpy.run_path(str(path)).get("study")
    except Exception as error:
        raise UsageError(f"{path} could not be executed: {type(error).__name__}: {error}") from error
    if not isinstance(found, Study):
        raise UsageError(f"{path} must define study = Study(…), got {type(found).__name__}")
    return found


def _load_yaml(path: Path) -> Study:
    said = read_yaml(path)
    said.check_keys(_STUDY)
    if "study" not in said:
        raise UsageError(f"{said.where()}: the study needs a name, like study: order-and-noise")
    if "grids" in said and any(key in said for key in _CROSSING):
        raise UsageError(
            f"{said.where('grids')}: axes, together and without belong into each of the grids, not beside them"
        )
    scales = said.mapping("scales") if "scales" in said else said.made({"full": said.made({})})
    scales.check_keys(SCALES)
    # All scales are made at once, so that a mistake is met when the file is read, whatever is asked of it.
    grids = {scale: _grids(said, scales.mapping(scale)) for scale in SCALES if scale in scales}
    with at(said.where("study")):
        return Study(
            name=said.value("study", str),
            version=said.value("version", int, 1),
            question=said.value("question", str, ""),
            scales={scale: scales.mapping(scale).value("minutes", int | float) for scale in grids},
            grids=grids.__getitem__,
            claims=said.words("claims"),
            notes=said.words("notes"),
        )


def _grids(said: Lined, scale: Lined) -> list[Grid]:
    """The grids of a study at one scale: its own base over theirs, its seeds instead of theirs, and only its levels."""
    scale.check_keys(_SCALE)
    seeds = _seeds(scale if "seeds" in scale else said)
    data_seed = said.value("data_seed", int)
    crossed = said.sequence("grids") if "grids" in said else [said.made({k: said[k] for k in _CROSSING if k in said})]
    grids = []
    for number, one in enumerate(crossed, 1):
        if not isinstance(one, Lined):
            raise UsageError(f"{said.where('grids')}: grid {number}: expected axes: …, got {one!r}")
        one.check_keys(("base", *_CROSSING))
        base = _base(scale).over(_base(one)).over(_base(said))
        grids.append(_without(_together(Grid(_axes(one), base, seeds, data_seed), one), one))
    return [_only(grid, scale, grids) for grid in grids]


def _base(said: Lined) -> Lined:
    base = said.mapping("base")
    with at(base.where()):
        Fragment("base", base)
    return base


def _axes(said: Lined) -> dict[str, Lined]:
    """The axes: `variant: {plain: settings, …}`, or the path of an option and its values (`task.length: [5, 10]`)."""
    axes: dict[str, Lined] = {}
    written = said.mapping("axes")
    for key, value in written.items():
        with at(written.where(key)):
            if not isinstance(value, Lined | list):
                raise UsageError(f"axis '{key}': expected a list of values or levels with settings, got {value!r}")
            name, levels = (key, value) if isinstance(value, Lined) else _short_form(str(key), value, written)
            check_axis(name, levels)
            if name in axes:
                raise UsageError(f"axis '{name}' is given twice")
            axes[name] = levels
    return axes


def _short_form(path: str, values: Sequence[Any], written: Lined) -> tuple[str, Lined]:
    """`task.length: [5, 10]` is the axis `length` with levels 5 and 10; `task: […]` is about the task's name."""
    part, dot, option = path.partition(".")
    if part not in BUILD:
        known = "a list of values needs the path of an option, like task.length"
        raise UsageError(f"axis '{path}': {known}. {nearest(part, BUILD)}")
    line = written.lines[path]
    levels = Lined(written.file, line)
    for value in values:
        if not isinstance(value, Level) or value in levels:
            raise UsageError(
                f"axis '{path}': {value!r} is "
                + (
                    "given twice"
                    if isinstance(value, Level)
                    else "no word or number; give levels with settings instead"
                )
            )
        options = levels.made({option if dot else "name": value})
        levels.put(value, levels.made({part: options}), line)
    return (option if dot else part), levels


def _together(grid: Grid, said: Lined) -> Grid:
    groups = said.sequence("together")
    with at(said.where("together")):
        if not all(isinstance(group, list) and all(isinstance(axis, str) for axis in group) for group in groups):
            raise UsageError("together: expected groups of axes, like [[length, steps]]")
        return replace(grid, together=groups)


def _without(grid: Grid, said: Lined) -> Grid:
    for rule in said.sequence("without"):
        with at(rule.where() if isinstance(rule, Lined) else said.where("without")):
            if not isinstance(rule, Lined):
                raise UsageError(f"without: expected axes and levels, like {{variant: plain}}, got {rule!r}")
            grid = replace(grid, without=[*grid.without, rule])
    return grid


def _only(grid: Grid, scale: Lined, grids: Sequence[Grid]) -> Grid:
    """The grid without the levels that the scale does not keep."""
    only = scale.mapping("only")
    for axis, kept in only.items():
        known = {level for one in grids for level in one.axes.get(axis, ())}
        if not known:
            axes = {name for one in grids for name in one.axes}
            raise UsageError(f"{only.where(axis)}: only: unknown axis '{axis}'. {nearest(str(axis), axes)}")
        with at(only.where(axis)):
            check_levels(axis, as_levels(kept), known, "only")
        dropped = [level for level in grid.axes.get(axis, ()) if level not in as_levels(kept)]
        if dropped:
            grid = replace(grid, without=[*grid.without, {axis: dropped}])
    return grid


def _seeds(said: Lined) -> Sequence[int]:
    """Seeds as a number of them, or one by one."""
    seeds = said.get("seeds", 5)
    if (
        isinstance(seeds, list)
        and seeds
        and all(type(s) is int and s >= 0 for s in seeds)
        and len(set(seeds)) == len(seeds)
    ):
        return seeds
    if type(seeds) is int and seeds > 0:
        return range(seeds)
    raise UsageError(f"{said.where('seeds')}: seeds = {seeds!r}: expected how many, like 5, or which, like [0, 3, 7]")
