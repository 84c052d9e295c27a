"""The words of docs/glossary.md are used: no identifier, column, option or file name has an old word in its old sense."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import typer.main

import unseen
from unseen.cli.main import app
from unseen.report.data import Source
from unseen.store import schema
from unseen.store.records import TABLES
from unseen.store.store import Store

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "unseen"
OLD_WORDS = {
    "condition": "split",
    "cell": "trial",
    "slice": "chunk",
    "tape": "context",
    "trace": "activations",
    "purity": "determinism",
    "seal": "checksum",
    "blob": "file",
    "crowd": "parallel probe",
    "sink": "tracking",
    "kept": "cache, captured or selected",
    "learning": "converged (as in still_learning)",
    "feed": "batches",
    "wrinkle": "irregularity",
    "place": "configuration",
    "part": "criterion",
    "word": "verdict",
    "fit": "preflight",
    "look": "inspect",
    "flat": "flat_parameters",
    "rate": "timing",
    "cost": "FLOPs",
    "operation": "FLOPs",
    "keep": "capture",
}
# Where an old word is right, because it is not used in its old sense: a regular expression for "file: name", and why.
ALLOWED = {
    r"(tasks/(gcog|svg)|claims/papers/gcog|report/figures/gcog).*: (_?CELLS?|CELL_PIXELS|_CellRequest|CellClasses|(build_)?cell_class(es)?|cells?|cell_of|(all|by|candidate|draw|draw_free|extra|layer)_cells|(objects_in|steps_of)_cell)": "a cell of gcog's grid",
    r"models/layers/positions\.py: cells": "the cells of the grid that tokens with two coordinates lie on",
    r"models/.*: (cell|d_cell|tanh_cell|.*cells|CELLS|Cell|CellName|\w+Cell)": "a recurrent cell (LSTM, GRU, Elman), or its state",
    r"report/figures/\w+\.py: (CELL_WIDTH|LARGEST_CELL|NUMBERED_CELL|cells|_cell_text|(activation|cosine|decoder)_cells|example_of_cell)": "a cell of a heat map",
    r"export/card\.py: cells?": "a cell of a Markdown table",
    r"store/migrate\.py: cells?": "a row of the table `cells` of schema 4, which is what is migrated",
    r"report/charts\.py: condition": "Vega-Lite's word for a value that depends on a test",
    r"report/exam_scores\.py: _learning_level": "the score from which a run counts as having learned the task",
    r"claims/.*: (learning|LEARNING|Learning|_?(check|examine)_learning)": "the measure and level from which a run counts as having learned its task",
    r"models/gcog/blocks\.py: _feed_forward": "the feed-forward layers of a Transformer block",
    r".*: learning_rate.*|.*: .*_learning_rate|columns of runs: recipe.learning_rate": "the learning rate",
    r"models/(layers/router|rules/models)\.py: (router_rate|rate_factors)|training/stack\.py: rate_factors": "factors of the learning rate",
    r".*: trace(back)?": "a traceback",
    r"models/.*: (places|_check_places)": "the option `places` of the backbones: how many positions a table of learned ones has",
    r"models/flops\.py: _baddbmm_in_place_flops": "an operation in place, as torch calls it",
    r"(tasks/gcog/place_objects|report/(verdicts|figures/exam))\.py: place_\w+": "to place, the verb",
    r"cli/export\.py: part|export/(splits|write)\.py: parts": "the parts (train, validation, test) of exported data",
    r"running/progress\.py: parts|tasks/ctl/.*: (parts|equal_part)": "phrases of a line; parts of a whole",
    r"claims/papers/gcog\.py: IN_PART": "a claim that holds in part",
    r"(cli/(complete|latex|option_text|verify)|kit/new|report/layout|tasks/gcog/schema)\.py: (words?|_?WORDS?|_is_word|(are|join)_words)": "a word of a text or command line",
    r"(randomness|tasks/ctl/unranking)\.py: (per_word|words|word_count)": "machine words; words of a formal language",
    r"(stats/moderation|tasks/verify/baselines)\.py: (fit|_fit_prior|_fit_ridge)": "to fit a prior or a baseline to data",
    r"(cli/(compare|output)|tasks/(gcog/generate_clean|retrieval/mapping))\.py: fits?(_table)?": "whether something fits into a space",
    r"claims/.*: .*(?i:looks?)|stats/(coverage|sequential)\.py: (?i:looks?)": "an interim look of a sequential design",
    r"models/.*: looks?": "an attention read of the Perceiver and gcog models",
    r"report/figures/general\.py: _LOOK_INSIDE|tasks/rules/solver\.py: _look_up": "to look inside a model; to look up",
    r".*: flat": "a flattened array",
    r"running/rates\.py: .*(?i:rate)s?": "steps per second, shipped with the package",
    r"(models/layers/norm|training/optimizer|stats/(coverage|resampling)|report/figures/general_comparison)\.py: .*(?i:rate)s?": "an inverse deviation, a learning rate, a share",
    r"analysis/.*: cost": "the cost that an assignment minimises",
    r"(cli/(plan|records)|compare/run_groups|report/sections/costs|running/plan|store/(make_)?records)\.py: (costs?|_COSTS|_cost|_cost_row|CostTable|sum_costs)": "core-hours",
    r"running/flops\.py: (StepCost|step_cost)": "parameters and FLOPs of a step",
    r"(api|running/(chunk|runner))\.py: (keep|Keep|KEEP|_?keep_alive)": "which weights are kept",
    r".*: (keep_home_verdicts|_keep_matched|_keep_levels|keep_memory)|models/rules/.*: keep": "to keep, the verb",
    r"docs/.*: _?cells?": "a cell of a table or notebook",
    r"docs/.*: (WORDS|_?words|_?parts?|_?cost|[Kk]eep)": "the words and parts of a page; core-hours; outputs of a notebook that are kept",
    r"examples/.*: rate": "the rate at which a state decays",
    r"tests: test_(claims|ctl|gcog|rules)_learning": "whether a model learns its task",
    r"(tests|src): (test_(gcog_)?)?(place_objects|step_cost|rates|costs|operation_breakdown|scaling_fit|learning)": "the tests of a module that is allowed above, or its file",
    r"benchmarks/.*: (Operation|operations?|operation_breakdown|scaling_fit|_?rates?|make_rates|rates_of_its_own|_added_in_place|places?|parts?|words?|_BY_WORD)": "what is measured: rates, costs of operations, fits of a line",
    r"analysis/probes\.py: _fit": "to fit a probe, which is a regression",
    r"models/(backbones/linear_recurrent|layers/.*)\.py: (keep_real|make_or_look_up)": "to keep, to look up: the verbs",
    r"models/(backbones/linear_recurrent|layers/linear_recurrence)\.py: (log_|step_)?rate|models/backbones/linear_recurrent\.py: part": "the rate at which a state decays; real and imaginary part",
    r"studies/catalog/quickstart\.py: _LEARNING_RATE": "the learning rate",
    r"tasks/groups/.*: (words?|_word|_solve_words|WordProblem)": "a word over the generators of a group, as algebra calls it",
    r"tasks/rules/solver\.py: look_up": "the rules task's own term for reading a value from another token",
    r"training/device_random\.py: words": "machine words",
    r".*equations\.py: FEED_FORWARD": "the feed-forward layers of a Transformer block",
}


def _words(name: str) -> set[str]:
    """The words of an identifier, in the singular.

    >>> sorted(_words("StillLearning_cells"))
    ['cell', 'learning', 'still']
    """
    pieces = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)
    return {piece.lower().removesuffix("s") for piece in pieces}


def _identifiers(path: Path) -> set[str]:
    """All names that a module binds: functions, classes, parameters, variables, attributes, keywords of its own classes."""
    names = {path.stem}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
    return names


def _old(names: dict[str, set[str]]) -> list[str]:
    """`file: name` of every name with an old word that is not allowed there."""
    found = []
    for where, identifiers in names.items():
        for name in sorted(identifiers):
            entry = f"{where}: {name}"
            if _words(name) & set(OLD_WORDS) and not any(re.fullmatch(pattern, entry) for pattern in ALLOWED):
                found.append(entry)
    return found


def _names_in_modules() -> dict[str, set[str]]:
    """The identifiers of every module of the package, and of the programs beside it."""
    names = {}
    for path in sorted(SOURCE.rglob("*.py")):
        names[str(path.relative_to(SOURCE))] = _identifiers(path)
    for folder in ("benchmarks", "docs", "examples"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            names[str(path.relative_to(ROOT))] = _identifiers(path)
    return names


def _names_of_files() -> dict[str, set[str]]:
    names = {}
    for folder in ("src", "docs", "examples", "tests"):
        files = [path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
        names[folder] = {
            path.stem for path in files if path.suffix in (".py", ".md", ".html", ".yaml", ".json", ".csv")
        }
    return names


def _all_names() -> dict[str, set[str]]:
    return _names_in_modules() | _names_of_files()


def test_no_identifier_or_file_name_uses_an_old_word() -> None:
    names = _names_in_modules()
    assert len(names) > 250
    assert _old(names) == []


def test_no_other_file_uses_an_old_word_in_its_name() -> None:
    names = _names_of_files()
    assert len(names["src"]) > 200
    assert _old(names) == []


def test_no_public_table_has_a_column_with_an_old_word(tmp_path: Path) -> None:
    runs = unseen.train(
        "retrieval/T6",
        "retrieval-transformer",
        seeds=1,
        steps=1,
        batch=2,
        validation_examples=8,
        evaluation=unseen.Evaluation(examples=8),
        out=tmp_path,
        progress="none",
    )
    with Store.read(tmp_path) as store:
        tables = {"entries": store.entries(), "spans": store.spans(), "provenance": store.provenance()}
    tables |= {"records": runs.table, "curves": runs.curves, "trials": runs.trials}
    tables["runs"] = Source.read(tmp_path).runs
    names = {f"columns of {name}": set(table.columns) for name, table in tables.items()}
    for table, columns in TABLES.items():
        names[f"columns of {table} in a records file"] = {table, *columns}
    assert all(len(columns) > 3 for columns in names.values())
    assert _old(names) == []


def test_no_option_of_the_command_line_uses_an_old_word() -> None:
    names = {}
    group = typer.main.get_command(app)
    commands = []
    for command in group.commands.values():  # type: ignore[attr-defined]
        commands += [command, *getattr(command, "commands", {}).values()]
    for command in commands:
        names[f"unseen {command.name}"] = {
            option.lstrip("-") for parameter in command.params for option in parameter.opts
        }
    assert len(names) > 15
    assert _old(names) == []


def test_no_table_or_column_of_a_store_uses_an_old_word() -> None:
    text = (Path(schema.__file__)).read_text(encoding="utf-8")
    tables = re.findall(r"CREATE TABLE (\w+) \((.*?)\)(?: WITHOUT ROWID)?;", text, re.DOTALL)
    names = {
        f"table {table}": {table, *re.findall(r"(\w+) (?:INTEGER|TEXT|REAL)", columns)} for table, columns in tables
    }
    assert len(names) > 5
    assert _old(names) == []


def test_every_exception_is_needed() -> None:
    """An exception that nothing needs any more would let the word return unnoticed."""
    entries = [f"{where}: {name}" for where, identifiers in _all_names().items() for name in identifiers]
    old = [entry for entry in entries if _words(entry.partition(": ")[2]) & set(OLD_WORDS)]
    unused = [pattern for pattern in ALLOWED if not any(re.fullmatch(pattern, entry) for entry in old)]
    assert unused == []


def test_the_test_can_fail() -> None:
    assert _old({"store/store.py": {"cells", "condition_of", "split"}}) == [
        "store/store.py: cells",
        "store/store.py: condition_of",
    ]


def test_no_class_name_exists_twice() -> None:
    modules_of: dict[str, list[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                modules_of.setdefault(node.name, []).append(str(path.relative_to(SOURCE)))
    assert len(modules_of) > 200
    assert {name: modules for name, modules in modules_of.items() if len(modules) > 1} == {}
