"""Users' own studies: a YAML file, which is data, or a Python file that defines `study`. See docs/studies.md."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from unseen.errors import UsageError, format_value, nearest
from unseen.registry import search_current_directory
from unseen.studies import MOST_TRIALS
from unseen.studies.build_trials import SETTABLE, Fragment
from unseen.studies.grid import Grid, Level, as_levels, check_axis, check_levels
from unseen.studies.study import SCALES, Study
from unseen.studies.yaml_loader import YamlMapping, locate_errors, read_yaml

_CROSSING = ("axes", "together", "without")
_STUDY = (
    *("study", "version", "question", "claims", "notes", "selection", "seeds", "data_seed"),
    *("base", "grids", "scales", *_CROSSING),
)
MOST_MINUTES = 10**9
_SCALE = ("seeds", "base", "only", "minutes")


def load(path: Path) -> Study:
    """The study of a file; errors name the file, and the line if it is YAML."""
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file")
    return _load_python(path) if path.suffix == ".py" else _load_yaml(path)


def _load_python(path: Path) -> Study:
    """Execute a file: it is the user's own code, as if they had run it."""
    # Reading a study writes nothing beside it: neither a __pycache__ for the modules that it imports, nor, on a full
    # disk, bytecode that ends in the middle, which CPython would not notice and every later import would stumble on.
    search_current_directory()
    before = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    try:
        study = runpy.run_path(str(path)).get("study")
    except (Exception, SystemExit) as error:  # a script that ends with sys.exit() would end the command, with success
        raise UsageError(f"{path} could not be executed: {type(error).__name__}: {error}") from error
    finally:
        sys.dont_write_bytecode = before
    if not isinstance(study, Study):
        raise UsageError(f"{path} must define study = Study(…), got {type(study).__name__}")
    return study


def _load_yaml(path: Path) -> Study:
    content = read_yaml(path)
    content.check_keys(_STUDY)
    if "study" not in content:
        raise content.error(None, "the study needs a name, like study: order-and-noise")
    if "grids" in content and any(key in content for key in _CROSSING):
        raise content.error("grids", "axes, together and without belong into each of the grids, not beside them")
    only_full = content.derive({"full": content.derive({})})
    scales = content.mapping("scales") if "scales" in content else only_full
    scales.check_keys(SCALES)
    # The grids of all scales are made now, so that any mistake is reported when the file is read.
    grids = {scale: _read_grids(content, scales.mapping(scale)) for scale in SCALES if scale in scales}
    with locate_errors(content.locate("study")):
        return Study(
            name=content.value("study", str),
            version=content.value("version", int, 1),
            question=content.value("question", str, ""),
            scales={scale: _read_minutes(scales.mapping(scale)) for scale in grids},
            grids=grids.__getitem__,
            claims=tuple(item for item in content.sequence("claims") if isinstance(item, str)),
            own_claims=tuple(_own_claims(content)),
            notes=content.texts("notes"),
            selection=content.value("selection", str, "best"),
        )


def _own_claims(content: YamlMapping) -> Iterator[YamlMapping]:
    """The claims that the file states itself; `claims.user_claims` reads them, with their lines."""
    for item in content.sequence("claims"):
        if isinstance(item, YamlMapping):
            yield item
        elif not isinstance(item, str):
            raise content.error("claims", f"claims: expected the name of a claim or a mapping, got {item!r}")


def _read_grids(content: YamlMapping, scale: YamlMapping) -> list[Grid]:
    """The grids of a study at one scale, whose base is laid over the others, whose seeds replace the study's, and which
    may restrict the levels."""
    scale.check_keys(_SCALE)
    seeds = _read_seeds(scale if "seeds" in scale else content)
    data_seed = content.value("data_seed", int)
    if "grids" in content:
        sections = content.sequence("grids")
    else:
        sections = [content.derive({key: content[key] for key in _CROSSING if key in content})]
    grids = []
    for number, section in enumerate(sections, 1):
        if not isinstance(section, YamlMapping):
            raise content.error("grids", f"grid {number}: expected axes: …, got {format_value(section)}")
        section.check_keys(("base", *_CROSSING))
        base = _read_base(scale).over(_read_base(section)).over(_read_base(content))
        grid = Grid(_read_axes(section), base, seeds, data_seed)
        grid = _add_together(grid, section)
        grid = _add_without(grid, section)
        grids.append(grid)
    return [_restrict_levels(grid, scale, grids) for grid in grids]


def _read_base(section: YamlMapping) -> YamlMapping:
    base = section.mapping("base")
    with locate_errors(base.locate()):
        Fragment("base", base)  # checks the settings
    return base


def _read_axes(section: YamlMapping) -> dict[str, YamlMapping]:
    """The axes: `variant: {plain: settings, …}`, or the path of an option and its values (`task.length: [5, 10]`)."""
    axes: dict[str, YamlMapping] = {}
    axes_section = section.mapping("axes")
    for key, value in axes_section.items():
        with locate_errors(axes_section.locate(key)):
            if isinstance(value, YamlMapping):
                name = key
                levels = value
            elif isinstance(value, list):
                name, levels = _expand_short_form(str(key), value, axes_section)
            else:
                raise UsageError(
                    f"axis '{key}': expected a list of values or levels with settings, got {format_value(value)}"
                )
            check_axis(name, levels)
            if name in axes:
                raise UsageError(f"axis '{name}' is given twice")
            axes[name] = levels
    return axes


def _expand_short_form(path: str, values: Sequence[Any], axes_section: YamlMapping) -> tuple[str, YamlMapping]:
    """`task.length: [5, 10]` is the axis `length` with levels 5 and 10; `task: […]` is about the task's name."""
    component, dot, option = path.partition(".")
    if component not in SETTABLE:
        raise UsageError(
            f"axis '{path}': a list of values needs the path of an option, like task.length. "
            f"{nearest(component, SETTABLE)}"
        )
    line = axes_section.lines[path]
    levels = YamlMapping(axes_section.file, line)
    for value in values:
        if not isinstance(value, Level):
            raise UsageError(
                f"axis '{path}': {format_value(value)} is not a word or number; give levels with settings instead"
            )
        if value in levels:
            raise UsageError(f"axis '{path}': {format_value(value)} is given twice")
        options = levels.derive({option if dot else "name": value})
        levels.put(value, levels.derive({component: options}), line)
    return (option if dot else component), levels


def _add_together(grid: Grid, section: YamlMapping) -> Grid:
    groups = section.sequence("together")
    with locate_errors(section.locate("together")):
        for group in groups:
            if not isinstance(group, list) or not all(isinstance(axis, str) for axis in group):
                raise UsageError("together: expected groups of axes, like [[length, steps]]")
        return replace(grid, together=groups)


def _add_without(grid: Grid, section: YamlMapping) -> Grid:
    for rule in section.sequence("without"):
        with locate_errors(rule.locate() if isinstance(rule, YamlMapping) else section.locate("without")):
            if not isinstance(rule, YamlMapping):
                raise UsageError(
                    f"without: expected axes and levels, like {{variant: plain}}, got {format_value(rule)}"
                )
            grid = replace(grid, without=[*grid.without, rule])
    return grid


def _restrict_levels(grid: Grid, scale: YamlMapping, grids: Sequence[Grid]) -> Grid:
    """The grid with only the levels that the scale names; an axis or level that no grid has is an error."""
    only = scale.mapping("only")
    for axis, selection in only.items():
        selected = as_levels(selection)
        known_levels = set(chain.from_iterable(other.axes.get(axis, ()) for other in grids))
        if not known_levels:
            known_axes = set(chain.from_iterable(other.axes for other in grids))
            raise only.error(axis, f"only: unknown axis '{axis}'. {nearest(str(axis), known_axes)}")
        with locate_errors(only.locate(axis)):
            check_levels(axis, selected, known_levels, "only")
        dropped = [level for level in grid.axes.get(axis, ()) if level not in selected]
        if dropped:
            grid = replace(grid, without=[*grid.without, {axis: dropped}])
    return grid


def _read_minutes(scale: YamlMapping) -> float | None:
    minutes: float | None = scale.value("minutes", int | float)
    if minutes is not None and not 0 < minutes < MOST_MINUTES:
        raise scale.error("minutes", f"minutes = {format_value(minutes)}: expected a positive number of minutes")
    return minutes


def _read_seeds(section: YamlMapping) -> Sequence[int]:
    """Seeds as their number, or as a list."""
    seeds = section.get("seeds", 5)
    # `type(…) is int` excludes booleans.
    if type(seeds) is int and seeds > MOST_TRIALS:
        raise section.error("seeds", f"seeds = {format_value(seeds)}: at most {MOST_TRIALS:,} seeds can be run")
    if type(seeds) is int and seeds > 0:
        return range(seeds)
    if isinstance(seeds, list) and seeds:
        valid = all(type(seed) is int and seed >= 0 for seed in seeds)
        if valid and len(set(seeds)) == len(seeds):
            return seeds
    raise section.error("seeds", f"seeds = {format_value(seeds)}: expected how many, like 5, or which, like [0, 3, 7]")
