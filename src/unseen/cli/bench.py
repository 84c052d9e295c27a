"""`unseen bench`: how fast models train on this machine, in a plain PyTorch loop and in stacks."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unseen.cli.output import align_columns, check_output, load_task, write_output
from unseen.cli.plan import format_flops
from unseen.cli.settings import HELP, parse_settings
from unseen.errors import UsageError

if TYPE_CHECKING:
    from unseen.config import Config
    from unseen.studies.trial import Trial

ROUNDS = 5
"""All contenders take turns this many times, so that a busy moment of the machine slows all of them alike."""
MOST_SEEDS = 4_096
"""The most seeds of a stack that is timed."""
_FOREVER = 10**9
"""A number of steps that is never reached: no run ends or is validated while it is timed."""
_LOOP_EXAMPLES = 4096


def bench(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MODEL", help="Models, or your own classes as module:Class (default: lstm, gru, transformer)."
        ),
    ] = None,
    task: Annotated[str, typer.Option(help="The task to train on.")] = "retrieval/T6",
    batch: Annotated[int | None, typer.Option(min=1, help="Examples per batch (default: the recipe's).")] = None,
    stack: Annotated[str, typer.Option(help="Numbers of seeds trained as one stack.")] = "1,4,16",
    seconds: Annotated[float, typer.Option(min=0, help="Seconds of measurement per model and stack size.")] = 2.0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the figures to this file.")] = None,
    set: Annotated[list[str] | None, typer.Option("--set", help=HELP)] = None,
) -> None:
    """Compare the training speed of models on this machine, with and without stacking seeds.

    Prints milliseconds per training step and seed: in a plain PyTorch loop, and in stacks of several seeds. The
    measurements are single-threaded and interleaved, and the medians are reported.

    Examples:

    unseen bench lstm transformer

    unseen bench ctl-ndr mine:Model --task ctl/A --batch 128 --stack 1,8

    unseen bench gcog-rnn --task gcog/distractor --set width=64 --json speed.json
    """
    sizes = _parse_sizes(stack)
    check_output(json_file, "json")
    names = models or ["lstm", "gru", "transformer"]
    from unseen.models.foreign import load_class, options_class
    from unseen.training.recipe import Recipe

    components: dict[str, type[Config]] = {
        "task": load_task(task),
        "model": options_class(load_class(names[0])),
        "recipe": Recipe,
    }
    settings = parse_settings(set or [], components)
    if batch is not None:
        settings["recipe"]["batch"] = batch
    trials = {name: _make_trial(name, task, settings) for name in names}
    rows = _measure(trials, sizes, seconds)

    headers = ["model", "parameters", "FLOPs per step", "plain loop", *(f"stack of {size}" for size in sizes)]
    table = [[*headers, "best speed-up"], *map(_format_row, rows)]
    used = next(iter(trials.values()))
    typer.echo(f"{task}, batch of {used.recipe.batch}; milliseconds per training step and seed, on one thread")
    typer.echo("\n".join(align_columns(table, right=True)))
    if json_file is not None:
        from unseen.running.provenance import provenance

        figures = {"task": used.task.options(), "batch": used.recipe.batch, "machine": provenance(), "models": rows}
        write_output(json.dumps(figures, indent=1, ensure_ascii=False), json_file)


def _parse_sizes(text: str) -> list[int]:
    try:
        sizes = list(map(int, text.split(",")))
    except ValueError:
        sizes = [0]
    if min(sizes) < 1 or len({*sizes}) < len(sizes):
        raise UsageError(f"--stack {text}: expected different positive numbers, like 1,4,16")
    if max(sizes) > MOST_SEEDS:
        raise UsageError(f"--stack {text}: at most {MOST_SEEDS:,} seeds are measured as one stack")
    return sizes


def _make_trial(name: str, task: str, settings: dict[str, dict[str, Any]]) -> Trial:
    """The model on the task, as `unseen train` would train it; a model that does not fit is refused."""
    from unseen.models import options
    from unseen.running.chunk import check_trial
    from unseen.running.memory import check_memory
    from unseen.studies.trial import Trial
    from unseen.tasks import task as make_task
    from unseen.training.recipe import Evaluation
    from unseen.training.recipe import recipe as make_recipe

    recipe = make_recipe("quick", **{**settings["recipe"], "steps": _FOREVER, "validate_every": _FOREVER})
    trial = Trial(
        make_task(task, **settings["task"]),
        options(name, **settings["model"]),
        recipe,
        Evaluation(),
        seed=0,
        data_seed=0,
    )
    check_memory([trial])
    check_trial(trial)
    return trial


def _measure(trials: dict[str, Trial], sizes: list[int], seconds: float) -> list[dict[str, Any]]:
    """One row per model: parameters, FLOPs, and the milliseconds of a step in the loop and in every stack."""
    from statistics import median

    from unseen.running.flops import step_cost
    from unseen.training.process import one_thread

    with one_thread():
        steps: dict[tuple[str, int], Callable[[], object]] = {}
        for name, trial in trials.items():
            steps[name, 0] = _plain_loop(trial)
            for size in sizes:
                steps[name, size] = _stacked_step(trial, size)
        repeats: dict[tuple[str, int], int] = {}
        for key, step in steps.items():
            step()  # the first step allocates memory and finds out whether the model can be batched
            repeats[key] = max(1, round(seconds / ROUNDS / _time(step, 1)))
        times: dict[tuple[str, int], list[float]] = {key: [] for key in steps}
        for _ in range(ROUNDS):
            for (name, size), step in steps.items():
                per_seed = _time(step, repeats[name, size]) / max(1, size)
                times[name, size].append(1e3 * per_seed)
    rows = []
    for name, trial in trials.items():
        counted = step_cost(trial)
        speed_ups = {}
        for size in sizes:
            # Ratios are taken within a round: noise that slows the round slows both.
            ratios = [loop / stacked for loop, stacked in zip(times[name, 0], times[name, size], strict=True)]
            speed_ups[size] = median(ratios)
        rows.append(
            {
                "model": name,
                "parameters": counted.parameters,
                "flops_per_step": counted.flops,
                "plain_loop_ms": median(times[name, 0]),
                "stack_ms": {size: median(times[name, size]) for size in sizes},
                "speed_up": speed_ups,
            }
        )
    return rows


def _time(step: Callable[[], object], repeats: int) -> float:
    """CPU seconds per call. CPU time leaves out what other programs did meanwhile."""
    start = time.process_time()
    for _ in range(repeats):
        step()
    return max((time.process_time() - start) / repeats, 1e-9)


def _plain_loop(trial: Trial) -> Callable[[], None]:
    """A training step as people write it: a module, a torch optimizer, `loss.backward()`, batches drawn beforehand."""
    import torch
    from torch import Tensor, nn
    from torch.nn import functional

    from unseen.models.build import build
    from unseen.models.context import Context
    from unseen.training.batches import input_tensors, target_tensor
    from unseen.training.evaluate import draw_examples
    from unseen.training.loss import loss
    from unseen.training.stack import Stack

    class TorchDropout(Context):
        """Dropout as torch does it, with masks from its global generator."""

        @property
        def training(self) -> bool:
            return True

        def dropout(self, x: Tensor, p: float, *, scaled: bool = True) -> Tensor:
            return functional.dropout(x, p) if scaled else functional.dropout(x, p) * (1 - p)

        def add_dropped(self, x: Tensor, added: Tensor, p: float) -> Tensor:
            return x + self.dropout(added, p)

    spec, recipe = trial.task.spec, trial.recipe
    module = build(trial.model, spec, trial.seed)
    takes_context = Stack([module]).takes_context
    optimizers = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}
    optimizer = optimizers[recipe.optimiser](
        module.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay
    )
    examples = draw_examples(trial.task, "train", max(_LOOP_EXAMPLES, recipe.batch), trial.data_seed)
    inputs = input_tensors(examples.inputs, spec, torch.float32, "cpu")
    targets = target_tensor(examples.targets, spec, torch.float32, "cpu")
    generator = torch.Generator().manual_seed(0)

    def step() -> None:
        index = torch.randint(len(targets), (recipe.batch,), generator=generator)
        batch = {name: values[index] for name, values in inputs.items()}
        optimizer.zero_grad()
        prediction = module(batch, TorchDropout()) if takes_context else module(batch)
        loss(prediction, targets[index], spec.target).backward()
        if recipe.clip is not None:
            nn.utils.clip_grad_norm_(module.parameters(), recipe.clip)
        optimizer.step()

    return step


def _stacked_step(trial: Trial, size: int) -> Callable[[], object]:
    """A training step of a stack of `size` seeds, with batches and dropout masks drawn as in a real run."""
    from unseen.models.build import build
    from unseen.training.trainer import Job, Member, Trainer

    members = tuple(Member(f"seed {seed}", seed, seed, trial.recipe) for seed in range(size))
    trainer = Trainer(Job(trial.task, lambda seed: build(trial.model, trial.task.spec, seed), members))
    return lambda: trainer.advance(steps=1)


def _format_row(row: dict[str, Any]) -> list[str]:
    size, speed_up = max(row["speed_up"].items(), key=lambda item: item[1])
    return [
        row["model"],
        f"{row['parameters']:,}",
        format_flops(row["flops_per_step"]),
        f"{row['plain_loop_ms']:.2f}",
        *(f"{milliseconds:.2f}" for milliseconds in row["stack_ms"].values()),
        f"{speed_up:.1f}× ({size} seeds)",
    ]
