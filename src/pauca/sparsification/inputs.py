"""What ``sparsify`` is given: a linear model or bare coefficients, and the data to measure on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from pauca.checks import ParameterChecks
from pauca.estimators import SparseClassifier, SparseRegressor
from pauca.estimators.classifier import encode_classes
from pauca.estimators.fitted_base import FittedModel
from pauca.estimators.input_checks import check_classes, check_data, check_table, check_target
from pauca.estimators.row_values import check_weights
from pauca.losses import CLASSIFICATION_LOSSES, Loss, SquaredError, is_custom, resolve
from pauca.losses.checks import check_loss
from pauca.runs.problem import Target
from pauca.wording import plain, quoted_columns

# Losses of scikit-learn's classifiers that have the same name here; all others are taken to be logistic.
SAME_NAME = ("hinge", "squared_hinge")


@dataclass(frozen=True, eq=False)
class DenseModel:
    """A linear model, whoever fitted it."""

    coef: np.ndarray
    """Shape (C, d)."""
    intercept: np.ndarray
    """Shape (C,)."""
    fit_intercept: bool
    classes: np.ndarray | None
    """Its classes, if it is a classifier."""
    names: np.ndarray | None
    """Names of the columns it was fitted on, if they had any."""
    loss: str | Loss | None
    """The loss it was fitted by, where that is known."""
    has_probabilities: bool
    """Whether it has ``predict_proba``."""

    def loss_for(self, given: str | Loss | None) -> str | Loss:
        """The loss to use: the one given, else that of the model."""
        wanted = given or self.loss or ("squared_error" if self.classes is None else "log_loss")
        if self.classes is not None and not is_for_classes(wanted):
            raise ValueError(
                f"loss={wanted!r} is for targets that are numbers, and the model is a classifier. Use a loss for "
                "classes, or leave out y to approximate the model's scores."
            )
        return wanted

    def own_loss(self) -> str | Loss:
        """A loss by which scores are read as those of the model, where there is no y."""
        if self.classes is not None and self.loss is None and not self.has_probabilities:
            return "squared_hinge"
        return self.loss_for(None)

    def check_columns(self, n_features: int, names: np.ndarray | None) -> None:
        """Check that the coefficients are those of the columns of X."""
        d = self.coef.shape[1]
        if d != n_features:
            raise ValueError(
                f"There are {d} coefficients for {n_features} columns of X; there must be one for every column, in "
                "the same order."
            )
        if self.names is not None and names is not None:
            differ = np.flatnonzero(self.names != names)
            if len(differ):
                raise ValueError(
                    f"The columns of X are not those the model was fitted on: {quoted_columns(names, differ)} "
                    f"where the model has {quoted_columns(self.names, differ)}. Give them in the order of the fit."
                )
        bad = np.flatnonzero(~np.isfinite(self.coef).all(axis=0))
        if len(bad):
            raise ValueError(f"The coefficients of some columns are not finite: {quoted_columns(names, bad)}.")


def read_model(model: Any, intercept: Any, fit_intercept: bool | None) -> DenseModel:
    """A model or bare coefficients, checked as far as that goes without data."""
    if hasattr(model, "steps"):
        raise TypeError(
            "The model is a pipeline, whose coefficients belong to the input of its last step. Give that step and "
            "those columns: sparsify(pipeline[-1], pipeline[:-1].transform(X), ...)."
        )
    if hasattr(model, "best_estimator_"):
        raise TypeError("The model is a search; give its result: model.best_estimator_.")
    if isinstance(model, type):
        raise TypeError(f"The model must be fitted, not a class: write {model.__name__}().fit(X, y).")
    if not hasattr(model, "fit"):
        if hasattr(model, "predict"):
            raise TypeError(f"{type(model).__name__} has no coef_; give its coefficients as an array.")
        return _from_array(model, intercept, fit_intercept)
    if not hasattr(model, "coef_"):
        raise TypeError(
            f"{type(model).__name__} has no coef_: it is not fitted, or it is not a linear model. Fit it first, or "
            "give coefficients."
        )
    if intercept is not None:
        raise ValueError("The model has an intercept of its own; leave out intercept.")
    has_intercept = bool(getattr(model, "fit_intercept", True)) if fit_intercept is None else fit_intercept
    return _validate(
        model.coef_,
        getattr(model, "intercept_", 0.0),
        has_intercept,
        getattr(model, "classes_", None),
        getattr(model, "feature_names_in_", None),
        _own_loss(model),
        hasattr(model, "predict_proba"),
    )


def make_estimator(dense: DenseModel, y: Any, loss: Any, k: int, ridge: float) -> SparseRegressor | SparseClassifier:
    """The estimator that the sparse model becomes, not fitted yet; its loss says what scores mean."""
    if y is None and loss is not None and not (loss == "squared_error" or isinstance(loss, SquaredError)):
        raise ValueError(f"loss={loss!r} needs y. Without y the loss is squared, on the scores of the model.")
    loss = dense.own_loss() if y is None else dense.loss_for(loss)
    classifies = dense.classes is not None if y is None else resolve(loss, classes=is_for_classes(loss)).classifies
    kind = SparseClassifier if classifies else SparseRegressor
    return kind(k=k, loss=loss, ridge=ridge, standardize=False, fit_intercept=dense.fit_intercept)


def read_data(
    estimator: SparseRegressor | SparseClassifier,
    dense: DenseModel,
    X: Any,
    y: Any,
    sample_weight: Any,
    feature_names: Any,
) -> tuple[Any, np.ndarray, Target | None, np.ndarray | None]:
    """Checked X, row weights, target and classes; no target without y. The estimator gets the names of the columns."""
    classifies = isinstance(estimator, SparseClassifier)
    if y is None:
        X = check_table(estimator, X)
    else:
        X, y = (check_classes if classifies else check_data)(estimator, X, y)
    if feature_names is not None:
        _set_feature_names(estimator, feature_names, X.shape[1])
    dense.check_columns(X.shape[1], getattr(estimator, "feature_names_in_", None))
    weights = check_weights(sample_weight, X.shape[0])
    if y is None:
        return X, weights, None, dense.classes
    loss = resolve(estimator.loss, classes=classifies)
    if classifies:
        target, classes = _class_target(dense, y, weights, loss)
    else:
        target, classes = _number_target(dense, y, weights, loss), None
    if is_custom(target.loss):
        check_loss(target.loss, target.y, weights, target.n_outputs)
    return X, weights, target, classes


def is_for_classes(loss: Any) -> bool:
    """Whether a loss, or its name, is for targets that are classes."""
    return loss.classifies if isinstance(loss, Loss) else isinstance(loss, str) and loss in CLASSIFICATION_LOSSES


def _set_feature_names(estimator: SparseRegressor | SparseClassifier, names: Any, n_features: int) -> None:
    """Name columns that have no names."""
    if hasattr(estimator, "feature_names_in_"):
        raise ValueError("X has names of its own for its columns; leave out feature_names.")
    wanted = "a list of different strings, one for every column"
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(ParameterChecks("sparsify").message("feature_names", wanted, names))
    found = np.array(list(names), dtype=object)
    if len(found) != n_features:
        raise ValueError(f"There are {len(found)} feature_names for {n_features} columns of X.")
    if len(set(found)) < len(found):
        duplicate = next(name for i, name in enumerate(found) if name in set(found[:i]))
        raise ValueError(f"feature_names must be {wanted}; {duplicate!r} is there twice.")
    estimator.feature_names_in_ = found


def _number_target(dense: DenseModel, y: np.ndarray, weights: np.ndarray, loss: Loss) -> Target:
    check_target(y)
    outputs = np.ascontiguousarray(y.T) if y.ndim == 2 else y[None]
    if len(outputs) != len(dense.coef):
        raise ValueError(f"y has {len(outputs)} columns, and the model has coefficients for {len(dense.coef)}.")
    loss.check_target(outputs[:, weights > 0])
    return Target(outputs, loss, len(outputs))


def _class_target(dense: DenseModel, y: np.ndarray, weights: np.ndarray, loss: Loss) -> tuple[Target, np.ndarray]:
    """Classes as the loss needs them, in the order of the model's scores."""
    classes = np.unique(y) if dense.classes is None else dense.classes
    outputs = len(dense.coef)
    if len(classes) != (2 if outputs == 1 else outputs) or outputs == 2:
        raise ValueError(
            f"y has {len(classes)} classes, and there are {outputs} rows of coefficients; there must be one row for "
            "two classes and else one for each."
        )
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise ValueError(f"y holds the class {plain(unknown[0])!r}, which the model does not know.")
    indices = np.searchsorted(classes, y)
    if len(np.unique(indices[weights > 0])) < 2:
        raise ValueError("All rows that have weight are of one class; at least two classes are needed.")
    loss = loss.for_classes(len(classes))
    target = encode_classes(indices, len(classes), joint=loss.joint)
    loss.check_target(target)
    return Target(target, loss, outputs), classes


def _from_array(coef: Any, intercept: Any, fit_intercept: bool | None) -> DenseModel:
    given = 0.0 if intercept is None else intercept
    return _validate(coef, given, True if fit_intercept is None else fit_intercept, None, None, None, False)


def _validate(
    coef: Any,
    intercept: Any,
    fit_intercept: bool,
    classes: Any,
    names: np.ndarray | None,
    loss: str | Loss | None,
    has_probabilities: bool,
) -> DenseModel:
    weights = _numbers(coef.toarray() if sparse.issparse(coef) else coef, "coefficients")
    if weights.ndim not in {1, 2} or weights.size == 0:
        raise ValueError(
            "The coefficients must have shape (n_features,) or (n_outputs, n_features) and be at least one; got shape "
            f"{weights.shape}."
        )
    weights = np.atleast_2d(weights)
    constants = _numbers(intercept, "intercept").ravel()
    if len(constants) not in {1, len(weights)}:
        raise ValueError(f"There are {len(constants)} intercepts for {len(weights)} rows of coefficients.")
    if not np.all(np.isfinite(constants)):
        raise ValueError("The intercept is not finite.")
    if not fit_intercept and np.any(constants):
        raise ValueError(
            "The model has an intercept, and fit_intercept is False. Set fit_intercept=True, or the intercept to zero."
        )
    if classes is not None and len(weights) != (1 if len(classes) == 2 else len(classes)):
        raise ValueError(
            f"The model has {len(weights)} rows of coefficients for {len(classes)} classes; there must be one for two "
            "classes and else one for each."
        )
    constants = np.broadcast_to(constants, len(weights))
    return DenseModel(weights, constants, fit_intercept, classes, names, loss, has_probabilities)


def _numbers(values: Any, noun: str) -> np.ndarray:
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"The {noun} must be numbers: an array, or a fitted linear model with coef_; got {type(values).__name__}."
        ) from error


def _own_loss(model: Any) -> str | Loss | None:
    """The loss of pauca's own models, and of those of scikit-learn's classifiers that have it too."""
    loss = getattr(model, "loss", None)
    if isinstance(model, FittedModel):
        return loss
    return loss if hasattr(model, "classes_") and loss in SAME_NAME else None
