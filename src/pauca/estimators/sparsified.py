"""A sparse model made of a dense one, with what that has cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from pauca.estimators.checks import check_rows
from pauca.losses import Loss
from pauca.path import column_names
from pauca.sampling import Draw

# So many features, and outputs, are shown by name.
MOST_SHOWN = 30
MOST_OUTPUTS = 6

# Objectives below this share of others are nothing.
ROUNDING = 1e-12


class Reader(BaseEstimator):
    """Stands where scikit-learn's checks want an estimator: it knows the columns of X and nothing else."""

    n_features_in_: int
    feature_names_in_: np.ndarray


# The checks name the class in what they say to users, who have called a function.
Reader.__name__ = "sparsify"


@dataclass(frozen=True, eq=False, repr=False)
class Sparsified:
    """A sparse linear model made of a dense one by ``pauca.sparsify``.

    Attributes
    ----------
    coef : ndarray of shape (n_features,), or (n_outputs, n_features) for several outputs
        Coefficients; zero for features that are not in the model.
    intercept : float, or ndarray of shape (n_outputs,)
    support : ndarray
        Indices of the features in the model, ascending.
    objective : float
        ``Q`` of the model: the weighted mean loss plus the ridge term. Without y the loss is half the squared
        difference from the scores of the dense model.
    drawn : Draw
        What was drawn, before any refit: ``drawn.support`` and ``drawn.values``.
    drawn_objective : float
        ``Q`` of that with the best intercept.
    dense_objective : float
        ``Q`` of the dense model with the best intercept.
    measured_excess : float
        ``drawn_objective - dense_objective``.
    measured : ndarray of shape (repeats,)
        The same for every repeat, in order; the least is that of the draw that was kept.
    expected_excess : float or None
        The mean of the excess over all draws, or an upper bound of it, as ``expectation`` says; None where the loss is
        neither smooth nor Lipschitz.
    expectation : {"exact", "upper bound", "none"}
        What ``expected_excess`` is. Exact for squared loss; "truncate" draws nothing, so that what was measured is
        exact whatever the loss.
    bound : float or None
        What the expected excess does not exceed whatever the correlations of the columns: the bound of the papers. None
        for "truncate", which has none.
    chances : ndarray of shape (n_features,)
        The chance of every feature to be drawn.
    method : str
    draws : int
        The ``k`` that was asked for.
    refitted : bool
        Whether ``coef`` is the best fit on the support, or the draw itself.
    classes : ndarray or None
        The classes that the scores tell apart, in order.
    feature_names : ndarray or None
        Names of all columns, where X has some.
    """

    coef: np.ndarray
    intercept: Any
    support: np.ndarray
    objective: float
    drawn: Draw
    drawn_objective: float
    dense_objective: float
    measured_excess: float
    measured: np.ndarray
    expected_excess: float | None
    expectation: str
    bound: float | None
    chances: np.ndarray
    method: str
    draws: int
    refitted: bool
    classes: np.ndarray | None
    loss: Loss
    reader: Reader

    @property
    def k(self) -> int:
        """Number of features in the model."""
        return len(self.support)

    @property
    def feature_names(self) -> np.ndarray | None:
        """Names of all columns, where X has some."""
        return getattr(self.reader, "feature_names_in_", None)

    def names(self) -> list[str]:
        """Names of the features in the model; ``x3`` stands for column 3 of a table without names."""
        return column_names(self.feature_names, self.support.tolist())

    def decision_function(self, X: Any) -> np.ndarray:
        """Linear scores.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            All columns, in the same order; or a frame with the columns of the model, in any order and with any others,
            where there were names.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_outputs) for several outputs
        """
        rows = check_rows(self.reader, X, self.support)
        return np.asarray(rows @ self.coef[..., self.support].T + self.intercept)

    def predict(self, X: Any) -> np.ndarray:
        """What the scores stand for: the class of every row, or the number that the loss models.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            As for ``decision_function``.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_outputs) for several outputs that are numbers
        """
        scores = self.decision_function(X)
        if self.classes is None:
            return self.loss.prediction(scores)
        return self.classes[(scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)]

    def summary(self) -> str:
        """The model as text, to be printed: features and coefficients, and what they have cost.

        Returns
        -------
        str
        """
        return "\n".join([self._head(), "", *self._table(), "", *self._costs()])

    def __repr__(self) -> str:
        return f"<Sparsified: {self._head()}>"

    def _head(self) -> str:
        noun = "feature" if self.k == 1 else "features"
        refitted = ", refitted" if self.refitted else ""
        # Without y the dense model is perfect but for rounding.
        dense = self.dense_objective if self.dense_objective > ROUNDING * self.objective else 0.0
        return (
            f"{self.k} {noun} of {self.coef.shape[-1]} by {self.method!r}{refitted}, objective {self.objective:.6g}, "
            f"dense {dense:.6g}"
        )

    def _table(self) -> list[str]:
        """The largest coefficients first."""
        coef = np.atleast_2d(self.coef)[:, self.support]
        order = np.argsort(-np.abs(coef).max(axis=0, initial=0.0), kind="stable")[:MOST_SHOWN]
        names = self.names()
        rows = [(names[place], coef[:MOST_OUTPUTS, place]) for place in order]
        rows.append(("(intercept)", np.atleast_1d(self.intercept)[:MOST_OUTPUTS]))
        width = max(len(name) for name, _ in rows)
        lines = [name.ljust(width) + "".join(f"  {number:>12.6g}" for number in numbers) for name, numbers in rows]
        if self.k > MOST_SHOWN:
            lines.insert(MOST_SHOWN, f"... and {self.k - MOST_SHOWN} more")
        return lines

    def _costs(self) -> list[str]:
        best = f", the least of {len(self.measured)} draws" if len(self.measured) > 1 else ""
        before = "before the refit: " if self.refitted else ""
        lines = [f"{before}excess {self.measured_excess:.6g} over the dense model{best}"]
        if self.method != "truncate" and self.expected_excess is not None:
            at_most = "" if self.expectation == "exact" else "at most "
            lines.append(f"expected of a draw: {at_most}{self.expected_excess:.6g}")
        return lines
