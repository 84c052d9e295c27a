"""The registry: names, lazy imports, plug-ins."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from importlib import invalidate_caches
from pathlib import Path

import pytest

from unseen.errors import UsageError
from unseen.registry import Registry, RegistryEntry

TABLE = {"round": ("math:pi", "a circle"), "path": ("os:path.join", "a nested attribute")}


def shapes(group: str = "unseen.test-nothing") -> Registry[object]:
    return Registry("shape", group, TABLE)


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A distribution on the path, as an installer would leave it, with one module and one entry point."""
    (tmp_path / "plugged_shapes.py").write_text("class Square:\n    sides = 4\n")
    info = tmp_path / "plugged_shapes-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged-shapes\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[unseen.test-shapes]\nsquare = plugged_shapes:Square\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    invalidate_caches()
    yield info
    sys.modules.pop("plugged_shapes", None)


def test_names_are_loaded_by_module_and_attribute() -> None:
    assert shapes().load("round") == pytest.approx(3.14159, abs=1e-5)
    assert shapes().load("path") is __import__("os").path.join
    assert [entry.name for entry in shapes()] == ["round", "path"]
    assert "round" in shapes() and "square" not in shapes()
    assert shapes().entry("round") == RegistryEntry("round", "math:pi", "a circle")


def test_taken_name_is_refused() -> None:
    registry = shapes()
    registry.add("new", "math:e")
    assert registry.load("new") == pytest.approx(2.71828, abs=1e-5)
    with pytest.raises(UsageError, match="shape 'round' is registered twice: math:pi and math:tau"):
        registry.add("round", "math:tau")


def test_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        shapes().load("ronud")
    assert str(caught.value) == "unknown shape 'ronud'. Did you mean 'round'?"


@pytest.mark.parametrize("target", ["no_such_module_here:x", "math:no_such_name", "math", "math:pi.x"])
def test_broken_target_is_a_usage_error_that_names_it(target: str) -> None:
    registry = shapes()
    registry.add("broken", target)
    with pytest.raises(UsageError, match=f"'broken' could not be loaded from {target}: "):
        registry.load("broken")


def test_nothing_is_imported_before_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lazily_imported.py").write_text("value = 7\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = shapes()
    registry.add("lazy", "lazily_imported:value")
    assert "lazy" in registry and list(registry) and "lazily_imported" not in sys.modules
    assert registry.load("lazy") == 7
    assert sys.modules.pop("lazily_imported")


def test_listing_the_built_in_names_needs_neither_torch_nor_numpy() -> None:
    code = (
        "import sys\nfrom unseen.tasks import TASKS\nfrom unseen.models import MODELS\n"
        "assert list(TASKS) and list(MODELS)\n"
        "sys.exit(any(name in sys.modules for name in ('torch', 'numpy', 'pandas')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_alias_is_found_but_not_listed_and_a_name_of_its_own_wins() -> None:
    table = {"round": ("math:pi", ""), "flat": ("math:e", "")}
    registry: Registry[object] = Registry("shape", "unseen.test-nothing", table, {"circle": "round", "flat": "round"})
    assert registry.entry("circle").name == "round" and "circle" in registry
    assert registry.load("flat") == math.e
    assert [entry.name for entry in registry] == ["round", "flat"]
    with pytest.raises(UsageError, match="Did you mean 'circle'"):
        registry.entry("circel")


def test_plugin_comes_in_by_its_entry_point(plugin: Path) -> None:
    registry = shapes("unseen.test-shapes")
    assert [entry.name for entry in registry] == ["round", "path", "square"]
    assert registry.entry("square").summary == "plug-in of plugged-shapes"
    assert "plugged_shapes" not in sys.modules
    assert registry.load("square").sides == 4  # type: ignore[attr-defined]


def test_plugin_with_a_taken_name_is_refused_every_time(plugin: Path) -> None:
    (plugin / "entry_points.txt").write_text(
        "[unseen.test-shapes]\nother = plugged_shapes:Square\nround = plugged_shapes:Square\n"
    )
    registry = shapes("unseen.test-shapes")
    for _ in range(2):
        with pytest.raises(UsageError, match="shape 'round' is registered twice: math:pi and plugged_shapes:Square"):
            registry.load("round")
