"""The wheel as users get it: built, installed into a fresh environment, used from an empty folder."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (found,) = out.glob("unseen-*.whl")
    return found


def test_the_wheel_holds_every_module_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    modules = {str(f.relative_to(ROOT / "src")) for f in (ROOT / "src" / "unseen").rglob("*.py")}
    assert modules | {"unseen/py.typed"} <= names
    assert all(n.startswith(("unseen/", "unseen-")) for n in names)
    assert any(n.endswith("licenses/LICENSE") for n in names)


def test_the_installed_wheel_works_outside_the_checkout(wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "env"
    venv.create(home, with_pip=False)
    site = home / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    # The dependencies come from this environment; a .pth inside a folder named by a .pth is not followed, so the
    # checkout's editable install does not come along.
    (site / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
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
            str(wheel),
        ],
        check=True,
    )

    def run(*command: str) -> str:
        # Without a PYTHONPATH, which may name a checkout.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    where = run(str(home / "bin" / "python"), "-c", "import unseen; print(unseen.__file__)")
    assert where.startswith(str(home))
    assert "stands for" in run(str(home / "bin" / "unseen"), "show", "retrieval/T6", "-n", "1")
    assert "passed" in run(str(home / "bin" / "unseen"), "verify", "retrieval/T3", "-n", "500", "--set", "length=5")
