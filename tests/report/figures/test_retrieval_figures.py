"""The tables and figures of the retrieval paper, from made-up records of our own studies."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

from support.figure_sources import quick, rendered
from support.made_sources import Key, made
from unseen.claims.papers.retrieval import TABLE2, VARIANTS
from unseen.report.data import Source
from unseen.report.figure import Drawing
from unseen.report.figures import figures
from unseen.report.figures.retrieval import FIGURES
from unseen.studies.trial import Entry

FIGURE = {one.name: one for one in FIGURES}
MEASURES = {
    "T1": ("R1/correct", "R1/wrong", "R9/target"),
    "T2": ("R4/yes/diff",),
    "T3": ("R5/target",),
    "T4": ("R6/favoured", "R6/other", "R6/agreement where the rule errs"),
    "T5": ("R7/positive",),
    "T6": ("R7/positive", "R7/wrong order"),
    "T7": ("R7/positive", "R7/wrong order"),
}
TEST = "ood/single"


def kind(entry: Entry) -> str:
    return entry.trial.task.name.removeprefix("retrieval/")


def score(entry: Entry) -> float:
    """Different for every task, model, length and seed."""
    number = sum(map(ord, entry.trial.model.model_dump_json())) % 17
    return (
        0.6 + 0.02 * int(kind(entry)[1]) + 0.005 * number + 0.001 * entry.trial.seed + 0.0005 * entry.trial.task.length
    )


def numbers(entry: Entry) -> dict[Key, float]:
    found: dict[Key, float] = {("iid", "accuracy"): 0.2, (TEST, "accuracy"): score(entry)}
    found |= {(TEST, name): score(entry) / (2 + place) for place, name in enumerate(MEASURES[kind(entry)])}
    found |= {(TEST, "accuracy", "scenario", name): score(entry) / 2 + 0.1 * (name == "yes") for name in ("yes", "no")}
    if kind(entry) == "T1":
        found |= {
            (TEST, "R2/accuracy", "position", str(place)): 0.9 - 0.01 * place - 0.001 * entry.trial.seed
            for place in range(5)
        }
    return found


def halved(entry: Entry) -> dict[Key, float]:
    """Of the last weights, which nobody asks for here."""
    return {key: value / 2 for key, value in numbers(entry).items()}


@cache
def source(study: str, scale: str, seeds: int = 1) -> Source:
    return made(study, scale, halved, best=numbers, seeds=range(seeds))


def drawn(name: str, source: Source) -> Drawing:
    found = quick(FIGURE[name], source)
    assert found is not None
    return found


def best(source: Source, **chosen: object) -> pd.DataFrame:
    found = source.records[(source.records["selection"] == "best") & (source.records["split"] == TEST)]
    for column, wanted in {"factor": "", **chosen}.items():
        found = found[found[column] == wanted]
    return found


def rows(data: pd.DataFrame, **chosen: object) -> pd.DataFrame:
    for column, wanted in chosen.items():
        data = data[data[column] == wanted]
    return data


def test_every_table_and_figure_of_the_paper_is_there() -> None:
    names = [figure.name for figure in FIGURES]
    assert len(names) == len(set(names))
    assert {f"retrieval/{one}" for one in ("table2", "table3", "figure3")} <= set(names)
    assert all(figure.title and figure.origin and figure.caption for figure in FIGURES)
    assert set(names) == {figure.name for figure in figures(["retrieval"])}


@pytest.mark.parametrize(
    ("study", "scale", "names", "shown"),
    [
        (
            "retrieval-table2",
            "full",
            {"table2", "table3", "positions", "scenarios", "reading", "strategies"},
            {"table3"},
        ),
        (
            "retrieval-table2",
            "smoke",
            {"table2", "positions", "scenarios", "reading", "strategies"},
            {"table2", "positions", "scenarios", "reading", "strategies"},
        ),
        (
            "retrieval-lengths",
            "smoke",
            {"table2", "figure3", "positions", "scenarios", "reading", "strategies"},
            {"figure3"},
        ),
        ("retrieval-noise", "smoke", {"noise"}, {"noise"}),
    ],
)
def test_each_study_has_its_figures(study: str, scale: str, names: set[str], shown: set[str]) -> None:
    """And of each kind one is rendered."""
    drawings = {figure.name.removeprefix("retrieval/"): quick(figure, source(study, scale)) for figure in FIGURES}
    assert {name for name, found in drawings.items() if found is not None} == names
    for name, found in drawings.items():
        if found is not None:
            assert len(found.data) and "runs" in found.data
            assert any(note.startswith("ood/single: ") for note in found.notes)
            assert name not in shown or rendered(found)


@pytest.mark.parametrize("study", ["retrieval-table2", "retrieval-lengths", "retrieval-noise", "gcog-distractors"])
def test_nothing_is_drawn_of_nothing(study: str) -> None:
    empty = made(study, "smoke", numbers, status=lambda entry: "pending", seeds=range(1))
    assert all(figure.draw(empty) is None for figure in FIGURES)


def test_table2_is_the_best_weights_of_every_run_beside_the_printed_numbers() -> None:
    whole = source("retrieval-table2", "full", 3)
    data = drawn("retrieval/table2", whole).data
    for task, printed in TABLE2.items():
        for variant, (value, spread) in zip(VARIANTS, printed, strict=True):
            here = rows(data, task=task, variant=variant)
            expected = best(whole, task=f"retrieval/{task}", variant=variant, metric="accuracy")
            runs = rows(here, what="run")
            assert sorted(runs["value"]) == pytest.approx(sorted(expected["value"])) and len(runs) == 3
            (mean,) = rows(here, what="mean").to_dict("records")
            assert mean["value"] == pytest.approx(expected["value"].mean()) and mean["runs"] == 3
            assert mean["low"] <= mean["value"] <= mean["high"]
            (mark,) = rows(here, what="printed").to_dict("records")
            assert (mark["value"], mark["high"] - mark["value"]) == pytest.approx((value / 100, spread / 100))


def test_printed_numbers_only_at_the_papers_length() -> None:
    drawing = drawn("retrieval/table2", source("retrieval-table2", "smoke"))  # length 5
    assert set(drawing.data["what"]) == {"run", "mean"}
    assert "Sequences of length 5; the paper's numbers, for length 10, are not drawn." in drawing.notes


def test_of_several_lengths_the_table_has_the_papers() -> None:
    data = drawn("retrieval/table2", source("retrieval-lengths", "smoke")).data
    expected = best(source("retrieval-lengths", "smoke"), length=10, metric="accuracy")
    expected = expected[expected["variant"].isin(VARIANTS)]
    runs = rows(data, what="run").set_index("variant")["value"]
    assert runs.to_dict() == pytest.approx(dict(zip(expected["variant"], expected["value"], strict=True)))


def test_table3() -> None:
    whole = source("retrieval-table2", "full", 3)
    data = drawn("retrieval/table3", whole).data
    assert set(data["panel"]) == {
        "T5, answer yes",
        "T6, answer yes",
        "T7, answer yes",
        "T6, wrong order",
        "T7, wrong order",
    }
    expected = best(whole, task="retrieval/T6", variant="T+Pos+Att", metric="R7/wrong order")["value"].mean()
    (mean,) = rows(data, panel="T6, wrong order", variant="T+Pos+Att", what="mean").to_dict("records")
    assert mean["value"] == pytest.approx(expected)
    printed = rows(data, what="printed").set_index(["panel", "variant"])["value"]
    assert len(printed) == 6 and printed["T6, answer yes", "T+Pos+Att"] == -0.14
    assert printed["T7, answer yes", "T−Pos+Att"] == 0.46


def test_lengths() -> None:
    whole = source("retrieval-lengths", "smoke", 3)
    data = drawn("retrieval/figure3", whole).data
    for length in (5, 10):
        expected = best(whole, variant="LSTM+Att", length=length, metric="accuracy")["value"].mean()
        (mean,) = rows(data, task="T1", variant="LSTM+Att", length=length, what="mean").to_dict("records")
        assert mean["value"] == pytest.approx(expected) and mean["runs"] == 3


def test_positions_with_their_correlation() -> None:
    drawing = drawn("retrieval/positions", source("retrieval-table2", "smoke", 3))
    mean = rows(drawing.data, panel="with self-attention", variant="T+Pos+Att", what="mean", position=3.0)
    assert mean["value"].item() == pytest.approx(0.9 - 0.03 - 0.001) and mean["runs"].item() == 3
    place, seed = np.meshgrid(range(5), [0, 1, 2, 0, 1, 2])
    expected = np.corrcoef(place.ravel(), (0.9 - 0.01 * place - 0.001 * seed).ravel())[0, 1]
    assert any(f"with self-attention −{-expected:.2f}, without" in note for note in drawing.notes)


def test_scenarios_and_reading_and_strategies() -> None:
    whole = source("retrieval-table2", "full", 3)
    scenarios = drawn("retrieval/scenarios", whole).data
    expected = best(whole, task="retrieval/T2", variant="T−Pos−Att", factor="scenario", level="yes")["value"].mean()
    (mean,) = rows(scenarios, task="T2", variant="T−Pos−Att", scenario="yes", what="mean").to_dict("records")
    assert mean["value"] == pytest.approx(expected)
    reading = drawn("retrieval/reading", whole).data
    expected = best(whole, task="retrieval/T4", variant="T+Pos−Att", metric="R6/other")["value"].mean()
    (mean,) = rows(reading, panel="T4: on the other feature", variant="T+Pos−Att", what="mean").to_dict("records")
    assert mean["value"] == pytest.approx(expected)
    strategies = drawn("retrieval/strategies", whole).data
    (run,) = rows(strategies, task="T6", variant="T+Pos+Att", seed=2).to_dict("records")
    own = best(whole, task="retrieval/T6", variant="T+Pos+Att", seed=2).set_index("metric")["value"]
    assert (run["strategy"], run["accuracy"]) == pytest.approx((own["R7/positive"], own["accuracy"]))


def test_noise_crosses_positions_and_dropout() -> None:
    whole = source("retrieval-noise", "smoke", 3)
    data = drawn("retrieval/noise", whole).data
    ways = {
        "neither": ("none", "never"),
        "dropout alone": ("none", "always"),
        "positions alone": ("sinusoidal", "never"),
        "positions and dropout": ("sinusoidal", "always"),
    }
    for way, (positions, dropout) in ways.items():
        for attending in (False, True):
            expected = best(
                whole, positions=positions, embed_dropout=dropout, self_attention=attending, metric="accuracy"
            )["value"].mean()
            panel = f"T1, {'with' if attending else 'without'} self-attention"
            (mean,) = rows(data, panel=panel, way=way, what="mean").to_dict("records")
            assert mean["value"] == pytest.approx(expected)


def test_a_partial_study_gives_a_partial_figure_with_its_counts() -> None:
    partial = made(
        "retrieval-table2",
        "smoke",
        halved,
        best=numbers,
        seeds=range(2),
        status=lambda entry: "finished" if entry.trial.seed == 0 and kind(entry) == "T1" else "pending",
        not_converged=lambda entry: int(entry.trial.model.positions == "none"),
    )
    drawing = drawn("retrieval/table2", partial)
    assert set(drawing.data["task"]) == {"T1"} and (rows(drawing.data, what="mean")["runs"] == 1).all()
    assert drawing.notes[:2] == (
        "4 of 16 runs are drawn; 12 have not ended.",
        "Hollow dots: 2 runs had not converged when they ended.",
    )
    assert set(rows(drawing.data, variant="T−Pos+Att", what="run")["state"]) == {"not converged"}
    assert rendered(drawing)
