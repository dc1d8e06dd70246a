"""FoBa for squared loss with noise of known size: Zhang (2011), section III.

In units of Q, which is half of the paper's objective: for squared loss, columns of mean square one, independent
sub-Gaussian noise, and ``nu = 1/2``. The ``curvature`` is the smallest along directions of ``s`` nonzero entries, and
at most 1 on such columns.
"""

from __future__ import annotations

import math

from pauca.theory.constants import at_least, at_most, count, not_negative, number, share


def noise_sparsity(*, n_reference: int, curvature: float) -> int:
    """The sparsity ``s`` up to which Q has to be curved for FoBa to end with fewer than ``s - n_reference`` features.

    Zhang (2011), Theorems 3.2 and 3.3: the smallest s with ``8 (n_reference + 1) <= (s - 2 n_reference) curvature^2``.

    Parameters
    ----------
    n_reference : int
        Features of the sparse model to compare with.
    curvature : float
        The smallest curvature of Q along directions of s nonzero entries.

    Returns
    -------
    s : int

    Examples
    --------
    >>> from pauca.theory import noise_sparsity
    >>> noise_sparsity(n_reference=5, curvature=0.5)
    202
    """
    features = count("n_reference", n_reference)
    return at_least(8.0 * (features + 1) / _unit_curvature(curvature) ** 2 + 2.0 * features)


def noise_sparsity_for_excess(*, n_reference: int, curvature: float) -> int:
    """The sparsity ``s`` up to which Q has to be curved for ``noise_excess``.

    Zhang (2011), Theorem 3.1: the smallest s with ``32 (n_reference + 1) <= (0.8 s - 2 n_reference) curvature^2``.

    Examples
    --------
    >>> from pauca.theory import noise_sparsity_for_excess
    >>> noise_sparsity_for_excess(n_reference=5, curvature=0.5)
    973
    """
    features = count("n_reference", n_reference)
    return at_least((32.0 * (features + 1) / _unit_curvature(curvature) ** 2 + 2.0 * features) / 0.8)


def noise_tolerance(*, noise: float, n_samples: int, n_features: int, curvature: float) -> float:
    """The tolerance above which ``noise_excess`` holds: ``54 noise^2 ln(16 d) / (curvature n)``.

    Zhang (2011), Theorem 3.1, with 108 halved for the units of Q.

    Parameters
    ----------
    noise : float
        The scale of the noise, ``sigma``.
    n_samples, n_features : int
        Rows and columns.
    curvature : float
        The smallest along directions of ``noise_sparsity_for_excess`` nonzero entries.

    Returns
    -------
    tol : float

    Examples
    --------
    >>> from pauca.theory import noise_tolerance
    >>> round(noise_tolerance(noise=1.0, n_samples=1000, n_features=500, curvature=0.5), 3)
    0.971
    """
    return 54.0 * _variance(noise, n_samples) * _logarithm(n_features) / _unit_curvature(curvature)


def noise_tolerance_to_stop(
    *,
    noise: float,
    n_samples: int,
    n_features: int,
    n_reference: int,
    curvature: float,
    confidence: float,
    misfit: float = 0.0,
) -> float:
    """The tolerance above which FoBa ends with few features: fewer than ``noise_sparsity`` less ``n_reference``.

    Zhang (2011), Theorem 3.2, with ``eta = (1 - confidence) / 2``:
    ``curvature misfit / (n_reference + 1) + 2.7 (noise^2 / n) (8 ln(16 d) / curvature + curvature ln(2 e / eta) /
    (n_reference + 1))``.

    Parameters
    ----------
    noise : float
        The scale of the noise, ``sigma``.
    n_samples, n_features : int
        Rows and columns.
    n_reference : int
        Features of the sparse model to compare with.
    curvature : float
        The smallest along directions of ``noise_sparsity`` nonzero entries.
    confidence : float
        The probability of success.
    misfit : float, default=0.0
        The mean squared difference between the sparse model and the expected target.

    Returns
    -------
    tol : float

    Examples
    --------
    >>> from pauca.theory import noise_tolerance_to_stop
    >>> tol = noise_tolerance_to_stop(
    ...     noise=1.0, n_samples=1000, n_features=500, n_reference=5, curvature=0.5, confidence=0.9
    ... )
    >>> round(tol, 3)
    0.389
    """
    curvature, others = _unit_curvature(curvature), count("n_reference", n_reference) + 1
    tail = _tail(0.5 * (1.0 - share("confidence", confidence)))
    spread = 8.0 * _logarithm(n_features) / curvature + curvature * tail / others
    return curvature * not_negative("misfit", misfit) / others + 2.7 * _variance(noise, n_samples) * spread


def noise_tolerance_to_select(
    *, noise: float, n_samples: int, n_features: int, curvature: float, confidence: float
) -> float:
    """The tolerance above which ``noise_selection`` holds, where the sparse model is the truth.

    Zhang (2011), Theorem 3.3, with ``eta = (1 - confidence) / 3``:
    ``2.7 (noise^2 / (curvature n)) (8 ln(16 d) + 2 curvature^2 ln(2 e / eta))``.

    Examples
    --------
    >>> from pauca.theory import noise_tolerance_to_select
    >>> tol = noise_tolerance_to_select(noise=1.0, n_samples=1000, n_features=500, curvature=0.5, confidence=0.9)
    >>> round(tol, 3)
    0.402
    """
    curvature = _unit_curvature(curvature)
    tail = _tail((1.0 - share("confidence", confidence)) / 3.0)
    return 2.7 * _variance(noise, n_samples) / curvature * (8.0 * _logarithm(n_features) + 2.0 * curvature**2 * tail)


def noise_excess(
    *,
    noise: float,
    n_samples: int,
    n_reference: int,
    n_weak: int,
    tol: float,
    curvature: float,
    confidence: float,
) -> float:
    """How far the expected squared error of FoBa's model, halved, can be above that of the sparse model.

    Zhang (2011), Theorem 3.1, for ``tol`` above ``noise_tolerance`` and a run that ends with at most
    ``s - n_reference`` features:
    ``(37 n_reference + 13.5 ln(2 e / eta)) noise^2 / n + 18 tol n_weak / curvature``, with ``eta = 1 - confidence``.
    Features are weak if their squared coefficient is below ``64 tol / curvature^2``. For a run that goes on to more
    features see ``noise_excess_if_larger``.

    Examples
    --------
    >>> from pauca.theory import noise_excess
    >>> excess = noise_excess(
    ...     noise=1.0, n_samples=1000, n_reference=5, n_weak=0, tol=1.0, curvature=0.5, confidence=0.9
    ... )
    >>> round(excess, 3)
    0.239
    """
    features, weak = count("n_reference", n_reference), count("n_weak", n_weak, least=0)
    parametric = 37.0 * features + 13.5 * _tail(1.0 - share("confidence", confidence))
    return parametric * _variance(noise, n_samples) + 18.0 * number("tol", tol) * weak / _unit_curvature(curvature)


def noise_excess_if_larger(*, noise: float, n_samples: int, n_reference: int, tol: float, confidence: float) -> float:
    """The same at the first arrival at a size of ``0.8 s - n_reference`` to ``s - n_reference``: it can be negative.

    Zhang (2011), Theorem 3.1, for a run that goes on to ``s - n_reference`` features or more:
    ``-0.7 n_reference tol + 5.4 ln(2 e / eta) noise^2 / n``, with ``eta = 1 - confidence``. Above
    ``noise_tolerance_if_larger`` it is at most ``-n_reference tol / 2``, which is the paper's equation 6: the model
    is then better than the sparse one.

    Examples
    --------
    >>> from pauca.theory import noise_excess_if_larger
    >>> excess = noise_excess_if_larger(noise=1.0, n_samples=1000, n_reference=5, tol=1.0, confidence=0.9)
    >>> round(excess, 3)
    -3.478
    """
    features, tail = count("n_reference", n_reference), _tail(1.0 - share("confidence", confidence))
    return 5.4 * tail * _variance(noise, n_samples) - 0.7 * features * number("tol", tol)


def noise_tolerance_if_larger(*, noise: float, n_samples: int, n_reference: int, confidence: float) -> float:
    """The tolerance from which ``noise_excess_if_larger`` is at most ``-n_reference tol / 2``.

    Zhang (2011), the condition of equation 6: ``27 ln(2 e / eta) noise^2 / (n_reference n)``.

    Examples
    --------
    >>> from pauca.theory import noise_tolerance_if_larger
    >>> round(noise_tolerance_if_larger(noise=1.0, n_samples=1000, n_reference=5, confidence=0.9), 4)
    0.0216
    """
    features, tail = count("n_reference", n_reference), _tail(1.0 - share("confidence", confidence))
    return 27.0 * tail * _variance(noise, n_samples) / features


def noise_distance(
    *,
    noise: float,
    n_samples: int,
    n_reference: int,
    n_weak: int,
    tol: float,
    curvature: float,
    confidence: float,
) -> float:
    """How far the coefficients of FoBa's model can be from the true ones, in the l2 norm.

    Zhang (2011), Corollary 3.1, for ``tol`` above ``noise_tolerance`` and ``noise_tolerance_to_stop``, with
    ``eta = (1 - confidence) / 2``: the square is at most
    ``(74 n_reference + 27 ln(2 e / eta)) noise^2 / (n curvature) + 36 tol n_weak / curvature^2``. The paper lacks
    ``1 / n`` in all terms.

    Examples
    --------
    >>> from pauca.theory import noise_distance
    >>> distance = noise_distance(
    ...     noise=1.0, n_samples=1000, n_reference=5, n_weak=0, tol=1.0, curvature=0.5, confidence=0.9
    ... )
    >>> round(distance, 3)
    0.997
    """
    # Theorem 3.2 holds with probability 1 - 2 eta, its excess with the eta of Theorem 3.1.
    excess = noise_excess(
        noise=noise,
        n_samples=n_samples,
        n_reference=n_reference,
        n_weak=n_weak,
        tol=tol,
        curvature=curvature,
        confidence=0.5 * (1.0 + share("confidence", confidence)),
    )
    return math.sqrt(2.0 * excess / curvature)


def noise_tolerance_for_exact(
    *, noise: float, n_samples: int, n_features: int, curvature: float, confidence: float
) -> float:
    """The tolerance above which FoBa ends with exactly the true features, if none of them is weak.

    Zhang (2011), Corollary 3.2: the larger of ``noise_tolerance_to_select`` and ``noise_tolerance``. All true
    coefficients have to be above ``noise_visible``.

    Examples
    --------
    >>> from pauca.theory import noise_tolerance_for_exact
    >>> tol = noise_tolerance_for_exact(noise=1.0, n_samples=1000, n_features=500, curvature=0.5, confidence=0.9)
    >>> round(tol, 3)
    0.971
    """
    data = {"noise": noise, "n_samples": n_samples, "n_features": n_features, "curvature": curvature}
    return max(noise_tolerance_to_select(**data, confidence=confidence), noise_tolerance(**data))  # type: ignore[arg-type]


def noise_visible(*, tol: float, curvature: float) -> float:
    """The coefficient below which a feature is weak: ``8 sqrt(tol) / curvature``; Zhang (2011), Theorems 3.1 to 3.3.

    Examples
    --------
    >>> from pauca.theory import noise_visible
    >>> noise_visible(tol=0.01, curvature=0.5)
    1.6
    """
    return 8.0 * math.sqrt(number("tol", tol)) / _unit_curvature(curvature)


def noise_selection(*, n_weak: int, curvature: float) -> tuple[int, int]:
    """Features of the truth that FoBa can miss, and features it can have too many, by the number of weak ones.

    Zhang (2011), Theorem 3.3: ``2 n_weak`` and ``64 n_weak / curvature^2``, for a tolerance above
    ``noise_tolerance_to_select``. With no weak features exactly the right ones are found (Corollary 3.2).

    Examples
    --------
    >>> from pauca.theory import noise_selection
    >>> noise_selection(n_weak=0, curvature=0.5)
    (0, 0)
    """
    weak = count("n_weak", n_weak, least=0)
    return 2 * weak, at_most(64.0 * weak / _unit_curvature(curvature) ** 2)


def _tail(eta: float) -> float:
    return math.log(2.0 * math.e / eta)


def _unit_curvature(value: float) -> float:
    if number("curvature", value) > 1.0:
        raise ValueError(f"curvature is at most 1 where columns have mean square one; got {value!r}.")
    return float(value)


def _variance(noise: float, n_samples: int) -> float:
    return number("noise", noise) ** 2 / count("n_samples", n_samples)


def _logarithm(n_features: int) -> float:
    return math.log(16.0 * count("n_features", n_features))
