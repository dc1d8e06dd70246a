"""Convex losses of a target and a linear score."""

from __future__ import annotations

from typing import Any

from pauca.losses.base import Loss, Slopes
from pauca.losses.classification import LogLoss, Multinomial, SquaredHinge
from pauca.losses.log_link import Gamma, GammaInverseLink, NegativeBinomial, Poisson, Tweedie
from pauca.losses.piecewise import AbsoluteError, Envelope, Hinge, PiecewiseLinear, Quantile
from pauca.losses.regression import Huber, SquaredError

__all__ = [
    "AbsoluteError",
    "Envelope",
    "Gamma",
    "GammaInverseLink",
    "Hinge",
    "Huber",
    "LogLoss",
    "Loss",
    "Multinomial",
    "NegativeBinomial",
    "PiecewiseLinear",
    "Poisson",
    "Quantile",
    "Slopes",
    "SquaredError",
    "SquaredHinge",
    "Tweedie",
    "resolve",
]

REGRESSION_LOSSES = {
    "absolute_error": AbsoluteError,
    "gamma": Gamma,
    "huber": Huber,
    "negative_binomial": NegativeBinomial,
    "poisson": Poisson,
    "quantile": Quantile,
    "squared_error": SquaredError,
    "tweedie": Tweedie,
}
CLASSIFICATION_LOSSES = {"hinge": Hinge, "log_loss": LogLoss, "squared_hinge": SquaredHinge}


def resolve(loss: Any, *, classes: bool) -> Loss:
    """The loss of a name, for targets that are classes or numbers; a loss object is returned unchanged.

    Examples
    --------
    >>> resolve("huber", classes=False)
    Huber(threshold=None)
    """
    allowed, other = REGRESSION_LOSSES, CLASSIFICATION_LOSSES
    if classes:
        allowed, other = other, allowed
    if isinstance(loss, str) and loss in allowed:
        return allowed[loss]()
    wrong_kind = loss in other if isinstance(loss, str) else isinstance(loss, Loss) and loss.classifies != classes
    if wrong_kind:
        where = "SparseRegressor" if classes else "SparseClassifier"
        kind = "numbers" if classes else "classes"
        raise ValueError(f"loss={loss!r} is for targets that are {kind}; use {where}.")
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, type) and issubclass(loss, Loss):
        raise ValueError(f"loss must be an object, not a class: write {loss.__name__}().")
    names = ", ".join(repr(name) for name in sorted(allowed))
    raise ValueError(f"loss must be one of {names} or an object with the methods of pauca.losses.Loss; got {loss!r}.")


def is_custom(loss: Loss) -> bool:
    """Whether a user wrote the loss: its derivatives are to be checked before they are relied on."""
    return type(loss).__module__.partition(".")[0] != "pauca"
