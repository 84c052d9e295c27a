"""From settings to the parts of a cell: each distinct task, model, recipe and evaluation is built once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from unseen.errors import UsageError, nearest
from unseen.studies.lines import Lined

if TYPE_CHECKING:
    from unseen.config import Config
    from unseen.engine.recipe import Evaluation, Recipe
    from unseen.tasks.base import Task

Options = Mapping[str, Any]
Settings = Mapping[str, Options]
"""Options by part: `{"task": {"name": "retrieval/T6", "length": 5}, "recipe": {"steps": 2000}}`."""
Built = tuple["Task", "Config", "Recipe", "Evaluation"]


def _task(options: Options) -> Config:
    from unseen.tasks import task

    return task(**options)


def _model(options: Options) -> Config:
    from unseen.models import options as model

    return model(**options)


def _recipe(options: Options) -> Config:
    from unseen.engine.recipe import recipe

    return recipe(**options)


def _evaluation(options: Options) -> Config:
    from unseen.engine.recipe import Evaluation

    return Evaluation.parse(options)


# The builders import what they need when they are called: to list studies is not to load torch.
BUILD: dict[str, Callable[[Options], Config]] = {
    "task": _task,
    "model": _model,
    "recipe": _recipe,
    "evaluation": _evaluation,
}
_NAMED = {"task": "retrieval/T6", "model": "retrieval-transformer"}
"""The parts that have no default name, with a name to show in the error."""


@dataclass(frozen=True)
class Fragment:
    """Settings and where they were said: `base`, or `axis 'variant', level 'plain'`."""

    place: str
    settings: Settings

    def __post_init__(self) -> None:
        if not isinstance(self.settings, Mapping):
            raise UsageError(
                f"{self.place}: expected settings like {{'model': {{'width': 50}}}}, got {self.settings!r}"
            )
        for part, options in self.settings.items():
            if part not in BUILD:
                raise UsageError(
                    f"{_line(self.settings, part)}{self.place}: unknown part '{part}'. {nearest(str(part), BUILD)}"
                )
            if not isinstance(options, Mapping) or not all(isinstance(k, str) for k in options):
                raise UsageError(
                    f"{_line(self.settings, part)}{self.place}: {part} needs options by name, got {options!r}"
                )
            named = str | type if part == "model" else str  # a model may be a user's class
            if not isinstance(options.get("name", ""), named):
                raise UsageError(f"{_line(options, 'name')}{self.place}: {part} name = {options['name']!r} is no name")

    def where(self, part: str, key: str | None = None) -> str:
        """The place of an option or of a part, with its line if it was read from a file."""
        options = self.settings[part]
        return f"{_line(options, key)}{self.place}"


class Parts:
    """Builds parts from fragments, the later ones winning; the same options give the same object."""

    def __init__(self) -> None:
        self._built: dict[tuple[str, str], Config] = {}
        self._conditions_known: set[tuple[int, int]] = set()

    def of(self, fragments: Sequence[Fragment]) -> Built:
        """The four parts that these fragments describe together."""
        found = {part: self._part(part, fragments) for part in BUILD}
        built = cast(Built, tuple(found.values()))
        self._check_conditions(built[0], built[3], fragments)
        return built

    def _part(self, part: str, fragments: Sequence[Fragment]) -> Config:
        merged: dict[str, Any] = {}
        for fragment in fragments:
            merged |= fragment.settings.get(part, {})
        key = (part, repr(sorted({**merged, "name": _unmistakable(merged.get("name"))}.items())))
        if key not in self._built:
            if part in _NAMED and "name" not in merged:
                raise UsageError(
                    f"no {part} is named: base, or every level of an axis, needs {part}: {{name: {_NAMED[part]}}}"
                )
            try:
                self._built[key] = BUILD[part](merged)
            except UsageError as error:
                said = str(error) if str(error).startswith("unknown") else f"{part} {error}"
                raise UsageError(f"{_culprit(part, merged, fragments)}: {said}") from error
        return self._built[key]

    def _check_conditions(self, task: Task, evaluation: Evaluation, fragments: Sequence[Fragment]) -> None:
        pair = (id(task), id(evaluation))
        if pair in self._conditions_known:
            return
        for condition in evaluation.conditions:
            try:
                task.condition(condition)
            except UsageError as error:
                raise UsageError(f"{_all_places('evaluation', fragments)}: evaluation of {error}") from error
        self._conditions_known.add(pair)


def _unmistakable(name: Any) -> Any:
    """A name, or a class that no other is taken for: two of a notebook may be called alike."""
    return (name.__qualname__, id(name)) if isinstance(name, type) else name


def _culprit(part: str, merged: dict[str, Any], fragments: Sequence[Fragment]) -> str:
    """Where the option stands without which the part could be built; if there is no such one, all that might be it."""
    name = {k: v for k, v in merged.items() if k == "name"}
    suspects = ["name"]
    if _builds(part, name):
        suspects = [key for key in reversed(merged) if _builds(part, {k: v for k, v in merged.items() if k != key})]
    if not suspects:
        return _all_places(part, fragments)
    last = [f for f in fragments if suspects[0] in f.settings.get(part, {})][-1]
    return last.where(part, suspects[0])


def _builds(part: str, options: Options) -> bool:
    if part in _NAMED and "name" not in options:
        return False
    try:
        BUILD[part](options)
    except UsageError:
        return False
    return True


def _all_places(part: str, fragments: Sequence[Fragment]) -> str:
    return " and ".join(f.where(part) for f in fragments if f.settings.get(part))


def _line(said: Mapping[Any, Any], key: object) -> str:
    return f"{said.where(key)}: " if isinstance(said, Lined) else ""
