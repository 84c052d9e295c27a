"""Tasks as torch datasets: the same examples whatever the workers, and each of them once."""

from __future__ import annotations

import pickle
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, RandomSampler

from unseen.errors import UsageError
from unseen.loaders import CHUNK_BLOCKS, IterableDataset, MapDataset
from unseen.tasks import task

ROWS = CHUNK_BLOCKS * 1024
SMALL: dict[str, dict[str, Any]] = {
    "retrieval/T6": {"length": 4},
    "ctl/A": {"symbols": 4, "functions": 8, "train_size": 600, "iid_size": 50, "ood_size": 50, "max_length": 4},
    "gcog/distractor": {"coding": "embedding", "train_size": 700},
    "rules/rnn": {"rules": 2, "dimension": 3, "setting": "regression"},
}


def joined(items: Any) -> dict[str, Tensor]:
    """Items or batches one after the other."""
    found = list(items)
    return {name: torch.cat([item[name] for item in found]) for name in found[0]}


def assert_equal(found: dict[str, Tensor], wanted: dict[str, Tensor]) -> None:
    assert found.keys() == wanted.keys()
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)


def as_sampled(name: str, split: str, n: int, start: int = 0, data_seed: Any = 0, **options: Any) -> dict[str, Tensor]:
    """The examples once more, as plain tensors of the kinds that models take."""
    found = task(name, **options)
    drawn = found.sample(split, n, start, data_seed)
    kinds = {"real": torch.float32, "bits": torch.float32, "category": torch.int64, "mask": torch.bool}
    wanted = {
        field.name: torch.from_numpy(drawn.inputs[field.name]).to(kinds[field.kind]) for field in found.spec.inputs
    }
    answer = torch.int64 if found.spec.target.kind == "category" else torch.float32
    return {**wanted, "target": torch.from_numpy(drawn.targets).to(answer)}


@pytest.mark.parametrize("name", SMALL)
def test_items_are_the_examples(name: str) -> None:
    found = MapDataset(task(name, **SMALL[name]), "train", 100, 3)
    wanted = as_sampled(name, "train", 100, data_seed=3, **SMALL[name])
    assert len(found) == 100
    for i in (0, 17, 99, -1):
        assert_equal(found[i], {key: values[i] for key, values in wanted.items()})
    with pytest.raises(IndexError):
        found[100]
    with pytest.raises(IndexError):
        found[-101]
    iterated = IterableDataset(task(name, **SMALL[name]), "train", 100, 3)
    assert_equal(joined(DataLoader(iterated, 30)), wanted)


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_a_map_dataset_is_the_same_with_any_number_of_workers(workers: int) -> None:
    n = ROWS + 300
    found = MapDataset("rules/mlp", "iid", n)
    wanted = as_sampled("rules/mlp", "iid", n)
    assert_equal(joined(DataLoader(found, 512, num_workers=workers)), wanted)
    order = list(RandomSampler(found, generator=torch.Generator().manual_seed(1)))
    shuffled = DataLoader(found, 512, num_workers=workers, sampler=order)
    assert_equal(joined(shuffled), {name: values[order] for name, values in wanted.items()})


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("start", [0, ROWS - 7])
def test_workers_share_an_iterable_dataset_out(workers: int, start: int) -> None:
    n = 2 * ROWS + 300
    found = joined(DataLoader(IterableDataset("rules/mlp", "iid", n, start=start), 1000, num_workers=workers))
    wanted = as_sampled("rules/mlp", "iid", n, start)
    order, wanted_order = (np.lexsort(one["x"].numpy().T) for one in (found, wanted))
    assert len(torch.unique(wanted["x"], dim=0)) == n  # no example could stand for another
    assert_equal(
        {name: values[order] for name, values in found.items()},
        {name: values[wanted_order] for name, values in wanted.items()},
    )
    if workers < 2:
        assert_equal(found, wanted)


@pytest.mark.parametrize("workers", [0, 2])
def test_an_endless_split_does_not_end(workers: int) -> None:
    loader = DataLoader(IterableDataset("rules/mlp"), 1024, num_workers=workers)
    found = joined(islice(loader, 10))
    several = as_sampled("rules/mlp", "train", 4 * ROWS)
    known = {row.tobytes() for row in several["x"].numpy()}
    rows = [row.tobytes() for row in found["x"].numpy()]
    assert len(rows) == 10 * 1024 == len(set(rows)) and set(rows) <= known


def test_a_finite_split_is_gone_through_once() -> None:
    found = IterableDataset(task("retrieval/T1", evaluation_size=50), "iid")
    assert sum(1 for _ in found) == 50 == sum(1 for _ in found)
    assert len(MapDataset(task("retrieval/T1", evaluation_size=50), "iid")) == 50


def test_neither_torch_nor_numpy_seeds_matter() -> None:
    torch.manual_seed(1)
    first = MapDataset("rules/mlp", n=5)[4]
    torch.manual_seed(2)
    assert_equal(MapDataset("rules/mlp", n=5)[4], first)
    state = torch.random.get_rng_state()
    next(iter(IterableDataset("rules/mlp")))
    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_dataset_travels_light() -> None:
    found = MapDataset("retrieval/T6", n=2000)
    first = found[0]
    sent = pickle.dumps(found)
    assert len(sent) < 10_000
    assert_equal(pickle.loads(sent)[0], first)
    assert_equal(next(iter(pickle.loads(pickle.dumps(IterableDataset("retrieval/T6", n=5))))), first)


def test_items_feed_a_model() -> None:
    import unseen

    found = task("retrieval/T6", length=4)
    model = unseen.build(unseen.model("lstm"), found.spec)
    batch = next(iter(DataLoader(MapDataset(found, n=8), 8)))
    target = batch.pop("target")
    assert model(batch).shape == target.shape == (8, 1)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: MapDataset("rules/mlp"), "is endless: give n, or take an IterableDataset"),
        (lambda: MapDataset("rules/mlp", "idi", 5), "Did you mean 'iid'"),
        (lambda: MapDataset("retrieval/T1", "iid", 10_001), "has 10000 examples"),
        (lambda: MapDataset("rules/mlp", n=-1), "must not be negative"),
        (lambda: IterableDataset("rules/mlp", data_seed=-1), "data seed -1"),
        (lambda: IterableDataset("rules/mlp", start=-1), "start = -1"),
        (lambda: IterableDataset("rules/mlp", start=5, n=-1), "n = -1"),
        (lambda: IterableDataset("retrieval/T1", "iid", 10, start=9_995), "has 10000 examples"),
    ],
)
def test_wrong_requests(make: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        make()
