"""The rules claims: worlds, measures, resampling. (test_claims_verdicts shows that each can reach every verdict.)"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.claim_router_cases import ROUTED
from support.claim_rules_cases import (
    DETAILS_WRONG,
    ERRORS,
    FREED,
    RANDOM_ADAPTATION,
    SUPPORTED,
    TOLD,
    VOTED,
    WRONG,
    Case,
    as_told,
    confounds,
    flipped,
    full,
    mini,
    published,
    sized,
    verdict,
    votes_as_told,
)
from support.claim_rules_records import GATINGS, ZERO, Measure, Run, grid, place, records
from unseen.analysis import adaptation, uniform_activation, vote_table
from unseen.claims import CLAIMS
from unseen.claims.claim import Claim, JudgedClaim, Tables
from unseen.claims.criterion import PrintedNumber
from unseen.claims.evidence import Evidence, Exclusion, exclusions
from unseen.claims.judge import AMBIGUOUS, judge, judge_tables
from unseen.claims.papers import rules as claims
from unseen.claims.papers import rules_measures as measures
from unseen.claims.papers.rules_measures import decided_votes
from unseen.claims.render import (
    describe_configuration,
    describe_waiting,
    describe_without,
    format_markdown,
    format_table,
    judged_data,
)
from unseen.store.tables import all_options
from unseen.studies.study import study
from unseen.training.convergence import mean_of_curve

NAMES = [entry.name for entry in CLAIMS if entry.name.startswith("rules/") and entry.name not in ROUTED]
PRINTED = ("rules/votes", "rules/votes-flipped", "rules/levels")
FULL = "rules/votes"


def value(claim: Claim, number: int, found: JudgedClaim) -> float:
    estimate = found.findings[number].estimate
    assert estimate is not None and found.claim == claim
    return estimate.value


# -- worlds ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*VOTED, *TOLD])
def test_claims_are_judged_with_and_without_what_width_bounds(name: str) -> None:
    found = SUPPORTED[name]()
    assert found.without is not None  # 32 rules are too many for some of width 32
    assert all("indicative" in str(one.estimate) for one in found.findings)


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=f"{name} {number}") for name, cases in WRONG.items() for number, case in enumerate(cases)],
)
def test_other_worlds_contradict_them(case: Case) -> None:
    assert case().verdict == "contradicted"


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=f"{name} {number}")
        for name, cases in DETAILS_WRONG.items()
        for number, case in enumerate(cases)
    ],
)
def test_wrong_details_leave_the_headline_alone(case: Case) -> None:
    found = case()
    by_role = {
        role: {one.verdict for one in found.findings if one.criterion.role == role} for role in ("headline", "detail")
    }
    assert "contradicted" in by_role["detail"] and by_role["headline"] == {"holds"}


def any_winner(run: Run) -> Mapping[str, float]:
    return {"error": 0.2 + run.luck(0.05)}


@pytest.mark.parametrize("name", [*(name for name in VOTED if name != "rules/C6"), *TOLD])
def test_two_tasks_settle_nothing_however_many_seeds(name: str) -> None:
    architectures = ("mlp",) if name not in ("rules/C1", "rules/flipped") else ("rnn",)
    found = verdict(name, votes_as_told if name in VOTED else as_told, tasks=2, seeds=5, architectures=architectures)
    assert found.verdict == "undecided"
    assert {describe_waiting(one) for one in found.findings} == {"needs at least 3 tasks, has 2"}


# -- the printed shares ------------------------------------------------------------------------------------------------


def test_the_published_votes_are_those_of_the_whole_grid() -> None:
    found = judge(claims.VOTE_VALUES, full(published))
    assert found.verdict == "supported", [str(one.estimate) for one in found.findings]
    assert found.setting == (
        "complete_or_sampled True; 1000 experiments; mlp, mha, rnn: 2, 4, 8, 16, 32 rules; widths 32, 64, 128, 256, 512"
    )
    assert value(claims.VOTE_VALUES, 0, found) == pytest.approx(0.614, abs=0.01)
    assert verdict(FULL).verdict == "not run"
    assert describe_waiting(verdict(FULL).findings[0]) == "printed for complete_or_sampled True"


@pytest.mark.parametrize("name", PRINTED)
def test_printed_numbers_are_of_the_whole_grid(name: str) -> None:
    assert verdict(name).verdict == "not run"


@pytest.mark.parametrize("name", PRINTED)
def test_a_declared_random_sample_stands_for_the_whole_grid(name: str) -> None:
    """And an undeclared one, another frame, or runs outside the frame do not."""
    some = full(published, sampled=400)
    assert judge(CLAIMS.load(name), some).verdict == "not run"
    declared = judge(CLAIMS.load(name), some.assign(sample=measures.WHOLE_FRAME))
    assert all(one.compared and one.estimate for one in declared.findings)
    assert declared.setting.startswith(f"complete_or_sampled True; 400 experiments, {measures.WHOLE_FRAME}; mlp, mha")
    refused = (
        some.assign(sample="some experiments"),
        some.assign(sample=np.where(some.task_seed == 0, None, measures.WHOLE_FRAME)),
        some.assign(sample=measures.NARROW_FRAME),
        some.assign(sample=measures.WHOLE_FRAME, task_seed=some.task_seed + 1),
    )
    assert {judge(CLAIMS.load(name), table).verdict for table in refused} == {"not run"}
    narrow = some[some.width == 32].assign(sample=measures.NARROW_FRAME)
    assert all(one.compared for one in judge(CLAIMS.load(name), narrow).findings)


def test_shares_of_a_sample_are_estimated_by_experiments() -> None:
    """The mean and the spread of the votes of 400 experiments, against those of a binomial."""
    some = full(published, sampled=400).assign(sample=measures.WHOLE_FRAME)
    found = judge(claims.VOTE_VALUES, some)
    cast = measures.votes(Tables(some, measures.columns(some.drop_duplicates("trial"))))
    for one, (gating, share) in zip(found.findings, claims.SHARES.items(), strict=False):
        mine = cast[(cast.metric == measures.VOTE) & (cast.gating == gating)].value
        assert len(mine) == 400 and one.estimate is not None
        assert one.estimate.value == pytest.approx(mine.mean())
        width = one.estimate.interval.high - one.estimate.interval.low
        assert width == pytest.approx(2 * 1.96 * math.sqrt(mine.mean() * (1 - mine.mean()) / 400), rel=0.1)
        printed = one.criterion
        assert isinstance(printed, PrintedNumber)
        assert (printed.value, printed.seeds) == (share, 1000)
        assert printed.spread == pytest.approx(math.sqrt(share * (1 - share)))
    assert claims.VOTE_VALUES.is_agreement and claims.VOTE_VALUES_FLIPPED.is_agreement


def test_flipped_votes_are_those_of_the_table_of_votes() -> None:
    runs = grid(searches=(1, 2), seeds=3, tasks=3)
    found = records(runs, any_winner)
    table = vote_table(found).query("split == 'id'").set_index(["contest", "gating"])
    cast = measures.votes(Tables(found, measures.columns(found.drop_duplicates("trial"))), flipped=True)
    assert (table.votes != table.flipped).any()
    for metric, contest in ((measures.VOTE, "all"), (measures.DUEL, "joint against none")):
        for gating, votes in cast[cast.metric == metric].groupby("gating").value.sum().items():
            assert votes == pytest.approx(table.loc[(contest, gating), "flipped"])


def test_which_way_round_a_figure_was_made_can_be_told() -> None:
    """An eighth of the votes moves truth by some seven points, more than what is agreement."""
    straight, other = full(published), full(partial(flipped, of=published))
    agree = [
        [judge(claim, table).verdict == "supported" for claim in (claims.VOTE_VALUES, claims.VOTE_VALUES_FLIPPED)]
        for table in (straight, other)
    ]
    assert agree == [[True, False], [False, True]]


# -- votes beyond luck -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clear", [0.0, 0.03])
def test_decided_votes_are_the_significant_ones_of_the_table_of_votes(clear: float) -> None:
    """Counted by other code, from losses instead of relative ones."""

    def measure(run: Run) -> Mapping[str, float]:
        gain = clear * (GATINGS.index(run.gating) - run.task_seed) ** 2
        return {"error": 0.2 + gain + run.luck(0.02)}

    found = records(grid(searches=(1, 2), seeds=4, tasks=3), measure)
    table = vote_table(found).query("split == 'id'").set_index(["contest", "gating"])
    cast = measures.votes(Tables(found, measures.columns(found.drop_duplicates("trial"))), count=decided_votes)
    for metric, contest in ((measures.VOTE, "all"), (measures.DUEL, "joint against none")):
        mine = cast[cast.metric == metric].groupby("gating").value.agg(["sum", "size"])
        expected = table.loc[contest]
        assert {gating: row["sum"] for gating, row in mine.iterrows()} == (
            expected.significant.to_dict() if len(mine) else {}
        )
        assert set(mine["size"]) <= set(expected.experiments - expected.undecided)
    assert (len(cast) > 0) == (clear > 0)


def test_one_seed_decides_no_vote() -> None:
    found = verdict("rules/C6", votes_as_told)
    assert found.verdict == "not run"
    assert describe_waiting(found.findings[0]) == "no share of votes of truth in these runs"


# -- sizes -------------------------------------------------------------------------------------------------------------


def test_a_size_that_does_nothing_leaves_findings_as_they_are() -> None:
    as_published = confounds(sized, encoder=1.0, gate=1.0, state=0.0)
    assert {name: judge(CLAIMS.load(name), as_published).verdict for name in ("rules/C3", "rules/C4", "rules/C5")} == {
        "rules/C3": "supported",
        "rules/C4": "supported",
        "rules/C5": "supported",
    }


def test_the_study_of_confounds_has_the_sizes_that_claims_name() -> None:
    runs = pd.DataFrame(
        [
            {"task": entry.trial.task.name, "seed": entry.trial.seed, **entry.levels}
            for entry in study("rules-confounds").entries("mini")
        ]
    )
    runs = measures.columns(runs.assign(trial=range(len(runs)), scale="mini"))
    for name in FREED:
        for part in CLAIMS.load(name).criteria:
            for one in part.quantity.groups:
                chosen = runs
                for column, values in one.columns.items():
                    chosen = chosen[chosen[column].isin(values)]
                assert len(chosen) or one.columns["reach"] == (measures.FEWEST,), str(one)


def test_claims_on_sizes_and_on_findings_do_not_mix() -> None:
    sizes = confounds()
    for name in (*VOTED, *TOLD):
        assert judge(CLAIMS.load(name), sizes).note == AMBIGUOUS
    assert {judge(CLAIMS.load(name), mini()[0]).verdict for name in FREED} == {"not run"}


# -- what is measured --------------------------------------------------------------------------------------------------


def tables(measure: Measure = as_told, **more: object) -> Tables:
    found, points = mini(measure, **more)
    return Tables(found, measures.columns(found.drop_duplicates("trial")), lambda: points)


@pytest.mark.parametrize("learners", [0.0, 0.2])
def test_votes_are_those_of_the_table_of_votes(learners: float) -> None:
    """Counted by other code, from losses instead of relative ones; 3 seeds per task, some of them unusable."""
    runs = grid(searches=(1, 2), seeds=3, tasks=3)
    found = records(runs, any_winner, lambda run: int(abs(run.luck(1.0, "learning")) < learners))
    usable = found[exclusions(found).isna()]
    assert (len(usable) < len(found)) == (learners > 0)
    table = vote_table(usable).query("split == 'id'").set_index(["contest", "gating"])
    cast = measures.votes(Tables(found, measures.columns(found.drop_duplicates("trial"))))
    for metric, contest in ((measures.VOTE, "all"), (measures.DUEL, "joint against none")):
        mine = cast[cast.metric == metric].groupby("gating").value.agg(["sum", "size"])
        for gating, row in mine.iterrows():
            assert row["sum"] == pytest.approx(table.loc[(contest, gating), "votes"])
            assert row["size"] == table.loc[(contest, gating), "experiments"]


def test_a_tied_vote_is_shared() -> None:
    cast = measures.votes(tables(lambda run: {"error": 0.1 if run.gating in ("truth", "none") else 0.2}))
    assert set(cast[(cast.metric == measures.VOTE) & (cast.gating == "none")].value) == {0.5}
    assert set(cast[(cast.metric == measures.DUEL) & (cast.gating == "none")].value) == {1.0}


def test_errors_are_of_the_last_weights_at_the_published_splits() -> None:
    found = measures.errors(tables(lambda run: {"error": 0.2, "ood": 0.4, "best": 0.1, "best_ood": 0.3}))
    assert {(metric, round(one, 9)) for metric, one in zip(found.metric, found.value, strict=True)} == {
        ("error", 0.2),
        ("OoD error", 0.4),
    }
    assert len(found) == 2 * len(grid())
    change = measures.selections(tables(lambda run: {"error": 0.2, "ood": 0.4, "best": 0.25, "best_ood": 0.1}))
    assert {(metric, round(one, 9)) for metric, one in zip(change.metric, change.value, strict=True)} == {
        ("change", 0.05),
        ("OoD change", 0.3),
    }


def test_the_speed_is_the_mean_of_the_curve_in_the_same_units() -> None:
    found = measures.speeds(tables()).set_index("trial").value
    points = mini()[1]
    for run in grid()[::97]:
        metric, trial = ("accuracy" if run.setting == "classification" else "loss"), place(run)["trial"]
        mine = points[(points.trial == trial) & (points.split == "iid") & (points.metric == metric)]
        mean = mean_of_curve(mine.step.tolist(), mine.value.tolist())
        assert found[trial] == pytest.approx(1 - mean if metric == "accuracy" else mean / ZERO)
    assert len(measures.speeds(replace(tables(), curves=pd.DataFrame))) == 0
    assert describe_waiting(judge(claims.F7, mini()[0]).findings[0]) == (
        "no error during training of operation in these runs"
    )


def test_curves_are_read_once() -> None:
    records, points = mini()
    read: list[int] = []

    def curves() -> pd.DataFrame:
        read.append(len(points))
        return points

    assert judge(claims.F7, records, curves=curves).without is not None and len(read) == 1
    judge_tables(records, names=["rules/F3", "rules/F7"], curves=curves)
    assert len(read) == 2


def test_relative_metrics_are_one_for_random_gates() -> None:
    def random(run: Run) -> Mapping[str, float]:
        return {
            "error": 0.1,
            "alignment": 1 - 1 / run.rules,
            "inverse_mutual_information": 1.0,
            "collapse_avg": 0.3,
            "adaptation": adaptation(uniform_activation(run.rules)),
        }

    found = measures.specialization(tables(random))
    relative = found[found.metric.str.startswith("relative")]
    assert set(relative.metric) == {f"relative {name}" for name in measures.RELATIVE}
    assert np.allclose(relative.value, 1) and set(relative.gating) == set(GATINGS) - {"none"}
    printed = {rules: measures.random_score("adaptation", rules) for rules in RANDOM_ADAPTATION}
    assert printed == pytest.approx(RANDOM_ADAPTATION, abs=1e-4)


def test_ranks_are_within_architecture_and_setting() -> None:
    """Settings of quite other errors do not make a correlation."""

    def measure(run: Run) -> Mapping[str, float]:
        level = 0.5 * (run.setting == "regression")
        return {"error": level + 0.1 + run.luck(0.01, "a"), "ood": level + 0.1 + run.luck(0.01, "b")}

    assert abs(value(claims.F8, 0, judge(claims.F8, mini(measure)[0]))) < 0.2
    straight = mini(lambda run: {"error": 0.1 + run.luck(0.01, "a"), "ood": (1 + run.luck(0.01, "a")) ** 9})[0]
    assert value(claims.F8, 0, judge(claims.F8, straight)) == pytest.approx(1)


def test_limited_trials_are_those_of_the_specification() -> None:
    runs = measures.columns(
        pd.DataFrame(
            [place(run) for run in grid((2, 4, 8, 16, 32), searches=(1, 2), widths=(32, 64, 128, 256, 512), tasks=1)]
        )
    )
    marked = runs[measures.is_limited(runs)]
    found = {
        architecture: set(zip(rows.search, rows.width, rows.rules, strict=True))
        for architecture, rows in marked.groupby("architecture")
    }
    narrow = {(32, 16), (32, 32), (64, 32)}
    linear = narrow | {(32, 8), (64, 16), (128, 32)}
    assert found["mha"] == {("search 1", *one) for one in narrow} | {("search 2", *one) for one in linear}
    assert found["rnn"] == {("", *one) for one in narrow}  # shared states of 26, 15 and 31 numbers
    assert "mlp" not in found
    state = measures._shared_state(pd.Series([2.0, 8, 16, 32, 32, 32]), pd.Series([32.0, 32, 32, 32, 64, 512]))
    assert state.tolist() == [91, 41, 26, 15, 31, 255]


def test_reach_is_each_architecture_s_own() -> None:
    runs = [*grid((2, 8, 32), ("mlp",), tasks=1), *grid((4,), ("mha",), tasks=1), *grid((2, 8), ("rnn",), tasks=1)]
    found = measures.columns(pd.DataFrame([place(run) for run in runs]))
    assert set(zip(found.architecture, found.rules, found.reach, strict=True)) == {
        ("mlp", 2, "fewest rules"),
        ("mlp", 8, "between"),
        ("mlp", 32, "most rules"),
        ("mha", 4, "between"),
        ("rnn", 2, "fewest rules"),
        ("rnn", 8, "most rules"),
    }
    assert claims.describe_setting(found) == "mlp: 2, 8, 32 rules; mha: 4 rules; rnn: 2, 8 rules; width 32"
    assert claims.describe_setting(found[found.setting == "regression"]).endswith("; regression only; width 32")
    assert set(found.experiments) == {2 * (3 + 1 + 2)}
    for numbers, expected in (((2,), "fewest rules"), ((32,), "most rules"), ((2, 32), None)):
        other = [*grid((2, 8, 32), ("mlp",), tasks=1), *grid(numbers, ("rnn",), tasks=1)]
        reach = measures.columns(pd.DataFrame([place(run) for run in other])).query("architecture == 'rnn'").reach
        assert set(reach) == ({expected} if expected else {"fewest rules", "most rules"})


def test_runs_below_the_paper_s_sizes_are_reduced() -> None:
    def reduced(
        architecture: str, rules: tuple[int, ...] = (2, 32), width: int = 32, **recipe: int | None
    ) -> list[bool]:
        runs = grid(rules, (architecture,), widths=(width,), tasks=1)
        options = {f"recipe.{name}": value for name, value in recipe.items()}
        table = measures.columns(pd.DataFrame([place(run) | options for run in runs]))
        return sorted(table.reduced.drop_duplicates())

    assert reduced("mlp", steps=100_000, batch=256) == [False]
    assert reduced("mlp", steps=400_000, batch=64) == [False]
    assert reduced("mlp", steps=5_000, batch=256) == [True]
    assert reduced("mha", steps=100_000, batch=256) == [True]
    assert reduced("rnn", steps=500_000, batch=256) == [False]
    assert reduced("rnn", steps=500_000, batch=256, width=16) == [True]
    assert reduced("mlp", (2, 8), steps=100_000, batch=256) == [False, True], "8 rules are not the paper's most"
    assert reduced("mlp") == [False], "nothing is known of the recipe"
    for scale, expected in (("mini", True), ("full", False)):
        entry = study("rules-main").entries(scale, seeds=[0])[0]
        options = {
            f"recipe.{name}": value for name, value in all_options("recipe", entry.trial.recipe.identity()).items()
        }
        run = {"task": entry.trial.task.name, **entry.levels, **options, "rules": 32}
        assert measures.columns(pd.DataFrame([run])).reduced.tolist() == [expected]


# -- how runs are compared and drawn -----------------------------------------------------------------------------------


def by_hand(found: pd.DataFrame, gating: str, rules: tuple[int, ...] = (32,)) -> pd.Series:
    """Errors in distribution by place, task and seed."""
    rows = found[
        (found.selection == "last")
        & (found.split == "iid")
        & (found.gating == gating)
        & found.metric.isin(["accuracy", "relative_loss"])
        & found.rules.isin(rules)
        & (found.status == "finished")
    ]
    return (
        rows.assign(error=np.where(rows.metric == "accuracy", 1 - rows.value, rows.value))
        .set_index(["architecture", "setting", "rules", "task_seed", "seed"])
        .error
    )


def test_runs_are_paired_at_their_place_and_only_the_unusable_are_left_out() -> None:
    unusable = {(0, "truth"), (1, "operation"), (2, "joint")}

    def learning(run: Run) -> int:
        return int(run.architecture == "mlp" and run.setting == "regression" and (run.seed, run.gating) in unusable)

    runs = grid((2, 32), seeds=3)
    found = records(runs, lambda run: {"error": ERRORS[run.gating] + 0.1 * run.task_seed + run.luck(0.02)}, learning)
    judged = judge(claims.F3, found)
    pairs = (by_hand(found, "operation") - by_hand(found, "truth")).dropna()
    assert len(pairs) == 6 * 5 * 3 - 5 - 5
    assert value(claims.F3, 0, judged) == pytest.approx(pairs.mean(), abs=1e-12)
    interval = judged.findings[0].estimate.interval  # type: ignore[union-attr]
    assert (interval.n, interval.clusters) == (15, 5)
    assert [describe_configuration(entry.configuration) for entry in judged.left_out] == [
        f"mlp, regression, {gating}, rules 32, width 32" for gating in ("operation", "truth", "joint")
    ]
    assert {(entry.reason, entry.count, entry.total) for entry in judged.left_out} == {(Exclusion.DIVERGED, 5, 15)}
    growth = judge(claims.F4, found)
    apart = {
        rules: (by_hand(found, "none", (rules,)) - by_hand(found, "truth", (rules,))).droplevel("rules")
        for rules in (2, 32)
    }
    assert value(claims.F4, 0, growth) == pytest.approx((apart[32] - apart[2]).mean(), abs=1e-12)
    assert value(claims.F4, 2, growth) == pytest.approx(apart[2].mean(), abs=1e-12)


@given(st.sets(st.integers(0, 79), max_size=60))
@settings(derandomize=True, deadline=None, max_examples=10)
def test_whatever_is_unusable_the_rest_is_paired(unusable: set[int]) -> None:
    runs = grid((2, 32), ("mlp",))
    chosen = {run for number, run in enumerate(runs) if number in unusable}
    found = records(
        runs,
        lambda run: {"error": ERRORS[run.gating] * run.rules + run.luck(0.1)},
        lambda run: int(run in chosen),
        decoys=False,
    )
    criterion, trials = claims.F4.criteria[0], measures.columns(found.drop_duplicates("trial"))
    evidence = Evidence(measures.errors(Tables(found, trials)), trials, claims.CONFIGURATION, claims.RUNS)
    sample = criterion.quantity.sample(evidence)
    apart = {
        rules: (by_hand(found, "none", (rules,)) - by_hand(found, "truth", (rules,))).droplevel("rules")
        for rules in (2, 32)
    }
    changes = (apart[32] - apart[2]).dropna()
    assert sample.independent == changes.index.get_level_values("task_seed").nunique()
    if len(changes):
        quantity = criterion.quantity
        assert quantity.value(sample) == pytest.approx(changes.mean(), abs=1e-9)
        assert math.isnan(quantity.limits(sample).at(0.05)[0]) == (sample.independent < 3)


def test_tasks_are_drawn_not_runs() -> None:
    """Tasks that differ among each other leave a wide interval, though their 20 seeds each agree."""

    def task_of_its_own(run: Run) -> Mapping[str, float]:
        gain = 0.05 * (run.task_seed - 1.5) if run.gating == "none" else 0.0
        return {"error": 0.5 + gain + run.luck(0.001), "ood": 0.5}

    def seed_of_its_own(run: Run) -> Mapping[str, float]:
        gain = 0.05 * (run.seed % 5 - 1.5) if run.gating == "none" else 0.0
        return {"error": 0.5 + gain + run.luck(0.001), "ood": 0.5}

    parts = {
        measure: judge(claims.F3, mini(measure, rules=(8,), architectures=("mlp",), seeds=20)[0]).findings[2]
        for measure in (task_of_its_own, seed_of_its_own)
    }
    assert [one.verdict for one in parts.values()] == ["open", "holds"]
    assert [round(one.estimate.value, 2) for one in parts.values() if one.estimate] == [0.03, 0.03]
    assert parts[task_of_its_own].waiting.kind == "tasks"  # type: ignore[union-attr]


def test_the_order_of_records_does_not_matter() -> None:
    found, points = mini()
    mixed = found.sample(frac=1, random_state=3)
    for name in ("rules/F1", "rules/F4", "rules/F6", "rules/F7", "rules/F8"):
        assert judge(CLAIMS.load(name), mixed, curves=lambda: points) == verdict(name)


# -- with and without the trials whose width bounds them ----------------------------------------------------------------


def test_capacity_limited_runs_are_set_apart() -> None:
    """A finding that is one of the narrow trials alone does not outlive them."""

    def narrow(run: Run) -> Mapping[str, float]:
        wide = ERRORS if run.rules == 32 and run.architecture != "mlp" else dict(zip(ERRORS, [0.1] * 4, strict=True))
        return {"error": wide[run.gating] + run.luck(0.01), "ood": wide[run.gating] + run.luck(0.01, "ood")}

    found = judge(claims.F3, mini(narrow)[0])
    assert found.verdict == "supported" and found.without is not None and found.without.verdict != "supported"
    assert found.without.setting == "mlp: 2, 8, 32 rules; mha, rnn: 2, 8 rules; width 32"
    assert judge(claims.F3, mini(narrow, rules=(2, 8))[0]).without is None
    (line,) = describe_without(found)
    assert line.startswith(f"without capacity-limited runs: {found.without.verdict} (")
    assert line in format_markdown([found], {})
    assert line in " ".join(format_table([found], {}).split())
    data = json.loads(json.dumps(judged_data(found)))
    assert data["without"]["runs"] == "capacity-limited runs" and len(data["without"]["criteria"]) == 6
    assert judged_data(judge(claims.F3, mini(narrow, rules=(2, 8))[0]))["without"] is None


# -- what is no evidence -----------------------------------------------------------------------------------------------


def test_a_study_of_one_number_of_rules_says_what_is_missing() -> None:
    found = verdict("rules/F4", rules=(8,))
    assert found.verdict == "not run" and {describe_waiting(one) for one in found.findings} == {"fewest rules not run"}
    assert verdict("rules/F3", rules=(8,)).verdict == "supported"


def test_other_runs_are_no_evidence() -> None:
    found = mini()[0]
    every = judge_tables(found.drop(columns="gating"), names=NAMES)
    assert {describe_waiting(one.findings[0]) for one in every if one.claim.name != FULL} == {"the runs have no gating"}
    assert {one.verdict for one in judge_tables(found.drop(columns="task_seed"), names=NAMES)} == {"not run"}
    assert {one.verdict for one in judge_tables(found.assign(task="retrieval/T1"), names=NAMES)} == {"not run"}
    assert {one.verdict for one in judge_tables(found.iloc[:0], names=NAMES)} <= {"not run"}
    without = judge_tables(found[found.gating != "truth"], names=["rules/F1", "rules/F3"])
    assert [describe_waiting(one.findings[0]) for one in without] == ["truth not run", "truth not run"]


def test_runs_that_only_another_axis_tells_apart_are_not_mixed() -> None:
    found = mini()[0]
    two = pd.concat([found, found.assign(trial=found.trial + "x", encoder="scaled")])
    assert {judge(CLAIMS.load(name), two).note for name in NAMES if name not in FREED} == {AMBIGUOUS}


def test_diverged_runs_and_those_that_go_on_are_said() -> None:
    found, points = mini()
    runs = found.drop_duplicates("trial")
    ended = runs.assign(status=np.where(runs.task_seed == 0, "diverged", "finished"))
    judged = judge(claims.F3, found, ended, lambda: points)
    assert judged.verdict == "supported"
    entry = judged.left_out[0]
    assert (entry.reason, entry.count, entry.total) == (Exclusion.DIVERGED, 1, 5)
    going = judge(claims.F3, found.iloc[:0], runs.assign(status="pending"), lambda: points)
    assert going.verdict == "not run"
    assert describe_waiting(going.findings[0]) == "no run of operation with the most rules has ended"


# -- the registry ------------------------------------------------------------------------------------------------------


def test_the_registry_and_the_studies_name_the_same_claims() -> None:
    assert set(NAMES) == {*VOTED, *TOLD, *FREED, *PRINTED}
    assert set(study("rules-main").claims) == {*VOTED, *TOLD, *PRINTED}
    assert set(study("rules-confounds").claims) == set(FREED)
    assert set(study("rules-routers").claims) == set(ROUTED)
    for name in NAMES:
        claim = CLAIMS.load(name)
        assert (claim.name, claim.paper) == (name, "Mittal, Bengio & Lajoie 2022")
        says = [part.key for part in claim.criteria]
        assert claim.quote or claim.ours
        assert claim.learning is None
        assert any(part.role == "headline" for part in claim.criteria)
        assert says and len(set(says)) == len(says) and claim.statement and claim.printed and claim.source
    assert sum(claims.SHARES.values()) == pytest.approx(1) and sum(claims.DUELS.values()) == pytest.approx(1)
