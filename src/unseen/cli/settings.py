"""`--set key=value`: parse options, and find out whether they belong to the task, the model or the recipe."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import SimpleNamespace, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

from unseen.errors import UsageError, nearest

if TYPE_CHECKING:
    from unseen.config import Config
    from unseen.studies.study import Study

HELP = (
    "Set an option as key=value, e.g. --set length=5. Where several components have the option, prefix it "
    "(task.…, model.…, recipe.…, evaluation.…). May be repeated."
)


SET_HELP = (
    "Change an option in every trial of the study, as key=value; may be repeated. The study is then another one, and "
    "is recorded as such."
)
ONLY_HELP = "Run only these levels of an axis, as axis=level or axis=a,b; may be repeated."


def parse_settings(
    assignments: Sequence[str], components: Mapping[str, type[Config]], flag: str = "--set"
) -> dict[str, dict[str, Any]]:
    """The options of each component (task, model, recipe), from texts like `length=5` or `recipe.clip=null`.

    A key without a prefix belongs to the only component that has such an option. `flag` is the command-line option that
    error messages mention.

    >>> from unseen.training.recipe import Recipe
    >>> parse_settings(["steps=20", "recipe.clip=null"], {"recipe": Recipe})
    {'recipe': {'steps': 20, 'clip': None}}
    >>> from unseen.training.recipe import Evaluation
    >>> parse_settings(["splits=train,iid"], {"evaluation": Evaluation})
    {'evaluation': {'splits': ['train', 'iid']}}
    """
    settings: dict[str, dict[str, Any]] = {}
    option_names: dict[str, set[str]] = {}
    for component, config in components.items():
        settings[component] = {}
        option_names[component] = {*config.model_fields} - {"name"}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals:
            raise UsageError(f"{flag} {_shorten(assignment)}: expected key=value, e.g. {flag} length=5")
        prefix, dot, suffix = key.partition(".")
        prefixed = bool(dot) and prefix in components
        option = suffix if prefixed else key
        candidates = [prefix] if prefixed else list(components)
        owners = [candidate for candidate in candidates if option in option_names[candidate]]
        if not owners:
            names = set().union(*(option_names[candidate] for candidate in candidates))
            raise UsageError(
                f"{flag} {_shorten(assignment)}: unknown option '{_shorten(key)}'. {nearest(option, names)}"
            )
        if len(owners) > 1:
            choices = " or ".join(f"{owner}.{key}" for owner in owners)
            raise UsageError(
                f"{flag} {_shorten(assignment)}: several components have the option '{key}'; write {choices}"
            )
        owner = owners[0]
        if option in settings[owner]:
            raise UsageError(f"{flag} {_shorten(assignment)}: '{option}' is given twice")
        settings[owner][option] = _parse_option(text, components[owner].model_fields[option].annotation)
    return settings


def choose_study(name: str, scale: str | None, assignments: Sequence[str], only: Sequence[str]) -> tuple[Study, str]:
    """The study of a name or file, changed by `--set` and `--only`; and the scale (default: the study's own)."""
    from unseen.studies.changed import change_study
    from unseen.studies.study import study as find_study

    study = find_study(name)
    chosen_scale = study.default_scale if scale is None else scale
    settings = _parse_study_settings(assignments, study, chosen_scale)
    return change_study(study, settings, parse_only(only)), chosen_scale


def _parse_study_settings(assignments: Sequence[str], study: Study, scale: str) -> dict[str, dict[str, Any]]:
    """The options that `--set` changes in every trial of a study; each belongs to some task, model or recipe in it."""
    if not assignments:
        return {}
    from unseen.models.foreign import load_class, options_class
    from unseen.training.recipe import Evaluation, Recipe

    configs: dict[str, dict[str, type[Config]]] = {"task": {}, "model": {}}
    for entry in study.entries(scale):
        configs["task"].setdefault(entry.trial.task.name, type(entry.trial.task))
        name = entry.trial.model.name
        if name not in configs["model"]:
            configs["model"][name] = options_class(load_class(name))
    components: dict[str, Any] = {"recipe": Recipe, "evaluation": Evaluation}
    for component, by_name in configs.items():
        fields: dict[str, Any] = {}
        for config in by_name.values():
            fields |= config.model_fields
        components[component] = SimpleNamespace(model_fields=fields)  # the options of all of them
    return parse_settings(assignments, components)


def parse_only(assignments: Sequence[str]) -> dict[str, list[str]]:
    """The levels that `--only axis=level` keeps, by axis; several by commas, or by repeating it.

    >>> parse_only(["variant=plain,noise", "length=5"])
    {'variant': ['plain', 'noise'], 'length': ['5']}
    """
    levels: dict[str, list[str]] = {}
    for assignment in assignments:
        axis, equals, text = assignment.partition("=")
        names = [level.strip() for level in text.split(",") if level.strip()]
        if not equals or not axis or not names:
            raise UsageError(f"--only {_shorten(assignment)}: expected axis=level, e.g. --only length=5")
        levels.setdefault(axis, []).extend(names)
    return levels


def _shorten(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"


def add_steps(settings: Mapping[str, dict[str, Any]], steps: int | None) -> None:
    """Put `--steps` among the recipe's options, and refuse it beside `--set steps=…`."""
    if steps is None:
        return
    if "steps" in settings["recipe"]:
        raise UsageError("--steps and --set steps=… mean the same; give one of them")
    settings["recipe"]["steps"] = steps


def _parse_option(text: str, annotation: Any) -> Any:
    """The value of an option; where its type is a tuple, 1,3 becomes [1, 3] and 5 becomes [5].

    A text stays a text if the option also accepts strings (`prior=zipf(1)`), and if the tuple holds tuples: then it
    names a file.
    """
    value = _parse_value(text)
    types = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    tuples = [form for form in types if get_origin(form) is tuple and get_origin(get_args(form)[0]) is not tuple]
    if str in types or not tuples or value is None or isinstance(value, list | dict):
        return value
    return [_parse_value(item.strip()) for item in text.split(",") if item.strip()]


def _parse_value(text: str) -> Any:
    """A JSON value, or else the text itself (`preset=released`, `length=5`, `mapping=null`)."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # no JSON, a number of thousands of digits, or thousands of brackets
        return {"True": True, "False": False, "None": None}.get(text, text)
