"""Checks that a task has the inputs and the target that a family's models are written for."""

from __future__ import annotations

from unseen.errors import UsageError
from unseen.spec import Field, FieldKind, Spec, Target


def require_field(spec: Spec, name: str, kind: FieldKind, along: str | None) -> Field:
    """The task's input field of this name; refused if it is of another kind or lies along another stream."""
    field = spec.field(name)
    if (field.kind, field.along) != (kind, along):
        raise UsageError(
            f"the model needs the input field '{name}' with {_describe_kind(kind)} {describe_along(along)}; in this task "
            f"it has {_describe_kind(field.kind)} {describe_along(field.along)}. Choose a backbone (unseen models), "
            "which reads any task"
        )
    return field


def refuse_target(spec: Spec, models: str, answer: str) -> UsageError:
    """The error for a task whose target these models cannot predict, with `answer` what they predict.

    >>> str(refuse_target(Spec((), (Field("x", "real"),), Target("binary")), "the ctl models", "one category"))
    'the ctl models answer with one category per example; this task has a binary target'
    """
    return UsageError(f"{models} answer with {answer} per example; this task has {describe_target(spec.target)}")


def describe_target(target: Target) -> str:
    """A target in words.

    >>> describe_target(Target("category", 8, "tokens"))
    'a category target of 8 values along the stream tokens'
    """
    if target.kind == "category":
        sizes = f" of {target.width} values"
    else:
        sizes = "" if target.width == 1 else f" of width {target.width}"
    along = "" if target.along is None else f" along the stream {target.along}"
    return f"a {target.kind} target{sizes}{along}"


def _describe_kind(kind: FieldKind) -> str:
    return {"real": "real numbers", "bits": "bits", "category": "a category", "mask": "a mask"}[kind]


def describe_along(along: str | None) -> str:
    """Where a field or a target lies, in words."""
    return "once per example" if along is None else f"along the stream '{along}'"
