"""Write docs/claims.md: every claim, the verdicts of stored studies, and what no claim tests.

python docs/make_claims.py DIRECTORY ...
"""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

from unseen.claims import judge, page
from unseen.claims.render import table_row

HERE = Path(__file__).parent
HEAD = """# Claims

This page lists what the four papers claim and what our runs say about it: {number} claims, statements of the papers and
questions of ours about them, as criteria on records. Verdicts by the stored studies (see [what was run](#what-was-run)): {counts}.
"""
READING = """## How to read this

* *Supported*: the whole 95 % interval of every criterion of a claim lies where the claim says. *Contradicted*: that of
  at least one criterion lies elsewhere, even if the interval is widened for the number of criteria. *Undecided*:
  neither.
* No verdict rests on a point estimate, on fewer than three seeds (for `rules`: tasks), or on a run that had not
  converged. With fewer than ten of them, as everywhere here, an interval is only indicative. In `ctl` and `gcog`,
  generalization is judged only for runs that have learned their task: *no OOD in these runs* may mean that none has.
* *What it hangs on* is the weakest criterion of a supported claim, else the first criterion that stands in its way:
  what should hold, then the estimate (of a comparison: the difference) with its interval, and the number of seeds or
  tasks. Errors are shares of wrong answers, or losses in units of the zero predictor's; R1 to R9 are the analyses of
  the retrieval paper.
* A verdict is about what was run. Scale `mini` has smaller worlds, narrower models and far shorter training than the
  papers: *contradicted* means that the statement does not hold *there*. Numbers that a paper prints for its own setting
  are compared in that setting only. Where a paper gives no number, the bounds are ours.
* `unseen claims DIR --claim NAME` shows all criteria with their numbers, `--format json` gives the same to programs.
  This page is written by `python docs/make_claims.py DIR ...`.
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


def main(directories: list[str]) -> None:
    """Judge the claims by these directories and write the page."""
    stores = judge.keep_home_verdicts([judge.judge_store(Path(directory)) for directory in directories])
    counts = page.count_verdicts(judged for _, judged in page.pair_claims(stores))
    head = HEAD.format(number=len(judge.load_claims()), counts=counts)
    reading = READING.format(late=", ".join(f"`{name}`" for name in LATE))
    lines = [head, *page.format_overview(stores), reading, *page.format_sections(stores, _link), *_list_statements()]
    (HERE / "claims.md").write_text("\n".join(lines).rstrip("\n") + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
