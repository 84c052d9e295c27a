"""Users' own models: any `nn.Module` class, passed as such, as the text `module:Class`, or by an entry point."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from importlib import import_module
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, PrivateAttr

from unseen.config import Config, digest
from unseen.errors import UnknownName, UsageError, format_error, nearest, shorten
from unseen.models import MODELS
from unseen.registry import search_current_directory
from unseen.spec import Spec

if TYPE_CHECKING:  # describing a model must not import torch
    from torch import nn

_RESERVED = ("version", "source")
"""Entries of the id of every such model besides its name; no option may have these names."""


class ForeignModel(Config):
    """The config of a user's class: its name, a digest of its code (`source`), and the options that are not defaults.

    If the class itself was passed, the config refers to it, so that a class of a notebook works; a copy, another process
    or a record has only the name and imports it.
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
        # A class of a notebook can't be pickled; the copy imports it by its name, or fails with an error that says so.
        return {**super().__getstate__(), "__pydantic_private__": {"_cls": None}}


def make_foreign(name: str, cls: type[nn.Module], **values: Any) -> ForeignModel:
    """The config of a class with this name; `source`, if it is among the values, is the digest that a record stored."""
    _check_class(name, cls)
    stored = values.pop("source", None)
    for option in options_class(cls).model_fields:
        if option in _RESERVED:
            raise UsageError(f"{name}: an option can't be called '{option}'; every model has one of that name")
    chosen = _parse_options(name, cls, values).options()
    chosen.pop("name", None)
    model = ForeignModel(name=name, source=_digest_source(cls), **chosen)
    model._cls = cls
    _check_source(model, model.source if stored is None else stored)
    return model


def class_of(model: ForeignModel) -> type[nn.Module]:
    """The class of a config: the one it was made from, or otherwise the one that its name refers to in this process."""
    if model._cls is None:
        cls = load_class(model.name)
        _check_source(model, _digest_source(cls))
        model._cls = cls
    return model._cls


def load_class(name: str) -> type[nn.Module]:
    """The class of a registered model, or of `module:Class`, whose module is imported."""
    if ":" not in name:
        if "." in name and name not in MODELS:
            likely = ":".join(name.rsplit(".", 1))
            raise UnknownName(
                f"unknown model '{shorten(name)}'. A class of your own is written module:Class, like {shorten(likely)}"
            )
        return _check_class(name, MODELS.load(name))
    module, _, path = name.partition(":")
    if module.endswith(".py") or "/" in module or not module or not path:
        raise UsageError(f"model '{name}': write the module as Python imports it, and the class, like mine:Model")
    search_current_directory()
    try:
        value: Any = import_module(module)
    except ImportError as error:
        raise UsageError(
            f"model '{name}' can't be imported: {error}. The module must be installed, or lie in the "
            "directory the command is run from"
        ) from error
    except (Exception, SystemExit) as error:  # a script that ends with sys.exit() would end the command, with success
        raise UsageError(f"model '{name}' can't be imported: {module} raised {format_error(error)}") from error
    for attribute in path.split("."):
        if not hasattr(value, attribute):
            file = getattr(value, "__file__", None) or module
            classes = [key for key, member in vars(value).items() if isinstance(member, type)]
            raise UsageError(f"model '{name}': there is no '{attribute}' in {file}. {nearest(attribute, classes)}")
        value = getattr(value, attribute)
    return _check_class(name, value)


def options_class(cls: type[nn.Module]) -> type[Config]:
    """The config class of a model class: its nested `Options`; without one, a config without options."""
    return getattr(cls, "Options", Config)


def check_importable(model: Config) -> None:
    """Refuse a class that other processes cannot import by its name."""
    if not isinstance(model, ForeignModel):
        return
    module, _, path = model.name.partition(":")
    reason = ""
    try:
        if module == "__main__":
            reason = f"it is defined in the script or notebook that runs ({module})"
        elif _digest_source(load_class(model.name)) != model.source:
            reason = "its name refers to other code"
    except UsageError as error:
        reason = str(error)
    if reason:
        short = path.rpartition(".")[2]
        raise UsageError(
            f"worker processes can't import {model.name}: {reason}. Put the class into a file of its own, "
            f"like mine.py, and import it from there (mine:{short}), or use the executor inline"
        )


def make_builder(model: ForeignModel, spec: Spec) -> Callable[[], nn.Module]:
    """A function that builds the module: `cls(options, spec)` for a class with options, otherwise `cls(spec)`, or `cls()`
    if the constructor takes nothing. Any exception becomes a `UsageError`."""
    cls = class_of(model)
    arguments = _arguments(model, cls, spec)

    def make() -> nn.Module:
        try:
            return cls(*arguments.values())
        except UsageError:
            raise
        except (Exception, SystemExit) as error:
            call = f"{cls.__name__}({', '.join(arguments)})"
            raise UsageError(f"{model.name} can't be built as {call}: {format_error(error)}") from error

    return make


def required_arguments(parameters: Iterable[inspect.Parameter]) -> list[str]:
    """The names of the parameters that a call must give a value."""
    required = []
    for parameter in parameters:
        is_variadic = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if parameter.default is parameter.empty and not is_variadic:
            required.append(parameter.name)
    return required


def _arguments(model: ForeignModel, cls: type[nn.Module], spec: Spec) -> dict[str, Any]:
    """The arguments of the constructor, in order."""
    parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
    needed = required_arguments(parameters)
    if options_class(cls) is not Config:
        arguments: dict[str, Any] = {
            "options": _parse_options(model.name, cls, model.__pydantic_extra__ or {}),
            "spec": spec,
        }
        expected = "options and spec, since it has a nested Options"
    else:
        positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        # A first argument `spec` gets the spec even if it has a default.
        arguments = {"spec": spec} if needed or positional[:1] == ["spec"] else {}
        expected = "the task's spec, or nothing"
    if len(needed) > len(arguments) or any(p.kind is p.KEYWORD_ONLY and p.name in needed for p in parameters):
        raise UsageError(f"{model.name} needs {', '.join(needed)} to be built; it may need {expected}")
    return arguments


def _parse_options(name: str, cls: type[nn.Module], values: dict[str, Any]) -> Config:
    """The options of a class as its constructor gets them."""
    config = options_class(cls)
    if config is Config and values:
        raise UsageError(f"{name} has no options (no nested Options), got {', '.join(values)}")
    has_default_name = "name" in config.model_fields and not config.model_fields["name"].is_required()
    return config.parse(values if has_default_name else {"name": name, **values})


def _check_class(name: str, cls: object) -> type[nn.Module]:
    """The object that a name refers to, if it is a class that can be used; otherwise an error."""
    from torch import nn

    if not (isinstance(cls, type) and issubclass(cls, nn.Module)):
        raise UsageError(f"model '{name}' is {_describe(cls)}; expected an nn.Module class")
    config = options_class(cls)
    if not (isinstance(config, type) and issubclass(config, Config)):
        raise UsageError(f"{name}: its Options must be a subclass of unseen.config.Config, got {_describe(config)}")
    return cls


def _check_source(model: ForeignModel, source: str) -> None:
    if source != model.source:
        raise UsageError(
            f"the code of {model.name} is not what it was when these runs were begun; with other code it "
            "is another model: take the old code, or a new directory"
        )


def _describe(value: object) -> str:
    return f"the class {value.__qualname__}" if isinstance(value, type) else f"a {type(value).__name__}"


def _digest_source(cls: type) -> str:
    """A digest of the code of a class and of its base classes of the same package."""
    # Base classes of other packages (torch, unseen) are left out: a new version of theirs is no change of this class.
    package = cls.__module__.partition(".")[0]
    bases = [base for base in cls.__mro__[1:] if base.__module__.partition(".")[0] == package]
    lines: list[str] = []
    for each_class in (cls, *bases):
        lines += _code_of(each_class)
    return digest(lines)


def _code_of(cls: type) -> list[str]:
    """The source of a class, or its bytecode if it has no source (a notebook), and what its methods close over."""
    methods = [f for f in vars(cls).values() if inspect.isfunction(f)]
    try:
        text = [inspect.getsource(cls)]
    except (OSError, TypeError):
        text = [_constant(f.__code__) for f in methods]
    for method in methods:
        text += [_constant(cell.cell_contents) for cell in method.__closure__ or ()]
    return text


def _constant(value: object) -> str:
    """A value as text that is the same in every process: without addresses, and sets in order."""
    if isinstance(value, CodeType):
        return f"{value.co_code.hex()} {value.co_names} {[_constant(c) for c in value.co_consts]}"
    if isinstance(value, frozenset):
        return str(sorted(map(repr, value)))
    return value.__qualname__ if isinstance(value, type | FunctionType) else re.sub(r" at 0x[0-9a-f]+", "", repr(value))
