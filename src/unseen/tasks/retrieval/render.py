"""One example for people: in words, and as an SVG picture."""

from __future__ import annotations

from itertools import chain

import numpy as np

from unseen.names import name_in_family
from unseen.randomness import Bools
from unseen.tasks import svg
from unseen.tasks.base import Examples
from unseen.tasks.retrieval.files import query_numbers
from unseen.tasks.retrieval.formulas import FORMULAS
from unseen.tasks.retrieval.mapping import Table

_SLOT_COLOURS = ("#d1495b", "#00798c", "#edae49", "#5c4d7d")
_PALE = "#c9ced6"
_BLANK = "#f4f5f7"
_FONT_SIZE = 11
MOST_LISTED = 100
"""The number of tokens that are listed of one example."""
LONGEST_REASON = 400
_STEP = 14  # from one square to the next
_LEFT_MARGIN = 58
_TOP_MARGIN = 62


def describe(name: str, table: Table, examples: Examples, index: int) -> str:
    """The tokens with the relevant features in brackets, the query with its meaning, the answer and the reason."""
    relevant, question, answer = _read_example(name, table, examples, index)
    sequence = examples.inputs["sequence"][index]
    lines = [f"{name}, {len(sequence)} tokens"]
    told = _choose_tokens(sequence[:, relevant].any(axis=1))
    for number, token in enumerate(sequence):
        if number not in told:
            continue
        features = [f"[{f}]" if f in relevant else str(f) for f in np.flatnonzero(token).tolist()]
        lines.append(f"  token {number}: {' '.join(features) or '(nothing)'}")
    if len(told) < len(sequence):
        lines.append(f"  … and {len(sequence) - len(told):,} tokens that are not listed")
    if len(answer) > LONGEST_REASON:  # every token of a long sequence in which a feature occurs
        answer = f"{answer[:LONGEST_REASON].rpartition(',')[0]}, …"
    lines += [f"query: {question}", f"answer: {answer}"]
    if "scenario" in examples.factors:
        scenario = examples.factors["scenario"][index]
        regime = examples.factors["regime"][index]
        lines.append(f"built as: {scenario} ({regime} occurrences)")
    return "\n".join(lines)


def _choose_tokens(is_relevant: Bools) -> set[int]:
    """The tokens that are listed: all, or of a long sequence the first ones and those with a relevant feature."""
    if len(is_relevant) <= MOST_LISTED:
        return set(range(len(is_relevant)))
    relevant = np.flatnonzero(is_relevant)[: MOST_LISTED // 2].tolist()
    return {*range(MOST_LISTED // 2), *relevant}


def draw_picture(name: str, table: Table, examples: Examples, index: int) -> str:
    """Draw the sequence as a grid, a column per token and a row per feature, relevant rows in colour; SVG text."""
    relevant, question, answer = _read_example(name, table, examples, index, "feature ")
    sequence = examples.inputs["sequence"][index]
    query = examples.inputs["query"][index]
    length, features = sequence.shape
    # Reversed, so that a feature of two slots has the colour of the first.
    colours = {feature: _SLOT_COLOURS[slot] for slot, feature in reversed(list(enumerate(relevant)))}
    notes = [f"{name}, query: {question}", f"answer: {answer}"]
    query_x = _LEFT_MARGIN + length * _STEP + 24
    bottom = _TOP_MARGIN + features * _STEP
    width = max(query_x + 60, 24 + round(6.3 * max(map(len, notes))))
    body = [
        svg.text(12, 20, notes[0], _FONT_SIZE, weight="bold"),
        svg.text(12, 38, notes[1], _FONT_SIZE),
        svg.text(_LEFT_MARGIN - 6, _TOP_MARGIN - 6, "feature", _FONT_SIZE, "end", "bold"),
        svg.text(_LEFT_MARGIN - 6, bottom + 14, "token", _FONT_SIZE, "end", "bold"),
        svg.text(query_x + 7, _TOP_MARGIN - 6, "query", _FONT_SIZE, "middle"),
    ]
    squares: dict[str, list[str]] = {}  # by colour: one path for all squares of a colour keeps the file small
    for feature in range(features):
        for token in range(length):
            colour = colours.get(feature, _PALE) if sequence[token, feature] else _BLANK
            squares.setdefault(colour, []).append(_square(_LEFT_MARGIN + token * _STEP, feature))
        squares.setdefault(svg.INK if query[feature] else _BLANK, []).append(_square(query_x, feature))
    for colour, shapes in squares.items():
        body.append(svg.element("path", fill=colour, d="".join(shapes)))
    for feature in range(features):
        y = _TOP_MARGIN + feature * _STEP + 11
        weight = "bold" if feature in colours else "normal"
        colour = colours.get(feature, svg.GREY)
        body.append(svg.text(_LEFT_MARGIN - 6, y, str(feature), _FONT_SIZE, "end", weight, colour))
    label_step = 1 if length <= 20 else 5  # every label where there is room, every fifth where there is not
    for token in range(0, length, label_step):
        body.append(svg.text(_LEFT_MARGIN + token * _STEP + 7, bottom + 14, str(token), _FONT_SIZE, "middle"))
    return svg.document(width, bottom + 26, notes[0], body)


def _read_example(
    name: str, table: Table, examples: Examples, index: int, noun: str = ""
) -> tuple[list[int], str, str]:
    """The features that a query is about, slot by slot; the question in words; the answer and why.

    `noun` is put before the number of every feature.
    """
    task = name_in_family(name)
    numbers = query_numbers(examples[index : index + 1])[0]
    relevant = list(chain.from_iterable(table[numbers[0]])) if table else list(numbers)
    names = [f"{noun}{feature}" for feature in relevant]
    question = f"have you seen {FORMULAS[task].phrase(names)}?"
    if table:
        question = f"{numbers[0]} (stands for: {question})"
    sequence = examples.inputs["sequence"][index]
    occurrences = [np.flatnonzero(sequence[:, feature]).tolist() for feature in relevant]
    _, reason = FORMULAS[task].explain(names, occurrences)
    return relevant, question, f"{'yes' if examples.targets[index, 0] else 'no'}: {reason}"


def _square(x: int, feature: int) -> str:
    size = _STEP - 2
    return f"M{x} {_TOP_MARGIN + feature * _STEP}h{size}v{size}h-{size}z"
