"""Figures as files: valid in every format, whole or not there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import pytest

from support.store_builder import build
from unseen.errors import UsageError
from unseen.report import export as saving
from unseen.report.data import Source
from unseen.report.export import save, save_all
from unseen.report.figure import Drawing, Figure
from unseen.report.figures import figures_of
from unseen.report.theme import load_altair

TITLE = 'Is 1 < 2 & "why"?'
DATA = pd.DataFrame({"name": ["a,b", 'say "x"', "<i>"], "value": [0.1, 1 / 3, float("nan")]})
FIGURE = Figure("made/up", TITLE, "ours", "nothing", lambda source: None)


def drawing(rows: int = 3) -> Drawing:
    alt = load_altair()
    shown = DATA if rows == 3 else pd.DataFrame({"name": [f"n{k}" for k in range(rows)], "value": 0.5})
    return Drawing(alt.Chart(shown).mark_point().encode(x="value:Q", y="name:N"), shown)


def test_every_format(tmp_path: Path) -> None:
    files = {kind: save(FIGURE, drawing(), tmp_path / f"x.{kind}") for kind in ("svg", "pdf", "png", "json", "csv")}
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in files.values()}  # nothing half done
    root = ElementTree.parse(files["svg"]).getroot()
    assert root.tag.endswith("svg") and TITLE in "".join(root.itertext())
    pdf = files["pdf"].read_bytes()
    assert pdf.startswith(b"%PDF-") and pdf.rstrip().endswith(b"%%EOF")
    png = files["png"].read_bytes()
    assert png.startswith(b"\x89PNG\r\n\x1a\n") and png.rstrip().endswith(b"IEND\xaeB`\x82")
    chart = json.loads(files["json"].read_text())
    assert chart["title"]["text"] == TITLE and chart["config"]["background"] == "#FFFFFF"
    (held,) = chart["datasets"].values()
    assert [row["name"] for row in held] == DATA["name"].tolist()
    pd.testing.assert_frame_equal(pd.read_csv(files["csv"]), DATA)


def test_png_has_twice_the_pixels(tmp_path: Path) -> None:
    svg = ElementTree.parse(save(FIGURE, drawing(), tmp_path / "x.svg")).getroot()
    png = save(FIGURE, drawing(), tmp_path / "x.png").read_bytes()
    assert int.from_bytes(png[16:20], "big") == pytest.approx(2 * float(svg.attrib["width"]), abs=2)


def test_subtitles_endings_in_capitals_and_many_rows(tmp_path: Path) -> None:
    path = save(FIGURE, drawing(6_000), tmp_path / "x.JSON", subtitle=["one", "two"])
    chart = json.loads(path.read_text())
    assert chart["title"]["subtitle"] == ["one", "two"] and len(next(iter(chart["datasets"].values()))) == 6_000


def test_wrong_use_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"written as \.svg, \.pdf, \.png, \.json, \.csv.*Did you mean '\.svg'"):
        save(FIGURE, drawing(), tmp_path / "x.svgz")
    with pytest.raises(UsageError, match="there is no directory"):
        save(FIGURE, drawing(), tmp_path / "nowhere" / "x.svg")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_file_is_whole_or_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    path = save(FIGURE, drawing(), tmp_path / "x.csv")
    before = path.read_bytes()

    def torn(self: pd.DataFrame, file: Path, **more: Any) -> None:
        file.write_text("half")
        raise error

    monkeypatch.setattr(pd.DataFrame, "to_csv", torn)
    with pytest.raises((UsageError, KeyboardInterrupt)):
        save(FIGURE, drawing(), path)
    assert path.read_bytes() == before and [one.name for one in tmp_path.iterdir()] == ["x.csv"]


def test_all_figures_that_draw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source.read(build(tmp_path / "s", axes={"variant": ["a", "b"]}, seeds=range(3)))
    known = [one for one in figures_of(source) if one.name in ("seeds", "solved", "curves", "activation")]
    monkeypatch.setattr(saving, "figures_of", lambda source: known)
    files = save_all(source, tmp_path / "new" / "folder")
    assert [path.name for path in files] == [
        f"{name}{kind}" for name in ("seeds", "solved") for kind in (".svg", ".pdf", ".png", ".csv")
    ]  # no curves, no weights
    assert all(path.stat().st_size > 100 for path in files)
    read = pd.read_csv(tmp_path / "new" / "folder" / "seeds.csv")
    assert (read.kind == "run").sum() == 6


def test_nothing_to_draw_makes_no_folder(tmp_path: Path) -> None:
    source = Source.read(build(tmp_path / "s", status=lambda levels, seed: "pending"))
    assert save_all(source, tmp_path / "new") == [] and not (tmp_path / "new").exists()
