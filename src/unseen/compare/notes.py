"""The text beside the numbers of a comparison: what they are, and how the directories differ."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from unseen.compare.compare import Covers, DirectoryPair
from unseen.compare.run_groups import RunDirectory, RunGroup, folds_task_seeds
from unseen.stats import INDICATIVE

_MOST_LISTED = 4
_LONGEST_LIST = 160
_LONGEST_VALUE = 60
_WEIGHTS = {"best": "weights that were best on validation", "last": "last weights"}
_LOSSES = {"loss", "relative_loss"}


def describe_directory(letter: str, directory: RunDirectory) -> str:
    """One line about a directory: its study, scales, progress and versions."""
    ended = directory.ended.drop_duplicates("trial")
    scales = f" {', '.join(directory.scales)}" if any(directory.scales) else ""
    text = f"{directory.title}{scales}; {len(ended)} of {directory.entries['trial'].nunique()} runs ended"
    facts = directory.facts(set(ended["trial"]))
    separator = "; "
    for name in ("unseen", "torch"):
        if name in facts:
            text += f"{separator}{name} {facts[name]}"
            separator = ", "
    return f"{letter}: {directory.name} ({text})"


def describe_changed_trials(pair: DirectoryPair) -> list[str]:
    """The same trial with other numbers: which trials, by how much, and whether versions or machines explain it."""
    shared = pair.shared
    if not shared.changed:
        return []
    facts_a = pair.a.facts(shared.changed)
    facts_b = pair.b.facts(shared.changed)
    other = [name for name in {**facts_a, **facts_b} if facts_a.get(name) != facts_b.get(name) and name != "git_commit"]
    if other:
        explanation = f"they were run with other {', '.join(other)}, where numbers need only agree to rounding"
    else:
        explanation = (
            "versions and machine are the same as far as is known: the promise of equal bits is broken, or the code "
            "was changed without a new version"
        )
    amount = f", by up to {shared.largest:.2g}" if shared.largest == shared.largest else ""
    lines = [
        f"SAME TRIAL, OTHER NUMBERS: {len(shared.changed)} of the {len(shared.changed) + len(shared.identical)} runs "
        f"that A and {pair.letter} both hold ({shared.different_records} numbers{amount}): trials "
        f"{_join_first(sorted(shared.changed))}"
    ]
    for letter, facts in (("A", facts_a), (pair.letter, facts_b)):
        text = ", ".join(f"{name} {value}" for name, value in facts.items())
        lines.append(f"  {letter}: {text or 'no provenance'}")
    lines.append(f"  {explanation}")
    return lines


def describe_comparison(
    table: pd.DataFrame, axes: Sequence[str], pairs: Sequence[DirectoryPair], selection: str
) -> Iterator[str]:
    """The notes below a table: first on the numbers, then on each pair of directories."""
    metrics = dict.fromkeys(table["metric"])
    worse = " (for a loss: worse)" if _LOSSES & {*metrics} else ""
    yield (
        f"{', '.join(metrics)} of the {_WEIGHTS[selection]}; means over the runs compared; a positive difference "
        f"means higher than A{worse}"
    )
    yield from _describe_tests(table, axes)
    for pair in pairs:
        yield from _describe_shared_trials(pair)
        yield from _describe_groups(pair)
        yield from _describe_splits(pair)
        yield from _describe_options(pair)
        facts_a = pair.a.facts(set(pair.a.ended["trial"]))
        facts_b = pair.b.facts(set(pair.b.ended["trial"]))
        for name in dict.fromkeys([*facts_a, *facts_b]):
            if facts_a.get(name) != facts_b.get(name):
                yield f"{name}: {facts_a.get(name, 'not known')} in A, {facts_b.get(name, 'not known')} in {pair.letter}"


def _describe_tests(table: pd.DataFrame, axes: Sequence[str]) -> Iterator[str]:
    """How intervals and p values were computed, and their limits."""
    tested = table[table["low"].notna()]
    if len(tested):
        kinds = tested["test"].map({"paired": "t test of the pairs", "unpaired": "Welch's t test"})
        yield (
            f"intervals: 95 %, Student's t over {_join_alternatives(tested['covers'])}; p: {_join_alternatives(kinds)}, "
            f"two-sided; adjusted: Benjamini–Hochberg over {len(tested)} rows"
        )
    paired = table[table["test"] == "paired"]
    if len(paired):
        several_tasks = paired["covers"].isin([Covers.TASKS.value, Covers.TASKS_ONE_DATA_SET.value]).any()
        key = "task seed, seed and data seed; each task counts once" if several_tasks else "seed and data seed"
        unpaired_runs = bool(paired[["alone_a", "alone_b"]].to_numpy().any())
        yield f"paired by {key}{'; runs without a partner are left out' * unpaired_runs}"
    unpaired = int((table["test"] == "unpaired").sum())
    if unpaired:
        yield f"unpaired in {unpaired} of {len(table)} rows (5+4: runs in each directory): no seed in common"
    if tested["indicative"].any():
        yield f"* indicative: fewer than {INDICATIVE} pairs (or runs in a directory)"
    if (tested["low"] == tested["high"]).any():
        yield "an interval of zero width means that all pairs differ by the same amount, which proves nothing"
    untested = table["low"].isna() & (table["identical"] < table["runs_a"])
    if untested.any():
        yield "no interval and no test below 3 pairs (or 3 runs in each directory)"
    lost = table.drop_duplicates(["pair", "scale_a", "scale_b", *axes])
    if lost["lost_a"].sum() + lost["lost_b"].sum():
        yield (
            f"left out, because they diverged, failed or have no finite number: {lost['lost_a'].sum()} runs of A, "
            f"{lost['lost_b'].sum()} of the others"
        )


def _describe_shared_trials(pair: DirectoryPair) -> Iterator[str]:
    if pair.shared.identical and not pair.shared.changed:
        number = len(pair.shared.identical)
        runs = "the one run" if number == 1 else f"the {number} runs"
        yield f"{runs} that A and {pair.letter} both hold {'is' if number == 1 else 'are'} identical, number by number"
    if pair.shared.unshared_records:
        yield f"{pair.shared.unshared_records} numbers of these runs are in one of A and {pair.letter} only"


def _by_directory(pair: DirectoryPair) -> list[tuple[str, RunDirectory, list[RunGroup]]]:
    """(letter, directory, its matched groups) of both directories."""
    return [
        ("A", pair.a, [group_a for group_a, _ in pair.groups]),
        (pair.letter, pair.b, [group_b for _, group_b in pair.groups]),
    ]


def _describe_groups(pair: DirectoryPair) -> Iterator[str]:
    """Runs whose convergence is unknown, and configurations that only one directory has."""
    for letter, _, groups in _by_directory(pair):
        unknown = set()  # a trial may be in several groups
        for group in groups:
            for run in group.runs:
                if run.status in ("finished", "stopped") and run.not_converged is None:
                    unknown.add(run.trial)
        if unknown:
            yield f"{len(unknown)} runs of {letter} were too short to tell whether they had converged"
    for letter, directory, groups in _by_directory(pair):
        matched = {(group.scale, _describe_levels(group)) for group in groups}
        available = []
        for scale in dict.fromkeys(group.scale for group in groups):
            available += directory.groups(scale, folds_task_seeds(pair.a, pair.b))
        unmatched = []
        for group in available:
            if (group.scale, _describe_levels(group)) not in matched:
                unmatched.append(_describe_levels(group))
        if unmatched:
            listed = _join_first(unmatched, "; ")
            yield f"{len(unmatched)} of {len(available)} configurations are in {letter} only: {listed}"
    if pair.empty:
        yield (
            f"{pair.empty} of {len(pair.groups)} configurations that A and {pair.letter} share are left out: no run has "
            "ended in both directories, or none with the metric"
        )


def _describe_splits(pair: DirectoryPair) -> Iterator[str]:
    """The splits that only one directory was evaluated on."""
    splits = {}
    for letter, directory, groups in _by_directory(pair):
        trials = set()
        for group in groups:
            for run in group.runs:
                trials.add(run.trial)
        splits[letter] = directory.records["split"][directory.records["trial"].isin(trials)].unique().tolist()
    for letter, other in (("A", pair.letter), (pair.letter, "A")):
        unshared = [split for split in splits[letter] if split not in splits[other]]
        if unshared and splits[other]:
            yield f"splits of {letter} only: {_join_first(unshared)}"


def _describe_options(pair: DirectoryPair) -> Iterator[str]:
    """The options that differ between the directories, with the configurations in which they do."""
    differences: dict[str, dict[str, None]] = {}  # text of a difference → configurations, in order
    for group_a, group_b in pair.groups:
        for task_seed in group_a.works.keys() & group_b.works.keys():
            for text in _option_differences(group_a.works[task_seed], group_b.works[task_seed], pair.letter):
                differences.setdefault(text, {})[_describe_levels(group_a)] = None
    total = len({_describe_levels(group_a) for group_a, _ in pair.groups})
    for text, configurations in differences.items():
        if len(configurations) < total:
            listed = _join_first([*configurations], "; ")
            text += f" ({len(configurations)} of {total} configurations: {listed})"
        yield text


def _option_differences(a: Mapping[str, Any], b: Mapping[str, Any], letter: str) -> Iterator[str]:
    """Every option of task, model, recipe and evaluation that differs."""
    for component in ("task", "model", "recipe", "evaluation"):
        options_a = a.get(component, {})
        options_b = b.get(component, {})
        for option in dict.fromkeys([*options_a, *options_b]):
            value_a = _format_value(options_a[option]) if option in options_a else "the default"
            value_b = _format_value(options_b[option]) if option in options_b else "the default"
            absent_in_one = (option in options_a) != (option in options_b)
            if absent_in_one or options_a[option] != options_b[option]:
                name = component if option == "name" else f"{component} {option}"
                yield f"{name}: {value_a} in A, {value_b} in {letter}"


def _describe_levels(group: RunGroup) -> str:
    texts = []
    for axis, level in group.levels.items():
        if level is not None:
            texts.append(f"{level}" if axis in ("task", "model") else f"{axis} {level}")
    return " · ".join(texts)


def _format_value(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


def _join_first(texts: Sequence[str], separator: str = ", ") -> str:
    """The first texts, as many as fit on a line that is still readable, but at least one."""
    count = 1
    while count < min(len(texts), _MOST_LISTED) and len(separator.join(texts[: count + 1])) < _LONGEST_LIST:
        count += 1
    return separator.join(texts[:count]) + (f"{separator}…" if len(texts) > count else "")


def _join_alternatives(texts: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(texts))
