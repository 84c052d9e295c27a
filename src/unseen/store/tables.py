"""The tidy tables that users get, made from the rows of a store."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, TypeVar

import pandas as pd

from unseen.config import Config
from unseen.models import MODELS
from unseen.registry import Registry
from unseen.studies.trial import format_changes
from unseen.tasks import TASKS

T = TypeVar("T")
_RECORD = ["selection", "split", "factor", "level", "metric", "value", "standard_error", "n"]
_POINT = ["step", "split", "metric", "value"]
_TRIAL = ["seed", "data_seed", "status", "step", "not_converged"]
_COMPONENTS = ["task", "task_options", "model", "model_options", "recipe", "recipe_options"]


def records_table(records: pd.DataFrame, entries: pd.DataFrame) -> pd.DataFrame:
    """Records with the levels of their trial, in the order of the study."""
    return _join_rows(entries, records, ["trial", "evaluation_id"], [*_COMPONENTS, *_TRIAL], _RECORD)


def curves_table(curves: pd.DataFrame, entries: pd.DataFrame) -> pd.DataFrame:
    """Points of learning curves with the levels of their trial."""
    return _join_rows(entries, curves, ["trial"], ["task", "model", "seed", "data_seed"], _POINT)


def trials_table(entries: pd.DataFrame) -> pd.DataFrame:
    """One row per trial, scale and evaluation: its levels, its step, how it ended, and why if it failed."""
    labelled, axes = label_entries(entries)
    return labelled[[*axes, *_COMPONENTS, *_TRIAL, "best_step", "note", "cause", "trial"]]


def runs_table(entries: pd.DataFrame) -> pd.DataFrame:
    """The table of trials with a typed column per option: `task.length`, `model.width`, `recipe.batch`, ….

    Options that were left at their defaults have the default of the config class. A model that is not part of this
    package has the columns that were stored with it: reading a table imports no code that a store names.
    """
    return trials_table(entries).assign(**option_columns(entries))


def label_entries(entries: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Entries with columns for scale, axes and the components of the trial; and the names of scale and axes."""
    all_levels = _map_texts(entries.levels, json.loads)
    # Task and model have columns of their own, with the component's name in place of the level.
    axes = [axis for axis in dict.fromkeys(chain.from_iterable(all_levels)) if axis not in ("task", "model")]
    columns: dict[str, Any] = {}
    for axis in axes:
        column = [levels.get(axis) for levels in all_levels]
        # Every level keeps its type: where some trials have none, pandas would turn 5 into 5.0.
        columns[axis] = column if None not in column else pd.Series(column, dtype=object)
    for component in ("task", "model", "recipe"):
        identities = _map_texts(entries[component], json.loads)
        columns[component] = [str(identity.get("name", "")) for identity in identities]
        columns[f"{component}_options"] = _map_texts(entries[component], lambda text: format_changes(json.loads(text)))
    scale = ["scale"] if (entries.scale != "").any() else []
    return entries.assign(**columns), scale + axes


def identifying_axes(labelled: pd.DataFrame, axes: Sequence[str]) -> list[str]:
    """The columns that tell configurations apart: the axes of a study (scale is none of them), preceded by `task` and
    `model` where these vary and do not follow from the axes."""
    independent = []
    for component in ("task", "model"):
        names = labelled[component]
        follows = bool(axes) and bool((labelled.groupby(list(axes), dropna=False)[component].nunique() == 1).all())
        if names.nunique() > 1 and not follows:
            independent.append(component)
    return [*independent, *axes]


def _join_rows(
    entries: pd.DataFrame, rows: pd.DataFrame, keys: list[str], described: list[str], values: list[str]
) -> pd.DataFrame:
    """The rows of every trial beside its description: trials in the order of the study, the rows of each as they came."""
    labelled, axes = label_entries(entries)
    trials = labelled[[*axes, *described, *keys]].assign(_entry=range(len(labelled)))
    joined = trials.merge(rows.assign(_row=range(len(rows))), on=keys, how="inner", sort=False)
    ordered = joined.sort_values(["_entry", "_row"], ignore_index=True)
    return ordered[[*axes, *described, *values, "trial"]]  # without the two columns that kept the order


def option_columns(entries: pd.DataFrame) -> dict[str, pd.Series]:
    """One column per option of task, model and recipe, named `task.length` and so on; None where a trial has none."""
    columns: dict[str, pd.Series] = {}
    for component in ("task", "model", "recipe"):
        options = _map_texts(entries[component], partial(_options_of_text, component))
        for name in dict.fromkeys(chain.from_iterable(options)):
            values = [row.get(name) for row in options]
            series = pd.Series(values, entries.index, dtype=object)
            columns[f"{component}.{name}"] = series if None in values else series.infer_objects()
    return columns


def _options_of_text(component: str, text: str) -> dict[str, Any]:
    return all_options(component, json.loads(text))


def all_options(component: str, identity: Mapping[str, Any]) -> dict[str, Any]:
    """All options of a stored task, model or recipe, with the defaults of its config class filled in.

    >>> all_options("task", {"name": "retrieval/T6", "version": 1})["length"]
    10
    """
    options = {name: value for name, value in identity.items() if name not in ("name", "version")}
    config = _config_class(component, str(identity["name"]))
    defaults: dict[str, Any] = {}
    if config is not None and config.version == identity.get("version", config.version):
        for name, field in config.model_fields.items():
            if name != "name" and not field.is_required():
                defaults[name] = field.get_default(call_default_factory=True)
    return {name: _hashable(value) for name, value in {**defaults, **options}.items()}


def _config_class(component: str, name: str) -> type[Config] | None:
    """The config class of this package behind a stored name; None for a plug-in or a user's class."""
    if component == "recipe":
        from unseen.training.recipe import Recipe

        return Recipe
    registry: Registry[Any] = TASKS if component == "task" else MODELS
    if ":" in name or name not in registry or not registry.entry(name).target.startswith("unseen."):
        return None
    implementation = registry.load(name)
    config: type[Config] = implementation if component == "task" else implementation.Options
    return config


def _hashable(value: Any) -> Any:
    """Lists as tuples, so that tables can be grouped by them."""
    return tuple(map(_hashable, value)) if isinstance(value, list | tuple) else value


def _map_texts(column: pd.Series, function: Callable[[str], T]) -> list[T]:
    """A function of every text in a column. Thousands of trials share few texts, so it is called once for each."""
    texts = column.tolist()
    results = {text: function(text) for text in set(texts)}
    return [results[text] for text in texts]
