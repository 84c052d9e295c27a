"""Which runs a criterion is judged from, which are left out or missing, and why."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum
from itertools import chain, product
from typing import Any, TypeVar

import pandas as pd

from unseen.claims.failing import FailingSeeds
from unseen.claims.learning import CurveFacts

T = TypeVar("T")
Levels = tuple[tuple[str, Hashable], ...]
"""Columns of the runs table, each with a value: a configuration, or the values that are missing."""
ENDED = ("finished", "stopped")
SEED = ("seed", "data_seed")


@dataclass(frozen=True)
class SamplingDesign:
    """What is resampled, and which runs are compared with each other.

    Runs with equal values in the columns `draw` are one draw and are resampled as a whole. Draws that share a value of
    `cluster` are first resampled together. `unit` names the independent unit (a seed or a task), of which at least
    three are needed, and `covers` what varies between draws.

    Without `matched_on`, a draw counts if it has a run in every configuration of a group, and groups are compared draw
    by draw. With it, every run counts, and the runs of two groups are compared if they agree in all these columns
    except those in which the groups differ. `derived_from` maps a derived column to the column it is made from.
    """

    draw: tuple[str, ...] = SEED
    cluster: str = ""
    unit: str = "seed"
    covers: str = ""
    matched_on: tuple[str, ...] = ()
    derived_from: Mapping[str, str] = field(default_factory=dict)

    def columns_shared_by(self, groups: Sequence[Group]) -> list[str]:
        """Return the columns in which runs of these groups must agree to be compared."""
        differing = set()
        for column in set(chain.from_iterable(group.columns for group in groups)):
            values = [group.columns.get(column) for group in groups]
            if any(value != values[0] for value in values):
                differing.add(self.derived_from.get(column, column))
        return [*(column for column in self.matched_on if column not in differing), *self.draw]


SEEDS = SamplingDesign()
TASK_AXIS = "task_seed"
"""The axis of tasks that are drawn."""


@dataclass(frozen=True)
class Group:
    """Runs with these values in these columns, and the metric that is read from them.

    A group with several values of a column (two variants, three tasks) counts a seed only if all of them have ended
    with it. `label` is what people read where the values do not speak for themselves. The text of a group is part of
    the name of a random stream, so it must not change.
    """

    columns: Mapping[str, tuple[Hashable, ...]]
    metric: str = "accuracy"
    factor: str = ""
    label: str = ""

    @property
    def key(self) -> Hashable:
        """What tells it from other groups."""
        return self.metric, self.factor, tuple(sorted((name, tuple(values)) for name, values in self.columns.items()))

    def __str__(self) -> str:
        """Describe metric, runs and task.

        >>> print(group(task="retrieval/T6", variant=("T−Pos+Att", "T+Pos+Att"), metric="R7/positive"))
        R7/positive of T−Pos+Att and T+Pos+Att on T6
        """
        if self.factor:
            metric = f"{self.factor} and {self.metric.rpartition('/')[2]} of "
        else:
            metric = "" if self.metric == "accuracy" else f"{self.metric} of "
        descriptions = []
        for column, values in self.columns.items():
            text = " and ".join(describe_level(column, value) for value in values)
            if text and column != "task":
                descriptions.append(text)
        tasks = " and ".join(describe_level("task", task) for task in self.columns.get("task", ()))
        return metric + (self.label or ", ".join(descriptions)) + (f" on {tasks}" if tasks else "")

    def selects(self, runs: pd.DataFrame) -> pd.Series:
        """Which rows of a table of runs are in the group; none if the table lacks one of its columns."""
        chosen = pd.Series(True, runs.index)
        for column, values in self.columns.items():
            chosen &= runs[column].isin(list(values)) if column in runs else False
        return chosen

    @property
    def runs_only(self) -> Group:
        """The same runs, without the metric that is read from them."""
        return replace(self, metric="accuracy", factor="")


def group(metric: str = "accuracy", factor: str = "", label: str = "", **columns: Any) -> Group:
    """Make a group; a single value may be passed without a tuple."""
    values = {name: value if isinstance(value, tuple) else (value,) for name, value in columns.items()}
    return Group(values, metric, factor, label)


def describe_level(column: str, value: Hashable) -> str:
    """Describe a value: a name speaks for itself (a task without its family), a number needs its column."""
    return value.rpartition("/")[2] if isinstance(value, str) else f"{column} {value}"


# -- runs that are left out, and runs that are missing ----------------------------------------------------------------


class Exclusion(StrEnum):
    """Why a run is not used."""

    UNFINISHED = "not finished"
    FAILED = "failed"
    DIVERGED = "diverged"


_BY_STATUS = {"failed": Exclusion.FAILED, "diverged": Exclusion.DIVERGED}


@dataclass(frozen=True)
class LeftOut:
    """`count` of the `total` runs of a configuration were left out for one reason."""

    configuration: Levels
    reason: Exclusion
    count: int
    total: int


class MissingReason(Enum):
    """Why a group cannot be measured at all."""

    COLUMN = "the runs have no such column"
    LEVELS = "no run has these levels"
    COMBINATION = "some combination of its levels was not run"
    NOT_ENDED = "none of its runs has ended"
    METRIC = "its runs have no such metric"
    SETTING = "the number is printed for another setting"


@dataclass(frozen=True)
class Missing:
    """What of a group is missing; `levels` are the columns and values in question, where the reason is about some."""

    reason: MissingReason
    group: Group
    levels: Levels = ()


@dataclass(frozen=True)
class UsableRecords:
    """The records of a group's usable runs, the runs that were left out, and what is missing, if that is everything."""

    rows: pd.DataFrame
    left_out: tuple[LeftOut, ...] = ()
    missing: Missing | None = None


def exclusion_of(status: str) -> Exclusion | None:
    """Return why a run cannot be used, or None if it can. A run that had not converged can: its drift counts."""
    if status not in ENDED:
        return _BY_STATUS.get(status, Exclusion.UNFINISHED)
    return None


def exclusions(runs: pd.DataFrame) -> pd.Series:
    """Return for each run why it cannot be used, or None if it can."""
    return pd.Series([exclusion_of(status) for status in runs["status"]], runs.index, dtype=object)


@dataclass(frozen=True)
class Learning:
    """How many runs of a group learned: of the worst configuration the share, and whether any run of the group did.

    A run learned if it reached the claim's learning level, or left its starting level where the claim has none. Runs
    of which neither is known count as having learned. `reached` says whether a verdict may rest on these runs: not if
    fewer than half learned of a configuration with runs smaller than the paper's.
    """

    share: float = 1.0
    any: bool = True
    reached: bool = True


@dataclass(frozen=True)
class Evidence:
    """Records and runs of one scale and setting. `runs` has one row per run, with or without records.

    `keys` are the columns that tell the runs of one seed apart, `facts` what their learning curves say, `learning`
    is a measure with the least value of a run that has learned, and `failing` what the paper says of failing seeds.
    """

    records: pd.DataFrame
    runs: pd.DataFrame
    keys: tuple[str, ...]
    design: SamplingDesign = SEEDS
    facts: CurveFacts = field(default_factory=CurveFacts)
    learning: tuple[str, float] | None = None
    failing: tuple[FailingSeeds, ...] = ()
    _cache: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def covers(self) -> str:
        """What varies between draws."""
        if self.design.covers:
            return self.design.covers
        return "initialisation" if self.runs["data_seed"].nunique() <= 1 else "initialisation and data"

    @property
    def ambiguous(self) -> bool:
        """Whether some seed has two runs that the claim cannot tell apart."""
        columns = list(dict.fromkeys([*self.keys, *self.design.draw, *SEED]))
        return set(columns) <= set(self.runs) and bool(self.runs.duplicated(columns).any())

    def select(self, group: Group) -> UsableRecords:
        """Select the records of a group that may be used. Many criteria of a claim are about the same groups."""
        return self._once(("selected", group.key, group.label), lambda: self._select(group))

    def _select(self, group: Group) -> UsableRecords:
        runs = self.runs[group.selects(self.runs)]
        records = self.records
        rows = self._once(
            ("records", group.metric, group.factor),
            lambda: records[
                (records["metric"] == group.metric) & (records["factor"] == group.factor) & records["value"].notna()
            ],
        )
        rows = rows[rows["trial"].isin(runs["trial"])]
        missing = self.find_absent(group)
        if missing is None and not runs["status"].isin([*ENDED, "diverged"]).any():
            missing = Missing(MissingReason.NOT_ENDED, group)
        if missing is None and rows.empty and runs["status"].isin(ENDED).any():
            missing = Missing(MissingReason.METRIC, group)
        if missing is not None:
            return UsableRecords(rows.iloc[:0], (), missing)
        reasons = exclusions(runs)
        return UsableRecords(rows[rows["trial"].isin(self._usable(runs, reasons))], self._left_out(runs, reasons))

    def steps(self) -> pd.Series:
        """Return how many steps each trial was trained."""
        runs = self.runs
        steps = runs["step"] if "step" in runs else pd.Series(0, runs.index)
        return self._once("steps", lambda: pd.Series(steps.fillna(0).to_numpy(), runs["trial"]))

    def learned(self) -> Mapping[Hashable, bool]:
        """Return which trials learned; trials of which that is not known are missing."""
        return self._once("learned", self._find_learned)

    def _find_learned(self) -> Mapping[Hashable, bool]:
        learned = dict(self.facts.left_start)
        if self.learning is None or "metric" not in self.records:
            return learned
        metric, least = self.learning
        rows = self.records[(self.records["metric"] == metric) & self.records["value"].notna()]
        means = rows.groupby("trial")["value"].mean()
        return learned | {trial: bool(value >= least) for trial, value in means.items()}

    def examine_learning(self, group: Group) -> Learning:
        """Return whether the ended runs of a group learned, by configuration."""
        runs = self.runs[self.runs["status"].isin(ENDED) & group.selects(self.runs)]
        learned = self.learned()
        flags = runs["trial"].map(lambda trial: learned.get(trial, True)).astype(bool)
        if flags.all():
            return Learning()
        reduced = runs["reduced"].astype(bool) if "reduced" in runs else pd.Series(False, runs.index)
        # Where runs are matched, a configuration has one run per task: only the group as a whole has enough of them.
        keys = [] if self.design.matched_on else [key for key in self.keys if key in runs]
        configurations = [flags]
        if keys:
            configurations = [flags[members.index] for _, members in runs.groupby(keys, sort=False, dropna=False)]
        worst = 1.0
        reached = True
        for configuration in configurations:
            share = float(configuration.mean())
            worst = min(worst, share)
            # Not of the worst configuration alone: that may be the paper's own, beside a smaller one that is little better.
            reached &= share >= 0.5 or not reduced[configuration.index].any()
        return Learning(worst, bool(flags.any()), bool(reached))

    def find_drift(self, rows: pd.DataFrame) -> tuple[pd.Series, bool]:
        """Return the drift of each record's run, NaN where it is not known; and whether it is that of the judged score.

        Where the judged score is not on the curve, it is the drift of the validation score.
        """
        facts = self.facts
        if "split" in rows:
            keys = zip(rows["trial"], rows["split"], rows["metric"], strict=True)
            judged = pd.Series([facts.drifts.get(key, math.nan) for key in keys], rows.index, dtype=float)
            if len(judged) and judged.notna().all():
                return judged, True
        validation = [facts.validation.get(trial, math.nan) for trial in rows["trial"]]
        return pd.Series(validation, rows.index, dtype=float), False

    def find_absent(self, group: Group) -> Missing | None:
        """Return what of a group was not run at all, ended or not; None if nothing is missing."""
        for column in group.columns:
            if column not in self.runs:
                return Missing(MissingReason.COLUMN, group, ((column, ""),))
        absent = []
        for column, values in group.columns.items():
            present = self._combinations((column,))
            absent += [(column, value) for value in values if (value,) not in present]
        if absent:
            return Missing(MissingReason.LEVELS, group, tuple(absent))
        combinations = self._combinations(tuple(group.columns)) & set(product(*group.columns.values()))
        if len(combinations) < math.prod(len(values) for values in group.columns.values()):
            return Missing(MissingReason.COMBINATION, group)
        return None

    def _combinations(self, columns: tuple[str, ...]) -> set[tuple[Hashable, ...]]:
        """The combinations of values that the runs have in these columns."""
        return self._once(("values", columns), lambda: set(map(tuple, self.runs[list(columns)].to_numpy())))

    def _once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Compute a value at the first call: hundreds of groups need the same few columns and metrics."""
        if key not in self._cache:
            self._cache[key] = make()
        value: T = self._cache[key]
        return value

    def _usable(self, runs: pd.DataFrame, reasons: pd.Series) -> pd.Series:
        """The usable trials; unless runs are matched, only of draws that have one in every configuration."""
        usable = runs[reasons.isna()]
        if self.design.matched_on:
            return usable["trial"]
        configurations = len(runs[[key for key in self.keys if key in runs]].drop_duplicates())
        sizes = usable.groupby(list(self.design.draw))["trial"].transform("size")
        return usable["trial"][sizes == configurations]

    def _left_out(self, runs: pd.DataFrame, reasons: pd.Series) -> tuple[LeftOut, ...]:
        if reasons.isna().all():
            return ()  # the usual case; grouping thousands of runs takes its time
        keys = [key for key in self.keys if key in runs]
        left_out = []
        for levels, members in runs.groupby(keys, sort=False, dropna=False):
            configuration = tuple(zip(keys, levels, strict=True))
            counts = reasons[members.index].value_counts()
            for reason in Exclusion:
                if reason in counts:
                    left_out.append(LeftOut(configuration, reason, int(counts[reason]), len(members)))
        return tuple(sorted(left_out, key=lambda entry: [str(value) for _, value in entry.configuration]))
