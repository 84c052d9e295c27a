"""The parts of registered names and of split names, and levels of axes as text. No other module takes a name apart.

Tasks, claims and figures are registered as `FAMILY/NAME`. Splits are called `train`, `iid` or `ood/…`, and `iid/…` or
`ood/…` may go on with factors and their values: `ood/length=30,amplitude=2`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import cache


def family_of(name: object) -> str:
    """The family of a registered name.

    >>> family_of("retrieval/T6")
    'retrieval'
    """
    return str(name).partition("/")[0]


def name_in_family(name: object) -> str:
    """A registered name without its family; empty if the name has none.

    >>> name_in_family("retrieval/T6"), name_in_family("quickstart")
    ('T6', '')
    """
    return str(name).partition("/")[2]


def bare_name(study: str) -> str:
    """The name of a study without its version.

    >>> bare_name("quickstart@2")
    'quickstart'
    """
    return study.partition("@")[0]


class SplitKind(IntEnum):
    """How close the examples of a split are to those of training; a higher value is less familiar."""

    TRAIN = 0
    IID = 1
    OOD = 2
    OTHER = 3


_KINDS = {"train": SplitKind.TRAIN, "iid": SplitKind.IID, "ood": SplitKind.OOD}


@dataclass(frozen=True)
class SplitName:
    """The parts of a split's name: its kind, and the values of its factors as they are written."""

    kind: SplitKind
    values: tuple[tuple[str, str], ...] = ()

    def number(self, factor: str) -> int | None:
        """The value of a factor if it is one whole number; None for other factors and for ranges such as `40-50`."""
        value = dict(self.values).get(factor, "")
        return int(value) if value.isdecimal() else None


@cache
def parse_split(name: str) -> SplitName:
    """Take the name of a split apart.

    >>> split = parse_split("ood/length=30,amplitude=1.5")
    >>> split.kind.name, split.number("length"), split.number("amplitude")
    ('OOD', 30, None)
    >>> parse_split("iid").values
    ()
    """
    start, _, remainder = name.partition("/")
    kind = _KINDS.get(start, SplitKind.OTHER)
    values = []
    for assignment in remainder.split(","):
        factor, equals, value = assignment.partition("=")
        if equals:
            values.append((factor, value))
    return SplitName(kind, tuple(values))


def is_ood(split: object) -> bool:
    """Whether a split is out of distribution; a split of another name, such as `probe/pairs`, is not declared so.

    >>> [is_ood(name) for name in ("ood/length=30", "iid/depth=3", "train", "probe/pairs")]
    [True, False, False, False]
    """
    return parse_split(str(split)).kind == SplitKind.OOD


def find_ood(splits: Iterable[str]) -> str | None:
    """The first split out of distribution; None if there is none."""
    return next((split for split in splits if is_ood(split)), None)


@dataclass(frozen=True)
class SplitGroup:
    """Several splits: those of certain names, and all whose only factor has one whole number, such as `ood/depth=5`.

    >>> outside = SplitGroup(("ood/trees",), ((SplitKind.OOD, "depth"),))
    >>> [name in outside for name in ("ood/trees", "ood/depth=5", "iid/depth=5", "ood/depth=5-7", "train")]
    [True, True, False, False, False]
    """

    names: tuple[str, ...] = ()
    numbered: tuple[tuple[SplitKind, str], ...] = ()

    def __contains__(self, name: str) -> bool:
        split = parse_split(name)
        return name in self.names or any(
            split.kind == kind and len(split.values) == 1 and split.number(factor) is not None
            for kind, factor in self.numbered
        )

    def __or__(self, other: SplitGroup) -> SplitGroup:
        return SplitGroup(self.names + other.names, self.numbered + other.numbered)


def format_level(level: object) -> str:
    """A level of an axis as text; empty where a trial has no level on the axis.

    Where some trials have none, pandas turns whole numbers into floats; they are still printed as whole numbers.

    >>> format_level(2.0), format_level(0.5), format_level(None), format_level("joint")
    ('2', '0.5', '', 'joint')
    """
    if level is None or level != level:  # NaN, as pandas writes what is missing
        return ""
    return str(int(level)) if isinstance(level, float) and level.is_integer() else str(level)
