"""Coverage equals brute force over plain Python sets, and names what the definition of a split holds out."""

from __future__ import annotations

import itertools

import pytest

from unseen.tasks import task
from unseen.tasks.base import Examples, Task
from unseen.tasks.verify import verify
from unseen.tasks.verify.coverage import Lack, describe_coverage, read_coverage, summarize_coverage


def lacks(chosen: Task, split: str, training: int, n: int = 300) -> dict[str, Lack]:
    examples = chosen.sample(split, n)
    return {lack.name: lack for lack in read_coverage(chosen, training).find_lacking(chosen, examples)}


def pairs_of(examples: Examples, name: str) -> list[set[tuple[int, int]]]:
    """The neighbouring values in a factor of every example."""
    rows = [[value for value in row if value >= 0] for row in examples.factors[name].tolist()]
    return [set(itertools.pairwise(row)) for row in rows]


def test_pairs_of_functions_equal_brute_force() -> None:
    chosen = task("ctl/S", train_size=30_000)
    for split in ("ood/transition", "iid"):
        by_name = lacks(chosen, split, 30_000)
        for name in ("functions", "groups"):
            known = set().union(*pairs_of(chosen.sample("train", 30_000), name))
            of_examples = pairs_of(chosen.sample(split, 300), name)
            having = [pairs for pairs in of_examples if pairs]
            expected = sum(bool(pairs - known) for pairs in having) / len(having)
            lack = by_name.get(f"{name} × next")
            assert (lack.share if lack else 0.0) == pytest.approx(expected)
            assert expected == pytest.approx(float(split == "ood/transition"), abs=0.05)


def test_held_out_operators_and_objects_are_named_first() -> None:
    chosen = task("gcog/systematic-operators")
    lacking = read_coverage(chosen, 10_000).find_lacking(chosen, chosen.sample("ood/operators", 200))
    assert (lacking[0].kind, lacking[0].name, lacking[0].share) == ("declared", "operator × object", 1.0)
    train = chosen.sample("train", 10_000)
    known = set(map(tuple, train.factors["object"].tolist()))
    objects = map(tuple, chosen.sample("ood/operators", 200).factors["object"].tolist())
    share = sum(pair not in known for pair in objects) / 200
    assert {lack.name: lack.share for lack in lacking}.get("object", 0.0) == pytest.approx(share)


def test_training_lacks_nothing_of_itself() -> None:
    for name in ("ctl/A", "gcog/systematic-trees", "retrieval/T6", "rules/mha"):
        chosen = task(name)
        coverage = read_coverage(chosen, 3_000)
        assert coverage.find_lacking(chosen, chosen.sample("train", 500)) == []
        assert describe_coverage(coverage, []).startswith("the first 3,000 training examples have every value")


def test_a_larger_training_set_lacks_less() -> None:
    # `unseen verify -n 1000` compared with 1,000 training examples, and called the rest lacking.
    chosen = task("retrieval/T6", length=5, features=8)
    assert sum(lack.share for lack in lacks(chosen, "iid", 300).values()) > 0.5
    assert sum(lack.share for lack in lacks(chosen, "iid", 60_000).values()) < 0.1


def test_verify_compares_with_the_whole_training_set_whatever_n() -> None:
    chosen = task("retrieval/T6", length=5, features=8, train_size=20_000)
    report = verify(chosen, n=200)
    detail = next(check.detail for check in report if (check.name, check.split) == ("coverage", "iid"))
    assert "the 20,000 training examples" in detail
    assert set(report.lacking) == set(report.familiarity) == set(chosen.splits) - {"train"}
    assert "regime (100.0% of ood/single)" in summarize_coverage(report.lacking)
