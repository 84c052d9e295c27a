"""rules-main, the MLP part at width 32: all five numbers of rules, to be run in five pieces (change RULES).

A Python file and not YAML because each task is learned by one seed of its own, as at scale mini of the catalogue.

Sampling frame. At width 32 the paper has 50 MLP experiments: 2 settings x 5 numbers of rules (2, 4, 8, 16, 32) x 5 tasks.
All ten combinations of setting and number of rules are here, each with 20 tasks. Tasks are random draws from the
generator of the family; theirs can't be repeated (other generators of random numbers), so ours are new draws. They are
those of task seeds 5 to 24, fixed before anything was run: 0 to 4 were looked at in rules-main@1, mini.
"""

from unseen.studies.catalog.rules import MAIN, grid
from unseen.studies.study import Study

TASKS = range(5, 25)
RULES = (2, 4, 8, 16, 32)


def grids(scale):
    return [
        grid(
            "mlp",
            rules=RULES,
            widths=(32,),
            task_seeds=(number,),
            seeds=(number,),
            recipe={"learning_rate": 1e-3, "validate_every": 500, "steps": 10_000},
            evaluation={"examples": 20_000, "activation_examples": 20_000, "adaptation_examples": 100},
        )
        for number in TASKS
    ]


study = Study(
    name="rules-main",
    version=2,  # 1 is the catalogue's
    question="Do modular networks do better than a monolithic one where the data are made by rules, and do their "
    "modules specialize in the rules?",
    scales={"mini": None},
    grids=grids,
    selection="last",
    claims=(
        *(f"rules/F{number}" for number in range(1, 10)),
        *(f"rules/{name}" for name in ("votes", "flipped", "votes-flipped", "levels", "C1", "C2", "C6", "C7")),
    ),
    notes=(
        *MAIN.notes,
        "MLPs of width 32 alone, 20 tasks (paper: 5) with one seed each (paper: 5), 10_000 steps at 1e-3 (paper: "
        "100 000 at 1e-4)",
        "task seeds 5 to 24, each learned by the seed of the same number: a random sample of tasks, fixed beforehand, for "
        "all ten combinations of setting and number of rules at width 32",
    ),
)
