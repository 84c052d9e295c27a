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
from support.store_builder import build
from unseen.errors import CheckFailed, UsageError
from unseen.report.data import Source
from unseen.report.page import SECTIONS, page, write_page
from unseen.report.sections import glossary
from unseen.store.store import Store

VARIANTS = ["T−Pos−Att", "T+Pos−Att", "T−Pos+Att", "T+Pos+Att"]
HOSTILE = "<img src=x onerror=alert(1)>\"'] + warn('x') + datum['\\\\ {{ 7 * 7 }} {% raw %}"
"""Markup, the end of a text, an expression of Vega's, and a template."""
TRACEBACK = "Traceback\n</script><script>window.hacked = 1</script><!-- ValueError: {{ 7 * 7 }}"


def curve(levels: Any, seed: int) -> dict[tuple[int, str, str], float]:
    return {(step, "iid", "accuracy"): 0.5 + step / 2500 for step in (250, 500, 1000)}


def accuracies(levels: Any, seed: int) -> dict[Any, float]:
    """T+ variants are better, and every run has its own number."""
    good = 0.25 if str(levels.get("variant", "")).startswith("T+") else 0.1
    return {
        ("iid", "accuracy"): 0.7 + good + 0.01 * seed,
        ("ood/single", "accuracy"): 0.6 + good + 0.01 * seed,
        ("iid", "loss"): 0.3,
        ("ood/single", "loss"): 0.4,
    }


def rich(path: Path, seeds: int = 4) -> Path:
    """A store of the catalogue's study with a hostile level, and two runs that failed."""
    build(
        path,
        study="retrieval-table2@1",
        axes={"task": ["retrieval/T1", "retrieval/T6"], "variant": [*VARIANTS, HOSTILE]},
        metrics=accuracies,
        last=lambda levels, seed: {k: v - 0.05 for k, v in accuracies(levels, seed).items()},
        seeds=range(seeds),
        curve=curve,
        not_converged=lambda levels, seed: seed == 3,
        status=lambda levels, seed: "pending" if levels["variant"] == HOSTILE and seed < 2 else "finished",
    )
    with Store.write(path) as store:
        for trial in [trial for trial, status in store.status().items() if status == "pending"][:2]:
            store.fail(trial, f"ValueError: {HOSTILE}", TRACEBACK)
    return path


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
    assert [attributes["id"] for tag, attributes in read.elements if tag == "section"] == list(SECTIONS)
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
    assert (
        f"The study {name} is not in the catalogue of this release" in shown.seen and f"scale {HOSTILE}" in shown.seen
    )
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
        assert glossary.TERMS[word] in told
    assert glossary.TERMS["gating"] not in told


# -- stores in every state --------------------------------------------------------------------------------------------


def seen(path: Path, **options: Any) -> str:
    return Read(page(Source.read(path, **options))).seen


def test_an_empty_store(tmp_path: Path) -> None:
    with Store.write(tmp_path / "s") as store:
        store.claim({"study": "quickstart@1"})
    said = seen(tmp_path / "s")
    assert "This directory holds no runs yet" in said and "Can a Transformer tell" in said
    assert "supported" not in said.split("Glossary")[0].replace("is supported", "")


def test_a_store_whose_runs_are_all_pending(tmp_path: Path) -> None:
    said = seen(
        build(tmp_path / "s", study="quickstart@1", axes={"variant": VARIANTS}, status=lambda levels, seed: "pending")
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
    assert "this study is not in the catalogue of this release" in said


def test_a_study_that_is_not_in_the_catalogue(tmp_path: Path) -> None:
    said = seen(build(tmp_path / "s", study="mine@7", axes={"gating": ["joint", "none"]}))
    assert "mine@7 is not in the catalogue of this release" in said
    assert "Modular has the highest mean accuracy on ood/single" in said or "Monolithic has the highest" in said
    assert "Not known: this study is not in the catalogue" in said


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
    path = build(tmp_path / "s", study="retrieval-table2@1", axes={"variant": VARIANTS}, curve=curve)
    assert "Not drawn" not in seen(path)
    _change(path, "curves")
    found = Read(page(Source.read(path)))
    names = [attributes["data-figure"] for _, attributes in found.elements if attributes.get("class") == "chart"]
    assert "curves" not in names and "seeds" in names
    assert "Not drawn: Learning curves" in found.seen and "in its curves" in found.seen
    assert "All 20 runs at scale mini have ended" in found.seen


def test_claims_that_need_damaged_curves_are_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from unseen.claims import judge
    from unseen.report.verdicts import judge_source

    def judge_tables(records: Any, runs: Any, names: Any, curves: Any) -> list[Any]:
        if "retrieval/C3" in names:
            raise CheckFailed("in its curves")
        return real(records, runs, names, curves)

    source = Source.read(build(tmp_path / "s", axes={"variant": VARIANTS}))
    real = judge.judge_tables
    monkeypatch.setattr(judge, "judge_tables", judge_tables)
    found = judge_source(source)
    assert found.unread == "in its curves"
    names = [one.claim.name for one in found.verdicts]
    assert "retrieval/C1" in names and "retrieval/C3" not in names


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

    from unseen.report import assets

    path = build(tmp_path / "s", seeds=range(3))
    assets._environment.cache_clear()
    assets._vega.cache_clear()
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(UsageError, match=r"pip install 'unseen\[report\]'"):
        write_page(path)
    assert not (path / "report.html").exists()
