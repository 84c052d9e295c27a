"""Claims of users: written in YAML, in a study file or in a file of their own. See docs/your-claims.md.

claims:
  - claim: attention-helps
    statement: Self-attention helps where order matters, whatever the length.
    split: ood/single
    headline:
      - better: {variant: attention}
        than: {variant: plain}
        by: 0.02
    details:
      - above: 0.75
        runs: {variant: attention, length: [5, 10]}
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from unseen.claims import criterion
from unseen.claims.claim import Claim, Tables
from unseen.claims.criterion import Criterion, details
from unseen.claims.evidence import Group, SamplingDesign
from unseen.claims.judge import load_claims
from unseen.claims.registration import fingerprint
from unseen.errors import CheckFailed, UsageError, nearest
from unseen.store.store import CLAIMS, REGISTERED, Store
from unseen.studies.grid import Level
from unseen.studies.study import Study
from unseen.studies.yaml_loader import YamlMapping, locate_errors, read_yaml

_CLAIM = ("claim", "statement", "quote", "source", "split", "metric", "weights", "unit", "headline", "details")
_COMPARISONS = ("above", "below", "between", "better", "no_better")
_CRITERION = (*_COMPARISONS, "runs", "than", "by", "metric", "may_fail")
_UNITS: Mapping[str, SamplingDesign] = {
    "seed": SamplingDesign(),
    "task": SamplingDesign(("task_seed", "seed"), "task_seed", "task", "task instance, initialisation and data"),
}
_INSIDE = "variable,site,position"
"""The factor by which probes and interchange interventions are recorded."""
_ALWAYS = ("task", "model")
"""Columns that every table of runs has, beside the axes of the study and the options (`task.length`)."""


def read_claims(path: Path, axes: Collection[str] = ()) -> list[Claim]:
    """Read a file of claims: `study: NAME`, and `claims:` as in a study file. `axes` are those of the runs."""
    content = read_yaml(path)
    content.check_keys(("study", "claims"))
    study = content.value("study", str)
    if not study:
        raise content.error(None, "a file of claims names the study that tests them, like study: order-and-noise")
    claims = parse_claims(content, study, axes)
    if not claims:
        raise content.error("claims", "the file has no claims")
    return claims


def parse_claims(content: YamlMapping, study: str, axes: Collection[str] = (), weights: str = "best") -> list[Claim]:
    """Make the claims of a mapping's key `claims`; texts in the list, which name claims of the papers, are left out.

    Runs that differ in an axis which a criterion does not name are averaged seed by seed, and compared level by level.
    """
    claims: dict[str, Claim] = {}
    for item in content.sequence("claims"):
        if isinstance(item, str):
            continue
        if not isinstance(item, YamlMapping):
            raise content.error("claims", f"claims: expected the name of a claim or a mapping, got {item!r}")
        claim = _parse_claim(item, study, axes, weights)
        if claim.name in claims:
            raise item.error("claim", f"claim '{item['claim']}' is given twice")
        claims[claim.name] = claim
    return list(claims.values())


def check_study_claims(study: Study, axes: Collection[str]) -> list[Claim]:
    """Read the claims that a study file states; errors name the line. Those that it only names must be known."""
    if study.claims:
        load_claims(study.claims)
    content = YamlMapping(study.name, 1)
    # Those of a YAML file know their lines, those of a Python file are plain mappings.
    stated = [item if isinstance(item, YamlMapping) else _as_mapping(item, study.name) for item in study.own_claims]
    content.put("claims", stated, 1)
    return parse_claims(content, study.name, axes, study.selection)


def select_claims(study: Study, own_claims: Sequence[Claim], names: Sequence[str]) -> list[Claim]:
    """The claims that a study can decide, or the named ones: of the papers, and its own."""
    papers_claims = load_claims(study.claims) if study.claims else []
    by_name = {claim.name: claim for claim in (*papers_claims, *own_claims)}
    if not by_name:
        raise UsageError(f"study '{study.name}' has no claims; state some in its file (docs/your-claims.md)")
    for name in names:
        if name not in by_name:
            raise UsageError(f"study '{study.name}' has no claim '{name}'. {nearest(name, by_name)}")
    return [by_name[name] for name in names or by_name]


def list_axes(all_levels: Iterable[Iterable[str]]) -> list[str]:
    """The axes of entries, from the levels of each."""
    return sorted(set(chain.from_iterable(all_levels)))


def remember_claims(store: Store, study: Study, claims: Sequence[Claim], axes: Sequence[str]) -> None:
    """Register the claims of a study in its store, before the first run; an earlier registration stays."""
    if claims and store.recall(CLAIMS) is None:
        hashes = {claim.name: fingerprint(claim) for claim in claims}
        content = {"study": study.name, "axes": list(axes), "weights": study.selection}
        # As text: the order of a criterion's columns is that of its words, which are part of the hash.
        stated = json.dumps(list(study.own_claims))
        store.remember(REGISTERED, store.began)
        store.remember(CLAIMS, {**content, "claims": stated, "hashes": hashes})


def has_registered(path: Path) -> bool:
    """Whether claims of a study were registered in a directory before its runs."""
    with Store.read(path) as store:
        return store.recall(CLAIMS) is not None


def recall_registration_time(notes: Mapping[str, Any]) -> datetime | None:
    """When the claims of a store or records file were registered; None if that was not written down."""
    time = notes.get(REGISTERED)
    return None if time is None else datetime.fromisoformat(time)


def recall_claims(notes: Mapping[str, Any], source: str) -> tuple[list[Claim], dict[str, str]]:
    """The claims that are registered among the notes of a store or records file, and their hashes."""
    registration = notes.get(CLAIMS)
    if registration is None:
        return [], {}
    try:
        stated = registration["claims"]
        if isinstance(stated, str):  # older stores have the claims themselves
            stated = json.loads(stated)
        content = _as_mapping({"claims": stated}, source)
        claims = parse_claims(content, registration["study"], registration["axes"], registration["weights"])
        return claims, dict(registration["hashes"])
    except (KeyError, TypeError, ValueError) as error:
        raise CheckFailed(f"{source} is damaged: the claims that it registered can't be read") from error


def _as_mapping(value: Any, file: str) -> Any:
    """Plain data as a file's content, so that errors name where it comes from."""
    if isinstance(value, Mapping):
        mapping = YamlMapping(file, 1)
        for key, item in value.items():
            mapping.put(key, _as_mapping(item, file), 1)
        return mapping
    if isinstance(value, list | tuple):
        return [_as_mapping(item, file) for item in value]
    return value


def _parse_claim(item: YamlMapping, study: str, axes: Collection[str], weights: str) -> Claim:
    item.check_keys(_CLAIM)
    for key in ("claim", "statement", "split"):
        if not item.value(key, str):
            raise item.error(None, f"a claim needs {key}: …, a text")
    unit = _one_of(item, "unit", tuple(_UNITS), "seed")
    selection = _one_of(item, "weights", ("best", "last"), weights)
    metric = item.value("metric", str, "accuracy")
    columns = (*axes, *_ALWAYS) if axes else ()
    headline = [_parse_criterion(entry, item, "headline", metric, columns) for entry in item.sequence("headline")]
    if not headline:
        raise item.error("headline", "a claim needs at least one headline criterion: the main point of its statement")
    detail = [_parse_criterion(entry, item, "details", metric, columns) for entry in item.sequence("details")]
    return Claim(
        f"{study}/{item['claim']}",
        item.value("source", str, ""),
        item["statement"],
        "",
        [*headline, *details(*detail)],
        paper=item.value("source", str, "") or study,
        study=study,
        columns=all_runs,
        split=item["split"],
        quote=item.value("quote", str, ""),
        measures=partial(select_records, split=item["split"], weights=selection),
        design=replace(_UNITS[unit], matched_on=tuple(axes)),
    )


def all_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """A user's claim is about all runs of its study."""
    return runs


def select_records(tables: Tables, split: str, weights: str) -> pd.DataFrame:
    """Select the records of some weights on one split.

    Probes and interchange interventions are recorded by variable, site and position. A claim names one of them in its
    metric: `interchange/accuracy at symbol[1],encoder.state,token[1]`.
    """
    records = tables.records
    chosen = records[(records["selection"] == weights) & (records["split"] == split)]
    inside = chosen["factor"] == _INSIDE
    if not inside.any():
        return chosen
    metric = chosen["metric"].where(~inside, chosen["metric"] + " at " + chosen["level"].astype(str))
    return chosen.assign(metric=metric, factor=chosen["factor"].where(~inside, ""))


def _one_of(item: YamlMapping, key: str, allowed: tuple[str, ...], default: str) -> str:
    value: str = item.value(key, str, default)
    if value not in allowed:
        raise item.error(key, f"{key} = {value!r}: expected {' or '.join(allowed)}")
    return value


def _parse_criterion(entry: object, item: YamlMapping, key: str, metric: str, columns: Collection[str]) -> Criterion:
    example = "{above: 0.9, runs: {variant: plain}}"
    if not isinstance(entry, YamlMapping):
        raise item.error(key, f"{key}: expected criteria like {example}, got {entry!r}")
    entry.check_keys(_CRITERION)
    may_fail = entry.get("may_fail", False)
    if not isinstance(may_fail, bool):
        raise entry.error("may_fail", f"may_fail = {may_fail!r}: expected true or false")
    return replace(_parse_comparison(entry, metric, columns, example), may_fail=may_fail)


def _parse_comparison(entry: YamlMapping, metric: str, columns: Collection[str], example: str) -> Criterion:
    comparisons = [name for name in _COMPARISONS if name in entry]
    if len(comparisons) != 1:
        raise entry.error(None, f"a criterion has one of {', '.join(_COMPARISONS)}, like {example}")
    comparison = comparisons[0]
    metric = entry.value("metric", str, metric)
    with locate_errors(entry.locate(comparison)):
        if comparison in ("better", "no_better"):
            if "runs" in entry:
                raise entry.error("runs", f"{comparison} names its runs itself: {comparison}: {{…}}, than: {{…}}")
            by = float(entry.value("by", int | float, 0.0))
            first = _parse_group(entry, comparison, metric, columns)
            other = _parse_group(entry, "than", metric, columns)
            if comparison == "better":
                return criterion.better(first, other, by)
            return criterion.no_better(first, other, by)
        for misplaced in ("than", "by"):
            if misplaced in entry:
                raise entry.error(misplaced, f"'{misplaced}' belongs to better and no_better")
        runs = _parse_group(entry, "runs", metric, columns)
        if comparison == "between":
            low, high = _parse_range(entry)
            return criterion.between(runs, low, high)
        bound = float(entry.value(comparison, int | float))
        compare: Callable[..., Criterion] = criterion.above if comparison == "above" else criterion.below
        return compare(runs, bound)


def _parse_range(entry: YamlMapping) -> tuple[float, float]:
    bounds = entry.sequence("between")
    numbers = [bound for bound in bounds if isinstance(bound, int | float) and not isinstance(bound, bool)]
    if len(bounds) != 2 or len(numbers) != 2 or not numbers[0] < numbers[1]:
        raise UsageError(f"between = {bounds!r}: expected two numbers, the smaller first, like [0.4, 0.6]")
    return float(numbers[0]), float(numbers[1])


def _parse_group(entry: YamlMapping, key: str, metric: str, known: Collection[str]) -> Group:
    """Read which runs are meant: axes of the study, or options like `task.length`, and their levels."""
    columns: dict[str, tuple[Any, ...]] = {}
    for column, value in entry.mapping(key).items():
        if known and column not in known and "." not in str(column):
            raise entry.error(key, f"{key}: the study has no axis '{column}'. {nearest(str(column), known)}")
        levels = value if isinstance(value, list) else [value]
        if not levels or not all(isinstance(level, Level) for level in levels):
            raise entry.error(key, f"{key}: {column} = {value!r}: expected a level or a list of levels")
        columns[str(column)] = tuple(levels)
    if not columns:
        raise entry.error(key, f"{key}: which runs? Name an axis and its level, like {{variant: plain}}")
    return Group(columns, metric)
