"""The notebooks as pages: each is run once, here, and shown with what its cells gave."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from jupyter_client.kernelspec import NATIVE_KERNEL_NAME, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from mkdocs.exceptions import PluginError
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from page import Page

FOLDER = Path(__file__).parents[2] / "notebooks"
INDEX = """# Notebooks

Notebooks to run and to change. They are in the folder `notebooks/`, stored without outputs: what is shown here was computed
when this site was built. To run them yourself: `pip install 'unseen[report,export]' jupyterlab`, then `jupyter lab notebooks/`.

"""
Notebook = Any
PAPER = '{ style="background: white; padding: .4rem; border-radius: .2rem" }'
"""Pictures are drawn for light paper, also where the reader's is dark."""
SETUP = "import altair\naltair.renderers.enable('svg')"
"""Run first and not shown: charts come as pictures, not as a page that would fetch what draws them."""
SECONDS = 900
"""How long one cell may take; it needs a few, on a machine with nothing else to do."""


def pages() -> Iterator[Page]:
    """An index, and for each notebook a page with its pictures."""
    found = {path.stem: nbformat.read(path, as_version=4) for path in sorted(FOLDER.glob("*.ipynb"))}
    yield Page("notebooks/index.md", INDEX + "\n".join(f"* [{title(book)}]({name}.md)" for name, book in found.items()))
    for name in found:
        yield from shown(name, executed(name, (FOLDER / f"{name}.ipynb").read_text()))


def title(notebook: Notebook) -> str:
    """The first heading."""
    return re.search(r"^# (.*)$", notebook.cells[0].source, re.MULTILINE)[1]  # type: ignore[index]


@cache  # `mkdocs serve` builds again whenever a page is saved
def executed(name: str, text: str) -> Notebook:
    """The notebook with outputs, run from top to bottom in an empty folder by this very interpreter."""
    notebook = nbformat.reads(text, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(SETUP))
    with TemporaryDirectory(prefix="unseen-notebook-") as folder, TemporaryDirectory(prefix="unseen-kernel-") as own:
        # Without folders to look in, the manager knows one kernel: that of this interpreter. They talk by files.
        known = KernelSpecManager(kernel_dirs=[])
        manager = AsyncKernelManager(
            kernel_name=NATIVE_KERNEL_NAME,
            kernel_spec_manager=known,
            transport="ipc",
            connection_file=f"{own}/kernel.json",
        )
        client = NotebookClient(notebook, km=manager, timeout=SECONDS, resources={"metadata": {"path": folder}})
        try:
            client.execute(cleanup_kc=True)
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
            raise PluginError(f"notebooks/{name}.ipynb: {plain(str(error))}") from error
    del notebook.cells[0]
    return notebook


def shown(name: str, notebook: Notebook) -> Iterator[Page]:
    """The page of a notebook that was run, and the pictures on it."""
    parts: list[str] = []
    pictures: dict[str, bytes] = {}

    def keep(content: bytes, suffix: str) -> str:
        file = f"{name}-{len(pictures) + 1}.{suffix}"
        pictures[file] = content
        return f"![Made by the cell above]({file}){PAPER}"

    for cell in notebook.cells:
        parts.append(cell.source if cell.cell_type == "markdown" else block("python", cell.source))
        parts += [text for output in cell.get("outputs", ()) if (text := output_text(output, keep))]
    yield Page(f"notebooks/{name}.md", "\n\n".join(parts) + "\n")
    for file, content in pictures.items():
        yield Page(f"notebooks/{file}", content)


Keep = Callable[[bytes, str], str]
"""Takes a picture and its kind, gives the Markdown that shows it."""
Data = Mapping[str, Any]
RICH: Mapping[str, Callable[[str, Keep], str]] = {
    "image/svg+xml": lambda text, keep: keep(text.encode(), "svg"),
    "image/png": lambda text, keep: keep(base64.b64decode(text), "png"),
    "text/html": lambda text, keep: table(text),
    "text/markdown": lambda text, keep: text,
    "text/plain": lambda text, keep: block("text", text),
}
"""What an output may be, the best first, and how it is shown."""


def output_text(output: Data, keep: Keep) -> str:
    """One output as Markdown. What goes to the error stream, progress and warnings, is not shown."""
    if output["output_type"] == "stream":
        return block("text", plain(output["text"])) if output["name"] == "stdout" else ""
    for kind, show in RICH.items():
        if kind in output["data"]:
            return show(output["data"][kind], keep)
    raise PluginError(f"an output of {', '.join(output['data'])}: no way to show it (docs/generate/notebook_pages.py)")


def table(html: str) -> str:
    """A table as the theme draws it: without the style that pandas brings along. Scripts are refused."""
    if "<script" in html:
        raise PluginError("an output has a script, which the page would run: show a table or a picture")
    bare = re.sub(r"<style.*?</style>", "", html, flags=re.DOTALL)
    return re.sub(r"\n\s*\n+", "\n", re.sub(r'<table border="1" class="dataframe">', "<table>", bare)).strip()


def block(language: str, text: str) -> str:
    """A fenced block, with a fence that is not in it."""
    fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", text)), default=0))
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def plain(text: str) -> str:
    """Text without the colours of a terminal."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
