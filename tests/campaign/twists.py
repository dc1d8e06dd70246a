"""Second thoughts about a case: options in combination, folds, weights and forms that the first draw lacks.

They are drawn apart from the case, so that seeds without a twist mean what they meant before.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from data_kinds import RAW_FORMS, ROW_FORMS, TWISTED_FORMS
from wide import wide

SHARE = 0.3
"""How many cases get a twist."""

SEARCHES = ("SparseRegressor", "SparseClassifier", "SparseCox", "SparseOrdinalClassifier")
WITHOUT_TABLE = ("SparseTagger", "select")
NEVER_WIDE = (*WITHOUT_TABLE, "sparsify", "TableEncoder")

WIDE_SHARE, WIDE_BALLS = 0.04, 0.25
"""How many cases have many columns; of l1 balls more, whose searches depend on how many there are."""


def twisted(case, seed):
    """The case, or in its place one that is stranger."""
    rng = np.random.default_rng([2028, seed])
    if case.family not in NEVER_WIDE and rng.random() < (WIDE_BALLS if case.family.startswith("L1") else WIDE_SHARE):
        return wide(case, rng)
    rng = np.random.default_rng([2027, seed])
    if rng.random() >= SHARE or case.family in WITHOUT_TABLE:
        return case
    possible = [twist for twist, families in TWISTS.items() if families is None or case.family in families]
    return possible[int(rng.integers(len(possible)))](case, rng)


def _another_form(case, rng):
    if case.form != "array":
        return case
    return replace(case, form=str(rng.choice(list(TWISTED_FORMS))), tame=False)


def _strange_folds(case, rng):
    """Folds that overlap, are empty, leave rows out, repeat rows or test one row."""
    if "cv" not in case.parameters:
        return case
    n = len(case.X)
    rows, half = np.arange(n), n // 2
    folds = [
        [(rows[half:], rows[:half]), (rows[:half], rows[:0])],
        [(rows[:0], rows), (rows[:half], rows[half:])],
        [(rows, rows), (rows, rows[half:])],
        [(rows[1:], rows[:1]), (rows[:-1], rows[-1:])],
        [(rows[: n // 3], rows[n // 3 :]), (rows[: 2 * n // 3], rows[2 * n // 3 :])],
        [(np.repeat(rows[:half], 2), rows[half:])],
        [(rows[half:], rows[:half] + n)],
        [],
    ]
    chosen = [(train.tolist(), test.tolist()) for train, test in folds[int(rng.integers(len(folds)))]]
    return replace(case, parameters=case.parameters | {"cv": chosen}, tame=False)


def _many_limits(case, rng):
    """Groups with prices and a budget, or parents with prices, and several ridges."""
    d = case.X.shape[1]
    given = {
        name: value
        for name, value in case.parameters.items()
        if name not in ("feature_groups", "max_per_group", "always", "never", "bounds", "costs", "budget", "missing")
    }
    if d < 3 or case.form in RAW_FORMS:
        return case
    if rng.random() < 0.7:
        given["costs"], given["budget"] = rng.integers(1, 4, d).tolist(), float(rng.integers(2, 3 * d))
    if rng.random() < 0.5:
        given["feature_groups"] = rng.integers(0, max(2, d // 2), d).tolist()
        if rng.random() < 0.3:
            given["never"] = [given["feature_groups"][0]]
    else:
        parents = {d - 1: (0, 1)} if rng.random() < 0.7 else {d - 1: (0,), 0: (1,)}
        given["heredity"] = ("weak", parents) if rng.random() < 0.4 else parents
        if rng.random() < 0.3:
            given["bounds"] = (0, None)
    if "cv" in given and rng.random() < 0.5:
        given["ridge"] = [0.0, 0.01, 1.0]
    return replace(case, parameters=given, tame=False)


def _no_weight(case, rng):
    """No weight for all rows of a class, of the upper half of the targets, or of the first third of the table."""
    y, n = case.y, len(case.X)
    first = np.arange(n) < n // 3
    if y is None or y.ndim > 1 or rng.random() < 0.4:
        without = first
    else:
        without = y == y[0] if len(np.unique(y)) < 6 else y > np.median(y)
    tiny = float(rng.choice([0.0, 0.0, 1e-300, 1e-12]))
    return replace(case, weights=np.where(without, tiny, 1.0), tame=False)


def _constant_part(case, rng):
    """A target that is sorted, or the same in the first half: folds without a class, or without any change."""
    y = case.y
    if y is None or y.ndim > 1 or not np.all(np.isfinite(y)):
        return case
    half = np.arange(len(y)) < len(y) // 2
    return replace(case, y=np.sort(y) if rng.random() < 0.5 else np.where(half, y[0], y), tame=False)


def _size_beyond(case, rng):
    d = case.X.shape[1]
    sizes = [d + 5, 0, 10**6, range(d + 4)]
    given = {"cv": 2} | case.parameters | {"k": sizes[int(rng.integers(len(sizes)))]}
    if case.family == "SparsePrecision" or "criterion" in given:
        return case
    return replace(case, parameters=given, tame=False)


def _no_time(case, rng):
    return replace(
        case, parameters=case.parameters | {"time_limit": float(rng.choice([1e-300, 1e-9, 1e-3]))}, tame=False
    )


def _fitted_before(case, rng):
    """An estimator that was fitted to other rows before: nothing of that may be left."""
    how = str(rng.choice(["fitted", "loaded", "pickled", "cloned", "after an error"]))
    return replace(case, extra=case.extra | {"before": how})


def _offset(case, rng):
    """A part of the scores that is known."""
    if case.form != "array" or case.y is None or case.y.ndim > 1 or "before" in case.extra:
        return case
    return replace(case, extra=case.extra | {"offset": rng.standard_normal(len(case.X))}, tame=False)


def _some_time(case, rng):
    """A time limit that may be long enough: what is said of it must be true."""
    return replace(case, parameters=case.parameters | {"time_limit": float(10.0 ** rng.uniform(-2, 0))}, tame=False)


def _row_form(case, rng):
    """The target, the weights, the offset or the groups of rows in another form."""
    y = case.y
    if y is None or y.ndim > 1 or case.family == "SparseCox":
        return case
    what = str(rng.choice(["y", "y", "weights", "offset", "groups"]))
    if what in ("offset", "groups") and case.family not in ("SparseRegressor", "SparseClassifier"):
        what = "y"
    names = list(ROW_FORMS)
    # Classes of another type are other classes, which the judges do not know.
    known = case.family.endswith("Regressor") or what != "y"
    form = str(rng.choice([name for name in names if known or name not in ("categories", "dates", "intervals")]))
    weights = np.ones(len(y)) if what == "weights" and case.weights is None else case.weights
    extra = case.extra | {"form of rows": (what, form)}
    if what == "offset":
        extra["offset"] = rng.standard_normal(len(y))
    if what == "groups":
        extra["groups"] = np.arange(len(y)) // 2
    return replace(case, weights=weights, extra=extra, tame=False)


LINEAR = (*SEARCHES, "L1Regressor", "L1Classifier", "StreamRegressor", "StreamClassifier")


# What each twist applies to; None: all that take a table.
TWISTS = {
    _another_form: None,
    _strange_folds: (*SEARCHES, "L1Regressor", "L1Classifier", "SparsePrecision"),
    _many_limits: SEARCHES,
    _no_weight: (*LINEAR, "SparsePrecision"),
    _constant_part: LINEAR,
    _size_beyond: SEARCHES,
    _no_time: (*LINEAR, "SparsePrecision"),
    _fitted_before: (*LINEAR, "SparsePrecision"),
    _offset: ("SparseRegressor", "SparseClassifier"),
    _some_time: (*LINEAR, "SparsePrecision"),
    _row_form: LINEAR,
}
