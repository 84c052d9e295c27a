"""One example and the sampling graph it comes from, as SVG text.

Above, the chain: symbols in circles, functions between them. A circle where one function meets the next has the colour
of that transition. Below, the graph, its edges in three colours that colour-blind readers can tell apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from math import cos, hypot, pi, sin

from unseen.tasks.base import Examples
from unseen.tasks.ctl.encode import Order
from unseen.tasks.ctl.grammar import group_of, intermediate
from unseen.tasks.ctl.graph import Edge, Node
from unseen.tasks.ctl.views import chain, reading, standing
from unseen.tasks.ctl.world import World

Point = tuple[float, float]

COLOURS = {"train": "#0072b2", "test": "#d55e00", "both": "#22262b"}
_WORDS = {"train": "training only", "test": "testing only", "both": "training and testing"}
_DASHES = {"train": "none", "test": "7 4", "both": "none"}
_INK, _GREY, _PALE = "#22262b", "#6b737d", "#f4f5f7"
_RADIUS, _STEP, _LEFT = 36.0, 64, 40
_TOP = 150.0


def picture(name: str, world: World, order: Order, examples: Examples, index: int) -> str:
    """The chain of one example above the sampling graph."""
    functions, start = chain(world, examples, index)
    title = f"{name}: {reading(world, order, functions, start)} = {world.symbols[int(examples.targets[index])]}"
    note = standing(world, functions, start)
    places = _layout(world)
    right = max(x for x, _ in places.values()) + _RADIUS + 90
    bottom = max(y for _, y in places.values()) + _RADIUS + 50
    width = round(max(right, _LEFT * 2 + _STEP * (len(functions) + 1), 30 + 6.3 * len(note), 460))
    height = round(bottom + 50)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
            'font-family="Helvetica, Arial, sans-serif" font-size="12">',
            f"<title>{escape(title)}</title>",
            "<defs>",
            *(_arrowhead(split) for split in COLOURS),
            "</defs>",
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
            _text(16, 24, title, weight="bold", size=14),
            _text(16, 42, note, colour=_GREY),
            *_chain(world, functions, start),
            *_edges(world, places),
            *(_node(world, node, places[node.name]) for node in world.graph.nodes),
            *_legend(world, bottom + 30),
            "</svg>",
        ]
    )


def _chain(world: World, functions: Sequence[str], start: int) -> Iterator[str]:
    """Symbols and functions in order of application, with the group of each function under it."""
    y = 84.0
    symbols = intermediate(world, functions, start)
    for step, function in enumerate(functions):
        x = _LEFT + _STEP * step
        yield f'<line x1="{x + 15}" y1="{y}" x2="{x + _STEP - 17}" y2="{y}" stroke="{_GREY}" marker-end="url(#plain)"/>'
        yield _text(x + _STEP / 2, y - 7, function, "middle", "bold")
        yield _text(x + _STEP / 2, y + 18, group_of(world, function), "middle", colour=_GREY)
    for step, symbol in enumerate(symbols):
        meets = 0 < step < len(functions)
        split = _meeting(world, functions[step - 1], functions[step]) if meets else None
        fill, ink = (COLOURS[split], "#ffffff") if split else (_PALE, _INK)
        x = _LEFT + _STEP * step
        yield f'<circle cx="{x}" cy="{y}" r="13" fill="{fill}" stroke="{_INK if not split else fill}"/>'
        yield _text(x, y + 4, world.symbols[symbol], "middle", "bold", ink)


def _meeting(world: World, before: str, function: str) -> str | None:
    """The split of the edge between two functions' groups; None if there is none, or if it depends on the walk."""
    pair = group_of(world, before), group_of(world, function)
    found = {
        edge.split
        for edge in world.graph.edges
        if (world.graph.node(edge.source).group, world.graph.node(edge.target).group) == pair
    }
    return found.pop() if len(found) == 1 else None


def _layout(world: World) -> dict[str, Point]:
    """Where the nodes are: in layers from the start nodes, or in a circle if all are start nodes."""
    layers = _layers(world)
    if len(layers) == 1:
        looped = any(edge.source == edge.target for edge in world.graph.edges)
        return _circle([node.name for node in world.graph.nodes], looped)
    tallest, places = max(map(len, layers)), dict[str, Point]()
    for depth, layer in enumerate(layers):
        heights = {name: _pull(world, name, places) for name in layer}
        for row, name in enumerate(sorted(layer, key=lambda name: heights[name])):
            y = _TOP + _RADIUS + 100 * (row + (tallest - len(layer)) / 2)
            places[name] = 130.0 + 200 * depth, y
    return places


def _layers(world: World) -> list[list[str]]:
    found = [[node.name for node in world.graph.nodes if node.start]]
    seen = set(found[0])
    while True:
        following = {edge.target for edge in world.graph.edges if edge.source in found[-1]} - seen
        if not following:
            return found
        found.append([node.name for node in world.graph.nodes if node.name in following])
        seen |= following


def _pull(world: World, name: str, places: dict[str, Point]) -> float:
    """The mean height of the nodes before it in training, so that a path stays on its side."""
    before = [
        places[edge.source][1] for edge in world.graph.uses("train") if edge.target == name and edge.source in places
    ]
    return sum(before) / len(before) if before else 0.0


def _circle(names: list[str], looped: bool) -> dict[str, Point]:
    count = len(names)
    radius = {1: 0.0, 2: 110.0}.get(count, max(115.0, 24.0 * count))
    shift = pi if count == 2 else -pi / 2  # two side by side; more from the top on
    above = 60 if looped and count != 2 else 12  # room for the loop of the topmost node
    middle = 150 + radius, _TOP + _RADIUS + above + (radius if count > 2 else 0)
    return {
        name: (
            middle[0] + radius * cos(shift + 2 * pi * place / count),
            middle[1] + radius * sin(shift + 2 * pi * place / count),
        )
        for place, name in enumerate(names)
    }


def _edges(world: World, places: dict[str, Point]) -> Iterator[str]:
    """Self-loops outwards, edges forward or around the circle bent a little, edges back as rails or arcs below."""
    middle = tuple(sum(point[axis] for point in places.values()) / len(places) for axis in (0, 1))
    rails: dict[str, list[Edge]] = {}
    drawn = [(edge.source, edge.target) for edge in world.graph.edges if not _back(world, edge, places)]
    for edge in world.graph.edges:
        source, target = places[edge.source], places[edge.target]
        if edge.source == edge.target:
            yield _path(_loop(source, middle), edge)
        elif _back(world, edge, places):
            rails.setdefault(edge.split, []).append(edge)
        else:
            twin = drawn.count((edge.source, edge.target)) + drawn.count((edge.target, edge.source)) > 1
            yield _path(_bend(source, target, 17 if twin else 0), edge)
    for lane, edges in enumerate(rails.values()):
        yield from _rail(edges, places, lane, len(rails))
    for edge in world.graph.edges:
        if edge.symbols is not None:  # last, so that nothing crosses the words
            (x1, y1), (x2, y2) = places[edge.source], places[edge.target]
            x, y = (x1 * 2 + x2 * 3) / 5, (y1 * 2 + y2 * 3) / 5
            yield f'<rect x="{x - 34:.1f}" y="{y - 8:.1f}" width="68" height="15" rx="4" fill="#ffffff" opacity="0.9"/>'
            yield _text(x, y + 3, "some symbols", "middle", colour=_GREY, size=10)


def _back(world: World, edge: Edge, places: dict[str, Point]) -> bool:
    """Whether an edge leads back to an earlier layer, or stays in one."""
    leads_back = places[edge.target][0] <= places[edge.source][0]
    return len(_layers(world)) > 1 and leads_back and edge.source != edge.target


def _rail(edges: Sequence[Edge], places: dict[str, Point], lane: int, lanes: int) -> Iterator[str]:
    """Edges back to an earlier layer: out to the right, below everything, in from the left."""
    right = max(x for x, _ in places.values()) + _RADIUS + 28 + 14 * lane
    left = min(x for x, _ in places.values()) - _RADIUS - 28 - 14 * lane
    below = max(y for _, y in places.values()) + _RADIUS + 24 + 14 * lane
    shift = 13.0 * (lane - (lanes - 1) / 2)
    for edge in edges:
        (x1, y1), (x2, y2) = places[edge.source], places[edge.target]
        points = [
            (x1 + _RADIUS, y1 + shift),
            (right, y1 + shift),
            (right, below),
            (left, below),
            (left, y2 + shift),
            (x2 - _RADIUS - 3, y2 + shift),
        ]
        yield _path("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points), edge)


def _bend(source: Point, target: Point, bulge: float) -> str:
    """A curve from the rim of one circle to the rim of another, bent to its left."""
    along = target[0] - source[0], target[1] - source[1]
    length = hypot(*along)
    normal = along[1] / length, -along[0] / length
    control = ((source[0] + target[0]) / 2 + normal[0] * bulge * 2, (source[1] + target[1]) / 2 + normal[1] * bulge * 2)
    begin, end = _rim(source, control, _RADIUS), _rim(target, control, _RADIUS + 3)
    return f"M{begin[0]:.1f} {begin[1]:.1f}Q{control[0]:.1f} {control[1]:.1f} {end[0]:.1f} {end[1]:.1f}"


def _loop(centre: Point, middle: Sequence[float]) -> str:
    """A loop on the side away from the middle of the graph."""
    away = centre[0] - middle[0], centre[1] - middle[1]
    length = hypot(*away)
    out = (away[0] / length, away[1] / length) if length > 1 else (0.0, -1.0)
    side = -out[1], out[0]
    reach = 2.6 * _RADIUS
    ends = [
        (centre[0] + out[0] * reach + sign * side[0] * 34, centre[1] + out[1] * reach + sign * side[1] * 34)
        for sign in (-1, 1)
    ]
    begin, end = _rim(centre, ends[0], _RADIUS), _rim(centre, ends[1], _RADIUS + 3)
    return (
        f"M{begin[0]:.1f} {begin[1]:.1f}C{ends[0][0]:.1f} {ends[0][1]:.1f} {ends[1][0]:.1f} {ends[1][1]:.1f} "
        f"{end[0]:.1f} {end[1]:.1f}"
    )


def _rim(centre: Point, towards: Point, radius: float) -> Point:
    along = towards[0] - centre[0], towards[1] - centre[1]
    length = hypot(*along) or 1.0
    return centre[0] + along[0] / length * radius, centre[1] + along[1] / length * radius


def _path(shape: str, edge: Edge) -> str:
    return (
        f'<path d="{shape}" fill="none" stroke="{COLOURS[edge.split]}" stroke-width="2" stroke-linejoin="round" '
        f'stroke-dasharray="{_DASHES[edge.split]}" marker-end="url(#{edge.split})">'
        f"<title>{escape(f'{edge.source} → {edge.target}: {_WORDS[edge.split]}')}</title></path>"
    )


def _node(world: World, node: Node, place: Point) -> str:
    functions = world.groups[node.group]
    span = functions[0] if len(functions) == 1 else f"{functions[0]} … {functions[-1]}"
    role = " · ".join(word for word, holds in (("start", node.start), ("end", node.end)) if holds)
    x, y = place
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{_RADIUS}" fill="{_PALE}" stroke="{_INK}" stroke-width="1.5"/>'
        + _text(x, y - 6, node.name, "middle", "bold", size=14)
        + _text(x, y + 9, f"{span} ({len(functions)})", "middle", size=10)
        + _text(x, y + 22, role, "middle", colour=_GREY, size=9)
    )


def _legend(world: World, y: float) -> Iterator[str]:
    x = 16.0
    for split in COLOURS:
        if any(edge.split == split for edge in world.graph.edges):
            yield (
                f'<line x1="{x}" y1="{y}" x2="{x + 30}" y2="{y}" stroke="{COLOURS[split]}" stroke-width="2" '
                f'stroke-dasharray="{_DASHES[split]}" marker-end="url(#{split})"/>'
            )
            yield _text(x + 40, y + 4, _WORDS[split])
            x += 52 + 6.5 * len(_WORDS[split])


def _arrowhead(split: str) -> str:
    heads = {split: COLOURS[split]} | ({"plain": _GREY} if split == "train" else {})
    return "".join(
        f'<marker id="{name}" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="6" markerHeight="6" '
        f'orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" fill="{colour}"/></marker>'
        for name, colour in heads.items()
    )


def _text(
    x: float, y: float, text: str, anchor: str = "start", weight: str = "normal", colour: str = _INK, size: int = 12
) -> str:
    style = f'text-anchor="{anchor}" font-weight="{weight}" font-size="{size}" fill="{colour}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(text)}</text>'
