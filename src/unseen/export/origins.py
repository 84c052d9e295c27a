"""Whose work is in the examples: the papers that the families go back to, and the tables an instance is made with."""

from __future__ import annotations

from unseen.tasks.base import Task
from unseen.tasks.ctl.task import Lookup
from unseen.tasks.gcog.task import Gcog
from unseen.tasks.retrieval.task import Retrieval
from unseen.tasks.rules.task import Rules

PAPERS: dict[type[Task], str] = {
    Retrieval: "I.-T. Sorodoc, G. Boleda and M. Baroni, *Controlled tasks for model analysis: Retrieving discrete "
    "information from sequences*, BlackboxNLP 2021",
    Lookup: "R. Csordás, K. Irie and J. Schmidhuber, *CTL++: Evaluating Generalization on Never-Seen Compositional "
    "Patterns of Known Functions, and Compatibility of Neural Representations*, EMNLP 2022",
    Gcog: "T. Ito, S. Dan, M. Rigotti, J. Kozloski and M. Campbell, *On the generalization capacity of neural networks "
    "during generic multimodal reasoning*, ICLR 2024",
    Rules: "S. Mittal, Y. Bengio and G. Lajoie, *Is a Modular Architecture Enough?*, NeurIPS 2022",
}


def paper(task: Task) -> str:
    """The paper that a task goes back to; empty if it is none of ours."""
    return next((found for kind, found in PAPERS.items() if isinstance(task, kind)), "")


def tables(task: Task) -> str:
    """Where the tables come from that this instance of a task was made with; empty if there are none."""
    if isinstance(task, Retrieval) and task.table:
        if task.mapping is not None:
            return (
                "The query table `mapping.txt` was handed to the generator. If it is the one published with the "
                "paper, it is the work of its authors, and their terms hold for it."
            )
        not_theirs = (
            "with what was measured on the published one, which it is not"
            if task.preset == "released"
            else "and is not the published one"
        )
        return f"The query table `mapping.txt` was drawn by Unseen (task seed {task.task_seed}) {not_theirs}."
    if isinstance(task, Lookup):
        whose = "handed to the generator" if task.world is not None else f"drawn by Unseen (task seed {task.task_seed})"
        return f"The world, `world.json` (symbols, function tables, sampling graph), was {whose}."
    if isinstance(task, Rules):
        return (
            f"The numbers of the rules, `parameters.json`, are those of task seed {task.task_seed}, drawn as the "
            "authors drew theirs."
        )
    return ""
