"""Greedy selection: how many features or steps suffice for an accuracy, and the accuracy of a given number."""

from __future__ import annotations

import math
from typing import Any

from pauca.theory.constants import (
    accuracy_at_rate,
    at_least,
    check,
    check_curvature,
    count,
    number,
    smoothness_of,
    steps_at_rate,
)

STOPS = {"accuracy": 8.0, "gap": 16.0}


def norm_bound(*, n_reference: int, curvature: float, decrease: float) -> float:
    """The largest l1 norm of a model that is the best on its features: ``sqrt(2 n_reference decrease / curvature)``.

    Shalev-Shwartz, Srebro and Zhang (2010), Lemma 2.2. It turns bounds by an l1 norm into bounds by a number of
    features, and gives a radius for learning in an l1 ball.

    Parameters
    ----------
    n_reference : int
        Features of the model.
    curvature : float
        The smallest curvature of Q on those features.
    decrease : float
        By how much its Q is below that of the empty model.

    Examples
    --------
    >>> from pauca.theory import norm_bound
    >>> norm_bound(n_reference=8, curvature=0.25, decrease=1.0)
    8.0
    """
    features = count("n_reference", n_reference)
    return math.sqrt(2.0 * features * number("decrease", decrease) / number("curvature", curvature))


def ball_steps(
    loss: Any, *, radius: float, accuracy: float, scale: float = 1.0, ridge: float = 0.0, stop: str = "accuracy"
) -> int:
    """Steps of greedy selection in an l1 ball to within ``accuracy`` of the best in the ball; features at most.

    Shalev-Shwartz, Srebro and Zhang (2010), Theorem 2.4: ``8 smoothness radius^2 / accuracy``. Losses with a kink are
    smoothed, as in Corollary 2.6: ``16 lipschitz^2 radius^2 / accuracy^2``. The smaller where both hold.

    Both differ from the paper where its proofs do. Theorem 2.4 bounds the excess, while the algorithm stops by a gap
    that is larger: ``stop="gap"`` has what can be proved of that, twice as many steps. Corollary 2.6 prints 8 and
    then ends at 1.5 times the accuracy: half of it goes to the smoothing, so half must be left for the steps.

    Parameters
    ----------
    loss : str, Loss or Constants
        The loss, for its largest curvature and slope.
    radius : float
        Of the ball.
    accuracy : float
        The excess of the objective Q over the best in the ball.
    scale : float, default=1.0
        The largest mean square of a column; 1 if all entries lie within -1 and 1, as the paper has it.
    ridge : float, default=0.0
        As in Q.
    stop : {"accuracy", "gap"}, default="accuracy"
        Whether the excess has to be small or also the gap that proves it.

    Examples
    --------
    >>> from pauca.theory import ball_steps
    >>> ball_steps("squared_error", radius=5.0, accuracy=0.1)
    2000
    >>> ball_steps("absolute_error", radius=5.0, accuracy=0.1, stop="gap")
    80000
    """
    check.one_of("stop", stop, STOPS)
    return at_least(steps_at_rate(STOPS[stop], loss, number("radius", radius), accuracy, scale, ridge))


def ball_accuracy(
    loss: Any, *, radius: float, steps: int, scale: float = 1.0, ridge: float = 0.0, stop: str = "accuracy"
) -> float:
    """The accuracy after a number of steps in an l1 ball: the inverse of ``ball_steps``.

    Examples
    --------
    >>> from pauca.theory import ball_accuracy
    >>> ball_accuracy("squared_error", radius=5.0, steps=2000)
    0.1
    """
    check.one_of("stop", stop, STOPS)
    return accuracy_at_rate(STOPS[stop], loss, number("radius", radius), count("steps", steps), scale, ridge)


def forward_features(loss: Any, *, norm: float, accuracy: float, scale: float = 1.0, ridge: float = 0.0) -> int:
    """Features with which forward selection is within ``accuracy`` of any model of the given l1 norm.

    Shalev-Shwartz, Srebro and Zhang (2010), Theorem 2.7: ``2 smoothness norm^2 / accuracy``. For losses with a kink it
    is applied to their envelope, with half of the accuracy for either: ``4 lipschitz^2 norm^2 / accuracy^2``. It holds
    for ``Forward`` with the rules "objective" and "gradient".

    With the rule "objective" and no ridge, ``norm`` may be that of ``moment_norm`` with ``scale=1``.

    Parameters
    ----------
    loss : str, Loss or Constants
        The loss, for its largest curvature and slope.
    norm : float
        The l1 norm of the model to compare with, which may have any number of features.
    accuracy : float
        The excess of the objective Q over that model's.
    scale : float, default=1.0
        The largest mean square of a column, or variance if there is an intercept. The paper takes entries within -1
        and 1, for which it is at most 1; only moves along one coordinate occur in the proof.
    ridge : float, default=0.0
        As in Q.

    Examples
    --------
    >>> from pauca.theory import forward_features
    >>> forward_features("squared_error", norm=5.0, accuracy=0.1)
    500
    """
    return at_least(steps_at_rate(2.0, loss, norm, accuracy, scale, ridge))


def forward_accuracy(loss: Any, *, norm: float, k: int, scale: float = 1.0, ridge: float = 0.0) -> float:
    """The accuracy of forward selection with k features: the inverse of ``forward_features``.

    Examples
    --------
    >>> from pauca.theory import forward_accuracy
    >>> forward_accuracy("squared_error", norm=5.0, k=500)
    0.1
    """
    return accuracy_at_rate(2.0, loss, norm, count("k", k), scale, ridge)


def forward_features_if_curved(
    loss: Any,
    *,
    n_reference: int,
    curvature: float,
    decrease: float,
    accuracy: float,
    scale: float = 1.0,
    ridge: float = 0.0,
) -> int:
    """Features with which forward selection competes with ``n_reference`` of them, where Q is curved.

    Shalev-Shwartz, Srebro and Zhang (2010), Theorem 2.8:
    ``n_reference (smoothness / curvature) ln(decrease / accuracy)``. Never less than 0: an accuracy of all there is
    to gain needs no feature.

    Parameters
    ----------
    loss : str, Loss or Constants
        A loss of bounded curvature.
    n_reference : int
        Features of the model to compare with.
    curvature : float
        The smallest curvature of Q along directions of ``k + n_reference`` nonzero entries, k being the result. A
        ridge is a lower bound of it.
    decrease : float
        By how much that model's Q is below that of the empty model.
    accuracy : float
        The excess of Q over that model's.
    scale, ridge : float
        As in ``forward_features``.

    Examples
    --------
    >>> from pauca.theory import forward_features_if_curved
    >>> forward_features_if_curved("squared_error", n_reference=5, curvature=0.5, decrease=1.0, accuracy=0.01)
    47
    """
    smoothness = smoothness_of(loss, scale, ridge)
    ratio = smoothness / check_curvature(curvature, smoothness)
    orders = math.log(number("decrease", decrease) / number("accuracy", accuracy))
    return max(at_least(count("n_reference", n_reference) * ratio * orders), 0)


def forward_accuracy_if_curved(
    loss: Any,
    *,
    n_reference: int,
    curvature: float,
    decrease: float,
    k: int,
    scale: float = 1.0,
    ridge: float = 0.0,
) -> float:
    """The accuracy of k features where Q is curved: the inverse of ``forward_features_if_curved``.

    Examples
    --------
    >>> from pauca.theory import forward_accuracy_if_curved
    >>> round(forward_accuracy_if_curved("squared_error", n_reference=5, curvature=0.5, decrease=1.0, k=47), 4)
    0.0091
    """
    smoothness = smoothness_of(loss, scale, ridge)
    ratio = smoothness / check_curvature(curvature, smoothness)
    return number("decrease", decrease) * math.exp(-count("k", k) / (count("n_reference", n_reference) * ratio))


def replacement_features(
    loss: Any, *, n_reference: int, curvature: float, scale: float = 1.0, ridge: float = 0.0
) -> int:
    """Features with which replacements reach any accuracy, given enough of them, where Q is curved.

    Shalev-Shwartz, Srebro and Zhang (2010), Theorem 2.9: ``k + 1 >= n_reference (1 + 4 (smoothness / curvature)^2)``.
    It holds for ``Exchange`` with squared loss, whose swaps are the best of all.

    Parameters
    ----------
    loss : str, Loss or Constants
        A loss of bounded curvature.
    n_reference : int
        Features of the model to compare with.
    curvature : float
        The smallest curvature of Q along directions of ``k + 1 + n_reference`` nonzero entries, k being the result.
    scale, ridge : float
        As in ``forward_features``.

    Examples
    --------
    >>> from pauca.theory import replacement_features, replacement_swaps
    >>> k = replacement_features("squared_error", n_reference=5, curvature=0.5)
    >>> k, replacement_swaps("squared_error", k=k, n_reference=5, curvature=0.5, decrease=1.0, accuracy=0.01)
    (84, 93)
    """
    smoothness = smoothness_of(loss, scale, ridge)
    ratio = smoothness / check_curvature(curvature, smoothness)
    return at_least(count("n_reference", n_reference) * (1.0 + 4.0 * ratio**2) - 1.0)


def replacement_swaps(
    loss: Any,
    *,
    k: int,
    n_reference: int,
    curvature: float,
    decrease: float,
    accuracy: float,
    scale: float = 1.0,
    ridge: float = 0.0,
) -> int:
    """Replacements after k forward steps that reach ``accuracy``, for k of ``replacement_features`` or more.

    Shalev-Shwartz, Srebro and Zhang (2010), Theorem 2.9:
    ``(curvature / (2 smoothness)) (k + 1 - n_reference) ln(decrease / accuracy)``. If they end sooner, the model is
    already as good as the one to compare with.

    Examples
    --------
    >>> from pauca.theory import replacement_swaps
    >>> replacement_swaps("squared_error", k=84, n_reference=5, curvature=0.5, decrease=1.0, accuracy=0.01)
    93
    """
    smoothness = smoothness_of(loss, scale, ridge)
    orders = math.log(number("decrease", decrease) / number("accuracy", accuracy))
    least = replacement_features(loss, n_reference=n_reference, curvature=curvature, scale=scale, ridge=ridge)
    if count("k", k) < least:
        raise ValueError(f"Theorem 2.9 needs k of at least {least} with these constants; got {k}.")
    return max(at_least(0.5 * curvature / smoothness * (k + 1 - n_reference) * orders), 0)
