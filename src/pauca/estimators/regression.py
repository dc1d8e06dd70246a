"""What all regressors share: how their targets are checked, and their predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from pauca.estimators.validation import check_data, check_target, check_weights
from pauca.losses import resolve
from pauca.search.problem import Target


class RegressionMixin(RegressorMixin):
    """A fitted linear model of one or several numbers."""

    loss: Any
    path_: Any
    _scores: Any
    _several_outputs: bool
    _output_names: list[str]

    def _checked(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, np.ndarray, np.ndarray, Target]:
        """X and y as they are fitted, row weights that sum to one, and the target as its loss wants it."""
        loss = resolve(self.loss, classes=False)
        names = names_of_outputs(y)
        X, y = check_data(self, X, y)
        check_target(y)
        weights = check_weights(sample_weight, len(y))
        self._several_outputs = y.ndim == 2
        outputs = np.ascontiguousarray(y.T) if y.ndim == 2 else y[None]
        loss.check_target(outputs[:, weights > 0])
        self._output_names = names or [f"y{c}" for c in range(len(outputs))]
        return X, y, weights, Target(outputs, loss, len(outputs))

    def predict(self, X: Any) -> np.ndarray:
        """Predict with the chosen features.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            All columns of the fit, in the same order; or a frame with the chosen columns, in any order and with any
            others, where the fit had names. Columns that were not chosen may hold missing values.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            What the loss models: the mean, for "absolute_error" the median, for "quantile" the quantile.
        """
        scores = self._scores(X)
        prediction = resolve(self.loss, classes=False).prediction(scores)
        return prediction if self._several_outputs else prediction[:, 0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _shaped(self, coef: np.ndarray, intercept: Any) -> tuple[np.ndarray, Any]:
        if self._several_outputs:
            return np.atleast_2d(coef), np.atleast_1d(intercept)
        return coef, intercept

    def _restored(self) -> None:
        super()._restored()
        resolve(self.loss, classes=False)
        self._several_outputs = self.path_.output_names is not None
        self._output_names = self.path_.output_names or []

    def _words(self) -> tuple[list[str] | None, list[str] | None]:
        return (self._output_names if self._several_outputs else None), None


def names_of_outputs(y: Any) -> list[str] | None:
    """Names of the columns of a frame."""
    columns = getattr(y, "columns", None)
    return None if columns is None else [str(name) for name in columns]
