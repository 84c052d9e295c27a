"""A stand-in for Slurm's commands, called as sbatch, squeue, scancel or scontrol: its jobs are processes of this machine.

Its state is the folder in the environment variable FAKE_SLURM: `script-JOB`, and `JOB_TASK` with a process's id.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

STATE = Path(os.environ.get("FAKE_SLURM", "."))


def install(folder: Path) -> dict[str, str]:
    """Put the commands into a folder; returns the environment in which they are found."""
    for name in ("sbatch", "squeue", "scancel", "scontrol"):
        command = folder / name
        command.write_text(f'#!/bin/sh\nexec {sys.executable} {__file__} {name} "$@"\n')
        command.chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "FAKE_SLURM": str(folder)}


def is_alive(process: int) -> bool:
    """Whether a process runs; one that has ended may wait for its parent."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def jobs(state: Path = STATE) -> dict[str, int]:
    """The process of every job that runs."""
    pids = {path.name: int(path.read_text()) for path in state.glob("[0-9]*_[0-9]*")}
    return {job: pid for job, pid in pids.items() if is_alive(pid)}


def start(job: str) -> None:
    array, _, task = job.partition("_")
    script = STATE / f"script-{array}"
    pattern = (STATE / f"output-{array}").read_text()
    with Path(pattern.replace("%A_%a", job).replace("%%", "%")).open("a") as file:
        process = subprocess.Popen(
            ["bash", str(script)],
            stdout=file,
            stderr=file,
            stdin=subprocess.DEVNULL,
            # In Slurm a task's own number may be that of the array, too.
            env={**os.environ, "SLURM_JOB_ID": array, "SLURM_ARRAY_JOB_ID": array, "SLURM_ARRAY_TASK_ID": task},
            start_new_session=True,
        )
    (STATE / job).write_text(str(process.pid))


def main(command: str, *arguments: str) -> None:
    if command == "sbatch":
        number = 100 + len(list(STATE.glob("script-*")))
        (STATE / f"script-{number}").write_text(sys.stdin.read())
        output = next(a for a in arguments if a.startswith("--output="))
        (STATE / f"output-{number}").write_text(output.partition("=")[2])
        last = next(a for a in arguments if a.startswith("--array=")).rpartition("-")[2]
        for task in range(int(last) + 1):
            start(f"{number}_{task}")
        sys.stdout.write(f"{number}\n")
    elif command == "squeue":
        if "-j" not in arguments:  # the state of a job that has ended is not kept
            sys.stdout.write("".join(f"{job} RUNNING\n" for job in jobs()))
    elif command == "scontrol":
        start(arguments[1])
    elif command == "scancel":
        for job, process in jobs().items():
            if job.partition("_")[0] in arguments:
                with suppress(OSError):
                    os.kill(process, signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
