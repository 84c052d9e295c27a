"""Rules on vectors, sets and sequences (rules/mlp, rules/mha, rules/rnn): tasks, and the numbers of their rules."""

from __future__ import annotations

from unseen.tasks.rules.generate import Coefficients, Matrices, task_parameters
from unseen.tasks.rules.task import Rules
from unseen.tasks.rules.variants import RulesMha, RulesMlp, RulesRnn

__all__ = ["Coefficients", "Matrices", "Rules", "RulesMha", "RulesMlp", "RulesRnn", "task_parameters"]
