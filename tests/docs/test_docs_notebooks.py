"""The notebooks are kept without outputs, and a cell that fails stops the build of the site.

That they run is part of `test_docs_site.py`: the build runs them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
import notebook_pages
import pytest
from mkdocs.exceptions import PluginError

from support.blocks import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_without_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert notebook.cells[0].source.startswith("# ")
    for cell in notebook.cells:
        assert not cell.get("outputs") and cell.get("execution_count") is None, cell.id


def test_both_are_there() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["first-look", "your-model"]


def book(*sources: str) -> str:
    from nbformat.v4 import new_code_cell, new_notebook

    return nbformat.writes(new_notebook(cells=[new_code_cell(source) for source in sources]))


@pytest.mark.slow
def test_outputs_are_shown_and_a_failing_cell_is_an_error() -> None:
    ran = notebook_pages.executed(
        "some",
        book(
            "import sys\nprint(sys.executable)\nprint('as' + 'ide', file=sys.stderr)",
            "import pandas as pd\npd.DataFrame({'a': [1]})",
            "from IPython.display import SVG\nSVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>')",
            "import altair as alt\nalt.Chart(pd.DataFrame({'a': [1]})).mark_point().encode(x='a')",
        ),
    )
    page, *pictures = notebook_pages.shown("some", ran)
    assert f"```text\n{sys.executable}\n```" in page.content and "aside" not in page.content
    assert "<table>" in page.content and "<style" not in page.content
    assert [picture.path for picture in pictures] == ["notebooks/some-1.svg", "notebooks/some-2.svg"]
    assert all(b"<svg" in picture.content for picture in pictures)
    with pytest.raises(PluginError, match="ZeroDivisionError") as caught:
        notebook_pages.executed("wrong", book("x = 0", "1 / x"))
    assert "notebooks/wrong.ipynb" in str(caught.value) and "\x1b" not in str(caught.value)
