"""The records files that are shipped with the package, and the index of a folder of such files."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path

from unseen.errors import CheckFailed, UsageError
from unseen.files import write_atomically
from unseen.store.records import load

INDEX = "index.json"
FOLDER = Path(str(files("unseen"))) / "records"
"""Where the package has its own."""


@dataclass(frozen=True)
class IndexedFile:
    """A records file in an index: its study, version and scale, the number of its trials, and its hash."""

    study: str
    version: int
    scale: str
    trials: int
    sha256: str


def read_index(folder: Path | None = None) -> dict[Path, IndexedFile]:
    """The records files of a folder (default: those of the package) by their paths, without opening them."""
    folder = FOLDER if folder is None else folder
    try:
        index = json.loads((folder / INDEX).read_text())
        return {folder / name: IndexedFile(**facts) for name, facts in sorted(index.items())}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise CheckFailed(f"{folder / INDEX} is missing or damaged: {error}") from error


def is_index(folder: Path) -> bool:
    """Whether a folder has an index of records files, and not another file of that name."""
    try:
        read_index(folder)
    except CheckFailed:
        return False
    return not (folder / INDEX).is_symlink()


def write_index(folder: Path) -> None:
    """Write the index of the records files in a folder."""
    index = {}
    for path in sorted(folder.glob("*.zip")):
        manifest = load(path).manifest
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        entry = IndexedFile(manifest.study, manifest.version, manifest.scale, len(manifest.trials), sha256)
        index[path.name] = asdict(entry)
    write_atomically(folder / INDEX, json.dumps(index, indent=1, sort_keys=True) + "\n")


def check_index(folder: Path | None = None) -> list[str]:
    """How an index differs from the files beside it, a phrase each; empty if it is right."""
    folder = FOLDER if folder is None else folder
    index = read_index(folder)
    phrases = [f"{path} is not in {INDEX}" for path in sorted(folder.glob("*.zip")) if path not in index]
    for path, entry in index.items():
        if not path.is_file():
            phrases.append(f"{path} is in {INDEX}, but not there")
        elif hashlib.sha256(path.read_bytes()).hexdigest() != entry.sha256:
            phrases.append(f"{path} is not the file that {INDEX} lists")
    return phrases


def find_shipped(study: str, version: int, scale: str) -> Path:
    """The records file of the package for a study and scale; that there is none is an error."""
    index = read_index()
    for path, entry in index.items():
        if (entry.study, entry.version, entry.scale) == (study, version, scale):
            return path
    shipped = ", ".join(f"{entry.study}@{entry.version} {entry.scale}" for entry in index.values()) or "none at all"
    raise UsageError(
        f"this release ships no records of {study}@{version} at scale {scale} (it has {shipped}); leave out --extend, or "
        "give a records file with --reuse"
    )
