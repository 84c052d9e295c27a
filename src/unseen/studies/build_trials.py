"""From settings to the components of a trial: each distinct task, model, recipe and evaluation is built once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from unseen.errors import LocatedError, UnknownName, UsageError, format_value, nearest
from unseen.studies.yaml_loader import YamlMapping

if TYPE_CHECKING:
    from unseen.config import Config
    from unseen.tasks.base import Task
    from unseen.training.recipe import Evaluation, Recipe

Options = Mapping[str, Any]
Settings = Mapping[str, Options]
"""Options by component: `{"task": {"name": "retrieval/T6", "length": 5}, "recipe": {"steps": 2000}}`."""
Built = tuple["Task", "Config", "Recipe", "Evaluation"]


SETTABLE = ("task", "model", "recipe", "evaluation")
"""The components of a trial, which settings describe."""


def _build(component: str, options: Options) -> Config:
    # Imported when it is called: listing studies must not load torch.
    if component == "task":
        from unseen.tasks import task

        return task(**options)
    if component == "model":
        from unseen.models import options as model

        return model(**options)
    from unseen.training.recipe import Evaluation, recipe

    return recipe(**options) if component == "recipe" else Evaluation.parse(options)


_NAME_EXAMPLES = {"task": "retrieval/T6", "model": "retrieval-transformer"}
"""The components that have no default name, with a name to show in the error."""


@dataclass(frozen=True)
class Fragment:
    """Settings and their origin in words: `base`, or `axis 'variant', level 'plain'`."""

    origin: str
    settings: Settings

    def __post_init__(self) -> None:
        if not isinstance(self.settings, Mapping):
            raise UsageError(
                f"{self.origin}: expected settings like {{'model': {{'width': 50}}}}, got {format_value(self.settings)}"
            )
        for component, options in self.settings.items():
            if component not in SETTABLE:
                hint = nearest(str(component), SETTABLE)
                prefix, dot, option = str(component).partition(".")
                if dot and prefix in SETTABLE:
                    hint = f"Write {prefix}: {{{option}: …}}"
                raise self._error(self.settings, component, f"unknown part '{component}'. {hint}")
            if not isinstance(options, Mapping) or not all(isinstance(option, str) for option in options):
                raise self._error(
                    self.settings, component, f"{component} needs options by name, got {format_value(options)}"
                )
            name_type = str | type if component == "model" else str  # a model may be a user's class
            if not isinstance(options.get("name", ""), name_type):
                raise self._error(options, "name", f"{component} name = {format_value(options['name'])} is not a name")

    def _error(self, mapping: Mapping[Any, Any], key: object, message: str) -> UsageError:
        text = f"{self.origin}: {message}"
        return mapping.error(key, text) if isinstance(mapping, YamlMapping) else UsageError(text)

    def locate(self, component: str, option: str | None = None) -> str:
        """The origin of an option or of a component, after its line if it comes from a file."""
        options = self.settings[component]
        return f"{options.locate(option)}: {self.origin}" if isinstance(options, YamlMapping) else self.origin


class TrialBuilder:
    """Builds components from fragments, the later ones winning; equal options give the same object."""

    def __init__(self) -> None:
        self._built: dict[tuple[str, str], Config] = {}
        self._checked_splits: set[tuple[int, int]] = set()

    def build(self, fragments: Sequence[Fragment]) -> Built:
        """The four components that these fragments describe together."""
        components = [self._build_component(component, fragments) for component in SETTABLE]
        built = cast(Built, tuple(components))
        self._check_splits(built[0], built[3], fragments)
        return built

    def _build_component(self, component: str, fragments: Sequence[Fragment]) -> Config:
        merged: dict[str, Any] = {}
        for fragment in fragments:
            merged |= fragment.settings.get(component, {})
        name = merged.get("name")
        # Two classes of a notebook may have the same name, so a class is told apart by its id.
        unique_name = (name.__qualname__, id(name)) if isinstance(name, type) else name
        key = (component, repr(sorted({**merged, "name": unique_name}.items())))
        if key not in self._built:
            if component in _NAME_EXAMPLES and "name" not in merged:
                example = f"{component}: {{name: {_NAME_EXAMPLES[component]}}}"
                raise UsageError(f"no {component} is named: base, or every level of an axis, needs {example}")
            try:
                self._built[key] = _build(component, merged)
            except UsageError as error:
                # The message about an unknown name begins with the component itself: "unknown task 'x'".
                message = str(error) if isinstance(error, UnknownName) else f"{component} {error}"
                raise _locate_culprit(component, merged, fragments, message) from error
        return self._built[key]

    def _check_splits(self, task: Task, evaluation: Evaluation, fragments: Sequence[Fragment]) -> None:
        pair = (id(task), id(evaluation))
        if pair in self._checked_splits:
            return
        for split in (*evaluation.splits, *evaluation.curve):
            try:
                task.get_split(split)
            except UsageError as error:
                raise _error_at("evaluation", None, fragments, f"evaluation of {error}") from error
        self._checked_splits.add(pair)


def _locate_culprit(component: str, merged: dict[str, Any], fragments: Sequence[Fragment], message: str) -> UsageError:
    """The error about a component that can't be built, at the last option without which it could be.

    The name comes first: if even the name alone fails, it is the culprit. If no single option is, the error names all
    fragments with options of the component.
    """
    only_name = {option: value for option, value in merged.items() if option == "name"}
    culprit = None
    if not _can_build(component, only_name):
        culprit = "name"
    else:
        for option in reversed(merged):
            others = {other: value for other, value in merged.items() if other != option}
            if _can_build(component, others):
                culprit = option
                break
    if culprit is None:
        return _error_at(component, None, fragments, message)
    last = [fragment for fragment in fragments if culprit in fragment.settings.get(component, {})][-1]
    return _error_at(component, culprit, [last], message)


def _can_build(component: str, options: Options) -> bool:
    if component in _NAME_EXAMPLES and "name" not in options:
        return False
    try:
        _build(component, options)
    except UsageError:
        return False
    return True


def _error_at(component: str, option: str | None, fragments: Sequence[Fragment], message: str) -> UsageError:
    """An error that names all of these fragments that have options of the component."""
    concerned = [fragment for fragment in fragments if fragment.settings.get(component)]
    locations = " and ".join(fragment.locate(component, option) for fragment in concerned)
    in_file = any(isinstance(fragment.settings[component], YamlMapping) for fragment in concerned)
    text = f"{locations}: {message}"
    return LocatedError(text) if in_file else UsageError(text)
