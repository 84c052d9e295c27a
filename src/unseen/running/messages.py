"""Chunks and outcomes as bytes for workers that share only a disk: safetensors with a JSON header, no pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from unseen.errors import CheckFailed
from unseen.models import options as make_model
from unseen.running.chunk import Chunk, EndedWeights
from unseen.store.schema import Evaluated, Finished, Outcome, Span
from unseen.studies.trial import Trial
from unseen.tasks import task as make_task
from unseen.training.evaluate import Measure
from unseen.training.recipe import Evaluation, Recipe
from unseen.training.trainer import Point

_HEADER = "message"


def pack_chunk(chunk: Chunk) -> bytes:
    """A chunk as bytes. Configs are written by their options, as in a store."""
    binaries: dict[str, bytes] = {}
    if chunk.checkpoint is not None:
        binaries["checkpoint"] = chunk.checkpoint
    weights = None
    if chunk.weights is not None:
        weights = {key: {"status": ended.status, "step": ended.step} for key, ended in chunk.weights.items()}
        for key, ended in chunk.weights.items():
            binaries |= {f"weights/{key}/{selection}": data for selection, data in ended.states.items()}
    trials = [
        {
            "id": trial.id,
            "task": trial.task.options(),
            "model": trial.model.options(),
            "recipe": trial.recipe.options(),
            "evaluation": trial.evaluation.options(),
            "seed": trial.seed,
            "data_seed": trial.data_seed,
        }
        for trial in chunk.trials
    ]
    facts = {
        "ticket": chunk.ticket,
        "trials": trials,
        "seconds": chunk.seconds,
        "keep": chunk.keep,
        "device": chunk.device,
        "evaluations": [evaluation.options() for evaluation in chunk.evaluations],
        "preflight": chunk.preflight,
        "weights": weights,
        "missing": chunk.missing,
        "probe_sizes": chunk.probe_sizes,
    }
    return _pack(facts, binaries)


def unpack_chunk(data: bytes) -> Chunk:
    """The chunk in these bytes. A trial that is another one here (another release, another plug-in) is an error."""
    facts, binaries = _unpack(data)
    trials = []
    for made in facts["trials"]:
        trial = Trial(
            make_task(**made["task"]),
            make_model(**made["model"]),
            Recipe.parse(made["recipe"]),
            Evaluation.parse(made["evaluation"]),
            made["seed"],
            made["data_seed"],
        )
        if trial.id != made["id"]:
            raise CheckFailed(
                f"trial {made['id']} is {trial.id} on this node: it has another release of Unseen, or of a plug-in"
            )
        trials.append(trial)
    weights = None
    if facts["weights"] is not None:
        weights = {
            key: EndedWeights(ended["status"], ended["step"], _below(binaries, f"weights/{key}/"))
            for key, ended in facts["weights"].items()
        }
    return Chunk(
        facts["ticket"],
        tuple(trials),
        binaries.get("checkpoint"),
        facts["seconds"],
        facts["keep"],
        facts["device"],
        tuple(Evaluation.parse(evaluation) for evaluation in facts["evaluations"]),
        None if facts["preflight"] is None else tuple(facts["preflight"]),
        weights,
        tuple(facts["missing"]),
        tuple(facts["probe_sizes"]),
    )


def pack_outcome(outcome: Outcome) -> bytes:
    """An outcome as bytes. Numbers keep every bit: JSON writes floats so that they are read back exactly."""
    binaries: dict[str, bytes] = {}
    if outcome.checkpoint is not None:
        binaries["checkpoint"] = outcome.checkpoint
    finished = None
    if outcome.finished is not None:
        finished = {}
        for key, ended in outcome.finished.items():
            binaries |= {f"weights/{key}/{selection}": data for selection, data in ended.weights.items()}
            finished[key] = {
                "status": ended.status,
                "step": ended.step,
                "best_step": ended.best_step,
                "not_converged": ended.not_converged,
                "note": ended.note,
                "measures": _measures_as_lists(ended.measures),
                "provenance": dict(ended.provenance),
            }
    evaluated = None
    if outcome.evaluated is not None:
        evaluated = {
            key: {"note": e.note, "measures": _measures_as_lists(e.measures), "provenance": dict(e.provenance)}
            for key, e in outcome.evaluated.items()
        }
    facts = {
        "ticket": outcome.ticket,
        "points": [[p.key, p.step, p.split, p.metric, p.value] for p in outcome.points],
        "spans": None if outcome.spans is None else {key: asdict(span) for key, span in outcome.spans.items()},
        "finished": finished,
        "error": outcome.error,
        "seconds": outcome.seconds,
        "preflight": outcome.preflight,
        "evaluated": evaluated,
        "timing": outcome.timing,
    }
    return _pack(facts, binaries)


def unpack_outcome(data: bytes) -> Outcome:
    """The outcome in these bytes."""
    facts, binaries = _unpack(data)
    finished = None
    if facts["finished"] is not None:
        finished = {}
        for key, ended in facts["finished"].items():
            measures = _measures_from_lists(ended.pop("measures"))
            finished[key] = Finished(**ended, measures=measures, weights=_below(binaries, f"weights/{key}/"))
    evaluated = None
    if facts["evaluated"] is not None:
        evaluated = {
            key: Evaluated(e["note"], _measures_from_lists(e["measures"]), e["provenance"])
            for key, e in facts["evaluated"].items()
        }
    spans = None if facts["spans"] is None else {key: Span(**span) for key, span in facts["spans"].items()}
    return Outcome(
        facts["ticket"],
        binaries.get("checkpoint"),
        [Point(*point) for point in facts["points"]],
        spans,
        finished,
        facts["error"],
        facts["seconds"],
        None if facts["preflight"] is None else tuple(facts["preflight"]),
        evaluated,
        facts["timing"],
    )


_Measures = Mapping[str, Mapping[str, Any]]


def _measures_as_lists(measures: _Measures) -> dict[str, dict[str, list[list[Any]]]]:
    """By evaluation and selection, each measure as the list of its values."""
    lists: dict[str, dict[str, list[list[Any]]]] = {}
    for evaluation, by_selection in measures.items():
        lists[evaluation] = {
            selection: [[m.split, m.factor, m.level, m.metric, m.value, m.standard_error, m.n] for m in rows]
            for selection, rows in by_selection.items()
        }
    return lists


def _measures_from_lists(lists: Mapping[str, Mapping[str, list[list[Any]]]]) -> dict[str, dict[str, list[Measure]]]:
    return {
        evaluation: {selection: [Measure(*row) for row in rows] for selection, rows in by_selection.items()}
        for evaluation, by_selection in lists.items()
    }


def _below(binaries: Mapping[str, bytes], prefix: str) -> dict[str, bytes]:
    return {name.removeprefix(prefix): data for name, data in binaries.items() if name.startswith(prefix)}


def _pack(facts: Mapping[str, Any], binaries: Mapping[str, bytes]) -> bytes:
    tensors = {name: np.frombuffer(data, np.uint8) for name, data in binaries.items()}
    return save(tensors, {_HEADER: json.dumps(facts, default=_plain)})


def _unpack(data: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    length = int.from_bytes(data[:8], "little")
    facts = json.loads(json.loads(data[8 : 8 + length])["__metadata__"][_HEADER])
    return facts, {name: tensor.tobytes() for name, tensor in load(data).items()}


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} can't be written as JSON")
