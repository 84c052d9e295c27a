"""A new plug-in of each kind in a clean environment, from its wheel: its own tests and `unseen check` pass."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from unseen.kit.new import new

ROOT = Path(__file__).parents[2]
NEW = {"task": "sums", "model": "slow-reader", "study": "which-first"}


def build(folder: Path, out: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)],
        cwd=folder,
        check=True,
        capture_output=True,
    )


@pytest.mark.slow
def test_new_plugins_work_from_their_wheels(tmp_path: Path) -> None:
    for kind, name in NEW.items():
        new(kind, name, tmp_path / kind)
        build(tmp_path / kind, tmp_path / "wheels")
    build(ROOT, tmp_path / "wheels")
    home = tmp_path / "env"
    venv.create(home, with_pip=False)
    site = home / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    # As in tests/test_package.py: the dependencies of this environment, without what is installed here as editable.
    (site / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    wheels = [str(path) for path in (tmp_path / "wheels").iterdir()]
    assert len(wheels) == 4
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(home / "bin" / "python"),
            "install",
            "--no-deps",
            "--no-index",
            "--quiet",
            *wheels,
        ],
        check=True,
    )
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}

    def run(*command: str, folder: Path = tmp_path) -> str:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=clean)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    where = run(
        str(home / "bin" / "python"),
        "-c",
        "import unseen, unseen_sums.task as t; print(unseen.__file__); print(t.__file__)",
    )
    assert all(line.startswith(str(home)) for line in where.splitlines())
    for kind in NEW:
        (tmp_path / kind / "src").rename(tmp_path / kind / "away")  # so that the tests can't but use the wheel
        said = run(str(home / "bin" / "python"), "-m", "pytest", "-q", "-p", "no:cacheprovider", folder=tmp_path / kind)
        assert "passed" in said and "failed" not in said
    said = run(str(home / "bin" / "unseen"), "check", "-n", "2000")
    for title in (
        "task sums/plain (unseen-sums)",
        "model slow-reader (unseen-slow-reader)",
        "study which-first (unseen-which-first)",
    ):
        assert f"{title}\n" in said
    assert "FAIL" not in said and said.splitlines()[-1].endswith("checks passed")
