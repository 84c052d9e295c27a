"""Registration: the hash and date of a claim's criteria, written down before the runs that test it.

`registered.json` lists every claim of the papers with the hash of everything that its verdict depends on and the time
from which runs count as registered. A claim that was changed since then has another hash and is *exploratory*.

`amended.json` lists what was added to registered claims later: what a paper says itself of seeds that fail. Such an
amendment has a hash and a date of its own, which leave those of the claim alone. Verdicts stay registered because an
amendment can only take them back (`judge.amend`).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from importlib.resources import files
from types import FunctionType
from typing import Any

from unseen.claims import quantity
from unseen.claims.claim import Claim
from unseen.claims.criterion import Criterion, PrintedNumber
from unseen.claims.quantity import Quantity
from unseen.config import canonical

STATISTICS = ("MEAN", "SPREAD", "POOLED", "OVERALL", "SHARE", "CORRELATION")
"""The statistics of `claims.quantity`, by the names that hashes contain."""


@dataclass(frozen=True)
class Registration:
    """The hash of a claim, when it was registered, and the time from which runs count: earlier ones were judged before."""

    hash: str
    date: str
    runs_from: str
    reason: str = ""


@dataclass(frozen=True)
class Amendment:
    """What was added to a registered claim: its hash, with the claim's own in it, when, and why."""

    hash: str
    date: str
    reason: str


def fingerprint(claim: Claim) -> str:
    """Hash everything that a claim's verdict depends on, the quoted sentence included: SHA-256 of canonical JSON.

    What only describes the claim to people (`statement`, `printed`, `setting`) is left out. A function counts by its
    name and its fixed arguments, a statistic by its name. An amendment (`failing`) is hashed by itself.
    """
    design = claim.design
    described = {
        "name": claim.name,
        "source": claim.source,
        "quote": claim.quote,
        "study": claim.study,
        "split": claim.split,
        "ours": claim.ours,
        "printed_for": _plain(claim.printed_for),
        "learning": _plain(claim.learning),
        "columns": _plain(claim.columns),
        "measures": _plain(claim.measures),
        "design": _plain([design.draw, design.cluster, design.unit, design.matched_on, design.derived_from]),
        "criteria": [_describe_criterion(criterion) for criterion in claim.criteria],
    }
    return hashlib.sha256(canonical(described).encode()).hexdigest()


def fingerprint_amendment(claim: Claim) -> str:
    """Hash what was added to a claim after its registration, together with the hash of the claim; empty if nothing was."""
    if not claim.failing:
        return ""
    accounts = []
    for failing in claim.failing:
        accounts.append(
            {
                "columns": _plain(failing.columns),
                "metrics": _plain(failing.metrics),
                "level": failing.level,
                "quote": failing.quote,
                "source": failing.source,
            }
        )
    return hashlib.sha256(canonical({"claim": fingerprint(claim), "failing": accounts}).encode()).hexdigest()


def _describe_criterion(criterion: Criterion) -> dict[str, Any]:
    described = {
        "key": criterion.key,
        "role": criterion.role,
        "printed": criterion.printed,
        "may_fail": criterion.may_fail,
        "low": _plain(criterion.low),
        "high": _plain(criterion.high),
        "quantity": _describe_quantity(criterion.quantity),
    }
    if isinstance(criterion, PrintedNumber):
        described["number"] = _plain([criterion.value, criterion.spread, criterion.seeds])
    return described


def _describe_quantity(measured: Quantity) -> dict[str, Any]:
    (statistic,) = [name for name in STATISTICS if getattr(quantity, name) is measured.statistic]
    groups = [[_plain(group.columns), group.metric, group.factor] for group in measured.groups]
    return {"statistic": statistic, "groups": groups}


@cache
def read_registrations() -> Mapping[str, Registration]:
    """The registrations that ship with the package, by name of the claim."""
    return {name: Registration(**entry) for name, entry in _read_json("registered.json").items()}


@cache
def read_amendments() -> Mapping[str, Amendment]:
    """The amendments of registered claims, by name of the claim."""
    return {name: Amendment(**entry) for name, entry in _read_json("amended.json").items()}


def _read_json(name: str) -> dict[str, Any]:
    file = files("unseen.claims").joinpath(name)
    content: dict[str, Any] = json.loads(file.read_text("utf-8")) if file.is_file() else {}  # nothing was written yet
    return content


def is_registered(claim: Claim, first_run: datetime) -> bool:
    """Whether the claim is as it was registered and amended, and its first run began late enough."""
    entry = read_registrations().get(claim.name)
    if entry is None or entry.hash != fingerprint(claim):
        return False
    amendment = read_amendments().get(claim.name)
    if fingerprint_amendment(claim) != ("" if amendment is None else amendment.hash):
        return False
    return first_run >= datetime.fromisoformat(entry.runs_from)


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, partial):
        return {"call": _plain(value.func), "args": _plain(value.args), "keywords": _plain(value.keywords)}
    if isinstance(value, FunctionType):
        return f"{value.__module__}:{value.__qualname__}"
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
