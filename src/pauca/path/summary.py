"""A model in words and numbers, for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pauca.path.path import Path


def summarize(path: Path, size: int) -> str:
    """The model of ``size`` as text: its features, their coefficients and what each is worth."""
    model = path[size]
    names = path.names(size)
    null = path[0].objective
    worth = [float(w) / null if null > 0 else 0.0 for w in model.worth]
    order = sorted(range(size), key=lambda i: -worth[i])
    rows = [("feature", "coefficient", "worth")]
    rows += [(names[i], f"{model.coef[i]:.6g}", f"{100 * worth[i]:.2f} %") for i in order]
    rows.append(("(intercept)", f"{model.intercept:.6g}", ""))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}".rstrip() for a, b, c in rows]
    lines.insert(1, "-" * (sum(widths) + 4))
    plural = "" if size == 1 else "s"
    head = f"{size} feature{plural} of {path.n_features}, objective {model.objective:.6g}"
    if null > 0:
        head += f", {100 * path.explained(size):.2f} % explained"
    notes = ["worth: what would be lost of the share explained if the feature were left out and the others refitted"]
    return "\n".join([head, "", *lines, "", *(notes if size else []), path.stop.sentence])
