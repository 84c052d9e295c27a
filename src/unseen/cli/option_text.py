"""Options of a config as text: their types, defaults and meanings."""

from __future__ import annotations

import inspect
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

if TYPE_CHECKING:
    from unseen.config import Config

LONGEST_VALUE = 40
NARROWEST = 40
"""Text is wrapped to the terminal, but never to fewer columns than this,"""
WIDEST = 120
"""and never to more than this."""
_BOUNDS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
MEANINGS: Mapping[str, str] = {
    "width": "width of a state",
    "layers": "number of layers",
    "heads": "heads of attention; they share the width",
    "dropout": "share of numbers that is dropped in training",
    "norm": "layer norms before each sublayer, or after it",
    "positions": "how tokens know their positions",
    "causal": "whether tokens attend only to earlier tokens and themselves",
    "latents": "number of latents",
    "modules": "number of modules",
    "gating": "how modules are chosen",
    "form": "which published version",
    "activation": "what follows each step",
    "read_at": "the marker at which the answer is read",
    "gate_dropout": "share of tokens whose gate is closed in training",
    "cell": "the recurrent cell",
    "embedding": "width of the embedding",
    "decoder_attention": "whether the query reads all states, or only the last",
    "scale_embedding": "whether embeddings are multiplied by the root of the number of bits",
    "encoder": "which version of the encoder",
    "feedforward": "size of the feed-forward",
    "hidden": "width of what follows the blocks",
    "core": "width of the core: four times that of the encoder unless given",
    "self_attention": "whether tokens look at each other",
    "key_dropout": "share of the numbers of keys that is dropped in training",
    "matched": "choose the width so that parameters, state or FLOPs equal those of another model",
    "partition": "the module of each rule under gating truth",
    "match": "how modular models get as many parameters as the monolithic one",
}
"""The meanings of options that say nothing about themselves."""


def text_width(unbounded: bool = False) -> int:
    """The columns of the terminal (or of the variable COLUMNS) that text may use; `unbounded` for tables."""
    columns = max(NARROWEST, shutil.get_terminal_size((120, 24)).columns)
    return columns if unbounded else min(WIDEST, columns)


def wrap(text: str, indent: str = "", hanging: str = "") -> list[str]:
    """A paragraph as lines that fit the terminal; `hanging` indents all but the first."""
    return textwrap.wrap(
        text, text_width(), initial_indent=indent, subsequent_indent=indent + hanging, break_on_hyphens=False
    ) or [""]


def wrap_entry(name: str, text: str, width: int, indent: str = "  ") -> list[str]:
    """`name  text` with the text in a column of its own; below the name where that would be too narrow."""
    hanging = f"{indent}{' ' * width}  "
    if text_width() - len(hanging) < 24:
        return [f"{indent}{name}", *(wrap(text, f"{indent}  ") if text else [])]
    start = f"{indent}{name:<{width}}  "
    lines = textwrap.wrap(text, text_width(), initial_indent=start, subsequent_indent=hanging, break_on_hyphens=False)
    return [line.rstrip() for line in lines] or [start.rstrip()]


def format_docstring(subject: Any) -> list[str]:
    """The docstring of a class: paragraphs are wrapped, indented examples and lists stay as they are."""
    lines: list[str] = []
    for paragraph in inspect.cleandoc(subject.__doc__ or "").split("\n\n"):
        rows = paragraph.splitlines()
        if not rows or rows[0].startswith(">>>"):  # a test of ours
            continue
        if rows[0].startswith("|"):
            lines += [*_format_markdown_table(rows), ""]
            continue
        literal = any(row.startswith((" ", "- ", "* ", ">>>")) for row in rows)
        lines += [*(rows if literal else wrap(" ".join(rows))), ""]
    return lines[:-1]


def _format_markdown_table(rows: list[str]) -> list[str]:
    """A Markdown table as aligned columns that fit the terminal."""
    from unseen.cli.output import fit_table

    table = [[text.strip() for text in row.strip("|").split("|")] for row in rows]
    return fit_table([row for row in table if not set("".join(row)) <= set("-: ")], keys=1)


def format_options(config: type[Config]) -> list[str]:
    """A line or more for each option but the name: its meaning, type and default."""
    entries = []
    for name, field in config.model_fields.items():
        if name == "name":
            continue
        default = "required" if field.is_required() else f"default {format_value(field.default)}"
        meaning = field.description or MEANINGS.get(name, "")
        texts = [meaning, describe_type(field.annotation, field.metadata), default]
        entries.append((name, "; ".join(filter(None, texts))))
    width = max((len(name) for name, _ in entries), default=0)
    lines = []
    for name, text in entries:
        lines += wrap_entry(name, text, width)
    return lines or ["  none"]


def describe_type(annotation: Any, metadata: Iterable[Any] = ()) -> str:
    """A type for people.

    >>> describe_type(Literal["a", "b"] | None), describe_type(tuple[int, ...]), describe_type(int)
    ('a, b or None', 'int, …', 'int')
    """
    bounds = []
    for item in _flatten(metadata):
        for key, sign in _BOUNDS.items():
            if getattr(item, key, None) is not None:
                bounds.append(f" {sign} {getattr(item, key)}")
    return f"{_describe(annotation)}{','.join(bounds)}"


def format_value(value: Any) -> str:
    """A value in a table; long ones are cut."""
    if isinstance(value, bool):
        return str(value).lower()
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 2]} …"


def _flatten(metadata: Iterable[Any]) -> Iterator[Any]:
    """All items of metadata, those of nested fields included: pydantic puts bounds there."""
    for item in metadata:
        if hasattr(item, "metadata"):
            yield from _flatten(item.metadata)
        else:
            yield item


def _describe(annotation: Any) -> str:
    origin = get_origin(annotation)
    arguments = get_args(annotation)
    if origin is Annotated:
        return describe_type(arguments[0], arguments[1:])
    if origin is Literal:
        return _join(list(map(str, arguments)))
    if origin in (Union, UnionType):
        alternatives: list[str] = []
        for argument in arguments:
            if get_origin(argument) is Literal:
                alternatives += map(str, get_args(argument))
            else:
                alternatives.append(_describe(argument))
        return _join(alternatives)
    if origin is tuple:
        if Ellipsis in arguments:
            return f"{_describe(arguments[0])}, …"
        return f"({', '.join(map(_describe, arguments))})"
    return "None" if annotation is NoneType else getattr(annotation, "__name__", str(annotation))


def _join(alternatives: list[str]) -> str:
    return " or ".join(filter(None, [", ".join(alternatives[:-1]), alternatives[-1]]))
