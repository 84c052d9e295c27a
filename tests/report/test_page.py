"""The report as a file: what is in it, for every state a store can be in; and what is never in it."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import sqlite3
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import unseen
from support.rich_store import HOSTILE, TRACEBACK, VARIANTS, curve, rich
from support.store_builder import build
from unseen.errors import CheckFailed, UsageError
from unseen.report.data import Source
from unseen.report.page import SECTIONS, page, write_page
from unseen.report.sections import glossary
from unseen.store.store import Store


class Read(HTMLParser):
    """Elements with their attributes, the text of scripts by id, and what is seen."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self._inside: list[str] = []
        self.seen = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._inside.append(tag)
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        else:
            self.seen += data

    def data(self, name: str = "page-data") -> Any:
        return json.loads(next(text for attributes, text in self.scripts if attributes.get("id") == name))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rich(tmp_path_factory.mktemp("page") / "store")


@pytest.fixture(scope="module")
def text(store: Path) -> str:
    return page(Source.read(store))


@pytest.fixture(scope="module")
def read(text: str) -> Read:
    return Read(text)


def test_the_sections_stand_in_order_and_headings_do_not_skip(read: Read) -> None:
    sections = [attributes["id"] for tag, attributes in read.elements if tag == "section"]
    assert sections == [name for name in SECTIONS if name != "inside"]  # these records have nothing about the inside
    levels = [int(tag[1]) for tag, _ in read.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(below <= above + 1 for above, below in pairwise(levels))
    identities = [attributes["id"] for _, attributes in read.elements if attributes.get("id")]
    assert len(identities) == len(set(identities))
    targets = {attributes["href"] for tag, attributes in read.elements if tag == "a" and attributes.get("href")}
    assert targets <= {f"#{one}" for one in identities}


def test_nothing_is_loaded_from_anywhere(text: str, read: Read) -> None:
    for tag, attributes in read.elements:
        assert tag not in ("link", "iframe", "object", "embed", "base", "form"), tag
        assert "src" not in attributes
        assert not [name for name in attributes if name.startswith("on")]
    assert "@import" not in text and "url(" not in re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)


def test_only_our_own_scripts_may_run(read: Read) -> None:
    policy = next(
        attributes["content"]
        for _, attributes in read.elements
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None and policy.startswith("default-src 'none'; script-src 'sha256-") and "eval" not in policy
    allowed = set(re.findall(r"'sha256-([^']+)'", policy))
    ours = {
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for attributes, text in read.scripts
        if not attributes
    }
    assert allowed <= ours and len(allowed) == 3


def test_names_and_tracebacks_are_shown_not_executed(text: str, read: Read) -> None:
    assert HOSTILE not in text and "<script>window.hacked" not in text
    assert "<!--" not in text and "img" not in {tag for tag, _ in read.elements}
    assert HOSTILE in read.seen and TRACEBACK in read.seen
    kept = [text for attributes, text in read.scripts if attributes.get("type") == "application/json"]
    assert len(kept) > 3 and not any(sign in text for text in kept for sign in "<>&")
    variant = next(one for one in read.data()["table"]["columns"] if one["name"] == "variant")
    assert HOSTILE in variant["levels"]


def test_names_of_studies_and_scales_are_shown_not_executed(tmp_path: Path) -> None:
    name = f"</title></script><script>window.hacked = 1</script>{HOSTILE}@1"
    path = build(tmp_path / "a b'c", study=name, scale=HOSTILE)
    found = page(Source.read(path))
    assert HOSTILE not in found and "<script>window.hacked" not in found
    shown = Read(found)
    assert f"The store does not say what the study {name} asks" in shown.seen and f"scale {HOSTILE}" in shown.seen
    plain = Read(page(Source.read(build(tmp_path / "s"))))
    assert {tag for tag, _ in shown.elements} == {tag for tag, _ in plain.elements}


def test_the_table_of_runs_has_the_numbers_of_the_records(store: Path, read: Read) -> None:
    with Store.read(store) as opened:
        records = opened.records()
    columns = {one["name"]: one for one in read.data()["table"]["columns"]}
    trials = columns["trial"]["values"]
    assert len(trials) == 40 and columns["seed"]["values"].count(3) == 10
    for selection in ("best", "last"):
        for split in ("iid", "ood/single"):
            chosen = records[
                (records.selection == selection) & (records.split == split) & (records.metric == "accuracy")
            ].set_index("trial")["value"]
            shown = dict(zip(trials, columns[split]["values"][selection], strict=True))
            assert {trial: value for trial, value in shown.items() if value is not None} == pytest.approx(
                chosen.round(4).to_dict()
            )
            assert sum(value is None for value in shown.values()) == 4
    status = [columns["status"]["levels"][code] for code in columns["status"]["codes"]]
    assert pd.Series(status).value_counts().to_dict() == {"finished": 36, "failed": 2, "pending": 2}


def test_it_says_how_much_was_run_and_what_is_not_known(read: Read) -> None:
    assert "36 of 40 runs at scale mini have ended" in read.seen
    assert "2 are pending" in read.seen and "2 failed" in read.seen and "10 had not converged" in read.seen
    assert "This study is unfinished" in read.seen
    assert "2 runs: " in read.seen.split("Failures", 2)[2]  # the same failure is told once
    assert "unseen report" in read.seen and "--figure seeds --out seeds.svg" in read.seen
    assert "Deviations from the paper" in read.seen and "learning rate" in read.seen


def test_every_figure_has_its_chart_and_its_data(store: Path, read: Read) -> None:
    names = [attributes["data-figure"] for _, attributes in read.elements if attributes.get("class") == "chart"]
    assert {"seeds", "curves", "splits"} <= set(names)
    for name in names:
        spec, table = read.data(f"spec-{name}"), read.data()["figures"][name]
        assert "$schema" in spec and "config" not in spec and not _addresses(spec)
        assert table["columns"] and len(table["rows"]) == table["all"] > 0
        assert all(len(row) == len(table["columns"]) for row in table["rows"])
    assert set(read.data()["configs"]) == {"light", "dark"}


def _addresses(spec: Any) -> list[Any]:
    """Data that would have to be fetched."""
    if isinstance(spec, dict):
        own = [spec["data"]] if isinstance(spec.get("data"), dict) and "url" in spec["data"] else []
        return own + [found for value in spec.values() for found in _addresses(value)]
    return [found for value in spec for found in _addresses(value)] if isinstance(spec, list) else []


def test_the_same_store_gives_the_same_page(store: Path, text: str) -> None:
    assert page(Source.read(store)) == text


def test_cost_is_the_sum_of_the_spans(store: Path, read: Read) -> None:
    with Store.read(store) as opened:
        spent = opened.spans()
    assert spent["cpu_seconds"].sum() == 36  # a second each, as the builder says
    cost = read.seen.split("CPU per 1 000 steps")[1]
    assert "36.0 s" in cost and "8.0 s" in cost


def test_only_what_differs_between_runs_has_a_column(tmp_path: Path) -> None:
    path = build(tmp_path / "s", axes={"variant": VARIANTS[:2], "width": [32]})
    found = Read(page(Source.read(path)))
    assert [one["name"] for one in found.data()["table"]["columns"]][:3] == ["variant", "seed", "status"]
    assert "width" in found.seen


def test_when_the_store_was_written_is_not_when_it_was_read(tmp_path: Path) -> None:
    path = build(tmp_path / "s")
    for name in ("store.sqlite-wal", "store.sqlite-shm"):  # as a reader that was killed leaves them
        (path / name).touch()
    for name, stamp in (("store.sqlite", 1_000_000_000), ("store.sqlite-wal", 1_100_000_000)):
        os.utime(path / name, (stamp, stamp))
    assert "as it was on 2001-09-09 01:46 UTC" in seen(path)


def test_a_failure_after_the_runs_were_read_is_not_told(tmp_path: Path) -> None:
    path = build(tmp_path / "s", status=lambda levels, seed: "pending")
    source = Source.read(path)
    with Store.write(path) as store:
        store.fail(next(iter(store.status())), "ValueError: late")
    assert "ValueError: late" not in Read(page(source)).seen and "ValueError: late" in seen(path)


def test_a_claim_says_how_much_of_it_was_compared() -> None:
    from unseen.claims.claim import JudgedClaim
    from unseen.claims.criterion import Finding
    from unseen.claims.judge import load_claims
    from unseen.report.verdicts import claim_rows

    (claim,) = load_claims(["retrieval/C1"])
    findings = []
    for number, criterion in enumerate(claim.criteria[:3]):
        findings.append(Finding(criterion, "supported", compared=number > 0))
    whole = JudgedClaim(claim, "supported", "mini", "", tuple(findings[1:]))
    partly = JudgedClaim(claim, "supported", "mini", "", tuple(findings))
    assert claim_rows([partly])[0]["partly"] == "2 of 3 criteria compared"
    assert claim_rows([whole])[0]["partly"] == ""


def test_the_glossary_has_the_words_that_are_used(read: Read) -> None:
    told = read.seen.rpartition("Glossary")[2]
    for word in ("claim", "not converged", "seed", "split", "recipe"):
        assert glossary.MEANINGS[word] in told
    assert glossary.MEANINGS["gating"] not in told


# -- stores in every state --------------------------------------------------------------------------------------------


def seen(path: Path, **options: Any) -> str:
    return Read(page(Source.read(path, **options))).seen


def test_an_empty_store(tmp_path: Path) -> None:
    with Store.write(tmp_path / "s") as store:
        store.set_work({"study": "quickstart@2"})
    said = seen(tmp_path / "s")
    assert "This directory holds no runs yet" in said and "Can a Transformer tell" in said
    assert "supported" not in said.split("Glossary")[0].replace("is supported", "")


def test_a_store_whose_runs_are_all_pending(tmp_path: Path) -> None:
    said = seen(
        build(tmp_path / "s", study="quickstart@2", axes={"variant": VARIANTS}, status=lambda levels, seed: "pending")
    )
    assert "No run has ended yet: all 20 runs at scale mini are pending." in said
    assert "There is nothing to draw yet." in said and "No run has been trained yet." in said
    assert "So no claim is supported and none is contradicted." in said and "judged at" not in said


def test_a_store_that_is_being_written(tmp_path: Path) -> None:
    path = build(
        tmp_path / "s", axes={"variant": VARIANTS[:2]}, status=lambda levels, seed: "pending" if seed else "finished"
    )
    with Store.write(path) as writer:
        writer._db.execute("BEGIN IMMEDIATE")
        writer._db.execute("UPDATE trials SET status = 'failed'")  # not committed: nobody may see it
        said = seen(path)
        writer._db.rollback()
    assert "2 of 10 runs at scale mini have ended" in said and "8 are pending" in said and "failed:" not in said


def test_what_train_left(tmp_path: Path) -> None:
    said = seen(build(tmp_path / "s", study=None, curve=curve))
    assert "All 5 runs have ended" in said and "How well does retrieval-transformer solve retrieval/T6?" in said
    assert "the store does not say, and the study is not in the catalogue of this release" in said


def test_a_study_that_is_not_in_the_catalogue(tmp_path: Path) -> None:
    said = seen(build(tmp_path / "s", study="mine@7", axes={"gating": ["joint", "none"]}))
    assert "The store does not say what the study mine@7 asks" in said
    assert "The mean accuracy on ood/single is 0.820" in said
    assert "Not known: the store does not say" in said


def test_a_version_that_this_release_does_not_have(tmp_path: Path) -> None:
    assert "is not in the catalogue of this release" in seen(build(tmp_path / "s", study="quickstart@99"))


def test_one_scale_at_a_time(tmp_path: Path) -> None:
    path = build(tmp_path / "s", axes={"variant": VARIANTS[:2]}, scale="smoke")
    assert "at scale smoke" in seen(path, scale="smoke")
    with pytest.raises(UsageError, match="holds nothing at scale 'full'; it holds smoke"):
        write_page(path, scale="full")


def _change(path: Path, table: str) -> None:
    """Numbers that are not those which were written."""
    with sqlite3.connect(path / "store.sqlite") as database:
        database.execute(f"UPDATE {table} SET value = value + 0.001")


def test_damaged_records_are_an_error_and_nothing_is_written(tmp_path: Path) -> None:
    path = build(tmp_path / "s", axes={"variant": VARIANTS[:2]})
    write_page(path, tmp_path / "old.html")
    before = (tmp_path / "old.html").read_bytes()
    _change(path, "records")
    for name in ("old.html", "new.html"):
        with pytest.raises(CheckFailed, match="damaged"):
            write_page(path, tmp_path / name)
    assert (tmp_path / "old.html").read_bytes() == before
    assert sorted(one.name for one in tmp_path.iterdir()) == ["old.html", "s"]


def test_damaged_provenance_is_an_error_too(tmp_path: Path) -> None:
    path = build(tmp_path / "s")
    with sqlite3.connect(path / "store.sqlite") as database:
        database.execute("UPDATE provenance SET facts = '{'")
    with pytest.raises(CheckFailed, match="damaged"):
        write_page(path)
    assert not (path / "report.html").exists()


def test_damaged_curves_cost_what_is_made_from_them_and_nothing_else(tmp_path: Path) -> None:
    path = build(tmp_path / "s", study="retrieval-table2@2", axes={"variant": VARIANTS}, curve=curve)
    assert "Not drawn" not in seen(path)
    _change(path, "curves")
    found = Read(page(Source.read(path)))
    names = [attributes["data-figure"] for _, attributes in found.elements if attributes.get("class") == "chart"]
    assert "curves" not in names and "seeds" in names
    assert "Not drawn: Learning curves" in found.seen and "in its curves" in found.seen
    assert "All 20 runs at scale mini have ended" in found.seen


def test_claims_that_need_damaged_curves_are_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from unseen.claims import judge_studies
    from unseen.report.verdicts import judge_source

    def judge_tables(records: Any, runs: Any, names: Any, curves: Any, **options: Any) -> list[Any]:
        if not names or "retrieval/C3" in names:
            raise CheckFailed("in its curves")
        return real(records, runs, names, curves, **options)

    source = Source.read(build(tmp_path / "s", axes={"variant": VARIANTS}))
    real = judge_studies.judge_tables
    monkeypatch.setattr(judge_studies, "judge_tables", judge_tables)
    found = judge_source(source)
    assert found.unread == "in its curves"
    names = [one.claim.name for one in found.verdicts]
    assert "retrieval/C5" in names and "retrieval/C3" not in names


def test_claims_are_judged_as_the_command_judges_them(tmp_path: Path) -> None:
    """The mode and the claims that a store registered count on its page, too: progress, and no estimate."""
    from unseen.claims.judge_studies import judge_store
    from unseen.report.verdicts import judge_source

    path = build(tmp_path / "s", axes={"variant": VARIANTS}, started="2026-12-01T00:00:00+00:00")
    own = {"claim": "mine", "statement": "All is well here.", "split": "iid"}
    criteria = {"headline": [{"above": 0.5, "runs": {"variant": VARIANTS[0]}}]}
    with Store.write(path) as store:
        store.remember("mode", {"name": "fixed", "units": 9})
        registration = {"study": "made-up", "axes": ["variant"], "weights": "best", "hashes": {}}
        store.remember("claims", {**registration, "claims": [own | criteria]})
    found = judge_source(Source.read(path)).verdicts
    by_command = {judged.claim.name: judged.verdict for judged in judge_store(path).verdicts}
    assert {judged.claim.name: judged.verdict for judged in found}.items() <= by_command.items()
    progress = [judged for judged in found if judged.verdict == "in progress"]
    assert "made-up/mine" in [judged.claim.name for judged in progress]
    assert all(finding.estimate is None for judged in progress for finding in judged.findings)
    assert not any(judged.verdict in ("supported", "contradicted", "mixed") for judged in found)
    read = Read(page(Source.read(path)))
    assert "5 of 9 seeds complete" in read.seen and "All is well here." in read.seen


# -- the file ---------------------------------------------------------------------------------------------------------


def test_where_it_is_written(tmp_path: Path) -> None:
    path = build(tmp_path / "s", seeds=range(3))
    assert unseen.report(path) == path / "report.html"
    assert unseen.report(path, tmp_path / "my page.html").read_bytes() == (path / "report.html").read_bytes()
    with Store.write(path):  # a page in its folder does not make it another's
        pass
    with pytest.raises(UsageError, match="is a directory"):
        unseen.report(path, tmp_path)
    with pytest.raises(UsageError, match="there is no directory"):
        unseen.report(path, tmp_path / "no" / "page.html")
    with pytest.raises(UsageError, match="holds no results"):
        unseen.report(tmp_path)


@pytest.mark.parametrize("missing", ["altair", "jinja2", "vl_convert"])
def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, missing: str) -> None:
    import sys

    from unseen.report import html_assets

    path = build(tmp_path / "s", seeds=range(3))
    html_assets._environment.cache_clear()
    html_assets._vega.cache_clear()
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(UsageError, match=r"pip install 'unseen\[report\]'"):
        write_page(path)
    assert not (path / "report.html").exists()


def test_claims_that_the_runs_say_nothing_about_are_counted_and_come_after_the_figures(tmp_path: Path) -> None:
    """A user's own study used to show 18 foreign claims "not run" before its figures."""
    text = page(Source.read(build(tmp_path / "own", axes={"positions": ["none", "sinusoidal"]}, curve=curve)))
    assert text.index('<section id="figures"') < text.index('<section id="claims"')
    assert text.index('href="#figures"') < text.index('href="#claims"')
    assert 'class="claim"' not in text
    assert re.search(r"could be judged from these runs; \d+ claims about such tasks need other ones", text)
    judged = page(Source.read(build(tmp_path / "variants", axes={"variant": VARIANTS}, curve=curve)))
    assert judged.index('<section id="claims"') < judged.index('<section id="figures"')
    assert 'class="claim"' in judged and 'data-verdict="not run"' not in judged


def test_the_answer_has_a_table_beside_chance_shortcut_and_oracle(tmp_path: Path) -> None:
    text = page(Source.read(build(tmp_path / "s", axes={"variant": VARIANTS})))
    table = text[text.index('<table class="scores">') : text.index("</table>", text.index('<table class="scores">'))]
    assert all(variant in table for variant in VARIANTS)
    assert "weights best on validation" in table and table.count("<tr") == 1 + len(VARIANTS)
    assert "0.500" in table and "1.000" in table and "position of" in table


def test_the_table_of_the_answer_has_no_empty_column(tmp_path: Path) -> None:
    """An own study that measures one split out of distribution had an empty column `in distribution`."""

    def header(name: str, **options: Any) -> str:
        text = page(Source.read(build(tmp_path / name, axes={"variant": VARIANTS}, **options)))
        return text[text.index('<table class="scores">') : text.index("</thead>")]

    assert "in distribution" in header("both") and "best shortcut" in header("both")
    only_ood = {("ood/single", "accuracy"): 0.8}
    assert "in distribution" not in header("one", metrics=lambda levels, seed: only_ood)
    assert "best shortcut" not in header("T1", task=lambda levels: unseen.task("retrieval/T1", length=5))


def test_a_run_of_which_it_is_not_known_whether_it_converged_says_so(tmp_path: Path) -> None:
    """The cell used to be empty, like that of a run that has not ended."""
    store = build(tmp_path / "s", seeds=[0], not_converged=lambda levels, seed: None)
    columns = {one["name"]: one for one in Read(page(Source.read(store))).data()["table"]["columns"]}
    assert columns["not converged"]["levels"] == ["unknown"]


def test_a_figure_of_few_panels_is_wide_enough_to_read(tmp_path: Path) -> None:
    """Paper-style figures of one task had about 150 pixels of plot on a page of 1 000."""
    path = build(tmp_path / "s", axes={"variant": VARIANTS}, curve=curve)
    text = page(Source.read(path))
    spec = json.loads(re.search(r'id="spec-retrieval-table2">(.*?)</script>', text, re.DOTALL)[1])  # type: ignore[index]
    widths = [panel["width"] for panel in spec["concat"]]
    assert len(widths) == 1 and widths[0] >= 400


def test_a_note_stands_open_under_the_first_figure_that_needs_it(text: str) -> None:
    """Every figure repeated the notes of all others; those that stand above are folded."""
    note = re.compile("<li>(.*?)</li>")
    folded = re.compile(r"<details><summary>\d+ (?:more )?notes?(?:, as above)?</summary>(.*?)</details>", re.DOTALL)
    panels = re.findall(r'<div class="panel".*?(?=<div class="panel"|<section)', text, re.DOTALL)
    again = 0
    for panel in panels:
        lists = re.findall(r'<ul class="notes">.*?</ul>', folded.sub("", panel), re.DOTALL)
        opened = [said for one in lists for said in note.findall(one)]
        assert opened and len(opened) == len(set(opened))
        again += sum(said in opened for one in folded.findall(panel) for said in note.findall(one))
    assert again > len(panels)
