"""Runs the code blocks of a page in their order, in one folder: `python blocks.py PAGE FOLDER`.

* `python`: all of a page share one namespace, as in one session
* `sh`: each block is a script that ends at its first failure; one of `unseen` commands alone is run without a shell
* a block whose first line is a comment with a file's name (`# mine.py`, `# study.yaml`) is written to that file
* `yaml`, `toml` and `json` are parsed
* after `<!-- checked, not run: reason -->` commands and code are only parsed: the options of `unseen` commands, the
  targets of `make`, the extras of `pip install`, the grammar of Python
* `text`, and blocks without a language, are output: nothing is done with them. Any other language is an error.
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import yaml

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(
    r"^(?:<!-- checked, not run: (?P<reason>[^\n]+) -->\n+)?"
    r"(?P<indent> *)```(?P<language>[^\n]*)\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
FILE = re.compile(r"# ([\w-]+\.(?:py|yaml|toml))\n")
OUTPUT = ("", "text", "bibtex")


@dataclass(frozen=True)
class Block:
    """A fenced block, the line it begins at, and why it is not run if it is not."""

    language: str
    text: str
    line: int
    reason: str | None = None

    @property
    def file(self) -> str | None:
        """The file it is the content of."""
        named = FILE.match(self.text)
        return named[1] if named else None


def blocks(page: Path) -> list[Block]:
    """All of a page, output included."""
    text = page.read_text()
    found = [
        Block(
            m["language"],
            re.sub(f"^{m['indent']}", "", m["text"], flags=re.MULTILINE),
            text.count("\n", 0, m.start("language")) + 1,
            m["reason"],
        )
        for m in BLOCK.finditer(text)
    ]
    fences = len(re.findall(r"^ *```", text, re.MULTILINE))
    assert fences == 2 * len(found), f"{page}: {fences} fences for {len(found)} blocks"
    assert text.count("<!-- checked, not run") == sum(b.reason is not None for b in found), f"{page}: a stray mark"
    return found


def run(page: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a page in a process of its own; what it said is in the result."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [sys.executable, __file__, str(page), str(folder)],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path, "COLUMNS": "200"},
    )


# What is parsed only


def check_shell(text: str) -> None:
    """Every command of a script is one that exists, with options that it has."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            assert words[0] in PROGRAMS, f"'{line}': how is {words[0]} checked?"
            PROGRAMS[words[0]](words[1:])


def check_unseen(words: list[str]) -> None:
    """The command exists and takes these arguments and options; nothing is called."""
    import typer.main

    from unseen.cli.main import app

    group = typer.main.get_command(app)
    parent = group.make_context("unseen", list(words))
    name, command, rest = group.resolve_command(parent, [*parent._protected_args, *parent.args])  # type: ignore[attr-defined]
    assert command is not None, name
    command.make_context(name, rest, parent=parent)


def check_make(words: list[str]) -> None:
    """The targets exist."""
    subprocess.run(["make", "--dry-run", *words], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def check_pip(words: list[str]) -> None:
    """Extras of ours exist."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for word in words:
        wanted = re.fullmatch(r"unseen\[(.*)\]", word)
        assert not wanted or set(wanted[1].split(",")) <= set(extras), word


def check_python(words: list[str]) -> None:
    """The script, or with `-m` the package or module, is in the repository."""
    if words[0] == "-m":
        module = ROOT.joinpath(*words[1].split("."))
        scripts = [module / "__main__.py", module.with_suffix(".py")]
    else:
        scripts = [ROOT / words[0]]
    assert any(script.is_file() for script in scripts), words


def check_installed(program: str) -> Callable[[list[str]], None]:
    """A program of another package: it is there."""

    def check(_: list[str]) -> None:
        assert shutil.which(program), f"{program} is not installed"

    return check


PROGRAMS: dict[str, Callable[[list[str]], None]] = {
    "unseen": check_unseen,
    "make": check_make,
    "pip": check_pip,
    "python": check_python,
    **{name: check_installed(name) for name in ("ray", "pytest", "tensorboard", "git")},
    "cd": lambda words: None,
    "srun": lambda words: None,  # of Slurm, which is not installed everywhere
}


# What is run

OURS = re.compile(r"(?:unseen(?: [\w./:=,@+-]+)*(?: +#[^\n]*)?\n)+")
"""A script of `unseen` commands without a sign that a shell would read."""


def run_shell(text: str) -> None:
    """One script."""
    plain = text.replace("\\\n", " ")
    if OURS.fullmatch(re.sub(" +", " ", plain)):
        for line in plain.splitlines():
            run_unseen(shlex.split(line, comments=True)[1:])
    else:
        subprocess.run(["bash", "-euo", "pipefail", "-c", text], check=True)


def run_unseen(words: list[str]) -> None:
    """A command in a process of its own, split off from one that has the package imported: it starts at once."""
    from unseen.cli.main import main

    sys.argv = ["unseen", *words]
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["unseen.api", "unseen.cli.main", "unseen.report"])
    process = context.Process(target=main)
    process.start()
    process.join()
    assert process.exitcode == 0, f"'{shlex.join(sys.argv)}' returned non-zero exit status {process.exitcode}"


def session() -> Callable[[str, str], None]:
    """Python blocks as if they were typed into one interpreter that was started in the folder."""
    sys.modules["__main__"] = main = ModuleType("__main__")
    sys.path[0] = ""

    def run_python(text: str, where: str) -> None:
        importlib.invalidate_caches()  # files may have been written since
        exec(compile(text, where, "exec"), main.__dict__)

    return run_python


PARSERS: dict[str, Callable[[str], object]] = {"yaml": yaml.safe_load, "toml": tomllib.loads, "json": json.loads}


def run_here(page: Path) -> None:
    """Every block of a page, in the current folder."""
    run_python = session()
    for block in blocks(page):
        where = f"{page.name}, line {block.line}"
        sys.stderr.write(f"--- {where}\n")
        if block.file:
            Path(block.file).write_text(block.text)
        elif block.language in PARSERS:
            PARSERS[block.language](block.text)
        elif block.language == "python":
            compile(block.text, where, "exec") if block.reason else run_python(block.text, where)
        elif block.language == "sh":
            check_shell(block.text) if block.reason else run_shell(block.text)
        else:
            assert block.language in OUTPUT, f"{where}: a block of '{block.language}' is neither run nor output"


if __name__ == "__main__":
    page = Path(sys.argv[1]).resolve()
    os.chdir(sys.argv[2])
    run_here(page)
