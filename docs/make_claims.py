"""Write docs/claims.md: every claim, the verdicts of stored studies, and what no claim tests.

python docs/make_claims.py DIRECTORY ...
"""

from __future__ import annotations

import sys
from pathlib import Path

from unseen.studies.claims import CLAIMS, ledger
from unseen.studies.claims.judged import judged, own
from unseen.studies.claims.page import count, every_claim, name_of, overview, paper, sections
from unseen.studies.claims.untested import UNTESTED

HERE = Path(__file__).parent
HEAD = """# Claims

What the four papers say, and what we ask about them, as tests on records: {number} claims. Judged by the stored studies
(see [what was run](#what-was-run)): {counts}.
"""
READING = """## How to read this

* *Supported*: the whole 95 % interval of every part of a claim lies where the claim says. *Contradicted*: that of at
  least one part lies elsewhere, also when the interval is widened for the number of parts. *Undecided*: neither.
* No verdict rests on a point estimate, on fewer than three seeds (for `rules`: tasks), or on a run that was still
  learning. With fewer than ten of them, as everywhere here, an interval is a hint. Of what is new to a run of `ctl` or
  `gcog` it is judged only if it has learned its task: *no OOD in these runs* may mean that none has.
* *What it hangs on* is the weakest part of a supported claim, else the first part that stands in its way: what should
  hold, then the number found (of a comparison: the difference) with its interval, and how many seeds or tasks have it.
  Errors are shares of wrong answers, or losses in units of the zero predictor's; R1 to R9 are the analyses of the
  retrieval paper.
* A verdict is about what was run. Scale `mini` has smaller worlds, narrower models and far shorter training than the
  papers: *contradicted* says that the statement does not hold *there*. Numbers that a paper prints for its own setting
  are compared in that setting only. Bounds that a paper leaves to words are ours.
* `unseen claims DIR --claim NAME` has all parts with their numbers, `--format json` the same for programs. This page is
  written by `python docs/make_claims.py DIR ...`.
* Some claims were written when studies of scale `mini` had been run and looked at, so that their verdicts there are no
  predictions: {late}; `rules/F1` and `retrieval/C9` were given another part then.
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

Statement by statement, with what the papers print; then what is no claim, and why. *Ours* are questions that the
papers do not ask.
"""


def _link(study: str, scale: str) -> str:
    page = f"results/{study}-{scale}.md"
    return page if (HERE / page).exists() else ""


def _inventory() -> list[str]:
    claims = [CLAIMS.load(entry.name) for entry in CLAIMS]
    lines = [INVENTORY]
    for name in dict.fromkeys(map(paper, claims)):
        lines += [f"### Claims of {name}", "", ledger.row("claim", "statement", "place", "printed"), f"|{4 * '---|'}"]
        lines += [
            ledger.row(name_of(one), one.statement, one.place, one.printed) for one in claims if paper(one) == name
        ]
        lines += ["", "No claim:", "", ledger.row("statement", "place", "why"), f"|{3 * '---|'}"]
        lines += [ledger.row(one.says, one.place, one.why) for one in UNTESTED if one.paper == name] + [""]
    return lines


def main(directories: list[str]) -> None:
    """Judge the claims by these directories and write the page."""
    found = own([judged(Path(directory)) for directory in directories])
    head = HEAD.format(number=len(list(CLAIMS)), counts=count(verdict for _, verdict in every_claim(found)))
    reading = READING.format(late=", ".join(f"`{name}`" for name in LATE))
    text = "\n".join([head, *overview(found), reading, *sections(found, _link), *_inventory()])
    (HERE / "claims.md").write_text(text.rstrip("\n") + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
