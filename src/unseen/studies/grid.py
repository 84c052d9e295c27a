"""A grid: axes of settings over a base, and the trials at their crossings."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import TYPE_CHECKING

from unseen.errors import UsageError, format_value, nearest
from unseen.studies import MOST_TRIALS
from unseen.studies.build_trials import Fragment, Settings, TrialBuilder

if TYPE_CHECKING:
    from unseen.studies.trial import Entry


Level = str | int | float | bool
COLUMNS = frozenset(
    (
        *("trial", "scale", "recipe", "levels", "position", "identity", "evaluation_id"),
        *("seed", "data_seed", "status", "step", "best_step", "not_converged", "note", "cause"),
        *("selection", "split", "factor", "level", "metric", "value", "standard_error", "n"),
    )
)
"""Columns of the records that no axis may be called after; an axis `task` or `model` must agree with its column."""


@dataclass(frozen=True)
class Grid:
    """Every combination of levels, for every seed.

    The settings of a trial are `base` and those of its level on each axis, later axes winning. Axes named in a group of
    `together` advance together instead of crossing; combinations that match a rule of `without` (an axis and its level,
    or some of its levels) are left out. `data_seed` fixes the training data of all seeds; None: each has its own.

    >>> grid = Grid(axes={"length": {5: {"task": {"length": 5}}, 10: {"task": {"length": 10}}}},
    ...             base={"task": {"name": "retrieval/T1"}, "model": {"name": "lstm"}}, seeds=range(3))
    >>> [(entry.levels["length"], entry.trial.task.length, entry.trial.seed) for entry in grid.entries()]
    [(5, 5, 0), (5, 5, 1), (5, 5, 2), (10, 10, 0), (10, 10, 1), (10, 10, 2)]
    """

    axes: Mapping[str, Mapping[Level, Settings]]
    base: Settings
    seeds: Sequence[int]
    data_seed: int | None = None
    together: Sequence[Sequence[str]] = ()
    without: Sequence[Mapping[str, Level | Sequence[Level]]] = ()

    def __post_init__(self) -> None:
        for axis, levels in self.axes.items():
            check_axis(axis, levels)
        for group in self.together:
            for axis in group:
                self._check_known(axis, "together")
            if len({len(self.axes[axis]) for axis in group}) > 1:
                counts = ", ".join(f"'{axis}' has {len(self.axes[axis])}" for axis in group)
                raise UsageError(f"together: axes that advance together need as many levels each; {counts}")
        for axis, count in Counter(chain.from_iterable(self.together)).items():
            if count > 1:
                raise UsageError(f"together: axis '{axis}' is named {count} times; it can advance with one group only")
        for rule in self.without:
            for axis, level in rule.items():
                self._check_known(axis, "without")
                check_levels(axis, as_levels(level), self.axes[axis], "without")
        # A range has every seed once, and may be too long to be listed.
        if not self.seeds or (not isinstance(self.seeds, range) and len(set(self.seeds)) != len(self.seeds)):
            raise UsageError(f"seeds = {format_value(list(self.seeds))}: give at least one seed, and each once")

    def combinations(self) -> Iterator[dict[str, Level]]:
        """The levels of every configuration of the grid, in the order of the axes."""
        group_of: dict[str, tuple[str, ...]] = {}
        for group in self.together:
            group_of |= dict.fromkeys(group, tuple(group))
        groups = list(dict.fromkeys(group_of.get(axis, (axis,)) for axis in self.axes))
        steps_by_group = []
        for group in groups:
            # The axes of a group advance together: its n-th step has the n-th level of each.
            levels_by_axis = [self.axes[axis] for axis in group]
            steps_by_group.append(list(zip(*levels_by_axis, strict=True)))
        rules = []
        for rule in self.without:
            rules.append({axis: as_levels(level) for axis, level in rule.items()})
        for steps in product(*steps_by_group):
            configuration: dict[str, Level] = {}
            for group, step in zip(groups, steps, strict=True):
                configuration.update(zip(group, step, strict=True))
            if not any(_matches(configuration, rule) for rule in rules):
                yield {axis: configuration[axis] for axis in self.axes}

    def count(self) -> int:
        """The number of trials before any is left out by `without`; nothing is listed."""
        sizes = {axis: len(levels) for axis, levels in self.axes.items()}
        for group in self.together:
            for axis in group[1:]:
                sizes.pop(axis, None)  # it advances with the first of its group
        return math.prod(sizes.values()) * len(self.seeds)

    def entries(self) -> list[Entry]:
        """A trial for every configuration and seed."""
        if self.count() > MOST_TRIALS:
            factors = [f"{len(levels)} levels of {axis}" for axis, levels in self.axes.items()]
            raise UsageError(
                f"a grid of {self.count():,} trials ({', '.join([*factors, f'{len(self.seeds):,} seeds'])}); at most "
                f"{MOST_TRIALS:,} can be listed. Let axes advance together, or leave levels out"
            )
        from unseen.studies.trial import Entry, Trial  # loads NumPy

        base = Fragment("base", self.base)
        fragments = {}
        for axis, levels in self.axes.items():
            for level, settings in levels.items():
                fragments[axis, level] = Fragment(f"axis '{axis}', level '{level}'", settings)
        builder = TrialBuilder()
        entries = []
        for configuration in self.combinations():
            level_fragments = [fragments[axis, level] for axis, level in configuration.items()]
            built = builder.build([base, *level_fragments])
            for seed in self.seeds:
                data_seed = seed if self.data_seed is None else self.data_seed
                entries.append(Entry(configuration, Trial(*built, seed, data_seed)))
        return entries

    def _check_known(self, axis: str, where: str) -> None:
        if axis not in self.axes:
            raise UsageError(f"{where}: unknown axis '{axis}'. {nearest(str(axis), self.axes)}")


def _matches(configuration: Mapping[str, Level], rule: Mapping[str, Sequence[Level]]) -> bool:
    """Whether a configuration has one of the rule's levels on each of the rule's axes."""
    return all(configuration[axis] in levels for axis, levels in rule.items())


def as_levels(level: Level | Sequence[Level]) -> tuple[Level, ...]:
    """One level or several, as several."""
    return tuple(level) if isinstance(level, Sequence) and not isinstance(level, str) else (level,)


def check_levels(axis: str, levels: Sequence[Level], known: Collection[Level], where: str) -> None:
    """Refuse a level that the axis does not have."""
    for level in levels:
        if not isinstance(level, Level) or level not in known:
            raise UsageError(f"{where}: axis '{axis}' has no level '{level}'. {nearest(str(level), map(str, known))}")


def check_axis(axis: str, levels: Mapping[Level, Settings]) -> None:
    """Refuse an axis whose name, levels or settings can't be used."""
    if not isinstance(axis, str) or not axis.isidentifier() or axis.startswith("_"):
        raise UsageError(f"axis '{axis}': an axis is a column of the records; call it by one word, like self_attention")
    if axis in COLUMNS or axis.endswith("_options"):
        raise UsageError(f"axis '{axis}': the records have a column of this name; choose another word")
    if not levels:
        raise UsageError(f"axis '{axis}' has no levels")
    for level, settings in levels.items():
        origin = f"axis '{axis}', level '{level}'"
        if not isinstance(level, Level) or (isinstance(level, float) and not math.isfinite(level)):
            raise UsageError(f"{origin}: a level is a word, a finite number, true or false")
        Fragment(origin, settings)  # refuses settings that can't be
        if axis in ("task", "model") and settings.get(axis, {}).get("name") != level:
            raise UsageError(
                f"{origin}: the levels of axis '{axis}' are called by the name of their {axis}; "
                f"expected {axis}: {{name: {level}}}, or another word for the axis"
            )
