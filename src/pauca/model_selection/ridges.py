"""Ridges to compare: what a parameter asks for, and the grids that are taken where it asks for none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pauca.checks import ParameterChecks
from pauca.model_selection.sizes import AUTO, Sizes

Ridges = float | tuple[float, ...] | str | None
"""What ``ridge`` asks for: a number, numbers to compare, "auto", or None for what suits the choice of the size."""

ALLOWED = "a float in the range [0, inf), a list of such, 'auto' or None"

# The grids were found on the settings of Hastie, Tibshirani and Tibshirani (2020) and on tables of genes and texts:
# docs/choosing_k.md. Ridges are those of standardised columns, in units of the curvature of the loss.
SEARCH_RIDGES = {False: (0.0, 0.3), True: (0.3, 3.0)}
"""Ridges of the search, for numbers and for classes."""

LARGEST_RIDGE = {False: 10.0, True: 3.0}
"""The largest ridge of a fit, for numbers and for classes: larger ones changed nothing."""

# Without a floor folds with few rows prefer hardly shrunk models that happen to fit: half of log(p) / n.
FLOOR_SHARE = 0.5

# Of very many rows: the least ridge of a grid that is not zero.
SMALLEST_RIDGE = 1e-5


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
        raise ValueError(check.message(name, ALLOWED, value))
    if isinstance(value, Iterable) and not isinstance(value, Iterator):
        ridges = tuple(value)
        if not ridges:
            raise ValueError(f"{check.message(name, ALLOWED, value)} The list is empty.")
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
    ridge: Ridges, search_ridge: Ridges, *, chooses_size: bool, classifies: bool, n_rows: int, n_units: int
) -> RidgeGrid:
    """The ridges to compare; ``chooses_size`` says that sizes are compared by cross-validation."""
    fit, tuned = _values(ridge, AUTO if chooses_size else 0.0, fit_ridges(n_rows, n_units, classifies))
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
    """Ridges of the fit in half-decades, from half of ``log(p) / n`` upwards; for numbers also 0."""
    floor = max(FLOOR_SHARE * np.log(max(2, n_units)) / max(1, n_rows), SMALLEST_RIDGE)
    largest = LARGEST_RIDGE[classifies]
    decades = [step * 10.0**power for power in range(-6, 2) for step in (1, 3)]
    grid = tuple(float(f"{ridge:g}") for ridge in decades if floor <= ridge <= largest) or (largest,)
    return grid if classifies else (0.0, *grid)
