"""Export of examples to files. The package can be called: `unseen.export(TASK, DIR, "parquet")` writes a folder."""

from unseen.registry import make_callable

make_callable(__name__, "unseen.export.write:write_export")
