"""Rules on vectors, sets and sequences (rules/mlp, rules/mha, rules/rnn): tasks, and the numbers of their rules."""

from __future__ import annotations

from unseen.tasks.rules.mha import RulesMha
from unseen.tasks.rules.mlp import RulesMlp
from unseen.tasks.rules.parameters import Coefficients, Matrices, task_parameters
from unseen.tasks.rules.rnn import RulesRnn
from unseen.tasks.rules.task import Rules

__all__ = ["Coefficients", "Matrices", "Rules", "RulesMha", "RulesMlp", "RulesRnn", "task_parameters"]
