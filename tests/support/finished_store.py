"""A store whose trials have all finished, with made-up numbers; nothing is trained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from unseen.store.schema import Finished, Outcome, Span
from unseen.store.store import Store
from unseen.studies.trial import Entry, evaluation_id
from unseen.training.evaluate import Measure

STUDY = "many-trials@1"
STEPS = 10_000


def fill_store(entries: Sequence[Entry], directory: Path) -> None:
    """Store every entry as finished at scale full; the number of an entry determines its scores."""
    finished = {}
    for number, entry in enumerate(entries):
        value = number % 997 / 997
        measures = []
        for split in ("iid", "ood/single"):
            measures.append(Measure(split, "", "", "loss", value, 0.01, 1_000))
            measures.append(Measure(split, "", "", "accuracy", value, 0.01, 1_000))
            for level in ("none", "first", "both"):
                measures.append(Measure(split, "scenario", level, "accuracy", value, 0.01, 1_000))
        selections = {evaluation_id(entry.trial.evaluation): {"best": measures, "last": measures}}
        finished[entry.trial.id] = Finished("finished", STEPS, STEPS, False, "", selections, {}, {"seconds": 1.0})
    spans = {trial: Span(0, STEPS, 1.0, 1.0, "host:1") for trial in finished}
    with Store.write(directory) as store:
        store.set_work({"study": STUDY})
        store.add(entries, "full")
        store.commit("stack", list(finished), Outcome(0, spans=spans, finished=finished))
