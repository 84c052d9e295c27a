"""Small trials of the retrieval family and their results, to fill stores with."""

from __future__ import annotations

from unseen.models import options
from unseen.store.schema import Finished
from unseen.store.store import Store
from unseen.studies.trial import Entry, Trial, evaluation_id
from unseen.tasks import task
from unseen.training.evaluate import Measure
from unseen.training.recipe import Evaluation, recipe


def trial(seed: int = 0, **recipe_options: object) -> Trial:
    small_task = task("retrieval/T1", length=5)
    return Trial(small_task, options("retrieval-transformer"), recipe(**recipe_options), Evaluation(), seed, seed)


def finished() -> Finished:
    measure = Measure("iid", "", "", "accuracy", 0.75, 0.004, 10_000)
    return Finished(
        "finished",
        10,
        5,
        False,
        "",
        {evaluation_id(Evaluation()): {"last": [measure], "best": [measure]}},
        {"last": b"weights"},
        {},
    )


def enter(store: Store, *trials: Trial) -> None:
    store.add([Entry({}, c) for c in trials])
