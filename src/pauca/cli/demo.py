"""``pauca demo``: the whole way with a table that comes along."""

from __future__ import annotations

import os
import shlex
from argparse import Namespace

from pauca.cli.files import polars
from pauca.cli.messages import BadData, Voice
from pauca.export.files import write_whole

ROWS_TO_LEARN_FROM = 342


def demo(options: Namespace, voice: Voice) -> int:
    """Write a table, then fit, explain and predict as a user would, and say which files there are now."""
    from pauca.cli.command import main

    folder = options.into
    try:
        os.makedirs(folder, exist_ok=True)
        files = _write_tables(folder)
    except OSError as error:
        raise BadData(f"{folder} cannot be written to: {error.strerror or error}") from error
    model, predictions = os.path.join(folder, "model.json"), os.path.join(folder, "predictions.csv")
    known, new = files
    print(f"442 patients, ten measurements, and the progression of their diabetes after a year: {known}, {new}")
    for command in (
        ["fit", known, "--target", "progression", "--k", "1-8", "--task", "regression", "--out", model],
        ["path", model],
        ["explain", model],
        ["predict", model, new, "--keep", "progression", "--out", predictions],
    ):
        print(f"\n$ pauca {shlex.join(command)}\n", flush=True)
        code = main([*command, *(["--quiet"] if options.quiet else [])])
        if code:
            return code
    print("\nWritten: " + ", ".join([*files, model, predictions]))
    return 0


def _write_tables(folder: str) -> list[str]:
    """The table in two files: rows to learn from, and rows to predict."""
    from sklearn.datasets import load_diabetes

    data = load_diabetes(scaled=False)
    frame = polars().DataFrame(data.data, schema=data.feature_names)
    # The data set says 1 and 2, and not which is which.
    sex = polars().Series("sex", ["one" if value == 1 else "two" for value in frame["sex"].to_list()])
    frame = frame.with_columns(sex, polars().Series("progression", data.target))
    paths = [os.path.join(folder, name) for name in ("patients.csv", "new_patients.csv")]
    for path, part in zip(paths, (frame[:ROWS_TO_LEARN_FROM], frame[ROWS_TO_LEARN_FROM:]), strict=True):
        write_whole(path, part.write_csv().encode())
    return paths
