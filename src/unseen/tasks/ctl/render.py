"""One example for people: in words, and as an SVG picture above its sampling graph.

In the picture, symbols are circles and functions the arrows between them. A circle where one function meets the next
has the colour of that transition. The edges of the graph have three colours that colour-blind readers can tell apart.
"""

from __future__ import annotations

from cmath import exp, pi
from collections.abc import Iterator, Sequence
from html import escape

import numpy as np

from unseen.tasks import svg
from unseen.tasks.base import Examples
from unseen.tasks.ctl.automaton import apply_chain, testing_fault, training_fault
from unseen.tasks.ctl.encode import Order
from unseen.tasks.ctl.world import Edge, Node, World

Point = complex
"""x + y · 1j: differences, directions and turns by a right angle (· 1j) are then plain arithmetic."""

COLOURS = {"train": "#0072b2", "test": "#d55e00", "both": "#22262b"}
_EDGE_TEXT = {"train": "training only", "test": "testing only", "both": "training and testing"}
_GREY = "#6b737d"
_PALE = "#f4f5f7"
_NODE_RADIUS = 36.0
_CHAIN_LEFT = 40  # the first symbol of the chain
_CHAIN_Y = 84.0
_CHAIN_STEP = 64  # from one symbol to the next
_GRAPH_TOP = 150.0


# In words


def describe(name: str, world: World, order: Order, examples: Examples, index: int) -> str:
    """The chain, its intermediate symbols and groups, the answer, and whether it is in the training language."""
    functions, start = _chain(world, examples, index)
    symbols = [world.symbols[symbol] for symbol in apply_chain(world, functions, start)]
    count = f"{len(functions)} function{'' if len(functions) == 1 else 's'}"
    lines = [f"{name}, {count}: {_format_chain(world, order, functions, start)}"]
    for function, before, after in zip(functions, symbols, symbols[1:], strict=False):
        lines.append(f"  {function}({before}) = {after}    group {world.group_name(function)}")
    lines.append(f"answer: {world.symbols[int(examples.targets[index])]}")
    lines.append(_membership(world, functions, start))
    return "\n".join(lines)


def _chain(world: World, examples: Examples, index: int) -> tuple[list[str], int]:
    """The functions of an example by name, in order of application, and its start symbol."""
    functions = examples.factors["functions"][index].tolist()
    return [world.names[f] for f in functions if f >= 0], int(examples.factors["start"][index])


def _format_chain(world: World, order: Order, functions: list[str], start: int) -> str:
    """An example as it is written: `c b a 3`, or `3 a b c`."""
    tokens = [world.symbols[start], *functions]
    return " ".join(reversed(tokens) if order == "backward" else tokens)


def _membership(world: World, functions: list[str], start: int) -> str:
    """Whether a chain is in the training language, and why."""
    fault = training_fault(world, functions, start)
    if fault is not None:
        language = "in the test" if testing_fault(world, functions, start) is None else "not in the training"
        return f"{language} language: {fault}"
    groups = " → ".join(world.group_name(function) for function in functions)
    if len(functions) == 1:
        return f"in the training language: a single function of group {groups}"
    return f"in the training language: {groups}, training transition{'' if len(functions) == 2 else 's'} all the way"


# As a picture


def draw_picture(name: str, world: World, order: Order, examples: Examples, index: int) -> str:
    """Draw the chain of one example above the sampling graph, as SVG text."""
    functions, start = _chain(world, examples, index)
    title = f"{name}: {_format_chain(world, order, functions, start)} = {world.symbols[int(examples.targets[index])]}"
    note = _membership(world, functions, start)
    layers = _find_layers(world)
    points = _lay_out(world, layers)
    centres = np.array(list(points.values()))
    bottom = centres.imag.max() + _NODE_RADIUS + 50
    chain_width = _CHAIN_LEFT * 2 + _CHAIN_STEP * (len(functions) + 1)
    width = round(max(centres.real.max() + _NODE_RADIUS + 90, chain_width, 30 + 6.3 * len(note), 460))
    arrowheads = [_arrowhead(name, colour) for name, colour in {**COLOURS, "plain": _GREY}.items()]
    body = [
        svg.element("defs", "".join(arrowheads)),
        svg.text(16, 24, title, size=14, weight="bold"),
        svg.text(16, 42, note, colour=_GREY),
        *_draw_chain(world, functions, start),
        *_draw_edges(world, points, layered=len(layers) > 1),
        *(_draw_node(world, node, points[node.name]) for node in world.graph.nodes),
        *_draw_legend(world, bottom + 30),
    ]
    return svg.document(width, round(bottom + 50), title, body)


def _draw_chain(world: World, functions: Sequence[str], start: int) -> Iterator[str]:
    """Symbols and functions in order of application, with the group of each function under it."""
    y = _CHAIN_Y
    for step, function in enumerate(functions):
        x = _CHAIN_LEFT + _CHAIN_STEP * step
        middle = x + _CHAIN_STEP / 2
        yield svg.element(
            "line", x1=x + 15, y1=y, x2=x + _CHAIN_STEP - 17, y2=y, stroke=_GREY, marker_end="url(#plain)"
        )
        yield svg.text(middle, y - 7, function, anchor="middle", weight="bold")
        yield svg.text(middle, y + 18, world.group_name(function), anchor="middle", colour=_GREY)
    for step, symbol in enumerate(apply_chain(world, functions, start)):
        split = None
        if 0 < step < len(functions):
            split = _transition_split(world, functions[step - 1], functions[step])
        fill = COLOURS[split] if split else _PALE
        x = _CHAIN_LEFT + _CHAIN_STEP * step
        yield svg.element("circle", cx=x, cy=y, r=13, fill=fill, stroke=fill if split else svg.INK)
        text_colour = "#ffffff" if split else svg.INK
        yield svg.text(x, y + 4, world.symbols[symbol], anchor="middle", weight="bold", colour=text_colour)


def _transition_split(world: World, before: str, function: str) -> str | None:
    """The split of the edges between two functions' groups; None if there is none, or if it depends on the walk."""
    splits = set()
    for edge in world.graph.edges:
        groups = world.graph.node(edge.source).group, world.graph.node(edge.target).group
        if groups == (world.group_name(before), world.group_name(function)):
            splits.add(edge.split)
    return splits.pop() if len(splits) == 1 else None


def _find_layers(world: World) -> list[list[str]]:
    """The nodes by their distance from the start nodes."""
    layers = [[node.name for node in world.graph.nodes if node.start]]
    seen = set(layers[0])
    while True:
        following = {edge.target for edge in world.graph.edges if edge.source in layers[-1]} - seen
        if not following:
            return layers
        layers.append([node.name for node in world.graph.nodes if node.name in following])
        seen |= following


def _lay_out(world: World, layers: list[list[str]]) -> dict[str, Point]:
    """The centres of the nodes: in layers from the start nodes, or in a circle if all are start nodes."""
    points: dict[str, Point] = {}
    if len(layers) > 1:
        tallest = max(map(len, layers))
        for depth, layer in enumerate(layers):
            # Nodes are sorted by the mean height of their predecessors in training, so that a path stays level.
            heights = {}
            for name in layer:
                before = []
                for edge in world.graph.uses("train"):
                    if edge.target == name and edge.source in points:
                        before.append(points[edge.source].imag)
                heights[name] = sum(before) / len(before) if before else 0.0
            for row, name in enumerate(sorted(layer, key=heights.__getitem__)):
                y = _GRAPH_TOP + _NODE_RADIUS + 100 * (row + (tallest - len(layer)) / 2)
                points[name] = complex(130.0 + 200 * depth, y)
        return points
    count = len(world.graph.nodes)
    has_loops = any(edge.source == edge.target for edge in world.graph.edges)
    radius = {1: 0.0, 2: 110.0}.get(count, max(115.0, 24.0 * count))
    first_angle = pi if count == 2 else -pi / 2  # two side by side; more from the top on
    above = 60 if has_loops and count != 2 else 12  # room for the loop of the topmost node
    centre = complex(150 + radius, _GRAPH_TOP + _NODE_RADIUS + above + (radius if count > 2 else 0))
    for position, node in enumerate(world.graph.nodes):
        points[node.name] = centre + radius * exp(1j * (first_angle + 2 * pi * position / count))
    return points


def _draw_edges(world: World, points: dict[str, Point], layered: bool) -> Iterator[str]:
    """Self-loops outwards; edges back to an earlier layer as rails around the graph; all others as gentle curves."""
    middle = sum(points.values()) / len(points)
    rails: dict[str, list[Edge]] = {}
    curves: list[Edge] = []
    for edge in world.graph.edges:
        leads_back = points[edge.target].real <= points[edge.source].real and edge.source != edge.target
        if layered and leads_back:
            rails.setdefault(edge.split, []).append(edge)
        else:
            curves.append(edge)
    joined = [{edge.source, edge.target} for edge in curves]
    for edge in curves:
        if edge.source == edge.target:
            yield _path(_loop(points[edge.source], middle), edge)
        else:
            # Two edges between the same nodes bend to different sides; a single one is straight.
            bulge = 17 if joined.count({edge.source, edge.target}) > 1 else 0
            yield _path(_curve(points[edge.source], points[edge.target], bulge), edge)
    for lane, edges in enumerate(rails.values()):
        yield from _draw_rail(edges, points, lane, len(rails))
    for edge in world.graph.edges:
        if edge.symbols is not None:  # last, so that no edge crosses the text
            label = (points[edge.source] * 2 + points[edge.target] * 3) / 5
            x, y = label.real, label.imag
            yield svg.rectangle(x - 34, y - 8, 68, 15, rx=4, fill="#ffffff", opacity=0.9)
            yield svg.text(x, y + 3, "some symbols", size=10, anchor="middle", colour=_GREY)


def _draw_rail(edges: Sequence[Edge], points: dict[str, Point], lane: int, lanes: int) -> Iterator[str]:
    """Edges back to an earlier layer: out to the right, below everything, in from the left; a lane per split."""
    centres = np.array(list(points.values()))
    margin = _NODE_RADIUS + 28 + 14 * lane
    right_x = centres.real.max() + margin
    left_x = centres.real.min() - margin
    below = centres.imag.max() + _NODE_RADIUS + 24 + 14 * lane
    shift = 13.0 * (lane - (lanes - 1) / 2)
    for edge in edges:
        source, target = points[edge.source], points[edge.target]
        out_y = source.imag + shift
        in_y = target.imag + shift
        corners = [
            complex(source.real + _NODE_RADIUS, out_y),
            complex(right_x, out_y),
            complex(right_x, below),
            complex(left_x, below),
            complex(left_x, in_y),
            complex(target.real - _NODE_RADIUS - 3, in_y),
        ]
        yield _path("M" + "L".join(map(_pair, corners)), edge)


def _curve(source: Point, target: Point, bulge: float) -> str:
    """A curve from the rim of one node to the rim of another, bent to its left."""
    along = target - source
    normal = -1j * along / abs(along)
    control = (source + target) / 2 + normal * bulge * 2
    first = _rim(source, control, _NODE_RADIUS)
    last = _rim(target, control, _NODE_RADIUS + 3)  # room for the arrowhead
    return f"M{_pair(first)}Q{_pair(control)} {_pair(last)}"


def _loop(centre: Point, middle: Point) -> str:
    """A loop on the side of a node that faces away from the middle of the graph."""
    away = centre - middle
    outward = away / abs(away) if abs(away) > 1 else -1j
    tip = centre + outward * 2.6 * _NODE_RADIUS
    first_control = tip - 1j * outward * 34
    second_control = tip + 1j * outward * 34
    first = _rim(centre, first_control, _NODE_RADIUS)
    last = _rim(centre, second_control, _NODE_RADIUS + 3)
    return f"M{_pair(first)}C{_pair(first_control)} {_pair(second_control)} {_pair(last)}"


def _rim(centre: Point, towards: Point, radius: float) -> Point:
    """The point of a circle in the direction of another point."""
    along = towards - centre
    return centre + along / (abs(along) or 1.0) * radius


def _pair(point: Point) -> str:
    return f"{point.real:.1f} {point.imag:.1f}"


def _path(shape: str, edge: Edge) -> str:
    title = svg.element("title", escape(f"{edge.source} → {edge.target}: {_EDGE_TEXT[edge.split]}"))
    return svg.element("path", title, d=shape, fill="none", stroke_linejoin="round", **_edge_style(edge.split))


def _edge_style(split: str) -> dict[str, object]:
    return {
        "stroke": COLOURS[split],
        "stroke_width": 2,
        "stroke_dasharray": "7 4" if split == "test" else "none",
        "marker_end": f"url(#{split})",
    }


def _draw_node(world: World, node: Node, centre: Point) -> str:
    functions = world.groups[node.group]
    span = functions[0] if len(functions) == 1 else f"{functions[0]} … {functions[-1]}"
    roles = [role for role, applies in (("start", node.start), ("end", node.end)) if applies]
    x = centre.real
    y = centre.imag
    return (
        svg.element("circle", cx=x, cy=y, r=_NODE_RADIUS, fill=_PALE, stroke=svg.INK, stroke_width=1.5)
        + svg.text(x, y - 6, node.name, size=14, anchor="middle", weight="bold")
        + svg.text(x, y + 9, f"{span} ({len(functions)})", size=10, anchor="middle")
        + svg.text(x, y + 22, " · ".join(roles), size=9, anchor="middle", colour=_GREY)
    )


def _draw_legend(world: World, y: float) -> Iterator[str]:
    x = 16.0
    for split, text in _EDGE_TEXT.items():
        if any(edge.split == split for edge in world.graph.edges):
            yield svg.element("line", "", x1=x, y1=y, x2=x + 30, y2=y, **_edge_style(split))
            yield svg.text(x + 40, y + 4, text)
            x += 52 + 6.5 * len(text)


def _arrowhead(name: str, colour: str) -> str:
    triangle = svg.element("path", d="M0 0L10 5L0 10z", fill=colour)
    size = {"viewBox": "0 0 10 10", "refX": 8, "refY": 5, "markerWidth": 6, "markerHeight": 6}
    return svg.element("marker", triangle, id=name, orient="auto-start-reverse", **size)
