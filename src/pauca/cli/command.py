"""From the arguments of a shell to an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from argparse import Namespace
from collections.abc import Sequence

from pauca.cli.messages import Aborted, CommandError, Voice, one_line
from pauca.cli.options import parser

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : sequence of str or None, default=None
        The arguments, without the name of the program; None takes those of the shell.

    Returns
    -------
    int
        The exit code: 0 if all went well, 1 for bad data, 2 for wrong usage, 130 if interrupted.

    Examples
    --------
    >>> from pauca.cli import main
    >>> main(["path", "no_such_model.json"])
    1
    """
    try:
        options = parser().parse_args(argv)
    except SystemExit as end:  # argparse has said what is wrong, or what was asked
        return end.code if isinstance(end.code, int) else 2
    try:
        code = _run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read our answer has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (KeyboardInterrupt, Aborted):
        print("pauca: interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        return _failed(error, debug=options.debug)
    return code


def _run(options: Namespace) -> int:
    voice = Voice(quiet=options.quiet)
    match options.command:
        case "fit":
            from pauca.cli.fit import fit as run
        case "predict":
            from pauca.cli.predict import predict as run
        case "path":
            from pauca.cli.show import path as run
        case "explain":
            from pauca.cli.show import explain as run
        case _:
            from pauca.cli.demo import demo as run
    return run(options, voice)


def _failed(error: Exception, *, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    print(f"pauca: error: {_told(error)}", file=sys.stderr)
    return error.code if isinstance(error, CommandError) else 1


def _told(error: Exception) -> str:
    """An error in one line. The library's own are sentences; others come with their kind."""
    said = one_line(str(error))
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError):
        return f"there is not enough memory{f' ({said})' if said else ''}"
    if isinstance(error, CommandError | ValueError | ImportError):
        return said
    return f"{type(error).__name__}: {said}; pauca was not prepared for this, --debug shows where it came from"
