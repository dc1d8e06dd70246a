"""A model in words and numbers, for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pauca.path.path import Path

# Of models with more outputs than this, the coefficients of the first few are shown.
MOST_OUTPUTS = 6


def summarize(path: Path, size: int) -> str:
    """The model of ``size`` as text: its features, their coefficients and what each is worth."""
    model = path[size]
    null = path[0].objective
    noun = "feature" if path.group_labels is None else "group"
    of = path.n_features if path.group_labels is None else len(path.group_labels)
    head = f"{size} {noun}{'' if size == 1 else 's'} of {of}, objective {model.objective:.6g}"
    if null > 0:
        head += f", {100 * path.explained(size):.2f} % explained"
    lines = _aligned(_rows(path, size), left=1 if path.group_labels is None else 2)
    notes = []
    if size:
        about = "" if model.worth_is_exact else "about "
        left_out = f"if the {noun} were left out and the others refitted"
        notes.append(f"worth: {about}what would be lost of the share explained {left_out}")
    if model.at_infinity:
        notes.append(
            "Some coefficients would grow on, as where some rows can be told apart without error: their sizes say little."
        )
    return "\n".join([head, "", *lines, "", *notes, path.stop.sentence])


def _rows(path: Path, size: int) -> list[list[str]]:
    """The table's cells: the head, a row for each feature, the most valuable first, and the intercept."""
    model = path[size]
    null = path[0].objective
    outputs = path.output_names or ["coefficient"]
    shown = outputs[:MOST_OUTPUTS]
    coef = np.atleast_2d(model.coef)[: len(shown)]
    intercept = np.atleast_1d(model.intercept)[: len(shown)]
    grouped = path.group_labels is not None
    blank = [""] if grouped else []
    rows = [[*(["group"] if grouped else []), "feature", *shown, "worth"]]
    names = dict(zip(model.support.tolist(), path.names(size), strict=True))
    places = {column: place for place, column in enumerate(model.support.tolist())}
    for position in np.argsort(-model.worth, kind="stable"):
        worth = f"{100 * model.worth[position] / null:.2f} %" if null > 0 else "0.00 %"
        unit = int(model.units[position])
        label = [str(path.group_labels[unit])] if path.group_labels is not None else []
        columns = path.columns_of(size, unit)
        for column in columns:
            numbers = [f"{value:.6g}" for value in coef[:, places[column]]]
            rows.append([*label, names[column], *numbers, worth])
            label, worth = blank, ""
    rows.append([*blank, "(intercept)", *(f"{value:.6g}" for value in intercept), ""])
    return rows


def _aligned(rows: list[list[str]], left: int) -> list[str]:
    """Rows as lines, the first ``left`` columns aligned left and the others right, with a rule below the head."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            f"{cell:<{w}}" if i < left else f"{cell:>{w}}" for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "-" * (sum(widths) + 2 * (len(widths) - 1)))
    return lines
