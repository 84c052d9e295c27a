"""What has to be said beside the numbers of a comparison: what they are, and how the directories differ."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from unseen.stats import INDICATIVE
from unseen.studies.same import Same, facts
from unseen.studies.sides import Place, Side, folded

_MOST, _LINE, _LONGEST = 4, 160, 60
"""So many of many places are named, in a line so long; so many letters of a value are shown."""
_WEIGHTS = {"best": "weights that were best on validation", "last": "last weights"}
_LOSSES = {"loss", "relative_loss"}


@dataclass(frozen=True)
class Beside:
    """A side and the first, `a`: the places that are compared (at `empty` of them there was nothing to compare), and
    the cells that both hold."""

    letter: str
    a: Side
    b: Side
    places: Sequence[tuple[Place, Place]]
    empty: int
    same: Same


def heading(letter: str, side: Side) -> str:
    """One line about a directory."""
    ended = side.ended.drop_duplicates("cell")
    scales = f" {', '.join(side.scales)}" if any(side.scales) else ""
    versions = facts(side, set(ended["cell"]))
    known = ", ".join(f"{name} {versions[name]}" for name in ("unseen", "torch") if name in versions)
    runs = side.entries["cell"].nunique()
    return f"{letter}: {side.name} ({side.title}{scales}; {len(ended)} of {runs} runs ended{'; ' * bool(known)}{known})"


def alarms(pair: Beside) -> list[str]:
    """The same cell with other numbers: which, by how much, and whether the surroundings explain it."""
    same, letter = pair.same, pair.letter
    if not same.changed:
        return []
    here, there = (facts(side, same.changed) for side in (pair.a, pair.b))
    off = [name for name in {**here, **there} if here.get(name) != there.get(name) and name != "git_commit"]
    amount = f", by up to {same.largest:.2g}" if same.largest == same.largest else ""
    promise = (
        f"they were run with other {', '.join(off)}, where numbers need only agree to rounding"
        if off
        else "versions and machine are the same as far as is known: the promise of equal bits is broken, or the code "
        "was changed without a new version"
    )
    return [
        f"SAME CELL, OTHER NUMBERS: {len(same.changed)} of the {len(same.changed) + len(same.identical)} runs that "
        f"A and {letter} both hold ({same.numbers} numbers{amount}): cells {_few(sorted(same.changed))}",
        *(
            f"  {name}: {', '.join(f'{fact} {value}' for fact, value in found.items()) or 'no provenance'}"
            for name, found in (("A", here), (letter, there))
        ),
        f"  {promise}",
    ]


def footnotes(table: pd.DataFrame, beside: Sequence[Beside], selection: str) -> list[str]:
    """A line each."""
    metrics = dict.fromkeys(table["metric"])
    lines = [
        f"{', '.join(metrics)} of the {_WEIGHTS[selection]}; means over the runs compared; a positive difference: "
        f"higher than A{' (of a loss: worse)' * bool(_LOSSES & {*metrics})}",
        *_tests(table),
    ]
    for pair in beside:
        lines += [
            *_shared(pair),
            *_learning(pair),
            *_alone(pair),
            *_conditions(pair),
            *_deviations(pair),
            *_versions(pair),
        ]
    return lines


def _tests(table: pd.DataFrame) -> Iterator[str]:
    """What intervals and p values are, and what they can't be."""
    tested = table[table["low"].notna()]
    if len(tested):
        yield (
            f"intervals: 95 %, bootstrap over {_or(tested['covers'])}; p: "
            f"{_or('sign flips of the pairs' if one == 'paired' else 'permutation' for one in tested['test'])}, "
            f"two-sided; adjusted: Benjamini–Hochberg over {len(tested)} rows"
        )
    pairs, n = table[table["test"] == "paired"], int((table["test"] == "unpaired").sum())
    if len(pairs):
        several = (
            "task seed, seed and data seed; each task counts once"
            if (pairs["covers"].str.startswith("task").any())
            else "seed and data seed"
        )
        alone = bool(pairs[["alone_a", "alone_b"]].to_numpy().any())
        yield f"paired by {several}{'; runs without a partner are left out' * alone}"
    if n:
        yield f"unpaired in {n} of {len(table)} rows (5+4: runs on each side): no seed in common"
    if tested["indicative"].any():
        yield f"* indicative: fewer than {INDICATIVE} pairs (or runs on a side)"
    few = tested[(tested["test"] == "paired") & (tested["pairs"] < 6)]
    if len(few):
        most = int(few["pairs"].max())
        yield f"with {most} pairs p can't fall below {2 / 2**most:g}"
    if (tested["low"] == tested["high"]).any():
        yield "an interval without width: all pairs differ by the same; that is no certainty"
    if len(table[table["low"].isna() & (table["cells"] != "identical")]):
        yield "no interval and no test below 3 pairs (or 3 runs on each side)"
    lost = table.drop_duplicates(["pair", *table.columns[3 : table.columns.get_loc("condition")]])
    if lost["lost_a"].sum() + lost["lost_b"].sum():
        yield (
            f"left out, because they diverged, failed or have no finite number: {lost['lost_a'].sum()} runs of A, "
            f"{lost['lost_b'].sum()} of the others"
        )


def _shared(pair: Beside) -> Iterator[str]:
    held = len(pair.same.identical) + len(pair.same.changed)
    if held and not pair.same.changed:
        yield f"the {held} runs that A and {pair.letter} both hold are identical, number by number"
    if pair.same.alone:
        yield f"{pair.same.alone} numbers of these runs are in one of A and {pair.letter} only"


def _learning(pair: Beside) -> Iterator[str]:
    for letter, found in _sides(pair):
        runs = {run.cell: run for place in found for run in place.runs if run.status in ("finished", "stopped")}
        unknown = sum(run.still_learning is None for run in runs.values())
        if unknown:
            yield f"{unknown} runs of {letter} were too short to tell whether they were still learning"


def _alone(pair: Beside) -> Iterator[str]:
    """The places that only one side has, or has runs at."""
    for (letter, found), side in zip(_sides(pair), (pair.a, pair.b), strict=True):
        beside = {(place.scale, _levels(place)) for place in found}
        every = [
            place
            for scale in dict.fromkeys(place.scale for place in found)
            for place in side.places(scale, folded(pair.a, pair.b))
        ]
        missing = [_levels(place) for place in every if (place.scale, _levels(place)) not in beside]
        if missing:
            yield f"{len(missing)} of {len(every)} places are in {letter} only: {_few(missing, '; ')}"
    if pair.empty:
        yield (
            f"{pair.empty} of {len(pair.places)} places that A and {pair.letter} both have are left out: no run has "
            "ended there on both sides, or none with the metric"
        )


def _conditions(pair: Beside) -> Iterator[str]:
    """The conditions that only one side was evaluated on."""
    names = []
    for (_, found), side in zip(_sides(pair), (pair.a, pair.b), strict=True):
        cells = {run.cell for place in found for run in place.runs}
        names.append(dict.fromkeys(side.records["condition"][side.records["cell"].isin(cells)].unique().tolist()))
    for letter, mine, other in (("A", *names), (pair.letter, *names[::-1])):
        only = [name for name in mine if name not in other]
        if only and other:
            yield f"conditions of {letter} only: {_few(only)}"


def _deviations(pair: Beside) -> Iterator[str]:
    """Where what is done differs between the sides, with the places at which it does."""
    found: dict[str, dict[str, None]] = {}
    for one, other in pair.places:
        for key in one.works.keys() & other.works.keys():
            for phrase in _differences(one.works[key], other.works[key], pair.letter):
                found.setdefault(phrase, {})[_levels(one)] = None
    every = len({_levels(one) for one, _ in pair.places})
    for phrase, where in found.items():
        yield phrase + ("" if len(where) == every else f" ({len(where)} of {every} places: {_few([*where], '; ')})")


def _differences(a: Mapping[str, Any], b: Mapping[str, Any], letter: str) -> Iterator[str]:
    """Every option of task, model, recipe and evaluation that differs."""
    for part in ("task", "model", "recipe", "evaluation"):
        mine, other = a.get(part, {}), b.get(part, {})
        for option in dict.fromkeys([*mine, *other]):
            if mine.get(option) != other.get(option) or (option in mine) != (option in other):
                said = [_value(held[option]) if option in held else "the default" for held in (mine, other)]
                yield f"{part}{'' if option == 'name' else f' {option}'}: {said[0]} in A, {said[1]} in {letter}"


def _versions(pair: Beside) -> Iterator[str]:
    here, there = (facts(side, set(side.ended["cell"])) for side in (pair.a, pair.b))
    for name in dict.fromkeys([*here, *there]):
        if here.get(name) != there.get(name):
            yield f"{name}: {here.get(name, 'not known')} in A, {there.get(name, 'not known')} in {pair.letter}"


def _sides(pair: Beside) -> list[tuple[str, list[Place]]]:
    """The letter and the compared places of each side."""
    return [("A", [one for one, _ in pair.places]), (pair.letter, [other for _, other in pair.places])]


def _levels(place: Place) -> str:
    return " · ".join(
        f"{level}" if axis in ("task", "model") else f"{axis} {level}"
        for axis, level in place.levels.items()
        if level is not None
    )


def _value(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _few(texts: Sequence[str], between: str = ", ") -> str:
    """The first texts, as many as are still read."""
    fitting = (n for n in range(2, _MOST + 1) if len(between.join(texts[:n])) < _LINE)
    shown = texts[: max(fitting, default=1)]
    return between.join(shown) + (f"{between}…" if len(texts) > len(shown) else "")


def _or(texts: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(texts))
