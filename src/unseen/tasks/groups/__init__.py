"""Word problems over finite groups: tracking a state that every token changes."""

from __future__ import annotations

from unseen.tasks.groups.group import PermutationGroup
from unseen.tasks.groups.task import OwnGroup, WordProblem

__all__ = ["OwnGroup", "PermutationGroup", "WordProblem"]
