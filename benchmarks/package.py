"""What the design asks of the package as a whole: claims decided, the demo, its size, and the gates for a GPU."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

from benchmarks.rows import Asked, Row
from unseen.api import claims
from unseen.claims.judge_studies import judge_store

ROOT = Path(__file__).parents[1]
DECIDED = ("supported", "mixed", "contradicted")
GATES = {
    "torch.compile(fullgraph=True), eager": ("tests/models/test_compile.py", "traced_whole"),
    "host reads in a training step": ("tests/training/test_device_steps.py", "step_reads_nothing or no_numbers"),
}
"""Files of tests and which of them: each is a gate for every registered model."""
_WALK = """
import sys
files = set()

def enter(frame, event, argument):
    code = frame.f_code
    if event == "call" and "/unseen/" in code.co_filename and code.co_name != "<module>":
        files.add(code.co_filename)
        if code.co_qualname == "StackOptimizer.step":
            print(len(files))
            sys.stdout.flush()
            import os
            os._exit(0)

import unseen
sys.setprofile(enter)
task = unseen.task("retrieval/T1", length=5, train_size=500, evaluation_size=300)
unseen.train(task, "retrieval-transformer", steps=1, batch=10, progress="none")
"""


def package(asked: Asked) -> Iterator[Row]:
    """Shares, seconds, lines and tests that fail, each measured in this run."""
    if asked.wants("claims of the papers"):
        verdicts = claims().drop_duplicates("claim").verdict
        share = float(verdicts.isin(DECIDED).mean())
        yield Row(
            "claims of the papers", "decided by the shipped records", share, "", "more", note=f"of {len(verdicts)}"
        )
    if asked.wants("source"):
        sources = (ROOT / "src" / "unseen").rglob("*.py")
        lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in sources)
        yield Row("source", "lines", float(lines), "lines", "less")
        walked = subprocess.run([sys.executable, "-c", _WALK], capture_output=True, text=True, check=True).stdout
        yield Row("source", "files that a small train passes through", float(walked), "files", "less")
    for case, (file, chosen) in GATES.items():
        if asked.wants(case):
            yield from _gate(case, file, f"({chosen}) and lstm" if asked.quick else chosen)
    if asked.wants("demo") and not asked.quick:
        yield from _demo()


def _gate(case: str, file: str, chosen: str) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="unseen-") as folder:
        report = Path(folder, "report.xml")
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", file, "-k", chosen, f"--junitxml={report}"]
        subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
        suites = ElementTree.parse(report).getroot()
    tests = sum(int(suite.attrib["tests"]) for suite in suites)
    failed = sum(int(suite.attrib[kind]) for suite in suites for kind in ("failures", "errors", "skipped"))
    yield Row(case, "tests", float(tests), "tests")
    yield Row(case, "tests failed or skipped", float(failed if tests else 1), "tests", "less")


def _demo() -> Iterator[Row]:
    """`make demo` in an environment that is installed already."""
    with tempfile.TemporaryDirectory(prefix="unseen-") as folder:
        began = time.perf_counter()
        command = [sys.executable, str(ROOT / "examples" / "quickstart.py"), "--out", folder]
        subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
        yield Row("demo", "time", (time.perf_counter() - began) / 60, "min", "less")
        verdicts = [judged.verdict for judged in judge_store(Path(folder)).verdicts]
        decided = sum(verdict in DECIDED for verdict in verdicts) / max(1, len(verdicts))
        yield Row("demo", "claims decided", decided, "", "more", note=f"of {len(verdicts)}")
