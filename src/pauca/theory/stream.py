"""Learning from a stream of rows: epochs and samples that suffice."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pauca.theory.constants import at_least, count, not_negative, number, share


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
        smallest curvature where Q is strongly convex. It is rarely known.

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


def epoch_accuracy(
    *,
    steps: int,
    learning_rate: float,
    gradient_norm: float,
    distance: float,
    center_radius: float,
    confidence: float,
    distance_bound: float | None = None,
) -> float:
    """How far the average of one epoch of projected stochastic gradient steps can be above the least expected Q.

    Li, Yang, Zhang and Jin (2017), Lemma 2: ``learning_rate G^2 / 2 + distance^2 / (2 learning_rate steps) +
    2 G (center_radius + D) sqrt(2 ln(1 / (1 - confidence)) / steps)``, for gradients of norm at most G. It holds for
    plain stochastic gradient descent as well, as one epoch. The proof of their Theorem 1 uses twice the last term.

    Parameters
    ----------
    steps : int
        Steps, and so samples, of the epoch.
    learning_rate : float
        Its step size.
    gradient_norm : float
        G, the largest norm of a stochastic gradient: ``2 row_norm radius`` for squared loss in an l1 ball.
    distance : float
        The l2 distance from where the epoch starts to the nearest optimum.
    center_radius : float
        Of the l2 ball about where the epoch starts.
    confidence : float
        The probability of success.
    distance_bound : float, default=None
        D, a bound on ``distance``; the same by default.

    Returns
    -------
    accuracy : float

    Examples
    --------
    >>> from pauca.theory import epoch_accuracy
    >>> accuracy = epoch_accuracy(
    ...     steps=10_000, learning_rate=0.005, gradient_norm=2.0, distance=1.0, center_radius=1.0, confidence=0.9
    ... )
    >>> round(accuracy, 3)
    0.192
    """
    steps, rate, norm = (
        count("steps", steps),
        number("learning_rate", learning_rate),
        number("gradient_norm", gradient_norm),
    )
    distance = not_negative("distance", distance)
    bound = distance if distance_bound is None else number("distance_bound", distance_bound)
    tail = math.sqrt(2.0 * math.log(1.0 / (1.0 - share("confidence", confidence))) / steps)
    spread = 2.0 * norm * (number("center_radius", center_radius) + bound) * tail
    return rate * norm**2 / 2.0 + distance**2 / (2.0 * rate * steps) + spread


def _factor(error_bound: float) -> float:
    return max(number("error_bound", error_bound), 1.0)


def _plan(epochs: int, c: float, row_norm: float, failure: float) -> StreamPlan:
    first = at_least((8.0 * c * row_norm + 64.0 * row_norm * math.sqrt(2.0 * math.log(epochs / failure))) ** 2)
    return StreamPlan(epochs, first, 1.0 / (2.0 * row_norm * math.sqrt(first)), first * (2**epochs - 1))
