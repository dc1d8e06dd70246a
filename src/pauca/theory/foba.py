"""FoBa: how many steps it takes, how many features it ends with, and which."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from pauca.theory.constants import (
    COUNT_ROUNDING,
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
    ``2 sqrt(2) single gradient / curvature``. The tolerance has to be above, not equal. It goes to ``FoBa`` as
    ``min_line_gain`` or ``gradient_tol``; the ``tol`` of the estimators is compared with gains after refitting, which
    are never smaller, so that the search may go on for longer.

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


def _curvatures(curvature: float, single: float) -> tuple[float, float]:
    if number("curvature", curvature) > number("single", single) * (1.0 + COUNT_ROUNDING):
        raise ValueError(
            f"curvature is the smallest along sparse directions and cannot be above single, the largest along a "
            f"coordinate; got {curvature!r} and {single!r}."
        )
    return float(curvature), float(single)
