"""Sparse models drawn at random from dense ones: numbers of draws and repeats."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pauca.theory.constants import Constants, at_least, count, not_negative, number, share, smoothness_of
from pauca.theory.greedy import norm_bound


def sampling_features(loss: Any, *, norm: float, accuracy: float, scale: float = 1.0, ridge: float = 0.0) -> int:
    """Draws after which a model sampled by magnitude is within ``accuracy`` of the dense one, with probability 1/2.

    Shalev-Shwartz, Srebro and Zhang (2010), Theorem 2.1: ``smoothness norm^2 / accuracy`` draws, or
    ``4 lipschitz^2 norm^2 / accuracy^2`` for losses with a kink; the smaller where both hold. Features are drawn with
    probabilities ``|w_j| / norm``, and ``repeats`` says how often to repeat for a higher probability.

    It assumes that the dense model is the best in the l1 ball of its own norm: otherwise the bound holds for the mean
    over draws only. The paper prints 2 in place of 4; its proof gives 4.

    Parameters
    ----------
    loss : str, Loss or Constants
        The loss, for its largest curvature and slope.
    norm : float
        The l1 norm of the dense model.
    accuracy : float
        The excess of the objective Q that is allowed.
    scale : float, default=1.0
        The largest mean square of a column; 1 if all entries lie within -1 and 1, as the paper has it.
    ridge : float, default=0.0
        As in Q.

    Examples
    --------
    >>> from pauca.theory import repeats, sampling_features
    >>> sampling_features("squared_error", norm=5.0, accuracy=0.1), repeats(0.99)
    (250, 7)
    """
    known, accuracy, norm = Constants.of(loss), number("accuracy", accuracy), number("norm", norm)
    scale, ridge = number("scale", scale), not_negative("ridge", ridge)
    draws = math.inf
    if known.smoothness is not None:
        draws = (known.smoothness * scale + ridge) * norm**2 / accuracy
    if known.lipschitz is not None:
        # accuracy k = 2 slope sqrt(k) + ridge norm^2
        slope = known.lipschitz * math.sqrt(scale) * norm
        draws = min(draws, ((slope + math.sqrt(slope**2 + ridge * norm**2 * accuracy)) / accuracy) ** 2)
    return at_least(draws)


def sampling_accuracy(loss: Any, *, norm: float, k: int, scale: float = 1.0, ridge: float = 0.0) -> float:
    """The accuracy of k draws with probability 1/2: the inverse of ``sampling_features``.

    It is twice the bound on the mean excess of Lemmas A.1 and A.2 of Shalev-Shwartz, Srebro and Zhang (2010).

    Examples
    --------
    >>> from pauca.theory import sampling_accuracy
    >>> sampling_accuracy("squared_error", norm=5.0, k=250)
    0.1
    """
    known, norm, k = Constants.of(loss), number("norm", norm), count("k", k)
    scale, ridge = number("scale", scale), not_negative("ridge", ridge)
    accuracy = math.inf
    if known.smoothness is not None:
        accuracy = (known.smoothness * scale + ridge) * norm**2 / k
    if known.lipschitz is not None:
        slope = known.lipschitz * math.sqrt(scale) * norm
        accuracy = min(accuracy, 2.0 * slope / math.sqrt(k) + ridge * norm**2 / k)
    return accuracy


def sampling_features_if_curved(
    loss: Any,
    *,
    n_reference: int,
    curvature: float,
    decrease: float,
    accuracy: float,
    scale: float = 1.0,
    ridge: float = 0.0,
) -> int:
    """Draws that compete with any model of few features on which Q is curved, with probability 1/2.

    Shalev-Shwartz, Srebro and Zhang (2010), Corollary 2.3: Theorem 2.1 with the l1 norm of Lemma 2.2, which is
    ``2 smoothness n_reference decrease / (curvature accuracy)`` draws or, for losses with a kink,
    ``8 lipschitz^2 n_reference decrease / (curvature accuracy^2)`` (the paper prints 4). What is sampled is the best
    model in the ball of radius ``norm_bound``.

    Parameters
    ----------
    loss : str, Loss or Constants
        The loss, for its largest curvature and slope.
    n_reference : int
        Features of the model to compare with, the best on its features.
    curvature : float
        The smallest curvature of Q on those features.
    decrease : float
        By how much that model's Q is below that of the empty model.
    accuracy : float
        The excess of Q over that model's.
    scale, ridge : float
        As in ``sampling_features``.

    Examples
    --------
    >>> from pauca.theory import sampling_features_if_curved
    >>> sampling_features_if_curved("squared_error", n_reference=5, curvature=0.5, decrease=1.0, accuracy=0.1)
    200
    """
    norm = norm_bound(n_reference=n_reference, curvature=curvature, decrease=decrease)
    return sampling_features(loss, norm=norm, accuracy=accuracy, scale=scale, ridge=ridge)


def magnitude_draws(
    loss: Any, *, norm: float, accuracy: float, confidence: float, scale: float = 1.0, ridge: float = 0.0
) -> int:
    """Draws by magnitude after which a single model is within ``accuracy``, with the given confidence.

    Li, Yang, Zhang and Jin (2017), Theorem 2: ``smoothness norm^2 / (2 accuracy (1 - confidence))``; the paper's
    accuracy is twice ours. It is Markov's inequality, and like ``sampling_features`` needs a dense model that is the
    best in its ball; for any other the same number holds for the mean. ``repeats`` of ``sampling_features`` draws are
    far cheaper for high confidence.

    Examples
    --------
    >>> from pauca.theory import magnitude_draws
    >>> magnitude_draws("squared_error", norm=5.0, accuracy=0.1, confidence=0.99)
    12500
    """
    failure = 1.0 - share("confidence", confidence)
    norm, accuracy = number("norm", norm), number("accuracy", accuracy)
    return at_least(smoothness_of(loss, scale, ridge) * norm**2 / (2.0 * accuracy * failure))


def moment_draws(loss: Any, *, norm: float, accuracy: float, confidence: float) -> int:
    """Draws by magnitude times scale after which a single model is within ``accuracy``, with the given confidence.

    Li, Yang, Zhang and Jin (2017), Theorem 3: ``smoothness norm^2 / (2 accuracy (1 - confidence))``, where the norm is
    that of ``moment_norm`` and features are drawn with probabilities in proportion to its terms. The norm is never
    above the l1 norm times the largest scale of a column, so that this never needs more draws than ``magnitude_draws``.

    Such draws may leave the l1 ball of the dense model. Then the excess may be negative, which Markov's inequality does
    not allow for: what is certain is the mean.

    Examples
    --------
    >>> from pauca.theory import moment_draws, moment_norm
    >>> norm = moment_norm([3.0, -2.0], [1.0, 0.25])
    >>> norm, moment_draws("squared_error", norm=norm, accuracy=0.1, confidence=0.99)
    (4.0, 8000)
    """
    failure = 1.0 - share("confidence", confidence)
    norm, accuracy = number("norm", norm), number("accuracy", accuracy)
    return at_least(smoothness_of(loss, 1.0, 0.0) * norm**2 / (2.0 * accuracy * failure))


def moment_norm(coef: Any, moments: Any) -> float:
    """``sum_j |w_j| sqrt(m_j)``: the l1 norm in units of column scale.

    Parameters
    ----------
    coef : array-like of shape (d,)
        Coefficients.
    moments : array-like of shape (d,)
        Mean squares of the columns.

    Examples
    --------
    >>> from pauca.theory import moment_norm
    >>> moment_norm([3.0, -2.0], [1.0, 0.25])
    4.0
    """
    w, m = np.asarray(coef, dtype=float), np.asarray(moments, dtype=float)
    if w.ndim != 1 or w.shape != m.shape:
        raise ValueError(f"coef and moments must be vectors of one length; got shapes {w.shape} and {m.shape}.")
    if not (np.isfinite(w).all() and np.isfinite(m).all()) or m.min(initial=0.0) < 0:
        raise ValueError("coef and moments must be finite, and moments not negative.")
    return float(np.abs(w) @ np.sqrt(m))


def repeats(confidence: float) -> int:
    """How often to repeat a draw that succeeds with probability 1/2, keeping the best, for a given confidence.

    ``ceil(log2(1 / (1 - confidence)))``. Shalev-Shwartz, Srebro and Zhang (2010), after Theorem 2.1, where the
    logarithm must be the binary one: with the natural one, 99 % would be 97 %.

    Examples
    --------
    >>> from pauca.theory import repeats
    >>> repeats(0.99), repeats(0.5)
    (7, 1)
    """
    return at_least(-math.log2(1.0 - share("confidence", confidence)))
