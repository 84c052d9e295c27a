"""A study changed from the command line: other settings everywhere (`--set`), or a slice of its levels (`--only`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from unseen.errors import UsageError, nearest
from unseen.studies.grid import Grid, Level
from unseen.studies.study import Study
from unseen.tasks import task as make_task

if TYPE_CHECKING:
    from unseen.studies.build_trials import Options

CHANGED = "changed"
"""The end of the name of a study with other settings: its runs are not evidence about the original study."""


def change_study(study: Study, settings: Mapping[str, Options], only: Mapping[str, Sequence[str]]) -> Study:
    """The study with these settings in every trial, by component, and with these levels of each axis alone.

    With other settings it is another study: its name ends in `-changed`, and the settings are stored with its work.
    A slice has the same trials under the same name, so it can be extended to the whole study later. The notes of both,
    which are among the deviations, say what was changed.

    >>> from unseen.studies.study import study
    >>> part = change_study(study("quickstart"), {"recipe": {"steps": 100}}, {"variant": ["T+Pos+Att"]})
    >>> part.name, {entry.trial.recipe.steps for entry in part.entries("mini")}, part.notes[:2]
    ('quickstart-changed', {100}, ('changed: recipe.steps = 100', 'only variant T+Pos+Att'))
    """
    changed = {component: dict(options) for component, options in settings.items() if options}
    if not changed and not only:
        return study

    def grids(scale: str) -> list[Grid]:
        whole = list(study.grids(scale))
        _check_only(only, whole)
        changed_grids = []
        for grid in whole:
            selected = _keep_levels(grid, only)
            if selected is not None:
                changed_grids.append(_lay_over(selected, changed))
        if not changed_grids:
            raise UsageError(f"study '{study.name}', scale {scale}: --only leaves nothing")
        return changed_grids

    notes = []
    for component, options in changed.items():
        notes += [f"changed: {component}.{option} = {value}" for option, value in options.items()]
    notes += [f"only {axis} {', '.join(levels)}" for axis, levels in only.items()]
    return replace(
        study,
        name=f"{study.name}-{CHANGED}" if changed else study.name,
        grids=grids,
        notes=(*notes, *study.notes),
        claims=() if changed else study.claims,
        unreachable={} if changed else study.unreachable,
        settings=changed,
    )


def _check_only(only: Mapping[str, Sequence[str]], grids: Sequence[Grid]) -> None:
    """Refuse an axis or a level that no grid has."""
    levels_by_axis: dict[str, set[str]] = defaultdict(set)
    for grid in grids:
        for axis, grid_levels in grid.axes.items():
            levels_by_axis[axis].update(map(str, grid_levels))
    for axis, levels in only.items():
        if axis not in levels_by_axis:
            raise UsageError(
                f"--only {axis}=…: unknown axis '{axis}'. {nearest(axis, levels_by_axis)} "
                f"An option that is not an axis is changed with --set {axis}=…"
            )
        for level in levels:
            if level not in levels_by_axis[axis]:
                raise UsageError(
                    f"--only {axis}={level}: axis '{axis}' has no such level. {nearest(level, levels_by_axis[axis])}"
                )


def _keep_levels(grid: Grid, only: Mapping[str, Sequence[str]]) -> Grid | None:
    """The grid without the other levels; None if nothing is left. A grid that lacks the axis has no such level."""
    for axis, levels in only.items():
        if axis not in grid.axes:
            return None
        dropped: list[Level] = [level for level in grid.axes[axis] if str(level) not in levels]
        if len(dropped) == len(grid.axes[axis]):
            return None
        if dropped:
            grid = replace(grid, without=[*grid.without, {axis: dropped}])
    if next(grid.combinations(), None) is None:
        return None
    return grid


def _lay_over(grid: Grid, settings: Mapping[str, Options]) -> Grid:
    """The grid with these settings over its base; an option that an axis varies is refused, because it would not be
    varied any more."""
    for component, options in settings.items():
        for axis, levels in grid.axes.items():
            for level, level_settings in levels.items():
                for option in level_settings.get(component, {}):
                    if option in options:
                        raise UsageError(
                            f"--set {component}.{option}=…: the axis '{axis}' sets it (level {level}). "
                            f"Choose levels instead: --only {axis}={level}"
                        )
    base: dict[str, Any] = {component: dict(options) for component, options in grid.base.items()}
    for component, options in settings.items():
        base[component] = {**base.get(component, {}), **options}
    evaluation = grid.base.get("evaluation", {})
    if "task" in settings and evaluation:
        new_names = _renamed_splits(grid.base.get("task", {}), base["task"])
        for option in ("splits", "curve"):
            if option in evaluation and option not in settings.get("evaluation", {}):
                base["evaluation"][option] = tuple(new_names.get(name, name) for name in evaluation[option])
    return replace(grid, base=base)


def _renamed_splits(before: Options, after: Options) -> dict[str, str]:
    """{split of a task: the split in its place under other options}: preset `paper` of the rules tasks has another
    amplitude out of distribution, and its splits are named by it. Empty where there are more or fewer splits."""
    if "name" not in before:
        return {}  # the levels of an axis name the tasks
    try:
        old = [*make_task(**before).splits]
        new = [*make_task(**after).splits]
    except UsageError:
        return {}  # the levels of an axis supply what is missing, or the error is told where trials are built
    if len(old) != len(new):
        return {}
    return {name: new_name for name, new_name in zip(old, new, strict=True) if name not in new}
