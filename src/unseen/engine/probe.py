"""How many members to stack: tried, not guessed. Only the time depends on the answer."""

from __future__ import annotations

import time
from dataclasses import replace

from unseen.engine.feed import Feeds
from unseen.engine.train import Job, Member, Trainer

CANDIDATES = (1, 5, 10, 20)


def choose_size(job: Job, timed_steps: int = 4) -> int:
    """The stack size with the least time per member, among the candidates that the number of members allows.

    Every size trains a few throw-away steps; the fastest of them counts.
    """
    # All probing members see the data of one data seed: one set is drawn, not one per member.
    # It never ends and never validates: only steps are timed.
    recipe = job.recipe.model_copy(update={"shuffle": False, "steps": 10**9, "validate_every": 10**9})
    feeds = Feeds(job.task, recipe.batch, shuffle=False)
    best, fastest = 1, float("inf")
    for size in sorted({min(c, len(job.members)) for c in CANDIDATES}):
        members = tuple(Member(str(i), i, job.members[0].data_seed, recipe) for i in range(size))
        trainer = Trainer(replace(job, members=members), feeds=feeds)
        times = []
        for _ in range(1 + timed_steps):
            began = time.perf_counter()
            trainer.advance(steps=1)
            times.append(time.perf_counter() - began)
        each = min(times[1:]) / size
        # A larger stack must earn its memory: a near tie goes to the smaller one.
        if each < 0.95 * fastest:
            best, fastest = size, each
    return best
