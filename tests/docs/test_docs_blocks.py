"""Every code block of every page is run, or stands behind a mark that says why not and is parsed."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.blocks import OUTPUT, ROOT, blocks, check_shell, run

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_CODE = [
    page
    for page in PAGES
    if page.name != "tutorial.md"  # run, and looked at, by test_docs_tutorial.py
    and any(block.language not in OUTPUT for block in blocks(page))
]


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_runs(page: Path, tmp_path: Path) -> None:
    done = run(page, tmp_path)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]


def test_the_pages_are_found() -> None:
    assert {"README.md", "your-model.md", "export.md", "studies.md", "metrics.md", "python.md"} <= {
        page.name for page in WITH_CODE
    }


def made(folder: Path, text: str) -> Path:
    page = folder / "page.md"
    page.write_text(text)
    return page


def test_blocks_share_a_session_and_a_folder(tmp_path: Path) -> None:
    page = made(
        tmp_path,
        "```python\n# mine.py\nnumber = 3\n```\n\n```python\nfrom mine import number\n```\n\n"
        "Words.\n\n```sh\necho a > made\ntest -f mine.py  # both\n```\n\n```text\nnot run\n```\n\n"
        "```python\nassert number == 3 and open('made').read() == 'a\\n'\n```\n",
    )
    done = run(page, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("```python\n1 / 0\n```\n", "page.md, line 1"),
        ("```sh\nfalse\ntrue\n```\n", "non-zero exit status 1"),
        ("```yaml\na: [\n```\n", "while parsing"),
        ("```rust\nfn main()\n```\n", "neither run nor output"),
        ("<!-- checked, not run: slow -->\n```python\nx = (\n```\n", "SyntaxError"),
        ("<!-- checked, not run: slow -->\n\nWords.\n\n```sh\ntrue\n```\n", "a stray mark"),
        ("```python\nx = 1\n", "1 fences for 0 blocks"),
    ],
)
def test_what_does_not_run_fails(tmp_path: Path, text: str, complaint: str) -> None:
    done = run(made(tmp_path, text), tmp_path)
    assert done.returncode != 0 and complaint in done.stderr, done.stderr


def test_what_is_marked_is_parsed_and_not_run(tmp_path: Path) -> None:
    page = made(
        tmp_path,
        "<!-- checked, not run: slow -->\n```python\n1 / 0\n```\n\n"
        "<!-- checked, not run: hours -->\n```sh\nunseen run quickstart --out a  # long\n```\n",
    )
    assert [block.reason for block in blocks(page)] == ["slow", "hours"]
    assert run(page, tmp_path).returncode == 0
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    "line",
    [
        "unseen fly",
        "unseen run quickstart --outt a",
        "unseen run quickstart",
        "unseen results a --format poem",
        "make tea",
        "pip install 'unseen[wings]'",
        "python docs/none.py",
        "python -m none",
        "frobnicate",
    ],
)
def test_commands_that_do_not_exist_are_found(line: str) -> None:
    with pytest.raises((Exception, SystemExit)):
        check_shell(line)
