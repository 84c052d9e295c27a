"""The task itself: options, errors, identity, streams and golden numbers."""

from __future__ import annotations

import pytest

from support.retrieval_cases import KINDS, PRESETS, make
from support.retrieval_tables import GOLDEN
from unseen.errors import UsageError
from unseen.spec import Field, Spec, Stream, Target
from unseen.tasks import task
from unseen.tasks.retrieval.mapping import draw_released_table, draw_table
from unseen.tasks.verify import fingerprint, verify


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("kind", KINDS)
def test_golden_blocks(kind: str, preset: str) -> None:
    """The numbers of every preset and task; a change is a decision and raises the task's version."""
    made = task(f"retrieval/{kind}", preset=preset)
    found = tuple(fingerprint(made.sample(split, 1024)) for split in ("train", "ood/single"))
    assert found == GOLDEN[f"{kind} {preset}"]


def test_spec_splits_and_sizes() -> None:
    made = task("retrieval/T4", length=7)
    assert made.spec == Spec(
        (Stream("sequence", 7),),
        (Field("sequence", "bits", 36, "sequence"), Field("query", "bits", 36)),
        Target("binary", 1),
    )
    assert list(made.splits) == ["train", "iid", "ood/single"] and made.validation == "ood/single"
    assert not any(split.unseen for split in made.splits.values())
    assert "only the number of occurrences shifts" in made.splits["ood/single"].summary
    assert [made.size(c) for c in made.splits] == [100_000, 10_000, 10_000]
    endless = task("retrieval/T4", train_size=None, evaluation_size=20)
    assert [endless.size(c) for c in endless.splits] == [None, 20, 20]
    with pytest.raises(UsageError, match="has 20 examples"):
        endless.sample("iid", 21)


def test_further_lengths_are_splits_and_change_no_other() -> None:
    made, plain = task("retrieval/T6", test_lengths=(15, 30)), task("retrieval/T6")
    assert list(made.splits) == ["train", "iid", "ood/single", "ood/length=15", "ood/length=30"]
    assert made.splits["ood/length=30"].unseen == ("length",) and made.spec == plain.spec
    for split in plain.splits:
        ours, theirs = made.sample(split, 50), plain.sample(split, 50)
        assert (ours.inputs["sequence"] == theirs.inputs["sequence"]).all() and (ours.targets == theirs.targets).all()
    for length in (15, 30):
        examples = made.sample(f"ood/length={length}", 500)
        assert examples.inputs["sequence"].shape == (500, length, 36) and set(examples.factors["length"]) == {length}
        assert set(examples.factors["regime"]) == {"single"}
        assert (made.solve(examples) == examples.targets).all()
        # The ceilings are those of the length that is tested.
        alone = task("retrieval/T6", length=length)
        names = [(shortcut.name, shortcut.ceiling) for shortcut in alone.shortcuts("ood/single")]
        assert [(s.name, s.ceiling) for s in made.shortcuts(f"ood/length={length}")] == names
    assert verify(task("retrieval/T1", length=5, test_lengths=(8,)), 1000).passed


def test_occurrences_in_training_and_in_the_test_can_be_crossed() -> None:
    once = task("retrieval/T1", occurrences="single", length=6)
    assert list(once.splits) == ["train", "iid", "ood/free"] and once.validation == "iid"
    for split in ("train", "iid"):
        examples = once.sample(split, 500)
        assert examples.factors["occurrences"].max() == 1 and set(examples.factors["regime"]) == {"single"}
    assert once.sample("ood/free", 500).factors["occurrences"].max() > 1
    assert verify(once, 1000).passed


ERRORS = [
    ("T1", {"test_lengths": (10,)}, "test_lengths = [10] must be different lengths other than length = 10"),
    ("T1", {"test_lengths": (15, 15)}, "test_lengths = [15, 15] must be different"),
    ("T1", {"occurrences": "twice"}, "occurrences = 'twice'"),
    ("T1", {"length": 1}, "length = 1: Input should be greater than or equal to 2"),
    ("T1", {"features": 6}, "features must be at least 7; got 6"),
    ("T2", {"features": 7}, "features must be at least 8; got 7"),
    ("T4", {"features": 13}, "features must be an even number, at least 8; got 13"),
    ("T5", {"features": 8}, "features must be an even number, at least 10; got 8"),
    ("T1", {"preset": "strict"}, "preset = 'strict'"),
    ("T1", {"profile": "clean"}, "unknown option 'profile'"),
    ("T1", {"task_seed": -1}, "task_seed = -1"),
    ("T1", {"density": 1.5}, "density = 1.5"),
    ("T1", {"train_size": 0}, "train_size = 0"),
    ("T4", {"none_share": 0.5}, "none_share belongs to T6 and T7, not to T4"),
    ("T6", {"none_share": 2.0}, "none_share = 2.0"),
    ("T4", {"preset": "paper", "exclusion_balance": "aware"}, "belongs to the preset clean, not to paper"),
    ("T4", {"preset": "released", "distinct_pairs": False}, "are about a query table that is drawn"),
    ("T2", {"disjoint_within_query": False}, "are about a query table that is drawn"),
    ("T1", {"mapping": draw_table("T4", 36, 0)}, "T1 has no query table"),
    ("T5", {"mapping": draw_table("T4", 36, 0)}, "query 0: expected 2 pair(s), got 1"),
    ("T6", {"mapping": draw_table("T4", 36, 0)}, "query 0: orders alternate"),
    ("T4", {"mapping": draw_table("T4", 12, 0)}, "expected 36 queries, one per feature; got 12"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "options", "message"), ERRORS)
def test_invalid_options_are_one_line_errors(kind: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        task(f"retrieval/{kind}", **options)
    assert message in str(caught.value) and str(caught.value).count("\n") == 0


def test_a_mapping_is_part_of_the_identity() -> None:
    table = draw_released_table("T5", 36, 5)
    made = task("retrieval/T5", mapping=table)
    assert made.table == table and made != task("retrieval/T5")
    assert made.identity()["mapping"] == [[list(pair) for pair in pairs] for pairs in table]
    assert task("retrieval/T5", mapping=made.identity()["mapping"]) == made


def test_task_seeds_draw_other_tables_and_presets_their_own() -> None:
    assert make("T5").table != make("T5", task_seed=1).table
    assert make("T5").table == make("T5", preset="paper").table == draw_table("T5", 36, 0)
    assert make("T5", preset="released").table == draw_released_table("T5", 36, 0)
    assert make("T5", distinct_pairs=False).table != make("T5").table
    assert make("T1").table == make("T2").table == ()


def test_streams_are_disjoint() -> None:
    """No sequence of one split or data seed comes again in another."""
    made = make("T6", length=10)
    seen: set[bytes] = set()
    for split in made.splits:
        for seed in (0, 1, "validation", "test"):
            found = {row.tobytes() for row in made.sample(split, 500, data_seed=seed).inputs["sequence"]}
            assert len(found) == 500 and not seen & found
            seen |= found


def test_examples_do_not_depend_on_earlier_requests() -> None:
    one, two = make("T7", preset="released"), make("T7", preset="released")
    two.sample("iid", 10, start=5000)
    assert fingerprint(one.sample("train", 100, start=1000)) == fingerprint(two.sample("train", 1200)[1000:1100])


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("kind", ["T2", "T7"])
def test_verify_passes(kind: str, preset: str) -> None:
    report = verify(task(f"retrieval/{kind}", preset=preset, length=5), 2000)
    assert report.passed, [check for check in report if check.status == "FAIL"]
