"""`unseen new claim`: a commented file of claims about a study, filled in with its axes and levels."""

from __future__ import annotations

import json
import os
import re
from importlib.resources import files
from pathlib import Path
from string import Template

from unseen.claims.user_claims import read_claims
from unseen.errors import UsageError
from unseen.files import check_writable, write_atomically
from unseen.names import find_ood
from unseen.studies.grid import Level
from unseen.studies.study import Study
from unseen.studies.study import study as find_study

DEFAULT_STUDY = "quickstart"
"""The study of a new claim, unless another is named."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_/-]*")
_NOT_TEXT = ("true", "false", "null", "yes", "no", "on", "off", "y", "n")
"""Words that some YAML parsers take for a boolean or for nothing."""
_COMPARISON = """\
      - better: {$axis: $first}
        than: {$axis: $second}
        by: 0.02               # by more than this"""
_BOUND = "      - above: 0.6\n        runs: {$axis: $first}"


def write_claim(name: str, study_name: str = DEFAULT_STUDY, out: Path | None = None) -> Path:
    """Write a claim about a study into a new file (default: NAME.yaml, here)."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"claim '{name}': call a claim by letters, digits, - and _")
    file = Path(f"{name}.yaml") if out is None else out
    if file.suffix not in (".yaml", ".yml"):
        raise UsageError(f"{file}: a claim is written as YAML; end the file in .yaml")
    check_writable(file)
    if os.path.lexists(file):
        raise UsageError(f"{file} exists; give another --out")
    study = find_study(study_name)
    write_atomically(file, fill_template(name, study, file))
    read_claims(file, list(_find_axes(study)))
    return file


def fill_template(name: str, study: Study, file: Path) -> str:
    """The text of a new file of claims."""
    axes = _find_axes(study)
    # The comparison is along the first axis that has something to compare.
    axis = next((axis for axis, levels in axes.items() if len(levels) > 1), next(iter(axes)))
    first, *others = map(_format_level, axes[axis])
    headline = _COMPARISON if others else _BOUND
    compared = f"is better than {others[0]}" if others else "is above 0.6"
    listed = []
    for other_axis, levels in axes.items():
        listed.append(f"#     {other_axis}: {', '.join(map(_format_level, levels))}")
    text = (files("unseen.kit") / "templates" / "claim" / "claims.yaml.template").read_text(encoding="utf-8")
    return Template(text).substitute(
        study=study.name,
        file=file,
        axes="\n".join(listed),
        name=name,
        statement=json.dumps(f"In {axis}, {first} {compared}.", ensure_ascii=False),
        split=_find_split(study),
        headline=Template(headline).substitute(axis=axis, first=first, second=others[0] if others else ""),
        runs=f"{axis}: {first}",
    )


def _find_axes(study: Study) -> dict[str, list[Level]]:
    """The axes of a study at its default scale and their levels; of a study without axes, its task."""
    axes: dict[str, dict[Level, None]] = {}  # ordered sets
    entries = study.entries(study.default_scale)
    for entry in entries:
        for axis, level in entry.levels.items():
            axes.setdefault(axis, {})[level] = None
    if not axes:
        return {"task": [entries[0].trial.task.identity()["name"]]}
    return {axis: list(levels) for axis, levels in axes.items()}


def _find_split(study: Study) -> str:
    """The first split out of distribution that the study is tested on, or else its last split."""
    trial = study.entries(study.default_scale)[0].trial
    splits = list(trial.evaluation.splits or trial.task.splits)
    return find_ood(splits) or splits[-1]


def _format_level(level: Level) -> str:
    """A level as YAML has it: texts that could be read as something else are quoted."""
    if isinstance(level, str) and _PLAIN.fullmatch(level) and level.lower() not in _NOT_TEXT:
        return level
    return json.dumps(level, ensure_ascii=False)
