"""Losses: convex functions of a target and a score. They never see X."""

from __future__ import annotations

from typing import Any

from pauca.losses.base import Loss, Slopes
from pauca.losses.classification import LogLoss, Multinomial, SquaredHinge
from pauca.losses.piecewise import AbsoluteError, Envelope, Hinge, PiecewiseLinear, Quantile
from pauca.losses.regression import Huber, Poisson, SquaredError

__all__ = [
    "AbsoluteError",
    "Envelope",
    "Hinge",
    "Huber",
    "LogLoss",
    "Loss",
    "Multinomial",
    "PiecewiseLinear",
    "Poisson",
    "Quantile",
    "Slopes",
    "SquaredError",
    "SquaredHinge",
    "resolve",
]

FOR_NUMBERS = {
    "absolute_error": AbsoluteError,
    "huber": Huber,
    "poisson": Poisson,
    "quantile": Quantile,
    "squared_error": SquaredError,
}
FOR_CLASSES = {"hinge": Hinge, "log_loss": LogLoss, "squared_hinge": SquaredHinge}


def resolve(loss: Any, *, classes: bool) -> Loss:
    """A loss from its name or an object, for targets that are classes or numbers.

    Examples
    --------
    >>> resolve("huber", classes=False)
    Huber(threshold=None)
    """
    fitting, other = (FOR_CLASSES, FOR_NUMBERS) if classes else (FOR_NUMBERS, FOR_CLASSES)
    if isinstance(loss, str) and loss in fitting:
        return fitting[loss]()
    misplaced = loss in other if isinstance(loss, str) else isinstance(loss, Loss) and loss.classifies != classes
    if misplaced:
        where = "SparseRegressor" if classes else "SparseClassifier"
        kind = "numbers" if classes else "classes"
        raise ValueError(f"loss={loss!r} is for targets that are {kind}; use {where}.")
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, type) and issubclass(loss, Loss):
        raise ValueError(f"loss must be an object, not a class: write {loss.__name__}().")
    names = ", ".join(repr(name) for name in sorted(fitting))
    raise ValueError(f"loss must be one of {names} or an object with the methods of pauca.losses.Loss; got {loss!r}.")
