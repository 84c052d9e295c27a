"""The description of a study in its store, so that other people can read the runs without the study's file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from unseen.errors import UsageError
from unseen.studies.deviations import levels_in_use
from unseen.studies.study import Study, find_catalogued

SELECTIONS = ("best", "last")


@dataclass(frozen=True)
class ScaleDescription:
    """The size of a scale, its own seeds, the minutes that it may take, and how it differs from the paper.

    `deviations` is None if they are not known: they are written when a scale is run.
    """

    trials: int
    seeds: tuple[int, ...]
    minutes: float | None = None
    deviations: tuple[str, ...] | None = None


@dataclass(frozen=True)
class StudyDescription:
    """The question of a study, its axes with their levels, its claims, notes and scales, and the weights it shows."""

    question: str = ""
    axes: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    claims: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    selection: str = "best"
    scales: Mapping[str, ScaleDescription] = field(default_factory=dict)


def describe_study(study: Study, scale: str, stored: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The facts about a study that a store keeps, as JSON; `stored` are those of earlier runs into the same store.

    Axes are lists of pairs, because their order matters and that of a JSON object may not survive.
    """
    scales: dict[str, Any] = {}
    earlier = (stored or {}).get("scales", {})
    for name, minutes in study.scales.items():
        entries = study.entries(name)
        facts: dict[str, Any] = {
            "trials": len(entries),
            "seeds": sorted({entry.trial.seed for entry in entries}),
            "minutes": minutes,
        }
        if name == scale:
            facts["deviations"] = study.deviations(name)
        elif "deviations" in earlier.get(name, {}):
            facts["deviations"] = earlier[name]["deviations"]
        scales[name] = facts
    return {
        "question": study.question,
        "axes": [[axis, levels] for axis, levels in levels_in_use(study.entries(scale)).items()],
        "claims": list(study.claims),
        "notes": list(study.notes),
        "selection": study.selection,
        "scales": scales,
    }


def merge_descriptions(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of two stores of one study: those of the first, with the deviations of scales that only the second ran."""
    if not first:
        return dict(second)
    scales = {name: dict(facts) for name, facts in first.get("scales", {}).items()}
    for name, facts in second.get("scales", {}).items():
        scales[name] = {**facts, **scales.get(name, {})}
    return {**first, "scales": scales}


def read_description(facts: Mapping[str, Any]) -> StudyDescription | None:
    """The description that a store holds; None if it holds none, or one that this release can't read.

    A store may come from anybody, so every fact is checked; it is only ever shown as text.
    """
    if not facts:
        return None
    try:
        scales = {}
        for name, scale in facts["scales"].items():
            deviations = scale.get("deviations")
            minutes = scale.get("minutes")
            scales[str(name)] = ScaleDescription(
                int(scale["trials"]),
                tuple(map(int, scale["seeds"])),
                None if minutes is None else float(minutes),
                None if deviations is None else tuple(map(str, deviations)),
            )
        selection = facts["selection"]
        return StudyDescription(
            str(facts["question"]),
            {str(axis): list(levels) for axis, levels in facts["axes"]},
            tuple(map(str, facts["claims"])),
            tuple(map(str, facts["notes"])),
            selection if selection in SELECTIONS else "best",
            scales,
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None


def find_description(work: Mapping[str, Any], stored: Mapping[str, Any]) -> StudyDescription | None:
    """The description of a study in its store, or else that of the study of this name in this release."""
    description = read_description(stored)
    if description is not None or "study" not in work:
        return description
    try:
        study = find_catalogued(str(work["study"]))
        facts = describe_study(study, study.default_scale)
        for name in facts["scales"].keys() - {study.default_scale}:
            facts["scales"][name]["deviations"] = study.deviations(name)
    except UsageError:
        return None
    return read_description(facts)
