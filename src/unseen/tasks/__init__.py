"""The tasks: generators, solvers, splits and pictures. They use NumPy only, never torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unseen.errors import UsageError
from unseen.registry import Registry

if TYPE_CHECKING:
    from unseen.tasks.base import Task

_CTL = "unseen.tasks.ctl.variants"
_GCOG = "unseen.tasks.gcog"
_GROUPS = "unseen.tasks.groups.task"
_RULES = "unseen.tasks.rules.variants"
_RETRIEVAL = "unseen.tasks.retrieval.task:Retrieval"

TASKS: Registry[type[Task]] = Registry(
    "task",
    "unseen.tasks",
    {
        "rules/mlp": (f"{_RULES}:RulesMlp", "a weighted sum of two numbers, the weights chosen by a rule"),
        "rules/mha": (f"{_RULES}:RulesMha", "values looked up in other tokens, by the rule of each token"),
        "rules/rnn": (f"{_RULES}:RulesRnn", "a state that each token moves by the matrices of its rule"),
        "ctl/A": (f"{_CTL}:Alternating", "table lookup, alternating: training changes the group, testing stays in it"),
        "ctl/R": (f"{_CTL}:Alternating", "table lookup, repeating: training stays in a group, testing changes it"),
        "ctl/S": (f"{_CTL}:Staged", "table lookup, staged: two paths that meet in a bridge; testing changes the path"),
        "ctl/graph": (f"{_CTL}:FromGraph", "table lookup with a sampling graph of your own"),
        "ctl/lengths": ("unseen.tasks.ctl.lengths:Lengths", "table lookup, the original: chains longer than trained"),
        "gcog/distractor": (f"{_GCOG}:Distractor", "letters on a grid: more distractors than in training"),
        "gcog/systematic-operators": (f"{_GCOG}:SystematicOperators", "letters on a grid: operators with new objects"),
        "gcog/systematic-trees": (f"{_GCOG}:SystematicTrees", "letters on a grid: trees of new triples of operators"),
        "gcog/productive": (f"{_GCOG}:Productive", "letters on a grid: deeper trees than in training"),
        "retrieval/T1": (_RETRIEVAL, "one feature: did q occur?"),
        "retrieval/T2": (_RETRIEVAL, "two features: did a and b occur?"),
        "retrieval/T3": (_RETRIEVAL, "set member: did a or b occur? (pair behind an opaque query)"),
        "retrieval/T4": (_RETRIEVAL, "contextualised two features: did a and b occur? (opaque query)"),
        "retrieval/T5": (_RETRIEVAL, "contextualised set member: a and b, or c and d? (opaque query)"),
        "retrieval/T6": (_RETRIEVAL, "ordered feature: did a occur before b? (opaque query)"),
        "retrieval/T7": (_RETRIEVAL, "ordered contextualised set member: a before b, or c before d?"),
        "groups/Z2": (f"{_GROUPS}:WordProblem", "the parity of the tokens so far, in longer words than in training"),
        "groups/S3": (f"{_GROUPS}:WordProblem", "products of permutations of three points (a solvable group)"),
        "groups/A5": (f"{_GROUPS}:WordProblem", "products of even permutations of five points (not solvable)"),
        "groups/S5": (f"{_GROUPS}:WordProblem", "products of permutations of five points (not solvable)"),
        "groups/own": (f"{_GROUPS}:OwnGroup", "products in a group of your own, by permutations or a table"),
        "recall/mqar": (
            "unseen.tasks.recall.task:AssociativeRecall",
            "values asked for by the keys they were given with: new pairs, longer contexts, more pairs",
        ),
    },
)


def task(name: str, **options: Any) -> Task:
    """Return a task by name, with its options as keywords.

    >>> task("retrieval/T6", length=5).options()
    {'name': 'retrieval/T6', 'length': 5}
    """
    return TASKS.load(name).parse({"name": name, **options})


def recorded_task(**options: Any) -> Task:
    """The task that a store names by its recorded options.

    A record holds the content of a mapping or a world, never the path of its file. A path in a record would make us open a
    file that its author chose, so it is refused.
    """
    for option in ("mapping", "world"):
        if isinstance(options.get(option), str):
            raise UsageError(f"a recorded task has the path of a file as its {option}; it is not opened")
    return task(**options)
