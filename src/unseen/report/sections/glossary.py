"""The glossary of a page: the terms that a reader of its sections and figures may have to look up, with their meanings."""

from __future__ import annotations

from unseen.report.data import Source

MEANINGS = {
    "activations": "named intermediate values of a forward pass",
    "axis": "what a study varies; each run has one level on it",
    "best weights": "the weights with the best validation score of the run; the last weights are those at its end",
    "chance": "the score of the best answer that ignores the input",
    "chunk": "about a minute of training that a worker does at a time; then the results are written to the store",
    "claim": "a sentence of a paper, turned into criteria on records",
    "configuration": "one combination of levels of all axes; its trials differ only in their seeds",
    "criterion": "one comparison of a claim: a quantity that should lie in a range",
    "data seed": "chooses which examples a run is trained on; by default the seed of the run. Validation and test data do "
    "not depend on it",
    "deviation": "a difference between what was run and what the paper did",
    "diverged": "the loss became NaN or infinite; the run ended at that step",
    "family": "one of the four published systems and its tasks, retrieval, rules, ctl and gcog, or groups and recall, "
    "which are our own",
    "gating": "how a modular model weights its modules: Monolithic (no modules), Modular (learned routing), Modular-op "
    "(learned from the operation alone), GT-Modular (ground-truth routing)",
    "headline, detail": "the criteria that carry the main point of a claim's sentence, and its other criteria",
    "indicative": "of an interval: over fewer than ten seeds, so no more than a hint",
    "interval": "95 % interval: the range of plausible means, given how much runs differ. It says nothing about "
    "anything that did not vary between them",
    "not converged": "the validation score was still rising when the run ended, so it could be better with more steps; "
    "claims count the run and allow for its drift",
    "oracle": "the best score that any model could reach",
    "out of distribution": "on a split with values or combinations that never occur in training (ood/…)",
    "preset": "a named set of options: clean (published defects corrected), released (what the authors' code does), paper "
    "(what the paper says)",
    "recipe": "how a run is trained: optimizer, learning rate, steps, batch size, clipping, validation",
    "record": "one number: trial, selection, split, factor level, metric, value",
    "registered, exploratory": "a registered claim was fixed, with hash and date, before the runs that it is judged from; any "
    "other is exploratory",
    "relative loss": "the mean absolute error relative to always predicting zero (1 = no better than that)",
    "scale": "how large a study is run: smoke, mini, small, medium or full",
    "seed": "chooses the initial weights and dropout masks of a run",
    "shortcut": "a rule that answers without doing the task; the best shortcut baseline is the most accurate one",
    "split": "a named distribution of a task: train, iid or ood/…. It says which factor has values that never occur in "
    "training",
    "stack, member": "trials of equal shape that are trained as one; each member equals its run alone, bit for bit",
    "study": "a named, versioned question and the trials that answer it",
    "task": "a generator of examples with all its options chosen, such as ctl/A or retrieval/T6 with length=5",
    "task seed": "chooses an instance of a task, such as the tables of a CTL world; it changes no shape",
    "trial": "one training run: task, model, recipe, seed and data seed. What is evaluated afterwards is not part of it",
    "unseen": "occurring in a split and never in training",
    "verdict": "on a claim: supported, mixed, contradicted, not reached, undecided, in progress or not run",
}
"""The terms that a page may explain. `docs/glossary.md` has the same meanings, and a test keeps them equal."""
ALWAYS = ("deviation", "study", "task")
WITH_RUNS = (
    *(
        "axis",
        "best weights",
        "chunk",
        "configuration",
        "family",
        "interval",
        "out of distribution",
        "recipe",
        "record",
    ),
    *("scale", "seed", "split", "stack, member", "trial", "unseen"),
)
WITH_SCORES = ("chance", "indicative", "oracle", "shortcut")
WITH_CLAIMS = ("claim", "criterion", "headline, detail", "registered, exploratory", "verdict")


def select_terms(source: Source, *, has_scores: bool, has_claims: bool, has_activations: bool) -> dict[str, str]:
    """The terms that a page about these runs may use, with their meanings, in alphabetical order.

    `has_scores` and `has_claims` tell whether the page has a table of scores and a list of claims, `has_activations`
    whether it shows anything that is read from activations.
    """
    terms = set(ALWAYS)
    runs = source.runs
    if len(runs):
        terms.update(WITH_RUNS)
    if has_scores:
        terms.update(WITH_SCORES)
    if has_claims:
        terms.update(WITH_CLAIMS)
    # What depends on how these runs were made, and on how they ended.
    term_applies = {
        "activations": has_activations,
        "data seed": bool((runs["data_seed"] != runs["seed"]).any()),
        "diverged": bool((runs["status"] == "diverged").any()),
        "gating": "gating" in runs or "model.gating" in runs,
        "not converged": bool((runs["not_converged"] == 1).any()),
        "preset": "task.preset" in runs,
        "relative loss": bool((source.records["metric"] == "relative_loss").any()),
        "task seed": "task_seed" in runs or "task.task_seed" in runs,
    }
    terms.update(term for term, applies in term_applies.items() if applies)
    return {term: meaning for term, meaning in MEANINGS.items() if term in terms}
