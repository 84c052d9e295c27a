"""Verification of any task, plug-ins included: `verify(task)` gives a report of checks, condition by condition."""

from __future__ import annotations

from unseen.tasks.verify.conformance import misfits
from unseen.tasks.verify.purity import fingerprint
from unseen.tasks.verify.run import Check, Report, verify

__all__ = ["Check", "Report", "fingerprint", "misfits", "verify"]
