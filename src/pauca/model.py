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
    intercept: np.ndarray | None = None
    """Shape (C,), where it does not follow from the coefficients."""
    importance: np.ndarray | None = None
    """Importance of each unit, shape (k,), where it does not follow from coefficients and variance."""
    reported: float | None = None
    """The objective as the user means it, where the search minimises something smoother."""
    diverged: bool = False
    """Whether the optimum lies at infinite coefficients."""
    converged: bool = True
    """Whether the solver converged."""


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted model of one size, in the user's units.

    Attributes
    ----------
    support : ndarray of shape (m,)
        Indices of the chosen columns, ascending.
    coef : ndarray of shape (m,), or (C, m) for C outputs
        Their coefficients, in the same order.
    intercept : float, or ndarray of shape (C,)
    objective : float
        ``Q``: the weighted mean loss (for squared loss half the mean squared error), plus the ridge term if there is
        one.
    importance : ndarray of shape (k,)
        By how much ``Q`` would rise if the unit were left out and the others refitted. They are not numbers where a
        time limit or Ctrl-C ended the fit before they were computed.
    importance_is_exact : bool
        Whether that is so, or an estimate to second order, which may be far off for strong units: exact for squared
        loss, and for the model of the chosen size.
    units : ndarray of shape (k,)
        The chosen units, ascending: columns, or groups of columns.
    diverged : bool
        Whether the optimum lies at infinite coefficients, as with classes that can be separated; those here are where
        there was next to nothing left to gain.
    converged : bool
        Whether the solver converged.
    shrinkage : float
        What the ridge term adds to the objective; ``loss`` is the objective without it.
    free : ndarray or None
        Parameters that are always in and never counted, of an objective that is no linear model; ``path.parameters``
        puts them together with the others.
    at_bound : ndarray of bool with the shape of ``coef``, or None
        Which coefficients are at one of their bounds; None where none of them is.
    """

    support: np.ndarray
    coef: np.ndarray
    intercept: float | np.ndarray
    objective: float
    importance: np.ndarray
    units: np.ndarray
    diverged: bool = False
    importance_is_exact: bool = True
    converged: bool = True
    free: np.ndarray | None = None
    shrinkage: float = 0.0
    at_bound: np.ndarray | None = None

    @classmethod
    def of_columns(
        cls,
        support: np.ndarray,
        coef: np.ndarray,
        intercept: np.ndarray,
        objective: float,
        importance: np.ndarray,
        *,
        exact: bool = False,
    ) -> Model:
        """A model whose units are columns, from coefficients of shape (C, m) and intercepts of shape (C,)."""
        single = len(coef) == 1
        coef, constant = (coef[0], float(intercept[0])) if single else (coef, intercept)
        return cls(support, coef, constant, objective, importance, support, importance_is_exact=exact)

    @property
    def loss(self) -> float:
        """The weighted mean loss: the objective without the ridge term."""
        return self.objective - self.shrinkage

    @property
    def held(self) -> np.ndarray:
        """Which columns of ``support`` have a coefficient at its bound, of any output."""
        if self.at_bound is None:
            return np.zeros(len(self.support), dtype=bool)
        return np.asarray(np.any(np.atleast_2d(self.at_bound), axis=0))

    @property
    def size(self) -> int:
        """Number of units."""
        return len(self.units)
