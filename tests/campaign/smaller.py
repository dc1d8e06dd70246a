"""A case made smaller while the same kind of find is there, and a program that shows it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from verdicts import judged

MOST_TRIALS = 200


def smaller_case(case, what):
    """Fewer parameters, rows and columns, as long as a find of the kind ``what`` stays."""
    trials = 0
    changed = True
    while changed and trials < MOST_TRIALS:
        changed = False
        for other in _simpler(case):
            trials += 1
            if any(found == what for found, _ in judged(other).finds):
                case, changed = other, True
                break
            if trials >= MOST_TRIALS:
                break
    return case


def _simpler(case):
    """Cases that are simpler by one step."""
    for name in case.parameters:
        if name not in ("k", "costs", "ties"):
            yield replace(case, parameters={key: value for key, value in case.parameters.items() if key != name})
    if "certify" in case.extra:
        yield replace(case, extra={})
    if case.weights is not None:
        yield replace(case, weights=None)
    if case.form != "array":
        yield replace(case, form="array")
    n, d = case.X.shape
    for part in (n // 2, n // 4, 1):
        for first in range(0, n, part) if 0 < part < n else ():
            yield _rows(case, np.delete(np.arange(n), slice(first, first + part)))
    fixed = {"feature_groups", "costs", "groups", "always", "never"} & set(case.parameters)
    if d > 1 and not fixed and "dense" not in case.extra:
        for j in range(d):
            yield replace(case, X=np.delete(case.X, j, axis=1))
    rounded = np.round(case.X, 1)
    if not np.array_equal(rounded, case.X, equal_nan=True) and np.any(rounded):
        yield replace(case, X=rounded)


def _rows(case, rows):
    y = None if case.y is None else case.y[rows]
    weights = case.weights if case.weights is None or len(case.weights) != len(case.X) else case.weights[rows]
    extra = {name: value[rows] if name == "offset" else value for name, value in case.extra.items()}
    return replace(case, X=case.X[rows], y=y, weights=weights, extra=extra)


def program(case):
    """Python that runs the case."""
    with np.printoptions(threshold=np.inf, linewidth=110, floatmode="unique"):
        lines = [
            "import sys",
            'sys.path.insert(0, "tests/campaign")',
            "from numpy import array, inf, nan",
            "from cases import Case",
            "from verdicts import judged",
            f"X = {case.X!r}",
            f"y = {case.y!r}",
            f"weights = {case.weights!r}",
            f"case = Case({case.seed}, {case.family!r}, {case.parameters!r}, X, {case.form!r}, y, weights, "
            f"{case.tame}, extra={case.extra!r})",
            "print(judged(case))",
        ]
    return "\n".join(lines)
