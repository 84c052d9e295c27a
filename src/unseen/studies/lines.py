"""YAML that remembers its lines, so that whatever is wrong with a file is answered with a place in it."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import UnionType
from typing import Any

import yaml

from unseen.errors import UsageError, nearest


class Lined(dict[Any, Any]):
    """A mapping read from a file; `lines` says where each of its keys stands, `line` where it begins."""

    def __init__(self, file: str, line: int) -> None:
        super().__init__()
        self.file, self.line = file, line
        self.lines: dict[Any, int] = {}

    def where(self, key: Hashable = None) -> str:
        """The place of a key, or of the mapping itself: `my.yaml, line 3`."""
        return f"{self.file}, line {self.lines.get(key, self.line)}"

    def put(self, key: Hashable, value: object, line: int) -> None:
        """Set a key that stands on a line."""
        self[key], self.lines[key] = value, line

    def over(self, under: Lined) -> Lined:
        """This mapping laid over another: its keys win; mappings that both have are laid over each other in turn."""
        found = Lined(self.file, self.line)
        for said in (under, self):
            for key, value in said.items():
                old = found.get(key)
                both = isinstance(value, Lined) and isinstance(old, Lined)
                found.put(key, value.over(old) if both else value, said.lines[key])
        return found

    def made(self, content: Mapping[Any, Any]) -> Lined:
        """A mapping that the file does not spell out, with the lines of what it stands for."""
        found = Lined(self.file, self.line)
        for key, value in content.items():
            found.put(key, value, self.lines.get(key, self.line))
        return found

    def check_keys(self, known: Sequence[str]) -> None:
        """Refuse a key that nobody would read."""
        for key in self:
            if key not in known:
                raise UsageError(f"{self.where(key)}: unknown key '{key}'. {nearest(str(key), known)}")

    def value(self, key: str, kind: type | UnionType, default: Any = None) -> Any:
        """The value of a key if it is of a kind (a boolean is no number); nothing there is the default."""
        value = self.get(key)
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            raise UsageError(f"{self.where(key)}: {key} = {value!r}: expected {_KINDS.get(kind, 'a number')}")
        return default if value is None else value

    def sequence(self, key: str) -> list[Any]:
        """The list at a key; nothing there is an empty one."""
        found: list[Any] = self.value(key, list, [])
        return found

    def words(self, key: str) -> tuple[str, ...]:
        """The texts at a key."""
        found = self.sequence(key)
        if not all(isinstance(word, str) for word in found):
            raise UsageError(f"{self.where(key)}: {key}: expected a list of texts")
        return tuple(found)

    def mapping(self, key: str) -> Lined:
        """The mapping at a key; nothing there is an empty one."""
        found: Lined = self.value(key, Lined, Lined(self.file, self.lines.get(key, self.line)))
        return found


_KINDS: dict[type | UnionType, str] = {str: "text", int: "a whole number", list: "a list", Lined: "a mapping"}


@contextmanager
def at(place: str) -> Iterator[None]:
    """Say where it was that something went wrong, unless a line has been named already."""
    try:
        yield
    except UsageError as error:
        file = place.partition(",")[0]
        raise UsageError(str(error) if str(error).startswith(f"{file}, line ") else f"{place}: {error}") from error


def read_yaml(path: Path) -> Lined:
    """The mapping a YAML file holds. No code is executed; a key given twice is an error."""
    try:
        found = _loader(str(path))(path.read_text(encoding="utf-8")).get_single_data()
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text: {error}") from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UsageError(f"{path}, line {line}: {error.problem}") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{path} is not YAML: {str(error).splitlines()[0]}") from error
    if not isinstance(found, Lined):
        raise UsageError(f"{path}: expected a mapping (study: …, axes: …), got {type(found).__name__}")
    return found


def _loader(file: str) -> type[yaml.SafeLoader]:
    """A safe loader whose mappings are `Lined`."""

    class Loader(yaml.SafeLoader):
        # Filled from the table below; the safe loader's own are those of YAML 1.1.
        yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012

        def construct_lined(self, node: yaml.MappingNode) -> Lined:
            found = Lined(file, node.start_mark.line + 1)
            for key_node, value_node in node.value:
                key, line = self.construct_object(key_node, deep=True), key_node.start_mark.line + 1
                if not isinstance(key, Hashable):
                    raise UsageError(f"{file}, line {line}: a key must be a word or a number")
                if key in found:
                    raise UsageError(f"{file}, line {line}: '{key}' is given twice, first on line {found.lines[key]}")
                found.put(key, self.construct_object(value_node, deep=True), line)
            return found

    for tag, pattern, first in _PLAIN:
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), list(first))
    Loader.add_constructor("tag:yaml.org,2002:map", Loader.construct_lined)
    return Loader


# How plain words are read: as in YAML 1.2, where 1e-3 is a number and `on`, `no`, 1:30 and dates are just words.
_PLAIN = (
    ("bool", "true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9_]*)", "-+0123456789"),
    ("float", r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("null", "~|null|Null|NULL|", ["~", "n", "N", ""]),
)
