"""Pools of questions: the same questions again and again, with fresh grids, and nothing else changed."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.gcog_cases import (
    EVERY_OPERATOR,
    PAPER,
    PRESENCE_FREQUENCIES,
    SCHEMAS,
    check_records,
    even,
    fair,
    list_queries,
    make_plan,
    questions,
)
from unseen.config import digest
from unseen.errors import UsageError
from unseen.randomness import stream
from unseen.tasks import task
from unseen.tasks.gcog.audit import measure_memorization
from unseen.tasks.gcog.encode import CODINGS
from unseen.tasks.gcog.generate_clean import ask_clean_questions, draw_clean_questions
from unseen.tasks.gcog.plan import QuestionPlan, QuestionRecords
from unseen.tasks.gcog.pools import QuestionPool, make_pool
from unseen.tasks.gcog.schema import FEATURES, PresetName, Schema
from unseen.tasks.gcog.solver import solve
from unseen.tasks.gcog.tree import GridObject, Tree, get_query
from unseen.tasks.verify import fingerprint, verify
from unseen.tasks.verify.determinism import find_batch_dependence
from unseen.training.batches import TrainingData


def pool_of(*plans: QuestionPlan, size: int = 1, preset: PresetName = "clean", seed: object = 0) -> QuestionPool:
    return make_pool(plans, preset, size, stream("test pool", seed))


def draw_pool_records(pool: QuestionPool, count: int = 1024, seed: object = 0) -> QuestionRecords:
    """Records of a pool with one plan."""
    ((_, rows, records),) = pool.draw_records(count, stream("test", seed).block())
    assert (rows == np.arange(count)).all()
    return records


def read(
    plan: QuestionPlan, records: QuestionRecords
) -> Iterator[tuple[int, Tree, list[GridObject], list[GridObject]]]:
    """Targets, trees, objects that some operator is about (clean), and distractors."""
    for target, (tree, grid_objects) in zip(records.target.tolist(), questions(plan, records), strict=True):
        selected = [
            t
            for t in grid_objects
            if any(
                _means(plan.schema, query.operator, named, t) for query in list_queries(tree) for named in query.objects
            )
        ]
        yield target, tree, selected, [t for t in grid_objects if t not in selected]


def _means(schema: Schema, operator: str, named: tuple[str | None, ...], grid_object: GridObject) -> bool:
    key = schema.operators[operator].key
    return grid_object.values == named if key is None else grid_object.values[key] == named[key]


@settings(derandomize=True, deadline=None, max_examples=30)
@given(
    name=st.sampled_from(list(SCHEMAS)),
    depth=st.sampled_from([1, 3, 5]),
    two=st.sampled_from([0.0, 0.5, 1.0]),
    low=st.integers(0, 6),
    more=st.integers(0, 6),
    constant=st.booleans(),
    size=st.sampled_from([1, 5, 1500]),
    seed=st.integers(0, 10**9),
)
def test_clean_examples_of_pools(
    name: str, depth: int, two: float, low: int, more: int, constant: bool, size: int, seed: int
) -> None:
    plan = make_plan(SCHEMAS[name], depth, (low, low + more), two_objects=two, constant_count=constant)
    check_records(plan, draw_pool_records(pool_of(plan, size=size, seed=seed), 96), sound=True)


@settings(derandomize=True, deadline=None, max_examples=15)
@given(
    depth=st.sampled_from([1, 3, 5]),
    low=st.integers(0, 3),
    more=st.integers(0, 40),
    two=st.sampled_from([0.0, 0.5]),
    size=st.sampled_from([1, 5, 1500]),
    seed=st.integers(0, 10**9),
)
def test_released_examples_of_pools(depth: int, low: int, more: int, two: float, size: int, seed: int) -> None:
    plan = make_plan(PAPER, depth, (low, low + more), two_objects=two)
    check_records(plan, draw_pool_records(pool_of(plan, size=size, preset="released", seed=seed), 96), sound=False)


SMALL = Schema(
    (("shape", tuple("abcd")), ("color", ("red", "blue", "green"))), enabled=("Exist", "GetShape", "GetColor")
)
TIGHT = {
    "a grid that may be full": make_plan(Schema(FEATURES, 3, 4), 3, (0, 9)),
    "a grid that is full": make_plan(Schema(FEATURES, 3, 4), 3, (9, 9), constant_count=True),
    "few objects": make_plan(SMALL, 3, (0, 5)),
    "few objects, made up for": make_plan(SMALL, 3, (2, 3), constant_count=True),
    "one odd product": make_plan(Schema(columns=3, rows=3, enabled=("ProductOdd", "ProductEven")), 3, (0, 2)),
    "numbers without a place": make_plan(Schema(columns=2, rows=2, enabled=("MultiplyEqual", "Exist")), 3, (0, 1)),
    "deep": make_plan(PAPER, 7, (45, 45)),
}


@pytest.mark.parametrize("name", TIGHT)
def test_every_question_of_a_pool_has_room_for_all_its_grids(name: str) -> None:
    plan = TIGHT[name]
    if plan.schema == SMALL:
        # Twice GetShape leaves 4 objects: enough for fewer distractors or, in the second case, for objects that are
        # there, but not for all grids.
        twice = (draw_clean_questions(plan, 1024, stream("room").block()).operator[:, 1:] == 4).all(axis=1)
        assert not twice.any()
    check_records(plan, draw_pool_records(pool_of(plan, size=60), 300), sound=True)


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("preset", ["clean", "released"])
def test_tasks_with_a_pool(preset: str, coding: str, tmp_path: Path) -> None:
    gcog_task = task("gcog/productive", preset=preset, coding=coding, train_depths="1,3,5", pool=40)
    examples = gcog_task.sample("train", 250, 7)
    np.testing.assert_array_equal(gcog_task.solve(examples), examples.targets)
    assert gcog_task.size("train") is None and set(examples.factors["depth"].tolist()) == {1, 3, 5}
    file = tmp_path / "examples.jsonl"
    file.write_text("".join(json.dumps(gcog_task.record(examples, i)) + "\n" for i in range(60)))
    judged = gcog_task.judge(file)
    assert judged.examples == 60 and not judged.mismatches
    assert find_batch_dependence(gcog_task, "train") == []


def test_codings_read_the_same_pool() -> None:
    tokens = [
        gcog_task.tokens(gcog_task.sample("train", 300))
        for gcog_task in (task("gcog/productive", pool=30, coding=coding) for coding in CODINGS)
    ]
    assert all((each.rule == tokens[0].rule).all() and (each.grid == tokens[0].grid).all() for each in tokens)


def test_examples_depend_on_task_seed_and_number_alone() -> None:
    gcog_task = task("gcog/productive", pool=3000)
    before = fingerprint(gcog_task.sample("train", 2000, 500))
    make_pool.cache_clear()
    assert fingerprint(pickle.loads(pickle.dumps(gcog_task)).sample("train", 2000, 500)) == before
    batch = TrainingData(gcog_task, 0, 100, "shuffled").batch(3)
    np.testing.assert_array_equal(batch.inputs["rule"], gcog_task.sample("train", 100, 300).inputs["rule"])
    assert len(gcog_task.sample("train", 0)) == 0


def test_a_larger_pool_begins_with_the_smaller_one() -> None:
    plans = make_plan(), make_plan(depth=3)
    for preset in ("clean", "released"):
        small, large = (pool_of(*plans, size=size, preset=preset) for size in (1500, 5000))
        np.testing.assert_array_equal(small.plan_of[:1500], large.plan_of[:1500])
        np.testing.assert_array_equal(small.index[:1500], large.index[:1500])
        assert fair(int((large.plan_of[:5000] == 1).sum()), 5000)
        for selected, others in zip(small.questions, large.questions, strict=True):
            for field in fields(selected):
                first = getattr(selected, field.name)
                np.testing.assert_array_equal(first, getattr(others, field.name)[: len(first)])


@pytest.mark.parametrize("preset", ["clean", "released"])
def test_there_are_as_many_questions_as_asked_for(preset: str) -> None:
    for size in (1, 20):
        gcog_task = task("gcog/productive", preset=preset, train_depths="3", pool=size)
        rules = [
            {row.tobytes() for row in gcog_task.sample("train", 2000, data_seed=seed).inputs["rule"]}
            for seed in (0, 1, "validation", "test")
        ]
        assert [len(found) for found in rules] == [size] * 4
        assert len(set.union(*rules)) == 4 * size  # every data seed has a pool of its own
    mixed = task("gcog/productive", preset=preset, pool=1).sample("train", 300)
    assert len(np.unique(mixed.inputs["rule"], axis=0)) == 1


def test_questions_of_a_pool_are_equally_frequent() -> None:
    rules = task("gcog/productive", train_depths="3", pool=20).sample("train", 4000).inputs["rule"]
    assert even(np.unique(rules, axis=0, return_counts=True)[1])


@pytest.mark.parametrize("schema", [PAPER, EVERY_OPERATOR], ids=["paper", "every operator"])
@pytest.mark.parametrize("depth", [1, 3, 5])
def test_what_a_question_is_about_stays_where_it_is(schema: Schema, depth: int) -> None:
    plan = make_plan(schema, depth, (20, 30), two_objects=0.5)
    where: dict[tuple[Tree, Any], set[GridObject]] = {}
    distractors: dict[Tree, list[GridObject]] = {}
    for _, tree, selected, others in read(plan, draw_pool_records(pool_of(plan, size=12), 500)):
        for grid_object in selected:
            where.setdefault((tree, grid_object.values), set()).add(grid_object)
        distractors.setdefault(tree, []).extend(others)
    assert len(distractors) == 12 and all(len(found) == 1 for found in where.values())
    assert all(len(set(found)) > len(found) / 2 for found in distractors.values())


LEGAL = {"SumEven": 259, "GetColor": 25 * 10, "GetShape": 26 * 9, "Exist": 259}


@pytest.mark.parametrize("name", LEGAL)
def test_distractors_are_uniform_whatever_the_question(name: str) -> None:
    """One question, asked 8 000 times. A distractor may stand where an absent object would."""
    plan = make_plan(groups=(((name,),),))
    counts, objects = Counter[int](), Counter[Any]()
    cells: dict[bool, Counter[tuple[int, int]]] = {True: Counter(), False: Counter()}
    where = set()
    for seed in range(8):
        for _, _, selected, others in read(plan, draw_pool_records(pool_of(plan, seed=name), 1024, seed)):
            counts[len(others)] += 1
            objects.update(t.values for t in others)
            cells[bool(selected)].update((t.x, t.y) for t in others)
            where |= {(t.x, t.y) for t in selected}
    assert sorted(counts) == [1, 2, 3, 4, 5] and even(np.array(list(counts.values())))
    assert len(objects) == LEGAL[name] and even(np.array(list(objects.values())))
    assert len(cells[True]) == 99 and len(where) == 1 and not where & set(cells[True])
    assert len(cells[False]) == (100 if name == "Exist" else 0)
    assert all(even(np.array(list(found.values()))) for found in cells.values() if found)


@pytest.mark.parametrize("constant", [False, True])
def test_whether_the_object_of_an_exist_is_there_is_drawn_anew(constant: bool) -> None:
    plan = make_plan(depth=3, groups=((("Exist",), ("Exist",), ("GetColor",)),), constant_count=constant)
    records = draw_pool_records(pool_of(plan), 4000)
    assert fair(int((records.leaf == 1).sum()), 4000)
    reached = records.target[records.leaf == 1]
    assert fair(int((reached == 0).sum()), len(reached))
    assert len(set(records.target[records.leaf == 2].tolist())) == 1
    objects = records.grid.any(axis=2).sum(axis=1)
    assert (set(objects.tolist()) == set(range(4, 9))) == constant


def test_presence_of_two_objects_is_drawn_anew() -> None:
    for name in ("ExistAnd", "ExistOr", "ExistXor"):
        plan = make_plan(Schema(enabled=(name,)))
        seen = {True: np.zeros(4, np.int64), False: np.zeros(4, np.int64)}
        for target, tree, selected, _ in read(plan, draw_pool_records(pool_of(plan), 4000)):
            first, second = (any(t.values == o for t in selected) for o in get_query(tree).objects)
            seen[target == 0][first + 2 * second] += 1
        assert fair(int(seen[True].sum()), 4000)
        for truth, found in seen.items():
            for hits, share in zip(found.tolist(), PRESENCE_FREQUENCIES[name, truth], strict=True):
                assert hits == 0 if share == 0 else fair(hits, int(found.sum()), share)


@pytest.mark.parametrize("depth", [1, 3])
def test_booleans_and_answers_are_balanced_over_a_large_pool(depth: int) -> None:
    plan = make_plan(depth=depth)
    records = ask_clean_questions(
        plan, draw_clean_questions(plan, 12_000, stream("balance").block()), stream("once").block()
    )
    counts = np.bincount(records.target, minlength=138)
    for start, end in ((0, 2), (2, 102), (102, 128), (128, 138)):
        assert even(counts[start:end])
    true, trials = Counter[tuple[int, str]](), Counter[tuple[int, str]]()
    for tree, grid_objects in questions(plan, records):
        for place, query in enumerate(list_queries(tree)):
            if PAPER.operators[query.operator].boolean:
                trials[place, query.operator] += 1
                true[place, query.operator] += solve(PAPER, query, grid_objects).answer == 0
    assert len(trials) == 5 * plan.nodes
    assert all(fair(true[case], many) for case, many in trials.items())


@pytest.mark.parametrize(("depth", "published"), [(1, 0.94), (3, 0.88), (5, 0.85), (7, 0.74)])
def test_the_commonest_answer_to_a_released_question(depth: int, published: float) -> None:
    """500 questions, each asked some 5 or some 100 times: the share falls with that number, which is not published."""
    plan = make_plan(depth=depth, distractors=(0, 5), two_objects=0.5 if depth > 1 else 0.0)
    pool, table, shares = pool_of(plan, size=500, preset="released"), np.zeros((500, 138), np.int64), []
    for seed in range(50):
        chosen = stream("test", seed).block().integers(500, 1024)  # what `ask` draws first
        np.add.at(table, (chosen, draw_pool_records(pool, 1024, seed).target), 1)
        many = table.sum(axis=1)
        shares.append((table.max(axis=1)[many > 0] / many[many > 0]).mean())
    assert shares[-1] - 0.02 < published < shares[2] + 0.02


def test_only_training_has_a_pool() -> None:
    for name in ("gcog/productive", "gcog/systematic-operators"):
        for preset in ("clean", "released"):
            fresh, pooled = task(name, preset=preset), task(name, preset=preset, pool=50)
            for split in fresh.splits:
                same = fingerprint(fresh.sample(split, 100)) == fingerprint(pooled.sample(split, 100))
                assert same == (split != "train")
            assert fresh.options() == {"name": name} | ({} if preset == "clean" else {"preset": preset})
            assert digest(fresh.identity()) != digest(pooled.identity())


def test_questions_are_known_by_heart_only_from_a_pool() -> None:
    def figure(**options: Any) -> float:
        gcog_task = task("gcog/productive", **options)
        return measure_memorization(gcog_task.domain, gcog_task.tokens, gcog_task.sample("train", 5000))

    assert abs(figure()) < 0.02
    assert figure(pool=100) > 0.4
    assert abs(figure(pool=100_000)) < 0.02


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("gcog/distractor", {"pool": 3, "ood_distractors": ()}),
        ("gcog/systematic-trees", {"pool": 1000}),
        ("gcog/systematic-operators", {"pool": 200, "preset": "released", "distractors": (1, 5)}),
        ("gcog/systematic-trees", {"pool": 300, "preset": "released"}),  # no distractors: whole examples come again
    ],
    ids=range(4),
)
def test_verify_knows_about_pools(name: str, options: dict[str, Any]) -> None:
    report = verify(task(name, **options), n=600)
    assert report.passed, [check for check in report if check.status == "FAIL"]
    assert [c.split for c in report if (c.name, c.status) == ("artefact pool", "known")] == ["train"]


def test_verify_finds_a_pool_nobody_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    from unseen.tasks.gcog import Distractor

    monkeypatch.setattr(
        Distractor,
        "sample",
        lambda self, split, n, start=0, data_seed=0: super(Distractor, self.model_copy(update={"pool": 100})).sample(
            "train", n, start, data_seed
        ),
    )
    report = verify(task("gcog/distractor", ood_distractors=()), n=600)
    assert {c.split for c in report if (c.name, c.status) == ("artefact pool", "FAIL")} >= {"train", "iid"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"pool": 5, "train_size": 5},
            "pool, train_size: choose a pool of questions or a finite training set, not both",
        ),
        ({"pool": 0}, "pool = 0"),
    ],
)
def test_wrong_pools(options: dict[str, int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        task("gcog/productive", **options)
    with pytest.raises(UsageError, match="Did you mean 'train'"):
        task("gcog/productive", pool=5).sample("trian", 1)
