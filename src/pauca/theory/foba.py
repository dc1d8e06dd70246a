"""FoBa: how many steps it takes, how many features it ends with, and which; at the end for noise of known size.

The functions named ``noise_`` are Zhang (2011), section III, in units of Q, which is half of the paper's objective: for
squared loss, columns of mean square one, independent sub-Gaussian noise, and ``nu = 1/2``. Their ``curvature`` is the
smallest along directions of ``s`` nonzero entries, and at most 1 on such columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from pauca.theory.constants import (
    COUNT_ROUNDING,
    at_least,
    at_most,
    check,
    count,
    not_negative,
    number,
    share,
    smoothness_of,
)

RULES = ("objective", "gradient")


@dataclass(frozen=True)
class SelectionErrors:
    """How far the model of a FoBa run can be from the sparse model it is compared with.

    Attributes
    ----------
    distance : float
        Of the coefficients, in the l2 norm.
    excess : float
        Of the objective Q.
    missed : int
        Features of the sparse model that are left out.
    extra : int
        Features that are not in the sparse model.
    """

    distance: float
    excess: float
    missed: int
    extra: int


def foba_additions(*, decrease: float, tol: float, nu: float = 0.5) -> int:
    """The largest number of forward steps of FoBa before it ends by itself; backward steps are no more.

    ``1 + decrease / ((1 - nu) tol)``. Zhang (2011), Proposition 3.1, which is ``1 + 2 Q(0) / tol``: that is for
    ``nu = 1/2``, and whatever the units of Q.

    Parameters
    ----------
    decrease : float
        Q of the empty model, or by how much it is above the least there is. With that of some other model these are
        the steps until FoBa has ended or is no worse than it.
    tol : float
        The smallest gain with which a feature is added.
    nu : float, default=0.5
        The share of a gain that a removal may cost.

    Examples
    --------
    >>> from pauca.theory import foba_additions
    >>> foba_additions(decrease=1.0, tol=0.01)
    201
    """
    return at_most(1.0 + number("decrease", decrease) / ((1.0 - share("nu", nu)) * number("tol", tol)))


def foba_additions_by_gradient(
    loss: Any, *, decrease: float, gradient: float, nu: float = 0.5, scale: float = 1.0, ridge: float = 0.0
) -> int:
    """The same where FoBa ends because no slope of Q is above ``gradient`` any more.

    Along a slope so steep Q falls by ``gradient^2 / (2 smoothness)`` or more (Liu, Fujimaki and Ye 2014, Lemma 6), so
    there are at most ``1 + 2 smoothness decrease / ((1 - nu) gradient^2)`` forward steps.

    Examples
    --------
    >>> from pauca.theory import foba_additions_by_gradient
    >>> foba_additions_by_gradient("log_loss", decrease=0.7, gradient=0.1)
    71
    """
    gain = number("gradient", gradient) ** 2 / (2.0 * smoothness_of(loss, scale, ridge))
    return foba_additions(decrease=decrease, tol=gain, nu=nu)


def foba_features(*, n_reference: int, curvature: float, smoothness: float, single: float | None = None) -> int:
    """The largest number of features FoBa ends with, if its tolerance is above that of ``foba_tolerance``.

    Liu, Fujimaki and Ye (2014), Theorems 1 and 2: the smallest integer above
    ``(n_reference + 1) [2 (single / curvature) (sqrt(smoothness / curvature) + 1)]^2``. With ``single`` left out it is
    the number of their Theorem 3.

    Parameters
    ----------
    n_reference : int
        Features of the sparse model to compare with.
    curvature, smoothness : float
        The smallest and largest curvature of Q along directions of ``s`` nonzero entries, where ``s`` is the result
        plus ``n_reference``.
    single : float, default=None
        The largest curvature along one coordinate; by default ``smoothness``, which is never below.

    Examples
    --------
    >>> from pauca.theory import foba_features
    >>> foba_features(n_reference=5, curvature=0.5, smoothness=1.5, single=1.0)
    717
    """
    features = count("n_reference", n_reference)
    single = smoothness if single is None else single
    curvature, single = _curvatures(curvature, single)
    if number("smoothness", smoothness) < single:
        raise ValueError(f"smoothness is over more directions than single and cannot be below it; got {smoothness!r}.")
    factor = 2.0 * (single / curvature) * (math.sqrt(smoothness / curvature) + 1.0)
    return at_most((features + 1) * factor**2) + 1


def isotropic_curvatures(*, least: float, largest: float, ridge: float = 0.0) -> tuple[float, float]:
    """The smallest and largest curvature of Q along sparse directions, for random rows that favour no direction.

    ``ridge + least / 2`` and ``ridge + 1.5 largest``, from the smallest and largest curvature of the loss over the
    scores that occur. Liu, Fujimaki and Ye (2014), Theorem 3: with high probability for sub-Gaussian isotropic rows, at
    least ``C s ln d`` of them. The theorem does not say what C is, and the one in its proof gives 1.67 for 1.5: it has
    to be larger.

    Examples
    --------
    >>> from pauca.theory import foba_features, isotropic_curvatures
    >>> curvature, smoothness = isotropic_curvatures(least=1.0, largest=1.0)
    >>> foba_features(n_reference=1, curvature=curvature, smoothness=smoothness)
    538
    """
    least, largest, ridge = not_negative("least", least), number("largest", largest), not_negative("ridge", ridge)
    if least > largest:
        raise ValueError(f"least cannot be above largest; got {least!r} and {largest!r}.")
    if ridge + least == 0.0:
        raise ValueError("least and ridge are both zero: then Q need not be curved along any direction.")
    return ridge + 0.5 * least, ridge + 1.5 * largest


def foba_tolerance(*, gradient: float, curvature: float, single: float, rule: str = "objective") -> float:
    """The tolerance above which FoBa ends with few features and few errors.

    Liu, Fujimaki and Ye (2014), Theorem 1, for gains: ``4 single gradient^2 / curvature^2``; Theorem 2, for slopes:
    ``2 sqrt(2) single gradient / curvature``. The tolerance has to be above, not equal. The paper ends a run by gains
    along one coordinate, ``FoBa`` by gains after refitting, which are never smaller: it may go on for longer.

    Parameters
    ----------
    gradient : float
        The largest absolute slope of Q at the sparse model to compare with, which says how far that is from being a
        minimum: 0 without noise, about ``sigma sqrt(ln d / n)`` with it.
    curvature, single : float
        As in ``foba_features``.
    rule : {"objective", "gradient"}, default="objective"
        Whether the run ends by the largest gain along a coordinate or by the largest slope.

    Examples
    --------
    >>> from pauca.theory import foba_tolerance
    >>> foba_tolerance(gradient=0.25, curvature=0.5, single=1.0)
    1.0
    """
    check.one_of("rule", rule, RULES)
    slope = not_negative("gradient", gradient)
    curvature, single = _curvatures(curvature, single)
    if rule == "objective":
        return 4.0 * single * slope**2 / curvature**2
    return 2.0 * math.sqrt(2.0) * single * slope / curvature


def foba_visible(*, tol: float, curvature: float, single: float, rule: str = "objective") -> float:
    """The coefficient below which a feature of the sparse model counts as weak: the others are found.

    Liu, Fujimaki and Ye (2014), Theorem 4: ``4 sqrt(single tol) / curvature`` for gains; Theorem 5:
    ``2 sqrt(2) tol / curvature`` for slopes.

    Examples
    --------
    >>> from pauca.theory import foba_visible
    >>> foba_visible(tol=0.04, curvature=0.5, single=1.0)
    1.6
    """
    check.one_of("rule", rule, RULES)
    tol = number("tol", tol)
    curvature, single = _curvatures(curvature, single)
    if rule == "objective":
        return 4.0 * math.sqrt(single * tol) / curvature
    return 2.0 * math.sqrt(2.0) * tol / curvature


def foba_exact(*, gradient: float, curvature: float, single: float) -> float:
    """The coefficient above which all of the sparse model must lie for exactly its features to be found.

    Liu, Fujimaki and Ye (2014), Corollary 1: ``8 single gradient / curvature^2``, with a tolerance just above that of
    ``foba_tolerance``. The paper allows equality, which is not enough.

    Examples
    --------
    >>> from pauca.theory import foba_exact
    >>> foba_exact(gradient=0.05, curvature=0.5, single=1.0)
    1.6
    """
    curvature, single = _curvatures(curvature, single)
    return 8.0 * single * not_negative("gradient", gradient) / curvature**2


def foba_errors(
    *, tol: float, n_weak: int, curvature: float, single: float, rule: str = "objective"
) -> SelectionErrors:
    """How far the model FoBa ends with can be from the sparse model, by the number of its weak features.

    Liu, Fujimaki and Ye (2014), Theorem 4 for gains, Theorem 5 for slopes. The first bound of Theorem 4 is printed
    with ``single^2``; proof and units give ``single``.

    Parameters
    ----------
    tol : float
        The tolerance, above that of ``foba_tolerance``.
    n_weak : int
        Features of the sparse model that are left out and have coefficients below ``foba_visible``; all of the sparse
        model with such coefficients is a bound.
    curvature, single : float
        As in ``foba_features``.
    rule : {"objective", "gradient"}, default="objective"
        Whether the run ends by the largest gain along a coordinate or by the largest slope.

    Examples
    --------
    >>> from pauca.theory import foba_errors
    >>> foba_errors(tol=0.01, n_weak=1, curvature=0.5, single=1.0)
    SelectionErrors(distance=0.8, excess=0.04, missed=2, extra=64)
    """
    check.one_of("rule", rule, RULES)
    tol, weak = number("tol", tol), count("n_weak", n_weak, least=0)
    curvature, single = _curvatures(curvature, single)
    # By gains, tol is in units of Q; by slopes, its square over a curvature is.
    drop = 2.0 * single * tol if rule == "objective" else tol**2
    return SelectionErrors(
        distance=math.sqrt(8.0 * drop * weak) / curvature,
        excess=drop * weak / curvature,
        missed=2 * weak,
        extra=at_most(16.0 * weak * (single / curvature) ** 2),
    )


def noise_sparsity(*, n_reference: int, curvature: float) -> int:
    """The sparsity ``s`` up to which Q has to be curved for FoBa to end with fewer than ``s - n_reference`` features.

    Zhang (2011), Theorems 3.2 and 3.3: the smallest s with ``8 (n_reference + 1) <= (s - 2 n_reference) curvature^2``.

    Parameters
    ----------
    n_reference : int
        Features of the sparse model to compare with.
    curvature : float
        The smallest curvature of Q along directions of s nonzero entries.

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
    Features are weak if their squared coefficient is below ``64 tol / curvature^2``. Corollary 3.1 divides the same
    bound by the curvature, and in the paper lacks ``1 / n`` in all terms.

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


def _curvatures(curvature: float, single: float) -> tuple[float, float]:
    if number("curvature", curvature) > number("single", single) * (1.0 + COUNT_ROUNDING):
        raise ValueError(
            f"curvature is the smallest along sparse directions and cannot be above single, the largest along a "
            f"coordinate; got {curvature!r} and {single!r}."
        )
    return float(curvature), float(single)


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
