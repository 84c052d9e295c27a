"""One example for people: the grid, the tree, the path taken and the answer, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unseen.tasks.gcog.schema import Answer, Schema
from unseen.tasks.gcog.sentences import write_sentence
from unseen.tasks.gcog.solver import Solution, Step
from unseen.tasks.gcog.tree import Ask, Branch, Thing, Tree, depth, top


@dataclass(frozen=True)
class View:
    """One example, read back from its tokens and solved."""

    title: str
    schema: Schema
    tree: Tree
    things: Sequence[Thing]
    solution: Solution
    target: int

    @property
    def answer(self) -> str:
        """The answer and its class, with a word if the solver disagrees."""
        answer = f"{self.schema.answer_name(self.target)}  (class {self.target})"
        if self.solution.answer == self.target:
            return answer
        return f"{answer}; the solver says {self.schema.answer_name(self.solution.answer)}"

    @property
    def visited(self) -> dict[int, int]:
        """The number of each step, from 1, by the identity of the node it was made at."""
        found, node = {id(self.tree): 1}, self.tree
        for number, step in enumerate(self.solution.steps[:-1], 2):
            assert isinstance(node, Branch)
            node = node.then if step.value is True else node.otherwise
            found[id(node)] = number
        return found


def describe(view: View) -> str:
    """Question, grid, tree with the path marked, and the answer with its reasons."""
    rows = [
        f"{view.title}, depth {depth(view.tree)}",
        f"question: {write_sentence(view.schema, view.tree)}",
        f"objects:  {', '.join(map(place_of, view.things)) or 'none'}",
        *(f"  {row}" for row in _letters(view)),
        "tree (→ the path taken):",
        *(f"  {row}" for row in _tree_rows(view.tree, "", view)),
        "because:",
        *(f"  {number}. {because(view.schema, step)}" for number, step in enumerate(view.solution.steps, 1)),
        f"answer:   {view.answer}",
    ]
    return "\n".join(rows)


def name_of(ask: Ask) -> str:
    """What an operator is asked about.

    >>> name_of(Ask("SumEven", (("a", "red"), ("b", "blue"))))
    'red a, blue b'
    """
    objects = [" ".join(word for word in reversed(named) if word) for named in ask.objects]
    return ", ".join(objects) + ("" if ask.number is None else f" = {ask.number}")


def place_of(thing: Thing) -> str:
    """An object and where it stands."""
    return f"{' '.join(reversed(thing.values))} ({thing.x}, {thing.y})"


def value_name(value: Answer) -> str:
    """A value in words."""
    if isinstance(value, bool):
        return str(value)
    return value[1] if isinstance(value[1], str) else f"({value[0]}, {value[1]})"


def because(schema: Schema, step: Step) -> str:
    """Why an operator gives the value it gives.

    >>> because(Schema(), Step(Ask("SumOdd", (("a", "red"),)), (Thing(("a", "red"), 1, 3),), False))
    'SumOdd red a: red a (1, 3); 1 + 3 = 4 → False'
    """
    name = step.ask.operator
    seen = ", ".join(map(place_of, step.things)) or "not there"
    numbers = [number for thing in step.things for number in (thing.x, thing.y)]
    sums = ""
    if name.startswith(("Sum", "Add")):
        sums = f"; {' + '.join(map(str, numbers))} = {sum(numbers)}"
    elif name.startswith("Subtract"):
        sums = f"; −({' + '.join(map(str, numbers))}) = {-sum(numbers)}"
    elif name.startswith(("Product", "Multiply")):
        product = 1
        for number in numbers:
            product *= number
        sums = f"; {' · '.join(map(str, numbers))} = {product}"
    return f"{name} {name_of(step.ask)}: {seen}{sums} → {value_name(step.value)}"


def _letters(view: View) -> list[str]:
    """The letters in their places: columns x to the right, rows y downwards."""
    places = {(thing.x, thing.y): thing.values[0] for thing in view.things}
    width = len(str(view.schema.columns - 1)) + 1
    head = " " * 4 + "".join(f"{x:>{width}}" for x in range(view.schema.columns))
    return [
        head,
        *(
            f"{y:>4}" + "".join(f"{places.get((x, y), '·'):>{width}}" for x in range(view.schema.columns))
            for y in range(view.schema.rows)
        ),
    ]


def _tree_rows(node: Tree, indent: str, view: View, word: str = "") -> list[str]:
    ask, number = top(node), view.visited.get(id(node))
    value = "" if number is None else f" → {value_name(view.solution.steps[number - 1].value)}"
    mark = "→ " if number is not None else "  "
    rows = [f"{indent}{word}{mark}{ask.operator} {name_of(ask)}{value}"]
    if isinstance(node, Branch):
        rows += _tree_rows(node.then, indent + "    ", view, "then ")
        rows += _tree_rows(node.otherwise, indent + "    ", view, "else ")
    return rows
