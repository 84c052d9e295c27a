"""Studies in files: YAML and Python say the same, and whatever is wrong is answered with its line."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from unseen.errors import UsageError
from unseen.studies.study import Study, study

ROOT = Path(__file__).parents[2]

YAML = """\
study: order-and-noise
version: 2
question: Does noise help?
seeds: 3
data_seed: 1
claims: [retrieval/C5]
notes: [small]
base:
  task: {name: retrieval/T6, preset: released, length: 5}
  model: {name: retrieval-transformer}
  recipe: {steps: 2000, learning_rate: 1e-3}
axes:
  variant:
    plain: {model: {positions: none}}
    both: {model: {positions: sinusoidal}, recipe: {steps: 4000}}
  task.length: [5, 10]
  task: [retrieval/T1, retrieval/T6]
  model.self_attention: [true, false]
  recipe.batch: [10, 20]
together: [[length, batch]]
without:
  - {variant: plain, length: 10}
  - {task: retrieval/T1, self_attention: [true], variant: both}
scales:
  full:
  smoke: {seeds: [7], minutes: 1.5, base: {recipe: {steps: 100}}, only: {variant: plain, task: [retrieval/T1]}}
"""

PYTHON = """\
from unseen.studies.study import Grid, Study

AXES = {
    "variant": {"plain": {"model": {"positions": "none"}},
                "both": {"model": {"positions": "sinusoidal"}, "recipe": {"steps": 4000}}},
    "length": {n: {"task": {"length": n}} for n in (5, 10)},
    "task": {name: {"task": {"name": name}} for name in ("retrieval/T1", "retrieval/T6")},
    "self_attention": {on: {"model": {"self_attention": on}} for on in (True, False)},
    "batch": {n: {"recipe": {"batch": n}} for n in (10, 20)},
}
SMOKE = {"variant": {"plain": AXES["variant"]["plain"]}, "task": {"retrieval/T1": AXES["task"]["retrieval/T1"]}}


def grids(scale):
    small = scale == "smoke"
    return [Grid(
        axes={**AXES, **SMOKE} if small else AXES,
        base={"task": {"name": "retrieval/T6", "preset": "released", "length": 5},
              "model": {"name": "retrieval-transformer"}, "recipe": {"steps": 100 if small else 2000}},
        seeds=[7] if small else range(3),
        data_seed=1,
        together=[["length", "batch"]],
        without=[{"variant": "plain", "length": 10}] + (
            [] if small else [{"task": "retrieval/T1", "self_attention": True, "variant": "both"}]),
    )]


study = Study("order-and-noise", 2, "Does noise help?", {"smoke": 1.5, "full": None}, grids, ("retrieval/C5",),
              ("small",))
"""


def load(folder: Path, text: str, name: str = "my.yaml") -> Study:
    (folder / name).write_text(text)
    return study(str(folder / name))


def trials(found: Study, scale: str) -> dict[str, dict[str, object]]:
    return {e.trial.id: dict(e.levels) for e in found.entries(scale)}


def test_yaml_and_python_say_the_same(tmp_path: Path) -> None:
    one, other = load(tmp_path, YAML), load(tmp_path, PYTHON, "my.py")
    for field in ("name", "version", "question", "scales", "claims", "notes"):
        assert getattr(one, field) == getattr(other, field)
    assert list(one.scales) == ["smoke", "full"]
    for scale, count in (("full", (2 * 2 * 2 + 2 * 2 * 2 - 2 * 2 - 2) * 3), ("smoke", 2)):
        assert trials(one, scale) == trials(other, scale)
        assert len(trials(one, scale)) == count
        assert [e.levels for e in one.entries(scale)] == [e.levels for e in other.entries(scale)]


def test_levels_keep_the_type_that_yaml_gives_them(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        "study: types\nbase: {task: {name: retrieval/T1}, model: {name: retrieval-transformer}}\n"
        "axes:\n  a:\n    true: {}\n    2.5: {recipe: {clip: 2.5}}\n    no: {recipe: {clip: 3}}\n"
        "  recipe.learning_rate: [1e-3, 1]\n",
    )
    assert [(type(e.levels["a"]), e.levels["learning_rate"]) for e in found.entries("full", [0])] == [
        (kind, rate) for kind in (bool, float, str) for rate in (0.001, 1)
    ]


def test_grids_are_a_union_with_their_own_base(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        """\
study: union
seeds: 1
base: {task: {name: retrieval/T6}, model: {name: retrieval-transformer}}
grids:
  - {axes: {model.width: [20, 30]}}
  - {base: {model: {heads: 2}}, axes: {model.width: [40, 60], task.length: [5]}, without: [{width: 60}]}
scales:
  smoke: {only: {length: 5}}
  mini: {only: {width: 20}}
  full: {}
""",
    )
    assert [dict(e.levels) for e in found.entries("full")] == [{"width": 20}, {"width": 30}, {"width": 40, "length": 5}]
    assert [e.trial.model.heads for e in found.entries("full")] == [1, 1, 2]
    assert [dict(e.levels) for e in found.entries("smoke")] == [dict(e.levels) for e in found.entries("full")]
    assert [dict(e.levels) for e in found.entries("mini")] == [{"width": 20}]


def test_without_scales_there_is_the_full_one_and_five_seeds(tmp_path: Path) -> None:
    found = load(tmp_path, "study: plain\nbase: {task: {name: retrieval/T1}, model: {name: lstm}}\n")
    assert found.scales == {"full": None}
    assert [e.trial.seed for e in found.entries("full")] == [0, 1, 2, 3, 4]


def edited(old: str, new: str) -> str:
    assert YAML.count(old) == 1
    return YAML.replace(old, new)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (edited("seeds: 3", "sedes: 3"), 4, "unknown key 'sedes'. Did you mean 'seeds'?"),
        (edited("seeds: 3", "seeds: 0"), 4, "seeds = 0: expected how many"),
        (edited("seeds: 3", "seeds: [1, 1]"), 4, "expected how many"),
        (edited("version: 2", "version: two"), 2, "version = 'two': expected a whole number"),
        (edited("version: 2", "version: 0"), 1, "versions are 1, 2, 3"),
        (edited("study: order-and-noise", "study: order/noise"), 1, "letters, digits"),
        (edited("data_seed: 1", "data_seed: true"), 5, "data_seed = True: expected a whole number"),
        (edited("claims: [retrieval/C5]", "claims: retrieval/C5"), 6, "claims = 'retrieval/C5': expected a list"),
        (edited("  recipe: {steps: 2000,", "  recepi: {steps: 2000,"), 11, "base: unknown part 'recepi'. Did you mean"),
        (edited("  task: {name: retrieval/T6, preset", "  task: [name]\n  x: {name: x, preset"), 9, "base: task"),
        (
            edited("    both: {model: {positions", "    both: {modle: {positions"),
            15,
            "level 'both': unknown part 'modle'",
        ),
        (edited("  task.length: [5, 10]", "  tusk.length: [5, 10]"), 16, "path of an option.*Did you mean 'task'"),
        (edited("  task.length: [5, 10]", "  task.length: [5, 5]"), 16, "5 is given twice"),
        (edited("  task.length: [5, 10]", "  task.length: [5, null]"), 16, "None is not a word or number"),
        (edited("  task.length: [5, 10]", "  task.length: 5"), 16, "axis 'task.length': expected a list"),
        (edited("  task.length: [5, 10]", "  task.length: []"), 16, "axis 'length' has no levels"),
        (edited("  task.length: [5, 10]", "  evaluation.n: [5, 10]"), 16, "axis 'n': the records have a column"),
        (
            edited("  recipe.batch: [10, 20]", "  task.batch: [1, 2]\n  recipe.batch: [1, 2]"),
            20,
            "'batch' is given twice",
        ),
        (edited("[[length, batch]]", "[[length, bacth]]"), 20, "together: unknown axis 'bacth'. Did you mean 'batch'"),
        (edited("[[length, batch]]", "[length, batch]"), 20, "expected groups of axes"),
        (
            edited("{variant: plain, length: 10}", "{variant: plian, length: 10}"),
            22,
            "no level 'plian'. Did you mean 'pl",
        ),
        (edited("  - {variant: plain, length: 10}", "  - plain"), 21, "without: expected axes and levels"),
        (edited("minutes: 1.5", "minuts: 1.5"), 26, "unknown key 'minuts'. Did you mean 'minutes'?"),
        (edited("minutes: 1.5", "minutes: long"), 26, "minutes = 'long': expected a number"),
        (edited("  smoke: {seeds", "  smok: {seeds"), 26, "unknown key 'smok'. Did you mean 'smoke'"),
        (edited("only: {variant: plain,", "only: {varant: plain,"), 26, "only: unknown axis 'varant'. Did you mean"),
        (
            edited("only: {variant: plain,", "only: {variant: pain,"),
            26,
            "axis 'variant' has no level 'pain'. Did you mean",
        ),
        (edited("seeds: 3", "seeds: 3\nquestion: twice"), 5, "'question' is given twice, first on line 3"),
        (edited("seeds: 3", "seeds: 3\nx: ["), 7, "expected ',' or ']'"),
        (edited("seeds: 3", "seeds: !!python/object/apply:os.getcwd []"), 4, "could not determine a constructor"),
        (edited("seeds: 3", "? [1, 2]\n: 3"), 4, "a key must be a word"),
        (YAML + "grids: []\n", 27, "axes, together and without belong into each"),
        ("version: 1\n", 1, "the study needs a name"),
    ],
)
def test_what_is_wrong_in_a_file_is_answered_with_its_line(tmp_path: Path, text: str, line: int, message: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(str(tmp_path / 'my.yaml'))}, line {line}: .*{message}"):
        load(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (
            edited("    plain: {model: {positions: none}}", "    plain:\n      model:\n        positons: none"),
            16,
            "axis 'variant', level 'plain': model retrieval-transformer: unknown option 'positons'. Did you mean 'pos",
        ),
        (edited("steps: 4000", "steps: -4"), 15, "axis 'variant', level 'both': recipe .*steps = -4"),
        (edited("learning_rate: 1e-3", "learning_rate: fast"), 11, "base: recipe .*learning_rate = 'fast'"),
        (edited("base: {recipe: {steps: 100}}", "base: {recipe: {stpes: 100}}"), 26, "base: recipe .* option 'stpes'"),
        (
            edited("  task: [retrieval/T1, retrieval/T6]", "  task: [retrieval/T1, retrieval/T0]"),
            17,
            "axis 'task', level 'retrieval/T0': unknown task 'retrieval/T0'",
        ),
    ],
)
def test_a_wrong_option_is_answered_with_its_line(tmp_path: Path, text: str, line: int, message: str) -> None:
    found = load(tmp_path, text)
    with pytest.raises(UsageError, match=f"^{re.escape(str(tmp_path / 'my.yaml'))}, line {line}: {message}"):
        for scale in ("full", "smoke"):
            found.entries(scale)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"- a\n- b\n", "expected a mapping"),
        (b"", "expected a mapping"),
        (b"study: \xff\n", "is not UTF-8 text"),
        (b"study: \x00\n", "is not YAML"),
    ],
)
def test_a_file_that_is_no_study_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "my.yaml").write_bytes(content)
    with pytest.raises(UsageError, match=message):
        study(str(tmp_path / "my.yaml"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("study = 5", "must define study = Study.*got int"),
        ("other = 5", "got NoneType"),
        ("raise KeyError('x')", "could not be executed: KeyError: 'x'"),
        ("study = (", "could not be executed: SyntaxError"),
    ],
)
def test_python_that_gives_no_study_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load(tmp_path, text, "my.py")


def test_loading_a_python_study_writes_no_bytecode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (tmp_path / "module_beside_a_study.py").write_text("SEEDS = range(2)\n")
    with pytest.raises(UsageError, match="got range"):
        load(tmp_path, "from module_beside_a_study import SEEDS as study\n", "my.py")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["module_beside_a_study.py", "my.py"]
    assert not sys.dont_write_bytecode, "the setting of the process is restored"


def test_the_example_study_expands() -> None:
    found = study(str(ROOT / "examples" / "my_study.yaml"))
    assert {scale: len(found.entries(scale)) for scale in found.scales} == {"smoke": 2, "full": 5 * 5}


def test_the_studies_of_the_documentation_expand(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "studies.md").read_text()
    (as_yaml,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    (as_python,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    one, other = load(tmp_path, as_yaml), load(tmp_path, as_python, "my.py")
    assert {scale: len(one.entries(scale)) for scale in one.scales} == {"smoke": 2, "full": 20}
    assert {scale: len(other.entries(scale)) for scale in other.scales} == {"smoke": 3, "full": 15}
    # The worked error is that of the study above it, with one option misspelled.
    (complaint,) = re.findall(r"^error: my_study.yaml(, line \d+: .*)$", text, re.MULTILINE)
    assert as_yaml.count("positions: none") == 1
    with pytest.raises(UsageError, match=re.escape(complaint)):
        load(tmp_path, as_yaml.replace("positions: none", "positons: none")).entries("full")


@pytest.mark.parametrize("name", ["study.yaml", "order, noise.yaml"])
def test_an_error_names_its_line_once_whatever_the_file_is_called(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text(edited("  recipe: {steps: 2000,", "  recepi: {steps: 2000,"))
    with pytest.raises(UsageError) as caught:
        study(str(file))
    assert str(caught.value).count(str(file)) == 1
    assert str(caught.value).startswith(f"{file}, line 11: base: unknown part 'recepi'")
