"""Any linear model, as its coefficients: bare arrays, or whatever has ``coef_`` and ``intercept_``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from pauca.estimators.fitted import FittedModel
from pauca.losses import CLASSIFICATION_LOSSES, Loss
from pauca.wording import quoted_columns

# Losses of scikit-learn's classifiers that have a namesake here; all others are taken to be logistic.
NAMESAKES = ("hinge", "squared_hinge")


@dataclass(frozen=True, eq=False)
class DenseModel:
    """What is known of a linear model besides how it was fitted."""

    coef: np.ndarray
    """Shape (C, d)."""
    intercept: np.ndarray
    """Shape (C,)."""
    fit_intercept: bool
    classes: np.ndarray | None
    """The classes it tells apart, if it is a classifier."""
    names: np.ndarray | None
    """Names of the columns it was fitted on, if it was told any."""
    loss: str | Loss | None
    """The loss it was fitted by, where that is known."""
    has_probabilities: bool
    """Whether it is a classifier that gives them."""

    def loss_for(self, asked: str | Loss | None) -> str | Loss:
        """The loss to use: what the user says, or what the model says."""
        wanted = asked or self.loss or ("squared_error" if self.classes is None else "log_loss")
        if self.classes is not None and not is_for_classes(wanted):
            raise ValueError(
                f"loss={wanted!r} is for targets that are numbers, and the model tells classes apart. Use a loss for "
                "classes, or leave out y to come near the model's scores."
            )
        return wanted

    def meaning(self) -> str | Loss:
        """A loss by which scores mean what those of the model do, where there is no y to say otherwise."""
        if self.classes is not None and self.loss is None and not self.has_probabilities:
            return "squared_hinge"
        return self.loss_for(None)

    def check_columns(self, n_features: int, names: np.ndarray | None) -> None:
        """Refuse coefficients that are not those of the columns of X."""
        d = self.coef.shape[1]
        if d != n_features:
            raise ValueError(
                f"There are {d} coefficients for {n_features} columns of X; there must be one for every column, in "
                "the same order."
            )
        if self.names is not None and names is not None:
            moved = np.flatnonzero(self.names != names)
            if len(moved):
                raise ValueError(
                    f"The columns of X are not those the model was fitted on: {quoted_columns(names, moved)} "
                    f"where the model "
                    f"has {quoted_columns(self.names, moved)}. Give them in the order of the fit."
                )
        bad = np.flatnonzero(~np.isfinite(self.coef).all(axis=0))
        if len(bad):
            raise ValueError(f"The coefficients of some columns are not finite: {quoted_columns(names, bad)}.")


def read_model(model: Any, intercept: Any, fit_intercept: bool | None) -> DenseModel:
    """A model or bare coefficients, checked as far as that goes without data."""
    if hasattr(model, "steps"):
        raise TypeError(
            "The model is a pipeline, whose coefficients belong to the columns its last step sees. Give that step and "
            "those columns: sparsify(pipeline[-1], pipeline[:-1].transform(X), ...)."
        )
    if hasattr(model, "best_estimator_"):
        raise TypeError("The model is a search; give what it found: model.best_estimator_.")
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
    wants_one = bool(getattr(model, "fit_intercept", True)) if fit_intercept is None else fit_intercept
    return _checked(
        model.coef_,
        getattr(model, "intercept_", 0.0),
        wants_one,
        getattr(model, "classes_", None),
        getattr(model, "feature_names_in_", None),
        _own_loss(model),
        hasattr(model, "predict_proba"),
    )


def is_for_classes(loss: Any) -> bool:
    """Whether a loss, or its name, is for targets that are classes."""
    return loss.classifies if isinstance(loss, Loss) else isinstance(loss, str) and loss in CLASSIFICATION_LOSSES


def _from_array(coef: Any, intercept: Any, fit_intercept: bool | None) -> DenseModel:
    given = 0.0 if intercept is None else intercept
    return _checked(coef, given, True if fit_intercept is None else fit_intercept, None, None, None, False)


def _checked(
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
        raise ValueError("The model has an intercept, and fit_intercept=False asks for none.")
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
    return loss if hasattr(model, "classes_") and loss in NAMESAKES else None
