"""The words of a page, and what they mean here."""

from __future__ import annotations

import re

WORDS = {
    "axis": "what a study varies; each run has one level on it",
    "best weights": "those with the best validation score of the run; the last are those at its end",
    "cell": "one run: a task, a model, a recipe, an evaluation, a seed and a data seed. Its name is a digest of these",
    "chance": "the score of answering without looking at the input",
    "claim": "a sentence of a paper turned into a test on records, with a verdict",
    "condition": "a named distribution of a task: train, iid, or one out of distribution (ood/…)",
    "data seed": "whose training data a run sees; by default the seed's own",
    "deviation": "where what was run differs from what the paper did",
    "diverged": "ended because the loss was no longer a finite number",
    "family": "one of the four groups of tasks: rules, ctl, gcog, retrieval",
    "gating": "how a modular model chooses its modules: Monolithic (no modules), Modular (by itself), Modular-op (from "
    "the operation alone), GT-Modular (by the true rule)",
    "indicative": "of an interval: over fewer than ten seeds, so no more than a hint",
    "interval": "95 % interval: what the mean may be, given how much runs differ. It is silent about everything that "
    "did not vary between them",
    "oracle": "the score of a solver that does the task as it is meant",
    "preset": "a variant of a task: clean (sound), released (what the authors' code or data do), paper (what the text "
    "says)",
    "recipe": "how a run is trained: optimiser, steps, batch, clipping, selection",
    "record": "what a finished run leaves behind",
    "relative loss": "the mean absolute error in units of that of always answering zero",
    "scale": "how much of a study was run: smoke, mini, small, medium or full (the published recipe)",
    "seed": "what makes one run of a place differ from the next: initial weights, dropout and, by default, its data",
    "shortcut": "a rule that answers without doing the task; what it scores is drawn into figures",
    "slice": "about a minute of training, after which what was done is written",
    "still learning": "the validation score was rising at the end of the run: no claim is judged from it",
    "study": "a named, versioned list of runs that answers a question",
    "task": "a generator of examples with all its options set",
    "task seed": "which instance of a task: its rules, tables or mappings",
    "unseen": "what occurs in a condition and never in training",
}


def used(text: str) -> dict[str, str]:
    """The words that occur in a text, with their meanings.

    >>> list(used("Two cells of a study, two axes."))
    ['axis', 'cell', 'study']
    """
    plural = {"axis": "ax[ei]s", "study": "stud(?:y|ies)", "family": "famil(?:y|ies)", "relative loss": "relative.loss"}
    lower = text.lower()
    return {
        word: meaning for word, meaning in WORDS.items() if re.search(rf"\b{plural.get(word, word)}(?:s|es)?\b", lower)
    }
