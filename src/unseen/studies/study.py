"""A study: a named, versioned question, and the trials that answer it at each scale."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from unseen.errors import UsageError, nearest, shorten
from unseen.names import bare_name
from unseen.studies.catalog import STUDIES
from unseen.studies.grid import Grid, Level

if TYPE_CHECKING:
    from unseen.studies.trial import Entry

__all__ = ["SCALES", "STUDIES", "Grid", "Level", "Study", "study"]

SCALES = ("smoke", "mini", "small", "medium", "full")


@dataclass(frozen=True)
class Study:
    """A pure function from scale to trials: the same name, version and scale give the same trials everywhere.

    `scales` are those it has, the small ones first, with the minutes it may take on two cores (None: nothing stated).
    `claims` are the names of the claims judged from it, `own_claims` those that its file states itself (see
    `claims.user_claims`), `notes` the deviations from the paper at every scale, `scale_notes` those of one scale.
    `settings` are options that were changed from the command line (see `changed`): they belong to the work of a store.
    `selection` names the weights that a report shows, those that the paper tests: best on validation, or last.
    `unreachable` names the claims that the default scale cannot decide, because it lacks runs of a headline criterion,
    each with the reason; a plan or report of that scale shows it. `caveats` are sentences about its runs that belong
    beside the verdict on a claim, by the claim's name.
    """

    name: str
    version: int
    question: str
    scales: Mapping[str, float | None]
    grids: Callable[[str], Sequence[Grid]]
    claims: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    selection: Literal["best", "last"] = "best"
    settings: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    unreachable: Mapping[str, str] = field(default_factory=dict)
    own_claims: tuple[Mapping[str, Any], ...] = ()
    scale_notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    caveats: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", self.name):
            raise UsageError(f"study '{shorten(self.name)}': call a study by at most 100 letters, digits, - and _")
        if not isinstance(self.version, int) or self.version < 1:
            raise UsageError(f"study '{self.name}': version = {self.version!r}; versions are 1, 2, 3, …")
        if self.selection not in ("best", "last"):
            suggestion = nearest(str(self.selection), ("best", "last"))
            raise UsageError(f"study '{self.name}': unknown selection {self.selection!r}. {suggestion}")
        if not self.scales:
            raise UsageError(f"study '{self.name}' has no scale; give it one of {', '.join(SCALES)}")
        for scale in self.scales:
            if scale not in SCALES:
                raise UsageError(f"study '{self.name}': unknown scale '{scale}'. {nearest(str(scale), SCALES)}")
        for claim in self.unreachable:
            if claim not in self.claims:
                raise UsageError(f"study '{self.name}': unreachable names '{claim}'. {nearest(claim, self.claims)}")

    @property
    def default_scale(self) -> str:
        """`mini` if there is one, else the smallest."""
        return "mini" if "mini" in self.scales else next(iter(self.scales))

    @property
    def work(self) -> dict[str, object]:
        """The work that a directory of this study holds: its name and version, and the settings that were changed."""
        changed = {component: dict(options) for component, options in self.settings.items()}
        return {"study": f"{self.name}@{self.version}", **({"settings": changed} if changed else {})}

    def entries(self, scale: str, seeds: Sequence[int] | None = None) -> list[Entry]:
        """The trials of a scale with their levels; `seeds` replaces the study's own. Equal entries are merged."""
        if scale not in self.scales:
            raise UsageError(f"study '{self.name}' has no scale '{scale}'. {nearest(scale, self.scales)}")
        key = (scale, None if seeds is None else tuple(seeds))
        if key not in self._expanded:
            self._expanded[key] = self._expand(*key)
        return list(self._expanded[key])

    @cached_property
    def _expanded(self) -> dict[tuple[str, tuple[int, ...] | None], list[Entry]]:
        """The entries of earlier calls: a large study takes seconds to expand."""
        return {}

    def _expand(self, scale: str, seeds: tuple[int, ...] | None) -> list[Entry]:
        from unseen.studies.trial import evaluation_id  # loads NumPy

        # Grids may overlap: an entry that two of them have is kept once. But one run at two places, or two runs at one,
        # would leave tables in which rows can't be told apart.
        by_work: dict[tuple[str, str], Entry] = {}
        by_levels: dict[tuple[object, int, int], Entry] = {}
        for grid in self.grids(scale):
            for entry in (grid if seeds is None else replace(grid, seeds=seeds)).entries():
                trial = entry.trial
                # One trial may have several entries, if each evaluates it differently.
                same_work = by_work.setdefault((trial.id, evaluation_id(trial.evaluation)), entry)
                levels = (frozenset(entry.levels.items()), trial.seed, trial.data_seed)
                same_levels = by_levels.setdefault(levels, entry)
                if same_work.levels != entry.levels:
                    raise UsageError(
                        f"study '{self.name}', scale {scale}: {_describe(same_work)} and {_describe(entry)} are "
                        f"the same run ({trial.id}); leave one out or let an option tell them apart"
                    )
                if same_levels is not same_work:
                    raise UsageError(
                        f"study '{self.name}', scale {scale}: two different runs are at "
                        f"{_describe(entry)}; add an axis that tells them apart"
                    )
        if not by_work:
            raise UsageError(f"study '{self.name}', scale {scale}: everything is left out")
        return list(by_work.values())

    def deviations(self, scale: str, seeds: Sequence[int] | None = None) -> list[str]:
        """How a scale, with these seeds, differs from the full study and from the published recipe, a phrase each."""
        from unseen.studies.deviations import deviations

        entries = self.entries(scale, seeds)
        full = None
        if "full" in self.scales:
            full = entries if scale == "full" else self.entries("full")
        out_of_reach = []
        if scale == self.default_scale:
            out_of_reach = [f"cannot decide {claim}: {reason}" for claim, reason in self.unreachable.items()]
        return [*deviations(entries, full), *self.notes, *self.scale_notes.get(scale, ()), *out_of_reach]


def study(name: str) -> Study:
    """A study by name (`quickstart`, `quickstart@2`), or from a user's YAML or Python file.

    >>> study("quickstart@2").scales["mini"]
    5
    """
    if Path(name).suffix in (".yaml", ".yml", ".py"):
        from unseen.studies.study_files import load

        return load(Path(name))
    return find_catalogued(name)


def find_catalogued(name: str) -> Study:
    """A study by its registered name alone: reading a store must not run a file that the store names."""
    bare, at_sign, version = name.partition("@")
    loaded = STUDIES.load(bare)
    if not isinstance(loaded, Study):
        raise UsageError(f"study '{bare}' is a {type(loaded).__name__}; a plug-in must name a Study")
    if at_sign and version != str(loaded.version):
        raise UsageError(f"unknown version '{shorten(name)}': this release of Unseen has {bare}@{loaded.version}")
    return loaded


def is_catalogued(name: str) -> bool:
    """Whether a study, with or without its version, is registered: its notes are then deviations from a paper."""
    return bare_name(name) in STUDIES


def _describe(entry: Entry) -> str:
    """An entry's levels and seed in words: `variant=plain length=5 seed=0`."""
    return " ".join(f"{axis}={level}" for axis, level in {**entry.levels, "seed": entry.trial.seed}.items())
