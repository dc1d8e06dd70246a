"""The result of ``sparsify``: a sparse model, as a fitted estimator, and its cost against the dense one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pauca.estimators import SparseClassifier, SparseRegressor
from pauca.losses import Loss
from pauca.model import Model
from pauca.runs.run import Move, Stop
from pauca.sparsification.sampling import Draw
from pauca.wording import aligned, column_names

# At most so many features and outputs are shown.
MOST_SHOWN = 30
OUTPUTS_PER_TABLE = 6

# Without y the dense objective is zero but for rounding: below this share of the other it is shown as zero.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class Sparsified:
    """A sparse linear model made of a dense one by ``pauca.sparsify``.

    Attributes of every fitted model are named as in scikit-learn, with an underscore at the end; those that describe
    the step from dense to sparse have none.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,), or (n_outputs, n_features) for several outputs
        Coefficients; zero for features that are not in the model. Of classifiers as in scikit-learn: a single row for
        two classes.
    intercept_ : float, or ndarray of shape (n_outputs,)
    support_ : ndarray
        Indices of the features in the model, ascending.
    k_ : int
        Number of features in the model.
    objective_ : float
        ``Q`` of the model: the weighted mean loss plus the ridge term. Without y the loss is half the squared
        difference from the scores of the dense model.
    model : SparseRegressor or SparseClassifier
        The same as a fitted estimator with a path of two sizes, none and ``k_``: for pipelines, ``predict_proba``,
        ``transform``, ``to_onnx``, ``report``. Its ``fit`` would search for features by itself.
    drawn : Draw
        The draw, before any refit: ``drawn.support`` and ``drawn.values``.
    drawn_objective : float
        ``Q`` of that with the best intercept.
    dense_objective : float
        ``Q`` of the dense model with the best intercept.
    excess : float
        The cost of the step: ``objective_ - dense_objective``.
    measured_excess : float
        The same of the draw, before any refit: ``drawn_objective - dense_objective``.
    measured : ndarray of shape (repeats,)
        The same for every repeat, in order; the least is that of the draw that was kept.
    expected_excess : float or None
        The mean of ``measured_excess`` over all draws, or an upper bound of it, as ``expectation`` says; None for
        "truncate" and "exchange", which draw nothing, and where the loss is neither smooth nor Lipschitz.
    expectation : {"exact", "upper bound", "none"}
        What ``expected_excess`` is; exact for squared loss.
    bound : float or None
        The bound of the papers on the expected excess, which holds whatever the correlations of the columns. None for
        "truncate" and "exchange", which have none.
    inclusion : ndarray of shape (n_features,)
        The inclusion probability of every feature: that of being drawn.
    truncation : str
        How features were chosen.
    draws : int
        The parameter ``k``.
    refitted : bool
        Whether ``coef_`` is the best fit on the support, or the draw itself.
    loss : Loss
        The loss of Q.
    """

    model: SparseRegressor | SparseClassifier
    drawn: Draw
    drawn_objective: float
    dense_objective: float
    measured_excess: float
    measured: np.ndarray
    expected_excess: float | None
    expectation: str
    bound: float | None
    inclusion: np.ndarray
    truncation: str
    draws: int
    refitted: bool
    loss: Loss

    @property
    def coef_(self) -> np.ndarray:
        """Coefficients of all features."""
        return self.model.coef_

    @property
    def intercept_(self) -> Any:
        """Intercept, or one for each output."""
        return self.model.intercept_

    @property
    def support_(self) -> np.ndarray:
        """Indices of the features in the model, ascending."""
        return self.model.support_

    @property
    def k_(self) -> int:
        """Number of features in the model."""
        return self.model.k_

    @property
    def objective_(self) -> float:
        """Q of the model."""
        return self.model.objective_

    @property
    def excess(self) -> float:
        """By how much Q of the model is above that of the dense one."""
        return self.objective_ - self.dense_objective

    def names(self) -> list[str]:
        """Names of the features in the model; ``x3`` stands for column 3 of a table without names."""
        return column_names(self.model.path_.column_names, self.support_)

    def get_feature_names_out(self) -> np.ndarray:
        """The same as an array, as of every selector of scikit-learn."""
        return np.array(self.names(), dtype=object)

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
        scores = self.model._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The class of every row, or the number that the loss models.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            As for ``decision_function``.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_outputs) for several outputs that are numbers
        """
        return self.model.predict(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of the variance of y that is explained, or of the classes that are right, as in scikit-learn.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            As for ``decision_function``.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), default=None
        """
        return float(self.model.score(X, y, sample_weight))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write ``model`` to a file of plain JSON; ``pauca.load`` reads it, without the cost."""
        self.model.save(path)

    def to_sql(self, table: str | Sequence[str] | None = None, *, keep: Sequence[str] = ()) -> str:
        """The model as SQL; arguments and result as of ``SparseRegressor.to_sql``."""
        return self.model.to_sql(table, keep=keep)

    def to_python(self) -> str:
        """The model as the source of a Python module that imports nothing but ``math``."""
        return self.model.to_python()

    def summary(self) -> str:
        """The model as text, to be printed: features, coefficients and cost."""
        return "\n".join([self._head(), "", *self._table(), "", *self._costs()])

    def __repr__(self) -> str:
        return f"<Sparsified: {self._head()}>"

    def _head(self) -> str:
        noun = "feature" if self.k_ == 1 else "features"
        refitted = ", refitted" if self.refitted else ""
        dense = self.dense_objective if self.dense_objective > ROUNDING * self.objective_ else 0.0
        return (
            f"{self.k_} {noun} of {self.model.n_features_in_} by {self.truncation!r}{refitted}, "
            f"objective {self.objective_:.6g}, dense {dense:.6g}"
        )

    def _table(self) -> list[str]:
        """The largest coefficients first; of many outputs one table below the other."""
        coef, outputs = np.atleast_2d(self.coef_)[:, self.support_], self.model.path_.output_names or ["coefficient"]
        order = np.argsort(-np.abs(coef).max(axis=0, initial=0.0), kind="stable")[:MOST_SHOWN]
        names, intercept, lines = self.names(), np.atleast_1d(self.intercept_), list[str]()
        for first in range(0, len(coef), OUTPUTS_PER_TABLE):
            some = slice(first, first + OUTPUTS_PER_TABLE)
            rows = [["feature", *outputs[some]]]
            rows += [[names[place], *(f"{number:.6g}" for number in coef[some, place])] for place in order]
            rows.append(["(intercept)", *(f"{number:.6g}" for number in intercept[some])])
            head, *body = aligned(rows)
            if self.k_ > MOST_SHOWN:
                body.insert(MOST_SHOWN, f"... and {self.k_ - MOST_SHOWN} more")
            lines += [*([""] if lines else []), head, "-" * len(head), *body]
        return lines

    def _costs(self) -> list[str]:
        lines = [f"excess {self.excess:.6g} over the dense model"]
        best = f", the least of {len(self.measured)} draws" if len(self.measured) > 1 else ""
        if self.refitted:
            lines.append(f"before the refit: {self.measured_excess:.6g}{best}")
        else:
            lines[0] += best
        if self.expected_excess is not None:
            at_most = "" if self.expectation == "exact" else "at most "
            lines.append(f"expected of a draw: {at_most}{self.expected_excess:.6g}")
        return lines


def set_fitted(
    estimator: SparseRegressor | SparseClassifier,
    constant: Model,
    model: Model,
    stop: Stop,
    n_outputs: int,
    output_names: list[str] | None,
    classes: np.ndarray | None,
) -> None:
    """Set the attributes of a fitted estimator, with a path of two sizes: none and that of ``model``."""
    if isinstance(estimator, SparseClassifier):
        assert classes is not None
        estimator.classes_ = classes
    else:
        estimator._several_outputs = n_outputs > 1
        estimator._output_names = output_names or [f"y{c}" for c in range(n_outputs)]
    moves: list[Move] = [("add", int(j)) for j in model.support]
    assert isinstance(estimator.ridge, float)
    estimator.ridge_ = estimator.search_ridge_ = estimator.ridge
    estimator.path_ = estimator._path_of({0: constant, model.size: model}, moves, stop)
    estimator.k = model.size
    estimator._set_size(model.size)
