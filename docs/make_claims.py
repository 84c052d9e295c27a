"""Write docs/claims.md: every claim, the verdicts of stored studies, and what no claim tests.

python docs/make_claims.py DIRECTORY-OR-RECORDS-FILE ...
"""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

from unseen.claims import judge, page
from unseen.claims.judge_studies import judge_store, keep_home_verdicts
from unseen.claims.render import table_row

HERE = Path(__file__).parent
HEAD = """# Claims

This page lists what the four papers claim and what our runs say about it: {number} claims, statements of the papers and
questions of ours about them, as criteria on records. Verdicts by the stored studies (see [what was run](#what-was-run)): {counts}.
"""
READING = """## How to read this

* *Supported*: every headline criterion of a claim holds at one-sided 5 %, at least half of its details were run and none is
  contradicted. *Mixed*: the same, with a detail contradicted. *Contradicted*: a headline criterion lies elsewhere, at
  one-sided 5 % after Holm's correction. *Not reached*: it would rest on models, smaller than the paper's, most of which have not learned.
  *Undecided*: none of these. *In progress*: the planned seeds are not complete. [The rules](studies.md#verdicts).
* No verdict rests on a point estimate or on fewer than three seeds (for `rules`: tasks). Runs that still drifted when they
  ended count, with what they may still gain or lose; if that changes an outcome, it is open.
* *What it hangs on* is the weakest criterion of a supported claim, else the first criterion that stands in its way:
  what should hold, then the estimate (of a comparison: the difference) with its interval, and the number of seeds or
  tasks. Errors are shares of wrong answers, or losses in units of the zero predictor's; R1 to R9 are the analyses of
  the retrieval paper.
* A verdict is about what was run. Scale `mini` has smaller worlds, narrower models and far shorter training than the
  papers: *contradicted* means that the statement does not hold *there*. Numbers that a paper prints for its own setting
  are compared in that setting only. Where a paper gives no number, the bounds are ours.
* `unseen claims DIR --claim NAME` shows all criteria with their numbers, `--format json` gives the same to programs.
  This page is written by `python docs/make_claims.py src/unseen/records/*.zip`.
* {modes}
* Some claims were written after studies of scale `mini` had been run and looked at, so their verdicts there are no
  predictions: {late}. `rules/F1` and `retrieval/C9` were given another criterion then.
"""
LATE = (
    "ctl/K6-counted",
    "ctl/K7-clusters",
    "ctl/adding-up",
    "ctl/spreads",
    "retrieval/lengths",
    "retrieval/spreads",
    "retrieval/variants",
    "retrieval/one-feature",
    "rules/flipped",
    "rules/votes-flipped",
    "rules/levels",
    *(f"rules/{name}" for name in ("C1", "C2", "C3", "C3-trend", "C4", "C4-width", "C5", "C5-state", "C6", "C7")),
)
INVENTORY = """## What is claimed

All statements, with the numbers that the papers print; then the statements that are not tested, and why. *Ours* are
questions that the papers do not ask.
"""


def _link(study: str, scale: str) -> str:
    address = f"results/{study}-{scale}.md"
    return address if (HERE / address).exists() else ""


def _list_statements() -> list[str]:
    claims = judge.load_claims()
    untested = yaml.safe_load((HERE / "untested_statements.yaml").read_text(encoding="utf-8"))
    papers = {claim.name.partition("/")[0]: claim.paper for claim in claims}
    lines = [INVENTORY]
    for family, paper in papers.items():
        lines += [f"### Claims of {paper}", "", table_row("claim", "statement", "source", "printed"), f"|{4 * '---|'}"]
        for claim in claims:
            if claim.paper == paper:
                lines.append(table_row(page.mark_name(claim), claim.statement, claim.source, claim.printed))
        lines += ["", "Not tested:", "", table_row("statement", "source", "why"), f"|{3 * '---|'}"]
        lines += [table_row(entry["statement"], entry["source"], entry["why"]) for entry in untested[family]]
        lines.append("")
    return lines


def format_page(sources: list[str]) -> str:
    """The page of all claims, judged by these directories or records files."""
    stores = keep_home_verdicts([judge_store(Path(source)) for source in sources])
    counts = page.count_verdicts(judged for _, judged in page.pair_claims(stores))
    head = HEAD.format(number=len(judge.load_claims()), counts=counts)
    silent = [f"{store.study} {scale}" for store in stores if store.mode is None for scale in store.deviations]
    modes = page.describe_without_mode(silent) or "Every study noted before its first run when its claims are judged."
    reading = READING.format(modes=modes, late=", ".join(f"`{name}`" for name in LATE))
    lines = [head, *page.format_overview(stores), reading, *page.format_sections(stores, _link), *_list_statements()]
    return "\n".join(lines).rstrip("\n") + "\n"


if __name__ == "__main__":
    (HERE / "claims.md").write_text(format_page(sys.argv[1:]), "utf-8")
