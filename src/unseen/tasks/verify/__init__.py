"""Verification of any task, plug-ins included: `verify(task)` returns a report of checks, split by split."""

from __future__ import annotations

from unseen.tasks.verify.checks import find_spec_violations
from unseen.tasks.verify.determinism import fingerprint
from unseen.tasks.verify.run import Check, Report, verify

__all__ = ["Check", "Report", "find_spec_violations", "fingerprint", "verify"]
