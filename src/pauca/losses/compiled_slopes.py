"""Derivatives of losses as a form and two numbers, for compiled code that cannot call Python objects."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pauca.losses.base import Loss
from pauca.losses.classification import LogLoss
from pauca.losses.piecewise import AbsoluteError, Hinge, PiecewiseLinear, Quantile
from pauca.losses.regression import Huber, SquaredError

# Forms of a derivative in the score a, with numbers low and high:
CLIPPED = 0
"""``a - y``, not below low and not above high."""
LOGISTIC = 1
"""``-y / (1 + e^(y a))``."""
LINES = 2
"""low where ``a < y``, high where ``a > y``, their mean between."""
SIGNED_LINES = 3
"""y times low where ``y a < 1``, high where ``y a > 1``, their mean between."""


class CompiledSlope(NamedTuple):
    """A form and its two numbers."""

    form: int
    low: float = -np.inf
    high: float = np.inf


# These classes only, not their subclasses, which may have other derivatives.
SUPPORTED = (SquaredError, LogLoss, Huber, AbsoluteError, Quantile, Hinge)


def check_compiled(loss: Loss) -> None:
    """Raise ``ValueError`` for a loss without a compiled form."""
    if type(loss) not in SUPPORTED:
        raise ValueError(
            f"There is no compiled form of {loss!r}; use SquaredError, Huber, AbsoluteError, Quantile, LogLoss "
            f"or Hinge."
        )


def compiled_slope(loss: Loss) -> CompiledSlope:
    """The form of a loss's derivative for compiled code.

    Examples
    --------
    >>> from pauca.losses import Huber
    >>> compiled_slope(Huber(2.0))
    CompiledSlope(form=0, low=-2.0, high=2.0)
    """
    check_compiled(loss)
    if isinstance(loss, LogLoss):
        return CompiledSlope(LOGISTIC)
    if isinstance(loss, Huber):
        if loss.threshold is None:
            raise ValueError("Huber() has no threshold yet: give it one, or call tuned(y, weights) first.")
        return CompiledSlope(CLIPPED, -loss.threshold, loss.threshold)
    if isinstance(loss, PiecewiseLinear):
        return CompiledSlope(SIGNED_LINES if isinstance(loss, Hinge) else LINES, loss.lowest, loss.highest)
    return CompiledSlope(CLIPPED)
