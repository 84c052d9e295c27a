"""A folder that is there whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unseen.errors import UsageError


def check_free(out: Path) -> None:
    """Refuse a place where something is already."""
    if out == Path.cwd():
        raise UsageError(f"{out} is the current folder; name a new one")
    if out.is_dir():
        held = sorted(one.name for one in out.iterdir())
        if held:
            raise UsageError(
                f"{out} is not empty (it holds {held[0]}{' and more' * (len(held) > 1)}); "
                "name a new folder, or empty this one"
            )
    elif os.path.lexists(out):
        raise UsageError(f"{out} is a file; name a new folder")


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """A place to write to, beside `out`, that becomes `out` when all went well and vanishes when not.

    What a kill leaves behind is called `.NAME.….partial`.
    """
    try:
        out = out.resolve()
        check_free(out)
        out.parent.mkdir(parents=True, exist_ok=True)
        partial = out.with_name(f".{out.name}.{secrets.token_hex(4)}.partial")
        partial.mkdir()
    except OSError as error:
        raise _unwritable(out, error) from None
    try:
        yield partial
        _sync(partial)
        check_free(out)
        if out.is_dir():
            out.rmdir()
        partial.rename(out)
    except OSError as error:
        raise _unwritable(out, error) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _unwritable(out: Path, error: OSError) -> UsageError:
    return UsageError(f"{out} can't be written: {error.strerror or error}")


def _sync(folder: Path) -> None:
    """Have everything in a folder on the disk, so that after a power cut the new name does not stand for less."""
    for path in [*folder.rglob("*"), folder]:
        opened = os.open(path, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
