"""``pauca path`` and ``pauca explain``: a saved model for people, databases and programs."""

from __future__ import annotations

import json
import math
import os
from argparse import Namespace
from typing import Any

import numpy as np

from pauca.cli.messages import BadData, Voice
from pauca.cli.tables import Part, needed_parts
from pauca.export.formula import formula_of
from pauca.export.sql import identifier, literal
from pauca.loading import load
from pauca.results.path import Path

# In the table of sizes, so many names that came or went are shown.
NAMES_SHOWN = 6


def path(options: Namespace, voice: Voice) -> int:
    """Print the models of all sizes, or of one."""
    model = load_model(options.model, options.size)
    records = path_records(model.path_)
    if options.size is not None:
        records = [record for record in records if record["size"] == options.size]
    if options.json:
        print(json.dumps(plain(records), allow_nan=False))
    elif options.size is not None:
        print("\n".join(f"{key:<16}{_cell(value, most=10**9)}".rstrip() for key, value in records[0].items()))
    else:
        print("\n".join(_table(records, model.k_)))
    return 0


def explain(options: Namespace, voice: Voice) -> int:
    """Print one model in words, SQL or Python."""
    model = load_model(options.model, options.size)
    parts = [part for part in needed_parts(model) if part.level is not None]
    if options.sql is not None:
        table = options.sql.split(".")
        name = "encoded" if table != ["encoded"] else "encoded_rows"
        print(_encoding_sql(parts, table, name) + model.to_sql(name if parts else table))
    elif options.python:
        print(model.to_python() + _encoding_python(parts), end="")
    else:
        print(model.summary())
        sentences = list(_sentences(model))
        if sentences:
            print("\nIn words:\n" + "\n".join(f"- {sentence}" for sentence in sentences))
    return 0


def load_model(path: str, size: int | None = None) -> Any:
    """A model from its file, of another size if one is asked for."""
    if os.path.isdir(path):
        raise BadData(f"{path} is a folder, not a model file")
    try:
        model = load(path)
    except FileNotFoundError:
        raise BadData(f"there is no file {path}") from None
    if isinstance(model, Path):
        raise BadData(f"{path} holds a path of pauca.select, which has no columns to read; see it with pauca.load")
    if size is None:
        return model
    try:
        return model.at(size)
    except KeyError as error:
        raise BadData(f"{path}: {error.args[0]}") from None


def path_records(path: Any) -> list[dict[str, Any]]:
    """The table of sizes as plain records."""
    return [dict(record) for record in path.table()]


def plain(value: Any) -> Any:
    """Values as JSON has them; what is not a finite number becomes null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _table(records: list[dict[str, Any]], chosen: int) -> list[str]:
    """Sizes as aligned lines, the chosen one marked."""
    figures = [key for key in records[0] if key not in {"entered", "left", "features"}]
    rows = [[*figures, "what came in (+) and went out (-)"]]
    for record in records:
        changes = [f"+{name}" for name in record["entered"]] + [f"-{name}" for name in record["left"]]
        rows.append([*(_cell(record[key]) for key in figures), _cell(changes)])
    widths = [max(len(row[place]) for row in rows) for place in range(len(figures))]
    lines = []
    for number, row in enumerate(rows):
        mark = "*" if number and records[number - 1]["size"] == chosen else " "
        cells = [f"{cell:>{width}}" for cell, width in zip(row, widths, strict=False)]
        lines.append(f"{mark} {'  '.join([*cells, row[-1]])}".rstrip())
    return [*lines, "", f"* the model's own size, {chosen}"]


def _cell(value: Any, most: int = NAMES_SHOWN) -> str:
    if isinstance(value, list):
        more = len(value) - most
        return ", ".join(map(str, value[:most])) + (f" and {more} more" if more > 0 else "")
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return str(value)


def _sentences(model: Any) -> Any:
    """What each coefficient does, for those who read no formulas; for one output only."""
    form = formula_of(model)
    if len(form.coef) > 1:
        return
    notes = getattr(model, "raw_table_", None)
    baselines = {} if notes is None else notes.baselines
    yield _start(form)
    for part, weight in zip(needed_parts(model), form.coef[0].tolist(), strict=True):
        if part.level is None:
            when = f"for each unit more of {part.column}"
        else:
            than = f" rather than {baselines[part.column]}" if part.column in baselines else ""
            when = f"if {part.column} is {part.level}{than}"
        yield f"{when}, {_effect(form, weight)}"


def _start(form: Any) -> str:
    start = float(form.intercept[0])
    if form.classes is not None:
        odds = f" (odds of {math.exp(start):.4g})" if form.link == "log_loss" and abs(start) < 700 else ""
        return f"where all columns are 0 (or baselines), the score of {form.classes[1]!r} is {start:.6g}{odds}"
    if form.link == "exp":
        return f"where all columns are 0 (or baselines), the prediction is {_exponential(start)}"
    return f"the prediction starts at {start:.6g}, where all columns are 0 (or baselines)"


def _effect(form: Any, weight: float) -> str:
    if form.link == "log_loss":
        return f"the odds of {form.classes[1]!r} are multiplied by {_exponential(weight)}"
    if form.link == "exp":
        return f"it is multiplied by {_exponential(weight)}"
    what = "it" if form.classes is None else f"the score of {form.classes[1]!r}"
    return f"{what} {'rises' if weight >= 0 else 'falls'} by {abs(weight):.6g}"


def _exponential(score: float) -> str:
    return f"{math.exp(score):.6g}" if score < 700 else f"exp({score:.6g})"


def _encoding_sql(parts: list[Part], table: list[str], name: str) -> str:
    """A table with the columns of text split as the model wants them; NULL stays NULL."""
    if not parts:
        return ""
    made = [
        f"CASE WHEN r.{identifier(part.column)} = {literal(part.level)} THEN 1e0 "
        f"WHEN r.{identifier(part.column)} IS NOT NULL THEN 0e0 END AS {identifier(part.name)}"
        for part in parts
    ]
    columns = ",\n    ".join(["r.*", *made])
    source = ".".join(map(identifier, table))
    return f"WITH {identifier(name)} AS (\n  SELECT\n    {columns}\n  FROM {source} r\n)\n"


def _encoding_python(parts: list[Part]) -> str:
    if not parts:
        return ""
    recipe = {part.name: (part.column, part.level) for part in parts}
    return ENCODING.format(recipe=recipe)


ENCODING = '''

CATEGORIES = {recipe!r}


def encoded(row):
    """A raw row with the columns that stand for values of text: predict(encoded(row))."""
    for column, _ in CATEGORIES.values():
        if row[column] is None or row[column] != row[column]:
            raise ValueError(f"{{column!r}} is missing")
    return {{**row, **{{name: float(str(row[column]) == value) for name, (column, value) in CATEGORIES.items()}}}}
'''
