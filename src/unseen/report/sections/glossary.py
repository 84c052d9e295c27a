"""The glossary of a page: the terms that occur on it, with their meanings."""

from __future__ import annotations

import re

TERMS = {
    "activations": "the intermediate values of a forward pass, reported by a model under fixed names",
    "axis": "a setting that a study varies; each run has one level on it",
    "best weights": "the weights with the best validation score of the run; the last weights are those at its end",
    "chance": "the score of answering without looking at the input",
    "chunk": "about a minute of training, after which the results are written to the store",
    "claim": "a sentence of a paper turned into a test on records, with a verdict",
    "configuration": "one combination of levels of the axes, repeated with several seeds",
    "criterion": "one comparison that a claim consists of: a quantity that must lie in a range",
    "data seed": "the seed of the training data of a run; by default that of the run itself",
    "deviation": "a difference between these runs and the paper",
    "diverged": "ended because the loss was no longer a finite number",
    "family": "one of the four groups of tasks: rules, ctl, gcog, retrieval",
    "FLOPs": "the number of floating-point operations",
    "gating": "how a modular model chooses its modules: Monolithic (no modules), Modular (learned routing), Modular-op "
    "(learned from the operation alone), GT-Modular (ground-truth routing)",
    "indicative": "of an interval: over fewer than ten seeds, so no more than a hint",
    "interval": "95 % interval: the range of plausible means, given how much runs differ. It says nothing about "
    "anything that did not vary between them",
    "not converged": "the validation score was still rising at the end of the run, so no claim is judged from it",
    "oracle": "the score of a solver that does the task as intended",
    "out of distribution": "on a split with values or combinations that never occur in training (ood/…)",
    "preset": "a variant of a task: clean (sound), released (as in the authors' code or data), paper (as in the text)",
    "recipe": "how a run is trained: optimiser, steps, batch, clipping, selection of weights",
    "record": "a number that a finished run has left in the store",
    "relative loss": "the mean absolute error relative to always predicting zero (1 = no better than that)",
    "scale": "how much of a study was run: smoke, mini, small, medium or full (the published recipe)",
    "seed": "determines the initial weights, the dropout and by default the data of a run",
    "shortcut": "a rule that answers without doing the task; the score of the best one is drawn as a baseline",
    "split": "a named distribution of a task: train, iid, or one out of distribution (ood/…)",
    "stack": "trials of equal shape that are trained as one; each of them is a member",
    "study": "a named, versioned list of runs that answers a question",
    "task": "a generator of examples with all its options set",
    "task seed": "the seed of an instance of a task: its rules, tables or mappings",
    "trial": "one training run: a task, a model, a recipe, a seed and a data seed. Its id is a digest of these",
    "unseen": "occurring in a split and never in training",
    "verdict": "supported, contradicted, undecided or not run: what the records say about a claim",
}
_PLURALS = {
    "axis": "ax[ei]s",
    "study": "stud(?:y|ies)",
    "family": "famil(?:y|ies)",
    "criterion": "criteri(?:on|a)",
    "relative loss": "relative.loss",
    "not converged": "(?:not|had not) converged",
}
"""Patterns of terms whose forms are not made with -s or -es."""


def select_terms(text: str) -> dict[str, str]:
    """The terms that occur in a text, with their meanings.

    >>> list(select_terms("Two trials of a study, two axes."))
    ['axis', 'study', 'trial']
    """
    lower = text.lower()
    terms = {}
    for term, meaning in TERMS.items():
        pattern = _PLURALS.get(term, re.escape(term.lower()))
        if re.search(rf"\b{pattern}(?:s|es)?\b", lower):
            terms[term] = meaning
    return terms
