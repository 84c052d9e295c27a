"""A new folder that appears whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unseen.errors import UsageError
from unseen.files import PARTIAL, sync


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """A temporary folder beside `out` to write to; it is renamed to `out` on success and removed on failure.

    After a kill, a folder called `.NAME.….partial` remains.
    """
    try:
        out = Path(os.path.realpath(out))  # unlike Path.resolve, this does not fail for links that lead in a circle
        check_free(out)
        out.parent.mkdir(parents=True, exist_ok=True)
        partial = out.with_name(f".{out.name}.{secrets.token_hex(4)}{PARTIAL}")
        partial.mkdir()
    except OSError as error:
        raise _unwritable(out, error) from None
    try:
        yield partial
        publish_folder(partial, out)
    except OSError as error:
        raise _unwritable(out, error) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def check_free(out: Path) -> None:
    """Raise an error if a file or a folder that is not empty is in the way."""
    if out == Path.cwd():
        raise UsageError(f"{out} is the current folder; name a new one")
    if out.is_dir():
        names = sorted(path.name for path in out.iterdir())
        if names:
            raise UsageError(
                f"{out} is not empty (it holds {names[0]}{' and more' * (len(names) > 1)}); "
                "name a new folder, or empty this one"
            )
    elif os.path.lexists(out):
        raise UsageError(f"{out} is a file; name a new folder")


def publish_folder(partial: Path, out: Path) -> None:
    """Write everything in a folder through to the disk, then give it its name.

    Without fsync, a power cut could leave the new name with incomplete files.
    """
    for path in [*partial.rglob("*"), partial]:
        sync(path)
    # Checked once more: something may have appeared there while the files were written.
    check_free(out)
    if out.is_dir():
        out.rmdir()
    partial.rename(out)
    sync(out.parent)


def _unwritable(out: Path, error: OSError) -> UsageError:
    return UsageError(f"{out} can't be written: {error.strerror or error}")
