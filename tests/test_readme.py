"""Every command and snippet of the README is executed, in its order, in one empty folder."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# What the two set-up commands stand for here. `make test` is what is running now; the demo is run small.
SETUP = {
    "make demo": [sys.executable, str(ROOT / "examples" / "quickstart.py"), "--out", "demo", "--scale",
                  "smoke"],
    "make test": [sys.executable, "-m", "pytest", "--version"],
}


def blocks(language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall((ROOT / "README.md").read_text()) if kind == language]


def commands() -> list[str]:
    lines = [line.split("  #")[0].strip() for block in blocks("sh") for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("readme")


def test_every_command_runs(folder: Path) -> None:
    found = commands()
    assert "make demo" in found and "make test" in found and len(found) >= 6
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for line in found:
        command = SETUP.get(line) or shlex.split(line)
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env={**os.environ, "PATH": path})
        assert done.returncode == 0, (line, done.stdout, done.stderr)
    assert (folder / "demo" / "quickstart.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "demo" / "quickstart.svg").read_text().startswith("<svg")


def test_the_make_targets_run_what_this_test_runs() -> None:
    said = subprocess.run(["make", "-n", "demo", "test"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "examples/quickstart.py --out demo" in said
    assert "pytest" in said


def test_every_python_snippet_runs(folder: Path) -> None:
    snippets = blocks("python")
    assert snippets
    for snippet in snippets:
        done = subprocess.run([sys.executable, "-c", snippet], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, (snippet, done.stderr)


def test_pictures_and_links_exist() -> None:
    text = (ROOT / "README.md").read_text()
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (ROOT / target).exists(), target
