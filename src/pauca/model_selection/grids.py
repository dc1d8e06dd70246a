"""The sizes and ridges that a fit asks for and a choice compares, and checks of the options of choosing."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pauca.checks import ParameterChecks
from pauca.losses import Loss
from pauca.results.choice import CRITERIA, FOLD_RULES

# Without sizes to compare: the first range ends here, grows by half (and at least by so many) while the best size lies
# beyond this share of it, and never exceeds this many.
FIRST_LARGEST = 20
LEAST_GROWTH = 10
BEST_WITHIN = 0.7
MOST_SIZES = 200

# Beyond this many sizes they are compared in steps of a twentieth, every second from 40 on, every fifth from 100 on:
# neighbours differ less and less, and cost more and more.
EVERY_SIZE_TO = 40
STEPS = 20

# Sizes do not exceed this share of the rows either: with as many features as rows every model fits, and folds tell
# little.
MOST_PER_ROW = 0.5


@dataclass(frozen=True)
class SizeRange:
    """The sizes to compare: those that were given, or as many as it takes.

    Attributes
    ----------
    largest : int
        The largest size to go to now.
    sizes : tuple of int or None
        The sizes to compare; None for all up to the largest.
    most : int
        The largest size to ever go to.
    """

    largest: int
    sizes: tuple[int, ...] | None
    most: int

    @classmethod
    def given(cls, sizes: tuple[int, ...]) -> SizeRange:
        """These sizes and no others."""
        return cls(max(sizes), sizes, max(sizes))

    @classmethod
    def open(cls, n_units: int) -> SizeRange:
        """As many sizes as it takes."""
        most = max(1, min(n_units, MOST_SIZES))
        return cls(min(FIRST_LARGEST, most), None, most)

    def further(self, best: int, reached: int) -> SizeRange | None:
        """The next range, by the best size so far and the largest that was reached; None if this one suffices."""
        if self.largest >= self.most or reached < self.largest or best <= BEST_WITHIN * self.largest:
            return None
        larger = self.largest + max(LEAST_GROWTH, self.largest // 2)
        return SizeRange(min(larger, self.most), self.sizes, self.most)

    def compared_up_to(self, reached: int) -> list[int]:
        """The sizes to compare, as far as a path that has reached some size can tell."""
        sizes = filter(self.compared, range(self.largest + 1)) if self.sizes is None else self.sizes
        return sorted({min(size, reached) for size in sizes})

    def compared(self, size: int) -> bool:
        """Whether a size is among those to compare."""
        if size > self.largest:
            return False
        if self.sizes is None:
            return size == self.largest or size <= EVERY_SIZE_TO or size % (size // STEPS) == 0
        return size in self.sizes


AUTO = "auto"
ALLOWED_SIZES = "an int in the range [1, inf), 'auto', None, or sizes such as range(1, 31)"

Sizes = int | tuple[int, ...] | str | None
"""What ``k`` asks for: one size, sizes to compare, "auto", or None for as many features as lower the objective."""


def parse_sizes(check: ParameterChecks, k: Any) -> Sizes:
    """The parameter ``k``, checked; sizes to compare are in order."""
    if k is None or (isinstance(k, str) and k == AUTO):
        return k
    if isinstance(k, Iterable) and not isinstance(k, Iterator | str):
        sizes = tuple(k)
        if not sizes or any(isinstance(s, bool) or not isinstance(s, numbers.Integral) or s < 0 for s in sizes):
            raise ValueError(check.message("k", ALLOWED_SIZES, k))
        if max(sizes) < 1:
            raise ValueError("'k' must hold a size of at least 1.")
        return tuple(sorted({int(size) for size in sizes}))
    if isinstance(k, str):
        raise ValueError(check.message("k", ALLOWED_SIZES, k))
    if isinstance(k, bool) or not isinstance(k, numbers.Integral):
        raise TypeError(check.message("k", ALLOWED_SIZES, k))
    if k < 1:
        raise ValueError(check.message("k", ALLOWED_SIZES, k))
    return int(k)


def largest_size(sizes: Sizes) -> int | None:
    """The largest size that is asked for; None if there is none."""
    return max(sizes) if isinstance(sizes, tuple) else sizes if isinstance(sizes, int) else None


def size_range_for(sizes: tuple[int, ...] | str, n_units: int, n_rows: int | None = None) -> SizeRange:
    """The sizes to compare; those that are not given end at half of ``n_rows``."""
    if not isinstance(sizes, str):
        return SizeRange.given(sizes)
    return SizeRange.open(n_units if n_rows is None else min(n_units, int(MOST_PER_ROW * n_rows)))


def check_cross_validation(check: ParameterChecks, cv: Any, selection_rule: Any, n_jobs: Any) -> None:
    """Raise an error if an option of cross-validation is invalid."""
    check_rule(check, selection_rule)
    check_folds(cv)
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, numbers.Integral) or not n_jobs):
        raise ValueError(f"n_jobs must be an integer other than 0, or None; got {n_jobs!r}.")


def check_rule(check: ParameterChecks, selection_rule: Any) -> None:
    """Raise an error unless a rule is "1se", "best", or a number of standard errors."""
    if isinstance(selection_rule, str) or selection_rule is None:
        if selection_rule not in FOLD_RULES:
            wanted = f"one of {', '.join(map(repr, FOLD_RULES))}, or a number of standard errors"
            raise ValueError(check.message("selection_rule", wanted, selection_rule))
        return
    check.number("selection_rule", selection_rule, otherwise=", '1se' or 'best'")


def check_folds(cv: Any) -> None:
    """Raise an error unless ``cv`` is a number of folds, a splitter or an iterable of splits."""
    if cv is None:
        return
    is_valid = isinstance(cv, numbers.Integral) or hasattr(cv, "split") or hasattr(cv, "__iter__")
    if isinstance(cv, bool | str) or not is_valid:
        raise TypeError(f"cv must be an integer, a splitter such as KFold, or an iterable of splits; got {cv!r}.")
    if isinstance(cv, numbers.Integral) and cv < 2:
        raise ValueError(f"cv must be at least 2 folds; got {cv!r}.")


def check_criterion(check: ParameterChecks, criterion: Any, **of_folds: Any) -> None:
    """Raise an error if an information criterion is unknown, or comes with options of cross-validation."""
    if criterion is None:
        return
    check.one_of("criterion", criterion, tuple(CRITERIA))
    given = [name for name, value in of_folds.items() if value is not None]
    if given:
        raise ValueError(f"'criterion' needs no folds: leave out {' and '.join(given)}, or criterion.")


Ridges = float | tuple[float, ...] | str | None
"""What ``ridge`` asks for: a number, numbers to compare, "auto", or None for what suits the choice of the size."""

ALLOWED_RIDGES = "a float in the range [0, inf), a list of such, 'auto' or None"

# The grids were found on the settings of Hastie, Tibshirani and Tibshirani (2020), on their twins with two classes, and
# on real tables: docs/choosing_k.md. Ridges are those of standardised columns, in units of the curvature of the loss.
SEARCH_RIDGES = {False: (0.0, 0.3), True: (0.03, 3.0)}
"""Ridges of the search, for numbers and for classes."""

LARGEST_RIDGE = {False: 10.0, True: 3.0}
"""The largest ridge of a fit, for numbers and for classes: larger ones changed nothing."""

# The least ridge of a fit that is not zero: for numbers half of log(p) / n, below which none was needed, and of very
# many rows this one; for classes this one, as heavier ones lose where classes are nearly separable.
FLOOR_SHARE = 0.5
SMALLEST_RIDGE = {False: 1e-5, True: 1e-4}


@dataclass(frozen=True)
class RidgeGrid:
    """The ridges of the search and those of the fit that are compared, ascending."""

    search: tuple[float, ...]
    fit: tuple[float, ...]
    search_in_units: bool = False
    """Whether the ridges of the search are multiples of what the rows of a fit make the unit."""
    fit_in_units: bool = False

    @property
    def single(self) -> bool:
        """Whether there is nothing to compare."""
        return len(self.search) == len(self.fit) == 1


def parse_ridges(check: ParameterChecks, name: str, value: Any) -> Ridges:
    """A parameter that says which ridges to compare, checked; those of a list in order."""
    if value is None or (isinstance(value, str) and value == AUTO):
        return value
    if isinstance(value, str):
        raise ValueError(check.message(name, ALLOWED_RIDGES, value))
    if isinstance(value, Iterable) and not isinstance(value, Iterator):
        ridges = tuple(value)
        if not ridges:
            raise ValueError(f"{check.message(name, ALLOWED_RIDGES, value)} The list is empty.")
        return tuple(sorted({_number(check, name, ridge) for ridge in ridges}))
    return _number(check, name, value)


def _number(check: ParameterChecks, name: str, value: Any) -> float:
    return check.number(name, value, otherwise=", a list of such, 'auto' or None")


def check_ridges(ridge: Ridges, search_ridge: Ridges, sizes: Sizes, criterion: str | None) -> None:
    """Raise an error where ridges are to be compared and nothing can be."""
    for name, value in (("ridge", ridge), ("search_ridge", search_ridge)):
        if not isinstance(value, tuple | str):
            continue
        if criterion is not None:
            raise ValueError(
                f"'criterion' compares sizes at one ridge: give {name} as a number, or leave out criterion to choose "
                "it by cross-validation."
            )
        if sizes is None:
            raise ValueError(f"k=None cannot be combined with {name}={value!r}: give k, or {name} as a number.")


def make_grid(
    ridge: Ridges, search_ridge: Ridges, *, chooses_size: bool, loss: Loss, n_rows: int, n_units: int
) -> RidgeGrid:
    """The ridges to compare; ``chooses_size`` says that sizes are compared by cross-validation."""
    classifies = loss.classifies
    fit, tuned = _values(ridge, AUTO if chooses_size else 0.0, fit_ridges(n_rows, n_units, classifies))
    if tuned and (loss.joint or loss.coupled):
        # A fit of many classes, or of rows that depend on each other, costs as much as all ridges of others.
        fit = fit[::2]
    if search_ridge is None and not tuned and not isinstance(ridge, tuple):
        return RidgeGrid(fit, fit)
    search, by_default = _values(search_ridge, AUTO, SEARCH_RIDGES[classifies])
    return RidgeGrid(search, fit, by_default, tuned)


def _values(asked: Ridges, default: Ridges, auto: tuple[float, ...]) -> tuple[tuple[float, ...], bool]:
    """The ridges asked for, and whether they are those of "auto"."""
    asked = default if asked is None else asked
    if isinstance(asked, str):
        return auto, True
    return (asked if isinstance(asked, tuple) else (asked or 0.0,)), False


def fit_ridges(n_rows: int, n_units: int, classifies: bool) -> tuple[float, ...]:
    """Ridges of the fit in half-decades; for numbers from half of ``log(p) / n`` upwards, and 0."""
    floor = 0.0 if classifies else FLOOR_SHARE * np.log(max(2, n_units)) / max(1, n_rows)
    floor = max(floor, SMALLEST_RIDGE[classifies])
    largest = LARGEST_RIDGE[classifies]
    decades = [step * 10.0**power for power in range(-6, 2) for step in (1, 3)]
    grid = tuple(float(f"{ridge:g}") for ridge in decades if floor <= ridge <= largest) or (largest,)
    return grid if classifies else (0.0, *grid)
