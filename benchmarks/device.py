"""How fast and how large stacks are on a device: a sweep over the number of members, for a machine with a GPU.

    python -m benchmarks.device cuda
    python -m benchmarks.device cuda --model ctl-transformer --task ctl/A --sizes 1,16,256

Each line is a stack size: milliseconds per step and member, and the most memory that torch held meanwhile.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from statistics import median

import torch

from unseen.models import options
from unseen.running.chunk import make_job
from unseen.studies.trial import Trial
from unseen.tasks import task
from unseen.training.process import check_device, device_clock
from unseen.training.recipe import Evaluation, recipe
from unseen.training.trainer import Trainer

WARM_UP_STEPS = 3


def measure(trial: Trial, device: str, members: int, steps: int) -> tuple[float, float | None]:
    """Seconds per step and member, and the peak of torch's memory on the device in bytes (None on a CPU)."""
    tracked = device != "cpu"
    if tracked:
        torch.accelerator.empty_cache()
        torch.accelerator.reset_peak_memory_stats(device)
    trials = [Trial(trial.task, trial.model, trial.recipe, trial.evaluation, seed, seed) for seed in range(members)]
    trainer = Trainer(make_job(trials, device))
    clock = device_clock(device)
    trainer.advance(steps=WARM_UP_STEPS)
    times: list[float] = []
    for _ in range(steps):
        began = clock()
        trainer.advance(steps=1)
        times.append(clock() - began)
    peak = float(torch.accelerator.max_memory_allocated(device)) if tracked else None
    return median(times) / members, peak


def sweep(trial: Trial, device: str, sizes: Sequence[int], steps: int) -> list[str]:
    """A line for each size; a size that does not fit ends the sweep."""
    lines = [f"{'members':>8} {'ms per step and member':>23} {'peak memory':>12}"]
    for members in sizes:
        try:
            seconds, peak = measure(trial, device, members, steps)
        except torch.OutOfMemoryError:
            lines.append(f"{members:>8} {'does not fit':>23}")
            break
        memory = "-" if peak is None else f"{peak / 1e6:.0f} MB"
        lines.append(f"{members:>8} {1000 * seconds:>23.3f} {memory:>12}")
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.device", description=__doc__)
    parser.add_argument("device")
    parser.add_argument("--task", default="retrieval/T6")
    parser.add_argument("--model", default="retrieval-transformer")
    parser.add_argument("--sizes", default="1,4,16,64,256,1024")
    parser.add_argument("--steps", type=int, default=50)
    chosen = parser.parse_args(arguments)
    device = check_device(chosen.device)
    never = recipe(steps=10**9, validate_every=10**9)
    trial = Trial(task(chosen.task), options(chosen.model), never, Evaluation(), 0, 0)
    sizes = [int(size) for size in chosen.sizes.split(",")]
    sys.stdout.write(
        "\n".join([f"{chosen.model} on {chosen.task}, {device}", *sweep(trial, device, sizes, chosen.steps), ""])
    )


if __name__ == "__main__":
    main()
