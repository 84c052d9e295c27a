"""Associative recall: values that are asked for by the keys they were given with."""

from __future__ import annotations

from unseen.tasks.recall.task import AssociativeRecall

__all__ = ["AssociativeRecall"]
