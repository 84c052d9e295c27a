"""What a new plug-in is called: in the registry, as a package, as a module, as a class."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution

from unseen.errors import UsageError, nearest
from unseen.kit.plugins import REGISTRIES, Kind

_WORD = r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*"
_FORMS = {"task": rf"{_WORD}(?:/{_WORD})?", "model": _WORD, "study": _WORD}
_FIRST = "plain"
"""What the first task of a new family is called, unless it is said."""


@dataclass(frozen=True)
class Names:
    """Of the task `sums`: `sums/plain`, the package `unseen-sums`, its module `unseen_sums`, the class `SumsTask`.

    The kind ends the class's name, so that it is no word of Python's and none that the module imports: `LinearModel`.
    """

    kind: Kind
    name: str
    package: str
    module: str
    cls: str


def names(kind: str, name: str) -> Names:
    """The names of a new plug-in; one that can't be used, or is taken, is answered with one that can.

    >>> names("task", "sums").name, names("model", "slow-reader").cls
    ('sums/plain', 'SlowReaderModel')
    """
    known = next((one for one in REGISTRIES if one == kind), None)
    if known is None:
        raise UsageError(f"unknown kind of plug-in '{kind}'. {nearest(kind, REGISTRIES)}")
    if not re.fullmatch(_FORMS[known], name):
        tidy = _tidy(known, name)
        form = "lower-case letters, digits and -" + (", with its family before a slash" if known == "task" else "")
        raise UsageError(f"{known} '{name}': call it by {form}" + (f". Did you mean '{tidy}'?" if tidy else ""))
    words = re.split("[-_/]", name)
    registered = f"{name}/{_FIRST}" if known == "task" and "/" not in name else name
    found = Names(
        known,
        registered,
        "-".join(["unseen", *words]),
        "_".join(["unseen", *words]),
        "".join(word.capitalize() for word in [*words, known]),
    )
    _check_free(found, name)
    return found


def _check_free(found: Names, name: str) -> None:
    registry, other = REGISTRIES[found.kind], f"my-{name}"
    if found.name in registry:
        raise UsageError(
            f"{found.kind} '{found.name}' is taken by {registry.entry(found.name).target}; "
            f"choose another name, like {other}"
        )
    family = found.name.partition("/")[0]
    if found.kind == "task" and any(entry.name.startswith(f"{family}/") for entry in registry):
        raise UsageError(f"the family '{family}' is taken; choose another name, like {other}")
    try:
        distribution(found.package)
    except PackageNotFoundError:
        return
    raise UsageError(f"a package {found.package} is installed already; choose another name, like {other}")


def _tidy(kind: Kind, name: str) -> str:
    """The name nearest to one that can't be used: `My Task` → `my-task`; nothing, if there is none."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()
    parts = [re.sub(r"[^a-z0-9]+", "-", part).strip("-") for part in spaced.split("/")]
    tidy = ("/" if kind == "task" else "-").join(part for part in parts[:2] if part).lstrip("0123456789-")
    return tidy if re.fullmatch(_FORMS[kind], tidy) else ""
