"""The sizes and the ridges that a choice compares."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pauca.losses import Loss
from pauca.methods.forward import sizes_growing_by

AUTO = "auto"

Sizes = int | tuple[int, ...] | str | None
"""What ``k`` may be: one size, sizes to compare, "auto", or None for as many features as lower the objective."""

Ridges = float | tuple[float, ...] | str | None
"""What ``ridge`` may be: a number, numbers to compare, "auto", or None for what suits the choice of the size."""

# Without sizes to compare: the first range ends here, grows by half (and at least by so many) while the best size lies
# beyond this share of it, and never exceeds this many.
FIRST_LARGEST = 20
LEAST_GROWTH = 10
BEST_WITHIN = 0.7
LARGEST_SIZE = 200

# Sizes grow by this share, and at least by one: every size to 20, every second to 30, every tenth around 100.
# Neighbours differ less and less, and cost more and more.
SIZE_GROWTH = 0.1

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
        The sizes to compare; None for those of a path that grows by a tenth at a time, up to the largest.
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
        most = max(1, min(n_units, LARGEST_SIZE))
        return cls(min(FIRST_LARGEST, most), None, most)

    def further(self, best: int, reached: int) -> SizeRange | None:
        """The next range, by the best size so far and the largest that was reached; None if this one suffices."""
        if self.largest >= self.most or reached < self.largest or best <= BEST_WITHIN * self.largest:
            return None
        larger = self.largest + max(LEAST_GROWTH, self.largest // 2)
        larger = next(size for size in sizes_growing_by(SIZE_GROWTH) if size >= larger)
        return SizeRange(min(larger, self.most), self.sizes, self.most)

    def compared_up_to(self, reached: int) -> list[int]:
        """The sizes to compare, as far as a path that has reached some size can tell."""
        sizes = filter(self.compared, range(self.largest + 1)) if self.sizes is None else self.sizes
        return sorted({min(size, reached) for size in sizes})

    def among(self, met: list[int]) -> list[int]:
        """Those to compare of the sizes that were met, ascending; where none are given, also the last of them."""
        last = met[-1:] if self.sizes is None else []
        return [size for size in met if self.compared(size) or size in last]

    def compared(self, size: int) -> bool:
        """Whether a size is among those to compare."""
        if size > self.largest:
            return False
        if self.sizes is None:
            return size == self.largest or size == next(step for step in sizes_growing_by(SIZE_GROWTH) if step >= size)
        return size in self.sizes


def size_range_for(sizes: tuple[int, ...] | str, n_units: int, n_rows: int | None = None) -> SizeRange:
    """The sizes to compare; those that are not given end at half of ``n_rows``."""
    if not isinstance(sizes, str):
        return SizeRange.given(sizes)
    return SizeRange.open(n_units if n_rows is None else min(n_units, int(MOST_PER_ROW * n_rows)))


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

# Where classes are separated, as by a column that gives them away, the lightest ridge is chosen and still too heavy:
# then lighter ones are compared too, so many half-decades at a time, down to the last, for each takes longer than the
# one before. It must leave this share less of the loss than the next heavier one: where a column gives the classes away
# it leaves a fifth to a half less; of 4601 mails half a per cent, and there lighter ones took twice the time of all
# else, for nothing.
HALF_DECADES_ADDED = 2
GAINED_BY_LIGHTEST = 0.05
LIGHTEST_RIDGE = 1e-8


@dataclass(frozen=True)
class RidgeGrid:
    """The ridges of the search and those of the fit that are compared, ascending."""

    search: tuple[float, ...]
    fit: tuple[float, ...]
    search_in_units: bool = False
    """Whether the ridges of the search are multiples of what the rows of a fit make the unit."""
    fit_in_units: bool = False
    grows: bool = False
    """Whether lighter ridges of the fit are compared as well where the lightest is chosen."""
    n_added: int = 0
    """How many of the lightest were added for that."""

    @property
    def single(self) -> bool:
        """Whether there is nothing to compare."""
        return len(self.search) == len(self.fit) == 1

    def lighter(self) -> RidgeGrid:
        """The grid with the next lighter ridges of the fit, in the same steps."""
        every = 2 if self.fit[1] > 5 * self.fit[0] else 1  # powers of ten only
        lighter = _half_decades(LIGHTEST_RIDGE, self.fit[0])[:-1][::-1][every - 1 :: every]
        added = lighter[: HALF_DECADES_ADDED // every]
        n_added = self.n_added + len(added)
        return replace(self, fit=(*added[::-1], *self.fit), n_added=n_added, grows=len(added) < len(lighter))


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
    return RidgeGrid(search, fit, by_default, tuned, grows=tuned and classifies and len(fit) > 1)


def _values(given: Ridges, default: Ridges, auto: tuple[float, ...]) -> tuple[tuple[float, ...], bool]:
    """The requested ridges, and whether they are those of "auto"."""
    given = default if given is None else given
    if isinstance(given, str):
        return auto, True
    return (given if isinstance(given, tuple) else (given or 0.0,)), False


def fit_ridges(n_rows: int, n_units: int, classifies: bool) -> tuple[float, ...]:
    """Ridges of the fit in half-decades; for numbers from half of ``log(p) / n`` upwards, and 0."""
    floor = 0.0 if classifies else FLOOR_SHARE * np.log(max(2, n_units)) / max(1, n_rows)
    floor = max(floor, SMALLEST_RIDGE[classifies])
    largest = LARGEST_RIDGE[classifies]
    grid = _half_decades(floor, largest) or (largest,)
    return grid if classifies else (0.0, *grid)


def _half_decades(least: float, largest: float) -> tuple[float, ...]:
    """1 and 3 times powers of ten, ascending."""
    steps = (float(f"{step}e{power}") for power in range(-8, 2) for step in (1, 3))
    return tuple(step for step in steps if least <= step <= largest)
