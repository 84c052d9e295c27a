"""The report in a real browser: opened from a file with the network blocked, used with mouse and keyboard.

Skipped where there is no Chromium; with UNSEEN_REQUIRE_BROWSER=1, as CI sets it, that is a failure.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from support.blocks import ROOT
from support.rich_store import HOSTILE, VARIANTS, rich
from unseen.report.page import write_page

CHROMIUM = shutil.which("chromium")
REQUIRED = os.environ.get("UNSEEN_REQUIRE_BROWSER") == "1"

try:
    from playwright.sync_api import Browser, Page, expect, sync_playwright
except ImportError:
    if REQUIRED:
        raise
    pytest.skip("Playwright is not installed (pip install 'unseen[dev]')", allow_module_level=True)
if CHROMIUM is None:
    if REQUIRED:
        pytest.fail("no `chromium` on the path, and UNSEEN_REQUIRE_BROWSER is set", pytrace=False)
    pytest.skip("no `chromium` on the path (Debian: apt-get install chromium)", allow_module_level=True)

WIDE, PHONE = {"width": 1400, "height": 900}, {"width": 390, "height": 844}
PATIENCE = 300_000
"""Milliseconds: on a busy machine everything comes late, and nothing here is about time."""
expect.set_options(timeout=PATIENCE)
ROWS = "#runs-table tbody tr[aria-rowindex]"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    return write_page(rich(folder / "store", seeds=20), folder / "report.html")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-background-networking"]
        )
        yield opened
        opened.close()


class Opened:
    """A page, and everything that must not happen on it."""

    def __init__(self, browser: Browser, file: Path, before: str = "", **options: Any) -> None:
        self.context = browser.new_context(**{"viewport": WIDE, **options})
        self.context.set_default_timeout(PATIENCE)
        self.asked: list[str] = []
        self.wrong: list[str] = []
        self.context.route(re.compile("^(?!file:|blob:|data:)"), self._refuse)
        self.page: Page = self.context.new_page()
        self.page.on("console", lambda said: self.wrong.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        if before:
            self.page.add_init_script(before)
        self.page.goto(file.as_uri())

    def _refuse(self, route: Any) -> None:
        self.asked.append(route.request.url)
        route.abort()

    def __enter__(self) -> Page:
        return self.page

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            assert self.wrong == [] and self.asked == []
        self.context.close()


def draw(page: Page, name: str = "seeds") -> Any:
    """Bring a figure into view and wait until it is drawn."""
    chart = page.locator(f'.chart[data-figure="{name}"]')
    page.evaluate("id => document.getElementById(id).scrollIntoView({behavior: 'instant'})", f"figure-{name}")
    page.wait_for_selector(f'.chart[data-figure="{name}"][data-drawn] svg')
    return chart


def ours(page: Page) -> None:
    page.get_by_role("tab", name="For any study").click()


def test_it_opens_offline_and_draws_what_comes_into_view(browser: Browser, file: Path) -> None:
    with Opened(browser, file) as page:
        assert page.title() == "retrieval-table2@2 · Unseen"
        assert page.locator(".chart[data-drawn]").count() == 0  # nothing below the fold has been drawn
        ours(page)
        assert draw(page).locator("svg path").count() > 10
        for name in page.locator("#panel-ours .chart").evaluate_all("all => all.map(one => one.dataset.figure)"):
            draw(page, name)
        assert page.locator(".note", has_text="can't be drawn").count() == 0


def test_names_and_tracebacks_are_text(browser: Browser, file: Path) -> None:
    with Opened(browser, file) as page:
        ours(page)
        draw(page)
        assert page.evaluate("window.hacked") is None and page.locator("img").count() == 0
        page.locator("#failures summary").first.click()
        assert "<script>window.hacked = 1</script>" in page.locator("#failures pre").first.inner_text()
        page.fill("#runs-search", "onerror")
        expect(page.locator(f"{ROWS} td", has_text=HOSTILE).first).to_be_visible()


def test_even_markup_that_got_out_could_not_run(browser: Browser, file: Path) -> None:
    opened = Opened(browser, file)
    assert (
        opened.page.evaluate("""() => {
        const escaped = document.createElement("div");
        document.body.append(escaped);
        escaped.innerHTML = "<button onclick='window.hacked = 2'>x</button><img src='http://example.invalid/x.png'>";
        escaped.firstChild.click();
        return window.hacked; }""")
        is None
    )
    assert opened.asked == []
    assert all("Content Security Policy" in said for said in opened.wrong) and len(opened.wrong) >= 2
    opened.context.close()


def test_claims_can_be_filtered(browser: Browser, file: Path) -> None:
    with Opened(browser, file) as page:
        claims, count = page.locator("#ledger > li:visible"), page.locator("#claim-count")
        everything = page.locator("#ledger > li").count()
        assert page.locator('#ledger > li[data-verdict="not run"]:visible').count() == 0
        page.locator('button.filter[data-verdict="not run"]').click()
        assert claims.count() == everything and count.inner_text() == f"{everything} of {everything} claims"
        for word in page.locator("button.filter").evaluate_all("all => all.map(one => one.dataset.verdict)"):
            if word != "not run":
                page.locator(f'button.filter[data-verdict="{word}"]').click()
        assert set(claims.evaluate_all("all => all.map(one => one.dataset.verdict)")) == {"not run"}
        page.fill("#claim-search", "retrieval/C4 t5")
        assert claims.count() == 1 and "T5" in claims.inner_text()
        page.fill("#claim-search", "no such words")
        assert claims.count() == 0 and page.locator("#claim-none").is_visible()
        page.fill("#claim-search", "")
        page.select_option("#claim-paper", index=1)
        paper = page.locator("#claim-paper").input_value()
        assert set(claims.evaluate_all("all => all.map(one => one.dataset.paper)")) == {paper}
        claims.first.locator("summary").click()
        assert claims.first.locator("table.criteria, p strong").first.is_visible()


def test_verdicts_of_criteria_have_one_shape(browser: Browser, file: Path) -> None:
    with Opened(browser, file) as page:
        shapes = page.evaluate("""() => ['open', 'holds'].map(word => {
            const chip = document.createElement('span');
            chip.className = `chip ${word}`;
            document.querySelector('main').append(chip);
            return [getComputedStyle(chip).display, getComputedStyle(chip).fontSize];
        })""")
        assert shapes[0] == shapes[1] and shapes[0][0] == "inline-flex"


def test_runs_can_be_sorted_searched_and_taken_away(browser: Browser, file: Path) -> None:
    with Opened(browser, file) as page:
        assert page.locator("#runs-count").inner_text() == "200 of 200 runs"
        assert page.locator(ROWS).count() < 80  # only those in view, and some around them
        heading = page.locator("#runs-table th", has=page.get_by_role("button", name="ood/single"))
        position = heading.evaluate("one => one.cellIndex")

        def column() -> list[str]:
            shown = f"rows => rows.slice(0, 20).map(row => row.cells[{position}].textContent)"
            return page.locator(ROWS).evaluate_all(shown)

        for way, backwards in (("ascending", False), ("descending", True)):
            heading.get_by_role("button").click()
            assert heading.get_attribute("aria-sort") == way
            assert column() == sorted(column(), key=float, reverse=backwards) and len(set(column())) > 1
        highest = column()[0]
        page.select_option("#runs-selection", "last")
        assert float(column()[0]) == pytest.approx(float(highest) - 0.05, abs=1e-4)
        page.fill("#runs-search", "t6 T+Pos−Att seed 7")
        expect(page.locator("#runs-count")).to_have_text("1 of 200 runs")
        assert page.locator(ROWS).count() == 1
        with page.expect_download() as waiting:
            page.click("#runs-download")
        lines = Path(waiting.value.path()).read_text().splitlines()
        assert lines[0].startswith("task,variant,seed,status") and len(lines) == 2
        assert lines[1].startswith("retrieval/T6,T+Pos−Att,7,finished")


def test_scrolling_brings_the_other_rows(browser: Browser, file: Path) -> None:
    with Opened(browser, file) as page:
        page.evaluate("document.getElementById('runs-grid').scrollTop = 1e6")
        page.wait_for_selector('#runs-table tr[aria-rowindex="201"]')
        assert page.locator('#runs-table tr[aria-rowindex="2"]').count() == 0
        box = page.locator('#runs-table tr[aria-rowindex="201"]').bounding_box()
        grid = page.locator("#runs-grid").bounding_box()
        assert box is not None and grid is not None and box["y"] + box["height"] <= grid["y"] + grid["height"] + 2


def test_tabs_with_mouse_and_keyboard(browser: Browser, file: Path) -> None:
    with Opened(browser, file) as page:
        tabs = page.get_by_role("tab")
        assert tabs.count() == 2 and page.get_by_role("tabpanel").count() == 1
        first, last = tabs.first, tabs.last
        last.click()
        assert last.get_attribute("aria-selected") == "true" and first.get_attribute("tabindex") == "-1"
        assert page.locator("#panel-ours").is_visible() and page.locator("#panel-retrieval").is_hidden()
        page.keyboard.press("ArrowRight")
        assert first.get_attribute("aria-selected") == "true"
        assert first.evaluate("one => one === document.activeElement")
        assert page.locator("#panel-retrieval").is_visible() and page.locator("#panel-ours").is_hidden()
        page.evaluate("location.hash = '#figure-seeds'")
        page.wait_for_selector("#panel-ours:not([hidden])")


def test_hovering_over_a_run_says_what_it_is(browser: Browser, file: Path) -> None:
    with Opened(browser, file) as page:
        ours(page)
        dot = draw(page).locator(".mark-symbol path, .mark-circle path").first
        dot.hover(force=True)
        tip = page.locator(".tip")
        tip.wait_for(state="visible")
        assert re.search(r"seed\s*\d+", tip.inner_text()) and "img" not in tip.inner_html()


def test_the_data_behind_a_figure(browser: Browser, file: Path) -> None:
    with Opened(browser, file) as page:
        ours(page)
        details = page.locator("#figure-seeds details.data")
        details.locator("summary").click()
        details.locator("tbody tr").first.wait_for()  # filled by an event, which may come later
        assert details.locator("tbody tr").count() > 10
        assert "--figure seeds --out seeds.svg" in details.locator("code").inner_text()
        with page.expect_download() as waiting:
            details.get_by_role("button").click()
        assert waiting.value.suggested_filename == "seeds.csv"
        assert len(Path(waiting.value.path()).read_text().splitlines()) > 10


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(browser: Browser, file: Path, scheme: str) -> None:
    other = {"light": "dark", "dark": "light"}[scheme]
    with Opened(browser, file, color_scheme=scheme) as page:
        ours(page)
        assert draw(page).get_attribute("data-drawn") == scheme
        before = str(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        page.get_by_role("button", name=re.compile("mode")).click()
        expect(page.locator("body")).not_to_have_css("background-color", before)
        page.wait_for_selector(f'.chart[data-figure="seeds"][data-drawn="{other}"]')
        page.reload()
        expect(page.locator("body")).not_to_have_css("background-color", before)  # it is remembered


def test_without_storage_it_works_all_the_same(browser: Browser, file: Path) -> None:
    refuse = "Object.defineProperty(window, 'localStorage', {get() { throw new Error('no storage'); }})"
    with Opened(browser, file, before=refuse) as page:
        page.get_by_role("button", name="Dark mode").click()
        assert page.evaluate("document.documentElement.dataset.paper") == "dark"


@pytest.mark.parametrize("screen", [PHONE, WIDE], ids=["phone", "desk"])
def test_the_page_fits_the_screen(browser: Browser, file: Path, screen: dict[str, int]) -> None:
    with Opened(browser, file, viewport=screen) as page:
        ours(page)
        draw(page)
        for details in page.locator("details").all():
            details.evaluate("one => { one.open = true; }")
        assert page.evaluate("document.documentElement.scrollWidth") <= screen["width"]
        assert page.evaluate("document.body.scrollWidth") <= screen["width"]


def test_everything_can_be_reached_and_has_a_name(browser: Browser, file: Path) -> None:
    with Opened(browser, file) as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the answer"
        tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
        nodes = [
            (node["role"]["value"], (node.get("name") or {}).get("value", ""))
            for node in tree
            if not node.get("ignored") and "role" in node
        ]
        wanted = {"button", "link", "searchbox", "combobox", "tab", "tabpanel", "table", "navigation", "figure"}
        names = {role: [name for found, name in nodes if found == role] for role in wanted}
        for role in ("button", "link", "searchbox", "combobox", "tab", "tabpanel", "navigation", "figure"):
            assert names[role] and all(name.strip() for name in names[role]), role
        assert "Search" in names["searchbox"]
        levels = page.locator("h1, h2, h3, h4").evaluate_all(
            "all => all.filter(one => one.offsetParent).map(one => Number(one.tagName[1]))"
        )
        assert levels[0] == 1 and all(below <= above + 1 for above, below in pairwise(levels))


def test_printed_it_is_whole_and_light(browser: Browser, file: Path) -> None:
    with Opened(browser, file, color_scheme="dark") as page:
        charts = page.locator(".chart").count()
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        expect(page.locator(".chart[data-drawn=light]")).to_have_count(charts)
        assert page.locator("details:not(.data):not(.index):not([open])").count() == 0
        page.emulate_media(media="print")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.locator("#panel-ours").is_visible() and page.locator("#panel-retrieval").is_visible()
        assert page.locator(ROWS).count() == 200 and page.locator("#runs-printed").is_hidden()
        for width in (690, 600):  # A4 between its margins, and between wide ones
            page.set_viewport_size({"width": width, "height": 1000})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.pdf().startswith(b"%PDF")
        page.emulate_media(media="screen")
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.locator("details[open]").count() == 0


def test_variants_have_the_colours_of_every_figure(browser: Browser, file: Path) -> None:
    from unseen.report.theme import MODEL_COLOURS

    with Opened(browser, file) as page:
        ours(page)
        drawn = draw(page).inner_html().lower()
        assert all(MODEL_COLOURS[name].lower() in drawn for name in VARIANTS)


def test_a_wide_table_of_runs_says_that_it_scrolls(browser: Browser, file: Path) -> None:
    with Opened(browser, file, viewport=PHONE) as page:
        more = page.locator("#runs-more")
        expect(more).to_have_text(re.compile(r"Scroll sideways for \d+ more columns →"))
        assert page.locator("#runs-wide").get_attribute("data-more") is not None
        page.locator("#runs-grid").evaluate("grid => { grid.scrollLeft = grid.scrollWidth; }")
        expect(more).to_have_text("← Scroll back for the first columns")
        assert page.locator("#runs-wide").get_attribute("data-more") is None


@pytest.mark.parametrize(("screen", "wide"), [(PHONE, True), (WIDE, False)], ids=["phone", "desk"])
def test_a_wide_figure_says_that_it_scrolls(browser: Browser, file: Path, screen: dict[str, int], wide: bool) -> None:
    """On a phone the dots lie beside the screen: without a word a reader would see names and no data."""
    with Opened(browser, file, viewport=screen) as page:
        ours(page)
        figure = draw(page)
        said = figure.evaluate("chart => getComputedStyle(chart, '::before').content")
        assert ("Scroll sideways" in said) == wide


def test_the_caption_of_a_wide_table_is_readable_on_a_phone(browser: Browser, file: Path) -> None:
    with Opened(browser, file, viewport=PHONE) as page:
        caption = page.locator(".scores caption").first.bounding_box()
        assert caption is not None
        assert caption["x"] >= 0 and caption["x"] + caption["width"] <= PHONE["width"]


def test_no_heading_is_left_alone_at_the_foot_of_a_printed_page(browser: Browser, file: Path) -> None:
    """The outline of the PDF tells where each heading stands, in points above the foot of its page."""
    with Opened(browser, file) as page:
        data = page.pdf(
            format="A4", tagged=True, outline=True, margin=dict.fromkeys(("top", "bottom", "left", "right"), "1.5cm")
        )
    heights = [float(height) for height in re.findall(rb"/Dest \[\d+ 0 R /XYZ [\d.]+ ([\d.]+)", data)]
    assert len(heights) > 15
    # The margin is 42 points; a heading with a line of text below it needs about 40 more.
    assert min(heights) > 82


def test_tables_of_the_site_are_sorted_by_a_click(browser: Browser, tmp_path: Path) -> None:
    """By numbers and by words, the other way at a second click, empty cells last, and with the keyboard."""
    rows = "".join(f"<tr><td>{name}</td><td>{value}</td></tr>" for name, value in CELLS)
    file = tmp_path / "page.html"
    file.write_text(
        f'<div class="sortable"><table><thead><tr><th>model</th><th>mean</th></tr></thead><tbody>{rows}</tbody></table></div>'
        f"<script>{(ROOT / 'docs' / 'sortable.js').read_text()}</script>"
    )
    page = browser.new_page()
    page.goto(file.as_uri())
    names, mean = page.locator("td:first-child"), page.get_by_role("button", name="mean")
    mean.click()
    expect(names).to_have_text(["gru", "lstm", "rnn", "ndr"])
    expect(page.locator("th").nth(1)).to_have_attribute("aria-sort", "ascending")
    mean.click()
    expect(names).to_have_text(["rnn", "lstm", "gru", "ndr"])
    page.get_by_role("button", name="model").press("Enter")
    expect(names).to_have_text(["gru", "lstm", "ndr", "rnn"])
    expect(page.locator("th").nth(1)).to_have_attribute("aria-sort", "none")
    page.close()


CELLS = (("lstm", "9.5"), ("ndr", ""), ("gru", "0.25"), ("rnn", "10.1"))
