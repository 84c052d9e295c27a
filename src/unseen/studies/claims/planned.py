"""Where a claim that was not run would be: the smallest scale of its study that has what it speaks of."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

import pandas as pd

from unseen.studies.cell import words
from unseen.studies.claims.claim import Claim, at_setting, keys
from unseen.studies.claims.evidence import Evidence
from unseen.studies.study import study

TRIAL = "smoke"
"""The scale that tries whether everything runs; nothing is judged from it."""


def command(claim: Claim, tried: Collection[str] = ()) -> str:
    """The command that would run what a claim needs; empty if no scale of its study has it, but those `tried`."""
    scale = scale_for(claim, tried)
    return f"unseen run {claim.study} --scale {scale} --out DIR" if scale else ""


def scale_for(claim: Claim, tried: Collection[str] = ()) -> str:
    """The smallest scale at which all parts of a claim have runs; or, if there is none, some; or none: empty.

    >>> from unseen.studies.claims import CLAIMS
    >>> scale_for(CLAIMS.load("ctl/K5")), scale_for(CLAIMS.load("retrieval/table2"))
    ('medium', 'small')
    """
    # A part of a claim is judged in a larger study than a small part of it.
    scales = [scale for scale in study(claim.study).scales if scale != TRIAL and scale not in tried]
    shares = {scale: _share(claim, scale) for scale in scales}
    most = max(shares.values(), default=0.0)
    return next((scale for scale, share in shares.items() if share == most > 0), "")


def _share(claim: Claim, scale: str) -> float:
    """The share of the parts of a claim that would have runs."""
    runs, _, elsewhere = at_setting(claim, _planned(claim.study, scale))
    evidence = Evidence(pd.DataFrame(), runs, keys(claim), claim.design)
    there = [
        not (part.printed and elsewhere) and not any(map(evidence.absent, part.quantity.groups)) for part in claim.parts
    ]
    return sum(there) / len(there)


@lru_cache(maxsize=16)
def _planned(name: str, scale: str) -> pd.DataFrame:
    """One row per place of a study, as the table of its runs would have it, of one seed."""
    rows = []
    for number, entry in enumerate(study(name).entries(scale, seeds=[0])):
        said = {part: words(getattr(entry.cell, part).options()).partition(" ") for part in ("task", "model")}
        rows.append(
            {
                **entry.levels,
                **{part: text[0] for part, text in said.items()},
                **{f"{part}_options": text[2] for part, text in said.items()},
                "scale": scale,
                "seed": 0,
                "data_seed": 0,
                "cell": str(number),
            }
        )
    return pd.DataFrame(rows)
