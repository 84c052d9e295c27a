"""Everything that docs/your-model.md shows is run, in its order, in one empty folder."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parents[1] / "docs" / "your-model.md").read_text()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (\w+\.(py|yaml))\n")


def test_the_page_runs(tmp_path: Path) -> None:
    """Blocks that begin with a file's name are written to it; the other Python is one script."""
    script, commands = [], []
    for kind, text in BLOCK.findall(PAGE):
        named = FILE.match(text)
        if named:
            (tmp_path / named[1]).write_text(text)
        elif kind == "python":
            script.append(text)
        elif kind == "sh":
            commands += [shlex.split(line) for line in text.splitlines()]
    assert len(script) == 2 and len(commands) == 2 and sorted(f.name for f in tmp_path.iterdir()) == ["mine.py",
                                                                                                    "study.yaml"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    (tmp_path / "script.py").write_text("\n".join(script))
    for command in ([sys.executable, "script.py"], *commands):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "PATH": path})
        assert done.returncode == 0, (command, done.stdout, done.stderr)
    assert (tmp_path / "runs" / "mine").is_dir() and (tmp_path / "runs" / "study").is_dir()


def test_the_error_shown_is_the_one_that_is_raised() -> None:
    import pytest
    import torch
    from torch import nn

    import unseen

    class Mine(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.answer = nn.Linear(36, 1)

        def forward(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
            return self.answer(inputs["query"])[:, 0]

    with pytest.raises(unseen.UsageError) as caught:
        unseen.train("retrieval/T1", Mine, seeds=1)
    assert f"error: {caught.value}\n" in PAGE


def test_links_exist() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", PAGE):
        assert (Path(__file__).parents[1] / "docs" / target).exists(), target
