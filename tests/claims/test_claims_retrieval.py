"""The retrieval claims: lengths, ceilings, and the table of verdicts. (test_claims_verdicts has every verdict.)"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from support.claim_records import frame, lengths, noise, rows, spread_out, table2
from support.claim_retrieval_cases import published
from unseen.analysis import ANALYSES
from unseen.claims import CLAIMS
from unseen.claims.claim import Tables
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
    assert [one.verdict for one in found.findings] == ["undecided", "supported"]
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


def test_runs_not_converged_change_the_verdict_to_undecided() -> None:
    records = frame(
        [
            row
            for task in ("T1", "T3", "T4", "T6")
            for v, variant in enumerate(VARIANTS)
            for row in rows(
                task,
                variant,
                spread_out(TABLE2[task][v][0] / 100, 0.005, shift=v),
                length=5,
                not_converged=[1, 1, 1, 0, 0] if (task, variant) == ("T6", "T−Pos+Att") else None,
            )
        ]
    )
    found = judge(claims.C5, records)
    assert found.verdict == "undecided"
    (left_out,) = found.left_out
    assert (left_out.reason, left_out.count, left_out.total) == (Exclusion.NOT_CONVERGED, 3, 5)
    assert describe_left_out([left_out]) == ["3 of 5 runs not converged (T−Pos+Att on T6)"]
    assert "steps" in {finding.waiting.kind for finding in found.compared if finding.waiting}
    assert verdict("retrieval/C1", records) == "supported"
    # What does not need the runs that were left out is judged without them.
    assert [one.verdict for one in found.findings if one.compared] == [
        "supported",
        "supported",
        "undecided",
        "supported",
    ]


def test_a_claim_about_two_tasks_is_not_supported_by_one() -> None:
    found = judge(claims.C2, frame(table2(5, ["T1", "T3", "T4", "T6"])))
    assert found.verdict == "undecided"
    assert {describe_waiting(one) for one in found.findings if one.verdict != "supported"} == {"T2 not run"}
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
    """Without length 30 and without T2 the statements about them are not run; none is contradicted."""
    found = judge(C10, frame([row for row in lengths((5, 10, 20)) if row["task"] != "retrieval/T2"]))
    assert found.verdict == "undecided" and {one.verdict for one in found.findings} == {"supported", "not run"}
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
    assert "retrieval/C1  supported     mini, length 5 (paper: 10)  2 supported, 4 not compared" in text
    assert max(map(len, text.splitlines())) <= 110
    assert "not run: retrieval/C4 (T5 not run)" in text and "length 5 (full: 10)" in text and "indicative" in text
    document = format_markdown(found, deviations)
    assert [line.count("|") for line in document.splitlines() if line.startswith("|")] == [8] * 5
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


def test_table2_agrees_with_the_numbers_printed_in_its_claims() -> None:
    printed_trials = [trial for row in TABLE2.values() for trial in row]
    for printed, part in zip(printed_trials, claims.TABLE2_VALUES.criteria, strict=True):
        assert (part.low + part.high) / 2 == pytest.approx(printed[0] / 100)
        assert part.high - part.low == pytest.approx(max(0.02, 4 * printed[1] / 100), abs=1e-3)
