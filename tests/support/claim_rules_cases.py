"""Made-up worlds of the rules family, and the verdicts that each claim can come to in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from random import Random
from typing import Any

import numpy as np
import pandas as pd

from support.claim_rules_records import Measure, Run, curves, grid, records
from unseen.claims import CLAIMS
from unseen.claims.claim import JudgedClaim
from unseen.claims.judge import judge
from unseen.claims.papers import rules_measures as measures
from unseen.claims.papers.rules import LEVELS

SPREAD = 0.001

ERRORS = {"truth": 0.05, "operation": 0.10, "joint": 0.20, "none": 0.25}
COLLAPSE = {"truth": 0.0, "operation": 0.2, "joint": 0.4}
METRICS = ("collapse_avg", "collapse_worst", *measures.RELATIVE)
SOFT = {"token_entropy": 0.6, "token_information": 0.5, "mutual_information": 0.3}
DECISIVE = {"token_entropy": 0.01, "token_information": 1.5, "mutual_information": 0.1}
"""Tokens that are mixed softly, and tokens that have one module each, chosen by something other than their rule."""
RANDOM_ADAPTATION = {2: 0.2567, 4: 0.3007, 8: 0.3350, 16: 0.3540, 32: 0.3650}


def as_told(run: Run, spread: float = SPREAD) -> Mapping[str, float]:
    """Errors and collapse in the order of the paper, growing with the rules; alignment between truth and random."""
    more = np.log2(run.rules) / 5
    error = ERRORS[run.gating] * more**2 + 0.05 + run.luck(spread, "error")
    module = COLLAPSE.get(run.gating, 0.0) * more
    metrics = (
        {}
        if run.gating == "none"
        else {
            "collapse_avg": module,
            "collapse_worst": min(1.0, 2 * module),
            "alignment": module * (1 - 1 / run.rules),
            "adaptation": module * RANDOM_ADAPTATION[run.rules],
            "inverse_mutual_information": module,
            **SOFT,
        }
    )
    noisy = {name: value + abs(run.luck(spread, name)) * (value > 0) for name, value in metrics.items()}
    return {
        "error": error,
        "ood": 1.5 * error,
        "best": error - 0.001,
        "curve": error + 0.1,
        "longer": 1.2 * error,
        **noisy,
    }


def votes_as_told(run: Run, shares: tuple[int, ...] = (11, 15, 17, 18), duels: int = 10) -> Mapping[str, float]:
    """Of every 18 experiments of a task 11 are won by truth, 4 by operation, 2 by none, one by joint; of those that
    neither joint nor none wins, joint is the better in so many."""
    turn = (run.experiment + 7 * run.task_seed) % 18
    winner = ("truth", "operation", "none", "joint")[sum(turn >= share for share in shares)]
    ahead = "joint" if turn < duels else "none"
    error = 0.1 if run.gating == winner else 0.2 if run.gating == ahead else 0.3
    return {"error": error + run.luck(1e-6)}


@cache
def mini(measure: Measure = as_told, **more: object) -> tuple[pd.DataFrame, pd.DataFrame]:
    runs = grid(**more)  # type: ignore[arg-type]
    return records(runs, measure), curves(runs, measure)


def verdict(name: str, measure: Measure = as_told, **more: object) -> JudgedClaim:
    found, points = mini(measure, **more)
    return judge(CLAIMS.load(name), found, curves=lambda: points)


# -- other worlds ------------------------------------------------------------------------------------------------------


def changed(run: Run, of: Measure = as_told, **change: float) -> Mapping[str, float]:
    """What `of` says, with other errors of some gatings (by a factor)."""
    found = dict(of(run))
    factor = change.get(run.gating, 1.0)
    return {name: one * factor if name in ("error", "ood", "curve", "longer") else one for name, one in found.items()}


def with_metrics(run: Run, gating: str, **factors: float) -> Mapping[str, float]:
    found = as_told(run)
    return {name: one * factors.get(name, 1.0) if run.gating == gating else one for name, one in found.items()}


def shrinking(run: Run) -> Mapping[str, float]:
    return {**as_told(run), "error": 0.3 - as_told(run)["error"] / 4 + run.luck(SPREAD, paired=True)}


def other_way_out(run: Run) -> Mapping[str, float]:
    return {**as_told(run), "ood": 1 - as_told(run)["error"]}


def late(run: Run) -> Mapping[str, float]:
    return {**as_told(run), "best": as_told(run)["error"] - 0.05}


def divided_votes(run: Run) -> Mapping[str, float]:
    """Some tasks are for truth and joint, others for operation and none."""
    truth = (4, 14, 9, 13, 7)[run.task_seed]
    return votes_as_told(run, (truth, 15, 17, 18), duels=truth)


def divided(run: Run) -> Mapping[str, float]:
    """Three tasks are as told; in the others all is the other way round, and the last weights have gone astray."""
    if run.task_seed < 3:
        return as_told(run)
    mirrored = {"truth": "none", "none": "truth", "operation": "joint", "joint": "operation"}[run.gating]
    found = as_told(run._replace(gating=mirrored))
    modules = as_told(run._replace(gating=mirrored if mirrored in ("joint", "operation") else "truth"))
    metrics = {name: one for name, one in modules.items() if name in METRICS}
    return {
        **found,
        "ood": 1 - found["error"],
        "best": found["error"] - 0.02,
        **metrics,
        **(DECISIVE if run.gating != "none" else {}),
    }


def decisive(run: Run) -> Mapping[str, float]:
    return {**as_told(run), **(DECISIVE if run.gating != "none" else {})}


def flipped(run: Run, of: Measure) -> Mapping[str, float]:
    """In RNN classification all is the other way round, so that it is as `of` says if that is counted wrongly."""
    found = of(run)
    wrong = run.architecture == "rnn" and run.setting == "classification"
    return {**found, "error": 0.5 - found["error"]} if wrong else found


# -- the whole grid ----------------------------------------------------------------------------------------------------


def published(run: Run, truth: int = 614) -> Mapping[str, float]:
    """The shares of 1 000 votes to the vote: a task has 200 experiments."""
    number = (run.experiment * 5 + run.task_seed + 37 * run.task_seed) % 1000
    winner = ("truth", "operation", "none", "joint")[sum(number >= one for one in (truth, truth + 205, truth + 313))]
    ahead = "joint" if number % 819 < 523 else "none"
    return {"error": 0.1 if run.gating == winner else 0.2 if run.gating == ahead else 0.3}


def full(measure: Measure, sampled: int = 1000) -> pd.DataFrame:
    """The whole grid, or so many experiments of it, drawn at random."""
    runs = grid((2, 4, 8, 16, 32), searches=(1, 2), widths=(32, 64, 128, 256, 512))
    assert len(runs) == 4 * 1000
    experiments = sorted({(run.experiment, run.task_seed) for run in runs})
    chosen = set(Random(11).sample(experiments, sampled))
    runs = [run for run in runs if (run.experiment, run.task_seed) in chosen]
    return records(runs, measure, decoys=False).query("split == 'iid' and selection == 'last'")


def levels(run: Run, factor: float = 1.0, by_task: bool = False) -> Mapping[str, float]:
    other = (0.1, 0.3, 1.0, 3.0, 4.0)[run.task_seed] if by_task else 1.0
    return {"error": min(1.0, LEVELS[run.architecture] * factor * other)}


# -- sizes as published and freed --------------------------------------------------------------------------------------

SIZES: dict[str, list[dict[str, str]]] = {
    "mha": [{"encoder": encoder, "gate_hidden": gate} for encoder in ("fixed", "scaled") for gate in ("head", "width")],
    "rnn": [{"shared_state": state} for state in ("shrunk", "whole")],
}
ONLY = {"gate_hidden": ("operation",), "shared_state": ("truth", "operation", "joint")}
"""The gatings that have such a size to free."""


def sized(
    run: Run,
    size: Mapping[str, str],
    spread: float = SPREAD,
    of: Measure = as_told,
    encoder: float = 0.5,
    gate: float = 0.5,
    state: float = 0.02,
    noise: float = 0.0,
) -> Mapping[str, float]:
    """As told; a wide encoder has errors grow by so much of what they do, a wide gate collapse by so much, and a whole
    state takes so much off the error. `noise` is that of collapse."""
    found = dict(of(run))
    wide = encoder if size.get("encoder") == "scaled" else 1.0
    less = state if size.get("shared_state") == "whole" else 0.0
    for name in ("error", "ood"):
        found[name] = 0.05 + (found[name] - 0.05) * wide - less + run.luck(spread, name, *size.values())
    for name in ("collapse_avg", "collapse_worst"):
        if name in found and size.get("gate_hidden") == "width":
            found[name] = found[name] * gate + run.luck(noise, name)
    return found


def confounds(measure: Callable[..., Mapping[str, float]] = sized, **more: Any) -> pd.DataFrame:
    """Records as those of the study of confounds."""
    found = []
    for architecture, sizes in SIZES.items():
        for size in sizes:
            freed = [axis for axis, level in size.items() if level in ("width", "whole")]
            runs = [run for run in grid((2, 32), (architecture,)) if all(run.gating in ONLY[axis] for axis in freed)]
            table = records(runs, lambda run, size=size: measure(run, size, **more))
            found.append(table.assign(**size, trial=table.trial + "".join(size.values())))
    return pd.concat(found, ignore_index=True)


# -- every word --------------------------------------------------------------------------------------------------------

Case = Callable[[], JudgedClaim]
"""Judged once, though several tests look at it."""


def told(name: str, measure: Measure, **more: object) -> Case:
    return cache(partial(verdict, name, measure, **more))


def whole(name: str, measure: Measure) -> Case:
    return cache(lambda: judge(CLAIMS.load(name), full(measure)))


def freed(name: str, **more: Any) -> Case:
    return cache(lambda: judge(CLAIMS.load(name), confounds(**more)))


VOTED = {"rules/F1": {}, "rules/F2": {}, "rules/flipped": {}, "rules/C6": {"seeds": 3}}
"""The claims that are about votes, with the runs they need."""
TOLD = (*(f"rules/F{number}" for number in range(3, 10)), "rules/C1", "rules/C2", "rules/C7")
FREED = ("rules/C3", "rules/C3-trend", "rules/C4", "rules/C4-width", "rules/C5", "rules/C5-state")


def voted(name: str, measure: Measure) -> Case:
    of = partial(flipped, of=measure) if name == "rules/flipped" else measure
    return told(name, of, **VOTED[name])


FEW_FOR_TRUTH = partial(votes_as_told, shares=(6, 12, 15, 18))
FEW_FOR_OPERATION = partial(votes_as_told, shares=(11, 12, 17, 18))
LOST_DUELS = partial(votes_as_told, duels=2)
WON_DUELS = partial(votes_as_told, shares=(11, 15, 15, 18), duels=18)

SUPPORTED: dict[str, Case] = {
    **{name: voted(name, votes_as_told) for name in VOTED},
    **{name: told(name, as_told) for name in TOLD},
    **{name: freed(name) for name in FREED},
    "rules/votes": whole("rules/votes", published),
    "rules/votes-flipped": whole("rules/votes-flipped", partial(flipped, of=published)),
    "rules/levels": whole("rules/levels", levels),
}
WRONG: dict[str, list[Case]] = {
    **{
        name: [voted(name, world) for world in worlds]
        for name, worlds in (
            ("rules/F1", (FEW_FOR_TRUTH,)),
            ("rules/F2", (LOST_DUELS, WON_DUELS)),
            ("rules/flipped", (FEW_FOR_TRUTH, LOST_DUELS)),
            ("rules/C6", (FEW_FOR_TRUTH, LOST_DUELS)),
        )
    },
    **{
        name: [told(name, world) for world in worlds]
        for name, worlds in (
            ("rules/F3", (partial(changed, truth=2.0), partial(changed, operation=3.0), partial(changed, none=0.5))),
            ("rules/F4", (shrinking, partial(changed, none=1.5))),
            (
                "rules/F5",
                (
                    partial(with_metrics, gating="joint", collapse_avg=0.0),
                    partial(with_metrics, gating="operation", collapse_avg=0.0),
                ),
            ),
            (
                "rules/F6",
                (
                    partial(with_metrics, gating="joint", adaptation=5.0),
                    partial(with_metrics, gating="operation", inverse_mutual_information=0.001),
                ),
            ),
            ("rules/F7", (partial(changed, operation=3.0),)),
            ("rules/F8", (other_way_out,)),
            ("rules/F9", (late,)),
            ("rules/C1", (partial(changed, truth=2.0), partial(changed, operation=3.0), partial(changed, none=0.5))),
            ("rules/C2", (partial(changed, truth=2.0), partial(changed, none=0.5), shrinking)),
            ("rules/C7", (decisive,)),
        )
    },
    **{
        name: [freed(name, **more) for more in worlds]
        for name, worlds in (
            ("rules/C3", ({"of": partial(changed, truth=2.0)}, {"of": partial(changed, none=0.5)})),
            ("rules/C3-trend", ({"encoder": 1.5},)),
            ("rules/C4", ({"gate": 0.0}, {"gate": 3.0})),
            ("rules/C4-width", ({"gate": 1.2},)),
            ("rules/C5", ({"state": -0.2}, {"of": partial(changed, operation=3.0)})),
            ("rules/C5-state", ({"state": -0.05},)),
        )
    },
    **{
        name: [whole(name, world) for world in worlds]
        for name, worlds in (
            ("rules/votes", (partial(published, truth=400),)),
            ("rules/votes-flipped", (partial(flipped, of=partial(published, truth=400)),)),
            ("rules/levels", (partial(levels, factor=10.0), partial(levels, factor=0.1))),
        )
    },
}
DETAILS_WRONG: dict[str, list[Case]] = {
    "rules/F1": [voted("rules/F1", FEW_FOR_OPERATION)],
    "rules/flipped": [voted("rules/flipped", world) for world in (FEW_FOR_OPERATION, WON_DUELS)],
    "rules/C6": [voted("rules/C6", world) for world in (FEW_FOR_OPERATION, WON_DUELS)],
    "rules/F5": [
        told("rules/F5", partial(with_metrics, gating="operation", collapse_avg=3.0)),
        told("rules/F5", partial(with_metrics, gating="joint", collapse_worst=0.0)),
    ],
    "rules/F7": [told("rules/F7", partial(changed, none=0.7))],
}
"""Worlds that contradict details alone."""
CONTRADICTED: dict[str, Case] = {name: cases[0] for name, cases in WRONG.items()}
UNDECIDED: dict[str, Case] = {
    **{name: voted(name, divided_votes) for name in VOTED},
    **{name: told(name, divided) for name in TOLD},
    # Divided tasks leave only a detail of F5 and F6 open, and contradict F8.
    **{name: told(name, as_told, tasks=2) for name in ("rules/F5", "rules/F6", "rules/F8")},
    "rules/C3": freed("rules/C3", of=divided),
    "rules/C3-trend": freed("rules/C3-trend", encoder=1.0, spread=0.01),
    "rules/C4": freed("rules/C4", gate=2.0, noise=0.1),
    "rules/C4-width": freed("rules/C4-width", gate=1.0, noise=0.05),
    "rules/C5": freed("rules/C5", of=divided),
    "rules/C5-state": freed("rules/C5-state", state=0.0, spread=0.01),
    "rules/votes": whole("rules/votes", partial(published, truth=564)),
    "rules/votes-flipped": whole("rules/votes-flipped", partial(flipped, of=partial(published, truth=564))),
    "rules/levels": whole("rules/levels", partial(levels, by_task=True)),
}
