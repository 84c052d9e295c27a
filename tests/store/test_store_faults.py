"""A store on a bad disk: full, read-only, damaged, of another release. A clear word, and nothing lost."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import unseen
from support.faulty import study
from support.small import tables
from unseen.cli.main import main
from unseen.errors import CheckFailed, UsageError
from unseen.running.runner import Interrupted
from unseen.store import store as store_module
from unseen.store.schema import SCHEMA
from unseen.store.store import Store
from unseen.training.trainer import Trainer

HERE = Path(__file__).parent
STUDY = study(["", "", "", "", "raises"], seeds=range(5))
"""Four trials that end, one that fails."""
NOBODY = 65534


def run(out: Path, seeds: int | Sequence[int] = 5, **given: object) -> Path:
    unseen.run(STUDY, out, **{"seeds": seeds, "executor": "inline", "progress": "none", "stack": 2, **given})
    return out


def contents(out: Path) -> dict[str, bytes]:
    """Every file of a store but those that SQLite and the lock make and leave as they like."""
    passing = {"store.sqlite-wal", "store.sqlite-shm", "store.lock", "store.owner"}
    return {
        str(f.relative_to(out)): f.read_bytes() for f in sorted(out.rglob("*")) if f.is_file() and f.name not in passing
    }


def everything(out: Path) -> list[str]:
    """The database as SQL, whatever pages it is on."""
    with sqlite3.connect(f"file:{out / 'store.sqlite'}?mode=ro", uri=True) as database:
        return list(database.iterdump())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study to its end."""
    return run(tmp_path_factory.mktemp("whole") / "r")


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seeds ended, two in mid-work with a checkpoint, one failed."""
    out = run(tmp_path_factory.mktemp("half") / "r", seeds=[0, 1, 4])
    train_step = Trainer._train_step

    def interrupted(self: Trainer) -> bool:
        if self.step == 17:
            os.kill(os.getpid(), signal.SIGINT)
        return train_step(self)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Interrupted):
        patch.setattr(Trainer, "_train_step", interrupted)
        run(out)
    with Store.read(out) as store:
        assert store.trials().step.tolist() == [40, 40, 18, 18, 0]
    return out


@pytest.fixture
def begun(half: Path, tmp_path: Path) -> Path:
    """A copy of the half-done study, to be spoilt."""
    return Path(shutil.copytree(half, tmp_path / "r"))


def command(*arguments: object) -> int:
    """The command line in this process; its exit code."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(sys, "argv", ["unseen", *map(str, arguments)])
        main()
    return int(ended.value.code or 0)


# -- a full disk -----------------------------------------------------------------------------------------------------


@contextmanager
def tmpfs(place: Path, *options: str) -> Iterator[Path]:
    """A small file system of its own; refused where one may not mount."""
    place.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(place)], check=True, capture_output=True
    )
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill_tmpfs(place: Path, room: int, given: dict[str, object]) -> str:
    """Run on a disk with so much room left; what the run said when it stopped."""
    ballast = place / "ballast"
    free = os.statvfs(place)
    ballast.write_bytes(bytes(max(0, free.f_bavail * free.f_frsize - room)))
    try:
        with pytest.raises(CheckFailed) as said:
            run(place / "r", **given)
        looked_at(place / "r")  # it can be read on the full disk, too
    finally:
        ballast.unlink()
    return str(said.value)


def fill_by_limit(place: Path, room: int, given: dict[str, object]) -> str:
    """The same by the command line, where no file may grow beyond so many bytes."""
    file = place / "study.py"
    file.write_text(
        f"import sys\nsys.path[:0] = [{str(HERE)!r}, {str(HERE.parent)!r}]\nfrom test_store_faults import STUDY as study\n"
    )
    limit = room // 2
    options = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    done = subprocess.run(
        [sys.executable, "-m", "unseen", "run", str(file), "--out", str(place / "r"), "--executor=inline", *options],
        # Under the limit CPython would leave truncated bytecode, which every later import of that module would stumble on.
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    *_, last = done.stderr.splitlines()
    return last.removeprefix("error: ")


def looked_at(out: Path) -> int:
    """How many trials have ended; all their records are there."""
    with Store.read(out) as store:
        ended = [trial for trial, status in store.status().items() if status == "finished"]
        assert set(store.records().trial) == set(ended)
        for table in ("trials", "entries", "curves", "records"):
            store.check(table)
    return len(ended)


@pytest.fixture(params=["tmpfs", "limit"])
def small(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, Callable[..., str]]]:
    """A place with little room, and the way to run there. Where mounting is refused, the limit does both."""
    if request.param == "tmpfs":
        try:
            with tmpfs(tmp_path / "disk", "size=16m") as place:
                yield place, fill_tmpfs
            return
        except (OSError, subprocess.CalledProcessError):
            pass
    (tmp_path / "limited").mkdir()
    yield tmp_path / "limited", fill_by_limit


@pytest.mark.parametrize(
    ("given", "room"),
    [
        ({"stack": 1}, 40_000),  # each trial in one chunk: the database has no room
        ({"chunk_seconds": 0.01}, 400_000),  # a checkpoint has none
    ],
    ids=["database", "checkpoint"],
)
def test_a_full_disk_stops_the_run_and_the_store_is_sound(
    small: tuple[Path, Callable[..., str]], whole: Path, given: dict[str, object], room: int
) -> None:
    place, fill = small
    run(place / "r", seeds=1)
    said = fill(place, room, given)
    assert "\n" not in said and str(place / "r") in said
    assert any(word in said for word in ("full", "No space", "too large", "I/O"))
    assert "What it held before is sound" in said
    assert 1 <= looked_at(place / "r") < 4
    assert list((place / "r").rglob("*.partial")) == []
    run(place / "r")
    assert tables(place / "r") == tables(whole)


# -- a directory that can't be written -------------------------------------------------------------------


@contextmanager
def read_only_mount(out: Path) -> Iterator[None]:
    subprocess.run(["mount", "--bind", str(out), str(out)], check=True, capture_output=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(out)], check=True, capture_output=True)
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(out)], check=True)


@contextmanager
def another_user(out: Path) -> Iterator[None]:
    """Root ignores permission bits, so somebody else looks at them; whoever is not root already is somebody."""
    modes = {path: path.stat().st_mode for path in (out, *out.rglob("*")) if path.is_dir()}
    for path in modes:
        path.chmod(0o555)
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        for path, mode in modes.items():
            path.chmod(mode)


def test_a_directory_that_cannot_be_written_is_refused_and_can_be_read(half: Path, whole: Path) -> None:
    ways = []
    for way in (read_only_mount, another_user):
        # Not in pytest's directory, which is closed to others.
        with tempfile.TemporaryDirectory(prefix="unseen-tests-") as place:
            Path(place).chmod(0o755)
            out = Path(shutil.copytree(half, Path(place) / "r"))
            truth, before = tables(half), contents(out)
            for left in (False, True):  # with and without what a reader leaves behind
                if left:
                    looked_at(out)
                with ExitStack() as closed:
                    try:
                        closed.enter_context(way(out))
                    except (OSError, subprocess.CalledProcessError):
                        break  # this way can't be gone here
                    ways.append(way)
                    with pytest.raises(UsageError, match=r"can't be written: (Read-only|Permission)"):
                        run(out)
                    with pytest.raises(UsageError, match=r"can't be written: (Read-only|Permission)"):
                        run(out / "new")
                    assert tables(out) == truth
                    assert command("results", out, "--trials") == 0
                assert contents(out) == before
            run(out)
            assert tables(out) == tables(whole)
    assert ways, "neither mounting nor another user is possible here"


def test_a_directory_that_cannot_be_looked_into_is_refused() -> None:
    with tempfile.TemporaryDirectory(prefix="unseen-tests-") as place:
        out = Path(place) / "closed"
        out.mkdir()
        out.chmod(0)
        root = os.geteuid() == 0
        try:
            if root:
                os.seteuid(NOBODY)
            for call in (run, unseen.results):
                with pytest.raises(UsageError, match=r"can't be (read|written): Permission"):
                    call(out)
        finally:
            if root:
                os.seteuid(0)
            out.chmod(0o755)


# -- damaged files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spoil",
    [
        lambda file: file.write_bytes(file.read_bytes()[:-1]),
        lambda file: file.write_bytes(b""),
        lambda file: file.write_bytes(file.read_bytes()[:5000] + b"\0" + file.read_bytes()[5001:]),
        lambda file: file.unlink(),
    ],
    ids=["truncated", "empty", "changed", "missing"],
)
def test_a_damaged_checkpoint_is_named_and_nothing_else_is_touched(
    begun: Path, whole: Path, spoil: Callable[[Path], None], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (file,) = (begun / "checkpoints").iterdir()
    spoil(file)
    before, rows = contents(begun), everything(begun)
    with pytest.raises(CheckFailed, match=f"{file.name} is (damaged|missing).*--discard-damaged"):
        run(begun, retry_failed=True)
    (tmp_path / "study.py").write_text("from test_store_faults import STUDY as study\n")
    assert command("run", tmp_path / "study.py", "--out", begun, "--executor", "inline") == 1
    said = capsys.readouterr().err
    assert file.name in said and said.count("\n") == 1
    assert everything(begun) == rows
    assert {k: v for k, v in contents(begun).items() if k != "store.sqlite"} == {
        k: v for k, v in before.items() if k != "store.sqlite"
    }
    assert looked_at(begun) == 2
    run(begun, discard_damaged=True, retry_failed=True)
    assert tables(begun) == tables(whole)


def spoilt_copies(path: Path, spoilt: Sequence[bytes]) -> Iterator[tuple[bytes, Path]]:
    """A store for each of these databases."""
    for data in spoilt:
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        (path / "store.sqlite").write_bytes(data)
        yield data, path


def judged(out: Path, truth: list[tuple[str, ...]]) -> str:
    """`noticed` or `harmless`; anything else is a failure of the test."""
    found = set()
    try:
        assert tables(out) == truth, "wrong numbers were read"
        found.add("harmless")
    except CheckFailed as error:
        assert "store.sqlite" in str(error) and "\n" not in str(error)
        found.add("noticed")
    except UsageError as error:  # the number of the schema has changed
        assert "release of Unseen" in str(error) or "empty" in str(error)
        found.add("noticed")
    return found.pop()


@pytest.fixture(scope="module")
def database(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The whole study in one file."""
    copy = tmp_path_factory.mktemp("database") / "store.sqlite"
    with sqlite3.connect(whole / "store.sqlite") as held, sqlite3.connect(copy) as target:
        held.backup(target)
    return copy.read_bytes()


def test_no_damaged_page_is_read_as_data(database: bytes, whole: Path, tmp_path: Path) -> None:
    page, chance, truth = 4096, random.Random(3), tables(whole)
    pages = len(database) // page
    assert pages > 12
    spoilt = [
        database[: i * page] + other + database[(i + 1) * page :]
        for i in range(pages)
        for other in (b"\xff" * page, bytes(page), chance.randbytes(page))
    ]
    found = [judged(out, truth) for _, out in spoilt_copies(tmp_path / "r", spoilt)]
    assert found[:3] == ["noticed"] * 3, "the first page holds the schema"
    assert found.count("noticed") >= 3 * 7, "trials, entries, curves, records and their index, seals"
    # A writer looks at every page before it touches any.
    for data, out in spoilt_copies(tmp_path / "w", spoilt[::3]):
        with pytest.raises(CheckFailed, match=r"store\.sqlite"):
            Store.write(out).close()
        assert (out / "store.sqlite").read_bytes() == data


def test_no_changed_bit_is_read_as_data(database: bytes, whole: Path, tmp_path: Path) -> None:
    chance, truth = random.Random(5), tables(whole)
    spoilt = []
    for _ in range(120):
        data = bytearray(database)
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        spoilt.append(bytes(data))
    found = [judged(out, truth) for _, out in spoilt_copies(tmp_path / "r", spoilt)]
    assert found.count("noticed") > 10
    # A number that is still a number: no structure is hurt, only the seal is.
    with Store.read(whole) as store:
        value = store.records().value[0]
    for data, out in spoilt_copies(tmp_path / "r", [_with_another_value(database, tmp_path, value)]):
        assert data != database
        with pytest.raises(CheckFailed, match=r"store\.sqlite is damaged: in its records, the rows of trial"):
            unseen.results(out)
        assert command("results", out) == 1


def _with_another_value(database: bytes, place: Path, value: float) -> bytes:
    file = place / "changed.sqlite"
    file.write_bytes(database)
    changed = sqlite3.connect(file)
    with changed:
        changed.execute("UPDATE records SET value = value + 0.125 WHERE value = ?", (value,))
    changed.close()
    return file.read_bytes()


def test_a_truncated_database_is_noticed(database: bytes, whole: Path, tmp_path: Path) -> None:
    truth = tables(whole)
    lengths = [0, 99, 100, 4095, *range(4096, len(database), 4096), len(database) - 1]
    spoilt = [database[:n] for n in lengths]
    found = [judged(out, truth) for _, out in spoilt_copies(tmp_path / "r", spoilt)]
    assert found[:-1] == ["noticed"] * len(found[:-1])
    for data, out in spoilt_copies(tmp_path / "w", spoilt[1:-1]):
        with pytest.raises(CheckFailed, match=r"store\.sqlite"):
            Store.write(out)
        assert (out / "store.sqlite").read_bytes() == data
    # A kill at the very beginning leaves an empty file; weights are there only later.
    for _, out in spoilt_copies(tmp_path / "w", spoilt[:1]):
        (out / "weights").mkdir()
        (out / "weights" / "0123456789abcdef.best.safetensors").write_bytes(b"weights")
        with pytest.raises(CheckFailed, match=r"store\.sqlite is damaged"):
            run(out)
        (out / "weights" / "0123456789abcdef.best.safetensors").unlink()
        run(out)
        assert tables(out) == truth


@pytest.mark.parametrize(("schema", "said"), [(SCHEMA + 1, "a newer release"), (SCHEMA - 2, "an older release")])
@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_a_store_of_another_schema_is_left_as_it_is(
    begun: Path, schema: int, said: str, journal: str, capsys: pytest.CaptureFixture[str]
) -> None:
    database = sqlite3.connect(begun / "store.sqlite")
    database.execute(f"PRAGMA journal_mode = {journal}")
    database.execute(f"PRAGMA user_version = {schema}")
    database.close()
    before = contents(begun)
    for call in (run, unseen.results):
        with pytest.raises(UsageError, match=rf"{said} of Unseen \(its schema is {schema}"):
            call(begun)
    assert command("results", begun) == 2 and capsys.readouterr().err.count("\n") == 1
    assert contents(begun) == before


def test_a_second_interrupt_in_the_middle_of_saving_loses_nothing(whole: Path, tmp_path: Path) -> None:
    """The first waits for the step under way; the second ends everything at once, wherever it comes."""
    train_step, write_file = Trainer._train_step, store_module.write_file
    sent = list[int]()

    def interrupted(self: Trainer) -> bool:
        if self.step == 17:
            sent.append(self.step)
            os.kill(os.getpid(), signal.SIGINT)
        return train_step(self)

    def interrupted_again(store: Path, folder: str, name: str, data: bytes) -> tuple[str, str]:
        found = write_file(store, folder, name, data)
        if sent:  # on a slow machine a chunk may end before the step of the first
            os.kill(os.getpid(), signal.SIGINT)
        return found

    out = run(tmp_path / "r", seeds=2)
    before = everything(out)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt) as said:
        patch.setattr(Trainer, "_train_step", interrupted)
        patch.setattr(store_module, "write_file", interrupted_again)
        before_it = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
        try:
            run(out, seeds=4)
        finally:
            signal.signal(signal.SIGINT, before_it)
    assert not isinstance(said.value, Interrupted)
    assert looked_at(out) == 2 and {row for row in before if "records" in row} <= set(everything(out))
    run(out)
    assert tables(out) == tables(whole)
    assert list((out / "checkpoints").iterdir()) == []


# -- growing and changing -------------------------------------------------------------------


def test_more_and_fewer_seeds_extend_and_keep(whole: Path, tmp_path: Path) -> None:
    out = run(tmp_path / "r", seeds=2)
    assert tables(out) == tables(run(tmp_path / "two", seeds=2))
    before = [row for row in everything(out) if "provenance" in row or "records" in row]
    run(out, seeds=4)
    assert tables(out) == tables(run(tmp_path / "four", seeds=4))
    run(out, seeds=3)
    assert tables(out) == tables(tmp_path / "four")
    assert set(before) <= set(everything(out)), "the old rows are untouched, times and all"
    run(out)
    assert tables(out) == tables(whole)


def test_a_changed_study_is_refused_with_the_place_and_the_option(begun: Path) -> None:
    before = everything(begun)
    changed = study(["", "", "", "", "raises"], seeds=range(5), learning_rate=0.01)
    with pytest.raises(UsageError, match=r"plain.*recipe learning_rate is the default there and 0\.01 here"):
        unseen.run(changed, begun, executor="inline", progress="none")
    other = study(["", "", "", "", "raises"], seeds=range(5), models={"other": {"name": "retrieval-lstm"}})
    with pytest.raises(UsageError, match=r"plain.* is not in the study as it is now"):
        unseen.run(other, begun, executor="inline", progress="none")
    with pytest.raises(UsageError, match="study is faulty@1 there and else@1 here"):
        unseen.run(study(name="else"), begun, executor="inline", progress="none")
    assert everything(begun) == before
