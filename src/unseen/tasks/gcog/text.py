"""Questions and examples in words: sentences in three forms, read back exactly, and the description of an example.

released   [ if current red a exist , then color of current b , else loc of current blue c ]
english    If there is a red a, then name the color of the b, otherwise say where the blue c is.
prefix     (if (Exist red a) (GetColor b) (GetLocation blue c))
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

from unseen.errors import UsageError
from unseen.tasks.gcog.schema import Operator, Schema, format_answer
from unseen.tasks.gcog.solver import Solution, Step
from unseen.tasks.gcog.tree import Conditional, Description, GridObject, Query, Tree, get_query, measure_depth

FormName = Literal["released", "english", "prefix"]
FORM_NAMES: tuple[FormName, ...] = get_args(FormName)


# The clause of each operator, by name or by category, in the released form and in English. Placeholders: {0} and {1} for
# objects, {a0} and {a1} for objects with an indefinite article, {n} for a number, {f} for the feature and {v} for the
# value that the operator is about; <+>, <*> and <&> for one object or two, joined by a sign or by "and the".
_CLAUSES = {
    "Exist": ("{0} exist", "there is {a0}"),
    "GetLocation": ("loc of {0}", "say where the {0} is"),
    "SumEven": ("<+> sum is even", "the sum of the coordinates of the <&> is even"),
    "SumOdd": ("<+> sum is odd", "the sum of the coordinates of the <&> is odd"),
    "ProductEven": ("<*> product is even", "the product of the coordinates of the <&> is even"),
    "ProductOdd": ("<*> product is odd", "the product of the coordinates of the <&> is odd"),
    "ExistAnd": ("{0} and {1} exist", "there are both {a0} and {a1}"),
    "ExistOr": ("{0} or {1} exist", "there is {a0} or {a1}"),
    "ExistXor": ("{0} xor {1} exist", "there is either {a0} or {a1} but not both"),
    "AddEqual": ("<+> sum is {n}", "the sum of the coordinates of the <&> is {n}"),
    "SubtractEqual": ("<+> negative sum is {n}", "minus the sum of the coordinates of the <&> is {n}"),
    "MultiplyEqual": ("<*> product is {n}", "the product of the coordinates of the <&> is {n}"),
    "get": ("{f} of {0}", "name the {f} of the {0}"),
    "is": ("{f} of {0} is {v}", "the {f} of the {0} is {v}"),
    "same": ("{0} and {1} same {f}", "the {0} and the {1} have the same {f}"),
    "not same": ("{0} and {1} not same {f}", "the {0} and the {1} have a different {f}"),
}
_JOINED = {"<+>": "{0} + {1}", "<*>": "{0} * {1}", "<&>": "{0} and the {1}"}


@dataclass(frozen=True)
class SentenceForm:
    """The words of a form.

    Attributes:
        index: its place in the table of clauses.
        opening, then, otherwise, closing: the words around the clauses of a conditional.
        before_object: the word before every object.
        boolean_leaf: the words before a boolean operator that is a leaf.
        finish: makes a sentence of a clause, given whether it is a single operator; `strip` undoes it.
    """

    index: int
    opening: str
    then: str
    otherwise: str
    closing: str
    before_object: str
    boolean_leaf: str
    finish: Callable[[str, bool], str]
    strip: Callable[[str], str]

    def get_clause(self, operator: Operator, objects: int) -> str:
        """Return the clause of an operator that is about one or two objects."""
        key = operator.name
        if key not in _CLAUSES:
            key = "not same" if operator.category == "same" and operator.negated else operator.category
        clause = _CLAUSES[key][self.index]
        for placeholder, joined in _JOINED.items():
            clause = clause.replace(placeholder, "{0}" if objects == 1 else joined)
        return clause


FORMS: dict[FormName, SentenceForm] = {
    "released": SentenceForm(
        index=0,
        opening="[ if ",
        then=" , then ",
        otherwise=" , else ",
        closing=" ]",
        before_object="current ",
        boolean_leaf="",
        finish=lambda clause, single: f"{clause} ?" if single else clause,
        strip=lambda sentence: sentence.removesuffix(" ?"),
    ),
    "english": SentenceForm(
        index=1,
        opening="if ",
        then=", then ",
        otherwise=", otherwise ",
        closing="",
        before_object="",
        boolean_leaf="say whether ",
        finish=lambda clause, single: f"{clause[:1].upper()}{clause[1:]}.",
        strip=lambda sentence: sentence[:1].lower() + sentence[1:].removesuffix("."),
    ),
}


def write_sentence(schema: Schema, tree: Tree, form: FormName = "english") -> str:
    """Return a question in words.

    >>> leaves = Query("GetColor", (("b", None),)), Query("GetShape", ((None, "blue"),))
    >>> tree = Conditional(Query("Exist", (("a", "red"),)), *leaves)
    >>> for form in ("released", "english", "prefix"):
    ...     write_sentence(Schema(), tree, form)
    '[ if current red a exist , then color of current b , else shape of current blue object ]'
    'If there is a red a, then name the color of the b, otherwise name the shape of the blue object.'
    '(if (Exist red a) (GetColor b) (GetShape blue))'
    """
    if form == "prefix":
        return _write_prefix(tree)
    return FORMS[form].finish(_write_tree(schema, tree, FORMS[form]), isinstance(tree, Query))


def read_sentence(schema: Schema, text: str, form: FormName = "english") -> Tree:
    """Return the tree of a sentence; raise `UsageError` if the sentence is not exactly of the form.

    >>> read_sentence(Schema(), "Say whether there is an orange q.")
    Query(operator='Exist', objects=(('q', 'orange'),), number=None)
    """
    if form == "prefix":
        tokens = re.findall(r"[()]|[^\s()]+", text)
        tree, remaining_tokens = _read_prefix(schema, tokens)
        if remaining_tokens:
            extra = " ".join(remaining_tokens[:8])
            raise UsageError(f"prefix form: expected the end of the question, got {extra!r}")
        return tree
    tree, remainder = _read_tree(schema, FORMS[form].strip(text), form)
    if remainder:
        raise UsageError(f"{form} form: expected the end of the sentence, got {remainder[:60]!r}")
    expected = write_sentence(schema, tree, form)
    if expected != text:
        raise UsageError(f"{form} form: expected {expected!r}, got {text!r}")
    return tree


def _write_tree(schema: Schema, tree: Tree, form: SentenceForm) -> str:
    if isinstance(tree, Conditional):
        test = _write_clause(schema, tree.test, form)
        then = _write_tree(schema, tree.then, form)
        otherwise = _write_tree(schema, tree.otherwise, form)
        return f"{form.opening}{test}{form.then}{then}{form.otherwise}{otherwise}{form.closing}"
    clause = _write_clause(schema, tree, form)
    return form.boolean_leaf + clause if schema.operators[tree.operator].boolean else clause


def _write_clause(schema: Schema, query: Query, form: SentenceForm) -> str:
    operator = schema.operators[query.operator]
    about = operator.about
    phrases: list[str] = []
    articles: dict[str, str] = {}
    for number, description in enumerate(query.objects):
        # The values by which the object is found, the shape last; "object" if the shape is not stated.
        stated = list(description)
        if about is not None and operator.category == "is":
            stated[about] = None
        values = [value for value in reversed(stated) if value is not None]
        if stated[0] is None:
            values.append("object")
        phrases.append(form.before_object + " ".join(values))
        articles[f"a{number}"] = ("an " if values[0] in ("orange", "olive") else "a ") + phrases[-1]
    feature = "" if about is None else schema.features[about][0]
    value = "" if about is None else query.objects[0][about]
    return form.get_clause(operator, len(phrases)).format(*phrases, **articles, n=query.number, f=feature, v=value)


def _read_tree(schema: Schema, text: str, form_name: FormName) -> tuple[Tree, str]:
    """Return the tree at the beginning of a text, and the remaining text."""
    form = FORMS[form_name]
    if text.startswith(form.opening):
        clause, then, remainder = text.removeprefix(form.opening).partition(form.then)
        if not then:
            raise UsageError(f"{form_name} form: expected {form.then.strip()!r} after {text[:60]!r}")
        first, remainder = _read_tree(schema, remainder, form_name)
        if not remainder.startswith(form.otherwise):
            raise UsageError(f"{form_name} form: expected {form.otherwise.strip()!r} before {remainder[:60]!r}")
        second, remainder = _read_tree(schema, remainder.removeprefix(form.otherwise), form_name)
        if not remainder.startswith(form.closing):
            raise UsageError(f"{form_name} form: expected {form.closing.strip()!r} before {remainder[:60]!r}")
        test = _read_clause(schema, clause, form_name)
        return Conditional(test, first, second), remainder.removeprefix(form.closing)
    # A leaf ends before the next "else" or closing bracket, or with the text.
    stop = len(text)
    for separator in (form.otherwise, form.closing):
        if separator and separator in text:
            stop = min(stop, text.index(separator))
    return _read_clause(schema, text[:stop].removeprefix(form.boolean_leaf), form_name), text[stop:]


def _read_clause(schema: Schema, clause: str, form_name: FormName) -> Query:
    for pattern, operator in _compile_patterns(schema, form_name):
        match = pattern.fullmatch(clause)
        if match is None:
            continue
        groups = match.groupdict()
        objects = []
        for group in ("object0", "object1"):
            if group in groups:
                values = groups[group].split(" ")
                if "value" in groups:
                    values.append(groups["value"])
                objects.append(_describe_object(schema, values))
        return Query(operator.name, tuple(objects), int(groups["number"]) if "number" in groups else None)
    raise UsageError(f"{form_name} form: no operator matches {clause!r}")


def _describe_object(schema: Schema, values: Sequence[str]) -> Description:
    """Return the values by feature; every value belongs to one feature only."""
    description: list[str | None] = []
    for _, feature_values in schema.features:
        matching = [value for value in values if value in feature_values]
        description.append(matching[0] if matching else None)
    return tuple(description)


@lru_cache(maxsize=32)
def _compile_patterns(schema: Schema, form_name: FormName) -> list[tuple[re.Pattern[str], Operator]]:
    """Return a regular expression for each operator, made from its clause."""
    form = FORMS[form_name]
    patterns = []
    for operator in schema.operators.values():
        stated = list(operator.named_features)
        if operator.about is not None and operator.category == "is":
            stated.remove(operator.about)
        alternatives = ["(?:" + "|".join(schema.features[feature][1]) + ")" for feature in reversed(stated)]
        if 0 not in stated:
            alternatives.append("object")
        phrase = " ".join(alternatives)
        for objects in operator.object_counts:
            # Escape the words of the clause but not the braces of its placeholders, which are filled next.
            pattern = re.escape(form.get_clause(operator, objects)).replace(r"\{", "{").replace(r"\}", "}")
            for number in (0, 1):
                group = f"{re.escape(form.before_object)}(?P<object{number}>{phrase})"
                pattern = pattern.replace(f"{{a{number}}}", f"an? {group}").replace(f"{{{number}}}", group)
            if operator.about is not None:
                name, values = schema.features[operator.about]
                pattern = pattern.replace("{f}", name).replace("{v}", f"(?P<value>{'|'.join(values)})")
            pattern = pattern.replace("{n}", r"(?P<number>-?\d+)")
            patterns.append((re.compile(pattern), operator))
    return patterns


def _write_prefix(tree: Tree) -> str:
    if isinstance(tree, Conditional):
        return f"(if {_write_prefix(tree.test)} {_write_prefix(tree.then)} {_write_prefix(tree.otherwise)})"
    tokens = [tree.operator]
    for description in tree.objects:
        tokens += [value for value in reversed(description) if value is not None]
    if tree.number is not None:
        tokens.append(str(tree.number))
    return f"({' '.join(tokens)})"


def _read_prefix(schema: Schema, tokens: list[str]) -> tuple[Tree, list[str]]:
    """Return the tree at the beginning of the tokens, and the remaining tokens."""
    if tokens[:2] == ["(", "if"]:
        test, remaining = _read_prefix(schema, tokens[2:])
        then, remaining = _read_prefix(schema, remaining)
        otherwise, remaining = _read_prefix(schema, remaining)
        if remaining[:1] != [")"] or not isinstance(test, Query):
            raise UsageError("prefix form: expected (if (operator …) tree tree)")
        return Conditional(test, then, otherwise), remaining[1:]
    if tokens[:1] != ["("] or ")" not in tokens or tokens[1] not in schema.operators:
        raise UsageError(f"prefix form: expected (operator …), got {' '.join(tokens[:8])!r}")
    stop = tokens.index(")")
    operator = schema.operators[tokens[1]]
    values = tokens[2:stop]
    number: int | None = None
    if operator.category == "equal":
        if not values or not re.fullmatch(r"-?\d+", values[-1]):
            raise UsageError(f"prefix form: {operator.name} needs a number, got {' '.join(values)!r}")
        number = int(values.pop())
    # Every object takes as many values as the operator states.
    width = len(operator.named_features)
    objects = tuple(_describe_object(schema, values[i : i + width]) for i in range(0, len(values), width))
    feature_values = set[str]().union(*(names for _, names in schema.features))
    if len(values) % width or len(objects) not in operator.object_counts or not feature_values.issuperset(values):
        raise UsageError(f"prefix form: {operator.name} cannot be about {' '.join(values)!r}")
    return Query(operator.name, objects, number), tokens[stop + 1 :]


@dataclass(frozen=True)
class ExampleView:
    """One example, decoded from its tokens and solved."""

    title: str
    schema: Schema
    tree: Tree
    objects: Sequence[GridObject]
    solution: Solution
    target: int

    @property
    def answer(self) -> str:
        """The answer and its class; the solver's answer, too, if it differs."""
        answer = f"{self.schema.answer_name(self.target)}  (class {self.target})"
        if self.solution.answer == self.target:
            return answer
        return f"{answer}; the solver says {self.schema.answer_name(self.solution.answer)}"

    @property
    def visited(self) -> dict[int, int]:
        """The number of the step at which the path visits each node, from 1, by the identity (`id`) of the node."""
        node = self.tree
        steps = {id(node): 1}
        for number, step in enumerate(self.solution.steps[:-1], 2):
            assert isinstance(node, Conditional)
            node = node.then if step.value is True else node.otherwise
            steps[id(node)] = number
        return steps


def describe_example(view: ExampleView) -> str:
    """Return the question, the grid, the tree with its path, and the answer with its reasons."""
    lines = [
        f"{view.title}, depth {measure_depth(view.tree)}",
        f"question: {write_sentence(view.schema, view.tree)}",
        f"objects:  {', '.join(map(format_object, view.objects)) or 'none'}",
    ]
    # The letters in their cells: columns x to the right, rows y downwards.
    columns = range(view.schema.columns)
    letters = {(grid_object.x, grid_object.y): grid_object.values[0] for grid_object in view.objects}
    width = len(str(view.schema.columns - 1)) + 1
    lines.append(" " * 6 + "".join(f"{x:>{width}}" for x in columns))
    for y in range(view.schema.rows):
        lines.append(f"{y:>6}" + "".join(f"{letters.get((x, y), '·'):>{width}}" for x in columns))
    lines.append("tree (→ the path taken):")
    lines += _describe_tree(view.tree, "  ", view)
    lines.append("because:")
    for number, step in enumerate(view.solution.steps, 1):
        lines.append(f"  {number}. {explain_step(view.schema, step)}")
    lines.append(f"answer:   {view.answer}")
    return "\n".join(lines)


def _describe_tree(node: Tree, indent: str, view: ExampleView, label: str = "") -> list[str]:
    query = get_query(node)
    line = f"{query.operator} {format_query(query)}"
    number = view.visited.get(id(node))
    if number is None:
        lines = [f"{indent}{label}  {line}"]
    else:
        lines = [f"{indent}{label}→ {line} → {format_answer(view.solution.steps[number - 1].value)}"]
    if isinstance(node, Conditional):
        lines += _describe_tree(node.then, indent + "    ", view, "then ")
        lines += _describe_tree(node.otherwise, indent + "    ", view, "else ")
    return lines


def format_query(query: Query) -> str:
    """Return the objects that an operator asks about.

    >>> format_query(Query("SumEven", (("a", "red"), ("b", "blue"))))
    'red a, blue b'
    """
    phrases = []
    for description in query.objects:
        phrases.append(" ".join(value for value in reversed(description) if value))
    return ", ".join(phrases) + ("" if query.number is None else f" = {query.number}")


def format_object(grid_object: GridObject) -> str:
    """Return an object and its cell, such as `red a (1, 3)`."""
    return f"{' '.join(reversed(grid_object.values))} ({grid_object.x}, {grid_object.y})"


def explain_step(schema: Schema, step: Step) -> str:
    """Return why an operator has its value.

    >>> explain_step(Schema(), Step(Query("SumOdd", (("a", "red"),)), (GridObject(("a", "red"), 1, 3),), False))
    'SumOdd red a: red a (1, 3); 1 + 3 = 4 → False'
    """
    operator = schema.operators[step.query.operator]
    objects = ", ".join(map(format_object, step.objects)) or "not there"
    numbers: list[int] = []
    for grid_object in step.objects:
        numbers += [grid_object.x, grid_object.y]
    calculation = ""
    if operator.quantity == "product":
        calculation = f"; {' · '.join(map(str, numbers))} = {math.prod(numbers)}"
    elif operator.quantity == "sum" and operator.negated:
        calculation = f"; −({' + '.join(map(str, numbers))}) = {-sum(numbers)}"
    elif operator.quantity == "sum":
        calculation = f"; {' + '.join(map(str, numbers))} = {sum(numbers)}"
    return f"{operator.name} {format_query(step.query)}: {objects}{calculation} → {format_answer(step.value)}"
