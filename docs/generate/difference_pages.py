"""The register of differences between papers, released code and data: a page per family of docs/differences/."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from page import Page

FOLDER = Path(__file__).parents[1] / "differences"
FAMILIES = {
    "rules": "Rules and modules",
    "ctl": "Compositional table lookup",
    "gcog": "Questions about a grid",
    "retrieval": "Retrieval from sequences",
}
FOLLOWS = {"paper": "the paper", "code": "the code or data", "both": "both", "neither": "neither"}
"""What a default may follow, and how that is said."""


@dataclass(frozen=True)
class Way:
    """Another behaviour and the setting that gives it.

    `set` is a name and options: of a task or a model (`rules/mha search=2 nearest=false`), of a `recipe` or the
    `evaluation`, of a function (`unseen.analysis.adaptation half=false`); or a `study`, a `claim`, or a command with an
    option (`unseen results --votes`).
    """

    set: str
    gives: str


@dataclass(frozen=True)
class Entry:
    """One difference: what the paper says, what code or data do, what is done here, and how to have it otherwise.

    A `caution` is no difference but something in the design or the data that may mislead.
    """

    id: str
    subject: str
    paper: str
    code: str
    here: str
    follows: str
    kind: str = "difference"
    ways: tuple[Way, ...] = ()
    tested: tuple[str, ...] = ()


@dataclass(frozen=True)
class Register:
    """The entries of one family; `presets` says what its presets stand for."""

    family: str
    paper: str
    presets: str
    entries: tuple[Entry, ...] = field(repr=False)


def read(family: str) -> Register:
    """The register of a family; a key that is not known is an error."""
    data: dict[str, Any] = yaml.safe_load((FOLDER / f"{family}.yaml").read_text(encoding="utf-8"))
    return Register(**{**data, "entries": tuple(_read(one) for one in data["entries"])})


def _read(one: dict[str, Any]) -> Entry:
    ways, tested = (one.pop(key, ()) for key in ("ways", "tested"))
    return Entry(**one, ways=tuple(Way(**way) for way in ways), tested=tuple(tested))


def anchor(entry: Entry) -> str:
    """Where an entry stands on its page: #d14, #a1, #n7."""
    return entry.id.lower() if entry.id[0].isalpha() else f"n{entry.id}"


def pages() -> Iterator[Page]:
    """The index and a page for each family."""
    registers = [read(family) for family in FAMILIES]
    yield Page("differences/index.md", _index(registers))
    for register in registers:
        yield Page(f"differences/{register.family}.md", _family(register))


def _index(registers: list[Register]) -> str:
    total = sum(len(register.entries) for register in registers)
    lines = [
        "# Where papers, code and data differ",
        "",
        "A published system is described twice, in a paper and in its code, and the two do not always agree. These are the "
        f"{total} differences that we know of in the four systems: what the paper says, what code or data do, what Unseen "
        "does by default, and the setting that gives the other. The test suite builds every setting named here and "
        "looks up every test.",
        "",
        "By default tasks are `clean`: sound, whichever source that follows. *Neither* means that both are at fault, "
        "or one is and the other is silent. How a study deviates from what was published is listed in its report.",
        "",
        f"The register as data: {', '.join(f'[{one.family}.yaml]({one.family}.yaml)' for one in registers)}.",
        "",
        "| family | entries | " + " | ".join(f"follows {said}" for said in FOLLOWS.values()) + " |",
        "|---|---:|" + "---:|" * len(FOLLOWS),
    ]
    for register in registers:
        count = Counter(entry.follows for entry in register.entries)
        counts = " | ".join(str(count[name]) for name in FOLLOWS)
        lines.append(f"| [{FAMILIES[register.family]}]({register.family}.md) | {len(register.entries)} | {counts} |")
    for register in registers:
        lines += ["", f"## {FAMILIES[register.family]}", "", f"*{register.paper}*", ""]
        lines += _list(register)
    return "\n".join(lines) + "\n"


def _list(register: Register) -> list[str]:
    rows = ["| | subject | Unseen follows |", "|---|---|---|"]
    for entry in register.entries:
        link = f"[{entry.id}]({register.family}.md#{anchor(entry)})"
        rows.append(f"| {link} | {_cell(entry.subject)} | {FOLLOWS[entry.follows]} |")
    return rows


def _family(register: Register) -> str:
    lines = [
        f"# {FAMILIES[register.family]}",
        "",
        "This page lists where the paper, its released code and its data differ, and which of them Unseen follows.",
        "",
        f"*{register.paper}*",
        "",
        register.presets.strip(),
    ]
    headings = {"difference": "Differences", "caution": "What can mislead"}
    for kind, heading in headings.items():
        of_kind = [entry for entry in register.entries if entry.kind == kind]
        if of_kind:
            lines += ["", f"## {heading}"]
        for entry in of_kind:
            lines += ["", *_entry(entry)]
    return "\n".join(lines) + "\n"


def _entry(entry: Entry) -> Iterator[str]:
    yield f"### {entry.id} · {entry.subject} {{ #{anchor(entry)} }}"
    yield ""
    yield f"| **Unseen** | {_cell(entry.here)} *Follows {FOLLOWS[entry.follows]}.* |"
    yield "|---|---|"
    yield f"| **paper** | {_cell(entry.paper)} |"
    yield f"| **code, data** | {_cell(entry.code)} |"
    if entry.ways:
        yield f"| **otherwise** | {'<br>'.join(f'`{way.set}` {_cell(way.gives)}' for way in entry.ways)} |"
    if entry.tested:
        yield f"| **tested** | {'<br>'.join(_test(name) for name in entry.tested)} |"


def _test(name: str) -> str:
    path, _, function = name.partition("::")
    return f"`{Path(path).name}`: {function.removeprefix('test_').replace('_', ' ')}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
