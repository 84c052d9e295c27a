"""What a model is called: registered names, classes, `module:Class`, plug-ins; and what that makes of ids."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
from collections.abc import Iterator
from copy import copy
from importlib import invalidate_caches
from pathlib import Path

import pytest
import torch
from torch import nn

import unseen
from support import users
from unseen.config import Config, digest
from unseen.errors import UsageError
from unseen.models import MODELS, is_ours
from unseen.models.build import build
from unseen.models.foreign import ForeignModel, check_importable, class_of
from unseen.spec import Spec
from unseen.studies.trial import model_config

SPEC = unseen.task("retrieval/T1", length=3).spec


def test_a_class_and_its_text_are_one_model() -> None:
    by_class, by_text = model_config(users.Plain), model_config("support.users:Plain")
    assert by_class == by_text == unseen.model(users.Plain)
    assert hash(by_class) == hash(by_text)
    # As it was before there were texts and options: name, and a digest of the text and of what `super` encloses.
    assert by_class.identity() == {
        "version": 1,
        "name": "support.users:Plain",
        "source": digest([inspect.getsource(users.Plain), "Plain"]),
    }
    assert model_config(by_class) is by_class
    assert not is_ours(by_class.name) and is_ours(model_config("lstm").name)


def test_options_are_part_of_the_identity_unless_they_are_the_defaults() -> None:
    plain = unseen.model("support.users:Optional")
    assert "width" not in plain.identity()
    assert unseen.model("support.users:Optional", width=8) == plain
    wide = unseen.model(users.Optional, width=16)
    assert wide != plain and wide.identity()["width"] == 16
    assert build(wide, SPEC, 0).hidden.weight.shape == (16, 36)
    assert unseen.model("support.users:Adapted", positions="none").options()["positions"] == "none"
    for wrong, said in (({"widht": 3}, "Did you mean 'width'"), ({"width": "x"}, "width = 'x'")):
        with pytest.raises(UsageError, match=said):
            unseen.model(users.Optional, **wrong)
    with pytest.raises(UsageError, match=r"support.users:Plain has no options .* got width"):
        unseen.model(users.Plain, width=3)


def test_the_code_of_bases_counts_within_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "from torch import nn\nclass Base(nn.Module):\n    gain = {}\nclass Derived(Base):\n    pass\n"
    found = []
    monkeypatch.syspath_prepend(str(tmp_path))
    for module, gain in (("based_once", 1), ("based_twice", 2)):
        (tmp_path / f"{module}.py").write_text(text.format(gain))
        found.append(unseen.model(f"{module}:Derived"))
    assert found[0].source != found[1].source  # type: ignore[attr-defined]


def test_another_process_gets_the_name_and_imports_it() -> None:
    wide = unseen.model(users.Optional, width=16)
    assert isinstance(wide, ForeignModel)
    for other in (pickle.loads(pickle.dumps(wide)), copy(wide)):
        assert other == wide and other._cls is None
        assert class_of(other) is users.Optional
        assert build(other, SPEC, 0).hidden.weight.shape == (16, 36)
    changed = pickle.loads(pickle.dumps(wide.model_copy(update={"source": "0" * 16})))
    with pytest.raises(UsageError, match=r"the code of support\.users:Optional is not what it was"):
        class_of(changed)
    with pytest.raises(UsageError, match=r"the code of support\.users:Plain is not what it was"):
        unseen.model("support.users:Plain", source="0" * 16)


def test_the_source_is_the_same_in_every_process() -> None:
    script = "import unseen; print(unseen.model('support.users:Decorated').source, unseen.model('support.users:Adapted').source)"
    said = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=Path(users.__file__).parents[1]
    ).stdout
    assert said.split() == [unseen.model(cls).source for cls in (users.Decorated, users.Adapted)]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no_such_module:Model", "No module named 'no_such_module'. The module must be installed"),
        ("support.users:Plian", r"there is no 'Plian' in .*users\.py\. Did you mean 'Plain'"),
        ("support.users:function", "is a function; expected an nn.Module class"),
        ("support.users:Config", "is the class Config; expected an nn.Module class"),
        ("support.users.Plain", "A class of your own is written module:Class, like support.users:Plain"),
        ("users.py:Plain", "write the module as Python imports it"),
        ("./users:Plain", "write the module as Python imports it"),
        ("support.users:Wrongly", "Options must be a subclass of unseen.config.Config, got the class Wrongly.Options"),
        ("support.users:Taken", "an option can't be called 'source'"),
        ("transfomer", "Did you mean 'transformer'"),
    ],
)
def test_wrong_names_are_answered(name: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        unseen.model(name)


def test_a_module_that_raises_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "raising_models.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UsageError, match="raising_models raised ZeroDivisionError: division by zero"):
        unseen.model("raising_models:Model")


def test_what_is_no_model_is_refused() -> None:
    for wrong, said in (
        (nn.Linear(2, 2), "not an instance"),
        (users.Optional.Options(), r"unseen\.model\(Class"),
        (int, "the class int; expected an nn.Module class"),
        (3, "give a registered name"),
    ):
        with pytest.raises(UsageError, match=said):
            model_config(wrong)  # type: ignore[arg-type]


def test_constructors() -> None:
    for name in ("Plain", "Fixed", "Defaulted", "WithContext", "Optional", "Adapted"):
        module = unseen.build(unseen.model(f"support.users:{name}"), SPEC, seed=1)
        again = unseen.build(unseen.model(f"support.users:{name}"), SPEC, seed=1)
        assert all(torch.equal(a, b) for a, b in zip(module.parameters(), again.parameters(), strict=True))
    for name, said in (
        ("Keyword", "needs spec to be built"),
        ("Reluctant", "needs options, spec, more"),
        ("Crashing", r"can't be built as Crashing\(spec\): ZeroDivisionError: no way"),
    ):
        with pytest.raises(UsageError, match=said):
            unseen.build(unseen.model(f"support.users:{name}"), SPEC)


class Here(nn.Module):
    def forward(self, inputs: users.Inputs) -> torch.Tensor:
        return inputs["query"]


def test_what_other_processes_can_import() -> None:
    class Inside(Here):
        pass

    for fine in (model_config("lstm"), model_config(users.Plain), model_config(Here)):
        check_importable(fine)
    with pytest.raises(UsageError, match=r"can't import .*Inside: .*Put the class into a file .* executor inline"):
        check_importable(model_config(Inside))
    elsewhere = pickle.loads(pickle.dumps(model_config(Here).model_copy(update={"source": "0"})))
    with pytest.raises(UsageError, match="refers to other code"):
        check_importable(elsewhere)
    script = (
        "import unseen, torch\nfrom unseen.models.foreign import check_importable\n"
        "class Net(torch.nn.Module): pass\n"
        "try: check_importable(unseen.model(Net))\nexcept unseen.UsageError as error: print(error)"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "can't import __main__:Net: it is defined in the script or notebook that runs" in said and "mine:Net" in said


@pytest.fixture
def plugged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A distribution on the path, as an installer would leave it, with three models."""
    info = tmp_path / "plugged_models-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged-models\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[unseen.models]\nplugged-plain = support.users:Plain\n"
        "plugged-options = support.users:Optional\nplugged-adapted = support.users:Adapted\n"
        "plugged-function = support.users:function\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(MODELS, "_entries", dict(MODELS._entries))
    monkeypatch.setattr(MODELS, "_plugins_read", False)
    invalidate_caches()
    yield


@pytest.mark.usefixtures("plugged")
def test_plug_ins_are_called_by_their_own_names() -> None:
    plain, wide = unseen.model("plugged-plain"), unseen.model("plugged-options", width=16)
    adapted = unseen.model("plugged-adapted", width=16)
    assert plain.identity() == {
        "version": 1,
        "name": "plugged-plain",
        "source": digest([inspect.getsource(users.Plain), "Plain"]),
    }
    assert wide.identity() == {"version": 1, "name": "plugged-options", "width": 16}
    assert adapted.identity() == {"version": 1, "name": "plugged-adapted", "width": 16}
    for model, kind in ((plain, users.Plain), (wide, users.Optional), (adapted, users.Adapted)):
        assert not is_ours(model.name)
        check_importable(model)
        assert type(build(pickle.loads(pickle.dumps(model)), SPEC, 0)) is kind
    with pytest.raises(UsageError, match="'plugged-function' is a function; expected an nn"):
        unseen.model("plugged-function")


def test_an_option_may_be_anything_json_has() -> None:
    class Listed(nn.Module):
        class Options(Config):
            name: str = "listed"
            sizes: tuple[int, ...] = (1, 2)

        def __init__(self, options: Options, spec: Spec) -> None:
            super().__init__()
            self.sizes = options.sizes

    made = unseen.model(Listed, sizes=[3])
    assert made.identity()["sizes"] == [3]
    assert unseen.build(made, SPEC).sizes == (3,)
