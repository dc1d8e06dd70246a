"""``pauca path`` and ``pauca explain``: a saved model as a table of sizes, text, SQL or Python."""

from __future__ import annotations

import json
import math
import os
from argparse import Namespace
from collections.abc import Iterator
from typing import Any

import numpy as np

from pauca.cli.console import Console, DataError
from pauca.cli.encoding import EncodedColumn, required_columns
from pauca.export.formula import Formula, formula_of
from pauca.export.sql import identifier, literal
from pauca.loading import load
from pauca.results.path import Path
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
    columns = required_columns(model)
    indicators = [column for column in columns if column.level is not None]
    if options.sql is not None:
        table = options.sql.split(".")
        name = "encoded" if table != ["encoded"] else "encoded_rows"
        known = {"offset": options.offset, "exposure": options.exposure}
        print(_encoding_sql(indicators, table, name) + model.to_sql(name if indicators else table, **known))
    elif options.python:
        source = model.to_python(offset=options.offset, exposure=options.exposure)
        print(source + _encoding_python(indicators), end="")
    else:
        print(model.summary())
        raw_table = getattr(model, "raw_table_", None)
        effects = list(_effects(formula_of(model), columns, {} if raw_table is None else raw_table.baselines))
        if effects:
            print("\nEffects:\n" + "\n".join(f"- {printable(effect)}" for effect in effects))
    return 0


def load_model(path: str, size: int | None = None) -> Any:
    """A model from its file, at another size if one is given."""
    if os.path.isdir(path):
        raise DataError(f"{path} is a folder, not a model file")
    try:
        model = load(path)
    except FileNotFoundError:
        raise DataError(f"there is no file {path}") from None
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
    figures = [key for key in records[0] if key not in {"entered", "left", "features"}]
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


def _effects(formula: Formula, columns: list[EncodedColumn], baselines: dict[str, str]) -> Iterator[str]:
    """The effect of the intercept and of each coefficient, for models with a single output."""
    if len(formula.coef) > 1:
        return
    if formula.link not in {"log_hazard", "cumulative"}:
        yield _intercept_effect(formula)
    for column, coefficient in zip(columns, formula.coef[0].tolist(), strict=True):
        if column.level is None:
            change = f"one unit more of {column.raw}"
        else:
            than = f" instead of {baselines[column.raw]}" if column.raw in baselines else ""
            change = f"{column.raw} {column.level}{than}"
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


def _encoding_sql(indicators: list[EncodedColumn], table: list[str], name: str) -> str:
    """A common table expression that encodes the text columns; NULL stays NULL."""
    if not indicators:
        return ""
    cases = [
        f"CASE WHEN r.{identifier(column.raw)} = {literal(column.level)} THEN 1e0 "
        f"WHEN r.{identifier(column.raw)} IS NOT NULL THEN 0e0 END AS {identifier(column.name)}"
        for column in indicators
    ]
    columns = ",\n    ".join(["r.*", *cases])
    source = ".".join(map(identifier, table))
    return f"WITH {identifier(name)} AS (\n  SELECT\n    {columns}\n  FROM {source} r\n)\n"


def _encoding_python(indicators: list[EncodedColumn]) -> str:
    categories = {column.name: (column.raw, column.level) for column in indicators}
    return ENCODING.format(categories=categories) if categories else ""


ENCODING = '''

CATEGORIES = {categories!r}


def encoded(row):
    """A raw row with its text columns encoded: predict(encoded(row))."""
    for column, _ in CATEGORIES.values():
        if row[column] is None or row[column] != row[column]:
            raise ValueError(f"{{column!r}} is missing")
    return {{**row, **{{name: float(str(row[column]) == value) for name, (column, value) in CATEGORIES.items()}}}}
'''
