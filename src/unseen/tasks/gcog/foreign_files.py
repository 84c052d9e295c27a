"""Foreign examples, one JSON object per line: every defect of their form and of their target is reported.

A line is `{"tree": T, "objects": [{"shape", "color", "x", "y"}, …], "target": class}` with T as in `tree.py`; other keys
are ignored. A question that several objects match is a defect if it is on the path, unless the smallest (x, y) counts.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from unseen.errors import CheckFailed, nearest
from unseen.tasks.base import ForeignFileReport, Mismatch, read_lines
from unseen.tasks.gcog.schema import Operator, Schema, Ties
from unseen.tasks.gcog.solver import Unanswerable, solve
from unseen.tasks.gcog.tree import Conditional, Description, GridObject, Query, Tree, list_levels


def judge_file(path: Path, schema: Schema, ties: Ties) -> ForeignFileReport:
    """Compare every line of a file with the schema and with the plain solver."""
    lines = read_lines(path)
    if not lines:
        raise CheckFailed(f"{path}, line 1: the file is empty")
    mismatches: list[Mismatch] = []
    for number, line in enumerate(lines, 1):
        judge = _LineJudge(schema, number)
        judge.judge(line, ties)
        mismatches += judge.mismatches
    return ForeignFileReport(len(lines), tuple(mismatches))


class _Invalid(Exception):
    """A value cannot be used; the reason is in the list of mismatches."""


class _LineJudge:
    """Reads the values of one line and collects what is wrong with them."""

    def __init__(self, schema: Schema, line: int) -> None:
        self.schema = schema
        self.line = line
        self.mismatches: list[Mismatch] = []

    def report(self, subject: str, actual: str, expected: str) -> _Invalid:
        """Add a mismatch; the result can be raised if nothing more can be read."""
        self.mismatches.append(Mismatch(self.line, actual, expected, subject))
        return _Invalid()

    def judge(self, line: bytes, ties: Ties) -> None:
        """Check the form of the line, then solve it."""
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            data = None
        if not isinstance(data, dict):
            self.report("the line", _quote(line.decode("utf-8", "replace")), "it must be one JSON object")
            return
        missing = [key for key in ("tree", "objects", "target") if key not in data]
        if missing:
            self.report("the line", f"without {', '.join(missing)}", "it must have tree, objects and target")
            return
        tree = self.read_tree(data["tree"])
        objects = self.read_objects(data["objects"])
        target = self.read_target(data["target"])
        if self.mismatches or tree is None or target is None:
            return
        try:
            answer = solve(self.schema, tree, objects, ties).answer
        except Unanswerable as error:
            hint = "; with --ties smallest, the smallest (x, y) counts" if error.ambiguous else ""
            self.report("the question", f"unanswerable ({error})", f"it must be about exactly one object{hint}")
            return
        if answer != target:
            names = [f"{index} ({self.schema.answer_name(index)})" for index in (target, answer)]
            self.report("the answer", *names)

    def refuse_keys(self, subject: str, data: dict[str, Any], known: Sequence[str]) -> None:
        """Report every key that nothing would read."""
        for key in data:
            if key not in known:
                self.report(f"{subject}: the key", _quote(key), f"it is unknown. {nearest(key, known)}")

    def read_tree(self, data: Any) -> Tree | None:
        """Return the tree, or None if some of it cannot be read; every defect is reported."""
        tree = self._read_node(data)
        if tree is not None:
            depths = set()
            for level, nodes in enumerate(list_levels(tree)):
                if any(isinstance(node, Query) for node in nodes):
                    depths.add(2 * level + 1)
            if len(depths) > 1:
                actual = f"uneven, with leaves at depths {' and '.join(map(str, sorted(depths)))}"
                self.report("the tree", actual, "all leaves must have the same depth")
        return tree

    def _read_node(self, data: Any) -> Tree | None:
        if not (isinstance(data, dict) and "if" in data):
            return self._read_query(data)
        if not {"then", "else"} <= data.keys():
            self.report("the conditional", "without then and else", "it must have both")
            return None
        self.refuse_keys("the conditional", data, ("if", "then", "else"))
        # Read all three before giving up, so that all defects are reported.
        test = self._read_query(data["if"])
        then = self._read_node(data["then"])
        otherwise = self._read_node(data["else"])
        if test is not None and not self.schema.operators[test.operator].boolean:
            self.report("the test", test.operator, "it must be a boolean operator")
        if test is None or then is None or otherwise is None:
            return None
        return Conditional(test, then, otherwise)

    def _read_query(self, data: Any) -> Query | None:
        try:
            operator = self._read_operator(data)
        except _Invalid:
            return None
        objects: list[Description] = []
        for stated in data["objects"]:
            with suppress(_Invalid):
                objects.append(self._read_description(operator, stated))
        if len(objects) < len(data["objects"]):
            return None
        return Query(operator.name, tuple(objects), data.get("number"))

    def _read_operator(self, data: Any) -> Operator:
        well_formed = isinstance(data, dict) and isinstance(data.get("op"), str)
        if not well_formed or not isinstance(data.get("objects"), list):
            raise self.report("the operator", _quote(data), "it must be an object with op and objects")
        self.refuse_keys("the operator", data, ("op", "objects", "number"))
        if data["op"] not in self.schema.operators:
            hint = nearest(data["op"], self.schema.operators)
            raise self.report("the operator", _quote(data["op"]), f"there is none of that name. {hint}")
        operator = self.schema.operators[data["op"]]
        count = len(data["objects"])
        if count not in operator.object_counts:
            allowed = " or ".join(map(str, operator.object_counts))
            raise self.report(f"the number of objects of {operator.name}", str(count), f"it must be {allowed}")
        numbered = operator.category == "equal"
        if numbered != (type(data.get("number")) is int):  # type: a bool is an int, but no number here
            expected = "it must be a whole number" if numbered else "there must be none"
            raise self.report(f"the number of {operator.name}", _quote(data.get("number")), expected)
        return operator

    def _read_description(self, operator: Operator, data: Any) -> Description:
        if not isinstance(data, dict):
            raise self.report(
                f"an object of {operator.name}", _quote(data), "it must be an object with shape and color"
            )
        names = [feature for feature, _ in self.schema.features]
        self.refuse_keys(f"an object of {operator.name}", data, names)
        values: list[str | None] = []
        for index, (feature, known_values) in enumerate(self.schema.features):
            value = data.get(feature)
            subject = f"the {feature} of {operator.name}"
            if index in operator.named_features:
                value = self._read_value(subject, value, known_values)
            elif value is not None:
                raise self.report(subject, _quote(value), "it must be null, because the operator does not state it")
            values.append(value)
        return tuple(values)

    def _read_value(self, subject: str, value: Any, known_values: Sequence[str]) -> str:
        if isinstance(value, str) and value in known_values:
            return value
        hint = f" {nearest(value, known_values)}" if isinstance(value, str) else ""
        raise self.report(subject, _quote(value), f"it must be a known value.{hint}")

    def read_objects(self, data: Any) -> list[GridObject]:
        """Return the objects on the grid that can be read."""
        if not isinstance(data, list):
            self.report("'objects'", _quote(data), "it must be a list")
            return []
        objects: list[GridObject] = []
        for entry in data:
            with suppress(_Invalid):
                objects.append(self._read_object(entry))
        objects_in_cell = Counter((grid_object.x, grid_object.y) for grid_object in objects)
        for (x, y), count in objects_in_cell.items():
            if count > 1:
                self.report(f"the cell ({x}, {y})", f"occupied by {count} objects", "there must be at most one")
        return objects

    def _read_object(self, data: Any) -> GridObject:
        if not isinstance(data, dict):
            raise self.report("an object on the grid", _quote(data), "it must be an object with shape, color, x and y")
        names = [feature for feature, _ in self.schema.features]
        # The published samples mark distractors; nothing depends on the mark.
        self.refuse_keys("an object on the grid", data, [*names, "x", "y", "distractor"])
        values: list[str] = []
        for feature, known_values in self.schema.features:
            subject = f"the {feature} of an object on the grid"
            values.append(self._read_value(subject, data.get(feature), known_values))
        for axis, size in (("x", self.schema.columns), ("y", self.schema.rows)):
            coordinate = data.get(axis)
            if type(coordinate) is not int or not 0 <= coordinate < size:
                subject = f"{axis} of the {' '.join(reversed(values))}"
                raise self.report(subject, _quote(coordinate), f"it must be a whole number from 0 to {size - 1}")
        return GridObject(tuple(values), data["x"], data["y"])

    def read_target(self, data: Any) -> int | None:
        """Return the class of the answer, given as a number or as an object that holds it as `index`."""
        index = data.get("index") if isinstance(data, dict) else data
        if type(index) is not int or not 0 <= index < len(self.schema.answers):
            expected = f"it must be a class from 0 to {len(self.schema.answers) - 1}"
            self.report("the target", _quote(data), expected)
            return None
        return index


def _quote(value: object) -> str:
    """Return a value in quotation marks, shortened to 60 characters."""
    try:
        text = value if isinstance(value, str) else json.dumps(value)
    except RecursionError:
        text = "something nested too deeply"
    return repr(text if len(text) <= 60 else text[:57] + "…")
