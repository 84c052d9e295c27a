"""YAML mappings that remember their lines, so that an error in a file names the line."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from types import UnionType
from typing import Any

import yaml

from unseen.config import find_fault
from unseen.errors import LocatedError, UsageError, format_value, nearest
from unseen.files import read_at_most

MOST_BYTES = 4 * 10**6
"""The largest study file that is read."""
MOST_VALUES = 100_000
"""The most values that a study file may have once its aliases are written out."""


class YamlMapping(dict[Any, Any]):
    """A mapping of a file: `line` is where it begins, `lines` has the line of each of its keys."""

    def __init__(self, file: str, line: int) -> None:
        super().__init__()
        self.file = file
        self.line = line
        self.lines: dict[Any, int] = {}

    def locate(self, key: Hashable = None) -> str:
        """The file and line of a key, or of the mapping itself: `my.yaml, line 3`."""
        return f"{self.file}, line {self.lines.get(key, self.line)}"

    def error(self, key: Hashable, message: str) -> LocatedError:
        """An error about a key, to be raised; its message begins with the file and the line."""
        return LocatedError(f"{self.locate(key)}: {message}")

    def put(self, key: Hashable, value: object, line: int) -> None:
        """Set a key and its line."""
        self[key] = value
        self.lines[key] = line

    def over(self, lower: YamlMapping) -> YamlMapping:
        """This mapping laid over another: its keys win, and mappings that both have are laid over each other in turn."""
        merged = YamlMapping(self.file, self.line)
        for mapping in (lower, self):
            for key, value in mapping.items():
                lower_value = merged.get(key)
                if isinstance(value, YamlMapping) and isinstance(lower_value, YamlMapping):
                    value = value.over(lower_value)
                merged.put(key, value, mapping.lines[key])
        return merged

    def derive(self, content: Mapping[Any, Any]) -> YamlMapping:
        """A mapping that the file does not spell out; its keys have the lines that they have here."""
        derived = YamlMapping(self.file, self.line)
        for key, value in content.items():
            derived.put(key, value, self.lines.get(key, self.line))
        return derived

    def check_keys(self, known: Sequence[str]) -> None:
        """Refuse an unknown key."""
        for key in self:
            if key not in known:
                raise self.error(key, f"unknown key '{key}'. {nearest(str(key), known)}")

    def value(self, key: str, expected: type | UnionType, default: Any = None) -> Any:
        """The value of a key, which must have the expected type (a boolean is not a number); without one, the default."""
        value = self.get(key)
        if value is None:
            return default
        if not isinstance(value, expected) or isinstance(value, bool):
            raise self.error(key, f"{key} = {format_value(value)}: expected {_TYPE_NAMES.get(expected, 'a number')}")
        return value

    def sequence(self, key: str) -> list[Any]:
        """The list of a key; empty if the key is missing."""
        items: list[Any] = self.value(key, list, [])
        return items

    def texts(self, key: str) -> tuple[str, ...]:
        """The texts of a key; empty if the key is missing."""
        items = self.sequence(key)
        if not all(isinstance(item, str) for item in items):
            raise self.error(key, f"{key}: expected a list of texts")
        return tuple(items)

    def mapping(self, key: str) -> YamlMapping:
        """The mapping of a key; empty if the key is missing."""
        empty = YamlMapping(self.file, self.lines.get(key, self.line))
        nested: YamlMapping = self.value(key, YamlMapping, empty)
        return nested


_TYPE_NAMES: dict[type | UnionType, str] = {
    str: "text",
    int: "a whole number",
    list: "a list",
    YamlMapping: "a mapping",
}


@contextmanager
def locate_errors(location: str) -> Iterator[None]:
    """Put a file and a line before the message of any `UsageError` that does not name its line already."""
    try:
        yield
    except LocatedError:
        raise
    except UsageError as error:
        raise LocatedError(f"{location}: {error}") from error


def read_yaml(path: Path) -> YamlMapping:
    """The mapping of a YAML file. No code is executed; a repeated key is an error."""
    try:
        loader = _make_loader(str(path))(read_at_most(path, MOST_BYTES).decode("utf-8"))
        node = loader.get_single_node()
        if node is not None:
            _check_size(path, node)
        content = None if node is None else loader.construct_document(node)
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text: {error}") from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise LocatedError(f"{path}, line {line}: {error.problem}") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{path} is not YAML: {str(error).splitlines()[0]}") from error
    except UsageError:
        raise
    except RecursionError as error:
        raise UsageError(f"{path} is nested too deeply") from error
    except (ValueError, TypeError, AttributeError, LookupError, OverflowError) as error:
        # A tag that does not fit its value, like !!int zzz: the library raises the error of the conversion.
        raise UsageError(f"{path}: a value can't be read: {type(error).__name__}: {error}") from error
    if not isinstance(content, YamlMapping):
        raise UsageError(f"{path}: expected a mapping (study: …, axes: …), got {type(content).__name__}")
    return content


def _check_size(path: Path, root: yaml.Node) -> None:
    """Refuse a file that expands to more values than `MOST_VALUES` once its aliases (*name) are written out.

    Aliases share their nodes, so a few hundred bytes can expand to billions of values; sizes are added up node by node.
    """
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()

    def count(node: yaml.Node) -> int:
        key = id(node)
        if key in open_nodes:
            raise LocatedError(
                f"{path}, line {node.start_mark.line + 1}: an alias refers to something that contains it"
            )
        if key not in sizes:
            open_nodes.add(key)
            children: list[yaml.Node] = []
            if isinstance(node, yaml.SequenceNode):
                children = node.value
            elif isinstance(node, yaml.MappingNode):
                children = list(chain.from_iterable(node.value))
            sizes[key] = 1 + sum(map(count, children))
            open_nodes.remove(key)
            if sizes[key] > MOST_VALUES:
                raise LocatedError(
                    f"{path}, line {node.start_mark.line + 1}: with its aliases written out this is more than "
                    f"{MOST_VALUES:,} values ({sizes[key]:,}); a study file has a few hundred"
                )
        return sizes[key]

    count(root)


def _make_loader(file: str) -> type[yaml.SafeLoader]:
    """A safe loader that constructs a `YamlMapping` for every mapping."""

    # A class for each file, because the mappings that it constructs know the file's name.
    class Loader(yaml.SafeLoader):
        # Filled from the table below; the resolvers of the safe loader itself are those of YAML 1.1.
        yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012

        def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> Any:
            fault = find_fault(node.value, longest=MOST_BYTES)
            if fault is not None:
                raise LocatedError(f"{file}, line {node.start_mark.line + 1}: a text can't be used: {fault}")
            return super().construct_scalar(node)

        def construct_yaml_mapping(self, node: yaml.MappingNode) -> YamlMapping:
            mapping = YamlMapping(file, node.start_mark.line + 1)
            for key_node, value_node in node.value:
                key = self.construct_object(key_node, deep=True)
                line = key_node.start_mark.line + 1
                if not isinstance(key, Hashable):
                    raise LocatedError(f"{file}, line {line}: a key must be a word or a number")
                if key in mapping:
                    first_line = mapping.lines[key]
                    raise LocatedError(f"{file}, line {line}: '{key}' is given twice, first on line {first_line}")
                mapping.put(key, self.construct_object(value_node, deep=True), line)
            return mapping

    for tag, pattern, first_characters in _PLAIN_SCALARS:
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), list(first_characters))
    Loader.add_constructor("tag:yaml.org,2002:map", Loader.construct_yaml_mapping)
    return Loader


# Plain scalars are read as in YAML 1.2: 1e-3 is a number, and `on`, `no`, 1:30 and dates are text.
_PLAIN_SCALARS = (
    ("bool", "true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9_]*)", "-+0123456789"),
    ("float", r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("null", "~|null|Null|NULL|", ["~", "n", "N", ""]),
)
