"""One example as a picture: SVG text."""

from __future__ import annotations

import math
from html import escape

import numpy as np

from unseen.tasks.base import Examples
from unseen.tasks.rules.labels import mha_partners, rnn_states
from unseen.tasks.rules.parameters import Coefficients, Matrices

_INK, _GREY, _PALE = "#22262b", "#7a828c", "#eceef1"
_PLUS, _MINUS = "#00798c", "#d1495b"


def picture_mlp(name: str, rules: Coefficients, examples: Examples, index: int) -> str:
    """The plane of x1 and x2, the line on which the rule's answer is 0, and the example."""
    (x1, x2), rule = examples.inputs["x"][index].tolist(), int(examples.inputs["rule"][index])
    alpha, beta = float(rules.alpha[rule]), float(rules.beta[rule])
    side, far = 220, max(3.0, abs(x1) + 0.5, abs(x2) + 0.5)
    middle, unit = side / 2 + 10, side / 2 / far
    long = far * unit / math.hypot(alpha, beta)
    y = alpha * x1 + beta * x2
    return _svg(
        side + 20,
        side + 50,
        f"{name}, rule {rule}: y = {y:.3f}",
        [
            f'<g transform="translate({middle:.1f},{middle + 30:.1f}) scale(1,-1)">',
            f'<rect x="{-side / 2}" y="{-side / 2}" width="{side}" height="{side}" fill="{_PALE}"/>',
            _line(-side / 2, 0, side / 2, 0, _GREY),
            _line(0, -side / 2, 0, side / 2, _GREY),
            _line(-beta * long, alpha * long, beta * long, -alpha * long, _INK),
            _line(0, 0, alpha * long / 3, beta * long / 3, _PLUS, 2),
            f'<circle cx="{x1 * unit:.1f}" cy="{x2 * unit:.1f}" r="5" fill="{_colour(y)}"/>',
            "</g>",
        ],
    )


def picture_mha(name: str, rules: Coefficients, examples: Examples, index: int, nearest: bool) -> str:
    """The tokens in a row with their rules; above, an arc ends in a dot at the token whose v is read, below v′."""
    rule = examples.inputs["rule"][index]
    blocks = examples.inputs["features"][index].reshape(len(rule), len(rules.alpha), -1)
    step, height = 46, 30 + 12 * len(rule)
    parts = []
    for side, partners in enumerate(mha_partners(blocks[None], rule[None], nearest)):
        for n, i in enumerate(partners[0].tolist()):
            way, colour = (-1, 1)[side], (_PLUS, _MINUS)[side]
            bend, end = 2 * way * (8 + 12 * abs(i - n)), 16 * way
            parts += [
                f'<path d="M{step * n + 30} {height} q{step * (i - n) / 2} {bend} {step * (i - n)} {end}" '
                f'fill="none" stroke="{colour}" stroke-opacity="0.6"/>',
                f'<circle cx="{step * i + 30}" cy="{height + end}" r="3" fill="{colour}"/>',
            ]
    for n, r in enumerate(rule.tolist()):
        parts += [
            f'<circle cx="{step * n + 30}" cy="{height}" r="12" fill="#ffffff" stroke="{_INK}"/>',
            _text(step * n + 30, height + 4, str(r), "middle"),
        ]
    title = f"{name}: rule of each token; where it reads v (above) and v′ (below)"
    return _svg(max(step * len(rule) + 14, 430), 2 * height, title, parts)


def picture_rnn(name: str, rules: Matrices, examples: Examples, index: int) -> str:
    """The state after each token as a column of cells, over the token's rule and the sign of the read-out."""
    rule = examples.inputs["rule"][index]
    states = rnn_states(rules, examples.inputs["x"][index : index + 1], rule[None])[0]
    largest, cell = float(np.abs(states).max()), 10
    parts, bottom = [], 34 + cell * states.shape[1]
    for n, state in enumerate(states):
        left = 12 + 22 * n
        parts += [
            f'<rect x="{left}" y="{34 + cell * k}" width="20" height="{cell - 1}" fill="{_colour(value)}" '
            f'fill-opacity="{abs(value) / largest:.2f}"/>'
            for k, value in enumerate(state.tolist())
        ]
        parts += [
            _text(left + 10, bottom + 14, str(int(rule[n])), "middle"),
            f'<circle cx="{left + 10}" cy="{bottom + 26}" r="5" fill="{_colour(float(state @ rules.w))}"/>',
        ]
    title = f"{name}: state after each token; below, its rule and the sign of s · w"
    return _svg(max(24 + 22 * len(rule), 430), bottom + 42, title, parts)


def _colour(value: float) -> str:
    return _PLUS if value >= 0 else _MINUS


def _svg(width: float, height: float, title: str, parts: list[str]) -> str:
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
            'font-family="Helvetica, Arial, sans-serif" font-size="11">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
            _text(12, 20, title),
            *parts,
            "</svg>",
        ]
    )


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{_INK}">{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: int = 1) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"/>'
