"""`unseen inspect`: where a variable is in trained models, and whether it is used there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from unseen.cli.output import check_output, csv_text, fit_table, write_output
from unseen.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from unseen.store.load_model import TrainedGroup


def inspect(
    directory: Annotated[Path, typer.Argument(help="A directory that `train`, or `run --weights best`, wrote.")],
    variable: Annotated[str, typer.Argument(help="A variable of the task; without one, they are listed.")] = "",
    split: Annotated[str, typer.Option(help="The split of the examples; default: that of validation.")] = "",
    site: Annotated[list[str] | None, typer.Option(help="Only this activation; may be repeated.")] = None,
    position: Annotated[
        list[str] | None,
        typer.Option(help="Only this token: a number, all, or a variable whose values are positions; may be repeated."),
    ] = None,
    n: Annotated[int, typer.Option("-n", help="Examples for probes, and half as many pairs.", min=100)] = 1_000,
    weights: Annotated[Literal["best", "last"], typer.Option(help="The weights of each run.")] = "best",
    trust: Annotated[
        bool, typer.Option("--trust", help="Import and run model classes of others that the directory names.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="A picture (.svg, .pdf, .png) or every number (.csv) instead of a table.")
    ] = None,
) -> None:
    """Show where a variable of the task can be read off the activations of trained models (linear probes), and whether
    the models use it there (interchange interventions): the mean over seeds, with 95 % intervals from 3 seeds.

    Examples:

    unseen inspect runs/ctl

    unseen inspect runs/ctl 'symbol[1]' --split ood/transition

    unseen inspect runs/t6 'first_position[0]' --position 'second_position[0]' --out order.svg
    """
    about_variable = {"--split": split, "--site": site, "--position": position, "--out": out}
    without_variable = [name for name, value in about_variable.items() if value]
    if without_variable and not variable:
        raise UsageError(
            f"{without_variable[0]} is about a variable: name one after the directory, or leave {without_variable[0]} out to list "
            "the variables and sites"
        )
    picture = out is not None and out.suffix.lower() in (".svg", ".pdf", ".png")
    check_output(out, "" if picture else "csv")
    from unseen.store.load_model import load_groups
    from unseen.training.process import one_thread

    groups = load_groups(directory, selection=weights, only_ours=not trust)
    if not variable:
        typer.echo("\n\n".join(_describe(group) for group in groups))
        return
    tables = []
    with one_thread():
        for group in groups:
            tables.append(_measure(group, variable, split or None, n, site or (), position or ()))
    if picture:
        from unseen.report.figures.inside import inside_figure

        assert out is not None
        for group, table in zip(groups, tables, strict=True):
            path = out if len(groups) == 1 else out.with_stem(f"{out.stem}-{groups.index(group) + 1}")
            typer.echo(f"wrote {inside_figure(table, path, group.title)}")
        return
    if out is not None:
        import pandas as pd

        rows = [table.assign(model=group.title) for group, table in zip(groups, tables, strict=True)]
        write_output(csv_text(pd.concat(rows)), out)
        return
    for group, table in zip(groups, tables, strict=True):
        typer.echo(f"{group.title}: {variable} on {split or group.task.validation}\n")
        typer.echo("\n".join(fit_table(_format_rows(table), 2)) + "\n")


def _describe(group: TrainedGroup) -> str:
    from unseen.training.evaluate import draw_examples
    from unseen.training.interventions import list_sites
    from unseen.training.stack import Stack

    examples = draw_examples(group.task, group.task.validation, 100, "test")
    rows = [["variable", "values", "can be exchanged"]]
    for name, variable in group.task.variables(examples).items():
        rows.append([name, str(variable.count), "yes" if variable.causal else "no: only probed"])
    sites = [["site", "tokens", "width"]]
    for site in list_sites(Stack(group.modules[:1]), group.task, examples):
        sites.append([site.name, str(site.tokens or ""), str(site.shape[-1])])
    return "\n".join([group.title, "", *fit_table(rows, 1), "", *fit_table(sites, 1)])


def _measure(
    group: TrainedGroup, variable: str, split: str | None, n: int, sites: Sequence[str], positions: Sequence[str]
) -> pd.DataFrame:
    """Both measures of every seed: columns `measure`, `seed`, `variable`, `site`, `position`, `accuracy`, …"""
    import pandas as pd

    from unseen.tasks.variables import get_variable
    from unseen.training.evaluate import draw_examples
    from unseen.training.inside import interchange_table, probe_table
    from unseen.training.stack import Stack

    stack = Stack(group.modules)
    if split is not None:
        group.task.get_split(split)
    examples = draw_examples(group.task, split or group.task.validation, 100, "test")
    chosen = get_variable(group.task.variables(examples), variable)
    tables = [probe_table(stack, group.task, [variable], split, n, sites, positions).assign(measure="probe")]
    if chosen.causal:
        exchanged = interchange_table(stack, group.task, variable, split, n // 2, sites, positions)
        tables.append(exchanged.assign(measure="interchange"))
    table = pd.concat(tables, ignore_index=True)
    if table.empty:
        raise UsageError(f"no example of {split or group.task.validation} has '{variable}'; choose another split")
    return table.assign(seed=table["member"].map(dict(enumerate(group.seeds)))).drop(columns="member")


def _format_rows(table: pd.DataFrame) -> list[list[str]]:
    from unseen.training.inside import average_over_seeds

    probes = table[table["measure"] == "probe"]
    exchanged = table[table["measure"] == "interchange"]
    columns = {
        "probe": average_over_seeds(probes),
        "selectivity": average_over_seeds(probes, "selectivity"),
        "interchange": average_over_seeds(exchanged),
        "moved": average_over_seeds(exchanged.dropna(subset=["moved"]) if len(exchanged) else exchanged, "moved"),
    }
    texts: dict[tuple[str, str], dict[str, str]] = {}
    for name, means in columns.items():
        values = means.columns[3]
        for row in means.to_dict("records"):
            interval = "" if row["low"] != row["low"] else f" [{row['low']:.2f}, {row['high']:.2f}]"
            texts.setdefault((row["site"], row["position"]), {})[name] = f"{row[values]:.3f}{interval}"
    chance = f" (chance {probes['chance'].mean():.2f})" if len(probes) else ""
    rows = [["site", "position", f"probe{chance}", "selectivity", "interchange", "own answers moved"]]
    for (site, position), columns_text in texts.items():
        rows.append([site, position, *(columns_text.get(name, "") for name in columns)])
    return rows
