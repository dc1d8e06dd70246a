"""Lower bounds: how many features any method needs, and the data on which that is so."""

from __future__ import annotations

from typing import Any

import numpy as np

from pauca.theory.constants import at_least, count, number, share


def least_features_squared(*, radius: float, accuracy: float) -> int:
    """Features that any method needs for squared loss, on some data on which a dense model has next to no loss.

    Shalev-Shwartz, Srebro and Zhang (2010), Theorem 4.2: ``radius^2 / (16 accuracy)`` for an objective Q, with its 1/2,
    of at most ``accuracy``; the paper has ``radius^2 / (8 eps)`` for a mean squared error of ``eps``. So
    ``forward_features`` cannot be improved on by more than a factor of 32 without assuming more.

    Parameters
    ----------
    radius : float
        The l1 norm of the dense model; above 2.
    accuracy : float
        At most 0.05, the mean squared error being at most 0.1.

    Examples
    --------
    >>> from pauca.theory import forward_features, least_features_squared
    >>> least_features_squared(radius=5.0, accuracy=0.01), forward_features("squared_error", norm=5.0, accuracy=0.01)
    (157, 5000)
    """
    return at_least(number("radius", radius, above=2.0) ** 2 / (16.0 * _within(accuracy, 0.05)))


def least_features_absolute(*, radius: float, accuracy: float) -> int:
    """Features that any method needs for absolute loss, on some data on which a dense model has next to no loss.

    Shalev-Shwartz, Srebro and Zhang (2010), Theorem 4.1: ``radius^2 / (200 accuracy^2)``. The paper prints 45 for 200,
    which its proof does not give: ``0.2^2 / 8`` is 1/200.

    Parameters
    ----------
    radius : float
        The l1 norm of the dense model; above 2.
    accuracy : float
        The mean absolute error, at most 0.1.

    Examples
    --------
    >>> from pauca.theory import least_features_absolute
    >>> least_features_absolute(radius=5.0, accuracy=0.01)
    1250
    """
    return at_least(number("radius", radius, above=2.0) ** 2 / (200.0 * _within(accuracy, 0.1) ** 2))


def tight_distribution(
    n_samples: int, n_features: int, radius: float, random_state: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Data on which no model of few features is good and a dense one is.

    Shalev-Shwartz, Srebro and Zhang (2010), A.8: y is -1 or 1 with even chances and each feature, independently of the
    others given y, equals y with probability ``(1 + 1 / radius) / 2`` and -y otherwise. What is known of y is spread
    over all features: the model with all coefficients ``radius / n_features`` has the l1 norm ``radius`` and a mean
    squared error of ``(radius^2 - 1) / n_features``, while the best of k features has ``tight_error(k, radius)``.

    Parameters
    ----------
    n_samples, n_features : int
        The shape of X.
    radius : float
        The l1 norm of the dense model; above 1.
    random_state : int, numpy.random.Generator or None, default=None
        Where the draws come from.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Of entries -1 and 1.
    y : ndarray of shape (n_samples,)
        Of entries -1 and 1.

    Examples
    --------
    >>> from pauca.theory import tight_distribution, tight_error
    >>> X, y = tight_distribution(100_000, 3, radius=2.0, random_state=0)
    >>> error = ((y - X @ (y @ X / 100_000 / (1 + 2 * 0.25))) ** 2).mean()  # equal covariances of 1/4
    >>> round(float(error), 2), tight_error(3, radius=2.0)
    (0.5, 0.5)
    """
    shape = count("n_samples", n_samples), count("n_features", n_features)
    chance = 0.5 * (1.0 + 1.0 / number("radius", radius, above=1.0))
    rng = np.random.default_rng(random_state)
    y = np.where(rng.random(shape[0]) < 0.5, -1.0, 1.0)
    return np.where(rng.random(shape) < chance, y[:, None], -y[:, None]), y


def tight_error(k: int, radius: float) -> float:
    """The mean squared error of the best k features of ``tight_distribution``: ``(r^2 - 1) / (r^2 - 1 + k)``.

    Exact for the distribution, with coefficients ``r / (r^2 - 1 + k)``; r is the radius, and Q is half of the error.

    Examples
    --------
    >>> from pauca.theory import tight_error, tight_features
    >>> tight_error(72, radius=5.0)
    0.25
    >>> tight_features(0.25, radius=5.0)
    72
    """
    rest = number("radius", radius, above=1.0) ** 2 - 1.0
    return rest / (rest + count("k", k))


def tight_features(error: float, radius: float) -> int:
    """Features that a mean squared error takes on ``tight_distribution``: ``ceil((r^2 - 1) (1 - error) / error)``.

    The inverse of ``tight_error``. Both are exact: on these data no method needs fewer.

    Examples
    --------
    >>> from pauca.theory import tight_features
    >>> tight_features(0.02, radius=5.0)
    1176
    """
    error = share("error", error)
    return max(at_least((number("radius", radius, above=1.0) ** 2 - 1.0) * (1.0 - error) / error), 1)


def _within(accuracy: float, most: float) -> float:
    if number("accuracy", accuracy) > most:
        raise ValueError(f"The lower bound is proved for an accuracy of at most {most:g}; got {accuracy!r}.")
    return float(accuracy)
