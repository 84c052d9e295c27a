"""What a scale leaves out or does otherwise: against the full study, and against the published recipe."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from unseen.engine.recipe import deviations as recipe_deviations
from unseen.models.backbones.options import Matched
from unseen.studies.grid import Entry, Level

Place = frozenset[tuple[str, Level]]
Places = Mapping[Place, Sequence[Entry]]
"""The entries at each combination of levels: one per seed."""
PARTS = ("task", "model", "evaluation")


def deviations(entries: Sequence[Entry], full: Sequence[Entry] | None) -> list[str]:
    """One phrase each; `full` is None for a study that has no full scale to compare with."""
    here, there = _places(entries), _places(full or entries)
    phrases = [*_levels(entries, full or entries), *_seeds(here, there)]
    affected: dict[str, list[Place]] = defaultdict(list)
    for place, found in here.items():
        like = [place] if place in there else _nearest(place, there)
        for phrase in _options(found, there[like[0]], _varied([there[one][0] for one in like])):
            affected[phrase].append(place)
    grouped: dict[str, list[str]] = defaultdict(list)
    for phrase, places in affected.items():
        grouped[_where(places, here)].append(phrase)
    return phrases + grouped.pop("", []) + [f"{where}: {', '.join(said)}" for where, said in grouped.items()]


def _places(entries: Iterable[Entry]) -> Places:
    found: dict[Place, list[Entry]] = defaultdict(list)
    for entry in entries:
        found[frozenset(entry.levels.items())].append(entry)
    return dict(found)


def _nearest(place: Place, there: Places) -> list[Place]:
    """For a place that the full study does not have: its places that have the same of its levels, as many as can be."""
    common = place & max(there, key=lambda other: len(place & other))
    return [other for other in there if common <= other]


def _varied(entries: Sequence[Entry]) -> frozenset[tuple[str, str]]:
    """The options in which cells differ: there the level that is added says it all."""
    values: dict[tuple[str, str], set[str]] = defaultdict(set)
    for part, option, value in (found for entry in entries for found in _parts(entry)):
        values[part, option].add(repr(value))
    return frozenset(name for name, found in values.items() if len(found) > 1)


def _parts(entry: Entry) -> Iterator[tuple[str, str, object]]:
    """Every option of a cell's task, model and evaluation."""
    for part in PARTS:
        config = getattr(entry.cell, part)
        yield from ((part, option, getattr(config, option)) for option in type(config).model_fields)


def levels_in_use(entries: Iterable[Entry]) -> dict[str, list[Level]]:
    """The levels on each axis, in order of appearance."""
    found: dict[str, dict[Level, None]] = defaultdict(dict)
    for entry in entries:
        for axis, level in entry.levels.items():
            found[axis][level] = None
    return {axis: list(levels) for axis, levels in found.items()}


def _levels(entries: Iterable[Entry], full: Iterable[Entry]) -> Iterator[str]:
    here, there = levels_in_use(entries), levels_in_use(full)
    for axis in {**there, **here}:
        used, known = here.get(axis, []), there.get(axis, [])
        missing, added = [v for v in known if v not in used], [v for v in used if v not in known]
        if missing:
            yield f"{axis}: {_list(missing)} left out"
        if added:
            yield f"{axis}: {_list(added)} added"


def _seeds(here: Places, there: Places) -> Iterator[str]:
    used, known = (sorted({len(found) for found in places.values()}) for places in (here, there))
    if used != known:
        yield f"{_list(used, ' or ')} {'seed' if used == [1] else 'seeds'} (full: {_list(known, ' or ')})"


def _options(found: Sequence[Entry], full: Sequence[Entry], but: Collection[tuple[str, str]]) -> Iterator[str]:
    """Where task, model, evaluation and data differ from a place of the full study, but for some options; then the
    recipe."""
    mine, other = found[0].cell, full[0].cell
    if getattr(mine.model, "matched", None) and getattr(other.model, "matched", None):
        but = {*but, ("model", "width")}  # it follows from what both are matched by, and that is said
    for part, option, value in _parts(found[0]):
        wanted = getattr(getattr(other, part), option, None)
        if value != wanted and (part, option) not in but:
            yield f"{part} {option.replace('_', ' ')} {_value(value)} (full: {_value(wanted)})"
    wanted_data = {entry.cell.seed: entry.cell.data_seed for entry in full}
    if any(wanted_data.get(entry.cell.seed, entry.cell.data_seed) != entry.cell.data_seed for entry in found):
        yield "training data of other data seeds than in the full study"
    yield from recipe_deviations(mine.recipe, mine.task.name, mine.model.name)


def _where(places: Sequence[Place], here: Places) -> str:
    """Which places these are, in words; '' for all of them."""
    if len(places) == len(here):
        return ""
    entries = [here[place][0] for place in places]
    for axis, levels in levels_in_use(entries).items():
        chosen = [place for place in here if dict(place).get(axis) in levels]
        if len(chosen) == len(places):
            return f"{axis} {_list(levels)}"
    return f"{len(places)} of {len(here)} combinations"


def _list(values: Iterable[object], between: str = ", ") -> str:
    return between.join(map(str, values))


def _value(value: object) -> str:
    """A value for people; of features how many values they have.

    >>> _value((1, 3)), _value(()), _value((("shape", ("a", "b")), ("color", ("red",))))
    ('1, 3', 'none', 'shape × 2, color × 1')
    """
    if isinstance(value, Matched):
        return f"by {value.by} to {value.to}"
    if isinstance(value, tuple):
        return ", ".join(f"{one[0]} × {len(one[1])}" if _named_values(one) else str(one) for one in value) or "none"
    return str(value)


def _named_values(value: object) -> bool:
    """Whether this is a name with a tuple of values."""
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], tuple)
