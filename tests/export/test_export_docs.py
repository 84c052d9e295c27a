"""Every command and snippet of docs/export.md, in its order, in one empty folder."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "export.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_every_block_runs(tmp_path: Path) -> None:
    from exported import run

    ran = []
    for kind, text in BLOCK.findall(PAGE.read_text()):
        if kind == "sh":
            for line in text.splitlines():
                words = [str(tmp_path / word) if before == "--out" or word.startswith(("t4/", "t6/")) else word
                         for before, word in zip([None, *shlex.split(line)], shlex.split(line), strict=False)]
                result = run(shlex.join(words))
                assert result.exit_code == 0, (line, result.output, result.exception)
        else:
            assert kind == "python"
            done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, cwd=tmp_path)
            assert done.returncode == 0, (text, done.stderr)
        ran.append(kind)
    assert ran == ["sh", "sh", "python", "python", "python"]
