"""Rows held against a fitted graph: how likely they are, and how far from its centre."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.covariance import EmpiricalCovariance, log_likelihood
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from pauca.design import make_design
from pauca.estimators.validation import check_moments, check_rows
from pauca.graphical.covariance import moments_about

# Distances are found for so many numbers of X at a time.
NUMBERS_AT_A_TIME = 1 << 19


class GraphScores(EmpiricalCovariance):
    """scikit-learn's covariance estimators look at rows through these; here they name columns as all others do."""

    n_features_in_: int

    def score(self, X_test: Any, y: Any = None) -> float:
        """The mean log-likelihood of rows.

        Parameters
        ----------
        X_test : array-like or frame of shape (n_samples, n_features)
            A frame is read by name where the fit had names, and may hold further columns.
        y : Ignored
            Present for scikit-learn's pipelines.

        Returns
        -------
        float
        """
        rows = self._rows(X_test)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is named below
            design = make_design(rows, np.full(len(rows), 1.0 / len(rows)), center=True)
        check_moments(self, design, rows, getattr(self, "feature_names_in_", None))
        return float(log_likelihood(moments_about(design, self.location_), self.precision_))

    def mahalanobis(self, X: Any) -> np.ndarray:
        """SquaredError distances of rows from the means, in the metric of the precision matrix.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            As for ``score``.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        rows = self._rows(X)
        found = np.empty(len(rows))
        step = max(1, NUMBERS_AT_A_TIME // rows.shape[1])
        for begin in range(0, len(rows), step):
            away = rows[begin : begin + step] - self.location_
            found[begin : begin + step] = np.einsum("ij,ij->i", away @ self.precision_, away)
        return found

    def error_norm(self, comp_cov: Any, norm: str = "frobenius", scaling: bool = True, squared: bool = True) -> float:
        """How far a covariance is from the fitted one; see scikit-learn's ``EmpiricalCovariance``.

        Parameters
        ----------
        comp_cov : array-like of shape (n_features, n_features)
        norm : {"frobenius", "spectral"}, default="frobenius"
        scaling : bool, default=True
            Whether to divide the squared norm by the number of columns.
        squared : bool, default=True
            Whether the norm is squared.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        other, p = check_array(comp_cov, input_name="comp_cov"), self.n_features_in_
        if other.shape != (p, p):
            raise ValueError(
                f"'comp_cov' must be the covariance of the {p} columns of the fit; its shape is {other.shape}."
            )
        return float(super().error_norm(other, norm, scaling, squared))

    def _rows(self, X: Any) -> np.ndarray:
        """Rows with all columns of the fit, in the order of the fit."""
        check_is_fitted(self)
        if issparse(X):
            raise TypeError("Sparse data was passed for X, but dense data is required. Use '.toarray()' to convert it.")
        return np.asarray(check_rows(self, X, np.arange(self.n_features_in_)))
