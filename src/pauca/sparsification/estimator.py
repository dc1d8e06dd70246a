"""A dense model made sparse, as an estimator that might have been fitted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pauca.estimators.classifier import SparseClassifier
from pauca.estimators.regressor import SparseRegressor
from pauca.losses import Loss
from pauca.model import Model
from pauca.results.path import Path
from pauca.search.history import Stop
from pauca.sparsification.trials import Fitted


@dataclass(frozen=True, eq=False)
class Thinned:
    """The constant model and the sparse one, and what is known of their columns and outputs."""

    constant: Fitted
    sparse: Fitted
    importance_is_exact: bool
    stop: Stop
    n_features: int
    names: np.ndarray | None
    output_names: list[str] | None
    classes: np.ndarray | None

    def as_estimator(
        self, loss: str | Loss, *, ridge: float, fit_intercept: bool
    ) -> SparseRegressor | SparseClassifier:
        """An estimator with a path of two sizes; ``loss`` says what scores mean."""
        size = len(self.sparse.support)
        found: SparseRegressor | SparseClassifier
        if self.classes is None:
            found = SparseRegressor(k=size, loss=loss, ridge=ridge, fit_intercept=fit_intercept)
            outputs = len(self.sparse.coef)
            found._several_outputs = outputs > 1
            found._output_names = self.output_names or [f"y{c}" for c in range(outputs)]
        else:
            found = SparseClassifier(k=size, loss=loss, ridge=ridge, fit_intercept=fit_intercept)
            found.classes_ = self.classes
        found.n_features_in_ = self.n_features
        if self.names is not None:
            found.feature_names_in_ = self.names
        found.path_ = Path(
            {
                0: _model(self.constant, exact=True),
                size: _model(self.sparse, exact=self.importance_is_exact),
            },
            [("add", int(j)) for j in self.sparse.support],
            self.stop,
            self.n_features,
            self.names,
            None,
            None,
            *found._words(),
        )
        found._choose(size)
        return found


def _model(fitted: Fitted, *, exact: bool) -> Model:
    single = len(fitted.coef) == 1
    return Model(
        support=fitted.support,
        coef=fitted.coef[0] if single else fitted.coef,
        intercept=float(fitted.intercept[0]) if single else fitted.intercept,
        objective=fitted.objective,
        importance=fitted.importance,
        units=fitted.support,
        importance_is_exact=exact,
    )
