"""Folds for cross-validation: any splitter of scikit-learn, turned into row weights."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, check_cv

DEFAULT_FOLDS = 5

P = TypeVar("P")


@dataclass(frozen=True, eq=False)
class Fold:
    """Rows to fit and rows to score."""

    counts: np.ndarray
    """How often the fit sees every row: a byte a row as a rule, since there may be many."""
    test: np.ndarray
    """Indices of the held-out rows."""
    weights_of_all: np.ndarray
    X: Any = None
    """The table as this fold sees it, where what is filled in for missing values differs; None for that of all rows."""

    @property
    def weights(self) -> np.ndarray:
        """Row weights that sum to one; zero for all rows that the fit must not see. Made when they are needed."""
        fit = self.weights_of_all * self.counts
        fit /= fit.sum()
        return fit

    def problem(self, problem: P) -> P:
        """A problem on the table as this fold sees it."""
        return problem if self.X is None else replace(problem, X=self.X)  # type: ignore[type-var]


class FoldWeights(Sequence[np.ndarray]):
    """The row weights of folds, each made when it is needed."""

    def __init__(self, folds: Sequence[Fold]) -> None:
        self._folds = folds

    def __len__(self) -> int:
        return len(self._folds)

    def __getitem__(self, number: Any) -> Any:
        return self._folds[number].weights


def make_folds(cv: Any, y: np.ndarray, groups: Any, weights: np.ndarray, *, classifies: bool) -> list[Fold]:
    """Folds of a splitter, an iterable of splits, or a number of folds."""
    n_rows = len(y)
    if groups is not None and len(groups) != n_rows:
        raise ValueError(f"groups must name the group of every row: there are {n_rows} rows and {len(groups)} groups.")
    # A row without weight is as if it were not there, except to splits that someone else has made.
    counted = weights > 0
    rows = np.flatnonzero(counted) if makes_splits(cv) and not counted.all() else None
    if rows is not None:
        y, groups = y[rows], None if groups is None else np.asarray(groups)[rows]
    if cv is None or isinstance(cv, numbers.Integral):
        splitter = _default(int(cv or DEFAULT_FOLDS), y, groups, classifies)
    else:
        splitter = check_cv(cv, y, classifier=classifies)
    table = np.broadcast_to(0.0, (len(y), 1))  # splitters ask for the number of rows alone
    splits = ([_indices(side, len(y), rows) for side in split] for split in splitter.split(table, y, groups))
    folds = [_fold(train, test, weights, counted) for train, test in splits]
    if not folds:
        raise ValueError(f"cv={cv!r} makes no folds.")
    return folds


def makes_splits(cv: Any) -> bool:
    """Whether splits are made for the rows at hand: by a number of folds or a splitter, not a list of splits."""
    return cv is None or isinstance(cv, numbers.Integral) or hasattr(cv, "split")


def _default(count: int, y: np.ndarray, groups: Any, classifies: bool) -> Any:
    """A splitter of ``count`` folds, fewer if rows are few; shuffled with a fixed seed, as tables are often sorted."""
    if groups is not None:
        count = min(count, len(np.unique(groups)))
        return GroupKFold(_enough(count, "groups of rows"))
    if classifies:
        rarest = int(np.unique(y, return_counts=True)[1].min())
        if rarest > 1:
            return StratifiedKFold(min(count, rarest), shuffle=True, random_state=0)
    return KFold(_enough(min(count, len(y)), "rows"), shuffle=True, random_state=0)


def _enough(count: int, what: str) -> int:
    if count < 2:
        raise ValueError(
            f"Choosing k by cross-validation needs at least two {what}, found n_samples=1; give k as a number."
        )
    return count


def _fold(train: np.ndarray, test: np.ndarray, weights: np.ndarray, counted: np.ndarray) -> Fold:
    scored = counted[test]
    if not (counted[train].any() and scored.any()):
        raise ValueError("cv makes a fold in which no row to fit, or no row to score, has weight.")
    return Fold(times_named(train, len(weights)), test if scored.all() else test[scored], weights)


def times_named(rows: np.ndarray, n_rows: int) -> np.ndarray:
    """How often every row is named, in as few bytes as that takes: splitters may draw with replacement."""
    once = np.zeros(n_rows, dtype=np.uint8)
    once[rows] = 1
    if np.count_nonzero(once) == len(rows):
        return once
    counts = np.bincount(rows, minlength=n_rows)
    return counts.astype(np.min_scalar_type(counts.max()))


def _indices(side: Any, n_rows: int, among: np.ndarray | None) -> np.ndarray:
    """One side of a split: indices of rows, counted from 0, or of rows ``among`` which it was made."""
    rows = np.asarray(side)
    if len(rows) and rows.dtype.kind not in "iu":
        raise TypeError(f"cv must make splits of indices; got an array of dtype {rows.dtype}.")
    outside = rows[(rows < 0) | (rows >= n_rows)]
    if len(outside):
        raise ValueError(f"cv makes a split with the index {outside[0]}, and there are {n_rows} to choose from.")
    rows = rows.astype(np.intp, copy=False)
    return rows if among is None else among[rows]
