"""Completion in the shell: names of tasks, models, studies, splits and options. It loads neither torch nor NumPy
unless an option or a split of a task is completed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import typer

from unseen.names import family_of

Completion = tuple[str, str]
"""A name and its help."""


def complete_task(incomplete: str) -> list[Completion]:
    """Tasks whose names begin so."""
    from unseen.tasks import TASKS

    return _select(((entry.name, entry.summary) for entry in TASKS), incomplete)


def complete_task_or_family(incomplete: str) -> list[Completion]:
    """Families, and tasks whose names begin so."""
    from unseen.tasks import TASKS

    families = dict.fromkeys(family_of(entry.name) for entry in TASKS)
    return [*_select(((name, f"all tasks of {name}") for name in families), incomplete), *complete_task(incomplete)]


def complete_model(incomplete: str) -> list[Completion]:
    """Models whose names begin so."""
    from unseen.models import MODELS

    return _select(((entry.name, entry.summary) for entry in MODELS), incomplete)


def complete_study(incomplete: str) -> list[Completion]:
    """Studies whose names begin so."""
    from unseen.studies.catalog import STUDIES

    return _select(((entry.name, entry.summary) for entry in STUDIES), incomplete)


def complete_scale(ctx: typer.Context, incomplete: str) -> list[Completion]:
    """The scales of the study on the command line, or all that there are."""
    from unseen.errors import UsageError
    from unseen.studies.study import SCALES, find_catalogued

    scales: Iterable[str] = SCALES
    with suppress(UsageError):  # a file of the user's, which completing must not run
        scales = find_catalogued(str(_read_arguments(ctx).get("study"))).scales
    return _select(((name, "") for name in scales), incomplete)


def complete_split(ctx: typer.Context, incomplete: str) -> list[Completion]:
    """The splits of the task on the command line, at its default options."""
    from unseen.errors import UsageError
    from unseen.tasks import task

    try:
        splits = task(str(_read_arguments(ctx).get("task"))).splits
    except UsageError:
        return []
    return _select(((name, split.summary) for name, split in splits.items()), incomplete)


def complete_setting(ctx: typer.Context, incomplete: str) -> list[Completion]:
    """`key=` for the options of the task and model on the command line, and of the recipe where one is trained."""
    names = _select(_list_options(_read_arguments(ctx)), incomplete)
    return [(f"{name}=", text) for name, text in names]


def _read_arguments(ctx: typer.Context) -> dict[str, Any]:
    """The arguments on the command line by name.

    Click stops parsing at an option that has no value yet, which is the one that is completed. The arguments before it
    are in `ctx.args`, in their order.
    """
    values = {name: value for name, value in ctx.params.items() if value is not None}
    names = [param.name for param in ctx.command.params if param.param_type_name == "argument"]
    unparsed = [argument for argument in ctx.args if not argument.startswith("-")]
    for name, argument in zip(names, unparsed, strict=False):
        values.setdefault(str(name), argument)
    return values


def _list_options(params: dict[str, Any]) -> Iterator[Completion]:
    from unseen.errors import UsageError

    try:
        if params.get("task") or params.get("name"):
            from unseen.tasks import TASKS

            yield from _describe_fields(TASKS.load(str(params.get("task") or params.get("name"))))
        if params.get("model"):
            from unseen.models import MODELS, is_ours
            from unseen.training.recipe import Recipe

            yield from _describe_fields(Recipe)
            # Completing imports no code of the user's.
            if is_ours(str(params["model"])):
                yield from _describe_fields(MODELS.load(str(params["model"])).Options)
    except UsageError:
        return


def _describe_fields(config: Any) -> Iterator[Completion]:
    for name, field in config.model_fields.items():
        if name != "name":
            yield name, field.description or f"default {field.default}"


def _select(entries: Iterable[Completion], incomplete: str) -> list[Completion]:
    return [(name, text) for name, text in entries if name.startswith(incomplete)]
