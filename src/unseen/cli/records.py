"""`unseen records`: make, list and check portable records files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unseen.cli.output import align_columns
from unseen.errors import CheckFailed, UsageError

app = typer.Typer(help="Make, list and check portable files of a study's records.", no_args_is_help=True)


@app.command("add")
def add(
    stores: Annotated[list[Path], typer.Argument(help="Directories that `run` wrote: one study, or pieces of it.")],
    out: Annotated[Path, typer.Option(help="The folder in which the files are written.")] = Path(),
    partial: Annotated[bool, typer.Option("--partial", help="Also of a study that is not finished.")] = False,
) -> None:
    """Write the records of a study as NAME@VERSION-SCALE.zip, a file for each scale.

    Several directories of one study are merged. The file opens with pandas alone; `unseen run --reuse` takes its trials
    over.

    Examples:

    unseen records add runs/table2

    unseen records add runs/seeds-0-4 runs/seeds-5-9 --out records
    """
    from contextlib import ExitStack

    from unseen.store.make_records import check_replaceable, make_records, write_records
    from unseen.store.shipped_records import is_index, write_index
    from unseen.store.store import Store

    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file; give a folder")
    with ExitStack() as exits:
        opened = [exits.enter_context(Store.read(path)) for path in dict.fromkeys(stores)]
        files = make_records(opened, partial)
    has_index = is_index(out)
    for file in files:
        check_replaceable(file, out)  # all of them before the first is written
    for file in files:
        path = write_records(file, out)
        typer.echo(f"{path}: {len(file.manifest.trials)} trials, {len(file.data)} bytes")
    if has_index:
        write_index(out)


@app.command("list")
def list_files(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Records files, or folders of them. Without any: those of the package.")
    ] = None,
) -> None:
    """List records files: study, scale, trials, processor time.

    Examples:

    unseen records list

    unseen records list records
    """
    from unseen.running.progress import duration
    from unseen.store.records import load
    from unseen.store.shipped_records import read_index

    files = _find_files(paths) if paths else list(read_index())
    rows = [["file", "study", "scale", "trials", "records", "processor time"]]
    for path in files:
        file = load(path)
        manifest = file.manifest
        state = " (partial)" if manifest.partial else ""
        cost = duration(manifest.cost.get("cpu_seconds", 0.0))
        counts = [f"{len(manifest.trials)}{state}", str(len(file.measures))]
        rows.append([str(path), manifest.name, manifest.scale, *counts, cost])
    if len(rows) == 1:
        typer.echo("there are no records files" + ("" if paths else " in this release"))
        return
    typer.echo("\n".join(align_columns(rows)))


@app.command("check")
def check(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Records files, or folders of them. Without any: those of the package.")
    ] = None,
    store: Annotated[
        list[Path] | None, typer.Option(help="A directory (or several) from which the file must follow.")
    ] = None,
) -> None:
    """Check that records files are whole: checksums, columns, keys, and that ids follow from identities.

    With --store, also that the directory gives the same file again.

    Examples:

    unseen records check quickstart@2-mini.zip

    unseen records check quickstart@2-mini.zip --store demo
    """
    from unseen.store.make_records import check_follows
    from unseen.store.records import load
    from unseen.store.shipped_records import check_index, read_index

    files = _find_files(paths) if paths else list(read_index())
    if store and len(files) != 1:
        raise UsageError("--store proves one records file; give one")
    phrases = [] if paths else check_index()
    if phrases:
        raise CheckFailed("; ".join(phrases))
    for path in files:
        file = load(path)
        if path.name != file.manifest.file_name:
            raise CheckFailed(f"{path} holds what should be called {file.manifest.file_name}")
        typer.echo(f"{path}: {len(file.manifest.trials)} trials and {len(file.measures)} records are whole")
        if store:
            check_follows(file, store)
            typer.echo(f"{path}: it follows from {', '.join(map(str, store))}")


def _find_files(paths: list[Path]) -> list[Path]:
    """The files that were named, and those in the folders that were."""
    files: list[Path] = []
    for path in paths:
        inside = sorted(path.glob("*.zip")) if path.is_dir() else [path]
        if not inside:
            raise UsageError(f"{path} has no records files: no name in it ends with .zip")
        files += inside
    return files
