"""The section *Inside*: sentences about probes, interchange interventions and ablations, where the records have them."""

from __future__ import annotations

from unseen.report.data import Source
from unseen.report.inside_scores import describe_inside, describe_relation, relate_ablation, tabulate_inside
from unseen.report.layout import sort_splits


def describe_source(source: Source) -> list[str]:
    """Where each configuration has the variable and uses it, and what modules are worth; nothing without such records."""
    if not len(source.records):
        return []
    labels = [axis for axis in source.axes if source.records[axis].nunique(dropna=False) > 1]
    table = tabulate_inside(source.records, labels, source.selection)
    sentences = []
    for split in sort_splits(dict.fromkeys(table["split"])):
        sentences += describe_inside(table, labels, split)
    relation = relate_ablation(source.records, source.selection, "iid", source.axes)
    return list(dict.fromkeys([*sentences, *describe_relation(relation)]))
