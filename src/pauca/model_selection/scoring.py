"""Scorers of scikit-learn, and losses of models on some rows."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import check_scoring, get_scorer_names

from pauca.checks import users_function
from pauca.design import Chunks, GatheredColumns
from pauca.losses import Loss
from pauca.model import Model
from pauca.model_selection.folds import Fold
from pauca.runs.problem import Target

FEW_ROWS = 50
"""Rows on which a scorer is tried before any search, beside one of each class."""

OF_ONE_CLASS = frozenset({"average_precision", "f1", "jaccard", "precision", "recall"})
"""Scores of scikit-learn that are about one of two classes."""

Models = dict[int, Model]
"""Models by size, or by their position among others; the empty one has number 0."""


class Scorable(Protocol):
    """Data, a target, and the loss by which models are compared, with all its parameters set."""

    @property
    def X(self) -> Any: ...  # noqa: N802, D102 - X is X

    @property
    def target(self) -> Target: ...  # noqa: D102

    @property
    def measure(self) -> Loss: ...  # noqa: D102


@dataclass(frozen=True, eq=False)
class Scorer:
    """A scorer of scikit-learn, and the estimator whose predictions it scores."""

    name: str
    score: Callable[..., float]
    estimator: Any
    by_name: bool = False
    """Whether it is one of scikit-learn's own, which know nothing of the user's classes."""

    @property
    def scored_class(self) -> int | None:
        """The place of the one of two classes that the score is about; None where it is about all rows alike."""
        classes = getattr(self.estimator, "classes_", None)
        if not self.by_name or self.name not in OF_ONE_CLASS or classes is None or len(classes) != 2:
            return None
        # To scikit-learn the number 1 is the positive class; of all others ``scores`` makes the second one that.
        return 0 if classes.dtype.kind in "biuf" and classes[0] == 1 else 1

    def check(self, X: Any, y: np.ndarray, n_outputs: int) -> None:
        """Raise an error before any search if the scorer cannot score such a target."""
        rows = np.unique(y, return_index=True)[1] if y.ndim == 1 else np.arange(len(y))
        few = np.unique(np.append(rows[:FEW_ROWS], np.arange(min(len(y), FEW_ROWS))))
        nothing, constant = np.zeros((n_outputs, 0)), np.zeros(n_outputs)
        none = Model.of_columns(np.zeros(0, dtype=np.intp), nothing, constant, 0.0, np.zeros(0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a constant model has no precision, and few rows no R^2
            try:
                self.scores(X, y, Fold(np.ones(len(y)), few, np.ones(len(y))), [none])
            except ValueError as error:
                others = [name for name in get_scorer_names() if name.startswith(f"{self.name}_")]
                hint = f" Others of its kind: {', '.join(others)}." if others else ""
                raise ValueError(f"scoring={self.name!r} cannot score this target: {error}{hint}") from error

    def scores(self, X: Any, y: np.ndarray, fold: Fold, models: Sequence[Model]) -> list[float]:
        """Scores of some models on the held-out rows."""
        fitted = copy.copy(self.estimator)
        # The rows of a fold are arrays of numbers, whatever the user's table was.
        for attribute in ("feature_names_in_", "encoder_"):
            fitted.__dict__.pop(attribute, None)
        fitted.n_features_in_ = X.shape[1]
        rows, target = rows_for(X, fold.test, models), y[fold.test]
        classes = getattr(fitted, "classes_", None)
        if self.by_name and classes is not None and len(classes) == 2 and classes.dtype.kind not in "biuf":
            # What is positive to "f1" is the class 1: the second one.
            fitted.classes_, target = np.array([0, 1]), (target == classes[1]).astype(np.intp)
        found = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)  # the constant model has no precision
            for model in models:
                fitted._set_model(model)
                with users_function():
                    score = self.score(fitted, rows, target)
                found.append(float(score))
        return found


def scorer_for(estimator: Any, scoring: Any) -> Scorer | None:
    """The scorer that ``scoring`` names; None where models are compared by their loss."""
    if scoring is None:
        return None
    if isinstance(scoring, str) and scoring not in get_scorer_names():
        raise ValueError(
            f"scoring={scoring!r} is not a scorer that scikit-learn knows; "
            "sklearn.metrics.get_scorer_names() lists them."
        )
    name = scoring if isinstance(scoring, str) else getattr(scoring, "__name__", type(scoring).__name__)
    return Scorer(name, check_scoring(estimator, scoring), estimator, isinstance(scoring, str))


def mean_losses(
    problem: Scorable, models: Models, sizes: Sequence[int], rows: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Weighted mean losses on the rows of a fit, shape (sizes, C), or (sizes, 1) where outputs share a loss."""
    chosen = [models[size] for size in sizes]
    columns = np.unique(np.concatenate([model.support for model in chosen])).astype(np.intp)
    rows = np.arange(len(weights)) if problem.measure.coupled else rows
    block = read_columns(problem.X, columns, rows)
    target = problem.target
    y = target.y[rows] if target.loss.joint else target.y[:, rows]
    share = weights[rows] / weights[rows].sum()
    found = []
    for model in chosen:
        coef = np.zeros((target.n_outputs, len(columns)))
        coef[:, np.searchsorted(columns, model.support)] = model.coef
        scores = np.atleast_1d(model.intercept)[:, None] + coef @ block.T
        with np.errstate(over="ignore"):
            found.append(np.atleast_1d(problem.measure.value(y, scores) @ share))
    return np.array(found)


def rows_for(X: Any, rows: np.ndarray, models: Sequence[Model]) -> Any:
    """Some rows of X; of a table in chunks the columns that some models use, with zeros for all others."""
    if not isinstance(X, Chunks | GatheredColumns):
        return X[rows]
    used = np.unique(np.concatenate([model.support for model in models])).astype(np.intp)
    spread = sparse.csr_array((np.ones(len(used)), (np.arange(len(used)), used)), shape=(len(used), X.shape[1]))
    return sparse.csr_array(read_columns(X, used, rows)) @ spread


def read_columns(X: Any, columns: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Some columns of some rows, dense."""
    if isinstance(X, GatheredColumns):
        return X.read(columns, rows)
    if isinstance(X, Chunks):
        return X.columns(columns)[:, rows].T.astype(np.float64)
    block = X[:, columns][rows].toarray() if hasattr(X, "toarray") else X[np.ix_(rows, columns)]
    return np.asarray(block, dtype=np.float64)
