"""The demo of the README runs; its commands and snippets are run by tests/docs/test_docs_blocks.py."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_demo_runs_small(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / "quickstart.py"), "--out", "demo", "--scale", "smoke"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert (tmp_path / "demo" / "quickstart.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "demo" / "quickstart.svg").read_text().startswith("<svg")


def test_the_make_targets_run_what_is_tested() -> None:
    text = (ROOT / "README.md").read_text()
    assert "make demo " in text and "make test " in text
    said = subprocess.run(
        ["make", "-n", "demo", "test", "docs"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert "examples/quickstart.py --out demo" in said
    assert "pytest" in said
    assert "mkdocs build --strict" in said


def test_pictures_and_links_exist() -> None:
    text = (ROOT / "README.md").read_text()
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (ROOT / target).exists(), target


def test_it_is_read_in_two_minutes() -> None:
    """An install line, a snippet with its output, no long cells of tables, one picture of a finding."""
    text = (ROOT / "README.md").read_text()
    cells = [cell for line in text.splitlines() if line.startswith("|") for cell in line.split("|")]
    assert max(map(len, cells)) <= 200
    assert text.index("pip install") < text.index("unseen.train") < text.index("```text") < text.index("![")
    accuracies = re.findall(r"^\d +(0\.\d+)$", text, re.MULTILINE)
    assert accuracies and min(map(float, accuracies)) > 0.9, "the first numbers that a visitor sees are not at chance"
