"""``pauca path`` and ``pauca explain``: a saved model as a table of sizes, text, SQL or Python."""

from __future__ import annotations

import json
import math
import os
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from pauca.cli.console import Console, DataError, UsageError, require_file
from pauca.export.formula import Formula, formula_of
from pauca.export.json_files import check_folder
from pauca.report import check_page_name
from pauca.results.instructions import in_shell
from pauca.results.path import Path
from pauca.tables.encoding import MISSING, NUMBER
from pauca.wording import printable

# How many added and removed names are listed for each size.
NAMES_SHOWN = 6


def path(options: Namespace, console: Console) -> int:
    """Print the models of all sizes, or of one."""
    model = load_model(options.model, options.size)
    records = model.path_.table()
    if options.size is not None:
        records = [record for record in records if record["size"] == options.size]
    if options.json:
        print(json.dumps(plain(records), allow_nan=False))
    elif options.size is not None:
        print("\n".join(f"{key:<16}{_cell(value, most=10**9)}".rstrip() for key, value in records[0].items()))
    else:
        print("\n".join(_table(records, model.k_)))
    return 0


def explain(options: Namespace, console: Console) -> int:
    """Print one model as text, SQL or Python."""
    model = load_model(options.model, options.size)
    if options.sql is not None:
        known = {"offset": options.offset, "exposure": options.exposure}
        print(model.to_sql(options.sql.split("."), **known))
    elif options.python:
        print(model.to_python(offset=options.offset, exposure=options.exposure), end="")
    else:
        print(model.summary(replace(in_shell(options.model), whole=True)))
        encoder = getattr(model, "encoder_", None)
        per = " per unit of exposure" if getattr(model, "known_part_", None) == "exposure" else ""
        effects = list(_effects(formula_of(model), {} if encoder is None else encoder.baselines_, per))
        if effects:
            print("\nEffects:\n" + "\n".join(f"- {printable(effect)}" for effect in effects))
    return 0


def report(options: Namespace, console: Console) -> int:
    """Write a saved model as an HTML page."""
    out = options.out or f"{os.path.splitext(options.model)[0]}.html"
    if options.out is None and os.path.exists(out):
        raise DataError(
            f"{out} is there already, and may have figures that a saved model has not; give --out another name, or "
            "the same one to replace it"
        )
    check_page(out, "--out")
    load_model(options.model, options.size).report(out, title=options.title)
    console.note(f"wrote {out}; what needs the data of the fit, such as stability, is on pages of pauca fit --report")
    return 0


def check_page(path: str | None, option: str) -> None:
    """Raise an error before any work if a page could not be written, or if its name promises another format."""
    check_writable(path)
    try:
        check_page_name(path or "page.html")
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from None


def check_writable(path: str | None) -> None:
    """Raise an error before any work if a file could not be written."""
    if path is None:
        return
    if os.path.isdir(path):
        raise DataError(f"{path} cannot be written: it is a folder")
    if os.path.exists(path) and not os.path.isfile(path):
        return  # a device or a pipe, which is written to and needs no folder
    try:
        check_folder(path)
    except FileNotFoundError as error:
        raise DataError(str(error)) from None
    if not os.access(os.path.dirname(os.path.realpath(path)), os.W_OK):
        raise DataError(f"{path} cannot be written: its folder is read-only")


def load_model(path: str, size: int | None = None) -> Any:
    """A model from its file, at another size if one is given."""
    from pauca.loading import load  # every kind of model, which pauca fit has no need of

    require_file(path, "a model file")
    model = load(path)
    if isinstance(model, Path):
        raise DataError(f"{path} holds a path of pauca.select, which has no columns; open it in Python with pauca.load")
    if size is None:
        return model
    try:
        return model.at(size)
    except KeyError as error:
        raise DataError(f"{path}: {error.args[0]}") from None


def plain(value: Any) -> Any:
    """A value as JSON has it; numbers that are not finite become null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _table(records: list[dict[str, Any]], chosen: int) -> list[str]:
    """Aligned lines, one for each size, with a star at the chosen one."""
    figures = [key for key in records[0] if not isinstance(records[0][key], list)]
    rows = [[*figures, "added (+) and removed (-)"]]
    for record in records:
        changes = [f"+{name}" for name in record["entered"]] + [f"-{name}" for name in record["left"]]
        rows.append([*(_cell(record[key]) for key in figures), _cell(changes)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(figures))]
    lines = []
    for number, row in enumerate(rows):
        mark = "*" if number and records[number - 1]["size"] == chosen else " "
        cells = [f"{cell:>{width}}" for cell, width in zip(row, widths, strict=False)]
        lines.append(f"{mark} {'  '.join([*cells, row[-1]])}".rstrip())
    return [*lines, "", f"* the chosen size, {chosen}"]


def _cell(value: Any, most: int = NAMES_SHOWN) -> str:
    if isinstance(value, list):
        more = len(value) - most
        return ", ".join(printable(str(one)) for one in value[:most]) + (f" and {more} more" if more > 0 else "")
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return printable(str(value))


def _effects(formula: Formula, baselines: dict[str, Any], per: str) -> Iterator[str]:
    """The effect of the intercept and of each coefficient, for models with a single output; ``per`` what it is."""
    if len(formula.coef) > 1:
        return
    if formula.link not in {"log_hazard", "cumulative"}:
        yield f"{_intercept_effect(formula)}{per}"
    for term, coefficient in zip(formula.terms, formula.coef[0].tolist(), strict=True):
        if term.kind == NUMBER:
            change = f"one unit more of {term.raw}"
        else:
            what = "missing" if term.kind == MISSING else term.level
            than = f" instead of {baselines[term.raw]}" if term.raw in baselines else ""
            change = f"{term.raw} {what}{than}"
        yield f"{change}: {_effect(formula, coefficient)}"


def _intercept_effect(formula: Formula) -> str:
    value = float(formula.intercept[0])
    start = "all columns 0 (text: the baselines): the"
    if formula.classes is not None:
        odds = f" (odds of {math.exp(value):.4g})" if formula.link == "log_loss" and abs(value) < 700 else ""
        return f"{start} score of {formula.classes[1]!r} is {value:.6g}{odds}"
    return f"{start} prediction is {_exponential(value) if formula.link == 'exp' else f'{value:.6g}'}"


def _effect(formula: Formula, coefficient: float) -> str:
    if formula.link == "log_loss" and formula.classes is not None:
        return f"the odds of {formula.classes[1]!r} are multiplied by {_exponential(coefficient)}"
    if formula.link == "log_hazard":
        return f"the hazard is multiplied by {_exponential(coefficient)}"
    if formula.link == "cumulative":
        return f"the odds of a higher class are multiplied by {_exponential(coefficient)}"
    if formula.link == "exp":
        return f"the prediction is multiplied by {_exponential(coefficient)}"
    what = "prediction" if formula.classes is None else f"score of {formula.classes[1]!r}"
    return f"the {what} {'rises' if coefficient >= 0 else 'falls'} by {abs(coefficient):.6g}"


def _exponential(score: float) -> str:
    return f"{math.exp(score):.6g}" if score < 700 else f"exp({score:.6g})"
