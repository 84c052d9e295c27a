"""Write docs/rejudged.md: the verdicts of 17 November beside those that the present rules give on the same tables.

python docs/make_rejudged.py

The tables are those of the mini studies of 15 to 17 November (`docs/results/NAME-mini.csv`), the old verdicts
`docs/results/verdicts-2026-11-17.csv`. The tables have no learning curves and no records by level of a factor.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from unseen.claims import judge
from unseen.claims.claim import JudgedClaim
from unseen.claims.criterion import DECIDED
from unseen.claims.judge_studies import JudgedStore, add_caveats, keep_home_verdicts
from unseen.claims.page import ORDER, mark_name, pair_claims
from unseen.claims.planned import catalogued_runs
from unseen.claims.render import describe_coverage, explain_briefly, explain_not_run, table_row

HERE = Path(__file__).parent
OLD = HERE / "results" / "verdicts-2026-11-17.csv"
REASONS = HERE / "rejudged_reasons.yaml"
PAGE = HERE / "rejudged.md"

STUDIES: Mapping[str, Mapping[str, Any]] = {
    "retrieval-table2": {"recipe.batch": 100, "task.length": 5},
    "rules-main": {"selection": "last", "width": 32, "recipe.batch": 64},
    "ctl-table1": {"task.functions": 8},
    "gcog-distractors": {"selection": "last", "task": "gcog/distractor"},
    "gcog-systematicity": {"selection": "last", "questions": "fresh"},
    "gcog-pool": {
        "selection": "last",
        "task": "gcog/systematic-trees",
        "model": "gcog-gru",
        "preset": "clean",
        "distractors": "some",
    },
}
"""What the tables do not say of their runs, because it was the same for all of them."""
HEAD = """# The verdicts of 17 November, judged again

This page puts the verdicts that were published on 17 November beside those that [the present rules](statistics.md) give on the same
stored tables: the mini studies of 15 to 17 November. Every claim is *exploratory* here, because its criteria were registered later.
It is written by `python docs/make_rejudged.py`, and a test proves that it follows from the tables.

What differs between the two columns: intervals were percentile bootstraps over the seeds, which cannot leave their range, and are now
Student's t limits; every criterion counted alike, and now the main point of a sentence (its *headline*) counts before details; runs that
had not converged were left out, and now all count; printed tables were judged number by number, and are now agreements; criteria were
revised and registered on 18 November. The tables hold no learning curves, so what a run may still gain is not considered here, and no records by
position, length or operator, so claims about these cannot be judged again.

"""


def read_study(name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The records of a stored table and one row per run, with the options that the present catalogue gives such runs."""
    constants = dict(STUDIES[name])
    selection = constants.pop("selection", None)
    rows = pd.read_csv(HERE / "results" / f"{name}-mini.csv")
    rows = rows.rename(columns={"old_trial_id": "trial"}).assign(scale="mini")
    rows = rows.assign(**{key: value for key, value in constants.items() if "." not in key})
    if selection is not None:
        rows["selection"] = selection
    if "data_seed" not in rows:
        rows["data_seed"] = rows["seed"]
    if "architecture" in rows:
        rows["task"] = "rules/" + rows["architecture"]
        rows["model"] = "rules-" + rows["architecture"]
    for column in ("factor", "level"):
        rows[column] = rows[column].astype(object).fillna("").astype(str) if column in rows else ""
    rows = rows[rows["factor"] == ""]
    runs = rows.drop_duplicates("trial").drop(columns=["selection", "split", "factor", "level", "metric", "value", "n"])
    catalogue = catalogued_runs(name, "mini")
    keys = [key for key in ("task", "variant", "model") if key in runs and key in catalogue]
    options = [column for column in catalogue if "." in column]
    runs = runs.merge(catalogue[[*keys, *options]].drop_duplicates(keys), on=keys, how="left")
    runs["recipe.steps"] = runs["step"]
    for option, value in constants.items():
        if "." in option:
            runs[option] = value
    return rows, runs


def judge_again() -> dict[str, tuple[str, JudgedClaim]]:
    """The verdicts on all claims by the stored tables, with the study of each."""
    stores = []
    for name in STUDIES:
        records, runs = read_study(name)
        stores.append(JudgedStore(name, f"{name}@1", tuple(add_caveats(judge.judge_tables(records, runs), name)), {}))
    return {judged.claim.name: (store.name, judged) for store, judged in pair_claims(keep_home_verdicts(stores))}


def compare_verdicts() -> pd.DataFrame:
    """One row per claim of 17 November: the old and the new verdict, and what the new one hangs on."""
    new = judge_again()
    old = pd.read_csv(OLD, keep_default_na=False).set_index("claim")
    rows = []
    for name, (_, judged) in new.items():
        if name not in old.index:  # a claim that was written later
            continue
        rests = explain_not_run(judged) if judged.verdict == "not run" else explain_briefly(judged)
        rows.append((name, old.at[name, "verdict"], judged.verdict, describe_coverage(judged), rests, judged))
    return pd.DataFrame(rows, columns=["claim", "old", "new", "coverage", "hangs_on", "judged"])


def format_page() -> str:
    """The page as text."""
    table = compare_verdicts()
    reasons = yaml.safe_load(REASONS.read_text("utf-8")) if REASONS.is_file() else {}
    lines = [HEAD + _count(table), ""]
    for family, rows in table.groupby(table["claim"].str.partition("/")[0], sort=False):
        lines += [f"## {rows['judged'].iloc[0].claim.paper}: `{family}`", ""]
        lines += [table_row("claim", "17 November", "now", "coverage now", "what it hangs on now", "why it changed")]
        lines += ["|---|---|---|---|---|---|"]
        for row in rows.itertuples():
            why = reasons.get(row.claim, "") if row.old != row.new else ""
            new = f"**{row.new}**" if row.new in DECIDED else row.new
            lines.append(table_row(mark_name(row.judged.claim), row.old, new, row.coverage, row.hangs_on, why))
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def _count(table: pd.DataFrame) -> str:
    counts = []
    for column, title in (("old", "On 17 November"), ("new", "Now")):
        verdicts = table[column].tolist()
        numbers = [f"{verdicts.count(verdict)} {verdict}" for verdict in ORDER if verdict in verdicts]
        counts.append(f"{title}: {', '.join(numbers)}.")
    changed = int((table["old"] != table["new"]).sum())
    return f"{' '.join(counts)} {changed} of {len(table)} verdicts changed; the last column says why."


if __name__ == "__main__":
    PAGE.write_text(format_page(), "utf-8")
