"""Losses as a form and a number, for compiled code that cannot call Python objects."""

from __future__ import annotations

from typing import NamedTuple

from pauca.losses.base import Loss
from pauca.losses.classification import LogLoss, SquaredHinge
from pauca.losses.log_link import Gamma, GammaInverseLink, NegativeBinomial, Poisson, Tweedie
from pauca.losses.regression import Huber

# Forms; what their number is stands beside them.
LOGISTIC = 0
POISSON = 1
GAMMA = 2
GAMMA_INVERSE = 3
TWEEDIE = 4  # the power
NEGATIVE_BINOMIAL = 5  # the dispersion
HUBER = 6  # the threshold
SQUARED_HINGE = 7

FORMS: dict[type[Loss], tuple[int, str]] = {
    LogLoss: (LOGISTIC, ""),
    Poisson: (POISSON, ""),
    Gamma: (GAMMA, ""),
    GammaInverseLink: (GAMMA_INVERSE, ""),
    Tweedie: (TWEEDIE, "power"),
    NegativeBinomial: (NEGATIVE_BINOMIAL, "dispersion"),
    Huber: (HUBER, "threshold"),
    SquaredHinge: (SQUARED_HINGE, ""),
}
"""By class, not by subclass, which may have another value: the form, and the name of its number."""


class CompiledCurve(NamedTuple):
    """A form and its number, which is 0 where it has none."""

    form: int
    number: float = 0.0


def compiled_curve(loss: Loss) -> CompiledCurve | None:
    """The form of a loss for compiled code; None if there is none, or its number is not set yet.

    Examples
    --------
    >>> from pauca.losses import Tweedie
    >>> compiled_curve(Tweedie(1.3))
    CompiledCurve(form=4, number=1.3)
    """
    form, name = FORMS.get(type(loss), (-1, ""))
    number = getattr(loss, name) if name else 0.0
    return None if form < 0 or number is None else CompiledCurve(form, float(number))
