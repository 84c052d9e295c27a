"""Write docs/claims.md: every claim, the verdicts of stored studies, and what no claim tests.

    python docs/make_claims.py DIRECTORY ...
"""

from __future__ import annotations

import sys
from pathlib import Path

from unseen.studies.claims import CLAIMS, ledger
from unseen.studies.claims.judged import judged, own
from unseen.studies.claims.page import as_page, count, every_claim, name_of, paper
from unseen.studies.claims.untested import UNTESTED

HERE = Path(__file__).parent
HEAD = """# Claims

What the four papers say, and what we ask about them, as tests on records: {number} claims. Below are the verdicts of
stored studies ({counts}); then the inventory, statement by statement, with what is no claim and why.
Written by `python docs/make_claims.py DIRECTORY ...`.

*Supported*: the whole 95 % interval of every part lies where the claim says. *Contradicted*: that of at least one part
lies elsewhere. *Undecided*: neither; the last column says what would settle it. No verdict rests on a point estimate,
on fewer than three seeds or tasks, or on a run that was still learning. `unseen claims DIR --claim NAME` has all parts
with their numbers, `--format json` the same for programs.

A verdict is about what was run. Scale `mini` has smaller worlds, narrower models and far shorter training than the
papers: one that contradicts a paper there says that the statement does not hold *there*. Bounds that a paper leaves to
words are ours. Some claims were written when studies of scale `mini` had been run and looked at, so that their
verdicts there are no predictions: {late}.
"""
LATE = ("ctl/K6-counted", "ctl/K7-clusters", "ctl/adding-up", "ctl/spreads", "retrieval/lengths", "retrieval/spreads",
        "retrieval/variants", "retrieval/one-feature", "rules/flipped", "rules/votes-flipped", "rules/levels",
        *(f"rules/{name}" for name in ("C1", "C2", "C3", "C3-trend", "C4", "C4-width", "C5", "C5-state", "C6", "C7")))


def _link(study: str, scale: str) -> str:
    page = f"results/{study}-{scale}.md"
    return page if (HERE / page).exists() else ""


def _inventory() -> list[str]:
    claims = [CLAIMS.load(entry.name) for entry in CLAIMS]
    lines = ["## Inventory", ""]
    for name in dict.fromkeys(map(paper, claims)):
        lines += [f"### {name}", "", ledger.row("place", "statement", "printed", "claim", "study"), f"|{5 * '---|'}"]
        lines += [ledger.row(one.place, one.statement, one.printed, name_of(one), one.study)
                  for one in claims if paper(one) == name]
        lines += ["", "No claim:", "", ledger.row("place", "statement", "why"), f"|{3 * '---|'}"]
        lines += [ledger.row(one.place, one.says, one.why) for one in UNTESTED if one.paper == name] + [""]
    return lines


def main(directories: list[str]) -> None:
    """Judge the claims by these directories and write the page."""
    found = own([judged(Path(directory)) for directory in directories])
    head = HEAD.format(number=len(list(CLAIMS)), counts=count(verdict for _, verdict in every_claim(found)),
                       late=", ".join(f"`{name}`" for name in LATE))
    text = "\n".join([head, as_page(found, _link), *_inventory()])
    (HERE / "claims.md").write_text(text.rstrip("\n") + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
