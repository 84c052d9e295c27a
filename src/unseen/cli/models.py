"""`unseen models`: list the models, or describe one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from unseen.cli.complete import complete_model, complete_task
from unseen.cli.output import print_registry
from unseen.names import family_of

if TYPE_CHECKING:
    from unseen.config import Config

EXAMPLES = ("retrieval/T1", "rules/mlp", "rules/mha", "rules/rnn", "ctl/A", "gcog/distractor")
"""The tasks on which parameters are counted, at their default options: one of each form."""


def models(
    name: Annotated[str | None, typer.Argument(help="A model to describe.", autocompletion=complete_model)] = None,
    task: Annotated[
        str | None, typer.Option(help="Count the parameters on this task.", autocompletion=complete_task)
    ] = None,
) -> None:
    """List the models, one line each; or show the definition, options and parameter counts of one model.

    Examples:

    unseen models

    unseen models retrieval-transformer

    unseen models lstm --task ctl/A
    """
    from unseen.errors import UsageError
    from unseen.models import MODELS

    if name is None:
        if task is not None:
            raise UsageError("--task goes with the name of a model, e.g. unseen models lstm --task ctl/A")
        print_registry(
            MODELS,
            "unseen models NAME describes a model; unseen train TASK NAME --out DIR trains it; --set key=value changes "
            "its options. NAME may also be a class of your own: module:Class.",
        )
        return
    typer.echo("\n".join(describe_model(name, task)))


def describe_model(name: str, task: str | None = None) -> list[str]:
    """The definition, options and parameter counts of a model, as lines."""
    from unseen.cli.option_text import format_docstring, format_options, wrap
    from unseen.config import Config
    from unseen.models import MODELS, is_ours, options
    from unseen.models.foreign import load_class, options_class

    if is_ours(name):
        entry = MODELS.entry(name)
        model = MODELS.load(name)
        lines = [entry.name, *wrap(entry.summary), "", *format_docstring(model)]
        config: type[Config] = model.Options
        for base in reversed(config.__mro__):  # options that several models share are described once, in a base class
            if issubclass(base, Config) and base is not Config and base.__doc__:
                lines += ["", *format_docstring(base)]
    else:
        if ":" not in name:
            MODELS.entry(name)  # an unknown name is an error that suggests the nearest
        model = load_class(name)
        lines = [name, "", *format_docstring(model)]
        config = options_class(model)
    lines += ["", "options (--set key=value)", *format_options(config), "", "parameters, at default options"]
    lines += _count_parameters(options(name), task)
    example = task or (EXAMPLES[0] if not is_ours(name) else _find_task(name))
    return [*lines, "", *wrap(f"unseen train {example} {name} --out DIR trains it.")]


def _find_task(name: str) -> str:
    """A task that a model of ours was written for."""
    family = name.partition("-")[0]
    return next((task for task in EXAMPLES if family_of(task) == family), EXAMPLES[0])


def _count_parameters(config: Config, task: str | None) -> list[str]:
    from unseen.errors import UsageError
    from unseen.models.build import build, parameter_count
    from unseen.tasks import task as make_task

    names = EXAMPLES if task is None else (task,)
    width = max(map(len, names))
    lines = []
    reason = ""
    for example in names:
        try:
            count = parameter_count(build(config, make_task(example).spec))
        except UsageError as error:
            if task is not None:
                raise
            reason = str(error)
            continue
        lines.append(f"  {example:<{width}}  {count:>10,}".replace(",", " "))
    return lines or [f"  it can't be built on any of {', '.join(names)}: {reason}"]
