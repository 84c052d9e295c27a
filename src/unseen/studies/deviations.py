"""How a scale deviates from the full study and from the published recipe."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from unseen.studies.grid import Level
from unseen.studies.trial import Entry
from unseen.training.recipe import deviations as recipe_deviations

Configuration = frozenset[tuple[str, Level]]
"""A combination of levels: pairs of axis and level."""
Entries = Mapping[Configuration, Sequence[Entry]]
"""The entries of each configuration: one per seed."""
COMPARED = ("task", "model", "evaluation")
"""The components of a trial whose options are compared with the full study; the recipe is compared with the paper's."""


def deviations(entries: Sequence[Entry], full: Sequence[Entry] | None) -> list[str]:
    """The deviations of entries, a phrase each; `full` is None for a study without a full scale to compare with."""
    full = full or entries
    by_configuration = _group_entries(entries)
    full_by_configuration = _group_entries(full)
    phrases = [*_compare_levels(entries, full), *_compare_seeds(by_configuration, full_by_configuration)]
    affected: dict[str, list[Configuration]] = defaultdict(list)
    for configuration, group in by_configuration.items():
        if configuration in full_by_configuration:
            references = [configuration]
        else:
            references = _find_nearest(configuration, full_by_configuration)
        # Options in which the references differ among themselves follow from a level, and the levels were compared.
        ignored = _find_varying_options([full_by_configuration[reference][0] for reference in references])
        for phrase in _compare_options(group, full_by_configuration[references[0]], ignored):
            affected[phrase].append(configuration)
    by_location: dict[str, list[str]] = defaultdict(list)
    for phrase, configurations in affected.items():
        by_location[_describe_location(configurations, by_configuration)].append(phrase)
    phrases += by_location.pop("", [])
    for location, local_phrases in by_location.items():
        phrases.append(f"{location}: {', '.join(local_phrases)}")
    return phrases


def levels_in_use(entries: Iterable[Entry]) -> dict[str, list[Level]]:
    """The levels on each axis, in order of appearance."""
    levels_by_axis: dict[str, dict[Level, None]] = defaultdict(dict)
    for entry in entries:
        for axis, level in entry.levels.items():
            levels_by_axis[axis][level] = None
    return {axis: list(levels) for axis, levels in levels_by_axis.items()}


def _group_entries(entries: Iterable[Entry]) -> Entries:
    groups: dict[Configuration, list[Entry]] = defaultdict(list)
    for entry in entries:
        groups[frozenset(entry.levels.items())].append(entry)
    return dict(groups)


def _find_nearest(configuration: Configuration, full: Entries) -> list[Configuration]:
    """For a configuration that the full study does not have: those of the full study that share the most levels with it."""
    common = configuration & max(full, key=lambda other: len(configuration & other))
    return [other for other in full if common <= other]


def _find_varying_options(entries: Sequence[Entry]) -> frozenset[tuple[str, str]]:
    """The options, as (component, option), in which trials differ."""
    values_by_option: dict[tuple[str, str], set[str]] = defaultdict(set)
    for entry in entries:
        for component, option, value in _iterate_options(entry):
            values_by_option[component, option].add(repr(value))
    return frozenset(option for option, values in values_by_option.items() if len(values) > 1)


def _iterate_options(entry: Entry) -> Iterator[tuple[str, str, object]]:
    """Every option of a trial's task, model and evaluation."""
    for component in COMPARED:
        config = getattr(entry.trial, component)
        for option in type(config).model_fields:
            yield component, option, getattr(config, option)


def _compare_levels(entries: Sequence[Entry], full: Sequence[Entry]) -> Iterator[str]:
    """The levels that a scale leaves out or adds, axis by axis.

    Where an axis lacks levels for some levels of the first axis only (attention has two numbers of rules, MLPs five),
    the phrase says for which.
    """
    levels_by_axis = levels_in_use(entries)
    full_levels_by_axis = levels_in_use(full)
    leading = _find_leading_axis(levels_by_axis, full_levels_by_axis)
    for axis in {**full_levels_by_axis, **levels_by_axis}:
        levels = levels_by_axis.get(axis, [])
        full_levels = full_levels_by_axis.get(axis, [])
        missing = [level for level in full_levels if level not in levels]
        added = [level for level in levels if level not in full_levels]
        if missing:
            yield f"{axis}: {_join(missing)} left out"
        if added:
            yield f"{axis}: {_join(added)} added"
        if leading is not None and axis != leading:
            yield from _compare_levels_by_group(entries, full, leading, axis, missing)


def _find_leading_axis(levels: Mapping[str, Sequence[Level]], full: Mapping[str, Sequence[Level]]) -> str | None:
    """The first axis of which a scale has several levels, all of them in the full study, too."""
    for axis in full:
        shared = [level for level in levels.get(axis, []) if level in full[axis]]
        if len(shared) > 1:
            return axis
    return None


def _compare_levels_by_group(
    entries: Sequence[Entry], full: Sequence[Entry], leading: str, axis: str, known: Sequence[Level]
) -> Iterator[str]:
    """The levels of `axis` that only some levels of the axis `leading` lack, apart from those `known` to be missing."""
    groups_by_missing: dict[tuple[Level, ...], list[Level]] = {}
    for group in levels_in_use(entries)[leading]:
        used = levels_in_use(entry for entry in entries if entry.levels.get(leading) == group).get(axis, [])
        planned = levels_in_use(entry for entry in full if entry.levels.get(leading) == group).get(axis, [])
        missing = tuple(level for level in planned if level not in used and level not in known)
        if missing:
            groups_by_missing.setdefault(missing, []).append(group)
    for missing, groups in groups_by_missing.items():
        yield f"{axis}: {_join(missing)} left out for {leading} {_join(groups)}"


def _compare_seeds(entries: Entries, full: Entries) -> Iterator[str]:
    """How many seeds the configurations have, if not as many as in the full study; which of them have how many."""
    full_counts = sorted({len(group) for group in full.values()})
    by_count: dict[int, list[Configuration]] = defaultdict(list)
    for configuration, group in entries.items():
        by_count[len(group)].append(configuration)
    if sorted(by_count) == full_counts:
        return
    for count, configurations in sorted(by_count.items()):
        if [count] == full_counts:
            continue
        noun = "seed" if count == 1 else "seeds"
        location = _describe_location(configurations, entries)
        where = f" for {location}" if location else ""
        yield f"{count} {noun}{where} (full: {_join(full_counts, ' or ')})"


def _compare_options(
    entries: Sequence[Entry], full: Sequence[Entry], ignored: Collection[tuple[str, str]]
) -> Iterator[str]:
    """The differences in task, model, evaluation and data from a configuration of the full study, but for the ignored
    options; then the deviations of the recipe."""
    trial = entries[0].trial
    full_trial = full[0].trial
    if getattr(trial.model, "matched", None) and getattr(full_trial.model, "matched", None):
        # The width follows from the quantity that both are matched by, which is compared itself.
        ignored = {*ignored, ("model", "width")}
    for component, option, value in _iterate_options(entries[0]):
        full_value = getattr(getattr(full_trial, component), option, None)
        if value != full_value and (component, option) not in ignored:
            # Words, which may be those of an option (`always_include`), are set off from the name by an equals sign.
            name = f"{component} {option.replace('_', ' ')}"
            sign = " = " if full_value is None else " "
            yield f"{name}{sign}{_format_value(value)} (full: {_format_value(full_value)})"
    full_data_seeds = {entry.trial.seed: entry.trial.data_seed for entry in full}
    for entry in entries:
        data_seed = entry.trial.data_seed
        if full_data_seeds.get(entry.trial.seed, data_seed) != data_seed:
            yield "training data of other data seeds than in the full study"
            break
    yield from recipe_deviations(trial.recipe, trial.task.name, trial.model.name)


def _describe_location(configurations: Sequence[Configuration], entries: Entries) -> str:
    """Some of the configurations of a scale in words; '' for all of them."""
    if len(configurations) == len(entries):
        return ""
    first_entries = [entries[configuration][0] for configuration in configurations]
    for axis, levels in levels_in_use(first_entries).items():
        with_levels = [configuration for configuration in entries if dict(configuration).get(axis) in levels]
        if len(with_levels) == len(configurations):
            return f"{axis} {_join(levels)}"
    return f"{len(configurations)} of {len(entries)} combinations"


def _join(values: Iterable[object], separator: str = ", ") -> str:
    return separator.join(map(str, values))


def _format_value(value: object) -> str:
    """A value for people; features are listed with their number of values.

    >>> _format_value(None), _format_value((1, 3)), _format_value(()), _format_value((("shape", ("a", "b")), ("color", ("red",))))
    ('not set', '1, 3', 'none', 'shape × 2, color × 1')
    """
    from unseen.models.backbones.options import Matched  # loads torch, which reading a store does not need

    if isinstance(value, Matched):
        return f"by {value.by} to {value.to}"
    if not isinstance(value, tuple):
        return "not set" if value is None else str(value)
    texts = []
    for item in value:
        if isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], tuple):
            name, feature_values = item
            texts.append(f"{name} × {len(feature_values)}")
        else:
            texts.append(str(item))
    return ", ".join(texts) or "none"
