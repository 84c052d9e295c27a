"""`python -m unseen`, and the command `unseen`: Ctrl-C ends it without a traceback, from the first moment."""

import os
import sys

_interrupted = False


def main() -> None:
    """Run the command line."""
    import signal  # not at the top: it may lie in the directory that is taken off the path below

    previous = signal.signal(signal.SIGINT, _interrupt)
    try:
        from unseen.cli.main import main as run_command

        run_command()
    except BaseException:
        # A library that is being imported may turn the interrupt into an error of its own.
        if not _interrupted:
            raise
        sys.stderr.write("stopped\n")
        sys.stderr.flush()
        os._exit(130)
    finally:
        signal.signal(signal.SIGINT, previous)


def _interrupt(number: int, frame: object) -> None:
    global _interrupted
    _interrupted = True
    raise KeyboardInterrupt


if __name__ == "__main__":
    # `python -m` searches the current directory first, where a `numpy.py` may lie beside results that somebody handed on.
    if not sys.flags.safe_path and not __file__.startswith(f"{sys.path[0]}{os.sep}unseen{os.sep}"):
        del sys.path[0]
    main()
