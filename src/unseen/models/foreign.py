"""Models of a user's own: any `nn.Module` class, given as such, as the text `module:Class`, or by an entry point."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from importlib import import_module
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, PrivateAttr

from unseen.config import Config, digest
from unseen.errors import UsageError, nearest
from unseen.models import MODELS
from unseen.spec import Spec

if TYPE_CHECKING:  # to describe a model is not to load torch
    from torch import nn

_TAKEN = ("version", "source")
"""What an id says of every such model beside its name; no option may be called so."""


class ForeignModel(Config):
    """A user's class, known by its place and what its code does; beside them its options that are not the defaults.

    Where the class itself was given it is kept, so that one of a notebook works; a copy, another process or a record
    has the name alone and imports it.
    """

    model_config = ConfigDict(extra="allow")

    name: str
    source: str
    _cls: type[nn.Module] | None = PrivateAttr(None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ForeignModel) and self.model_dump() == other.model_dump()

    def __hash__(self) -> int:
        return hash((self.name, self.source))

    def __getstate__(self) -> dict[Any, Any]:
        return {**super().__getstate__(), "__pydantic_private__": {"_cls": None}}


def foreign(name: str, cls: type[nn.Module], **given: Any) -> ForeignModel:
    """The config of a class that is called by this name; `source`, if given, is what its code was when it was kept."""
    _checked(name, cls)
    stored = given.pop("source", None)
    taken = [option for option in own_options(cls).model_fields if option in _TAKEN]
    if taken:
        raise UsageError(f"{name}: an option can't be called '{taken[0]}'; every model has one of that name")
    chosen = _parsed(name, cls, given).options()
    found = ForeignModel(name=name, source=_source(cls), **{k: v for k, v in chosen.items() if k != "name"})
    found._cls = cls
    _check_source(found, found.source if stored is None else stored)
    return found


def class_of(model: ForeignModel) -> type[nn.Module]:
    """The class behind a config: the one it was made from, or else the one that its name stands for here."""
    if model._cls is None:
        cls = named(model.name)
        _check_source(model, _source(cls))
        model._cls = cls
    return model._cls


def named(name: str) -> type[nn.Module]:
    """The class of a registered model, or of `module:Class`, which is imported."""
    if ":" not in name:
        if "." in name and name not in MODELS:
            likely = ":".join(name.rsplit(".", 1))
            raise UsageError(f"unknown model '{name}'. A class of your own is written module:Class, like {likely}")
        return _checked(name, MODELS.load(name))
    module, _, place = name.partition(":")
    if module.endswith(".py") or "/" in module:
        raise UsageError(f"model '{name}': write the module as Python imports it, like mine:Model")
    try:
        found = import_module(module)
    except ImportError as error:
        raise UsageError(
            f"model '{name}' can't be imported: {error}. The module must be installed, or lie in the "
            "directory the command is run from"
        ) from error
    except Exception as error:
        raise UsageError(f"model '{name}' can't be imported: {module} raised {_said(error)}") from error
    for part in place.split("."):
        if not hasattr(found, part):
            where = getattr(found, "__file__", None) or module
            raise UsageError(f"model '{name}': there is no '{part}' in {where}. {nearest(part, _classes(found))}")
        found = getattr(found, part)
    return _checked(name, found)


def own_options(cls: type[nn.Module]) -> type[Config]:
    """The options that may be set of a class: those of its nested `Options`; without one, none."""
    return getattr(cls, "Options", Config)


def is_foreign(model: Config) -> bool:
    """Whether a model is none of this package's own: a user's class, or a plug-in."""
    return isinstance(model, ForeignModel) or not MODELS.entry(model.name).target.startswith("unseen.")


def check_importable(model: Config) -> None:
    """Refuse a class that no other process could import by its name."""
    if not isinstance(model, ForeignModel):
        return
    module, _, place = model.name.partition(":")
    try:
        reason = (
            f"it is defined in the script or notebook that runs ({module})"
            if module == "__main__"
            else ("" if _source(named(model.name)) == model.source else "its name stands for other code")
        )
    except UsageError as error:
        reason = str(error)
    if reason:
        short = place.rpartition(".")[2]
        raise UsageError(
            f"worker processes can't import {model.name}: {reason}. Put the class into a file of its own, "
            f"like mine.py, and import it from there (mine:{short}), or use the executor inline"
        )


def maker(model: ForeignModel, spec: Spec) -> Callable[[], nn.Module]:
    """What makes a module: `cls(options, spec)` of a class with options, else `cls(spec)`, or `cls()` if it needs
    nothing. Whatever is raised is a `UsageError`."""
    cls = class_of(model)
    arguments = _arguments(model, cls, spec)

    def make() -> nn.Module:
        try:
            return cls(*arguments.values())
        except UsageError:
            raise
        except Exception as error:
            call = f"{cls.__name__}({', '.join(arguments)})"
            raise UsageError(f"{model.name} can't be built as {call}: {_said(error)}") from error

    return make


def _arguments(model: ForeignModel, cls: type[nn.Module], spec: Spec) -> dict[str, Any]:
    """What the constructor is given, in order."""
    parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
    needed = [p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if own_options(cls) is not Config:
        arguments: dict[str, Any] = {"options": _parsed(model.name, cls, model.__pydantic_extra__ or {}), "spec": spec}
        expected = "options and spec, since it has a nested Options"
    else:
        first = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][:1]
        arguments = {"spec": spec} if needed or first == ["spec"] else {}
        expected = "the task's spec, or nothing"
    if len(needed) > len(arguments) or any(p.kind is p.KEYWORD_ONLY and p.name in needed for p in parameters):
        raise UsageError(f"{model.name} needs {', '.join(needed)} to be built; it may need {expected}")
    return arguments


def _parsed(name: str, cls: type[nn.Module], given: dict[str, Any]) -> Config:
    """The options of a class as its constructor gets them."""
    kind = own_options(cls)
    if kind is Config and given:
        raise UsageError(f"{name} has no options (no nested Options), got {', '.join(given)}")
    own = {} if "name" in kind.model_fields and not kind.model_fields["name"].is_required() else {"name": name}
    return kind.parse({**own, **given})


def _checked(name: str, cls: object) -> type[nn.Module]:
    """What a name stands for, if it is a class that can be used."""
    from torch import nn

    if not (isinstance(cls, type) and issubclass(cls, nn.Module)):
        raise UsageError(f"model '{name}' is {_kind(cls)}; expected an nn.Module class")
    kind = own_options(cls)
    if not (isinstance(kind, type) and issubclass(kind, Config)):
        raise UsageError(f"{name}: its Options must be a subclass of unseen.config.Config, got {_kind(kind)}")
    return cls


def _check_source(model: ForeignModel, source: str) -> None:
    if source != model.source:
        raise UsageError(
            f"the code of {model.name} is not what it was when these runs were begun; with other code it "
            "is another model: take the old code, or a new directory"
        )


def _kind(found: object) -> str:
    return f"the class {found.__qualname__}" if isinstance(found, type) else f"a {type(found).__name__}"


def _classes(module: object) -> list[str]:
    return [name for name, value in vars(module).items() if isinstance(value, type)]


def _said(error: Exception) -> str:
    """An error in one line."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _source(cls: type) -> str:
    """A digest of what a class does. Classes it inherits from count if they are of the same package."""
    package = cls.__module__.partition(".")[0]
    bases = [base for base in cls.__mro__[1:] if base.__module__.partition(".")[0] == package]
    return digest([line for one in (cls, *bases) for line in _text(one)])


def _text(cls: type) -> list[str]:
    """What a class does: its text, or its bytecode where it has none (a notebook), and what its methods enclose."""
    methods = [f for f in vars(cls).values() if inspect.isfunction(f)]
    try:
        text = [inspect.getsource(cls)]
    except (OSError, TypeError):
        text = [_constant(f.__code__) for f in methods]
    return text + [_constant(cell.cell_contents) for f in methods for cell in f.__closure__ or ()]


def _constant(value: object) -> str:
    """A value as text that is the same in every process."""
    if isinstance(value, CodeType):
        return f"{value.co_code.hex()} {value.co_names} {[_constant(c) for c in value.co_consts]}"
    if isinstance(value, frozenset):
        return str(sorted(map(repr, value)))
    return value.__qualname__ if isinstance(value, type | FunctionType) else re.sub(r" at 0x[0-9a-f]+", "", repr(value))
