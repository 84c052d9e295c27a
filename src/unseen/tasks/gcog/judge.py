"""Foreign examples, one JSON object per line, judged on form and target.

`{"tree": T, "objects": [{"shape", "color", "x", "y"}, …], "target": class}`; T as in `tree.py`. What else a line holds
is not looked at. Two objects that fit are a defect if the path leads there, unless the smallest (x, y) counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unseen.errors import CheckFailed, nearest
from unseen.tasks.base import Judgement, Mismatch
from unseen.tasks.gcog.schema import Schema
from unseen.tasks.gcog.solver import Ties, Unanswerable, solve
from unseen.tasks.gcog.tree import Ask, Branch, Named, Thing, Tree, levels
from unseen.tasks.text import read_lines


def judge_file(path: Path, schema: Schema, ties: Ties) -> Judgement:
    """Every line of a file; each defect is named."""
    lines = read_lines(path)
    if not lines:
        raise CheckFailed(f"{path}, line 1: the file is empty")
    found = [Mismatch(number, *defect) for number, line in enumerate(lines, 1) for defect in _judge(schema, line, ties)]
    return Judgement(len(lines), tuple(found))


Defect = tuple[str, str, str]
"""What it is that is wrong last, as in `Mismatch`: what was found, what was expected, and where."""


def _judge(schema: Schema, line: bytes, ties: Ties) -> Iterator[Defect]:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        yield _shown(line.decode("utf-8", "replace")), "expected one JSON object", "the line"
        return
    missing = [key for key in ("tree", "objects", "target") if key not in data]
    if missing:
        yield f"without {', '.join(missing)}", "it needs tree, objects and target", "the line"
        return
    reader = _Reader(schema)
    tree, things, target = reader.tree(data["tree"]), reader.things(data["objects"]), reader.target(data["target"])
    yield from reader.defects
    if reader.defects or tree is None or target is None:
        return
    try:
        answer = solve(schema, tree, things, ties).answer
    except Unanswerable as error:
        hint = "; with --ties smallest, the smallest (x, y) counts" if "there are" in str(error) else ""
        yield f"not to be answered ({error})", f"it must be about one object{hint}", "the question"
        return
    if answer != target:
        yield _named_class(schema, target), _named_class(schema, answer), "the answer"


def _named_class(schema: Schema, index: int) -> str:
    return f"{index} ({schema.answer_name(index)})"


def _shown(value: object) -> str:
    try:
        words = value if isinstance(value, str) else json.dumps(value)
    except RecursionError:
        words = "something nested too deeply"
    return repr(words if len(words) <= 60 else words[:57] + "…")


class _Reader:
    """Reads the parts of one line and notes what is wrong with them."""

    def __init__(self, schema: Schema) -> None:
        self.schema, self.defects = schema, list[Defect]()

    def wrong(self, what: str, given: str, expected: str) -> None:
        """Note a defect."""
        self.defects.append((given, expected, what))

    def tree(self, data: Any) -> Tree | None:
        """The tree, if all of it can be read."""
        tree = self._node(data)
        if tree is not None:
            depths = {2 * level + 1 for level, nodes in enumerate(levels(tree)) for n in nodes if isinstance(n, Ask)}
            if len(depths) > 1:
                ends = " and ".join(map(str, sorted(depths)))
                self.wrong("the tree", f"uneven, with leaves at depths {ends}", "all leaves are equally deep")
        return tree

    def _node(self, data: Any) -> Tree | None:
        if isinstance(data, dict) and "if" in data:
            if not {"then", "else"} <= data.keys():
                self.wrong("the conditional", "without then and else", "it needs both")
                return None
            condition, then, otherwise = self._ask(data["if"]), self._node(data["then"]), self._node(data["else"])
            if condition is not None and not self.schema.operators[condition.operator].boolean:
                self.wrong("the condition", condition.operator, "only a boolean operator may stand above a conditional")
            if condition is None or then is None or otherwise is None:
                return None
            return Branch(condition, then, otherwise)
        return self._ask(data)

    def _ask(self, data: Any) -> Ask | None:
        form = isinstance(data, dict) and isinstance(data.get("op"), str) and isinstance(data.get("objects"), list)
        if not form:
            self.wrong("the operator", _shown(data), "expected an object with op and objects")
            return None
        if data["op"] not in self.schema.operators:
            self.wrong(
                "the operator",
                _shown(data["op"]),
                f"there is none of that name. {nearest(data['op'], self.schema.operators)}",
            )
            return None
        operator, count, number = self.schema.operators[data["op"]], len(data["objects"]), data.get("number")
        if count not in operator.objects:
            allowed = " or ".join(map(str, operator.objects))
            self.wrong(f"the number of objects of {operator.name}", str(count), f"it is about {allowed}")
            return None
        numbered = operator.kind == "equal"
        if numbered != (type(number) is int):
            self.wrong(
                f"the number of {operator.name}",
                _shown(number),
                "it compares with a whole number" if numbered else "it has none",
            )
            return None
        objects = [self._named(operator.name, operator.named, given) for given in data["objects"]]
        if any(named is None for named in objects):
            return None
        return Ask(operator.name, tuple(named for named in objects if named is not None), number)

    def _named(self, operator: str, names: tuple[int, ...], data: Any) -> Named | None:
        if not isinstance(data, dict):
            self.wrong(f"an object of {operator}", _shown(data), "expected an object with shape and color")
            return None
        found: list[str | None] = []
        for number, (feature, values) in enumerate(self.schema.features):
            value = data.get(feature)
            if number not in names and value is not None:
                self.wrong(f"the {feature} of {operator}", _shown(value), "it is what the operator does not name: null")
                return None
            if number in names and not (isinstance(value, str) and value in values):
                self.wrong(f"the {feature} of {operator}", _shown(value), self._unknown(value, values))
                return None
            found.append(value)
        return tuple(found)

    @staticmethod
    def _unknown(value: Any, values: tuple[str, ...]) -> str:
        hint = f" {nearest(value, values)}" if isinstance(value, str) else ""
        return f"it must be one of those there are.{hint}"

    def things(self, data: Any) -> list[Thing]:
        """The objects on the grid."""
        if not isinstance(data, list):
            self.wrong("'objects'", _shown(data), "expected a list")
            return []
        found = [thing for given in data if (thing := self._thing(given)) is not None]
        places = [(thing.x, thing.y) for thing in found]
        for x, y in dict.fromkeys(place for place in places if places.count(place) > 1):
            self.wrong(f"the cell ({x}, {y})", f"taken by {places.count((x, y))} objects", "a cell holds one")
        return found

    def _thing(self, data: Any) -> Thing | None:
        if not isinstance(data, dict):
            self.wrong("an object on the grid", _shown(data), "expected an object with shape, color, x and y")
            return None
        values = []
        for feature, known in self.schema.features:
            if not (isinstance(data.get(feature), str) and data[feature] in known):
                self.wrong(
                    f"the {feature} of an object on the grid",
                    _shown(data.get(feature)),
                    self._unknown(data.get(feature), known),
                )
                return None
            values.append(data[feature])
        for axis, size in (("x", self.schema.columns), ("y", self.schema.rows)):
            if type(data.get(axis)) is not int or not 0 <= data[axis] < size:
                self.wrong(
                    f"{axis} of the {' '.join(reversed(values))}",
                    _shown(data.get(axis)),
                    f"it must be a whole number from 0 to {size - 1}",
                )
                return None
        return Thing(tuple(values), data["x"], data["y"])

    def target(self, data: Any) -> int | None:
        """The class of the answer, given as a number or as an object that holds it as `index`."""
        index = data.get("index") if isinstance(data, dict) else data
        if type(index) is not int or not 0 <= index < len(self.schema.answers):
            self.wrong("the target", _shown(data), f"it must be a class from 0 to {len(self.schema.answers) - 1}")
            return None
        return index
