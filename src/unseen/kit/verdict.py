"""What a check says: a status and a reason in one line."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path

from unseen.errors import CheckFailed, UsageError
from unseen.tasks.verify.checks import Status, Verdict

__all__ = ["Status", "Verdict", "tried"]


def tried(judge: Callable[[], Verdict]) -> Verdict:
    """What a check says; a plug-in may crash in any way, and that is a finding about it.

    >>> tried(lambda: ("ok", f"{1 / 0}"))[0]
    'FAIL'
    """
    try:
        return judge()
    except (CheckFailed, UsageError) as error:
        return "FAIL", _line(error)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        said = f"{type(error).__name__}: {_line(error)}".removesuffix(": ")
        return "FAIL", f"{said} ({Path(last.filename).name}, line {last.lineno})"


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
