"""From the arguments of a shell to an exit code. Commands are imported when they run, so that --help is fast."""

from __future__ import annotations

import os
import shlex
import sys
import traceback
from argparse import Namespace
from collections.abc import Callable, Sequence

from pauca.cli.console import INTERRUPTED, Aborted, CommandError, Console, DataError, UsageError, one_line, require_file
from pauca.cli.options import parser

TRAINING_ROWS_OF_DEMO = 342

# Options that name one column of the table, besides --target.
NAMING_OPTIONS = ("time", "event", "entry", "strata", "sample_weight", "exposure", "offset", "row_groups")

# A file that is no model is called a table if it has one of these names.
TABLE_ENDINGS = (".csv", ".tsv", ".tab", ".parquet", ".pq", ".svm", ".svmlight", ".libsvm")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : sequence of str or None, default=None
        The arguments, without the name of the program; None takes those of the shell.

    Returns
    -------
    int
        The exit code: 0 on success, 1 for invalid data, 2 for invalid usage, 130 if interrupted.

    Examples
    --------
    >>> from pauca.cli import main
    >>> main(["path", "no_such_model.json"])
    1
    """
    try:
        options = parser().parse_args(argv)
    except SystemExit as end:  # argparse has printed the error, or the help
        return end.code if isinstance(end.code, int) else 2
    try:
        code = _run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of stdout, such as head, has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (KeyboardInterrupt, Aborted):
        print("pauca: interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        if options.debug:
            traceback.print_exc()
        print(f"pauca: error: {_error_message(error)}", file=sys.stderr)
        return error.code if isinstance(error, CommandError) else 1
    return code


def _run(options: Namespace) -> int:
    console = Console(quiet=options.quiet)
    # Before anything slow is imported: a wrong name is the most common mistake.
    if options.command == "fit" and not os.path.exists(options.table) and os.path.isfile(options.target or ""):
        raise UsageError(f"the table comes first: pauca fit {shlex.join([options.target, '--target', options.table])}")
    for name, what in (("model", "a model file"), ("table", "a table")):
        if hasattr(options, name):
            require_file(getattr(options, name), what)
    if options.command == "predict" and _swapped(options.model, options.table):
        raise UsageError(
            f"{options.model} is no model file, but {options.table} is: the model comes first, pauca predict "
            f"{shlex.join([options.table, options.model])}"
        )
    _check_kinds(options)
    _check_not_replaced(options)
    if options.command == "fit" and os.path.isfile(options.table):
        _check_columns(options)
    with Console(quiet=options.quiet or getattr(options, "json", False)).starting():
        run = _command(options.command)
    return run(options, console)


def _command(name: str) -> Callable[[Namespace, Console], int]:
    match name:
        case "fit":
            from pauca.cli.fit import fit as run
        case "predict":
            from pauca.cli.predict import predict as run
        case "path":
            from pauca.cli.show import path as run
        case "explain":
            from pauca.cli.show import explain as run
        case "report":
            from pauca.cli.show import report as run
        case _:
            run = demo
    return run


def _swapped(model: str, table: str) -> bool:
    """Whether a table was given for the model, and the model for the table."""
    return not _begins_like_a_model(model) and table != "-" and _begins_like_a_model(table)


def _check_kinds(options: Namespace) -> None:
    """Raise an error for a file of another kind than the command takes, where its beginning or its name tells."""
    for name, wanted in (("model", "a model file, as pauca fit --out writes it"), ("table", "a table")):
        path = getattr(options, name, "-")
        if not os.path.isfile(path):
            continue
        with open(path, "rb") as file:
            start = file.read(200).lstrip().lower()
        found = "an HTML page" if start.startswith((b"<!doctype html", b"<html")) else ""
        if name == "table" and _begins_like_a_model(path):
            found = "a model file"
        if name == "model" and start[:1] != b"{" and path.lower().removesuffix(".gz").endswith(TABLE_ENDINGS):
            found = "a table"
        if found:
            raise DataError(f"{path} is {found}, and pauca {options.command} takes {wanted}")


def _check_not_replaced(options: Namespace) -> None:
    """Raise an error where what is read would be replaced by what is written."""
    for output in ("out", "report"):
        written = str(getattr(options, output, None) or "")
        for path in (getattr(options, name, "-") for name in ("model", "table")):
            if os.path.isfile(written) and os.path.isfile(path) and os.path.samefile(written, path):
                raise DataError(f"--{output} {written} would replace the file that is read; give another name")


def _check_columns(options: Namespace) -> None:
    """Raise an error for names that the table does not have, which is told long before estimators are imported."""
    from pauca.cli.table_files import inspect_table

    table = inspect_table(options.table, options.delimiter, has_header=not options.no_header)
    for option in ("target", *NAMING_OPTIONS):
        name = getattr(options, option)
        if name is not None and table.format != "libsvm":
            table.require(name, f"--{option.replace('_', '-')}")


def _begins_like_a_model(path: str) -> bool:
    if path == "-" or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return b'"pauca model"' in file.read(200)


def _error_message(error: Exception) -> str:
    """An error in one line; an unexpected one with its type."""
    text = one_line(str(error))
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError):
        return f"not enough memory{f' ({text})' if text else ''}"
    if isinstance(error, CommandError | ValueError | ImportError):
        return text
    return f"unexpected {type(error).__name__}: {text}; run the command again with --debug to see where it was raised"


def demo(options: Namespace, console: Console) -> int:
    """Write example tables, then fit, explain and predict with them as a user would."""
    folder = options.into
    try:
        os.makedirs(folder, exist_ok=True)
        patients, new_patients = _write_demo_tables(folder)
    except OSError as error:
        raise DataError(f"{folder} cannot be written: {error.strerror or error}") from error
    model, predictions = os.path.join(folder, "model.json"), os.path.join(folder, "predictions.csv")
    print(
        f"442 patients with ten measurements, and the progression of their diabetes after one year.\n{patients} holds "
        f"the rows to fit a model to, {new_patients} the rows to predict."
    )
    for command in (
        ["fit", patients, "--target", "progression", "--k", "1-8", "--task", "regression", "--out", model],
        ["path", model],
        ["explain", model],
        ["predict", model, new_patients, "--keep", "progression", "--out", predictions],
    ):
        print(f"\n$ pauca {shlex.join(command)}\n", flush=True)
        code = main([*command, *(["--quiet"] if options.quiet else [])])
        if code:
            return code
    print("\nFiles written: " + ", ".join([patients, new_patients, model, predictions]))
    return 0


def _write_demo_tables(folder: str) -> list[str]:
    """The diabetes data in two files: rows to fit, and rows to predict."""
    from sklearn.datasets import load_diabetes

    from pauca.cli.table_files import polars
    from pauca.export.json_files import write_atomically

    data = load_diabetes(scaled=False)
    frame = polars().DataFrame(data.data, schema=data.feature_names)
    # The data set codes sex as 1 and 2 and does not say which is which.
    sex = polars().Series("sex", ["one" if value == 1 else "two" for value in frame["sex"].to_list()])
    frame = frame.with_columns(sex, polars().Series("progression", data.target))
    paths = [os.path.join(folder, name) for name in ("patients.csv", "new_patients.csv")]
    for path, part in zip(paths, (frame[:TRAINING_ROWS_OF_DEMO], frame[TRAINING_ROWS_OF_DEMO:]), strict=True):
        write_atomically(path, part.write_csv().encode())
    return paths
