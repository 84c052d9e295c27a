"""Interventions on models whose sites are known: 1 on the variable's path, 0 off it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from support.hand_built import WIDTH, LaterToken, TableLookUp, TwoPlaces
from unseen.analysis.interchange import Pairs, make_pairs
from unseen.errors import UsageError
from unseen.randomness import Draws, stream
from unseen.tasks import task
from unseen.tasks.base import Examples, Task
from unseen.training.inside import interchange_table
from unseen.training.interventions import (
    ALL,
    Component,
    Exchange,
    Site,
    ablate,
    cut_edges,
    interchange,
    learn_basis,
    list_sites,
    make_exchange,
    mask_positions,
    random_basis,
    tensors,
)
from unseen.training.stack import Stack


def draws(name: str = "interventions") -> Draws:
    return stream("test", name).block()


@pytest.fixture(scope="module")
def ctl() -> tuple[Task, Examples, Pairs, Stack]:
    chosen = task("ctl/A")
    examples = chosen.sample("train", 60_000)  # most chains are longer
    examples = examples[examples.factors["length"] == 2]
    pairs = make_pairs(chosen, examples, "symbol[1]", 300, draws())
    tables = torch.from_numpy(chosen.actual_world.tables.astype(np.int64))
    stack = Stack([TableLookUp(tables, steps=2) for _ in range(2)])
    return chosen, examples, pairs, stack


def score(case: tuple[Task, Examples, Pairs, Stack], *exchanges: Exchange) -> list[float]:
    chosen, _, pairs, stack = case
    scores = interchange(stack, chosen, pairs, exchanges)
    for members in scores:
        assert members[0] == members[1]  # the members are equal
    return [members[0].accuracy for members in scores]


def test_the_hand_built_model_is_right(ctl: tuple[Task, Examples, Pairs, Stack]) -> None:
    _, examples, _, stack = ctl
    inputs = {
        "token": torch.from_numpy(examples.inputs["token"]).long(),
        "mask": torch.from_numpy(examples.inputs["mask"]),
    }
    answer, _ = stack.predict(inputs)
    assert (answer[0].argmax(-1).numpy() == examples.targets).all()


def test_one_on_the_path_of_the_symbol_and_zero_off_it(ctl: tuple[Task, Examples, Pairs, Stack]) -> None:
    # SOS f2 f1 symbol EOS: f1 is at position 2 and has the symbol after the first call; the answer is read at f2.
    on_path = [("step", 2), ("step", ALL), ("step:1", 1), ("step:1", ALL), ("embed", ALL)]
    off_path = [("step", 0), ("step", 1), ("step", 3), ("step", 4), ("step:1", 0), ("step:1", 2), ("embed", 2)]
    *rest, embed_all = score(ctl, *[Exchange(*where) for where in on_path])
    assert rest == [1.0] * 4
    assert embed_all == 1  # the functions are the same in base and source
    assert score(ctl, *[Exchange(*where) for where in off_path]) == [0.0] * len(off_path)


def test_where_a_model_answers_wrongly_its_own_answers_move_on_the_path_and_not_off_it(
    ctl: tuple[Task, Examples, Pairs, Stack],
) -> None:
    chosen, _, pairs, _ = ctl
    # Its functions are others than the task's, so that it passes on the symbol as it should and nearly always errs.
    tables = torch.from_numpy(chosen.actual_world.tables.astype(np.int64)).roll(1, 0)
    stack = Stack([TableLookUp(tables, steps=2)])
    on_path = [Exchange("step", 2), Exchange("step", ALL), Exchange("step:1", 1), Exchange("embed")]
    off_path = [Exchange("step", 1), Exchange("step", 3), Exchange("step:1", 2)]
    scores = [score for (score,) in interchange(stack, chosen, pairs, [*on_path, *off_path])]
    assert [score.moved for score in scores] == [1.0] * 4 + [0.0] * 3
    assert max(max(score.accuracy, score.unchanged) for score in scores) < 0.3  # which cannot tell one from the other
    # A model that computes the symbol and answers without it: all its answers are one, and none moves.
    silent = TableLookUp(tables, steps=2)
    torch.nn.init.zeros_(silent.scale)
    scores = [score for (score,) in interchange(Stack([silent]), chosen, pairs, [*on_path, *off_path])]
    assert {score.moved for score in scores} == {0.0}


def test_positions_may_be_those_of_a_variable(ctl: tuple[Task, Examples, Pairs, Stack]) -> None:
    chosen, _, pairs, _ = ctl
    tokens = chosen.variables(pairs.bases)["token[1]"].values
    assert score(ctl, Exchange("step", tokens)) == [1.0]


def test_subspaces(ctl: tuple[Task, Examples, Pairs, Stack]) -> None:
    chosen, _, pairs, stack = ctl
    axes = stack.skeleton.embed.axes.expand(2, WIDTH, 8)
    rest = torch.linalg.qr(torch.cat([stack.skeleton.embed.axes, torch.randn(WIDTH, 24)], 1))[0][:, 8:].expand(
        2, WIDTH, 24
    )
    assert score(ctl, Exchange("step", 2, axes), Exchange("step", 2, rest)) == [1.0, 0.0]
    train, test = pairs[:200], pairs[200:]
    learned = learn_basis(stack, chosen, train, Site("step", (5, WIDTH)), 2, 8, draws("learn"), steps=60)
    random = random_basis(stack, WIDTH, 8, draws("random"))
    found, control = interchange(stack, chosen, test, [Exchange("step", 2, learned), Exchange("step", 2, random)])
    assert min(member.accuracy for member in found) > 0.9
    assert max(member.accuracy for member in control) < 0.3


def test_nothing_changes_a_bit_if_it_is_exchanged_with_itself(ctl: tuple[Task, Examples, Pairs, Stack]) -> None:
    chosen, _, pairs, stack = ctl
    same = Pairs(pairs.bases, pairs.bases, pairs.expected, matched=True)
    basis = random_basis(stack, WIDTH, 4, draws())
    everywhere = [Exchange(site, p) for site in ("embed", "step", "step:1") for p in (0, 2, ALL)]
    exchanges = [*everywhere, Exchange("step", 2, basis)]
    for members in interchange(stack, chosen, same, exchanges):
        assert members[0].accuracy == 0 and members[0].unchanged == 1
    inputs = tensors(stack, chosen, pairs.bases)
    plain, own = stack.predict(inputs, ["embed", "step", "step:1"])
    for each in exchanges:
        answer, _ = stack.predict(inputs, edits={each.site: make_exchange(each, own[each.site])})
        assert torch.equal(answer, plain), each.site


def test_exchanging_everything_gives_the_answers_of_the_source(ctl: tuple[Task, Examples, Pairs, Stack]) -> None:
    chosen, _, pairs, stack = ctl
    sources = tensors(stack, chosen, pairs.sources)
    expected, activations = stack.predict(sources, ["step:1"])
    edit = make_exchange(Exchange("step:1"), activations["step:1"])
    answer, _ = stack.predict(tensors(stack, chosen, pairs.bases), edits={"step:1": edit})
    assert torch.equal(answer, expected)
    assert (expected[0].argmax(-1).numpy() == pairs.sources.targets).all()
    assert (pairs.sources.targets != pairs.bases.targets).all()


def order_models() -> tuple[Task, Examples, Pairs, Stack, Stack]:
    chosen = task("retrieval/T6", length=6, features=10)
    first, second = torch.zeros(2, 10, 10)
    for query, ((a, b),) in enumerate(chosen.table):
        first[query, a] = second[query, b] = 1
    examples = chosen.sample("ood/single", 3000, data_seed="test")
    pairs = make_pairs(chosen, examples, "first_position[0]", 300, draws())
    later = Stack([LaterToken(first, second) for _ in range(2)])
    return chosen, examples, pairs, later, Stack([TwoPlaces(first, second) for _ in range(2)])


def test_order_in_the_later_token_or_in_two_places() -> None:
    chosen, examples, pairs, later, places = order_models()
    variables = chosen.variables(pairs.bases)
    first = variables["first_position[0]"].values
    second = variables["second_position[0]"].values
    case = (chosen, examples, pairs, later)
    assert score(case, Exchange("carry", second), Exchange("carry", first), Exchange("carry")) == [1.0, 0.0, 1.0]
    case = (chosen, examples, pairs, places)
    assert score(case, Exchange("first"), Exchange("second")) == [1.0, 0.0]
    learned = learn_basis(later, chosen, pairs[:200], Site("carry", (6, 20)), second[:200], 10, draws("b"), steps=80)
    random = random_basis(later, 20, 10, draws("c"))
    found, control = interchange(
        later,
        chosen,
        pairs[200:],
        [Exchange("carry", second[200:], learned), Exchange("carry", second[200:], random)],
    )
    assert found[0].accuracy > 0.9 > control[0].accuracy + 0.2


def test_ablation(ctl: tuple[Task, Examples, Pairs, Stack]) -> None:
    chosen, examples, _, stack = ctl
    some = examples[:300]
    parts = [
        Component("step", position=2),
        Component("step", position=1),
        Component("step"),
        Component("embed", unit=0),
    ]
    for how in ("zero", "mean", "resample"):
        right = {}
        for part, answers in ablate(stack, chosen, some, parts, how, draws()):
            assert answers.shape[:2] == (2, 300)
            right[part] = (answers[0].argmax(-1) == some.targets).mean()
        assert right[parts[0]] < 0.4 and right[parts[2]] < 0.4, how
        assert right[parts[1]] == 1.0, how  # nothing is at this position yet


def test_cut_edges_add_up_to_one_again() -> None:
    weights = torch.tensor([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]])
    where = torch.tensor([[True, False, False], [True, False, False]])
    assert cut_edges(weights, where).tolist() == [[0.0, 0.5, 0.5], [0.0, 0.0, 0.0]]


def test_masks_and_sites(ctl: tuple[Task, Examples, Pairs, Stack]) -> None:
    assert mask_positions((2, 3), np.array([1, -1])).tolist() == [[False, True, False], [False, False, False]]
    assert mask_positions((1, 2, 1), ALL).tolist() == [[[True], [True]]]
    chosen, examples, _, stack = ctl
    assert [(site.name, site.tokens) for site in list_sites(stack, chosen, examples)] == [
        ("embed", examples.inputs["token"].shape[1]),
        ("step", examples.inputs["token"].shape[1]),
        ("step:1", examples.inputs["token"].shape[1]),
    ]
    with pytest.raises(UsageError, match="Did you mean 'step'"):
        list_sites(stack, chosen, examples, ["stp"])
    with pytest.raises(UsageError, match="1 to 32 dimensions"):
        learn_basis(stack, chosen, None, Site("step", (5, WIDTH)), 2, 40, draws())  # type: ignore[arg-type]


def test_a_feature_that_stands_elsewhere_in_the_source_moves() -> None:
    # Read off the tokens themselves, exchanging where a stands in the base and in the source gives the source's order.
    chosen, _, pairs, _, places = order_models()
    variables, of_sources = chosen.variables(pairs.bases), chosen.variables(pairs.sources)
    base, source = variables["first_position[0]"].values, of_sources["first_position[0]"].values
    assert (base != source).all()
    rows = np.arange(len(pairs))
    for columns, expected in (([base], 0.5), ([base, source], 1.0)):
        sequence = pairs.bases.inputs["sequence"].copy()
        for column in columns:
            sequence[rows, column] = pairs.sources.inputs["sequence"][rows, column]
        inputs = {**pairs.bases.inputs, "sequence": sequence}
        answers = chosen.solve(Examples(inputs, pairs.bases.targets, pairs.bases.factors))
        assert (answers == pairs.expected).mean() == pytest.approx(expected, abs=0.1)
    both = np.column_stack([base, source])
    assert score((chosen, pairs.bases, pairs, places), Exchange("first", both)) == [1.0]
    table = interchange_table(places, chosen, "first_position[0]", "ood/single", 300, ["first"], ["first_position[0]"])
    assert (table["accuracy"] == 1.0).all() and (table["low"] > 0.98).all() and (table["high"] == 1.0).all()


def test_pairs_without_the_position_do_not_count(ctl: tuple[Task, Examples, Pairs, Stack]) -> None:
    chosen, _, pairs, stack = ctl
    token = np.where(np.arange(len(pairs)) < 100, 2, -1)
    ((score_of_some, _),) = interchange(stack, chosen, pairs, [Exchange("step", token)])
    assert (score_of_some.accuracy, score_of_some.n) == (1.0, 100)
