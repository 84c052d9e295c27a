"""Questions in words: as the release writes them, in fluent English, and in prefix form; and back to the tree.

released   [ if current red a exist , then color of current b , else loc of current blue c ]
english    If there is a red a, then name the color of the b, otherwise say where the blue c is.
prefix     (if (Exist red a) (GetColor b) (GetLocation blue c))
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

from unseen.errors import UsageError
from unseen.tasks.gcog.operators import Operator
from unseen.tasks.gcog.schema import Schema
from unseen.tasks.gcog.tree import Ask, Branch, Named, Tree

FormName = Literal["released", "english", "prefix"]
FORM_NAMES: tuple[FormName, ...] = get_args(FormName)


@dataclass(frozen=True)
class Form:
    """How trees are put into words: the words around a conditional, those of each operator, and those of an object.

    A clause has the places {0} and {1} for objects, {a0} and {a1} for objects with an article, {n} for a number, {f}
    for the feature and {v} for the value that is asked about.
    """

    opening: str
    then: str
    otherwise: str
    closing: str
    clauses: Callable[[Operator, int], str]
    before_object: str
    finish: Callable[[str, bool], str]
    begin: Callable[[str], str]


_RELEASED_OBJECTS = {"Sum": ("{0}", "{0} + {1}"), "Product": ("{0}", "{0} * {1}")}


def _released_clause(operator: Operator, objects: int) -> str:
    add, multiply = _RELEASED_OBJECTS["Sum"][objects - 1], _RELEASED_OBJECTS["Product"][objects - 1]
    fixed = {
        "Exist": "{0} exist",
        "GetLocation": "loc of {0}",
        "SumEven": f"{add} sum is even",
        "SumOdd": f"{add} sum is odd",
        "ProductEven": f"{multiply} product is even",
        "ProductOdd": f"{multiply} product is odd",
        "ExistAnd": "{0} and {1} exist",
        "ExistOr": "{0} or {1} exist",
        "ExistXor": "{0} xor {1} exist",
        "AddEqual": f"{add} sum is {{n}}",
        "SubtractEqual": f"{add} negative sum is {{n}}",
        "MultiplyEqual": f"{multiply} product is {{n}}",
    }
    by_kind = {"get": "{f} of {0}", "is": "{f} of {0} is {v}", "same": "{0} and {1} same {f}"}
    if operator.name.startswith("NotSame"):
        return "{0} and {1} not same {f}"
    return fixed.get(operator.name) or by_kind[operator.kind]


def _english_clause(operator: Operator, objects: int) -> str:
    of = "of the {0}" if objects == 1 else "of the {0} and the {1}"
    fixed = {
        "Exist": "there is {a0}",
        "GetLocation": "say where the {0} is",
        "SumEven": f"the sum of the coordinates {of} is even",
        "SumOdd": f"the sum of the coordinates {of} is odd",
        "ProductEven": f"the product of the coordinates {of} is even",
        "ProductOdd": f"the product of the coordinates {of} is odd",
        "ExistAnd": "there are both {a0} and {a1}",
        "ExistOr": "there is {a0} or {a1}",
        "ExistXor": "there is either {a0} or {a1} but not both",
        "AddEqual": f"the sum of the coordinates {of} is {{n}}",
        "SubtractEqual": f"minus the sum of the coordinates {of} is {{n}}",
        "MultiplyEqual": f"the product of the coordinates {of} is {{n}}",
    }
    by_kind = {
        "get": "name the {f} of the {0}",
        "is": "the {f} of the {0} is {v}",
        "same": "the {0} and the {1} have the same {f}",
    }
    if operator.name.startswith("NotSame"):
        return "the {0} and the {1} have a different {f}"
    return fixed.get(operator.name) or by_kind[operator.kind]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


FORMS: dict[str, Form] = {
    "released": Form(
        "[ if ",
        " , then ",
        " , else ",
        " ]",
        _released_clause,
        "current ",
        lambda text, single: f"{text} ?" if single else text,
        lambda text: text.removesuffix(" ?"),
    ),
    "english": Form(
        "if ",
        ", then ",
        ", otherwise ",
        "",
        _english_clause,
        "",
        lambda text, single: f"{_capital(text)}.",
        lambda text: text[:1].lower() + text[1:].removesuffix("."),
    ),
}
_WHETHER = "say whether "


def write_sentence(schema: Schema, tree: Tree, form: FormName = "english") -> str:
    """A question in words.

    >>> leaves = Ask("GetColor", (("b", None),)), Ask("GetShape", ((None, "blue"),))
    >>> tree = Branch(Ask("Exist", (("a", "red"),)), *leaves)
    >>> for form in ("released", "english", "prefix"):
    ...     write_sentence(Schema(), tree, form)
    '[ if current red a exist , then color of current b , else shape of current blue object ]'
    'If there is a red a, then name the color of the b, otherwise name the shape of the blue object.'
    '(if (Exist red a) (GetColor b) (GetShape blue))'
    """
    if form == "prefix":
        return _write_prefix(tree)
    used = FORMS[form]
    return used.finish(_write(schema, tree, used), isinstance(tree, Ask))


def read_sentence(schema: Schema, text: str, form: FormName = "english") -> Tree:
    """The tree that a sentence stands for; `UsageError` if it is none of the form.

    >>> read_sentence(Schema(), "Say whether there is an orange q.")
    Ask(operator='Exist', objects=(('q', 'orange'),), number=None)
    """
    if form == "prefix":
        return _read_prefix(schema, text)
    used = FORMS[form]
    tree, rest = _read(schema, used.begin(text), used)
    if rest:
        raise UsageError(f"{form} form: the sentence should have ended before {rest[:60]!r}")
    if write_sentence(schema, tree, form) != text:
        raise UsageError(f"{form} form: expected {write_sentence(schema, tree, form)!r}, got {text!r}")
    return tree


def _write(schema: Schema, tree: Tree, form: Form) -> str:
    if isinstance(tree, Branch):
        condition, then = _write_clause(schema, tree.condition, form), _write(schema, tree.then, form)
        otherwise = _write(schema, tree.otherwise, form)
        return f"{form.opening}{condition}{form.then}{then}{form.otherwise}{otherwise}{form.closing}"
    asks_whether = form.clauses is _english_clause and schema.operators[tree.operator].boolean
    return (_WHETHER if asks_whether else "") + _write_clause(schema, tree, form)


def _write_clause(schema: Schema, ask: Ask, form: Form) -> str:
    operator = schema.operators[ask.operator]
    about = operator.about
    objects = [_phrase(operator, named, form) for named in ask.objects]
    return form.clauses(operator, len(objects)).format(
        *objects,
        **{f"a{i}": _article(phrase) for i, phrase in enumerate(objects)},
        n=ask.number,
        f="" if about is None else schema.features[about][0],
        v="" if about is None else ask.objects[0][about],
    )


def _phrase(operator: Operator, named: Named, form: Form) -> str:
    """An object in words: the values by which it is found, the shape last."""
    hidden = operator.about if operator.kind == "is" else None
    words = [value for i, value in reversed(list(enumerate(named))) if value is not None and i != hidden]
    shown = named[0] is not None and hidden != 0
    return form.before_object + " ".join([*words, *([] if shown else ["object"])])


def _article(phrase: str) -> str:
    return ("an " if phrase.split(" ")[0] in ("orange", "olive") else "a ") + phrase


def _read(schema: Schema, text: str, form: Form) -> tuple[Tree, str]:
    """A tree at the beginning of a text, and the rest of it."""
    if text.startswith(form.opening):
        clause, then, rest = text.removeprefix(form.opening).partition(form.then)
        if not then:
            raise UsageError(f"expected {form.then.strip()!r} after {text[:60]!r}")
        first, rest = _read(schema, rest, form)
        if not rest.startswith(form.otherwise):
            raise UsageError(f"expected {form.otherwise.strip()!r} before {rest[:60]!r}")
        second, rest = _read(schema, rest.removeprefix(form.otherwise), form)
        if not rest.startswith(form.closing):
            raise UsageError(f"expected {form.closing.strip()!r} before {rest[:60]!r}")
        return Branch(_read_clause(schema, clause, form), first, second), rest.removeprefix(form.closing)
    ends = [place for end in (form.otherwise, form.closing) if end and (place := text.find(end)) >= 0]
    end = min(ends, default=len(text))
    return _read_clause(schema, text[:end].removeprefix(_WHETHER), form), text[end:]


def _read_clause(schema: Schema, clause: str, form: Form) -> Ask:
    for pattern, operator in _patterns(schema, form.clauses is _english_clause):
        if match := pattern.fullmatch(clause):
            return _ask(schema, operator, match)
    raise UsageError(f"no operator is written {clause!r}")


def _ask(schema: Schema, operator: Operator, match: re.Match[str]) -> Ask:
    found = match.groupdict()
    objects = []
    for number in (0, 1):
        words = found.get(f"object{number}")
        if words is not None:
            asked = found.get("value")
            objects.append(_named(schema, [*words.split(" "), *([asked] if asked else [])]))
    return Ask(operator.name, tuple(objects), int(found["number"]) if "number" in found else None)


def _named(schema: Schema, words: Sequence[str]) -> Named:
    """Values by feature: each word tells by itself which feature it is a value of."""
    return tuple(next((word for word in words if word in values), None) for _, values in schema.features)


@lru_cache(maxsize=32)
def _patterns(schema: Schema, english: bool) -> list[tuple[re.Pattern[str], Operator]]:
    """What each operator looks like in words."""
    form = FORMS["english" if english else "released"]
    found = []
    for operator in schema.operators.values():
        for objects in operator.objects:
            pattern = re.escape(form.clauses(operator, objects)).replace(r"\{", "{").replace(r"\}", "}")
            found.append((re.compile(_filled(schema, operator, pattern, re.escape(form.before_object))), operator))
    return found


def _filled(schema: Schema, operator: Operator, pattern: str, before: str) -> str:
    """A clause as a pattern, with what may stand in its places."""
    found = [i for i in operator.named if not (operator.kind == "is" and i == operator.about)]
    words = ["(?:" + "|".join(schema.features[i][1]) + ")" for i in reversed(found)]
    phrase = " ".join([*words, *([] if 0 in found else ["object"])])
    for number in (0, 1):
        group = f"{before}(?P<object{number}>{phrase})"
        pattern = pattern.replace(f"{{a{number}}}", f"an? {group}").replace(f"{{{number}}}", group)
    if operator.about is not None:
        name, values = schema.features[operator.about]
        pattern = pattern.replace("{f}", name).replace("{v}", "(?P<value>" + "|".join(values) + ")")
    return pattern.replace("{n}", r"(?P<number>-?\d+)")


def _write_prefix(tree: Tree) -> str:
    if isinstance(tree, Branch):
        return f"(if {_write_prefix(tree.condition)} {_write_prefix(tree.then)} {_write_prefix(tree.otherwise)})"
    words = [value for named in tree.objects for value in reversed(named) if value is not None]
    return f"({' '.join([tree.operator, *words, *([] if tree.number is None else [str(tree.number)])])})"


def _read_prefix(schema: Schema, text: str) -> Tree:
    words = re.findall(r"[()]|[^\s()]+", text)
    tree, rest = _read_node(schema, words)
    if rest:
        raise UsageError(f"prefix form: the question should have ended before {' '.join(rest[:8])!r}")
    return tree


def _read_node(schema: Schema, words: list[str]) -> tuple[Tree, list[str]]:
    if words[:2] == ["(", "if"]:
        condition, rest = _read_node(schema, words[2:])
        then, rest = _read_node(schema, rest)
        otherwise, rest = _read_node(schema, rest)
        if rest[:1] != [")"] or not isinstance(condition, Ask):
            raise UsageError("prefix form: expected (if (operator …) tree tree)")
        return Branch(condition, then, otherwise), rest[1:]
    if words[:1] != ["("] or ")" not in words or words[1] not in schema.operators:
        raise UsageError(f"prefix form: expected (operator …) at {' '.join(words[:8])!r}")
    end = words.index(")")
    operator, said = schema.operators[words[1]], words[2:end]
    number = int(said.pop()) if operator.kind == "equal" and re.fullmatch(r"-?\d+", said[-1] if said else "") else None
    each = len(operator.named)
    objects = tuple(_named(schema, said[i : i + each]) for i in range(0, len(said), each))
    known = {value for _, values in schema.features for value in values}
    if (number is None) == (operator.kind == "equal"):
        raise UsageError(f"prefix form: {operator.name} compares with a number, the others do not")
    if len(said) % each or len(objects) not in operator.objects or not known.issuperset(said):
        raise UsageError(f"prefix form: {operator.name} can't be asked about {' '.join(said)!r}")
    return Ask(operator.name, objects, number), words[end + 1 :]
