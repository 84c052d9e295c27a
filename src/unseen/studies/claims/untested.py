"""Statements and numbers of the papers, and questions about them, that no claim tests; and why."""

from __future__ import annotations

from typing import NamedTuple

RETRIEVAL, RULES = "Sorodoc, Boleda & Baroni 2021", "Mittal, Bengio & Lajoie 2022"
CTL, GCOG = "Csordás, Irie & Schmidhuber 2022", "Ito et al. 2024"


class Untested(NamedTuple):
    """Where a paper says something, what, and why it is no claim."""

    paper: str
    place: str
    says: str
    why: str


UNTESTED = (
    Untested(
        RETRIEVAL,
        "figure of accuracy against length",
        "the accuracies themselves",
        "drawn, not printed; the directions are `retrieval/C10` and `retrieval/lengths`",
    ),
    Untested(
        RETRIEVAL,
        "analysis of T1",
        "the correlation with self-attention is highly significant",
        "an interval over seeds stands in place of the test: `retrieval/C9`",
    ),
    Untested(
        RETRIEVAL,
        "ours",
        "do T2 and T4 stay at the ceiling with longer training, or at a larger learning rate?",
        "no study varies the recipe; `retrieval/C2` has ten times the published rate at every scale but `full`",
    ),
    Untested(
        RETRIEVAL,
        "ours",
        "does a model of T5 count features instead of pairing them?",
        "no study trains it on data with and without that artefact; `unseen verify retrieval/T5 --set "
        "preset=released` measures the artefact",
    ),
    Untested(
        RETRIEVAL,
        "ours",
        "are the differences stable over ten seeds and more?",
        "no claim of its own: run any study with more seeds, every interval is over them",
    ),
    Untested(
        RULES,
        "experiments",
        "2 to 32 rules, five widths, five tasks, five seeds, about 20 000 models, a few hours each",
        "the design, not a finding: it is `rules-main --scale full`, counted by the tests of the "
        "catalogue; hours are of other machines",
    ),
    Untested(
        RULES,
        "figures 4 to 6",
        "joint gating is only *slightly* better than none, gating by the operation "
        "specializes only *marginally* better than joint gating",
        "no size is printed that could be a bound; the directions are `rules/F3` and `rules/F6`",
    ),
    Untested(
        RULES,
        "figure 4",
        "the errors and losses themselves",
        "drawn, not printed; their order is `rules/F3`, their size `rules/levels`",
    ),
    Untested(
        RULES,
        "figures 8, 16, 24, 32, 40 and 48",
        "votes by architecture and setting, in and out of distribution",
        "drawn, not printed; `unseen results DIR --votes` counts them",
    ),
    Untested(
        RULES,
        "caption of figure 6",
        "learned gates collapse less than random ones",
        "by the paper's own definition random gates do not collapse at all; `rules/F5` follows that",
    ),
    Untested(
        RULES,
        "ours, C1",
        "modules without biases, fed the numbers alone, pass the test of doubled amplitudes",
        "there is no such model in the catalogue; `rules/C1` asks the same of longer sequences",
    ),
    Untested(
        CTL,
        "table 2",
        "408 000, 672 000 and 679 000 parameters; hours of training",
        "parameters are counted by the tests of the models; hours are of other machines",
    ),
    Untested(CTL, "figures 4, 7 and 8", "the accuracies of single cells", "in images only; directions are `ctl/K5`"),
    Untested(
        CTL,
        "figures 3 and 6",
        "which clusters one seed has for the symbols 3 and 6, and what works with them",
        "one chosen seed; what holds of all is `ctl/K6-counted` and `ctl/K7-clusters`",
    ),
    Untested(
        CTL,
        "note on the Transformers",
        "25 of 50 runs kept",
        "the first 25 that converged: the rate is not published. `unseen results DIR --success` has ours",
    ),
    Untested(
        GCOG,
        "figures 3 to 6 and 9 to 11",
        "accuracies other than those printed",
        "drawn, not printed; their directions are claims",
    ),
    Untested(
        GCOG,
        "figures 4e and 5b",
        "spikes in the curves come from the pool of questions, drawn anew when a job was started again",
        "an accident of those runs; what a fixed pool does is `gcog/pool`",
    ),
    Untested(
        GCOG,
        "training",
        "12 to 60 million samples, less than three days for each model",
        "the design, not a finding: `unseen run … --scale full` has it; hours are of other machines",
    ),
    Untested(GCOG, "figure 2f", "the numbers of parameters", "counted by the tests of the models"),
    Untested(
        GCOG,
        "figures 4 and 5",
        "chance is 33.10 %",
        "follows from the design (33.11 %, cut off); a test of the task, and the unit of `gcog/productivity`",
    ),
    Untested(
        GCOG,
        "appendix A.2",
        "two stimuli are the same with a probability below 1e-14",
        "a property of the generator, and no run depends on it",
    ),
)
