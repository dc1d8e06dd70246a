"""The two forms of a fitted sparse model: in the search's coordinates, and in the user's units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A model as the search met it, in the search's coordinates."""

    support: tuple[int, ...]
    coef: np.ndarray
    value: float
    variance: np.ndarray
    """Diagonal of the inverse Hessian on the support: what the coefficients' variances are proportional to."""


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted model of one size, in the user's units.

    Attributes
    ----------
    support : ndarray of shape (k,)
        Indices of the chosen columns, ascending.
    coef : ndarray of shape (k,)
        Their coefficients, in the same order.
    intercept : float
    objective : float
        ``Q``: half the weighted mean squared error, plus the ridge term if there is one.
    worth : ndarray of shape (k,)
        By how much ``Q`` would rise if the feature were left out and the others refitted.
    """

    support: np.ndarray
    coef: np.ndarray
    intercept: float
    objective: float
    worth: np.ndarray

    @property
    def size(self) -> int:
        """Number of features."""
        return len(self.support)
