"""Which sizes a fit asks for, which a choice compares, and checks of the options of choosing."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pauca.checks import ParameterChecks
from pauca.results.choice import CRITERIA, FOLD_RULES

# Without sizes to compare: the first range ends here, grows by half (and at least by so many) while the best size lies
# beyond this share of it, and never exceeds this many.
FIRST_LARGEST = 10
LEAST_GROWTH = 10
BEST_WITHIN = 0.7
MOST_SIZES = 200

# Nor this share of the rows: with as many features as rows every model fits, and folds tell little.
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
        sizes = range(self.largest + 1) if self.sizes is None else self.sizes
        return sorted({min(size, reached) for size in sizes})

    def compared(self, size: int) -> bool:
        """Whether a size is among those to compare."""
        return size <= self.largest and (self.sizes is None or size in self.sizes)


AUTO = "auto"
ALLOWED = "an int in the range [1, inf), 'auto', None, or sizes such as range(1, 31)"

Sizes = int | tuple[int, ...] | str | None
"""What ``k`` asks for: one size, sizes to compare, "auto", or None for as many features as lower the objective."""


def parse_sizes(check: ParameterChecks, k: Any) -> Sizes:
    """The parameter ``k``, checked; sizes to compare are in order."""
    if k is None or (isinstance(k, str) and k == AUTO):
        return k
    if isinstance(k, Iterable) and not isinstance(k, Iterator | str):
        sizes = tuple(k)
        if not sizes or any(isinstance(s, bool) or not isinstance(s, numbers.Integral) or s < 0 for s in sizes):
            raise ValueError(check.message("k", ALLOWED, k))
        if max(sizes) < 1:
            raise ValueError("'k' must hold a size of at least 1.")
        return tuple(sorted({int(size) for size in sizes}))
    if isinstance(k, str):
        raise ValueError(check.message("k", ALLOWED, k))
    if isinstance(k, bool) or not isinstance(k, numbers.Integral):
        raise TypeError(check.message("k", ALLOWED, k))
    if k < 1:
        raise ValueError(check.message("k", ALLOWED, k))
    return int(k)


def largest_size(sizes: Sizes) -> int | None:
    """The largest size that is asked for; None if there is none."""
    return max(sizes) if isinstance(sizes, tuple) else sizes if isinstance(sizes, int) else None


def size_range_for(sizes: tuple[int, ...] | str, n_units: int, n_rows: int | None = None) -> SizeRange:
    """The sizes to compare; ``n_rows`` limits them where there are more features than rows."""
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
