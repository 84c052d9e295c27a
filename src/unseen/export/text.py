"""Text formats: a family's own JSON lines, and the published TSV of the retrieval family."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from unseen.errors import UsageError
from unseen.export.families import form, written
from unseen.export.order import Format
from unseen.export.parts import Part
from unseen.tasks.base import Examples, Task
from unseen.tasks.retrieval.files import write_tsv
from unseen.tasks.retrieval.task import Retrieval


class JsonLines(Format):
    """The family's own format, as `unseen verify --data` reads it."""

    suffix = ".jsonl"

    def write(self, part: Part, stretches: Iterable[Examples]) -> None:
        task, lines = self.order.task, form(self.order.task).lines
        with (self.folder / self.file(part)).open("wb") as file:
            for examples in stretches:
                file.write(lines(task, examples, part.condition.name))


class Tsv(Format):
    """Three lines an example, as the retrieval data were published."""

    suffix = ".tsv"

    @classmethod
    def check(cls, task: Task) -> None:
        if not isinstance(task, Retrieval):
            raise UsageError(
                f"tsv is the format of the published retrieval data, and {task.name} is none of them; "
                "use jsonl, npz, parquet or hf"
            )

    def write(self, part: Part, stretches: Iterable[Examples]) -> None:
        with (self.folder / self.file(part)).open("wb") as file:
            for examples in stretches:
                file.write(written(partial(write_tsv, examples)))
