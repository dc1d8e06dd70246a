"""A fitted linear model with few features: all that follows from its path, whatever search has found it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from pauca.estimators.checks import check_rows
from pauca.estimators.on_path import OnPath
from pauca.estimators.portable import Portable
from pauca.estimators.seen import Seen
from pauca.model import Model
from pauca.path import Path, Stop


class FittedModel(OnPath, Portable, Seen, SelectorMixin, BaseEstimator):
    """What every estimator can do once it has a ``path_`` and a size on it.

    A kind of estimator derives from this and from ``ForetellsNumbers`` or ``TellsClasses``. Its ``fit`` sets ``path_``
    and calls ``_choose(size)``, which sets ``coef_``, ``intercept_``, ``support_``, ``objective_``, ``k_`` and
    ``stop_``; files and ``at`` go the same way. It has the parameters ``k`` and ``loss``, and ``_check_options()``
    refuses parameters that cannot be meant.
    """

    k: Any
    loss: Any
    path_: Path
    stop_: Stop
    k_: int
    n_features_in_: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _scores(self, X: Any) -> np.ndarray:
        """Linear scores of rows, shape (n, C)."""
        check_is_fitted(self)
        used = check_rows(self, X, self.support_)
        coef = np.atleast_2d(self.coef_)[:, self.support_]
        return np.asarray(used @ coef.T + np.atleast_1d(self.intercept_))

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.support_] = True
        return mask

    def _choose(self, size: int) -> None:
        """Put the model of ``size`` into the fitted attributes."""
        self._put(self.path_[size])
        self.stop_ = self.path_.stop

    def _put(self, model: Model) -> None:
        coef = np.zeros((*np.shape(model.coef)[:-1], self.n_features_in_))
        coef[..., model.support] = model.coef
        self.coef_, self.intercept_ = self._shaped(coef, model.intercept)
        self.support_ = model.support
        self.objective_ = model.objective
        self.k_ = model.size

    def _words(self) -> tuple[list[str] | None, list[str] | None]:
        """Names of several outputs, and of two classes that a single one tells apart."""
        return None, None

    def _shaped(self, coef: np.ndarray, intercept: Any) -> tuple[np.ndarray, Any]:
        """Coefficients and intercept in the shapes that users of scikit-learn expect."""
        return coef, intercept
