"""Running until decided: the looks, that they come out alike after kills, and that prices and chances steer them."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import unseen
from support.killing import kill, steps_done
from support.slow_study import SLOW
from support.small import STUDY
from unseen.claims import until_decided
from unseen.claims.criterion import Finding, Waiting
from unseen.claims.judge import load_claims
from unseen.claims.judge_studies import judge_store
from unseen.claims.mode import LOOKS
from unseen.claims.until_decided import KEY, LENGTH_AXIS, Course, Decision, Effort, estimate_chance
from unseen.config import canonical
from unseen.errors import UsageError
from unseen.running.runner import Interrupted
from unseen.store.store import Store
from unseen.studies.study import Study, find_catalogued

CLAIMS = (
    {
        "claim": "learns",
        "statement": "T3 is learned by the plain model at least as well as by the LSTM.",
        "split": "iid",
        "headline": [{"better": {"variant": "plain", "task": "retrieval/T3"}, "than": {"variant": "basic", "task": "retrieval/T3"}, "by": -0.5}],
    },
    {
        "claim": "never",
        "statement": "Nothing is learned beyond doubt.",
        "split": "iid",
        "headline": [{"between": [0.30, 0.52], "runs": {"variant": "plain", "task": "retrieval/T1", "rate": 0.001}}],
    },
)  # fmt: skip
HOURS = 0.02
SLOW_HOURS = 1.5e-4
KILLS = 3
"""One of the runner, of a worker and of all of them."""
WITH_CLAIMS = replace(STUDY, own_claims=CLAIMS)


def run(out: Path, study: Study = WITH_CLAIMS, hours: float | None = HOURS, **options: Any) -> list[Decision]:
    decisions: list[Decision] = []
    unseen.run(
        study, out, scale="smoke", executor="inline", progress="none", until_decided=True, hours=hours,
        on_decision=decisions.append, **options,
    )  # fmt: skip
    return decisions


def content(out: Path) -> tuple[Any, list[tuple[str, ...]], list[tuple[str, str]]]:
    with Store.read(out) as store:
        looks = store.recall(KEY)
        frames = [store.records(), store.curves(), store.trials()]
    rows = [tuple(map(repr, row)) for frame in frames for row in frame.itertuples(index=False)]
    return looks, sorted(rows), [(judged.claim.name, judged.verdict) for judged in judge_store(out).verdicts]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Decision]]:
    out = tmp_path_factory.mktemp("until") / "whole"
    return out, run(out)


def test_it_looks_decides_and_ends(undisturbed: tuple[Path, list[Decision]]) -> None:
    out, decisions = undisturbed
    assert decisions[-1].action == "end" and all(decision.action != "end" for decision in decisions[:-1])
    assert len(decisions) > 1, "the second claim is open at the first look"
    units = [decision.units for decision in decisions[:-1] if decision.action == "seeds"]
    assert set(units) <= {look.units for look in LOOKS}
    hours = [decision.hours for decision in decisions]
    assert hours == sorted(hours) and hours[-1] <= HOURS
    verdicts = dict(content(out)[2])
    assert verdicts["small/learns"] == "supported"
    assert decisions[-1].verdicts == verdicts


@pytest.mark.parametrize("chunks", [1, 9])
def test_killed_and_resumed_it_ends_alike(
    undisturbed: tuple[Path, list[Decision]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunks: int
) -> None:
    """Interrupted after every few commits, again and again."""
    out = tmp_path / "killed"
    commit = Store.commit

    def commit_and_die(self: Store, *arguments: Any, **options: Any) -> Any:
        nonlocal remaining
        result = commit(self, *arguments, **options)
        remaining -= 1
        if remaining == 0:
            raise Interrupted(self)
        return result

    monkeypatch.setattr(Store, "commit", commit_and_die)
    deaths = 0
    while True:
        remaining = chunks
        try:
            run(out, stack=2)
            break
        except Interrupted:
            deaths += 1
    assert deaths > 0
    assert content(out) == content(undisturbed[0])


@pytest.fixture(scope="module")
def longer(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Decision]]:
    """A study that chooses more steps, to its end."""
    out = tmp_path_factory.mktemp("until") / "longer"
    return out, run(out, SLOW, SLOW_HOURS)


def test_more_steps_go_on_in_the_same_directory(longer: tuple[Path, list[Decision]]) -> None:
    out, decisions = longer
    assert [decision.action for decision in decisions] == ["steps", "steps", "end"]
    assert all(decision.longer == 2 for decision in decisions[:-1])
    with Store.read(out) as store:
        records, _ = store.tables()
    lengths = records[LENGTH_AXIS].fillna("as planned")
    # What the claims were judged from before stays part of the study.
    assert records[lengths == "as planned"]["seed"].nunique() == LOOKS[0].units
    assert records[lengths == "2 times"]["seed"].nunique() == LOOKS[1].units
    assert run(out, SLOW, SLOW_HOURS) == decisions, "it can be resumed"


def test_a_look_is_not_repeated_after_more_steps(longer: tuple[Path, list[Decision]]) -> None:
    """The error of the first look is spent on the short runs: the long ones are judged at the second."""
    for judged in judge_store(longer[0]).verdicts:
        assert judged.look == LOOKS[1].units and judged.alpha == LOOKS[1].alpha
        assert judged.registered


def test_more_hours_lead_where_they_would_have_led_at_once(longer: tuple[Path, list[Decision]], tmp_path: Path) -> None:
    out = tmp_path / "in-parts"
    first = run(out, SLOW, 0.0)
    assert [decision.action for decision in first] == ["end"] and first[-1].out_of_hours
    prices = [decision.hours + decision.price for decision in longer[1] if decision.claim]
    assert [decision.action for decision in run(out, SLOW, prices[0])] == ["steps", "end"]
    assert run(out, SLOW, SLOW_HOURS) == longer[1]
    assert content(out) == content(longer[0])


def test_a_directory_goes_on_with_its_own_claims(longer: tuple[Path, list[Decision]]) -> None:
    with pytest.raises(UsageError, match="was begun for the claims slow/"):
        run(longer[0], SLOW, SLOW_HOURS, claims=["slow/guesses"])


KILLED = """
import sys
sys.path.insert(0, sys.argv[2])
import unseen
from support.slow_study import SLOW
unseen.run(
    SLOW, sys.argv[1], scale="smoke", workers=2, stack=2, chunk_seconds=0.05, progress="none",
    until_decided=True, hours=float(sys.argv[3]),
)
"""


def start(out: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", KILLED, str(out), str(Path(__file__).parents[1]), str(SLOW_HOURS)],
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


@pytest.mark.slow
def test_with_workers_that_are_killed_at_random_it_ends_alike(
    longer: tuple[Path, list[Decision]], tmp_path: Path
) -> None:
    """The runner, a worker, or all of them; before anything is done, and while the longer runs are trained."""
    out, chance = tmp_path / "killed", random.Random(20)
    total = steps_done(longer[0])
    # The second half is left, so that the study does not end before its last kill where this process has to wait.
    moments = [0, *sorted(chance.randrange(total // 2) for _ in range(KILLS - 1))]
    whom = [("all", "runner", "worker")[number % 3] for number in range(KILLS)]
    kills, child, deadline = 0, start(out), time.monotonic() + 3600
    while time.monotonic() < deadline:
        if child.poll() is not None:
            if child.returncode == 0:
                break
            message = child.stderr.read().decode() if child.stderr else ""
            assert child.returncode == -signal.SIGKILL, message
            child = start(out)
        if kills < KILLS and steps_done(out) >= moments[kills]:
            time.sleep(chance.uniform(0, 0.05 if moments[kills] else 6.0))
            if child.poll() is None:
                kills += kill(child.pid, whom[kills], chance)
        time.sleep(0.005)
    assert kills == KILLS and child.returncode == 0
    assert content(out) == content(longer[0])
    assert list((out / "checkpoints").iterdir()) == []


def test_claims_about_tasks_take_one_seed_of_each_task(tmp_path: Path) -> None:
    study = find_catalogued("rules-main")
    (claim,) = load_claims(["rules/F1"])
    course = Course(study, "mini", [claim])
    entries = course.entries(claim, Effort(3))
    tasks = {entry.levels["task_seed"] for entry in entries}
    assert tasks == {0, 1, 2}
    assert len(entries) == len(course.configurations(claim) & {canonical(entry.levels) for entry in entries})
    own = {entry.trial.id for entry in study.entries("mini")}
    assert {entry.trial.id for entry in entries} <= own, "the study's own seeds"
    # At mini, attention and recurrent models have three tasks only: no further look is possible.
    assert course.available_units(claim) == 3 and course.next_look(claim, Effort(3)) is None
    out = tmp_path / "none"
    with pytest.raises(UsageError, match="no 3 tasks have all the runs of a claim"):
        unseen.run(study, out, scale="medium", until_decided=True, executor="inline", claims=["rules/F1"])
    assert not out.exists()


def test_a_longer_training_may_not_end_at_the_plateau_of_the_shorter_one() -> None:
    entry = STUDY.entries("smoke")[0]
    recipe = entry.trial.recipe.model_copy(update={"steps": 1_000, "decay": 800, "plateau": 0.005, "least_steps": 300})
    ending = until_decided._train_longer(replace(entry, trial=replace(entry.trial, recipe=recipe)), 4).trial.recipe
    assert (ending.steps, ending.decay, ending.least_steps) == (4_000, 3_200, 2_000)
    recipe = recipe.model_copy(update={"least_steps": 900})
    ending = until_decided._train_longer(replace(entry, trial=replace(entry.trial, recipe=recipe)), 4).trial.recipe
    assert ending.least_steps == 3_600


def test_a_store_keeps_its_mode(undisturbed: tuple[Path, list[Decision]], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="go on with --until-decided"):
        unseen.run(STUDY, undisturbed[0], scale="smoke", executor="inline", progress="none")
    unseen.run(STUDY, tmp_path / "fixed", scale="smoke", seeds=1, executor="inline", progress="none")
    with pytest.raises(UsageError, match="begun with a fixed number of units"):
        run(tmp_path / "fixed")


def test_without_claims_or_with_a_wrong_name_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no claims"):
        unseen.run(STUDY, tmp_path / "none", scale="smoke", until_decided=True)
    with pytest.raises(UsageError, match="Did you mean 'small/learns'"):
        run(tmp_path / "none", claims=["small/lerns"])
    with pytest.raises(UsageError, match="belong to until_decided"):
        unseen.run(STUDY, tmp_path / "none", scale="smoke", hours=2)
    assert not (tmp_path / "none").exists()


def finding(p_holds: float | None, p_contradicted: float | None, kind: str = "seeds") -> Finding:
    (claim,) = until_decided_claims()[:1]
    waiting = Waiting(kind, until_decided_obstacle())  # type: ignore[arg-type]
    return Finding(claim.criteria[0], "open", waiting=waiting, p_holds=p_holds, p_contradicted=p_contradicted)


def until_decided_claims() -> list[Any]:
    from unseen.claims.user_claims import check_study_claims

    return check_study_claims(replace(STUDY, own_claims=CLAIMS), ["task", "variant", "rate"])


def until_decided_obstacle() -> Any:
    from unseen.claims.criterion import Obstacle

    return Obstacle.BOUND_INSIDE


def test_chances() -> None:
    near, far = finding(0.02, 0.98), finding(0.4, 0.6)
    assert estimate_chance([near], 5 / 3, 0.008) > estimate_chance([far], 5 / 3, 0.008)
    assert estimate_chance([near], 20 / 3, 0.015) > estimate_chance([near], 5 / 3, 0.015)
    assert estimate_chance([near, far], 5 / 3, 0.008) < estimate_chance([near], 5 / 3, 0.008)
    assert estimate_chance([finding(0.98, 0.01)], 5 / 3, 0.008) > 0.5, "a contradiction decides, too"
    drifting = finding(0.02, 0.98, "steps")
    assert estimate_chance([drifting], 5 / 3, 0.008) == 0.0
    assert estimate_chance([drifting], 1.0, 0.008, longer=True) > 0.0
    assert until_decided.LONGER > 1


def test_what_cannot_be_decided_has_no_chance() -> None:
    near = finding(0.02, 0.98)
    assert estimate_chance([], 5 / 3, 0.008) == 0.0
    details = [
        replace(finding(None, None, "runs"), criterion=replace(near.criterion, role="detail"), verdict="not run")
    ]
    assert estimate_chance(details, 5 / 3, 0.008) == 0.0, "no headline"
    assert estimate_chance([near, *details], 5 / 3, 0.008) < 1e-3, "too few details to be supported"
    for kind in ("runs", "nothing"):
        for longer in (False, True):
            assert estimate_chance([finding(None, None, kind)], 5 / 3, 0.008, longer) == 0.0
    assert estimate_chance([replace(near, reached=False)], 5 / 3, 0.008) == 0.0
    assert estimate_chance([replace(near, reached=False)], 5 / 3, 0.008, longer=True) > 0.0
    assert estimate_chance([finding(None, None)], 5 / 3, 0.008) == 0.5, "too few units say nothing"
