"""The retrieval claims: lengths, ceilings, and the table of verdicts. (test_claims_verdicts has every verdict.)"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from support.claim_records import frame, lengths, noise, option_columns, rows, spread_out, table2
from support.claim_retrieval_cases import published
from unseen.analysis import ANALYSES
from unseen.claims import CLAIMS
from unseen.claims.claim import Tables
from unseen.claims.criterion import PrintedNumber
from unseen.claims.evidence import Exclusion
from unseen.claims.judge import judge, judge_tables
from unseen.claims.papers import retrieval as claims
from unseen.claims.papers.retrieval import C10, LATER, TABLE2, VARIANTS, by_position, columns
from unseen.claims.render import describe_left_out, describe_waiting, format_markdown, format_table, judged_data
from unseen.errors import UsageError
from unseen.tasks import TASKS, task

NAMES = [entry.name for entry in CLAIMS if entry.name.startswith("retrieval/")]


def verdict(name: str, records: pd.DataFrame) -> str:
    return judge(CLAIMS.load(name), records).verdict


def test_one_comparison_is_not_settled_by_the_published_numbers() -> None:
    """T6: 92.1 ± 0.3 against 90.7 ± 1.9, five seeds each, is 1.4 ± 0.9 points; the interval holds zero."""
    found = judge(claims.C7, published())
    assert [one.verdict for one in found.findings] == ["open", "holds"]
    assert found.verdict == "undecided" and found.findings[0].waiting.kind == "seeds"


def test_a_shuffled_table_contradicts_most_of_it() -> None:
    """The same numbers under other names: variants in reverse order."""
    backwards = dict(zip(VARIANTS, reversed(VARIANTS), strict=True))
    records = published()
    found = {v.claim.name: v.verdict for v in judge_tables(records.assign(variant=records.variant.map(backwards)))}
    wrong = {"retrieval/C1", "retrieval/C5", "retrieval/C6", "retrieval/C9", "retrieval/table2"}
    assert {name for name, verdict in found.items() if verdict == "contradicted"} >= wrong


@pytest.mark.parametrize(
    "name", [n for n in NAMES if n not in ("retrieval/C10", "retrieval/lengths", "retrieval/noise")]
)
def test_at_another_length_directions_are_judged_and_printed_numbers_are_not(name: str) -> None:
    found = judge(CLAIMS.load(name), published(length=5))
    assert found.setting == "length 5 (paper: 10)"
    assert {one.compared for one in found.findings if one.criterion.printed} <= {False}
    directions = [one for one in found.findings if not one.criterion.printed]
    assert found.verdict == ("not run" if not directions else "undecided" if name == "retrieval/C7" else "supported")


def test_ceilings_are_those_the_tasks_declare_at_every_length() -> None:
    for length in (5, 10, 30):
        for kind, rule, ceiling in (
            ("T2", "one feature: a present", claims.ONE_FEATURE),
            ("T3", "one feature: a present", claims.ONE_FEATURE),
            ("T4", "one feature: b present", claims.ONE_FEATURE),
            ("T6", "a pair complete, order ignored", claims.ORDER_BLIND),
        ):
            made = task(f"retrieval/{kind}", length=length, preset="released")
            declared = {s.name: s.ceiling for s in made.shortcuts("ood/single")}
            assert declared[rule] == pytest.approx(ceiling)


def test_runs_that_diverged_leave_the_verdict_undecided() -> None:
    table = []
    for name in TABLE2:
        for v, variant in enumerate(VARIANTS):
            values = rows(name, variant, spread_out(TABLE2[name][v][0] / 100, 0.005, shift=v), length=5)
            if (name, variant) == ("T6", "T−Pos+Att"):
                values = [{**row, "status": "diverged" if row["seed"] < 3 else "finished"} for row in values]
            table += values
    records = frame(table)
    found = judge(claims.C5, records)
    assert found.verdict == "undecided"
    (left_out,) = found.left_out
    assert (left_out.reason, left_out.count, left_out.total) == (Exclusion.DIVERGED, 3, 5)
    assert describe_left_out([left_out]) == ["3 of 5 runs diverged (T−Pos+Att on T6)"]
    assert verdict("retrieval/C1", records) == "supported"
    # What does not need the runs that were left out is judged without them.
    outcomes = [one.verdict for one in found.findings if one.compared]
    assert outcomes.count("open") == 1 and set(outcomes) == {"holds", "open"}


def test_a_claim_about_two_tasks_is_not_supported_by_one() -> None:
    found = judge(claims.C2, frame(table2(5, ["T1", "T3", "T4", "T6"])))
    assert found.verdict == "undecided"
    assert {describe_waiting(one) for one in found.findings if one.verdict != "holds"} == {"T2 not run"}
    assert judge(claims.C4, frame(table2(5, ["T1", "T3", "T4", "T6"]))).verdict == "not run"


@pytest.mark.parametrize("seeds", [1, 2])
def test_too_few_seeds_settle_nothing(seeds: int) -> None:
    found = judge_tables(frame(table2(seeds=seeds)))
    assert {v.verdict for v in found if v.verdict != "not run"} == {"undecided"}


def test_more_seeds_settle_what_five_left_open() -> None:
    assert verdict("retrieval/C7", frame(table2(seeds=25))) == "supported"


def test_lengths_come_from_the_options() -> None:
    runs = frame(lengths((5, 10, 20)), table2(30, ["T1"])).drop_duplicates("trial")
    found = columns(runs)
    assert set(zip(found.length, found.reach, strict=True)) == {
        (5, "shortest"),
        (10, "between"),
        (20, "between"),
        (30, "longest"),
    }
    assert len(columns(runs.assign(task="rules/mlp"))) == 0


def test_some_lengths_are_judged_as_far_as_they_go() -> None:
    """Without length 30 and without T2 the statements about them are not run; none is contradicted.

    These are details, of which at least half were run.
    """
    found = judge(C10, frame([row for row in lengths((5, 10, 20)) if row["task"] != "retrieval/T2"]))
    assert found.verdict == "supported" and {one.verdict for one in found.findings} == {"holds", "not run"}
    assert {describe_waiting(one) for one in found.findings if one.verdict == "not run"} == {
        "length 30 not run",
        "T2 not run",
    }


def test_later_positions_are_the_second_half_of_them() -> None:
    """Of five the last two, of four the last two; the middle belongs to neither."""
    for length, expected in ((5, 0.35), (4, 0.25)):
        made = frame(
            *(
                rows("T1", "T−Pos+Att", [0.1 * k], metric="R2/accuracy", factor="position", level=str(k), length=length)
                for k in range(length)
            )
        )
        found = by_position(Tables(made, made.drop_duplicates("trial")))
        assert found[found.metric == LATER].value.tolist() == [pytest.approx(expected)]
        assert (found.metric == "R2/accuracy").sum() == length


def test_records_of_other_studies_are_no_evidence() -> None:
    """A noise study has no variants; a plain `train` has neither; another family has nothing."""
    crossed = frame(noise()).drop(columns="variant")
    assert {v.claim.name for v in judge_tables(crossed) if v.verdict != "not run"} == {"retrieval/noise"}
    plain = frame(table2(tasks=["T1"])).query("variant == 'T+Pos+Att'").drop(columns=["variant", "scale"])
    assert {v.verdict for v in judge_tables(plain)} == {"not run"}
    other = published().assign(task="rules/mlp")
    assert {v.verdict for v in judge_tables(other)} == {"not run"}
    assert {v.verdict for v in judge_tables(published().iloc[:0])} <= {"not run"}


def test_every_scale_is_judged_by_itself() -> None:
    both = pd.concat([published(5), published(10).assign(scale="full")], ignore_index=True)
    found = judge_tables(both, names=["retrieval/C1"])
    assert [(v.scale, v.setting) for v in found] == [("mini", "length 5 (paper: 10)"), ("full", "length 10")]


def test_determinism_and_order() -> None:
    records, names = published(), ["retrieval/C1", "retrieval/C8", "retrieval/C9", "retrieval/reading"]
    text = format_table(judge_tables(records, names=names), {}, criteria=True)
    mixed = records.sample(frac=1, random_state=np.random.RandomState(4))
    assert format_table(judge_tables(mixed, names=names), {}, criteria=True) == text
    assert format_table(judge_tables(records, names=names), {}, criteria=True) == text


def test_verdicts_as_table_markdown_and_data() -> None:
    found = judge_tables(frame(table2(5, ["T1", "T4"])), names=["retrieval/C1", "retrieval/C2", "retrieval/C4"])
    deviations = {"mini": ["length 5 (full: 10)"]}
    text = format_table(found, deviations)
    assert "retrieval/C1  supported     exploratory  mini, length 5 (paper: 10)  2 of 6 criteria run, 2 hold" in text
    assert max(map(len, text.splitlines())) <= 110
    assert "not run: retrieval/C4 (T5 not run)" in text and "length 5 (full: 10)" in text and "indicative" in text
    document = format_markdown(found, deviations)
    assert [line.count("|") for line in document.splitlines() if line.startswith("|")] == [9] * 5
    whole = format_table(found, deviations, criteria=True)
    assert whole.count("printed for length 10") == 4 + 4 and "printed: T4" not in whole.split("retrieval/C4")[1]
    data = judged_data(found[0])
    assert data["verdict"] == "supported" and data["criteria"][0]["n"] == 5 and data["criteria"][2]["compared"] is False


def test_the_registry_names_every_claim_rightly() -> None:
    others = [
        f"retrieval/{name}"
        for name in ("table2", "attention", "reading", "lengths", "spreads", "variants", "one-feature", "noise")
    ]
    assert [*(f"retrieval/C{k}" for k in range(1, 11)), *others] == NAMES
    for name in NAMES:
        claim = CLAIMS.load(name)
        assert claim.name == name and claim.criteria and claim.statement and claim.printed
        says = [part.key for part in claim.criteria]
        assert len(set(says)) == len(says)  # the name of a part is the name of its random stream
        for part in claim.criteria:
            for found in part.quantity.groups:
                assert all(name in TASKS for name in found.columns.get("task", ()))
                analysis, _, measure = found.metric.partition("/")
                assert found.metric in ("accuracy", LATER) or (analysis in ANALYSES and measure)
    with pytest.raises(UsageError, match="Did you mean"):
        CLAIMS.load("retrieval/C11")


def test_printed_tables_are_agreements_with_means_spreads_and_seeds() -> None:
    """Three points, five where seeds differ by more than two, and three printed standard errors where that is more."""
    printed = [entry for row in TABLE2.values() for entry in row]
    for (value, spread), number in zip(printed, claims.TABLE2_VALUES.criteria, strict=True):
        assert isinstance(number, PrintedNumber) and number.seeds == 5
        assert number.value == pytest.approx(value / 100) and number.spread == pytest.approx(spread / 100)
        assert (number.low + number.high) / 2 == pytest.approx(number.value)
        assert number.high - number.low == pytest.approx(0.1 if spread > 2 else 0.06)
    attention = {(n.value, n.spread): round((n.high - n.low) / 2, 3) for n in claims.ATTENTION_VALUES.criteria}
    assert attention == {
        (0.03, 0.02): 0.03,
        (0.01, 0.01): 0.03,
        (0.79, 0.005): 0.03,
        (-0.14, 0.55): 0.738,
        (0.46, 0.03): 0.05,
        (0.16, 0.18): 0.241,
    }
    agreements = {name for name in NAMES if CLAIMS.load(name).is_agreement}
    assert agreements == {"retrieval/table2", "retrieval/attention"}


def test_every_printed_number_is_attainable() -> None:
    """Our mean with the printed value, spread and number of seeds has a 90 % Welch interval within the tolerance."""
    for number in [*claims.TABLE2_VALUES.criteria, *claims.ATTENTION_VALUES.criteria]:
        half = t.ppf(0.95, 2 * (number.seeds - 1)) * number.spread * math.sqrt(2 / number.seeds)
        assert half < (number.high - number.low) / 2, number.key


def test_every_claim_quotes_the_paper_and_has_a_headline() -> None:
    for name in NAMES:
        claim = CLAIMS.load(name)
        assert claim.quote and claim.learning is None
        assert any(criterion.role == "headline" for criterion in claim.criteria)


@pytest.mark.parametrize("name", ["retrieval/C1", "retrieval/C2", "retrieval/C3", "retrieval/C5", "retrieval/C6"])
def test_every_variant_is_in_a_headline(name: str) -> None:
    headlines = [criterion for criterion in CLAIMS.load(name).criteria if criterion.role == "headline"]
    groups = [group for criterion in headlines for group in criterion.quantity.groups]
    variants = {variant for group in groups for variant in group.columns["variant"]}
    # On T6 the sentence names three variants; the fourth is a detail.
    assert variants == set(VARIANTS) - ({"T+Pos+Att"} if name == "retrieval/C5" else set())


def test_only_the_variant_with_neither_component_may_fail_and_only_where_order_matters() -> None:
    for name in NAMES:
        for criterion in CLAIMS.load(name).criteria:
            groups = criterion.quantity.groups
            single = {(group.columns.get("task"), group.columns.get("variant")) for group in groups}
            near_chance = {((f"retrieval/{task}",), (variant,)) for task, variant in claims.NEAR_CHANCE}
            assert criterion.may_fail == bool(single & near_chance), criterion.key


def paper_run(**changes: Any) -> pd.DataFrame:
    """A run of the published size as a table of runs has it, with single options replaced."""
    run = {
        "task": "retrieval/T6",
        "model": "retrieval-transformer",
        "status": "finished",
        "step": 1_000_000,
        "recipe.steps": 1_000_000,
        "recipe.batch": 10,
        **option_columns("task", "retrieval/T6", preset="released"),
        **option_columns("model", "retrieval-transformer"),
    }
    return pd.DataFrame([{**run, **changes}])


@pytest.mark.parametrize(
    ("changes", "reduced"),
    [
        ({}, False),
        ({"recipe.steps": 100_000, "recipe.batch": 100}, False),
        ({"recipe.steps": 30_000, "recipe.batch": 100}, True),
        ({"status": "stopped", "step": 50_000}, True),
        ({"model.width": 64}, True),
        ({"model.width": 200}, False),
        ({"task.length": 5}, True),
        ({"task.length": 30}, False),
        ({"task.features": 16}, True),
        ({"task.train_size": 10_000}, True),
        ({"model": "mine:Model", "recipe.steps": 5}, False),  # nothing was published about this model
        ({"task": "retrieval/T6", "recipe.steps": None}, False),
    ],
)
def test_a_run_is_reduced_if_anything_is_smaller_than_published(changes: dict[str, Any], reduced: bool) -> None:
    described = columns(paper_run(**changes))
    assert described["reduced"].dtype == bool and described["reduced"].tolist() == [reduced]


def test_length_five_is_the_papers_own_in_its_figure_over_lengths() -> None:
    for claim in (C10, claims.LENGTHS):
        assert claim.columns(paper_run(**{"task.length": 5}))["reduced"].tolist() == [False]
        assert claim.columns(paper_run(**{"task.length": 4}))["reduced"].tolist() == [True]


def test_runs_without_options_count_as_the_papers() -> None:
    runs = columns(published().drop_duplicates("trial"))
    assert runs["reduced"].dtype == bool and not runs["reduced"].any()
