"""`unseen.exam`: a class of one's own from Python, as in a notebook; the command line calls the same function."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from torch import Tensor, nn

import unseen
from unseen.errors import CheckFailed, UsageError
from unseen.exam import exam as battery
from unseen.report.data import Source
from unseen.report.exam_scores import exam_table, read_exam
from unseen.spec import Spec
from unseen.store.merge import merge
from unseen.store.store import Store

FEW = {name: battery.BATTERY[name] for name in ("presence", "sums")}


class Mine(unseen.Adapter):
    """Three lines of a stranger's."""

    def core(self, width: int) -> nn.Module:
        return nn.GRU(width, width, batch_first=True)


class Narrow(nn.Module):
    """Fits tasks with a sequence alone."""

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.answer = nn.Linear(spec.field("sequence").width, 1)

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        answer: Tensor = self.answer(inputs["sequence"].mean(1))
        return answer


@pytest.fixture(autouse=True)
def two_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(battery, "BATTERY", FEW)


def test_a_table_of_abilities_and_a_page(tmp_path: Path) -> None:
    out = tmp_path / "exam"
    found = unseen.exam(Mine, out, scale="smoke", executor="inline", progress="none")
    assert list(zip(found["ability"], found["test"], strict=True)) == [
        ("in-distribution", "presence"),
        ("in-distribution", "sums"),
        ("retrieval", "presence"),
        ("amplitude", "sums"),
    ]
    assert set(found["runs"]) == {1} and (found["chance"] < found["oracle"]).all()
    assert any("specialization needs the activations gating.weights" in note for note in found.attrs["notes"])
    assert found.attrs["page"] == str(out / "report.html") and "exam-abilities" in Path(found.attrs["page"]).read_text()
    other = unseen.model("lstm", width=8)
    with pytest.raises(UsageError, match="holds other work"):
        unseen.exam(other, out, scale="smoke", executor="inline", progress="none")
    theirs = unseen.exam(other, tmp_path / "other", scale="smoke", seeds=[3], executor="inline", progress="none")
    with Store.write(tmp_path / "both") as both:
        for path in (out, tmp_path / "other"):
            with Store.read(path) as store:
                merge(both, store)
    merged = read_exam(Source.read(tmp_path / "both", "smoke"))
    assert merged is not None and len(exam_table(merged)) == len(found) + len(theirs)


@pytest.mark.parametrize(
    ("model", "given", "said"),
    [
        (Narrow, {}, "test 'sums' "),
        ("lstmm", {}, "Did you mean 'lstm'"),
        ("lstm", {"scale": "minni"}, "no scale 'minni'"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_made(
    model: type[nn.Module] | str, given: dict[str, str], said: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=said):
        unseen.exam(model, tmp_path / "out", **given)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


def test_an_exam_of_which_nothing_is_left_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object, **more: object) -> None:
        raise RuntimeError("no memory today")

    monkeypatch.setattr("unseen.running.chunk.Trainer", fail)
    with pytest.raises(CheckFailed, match=r"every run of the exam has failed; `unseen results .* --failures` says why"):
        unseen.exam("lstm", tmp_path / "out", scale="smoke", executor="inline", progress="none")
