"""Ends without a traceback: a worker whose runner is gone while it starts, Ctrl-C in the first moment, a full disk."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from unseen.errors import UsageError
from unseen.files import check_writable, read_at_most

PATIENCE = 600.0
SLOW = """import sys, time, pathlib
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "MODULE":
            pathlib.Path("MARK").touch()
            time.sleep(3600)
sys.meta_path.insert(0, Slow())
"""
"""Importing a module takes an hour; a file marks that it has begun."""


def slow_environment(folder: Path, module: str) -> tuple[dict[str, str], Path]:
    """The environment of a process in which the module is slow to import, and the mark."""
    mark = folder / "begun"
    (folder / "sitecustomize.py").write_text(SLOW.replace("MODULE", module).replace("MARK", str(mark)))
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)])}, mark


def wait_for(mark: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not mark.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("slowly", [False, True], ids=["at once", "while torch is imported"])
def test_a_starting_worker_whose_runner_dies_ends_in_silence(slowly: bool, tmp_path: Path) -> None:
    """If torch takes an hour, it does not wait for it."""
    ours, theirs = socket.socketpair()
    environment, mark = slow_environment(tmp_path, "torch" if slowly else "nothing")
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "unseen.running.executors.worker", str(theirs.fileno())],
            pass_fds=[theirs.fileno()], stderr=subprocess.PIPE, env=environment,
        )  # fmt: skip
    connection = Connection(ours.detach())
    connection.send(sys.path)
    if slowly:
        wait_for(mark)
    connection.close()
    _, errors = process.communicate(timeout=PATIENCE)
    assert errors == b"" and process.returncode == 0


def test_ctrl_c_while_modules_are_imported(tmp_path: Path) -> None:
    environment, mark = slow_environment(tmp_path, "typer")
    process = subprocess.Popen([sys.executable, "-m", "unseen", "tasks"], stderr=subprocess.PIPE, env=environment)
    wait_for(mark)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130 and b"Traceback" not in errors


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_standard_output_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-m", "unseen", "tasks"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "No space left" in done.stderr


def test_only_new_and_regular_files_are_written(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    for path in (tmp_path / "link", Path("/dev/null"), tmp_path, tmp_path / "no" / "file"):
        with pytest.raises(UsageError):
            check_writable(path)
    check_writable(tmp_path / "new")


def test_a_place_where_no_file_can_be_made_is_refused_before_the_work() -> None:
    """Its folder is there, and permissions allow it to root: only trying tells."""
    with pytest.raises(UsageError, match="can't be written"):
        check_writable(Path("/proc/page.html"))


def test_a_file_that_never_ends_is_not_read_to_the_end(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a device; give a file"):
        read_at_most(Path("/dev/zero"), 10**6)
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(10**12)  # sparse: it takes no room on the disk
    with pytest.raises(UsageError, match="more than 1 MB"):
        read_at_most(large, 10**6)
