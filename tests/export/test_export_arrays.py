"""NPZ, Parquet and Hugging Face datasets: every column comes back as it was drawn."""

from __future__ import annotations

import json
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.exported import TASKS, assert_same, expected, made, tree
from unseen.errors import UsageError
from unseen.export import splits as chunking
from unseen.export.formats import ArraySpool, arrow_array
from unseen.export.write import write_export
from unseen.randomness import Draws
from unseen.spec import Field, Spec, Target
from unseen.tasks import task
from unseen.tasks.base import Array, Examples, Split, Task

N = 30


def read_npz(path: Path) -> dict[str, Array]:
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def read_parquet(path: Path) -> dict[str, Array]:
    """As docs/export.md shows it: flat values, and shapes from the metadata."""
    table = pq.read_table(path)
    forms = json.loads(table.schema.metadata[b"unseen"])["columns"]
    found = {}
    for name in table.column_names:
        form, values = forms[name], table[name].combine_chunks()
        for _ in form["shape"]:
            values = values.flatten()
        found[name] = values.to_numpy(zero_copy_only=False).reshape(len(table), *form["shape"])
        found[name] = found[name].astype(str) if form["dtype"] == "text" else found[name]
    return found


READ = {"npz": read_npz, "parquet": read_parquet}


@pytest.mark.parametrize("format", READ)
@pytest.mark.parametrize("name", TASKS)
def test_round_trip(name: str, format: str, tmp_path: Path) -> None:
    found = made(name)
    done = write_export(found, tmp_path / "out", format, n=N, data_seed="test")
    assert {part.split.name for part in done.parts} == set(found.splits)
    for part, file in zip(done.parts, done.files, strict=True):
        wanted = found.sample(part.split.name, part.examples, 0, "test")
        assert_same(READ[format](file), expected(wanted))


@pytest.mark.parametrize("name", TASKS)
def test_hugging_face_round_trip_offline(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    import datasets

    def no_network(*arguments: Any) -> None:
        raise AssertionError("the network was asked for")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    found = made(name)
    done = write_export(found, tmp_path / "out", "hf", n=N)
    loaded = datasets.load_from_disk(str(tmp_path / "out"))
    assert list(loaded) == [part.file_name for part in done.parts]
    assert len({str(one.features) for one in loaded.values()}) == 1  # as a hub would have it
    for part in done.parts:
        wanted = found.sample(part.split.name, part.examples)
        split = loaded[part.file_name]
        assert_same(dict(split.with_format("numpy")[:]), expected(wanted), dtypes=False)
        for column, values in expected(wanted).items():
            feature = split.features[column]
            while hasattr(feature, "feature"):
                feature = feature.feature
            assert feature.dtype == ("string" if values.dtype.kind == "U" else values.dtype.name), column
        origin = json.loads(split.info.description)
        assert origin["split"]["name"] == part.split.name and origin["file_name"] == part.file_name
        assert origin["data_seed"] == 0 and origin["options"] == found.model_validate(origin["options"]).options()
        assert split.info.license == "apache-2.0"
    shown = {json.loads(one.info.description)["split"]["name"]: split for split, one in loaded.items()}
    assert shown == {part.split.name: part.file_name for part in done.parts}  # the mapping is kept
    assert not list((tmp_path / "out").glob(".*"))


def test_hugging_face_types_are_those_of_the_arrays(tmp_path: Path) -> None:
    import datasets

    write_export(made("rules/mha"), tmp_path / "out", "hf", ["train", "ood/length=3"], 5)
    features = datasets.load_from_disk(str(tmp_path / "out"))["train"].features
    assert features["features"] == datasets.Array2D(shape=(None, 8), dtype="float32")  # of several lengths
    assert features["rule"] == datasets.List(datasets.Value("int64"))
    write_export(made("rules/mha"), tmp_path / "one", "hf", ["train"], 5)
    features = datasets.load_from_disk(str(tmp_path / "one"))["train"].features
    assert features["features"] == datasets.Array2D(shape=(10, 8), dtype="float32")
    assert features["target"] == datasets.Array2D(shape=(10, 1), dtype="uint8")


@pytest.mark.parametrize("format", ["jsonl", "npz", "parquet", "tsv"])
def test_the_same_bytes_twice(format: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_export(task("retrieval/T5", length=4), tmp_path / name, format, ["train", "ood/single"], 1500)
    first = tree(tmp_path / "one")
    assert len(first) == 4 and first == tree(tmp_path / "two")


def test_all_formats_hold_the_same_examples(tmp_path: Path) -> None:
    """The digests are of the data, whatever their form."""
    digests = {}
    for format in ("jsonl", "npz", "parquet", "hf", "tsv"):
        write_export(task("retrieval/T3", length=4), tmp_path / format, format, ["iid"], 300)
        manifest = json.loads((tmp_path / format / "export.json").read_text())
        digests[format] = manifest["parts"][0]["digest"]
    assert len(set(digests.values())) == 1
    write_export(task("retrieval/T3", length=4), tmp_path / "other", "npz", ["iid"], 300, data_seed=1)
    assert json.loads((tmp_path / "other" / "export.json").read_text())["parts"][0]["digest"] not in digests.values()


def test_stretches_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = task("gcog/productive")  # text factors, whose width differs from stretch to stretch
    for name, size in (("large", 2**24), ("small", 1)):
        monkeypatch.setattr(chunking, "BYTES", size)
        for format in ("jsonl", "npz", "parquet"):
            write_export(found, tmp_path / f"{name}-{format}", format, ["train"], 2500)
    for format in ("jsonl", "npz"):
        assert tree(tmp_path / f"large-{format}") == tree(tmp_path / f"small-{format}")
    assert pq.ParquetFile(tmp_path / "small-parquet" / "train.parquet").num_row_groups == 3
    assert_same(read_parquet(tmp_path / "small-parquet" / "train.parquet"), expected(found.sample("train", 2500)))


@pytest.mark.parametrize("format", ["jsonl", "npz", "parquet", "hf"])
def test_memory_does_not_grow_with_the_number_of_examples(
    format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunking, "BYTES", 1)
    monkeypatch.setattr("unseen.export.write.write_card", lambda *arguments: "")
    found, asked = task("rules/mlp", rules=1), list[int]()
    sample = type(found).sample

    def spy(self: Task, split: str, n: int, start: int = 0, data_seed: Any = 0) -> Examples:
        asked.append(n)
        return sample(self, split, n, start, data_seed)

    monkeypatch.setattr(type(found), "sample", spy)
    write_export(found, tmp_path / "warm", format, ["train"], 10)
    peaks = []
    for count in (2 * 1024, 8 * 1024):
        tracemalloc.start()
        write_export(found, tmp_path / str(count), format, ["train"], count)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert max(asked) == 1024
    assert peaks[1] < 1.3 * peaks[0], peaks


def test_archives_hold_nothing_that_is_executed(tmp_path: Path) -> None:
    done = write_export(made("gcog/productive"), tmp_path / "out", "npz", ["train"], 5)
    with zipfile.ZipFile(done.files[0]) as archive:
        assert all(name.endswith(".npy") for name in archive.namelist())
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert all(values.dtype.kind in "biufU" for values in read_npz(done.files[0]).values())


def test_parquet_says_where_it_comes_from(tmp_path: Path) -> None:
    done = write_export(made("retrieval/T5"), tmp_path / "out", "parquet", ["ood/single"], 20, 3)
    found = json.loads(pq.read_schema(done.files[0]).metadata[b"unseen"])
    assert found["options"] == {"name": "retrieval/T5", "length": 5, "preset": "released"}
    assert found["split"]["name"] == "ood/single" and found["data_seed"] == 3 and found["examples"] == 20
    assert found["spec"]["target"] == {"kind": "binary", "width": 1, "along": None}
    assert found["unseen"] and found["file_name"] == "ood_single"
    assert found["columns"]["sequence"] == {"dtype": "uint8", "shape": [5, 36]}


@given(st.lists(st.lists(st.text("abcé ", max_size=5), min_size=1, max_size=5), min_size=1, max_size=4))
@settings(derandomize=True, deadline=None, max_examples=40)
def test_text_grows_as_wide_as_it_must(tmp_path_factory: pytest.TempPathFactory, stretches: list[list[str]]) -> None:
    folder = tmp_path_factory.mktemp("spool")
    arrays = [np.array(stretch) for stretch in stretches]
    spool = ArraySpool(folder / "0", arrays[0])
    for values in arrays:
        spool.add(values)
    with (folder / "text.npy").open("wb") as file:
        spool.pack(file)
    assert np.load(folder / "text.npy").tolist() == [word for stretch in stretches for word in stretch]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=4), st.sampled_from(["uint8", "int16", "bool", "float32"]))
@settings(derandomize=True, deadline=None, max_examples=40)
def test_arrow_arrays_are_lists_of_lists(shape: list[int], dtype: str) -> None:
    values = (np.arange(np.prod(shape)).reshape(shape) % 2).astype(dtype)
    assert arrow_array(values).to_pylist() == values.tolist()


def test_text_of_any_kind_has_a_fixed_width() -> None:
    words = np.array(["a", "longer"], np.dtypes.StringDType())
    found = chunking.columns(Examples({}, np.zeros((2, 1), ">i4"), {"word": words}))
    assert found["factor_word"].dtype == np.dtype("<U6") and found["factor_word"].tolist() == ["a", "longer"]
    assert found["target"].dtype == np.dtype("<i4")


class Clash(Task):
    """A task whose field has the name of the target's column."""

    name: str = "own/clash"

    @property
    def spec(self) -> Spec:
        return Spec((), (Field("target", "category", 2),), Target("binary"))

    @property
    def splits(self) -> dict[str, Split]:
        return {"train": Split("train", "bits")}

    def generate(self, split: str, draws: Draws) -> Examples:
        bits = draws.integers(2, self.block)
        return Examples({"target": bits}, bits[:, None], {})


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="two columns would be called 'target'"):
        write_export(Clash(), tmp_path / "out", "npz", n=5)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("format", "missing"), [("parquet", "pyarrow.parquet"), ("hf", "datasets")])
def test_a_missing_extra_is_named(format: str, missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, missing, None)
    with pytest.raises(UsageError, match=r"pip install 'unseen\[export\]'"):
        write_export(made("rules/mlp"), tmp_path / "out", format, n=5)
    assert list(tmp_path.iterdir()) == []
