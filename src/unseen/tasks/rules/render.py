"""One example for people: as text with the numbers to follow (describe), and as an SVG picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unseen.tasks import svg
from unseen.tasks.base import Examples
from unseen.tasks.rules.generate import AnswerKind, Coefficients, Matrices, mha_partners, rnn_states

_MOST_NUMBERS = 3
"""How many numbers of a vector are printed."""

_PALE = "#eceef1"
_PLUS = "#00798c"
_MINUS = "#d1495b"


# Text.


def describe_mlp(name: str, rules: Coefficients, examples: Examples, index: int) -> str:
    """The two numbers, the rule's weights, the sum."""
    x = examples.inputs["x"][index].tolist()
    rule = int(examples.inputs["rule"][index])
    return "\n".join(
        [
            f"{name}, rule {rule} of {len(rules.alpha)}: alpha = {_format_number(rules.alpha[rule])}, "
            f"beta = {_format_number(rules.beta[rule])}",
            f"  x = ({_format_number(x[0])}, {_format_number(x[1])})",
            f"  y = alpha · x1 + beta · x2 = {_format_sum(rules, rule, x)}",
            f"answer: {_format_answer(examples.targets[index, 0])}",
        ]
    )


def describe_mha(name: str, rules: Coefficients, examples: Examples, index: int, nearest: bool) -> str:
    """Token by token: which other tokens its two queries find, the values there, the sum."""
    rule = examples.inputs["rule"][index]
    blocks = examples.inputs["features"][index].reshape(len(rule), len(rules.alpha), -1)
    partners = [tokens[0].tolist() for tokens in mha_partners(blocks[None], rule[None], nearest)]
    relation = "nearest" if nearest or blocks.shape[2] == 4 else "least product"
    lines = [
        f"{name}, {len(rule)} tokens, {len(rules.alpha)} rules; a token looks at the others with the queries of "
        "its rule, q for v and q′ for v′"
    ]
    for n, r in enumerate(rule.tolist()):
        values = []
        searches = []
        for search, mark in enumerate(("", "′")):
            partner = partners[search][n]
            value = float(blocks[partner, r, search - 2])  # v and v′ are the last two numbers of a block
            query = _format_query(blocks[n, r], search)
            other_query = _format_query(blocks[partner, r], search)
            values.append(value)
            searches.append(
                f"q{mark} = {query}, {relation} token {partner} ({other_query}), v{mark} = {_format_number(value)}"
            )
        answer = _format_answer(examples.targets[index, n, 0])
        lines.append(f"  token {n}, rule {r}: {'; '.join(searches)}")
        lines.append(f"      y = alpha · v + beta · v′ = {_format_sum(rules, r, values)}; answer: {answer}")
    return "\n".join(lines)


def describe_rnn(name: str, rules: Matrices, examples: Examples, index: int, kind: AnswerKind) -> str:
    """Token by token: the part of the state that is carried over, the part from the input, the new state, the answer."""
    x = examples.inputs["x"][index].astype(np.float64)
    rule = examples.inputs["rule"][index].tolist()
    order = rules.A.shape[1]
    dimension = len(rules.w)
    extent = f"the first {_MOST_NUMBERS} of {dimension} numbers of each" if dimension > _MOST_NUMBERS else "all numbers"
    question = {"classification": "1 if s · w ≥ 0, else 0", "readout": "s · w", "regression": "the new state"}[kind]
    past = "s" if order == 1 else f"the last {order} states"
    lines = [
        f"{name}, {len(rule)} tokens, {len(rules.B)} rules; the state s starts at 0",
        f"  each token: new s = {past} · A[rule] + x · B[rule]; answer: {question}; below, {extent}",
    ]
    if dimension <= _MOST_NUMBERS:
        for r in sorted(set(rule)):
            carry = rules.A[r, 0] if order == 1 else rules.A[r]
            lines.append(f"  rule {r}: A = {np.round(carry, 3).tolist()}, B = {np.round(rules.B[r], 3).tolist()}")
        lines.append(f"  w = {_format_vector(rules.w)}")
    table = [("token", "rule", "x", "carried over", "+ from x", "= new s", "length of s", "s · w", "answer")]
    states: list[NDArray[np.float64]] = []
    for n, r in enumerate(rule):
        carried = np.zeros(dimension)
        for back in range(1, min(order, n) + 1):
            carried = carried + states[n - back] @ rules.A[r, back - 1]
        added = x[n] @ rules.B[r]
        state = carried + added
        states.append(state)
        target = examples.targets[index, n]
        table.append(
            (
                str(n),
                str(r),
                _format_vector(x[n]),
                _format_vector(carried),
                _format_vector(added),
                _format_vector(state),
                _format_number(float(np.linalg.norm(state))),
                _format_number(float(state @ rules.w)),
                _format_vector(target) if kind == "regression" else _format_answer(target[0]),
            )
        )
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        lines.append("  " + "  ".join(map(str.rjust, row, widths)))
    if dimension > _MOST_NUMBERS:
        lines.append("  (--set dimension=2 makes a task whose numbers are all shown)")
    return "\n".join(lines)


def _format_number(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")


def _format_vector(values: NDArray[Any]) -> str:
    numbers = " ".join(_format_number(float(value)).rjust(7) for value in values[:_MOST_NUMBERS])
    return numbers + (" …" if len(values) > _MOST_NUMBERS else "")


def _format_sum(rules: Coefficients, rule: int, values: Sequence[float]) -> str:
    """`alpha · first + beta · second = result` with the numbers of a rule, negative ones in parentheses."""
    alpha = float(rules.alpha[rule])
    beta = float(rules.beta[rule])
    first, second = (_format_number(value) if value >= 0 else f"({_format_number(value)})" for value in values)
    result = _format_number(alpha * values[0] + beta * values[1])
    sign = "−" if beta < 0 else "+"
    return f"{_format_number(alpha)} · {first} {sign} {_format_number(abs(beta))} · {second} = {result}"


def _format_answer(target: Any) -> str:
    """A class is an integer, the answer of a regression is not."""
    return str(int(target)) if isinstance(target, np.integer) else _format_number(float(target))


def _format_query(block: NDArray[Any], search: int) -> str:
    """A query q (0) or q′ (1): a number, or the angle of a point on the circle."""
    if len(block) == 4:
        return _format_number(float(block[search]))
    x, y = block[2 * search : 2 * search + 2].tolist()
    return f"{math.degrees(math.atan2(y, x)):.1f}°".replace("-", "−")


# Pictures.


def picture_mlp(name: str, rules: Coefficients, examples: Examples, index: int) -> str:
    """The plane of x1 and x2 with its axes, the line on which the rule's answer is 0, the example, and a legend."""
    x1, x2 = examples.inputs["x"][index].tolist()
    rule = int(examples.inputs["rule"][index])
    alpha = float(rules.alpha[rule])
    beta = float(rules.beta[rule])
    y = alpha * x1 + beta * x2
    size = 220
    half = size / 2
    far = max(3.0, abs(x1) + 0.5, abs(x2) + 0.5)
    unit = half / far
    reach = half / math.hypot(alpha, beta)
    left, top = 46, 40
    clip = svg.element("clipPath", svg.rectangle(-half, -half, size, size), id="plane")
    plane = [
        svg.rectangle(-half, -half, size, size, fill=_PALE),
        _line(-half, 0, half, 0, svg.GREY),
        _line(0, -half, 0, half, svg.GREY),
        _line(-2 * beta * reach, 2 * alpha * reach, 2 * beta * reach, -2 * alpha * reach, svg.INK, 2),
        _line(0, 0, alpha * reach / 3, beta * reach / 3, _PLUS, 2),
        svg.element("circle", cx=round(x1 * unit, 1), cy=round(x2 * unit, 1), r=5, fill=_sign_colour(y)),
    ]
    # The vertical axis of SVG points down; scale(1, −1) turns it up.
    inside = svg.element("g", "\n".join(plane), clip_path="url(#plane)")
    body = [
        svg.element("g", f"{clip}\n{inside}", transform=f"translate({half + left:g},{half + top:g}) scale(1,-1)"),
        svg.text(left + half, top + size + 30, "x1", 12, "middle", "bold"),
        svg.text(12, top + half + 4, "x2", 12, "start", "bold"),
    ]
    for tick in range(-math.floor(far), math.floor(far) + 1, max(1, math.floor(far) // 2)):
        label = str(tick).replace("-", "−")
        body.append(svg.text(left + half + tick * unit, top + size + 14, label, 10, "middle", colour=svg.GREY))
        body.append(svg.text(left - 5, top + half - tick * unit + 4, label, 10, "end", colour=svg.GREY))
    x = left + size + 20
    has_classes = isinstance(examples.targets[index, 0], np.integer)
    positive = "class 1 (y ≥ 0)" if has_classes else "y ≥ 0"
    negative = "class 0 (y < 0)" if has_classes else "y < 0"
    legend = [
        (svg.element("circle", cx=x + 8, cy=top + 14, r=5, fill=_sign_colour(y)), "the example"),
        (_line(x, top + 38, x + 16, top + 38, svg.INK, 2), "y = 0"),
        (_line(x, top + 62, x + 16, top + 62, _PLUS, 2), "where y grows"),
        (svg.element("circle", cx=x + 8, cy=top + 86, r=5, fill=_PLUS), positive),
        (svg.element("circle", cx=x + 8, cy=top + 110, r=5, fill=_MINUS), negative),
    ]
    for number, (mark, label) in enumerate(legend):
        body += [mark, svg.text(x + 24, top + 18 + 24 * number, label, 11)]
    title = f"{name}, rule {rule}: y = alpha · x1 + beta · x2 = {_format_number(y)}"
    return _document(x + 130, top + size + 42, title, body)


def picture_mha(name: str, rules: Coefficients, examples: Examples, index: int, nearest: bool) -> str:
    """The tokens in a row with their rules; arcs end in a dot at the token whose v (above) or v′ (below) is read."""
    rule = examples.inputs["rule"][index]
    blocks = examples.inputs["features"][index].reshape(len(rule), len(rules.alpha), -1)
    step = 46
    height = 30 + 12 * len(rule)
    body = []
    by_q, by_q_prime = mha_partners(blocks[None], rule[None], nearest)
    for direction, colour, partners in ((-1, _PLUS, by_q), (1, _MINUS, by_q_prime)):
        for n, i in enumerate(partners[0].tolist()):
            bend = 2 * direction * (8 + 12 * abs(i - n))
            rise = 16 * direction
            path = f"M{step * n + 30} {height} q{step * (i - n) / 2} {bend} {step * (i - n)} {rise}"
            body.append(svg.element("path", d=path, fill="none", stroke=colour, stroke_opacity=0.6))
            body.append(svg.element("circle", cx=step * i + 30, cy=height + rise, r=3, fill=colour))
    for n, r in enumerate(rule.tolist()):
        body.append(svg.element("circle", cx=step * n + 30, cy=height, r=12, fill="#ffffff", stroke=svg.INK))
        body.append(svg.text(step * n + 30, height + 4, str(r), 11, "middle"))
    title = f"{name}: rule of each token; where it reads v (above) and v′ (below)"
    return _document(max(step * len(rule) + 14, 430), 2 * height, title, body)


def picture_rnn(name: str, rules: Matrices, examples: Examples, index: int) -> str:
    """The state after each token as a column of squares over the token, its rule and the sign of the read-out."""
    rule = examples.inputs["rule"][index]
    states = rnn_states(rules, examples.inputs["x"][index : index + 1], rule[None])[0]
    largest = float(np.abs(states).max())
    step = 10
    left, top = 76, 40
    bottom = top + step * states.shape[1]
    body = [
        svg.text(left - 8, top + 10, "s, number 1", 10, "end", colour=svg.GREY),
        svg.text(left - 8, bottom - 2, f"number {states.shape[1]}", 10, "end", colour=svg.GREY),
        svg.text(left - 8, bottom + 15, "token", 11, "end", "bold"),
        svg.text(left - 8, bottom + 32, "rule", 11, "end", "bold"),
        svg.text(left - 8, bottom + 49, "s · w", 11, "end", "bold"),
    ]
    for n, state in enumerate(states):
        x = left + 22 * n
        for k, value in enumerate(state.tolist()):
            opacity = f"{abs(value) / largest:.2f}"
            body.append(svg.rectangle(x, top + step * k, 20, step - 1, fill=_sign_colour(value), fill_opacity=opacity))
        body.append(svg.text(x + 10, bottom + 15, str(n), 10, "middle", colour=svg.GREY))
        body.append(svg.text(x + 10, bottom + 32, str(int(rule[n])), 11, "middle"))
        colour = _sign_colour(float(state @ rules.w))
        body.append(svg.element("circle", cx=x + 10, cy=bottom + 45, r=5, fill=colour))
    # The legend: a bar from the most negative number through 0 to the most positive one.
    below = bottom + 66
    for number in range(11):
        value = (number - 5) / 5
        shade = {"fill": _sign_colour(value), "fill_opacity": f"{abs(value):.2f}"}
        body.append(svg.rectangle(left + 50 + 14 * number, below, 14, step, **shade))
    body.append(svg.text(left + 44, below + 9, f"−{largest:.2f}", 10, "end"))
    body.append(svg.text(left + 50 + 14 * 11 + 6, below + 9, f"{largest:.2f}: a number of s", 10))
    has_classes = isinstance(examples.targets[index].ravel()[0], np.integer)
    for x, colour, label in (
        (left + 6, _PLUS, "s · w ≥ 0" + (" (class 1)" if has_classes else "")),
        (left + 156, _MINUS, "s · w < 0" + (" (class 0)" if has_classes else "")),
    ):
        body.append(svg.element("circle", cx=x, cy=below + 28, r=5, fill=colour))
        body.append(svg.text(x + 12, below + 32, label, 10))
    title = f"{name}: the state s after each token"
    return _document(max(left + 12 + 22 * len(rule), 430), below + 46, title, body)


def _document(width: float, height: float, title: str, body: list[str]) -> str:
    return svg.document(width, height, title, [svg.text(12, 20, title, 11), *body], font_size=11)


def _sign_colour(value: float) -> str:
    return _PLUS if value >= 0 else _MINUS


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: int = 1) -> str:
    corners = {"x1": round(x1, 1), "y1": round(y1, 1), "x2": round(x2, 1), "y2": round(y2, 1)}
    return svg.element("line", **corners, stroke=colour, stroke_width=width)
