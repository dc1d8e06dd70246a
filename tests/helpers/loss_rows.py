"""All losses that are elementwise, with their properties from the literature: one row for each."""

from dataclasses import dataclass

import numpy as np
from judges import LogCosh

from pauca.losses import (
    AbsoluteError,
    Envelope,
    Gamma,
    GammaInverseLink,
    Hinge,
    Huber,
    LogLoss,
    Loss,
    NegativeBinomial,
    Poisson,
    Quantile,
    SquaredError,
    SquaredHinge,
    Tweedie,
)

NUMBERS, COUNTS, SIGNS = (-2.3, 0.0, 0.7, 5.0), (0.0, 1.0, 3.0, 40.0), (-1.0, 1.0)


AMOUNTS = (0.2, 1.0, 5.0, 40.0)


@dataclass(frozen=True)
class Row:
    """A loss, valid targets, and its properties from the literature, independent of its code."""

    loss: Loss
    targets: tuple
    kinks: object = lambda y: ()
    """Scores where the derivative or the curvature jumps."""
    domain: object = None
    """Ends of the interval on which the conjugate is finite; None where the loss does not know its conjugate."""
    positive: bool = False
    """Whether only positive scores have a finite loss."""


def everywhere(y):
    return -np.inf, np.inf


def bounded(low, high, *, signed=False):
    return lambda y: tuple(sorted((y * low, y * high))) if signed else (low, high)


PIECEWISE = {
    "absolute_error": Row(AbsoluteError(), NUMBERS, lambda y: (y,), bounded(-1, 1)),
    "quantile 0.1": Row(Quantile(0.1), NUMBERS, lambda y: (y,), bounded(-0.1, 0.9)),
    "quantile 0.5": Row(Quantile(0.5), NUMBERS, lambda y: (y,), bounded(-0.5, 0.5)),
    "quantile 0.9": Row(Quantile(0.9), NUMBERS, lambda y: (y,), bounded(-0.9, 1 - 0.9)),
    "hinge": Row(Hinge(), SIGNS, lambda y: (y,), bounded(-1, 0, signed=True)),
}


BETAS = (0.2, 1.0, 37.0)


def envelope(row, beta):
    def kinks(y):
        low, high = row.domain(y)
        return y + low / beta, y + high / beta

    return Row(Envelope(row.loss, beta), row.targets, kinks, row.domain)


ENVELOPES = {f"{name} at {beta}": envelope(row, beta) for name, row in PIECEWISE.items() for beta in BETAS}


LOSSES = {
    "squared_error": Row(SquaredError(), NUMBERS, domain=everywhere),
    "huber": Row(Huber(1.3), NUMBERS, lambda y: (y - 1.3, y + 1.3), bounded(-1.3, 1.3)),
    "poisson": Row(Poisson(), COUNTS, domain=lambda y: (-y, np.inf)),
    "gamma": Row(Gamma(), AMOUNTS, domain=bounded(-np.inf, 1.0)),
    "gamma, inverse link": Row(GammaInverseLink(), AMOUNTS, domain=lambda y: (-np.inf, y), positive=True),
    "tweedie": Row(Tweedie(1.3), COUNTS, domain=lambda y: (-np.inf if y else 0.0, np.inf)),
    "negative binomial": Row(NegativeBinomial(0.4), COUNTS, domain=lambda y: (-y, 2.5)),
    "log_loss": Row(LogLoss(), SIGNS, domain=bounded(-1, 0, signed=True)),
    "squared hinge": Row(SquaredHinge(), SIGNS, lambda y: (y,), bounded(-np.inf, 0, signed=True)),
    "own": Row(LogCosh(), NUMBERS),
    **PIECEWISE,
    **ENVELOPES,
}


STEP = 1e-4


def least(function, low, high):
    """The minimum of a convex function between two points, by grids that close in on it."""
    for _ in range(6):
        points = np.linspace(low, high, 1001)
        best = int(np.argmin(function(points)))
        low, high = points[max(best - 1, 0)], points[min(best + 1, 1000)]
    return float(np.min(function(np.linspace(low, high, 3))))
