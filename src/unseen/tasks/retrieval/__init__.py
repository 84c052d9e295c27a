"""Retrieval of discrete information from sequences (T1–T7): tasks, and their files."""

from __future__ import annotations

from unseen.tasks.retrieval.files import read_examples, write_json_lines, write_tsv
from unseen.tasks.retrieval.mapping import load_mapping, write_mapping
from unseen.tasks.retrieval.task import Retrieval

__all__ = ["Retrieval", "load_mapping", "read_examples", "write_json_lines", "write_mapping", "write_tsv"]
