"""Learning from a stream of rows: epochs and samples that suffice."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pauca.theory.constants import at_least, count, number, share


@dataclass(frozen=True)
class StreamPlan:
    """Epochs of stochastic gradient steps, each twice as long as the one before.

    Attributes
    ----------
    epochs : int
        How many.
    first : int
        Steps, and so samples, of the first epoch.
    step : float
        The step size of the first epoch; it is halved from epoch to epoch.
    samples : int
        Samples of all epochs: ``first (2^epochs - 1)``.
    """

    epochs: int
    first: int
    step: float
    samples: int


def stream_plan(
    *, radius: float, accuracy: float, confidence: float, row_norm: float, error_bound: float = 1.0
) -> StreamPlan:
    """Epochs and samples after which a model learned from a stream is within ``accuracy`` of the best in an l1 ball.

    Li, Yang, Zhang and Jin (2017), Theorem 1, for squared loss: with ``c = max(error_bound, 1)``,
    ``epochs = ceil(log2(c radius^2 / (2 accuracy)))`` and
    ``first = (8 c row_norm + 64 row_norm sqrt(2 ln(epochs / (1 - confidence))))^2``. The number of epochs in the paper
    does not go with its number of samples; this is what its proof needs, and its accuracy is twice ours.

    Parameters
    ----------
    radius : float
        Of the l1 ball, and a bound on the absolute target: the theorem has one number for both, and entries of X
        within -1 and 1.
    accuracy : float
        The excess of the expected objective Q over the best in the ball.
    confidence : float
        The probability of success.
    row_norm : float
        The largest l2 norm of a row.
    error_bound : float, default=1.0
        The smallest kappa with ``|w - nearest optimum|^2 <= 2 kappa (Q(w) - least Q)`` in the ball: one over the
        smallest curvature where Q is strongly convex. It is seldom known.

    Examples
    --------
    >>> from pauca.theory import stream_plan
    >>> plan = stream_plan(radius=2.0, accuracy=0.1, confidence=0.9, row_norm=1.0)
    >>> plan.epochs, plan.first, plan.samples
    (5, 34976, 1084256)
    """
    c, radius = _factor(error_bound), number("radius", radius)
    failure, row_norm = 1.0 - share("confidence", confidence), number("row_norm", row_norm)
    epochs = max(at_least(math.log2(c * radius**2 / (2.0 * number("accuracy", accuracy)))), 1)
    return _plan(epochs, c, row_norm, failure)


def stream_accuracy(
    *, radius: float, samples: int, confidence: float, row_norm: float, error_bound: float = 1.0
) -> float:
    """The accuracy after a number of samples: the inverse of ``stream_plan``.

    Where they do not fill the first epoch it is ``c radius^2 / 2``, which the empty model has.

    Examples
    --------
    >>> from pauca.theory import stream_accuracy
    >>> stream_accuracy(radius=2.0, samples=2_000_000, confidence=0.9, row_norm=1.0)
    0.0625
    """
    c, radius, samples = _factor(error_bound), number("radius", radius), count("samples", samples)
    failure, row_norm = 1.0 - share("confidence", confidence), number("row_norm", row_norm)
    epochs = 0
    while _plan(epochs + 1, c, row_norm, failure).samples <= samples:
        epochs += 1
    return math.ldexp(c * radius**2, -epochs - 1)


def _factor(error_bound: float) -> float:
    return max(number("error_bound", error_bound), 1.0)


def _plan(epochs: int, c: float, row_norm: float, failure: float) -> StreamPlan:
    first = at_least((8.0 * c * row_norm + 64.0 * row_norm * math.sqrt(2.0 * math.log(epochs / failure))) ** 2)
    return StreamPlan(epochs, first, 1.0 / (2.0 * row_norm * math.sqrt(first)), first * (2**epochs - 1))
