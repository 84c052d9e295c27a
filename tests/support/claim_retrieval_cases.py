"""The verdicts that each claim of the retrieval family can come to, on made-up records with a known truth."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import pandas as pd

from support.claim_records import attention, frame, lengths, noise, positions, readings, shapes, table2
from unseen.claims import CLAIMS
from unseen.claims.claim import JudgedClaim
from unseen.claims.judge import judge

LATER_IS_HARDER = {"T−Pos−Att": 0.0, "T+Pos−Att": 0.0, "T−Pos+Att": -0.51, "T+Pos+Att": -0.51}


@cache
def published(length: int = 10) -> pd.DataFrame:
    return frame(table2(length), attention(length), positions(LATER_IS_HARDER, length=length), readings(length))


def shifted(records: pd.DataFrame, metric: str, by: float) -> pd.DataFrame:
    """Records in which all values of a metric are other ones: a table is contradicted if many of its numbers differ."""
    return records.assign(value=records.value.where(records.metric != metric, records.value + by))


def good_lstms(records: pd.DataFrame) -> pd.DataFrame:
    """Records in which the basic LSTM is better than the Transformers, on every task."""
    chosen = (records.variant == "LSTM") & (records.metric == "accuracy")
    return records.assign(value=records.value.where(~chosen, 0.95 + 0.001 * records.seed))


def changed(records: pd.DataFrame, task: str, variant: str, value: float, metric: str = "accuracy") -> pd.DataFrame:
    """Records in which one trial of the table has other values."""
    chosen = (records.task == f"retrieval/{task}") & (records.variant == variant) & (records.metric == metric)
    assert chosen.any()
    return records.assign(value=records.value.where(~chosen, value + 0.001 * records.seed))


WRONG: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "retrieval/C1": lambda r: changed(r, "T1", "T+Pos+Att", 0.7),  # the components harm; levels are details
    "retrieval/C2": lambda r: changed(r, "T4", "T+Pos+Att", 0.95),
    "retrieval/C3": lambda r: changed(r, "T3", "T−Pos+Att", 0.86),
    "retrieval/C4": lambda r: changed(r, "T5", "T+Pos+Att", 0.95),
    "retrieval/C5": lambda r: changed(r, "T6", "T−Pos−Att", 0.9),
    "retrieval/C6": lambda r: changed(r, "T7", "T+Pos+Att", 0.85),
    "retrieval/C7": lambda r: changed(r, "T6", "T+Pos+Att", 0.99),
    "retrieval/C8": lambda r: changed(r, "T6", "T−Pos+Att", -0.5, "R7/positive"),
    "retrieval/C9": lambda r: r.assign(value=r.value.where(r.metric != "R2/accuracy", 1.9 - r.value)),
    "retrieval/C10": good_lstms,
    "retrieval/table2": lambda r: shifted(r, "accuracy", -0.12),
    "retrieval/attention": lambda r: shifted(r, "R7/positive", 0.2),
    "retrieval/reading": lambda r: changed(r, "T1", "T−Pos−Att", 0.999, "R1/wrong").assign(
        value=lambda f: f.value.where(f.metric != "R1/wrong", 0.95)
    ),
    "retrieval/lengths": lambda r: frame(shapes(fall=-0.004)),
    "retrieval/spreads": lambda r: changed(r, "T6", "T+Pos+Att", -0.14, "R7/positive"),  # printed: ± 0.55
    "retrieval/variants": lambda r: changed(r, "T3", "T−Pos−Att", 0.9, "R5/target"),
    "retrieval/one-feature": lambda r: changed(r, "T4", "T+Pos+Att", 0.1, "R6/agreement where the rule errs"),
    "retrieval/noise": lambda r: frame(noise(dropout=0.0, positions=0.03)),
}

# What each claim is asked of, where that is not the paper's two tables at length 10.
MADE: dict[str, Callable[[], pd.DataFrame]] = {
    "retrieval/C7": lambda: frame(table2(seeds=25)),  # five seeds leave it open
    "retrieval/C10": lambda: frame(lengths()),
    "retrieval/lengths": lambda: frame(shapes()),
    "retrieval/noise": lambda: frame(noise()),
}


@cache
def made(name: str) -> pd.DataFrame:
    return MADE.get(name, published)()


def few(name: str) -> pd.DataFrame:
    records = made(name)
    return records[records.seed < 2]


def wrong(name: str) -> pd.DataFrame:
    return WRONG[name](made(name))


@cache  # judged once, though several tests look at it
def found(name: str, records: Callable[[str], pd.DataFrame]) -> JudgedClaim:
    return judge(CLAIMS.load(name), records(name))


SUPPORTED = {name: partial(found, name, made) for name in WRONG}
CONTRADICTED = {name: partial(found, name, wrong) for name in WRONG}
UNDECIDED = {name: partial(found, name, few) for name in WRONG}
