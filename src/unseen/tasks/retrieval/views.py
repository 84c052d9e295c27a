"""One example for people: in words, and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from unseen.tasks.base import Examples
from unseen.tasks.retrieval.files import named_features
from unseen.tasks.retrieval.formulas import FORMULAS
from unseen.tasks.retrieval.mapping import Table

_COLOURS = ("#d1495b", "#00798c", "#edae49", "#5c4d7d")
_PALE, _BLANK, _INK, _GREY = "#c9ced6", "#f4f5f7", "#22262b", "#7a828c"
_CELL, _LEFT, _TOP = 14, 34, 62


def describe(name: str, table: Table, examples: Examples, index: int) -> str:
    """The tokens with the relevant features in brackets, the query and what it stands for, the answer and why."""
    kind = name.partition("/")[2]
    named = named_features(examples[index : index + 1])[0]
    relevant = _relevant(table, named)
    lines = [f"{name}, {len(examples.inputs['sequence'][index])} tokens"]
    for number, token in enumerate(examples.inputs["sequence"][index]):
        features = [f"[{f}]" if f in relevant else str(f) for f in np.flatnonzero(token).tolist()]
        lines.append(f"  token {number}: {' '.join(features) or '(nothing)'}")
    question, answer = _question(kind, named, relevant), _answer(kind, examples, index, relevant)
    lines += [f"query: {question}", f"answer: {answer}"]
    if "scenario" in examples.factors:
        scenario, regime = (examples.factors[key][index] for key in ("scenario", "regime"))
        lines.append(f"built as: {scenario} ({regime} occurrences)")
    return "\n".join(lines)


def picture(name: str, table: Table, examples: Examples, index: int) -> str:
    """The sequence as a grid, a column per token and a row per feature, relevant rows in colour; SVG text."""
    kind = name.partition("/")[2]
    sequence, query = examples.inputs["sequence"][index], examples.inputs["query"][index]
    length, features = sequence.shape
    named = named_features(examples[index : index + 1])[0]
    relevant = _relevant(table, named)
    colours = {feature: _COLOURS[slot] for slot, feature in reversed(list(enumerate(relevant)))}
    notes = [
        f"{name}, query: {_question(kind, named, relevant)}",
        f"answer: {_answer(kind, examples, index, relevant)}",
    ]
    aside, bottom = _LEFT + length * _CELL + 24, _TOP + features * _CELL
    width, height = max(aside + 60, 24 + round(6.3 * max(len(note) for note in notes))), bottom + 26
    cells: dict[str, list[str]] = {}
    for feature in range(features):
        for token in range(length):
            colour = colours.get(feature, _PALE) if sequence[token, feature] else _BLANK
            cells.setdefault(colour, []).append(_cell(_LEFT + token * _CELL, feature))
        cells.setdefault(_INK if query[feature] else _BLANK, []).append(_cell(aside, feature))
    step = 1 if length <= 20 else 5  # every label where there is room, every fifth where there is not
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
            'font-family="Helvetica, Arial, sans-serif" font-size="11">',
            f"<title>{escape(notes[0])}</title>",
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
            _text(12, 20, notes[0], weight="bold"),
            _text(12, 38, notes[1]),
            _text(_LEFT, _TOP - 6, "token"),
            _text(aside + 7, _TOP - 6, "query", "middle"),
            *(f'<path fill="{colour}" d="{"".join(found)}"/>' for colour, found in cells.items()),
            *(
                _text(
                    _LEFT - 6,
                    _TOP + f * _CELL + 11,
                    str(f),
                    "end",
                    "bold" if f in colours else "normal",
                    colours.get(f, _GREY),
                )
                for f in range(features)
            ),
            *(_text(_LEFT + t * _CELL + 7, bottom + 14, str(t), "middle") for t in range(0, length, step)),
            "</svg>",
        ]
    )


def _relevant(table: Table, named: Sequence[int]) -> list[int]:
    """The features a query is about, slot by slot."""
    return [feature for pair in table[named[0]] for feature in pair] if table else list(named)


def _question(kind: str, named: Sequence[int], relevant: Sequence[int]) -> str:
    asked = FORMULAS[kind].words([str(feature) for feature in relevant])
    if kind in ("T1", "T2"):
        return f"have you seen {asked}?"
    return f"{named[0]} (stands for: have you seen {asked}?)"


def _answer(kind: str, examples: Examples, index: int, relevant: Sequence[int]) -> str:
    where = [np.flatnonzero(examples.inputs["sequence"][index][:, f]).tolist() for f in relevant]
    _, reason = FORMULAS[kind].why([str(f) for f in relevant], where)
    return f"{'yes' if examples.targets[index, 0] else 'no'}: {reason}"


def _text(x: int, y: int, text: str, anchor: str = "start", weight: str = "normal", colour: str = _INK) -> str:
    style = f'text-anchor="{anchor}" font-weight="{weight}" fill="{colour}"'
    return f'<text x="{x}" y="{y}" {style}>{escape(text)}</text>'


def _cell(x: int, feature: int) -> str:
    side = _CELL - 2
    return f"M{x} {_TOP + feature * _CELL}h{side}v{side}h-{side}z"
