"""The base class of losses: convex functions of one score, with what is known of their derivatives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

# Constants to start from are looked for up to this score, and as closely as doubles tell them apart. A mean slope is
# near zero if it is at most this share of the one before; that of squared error is rounding.
LARGEST_SCORE = 1e150
NEAR_ZERO = 1e-3
BISECTIONS = 60


class Slopes(NamedTuple):
    """First and second derivative of a loss at given scores, elementwise."""

    derivative: np.ndarray
    curvature: np.ndarray


class Lines(NamedTuple):
    """A loss ``max(low r, high r)`` of residuals ``r = direction a - offset``."""

    direction: np.ndarray | float
    """1 or -1 for every row."""
    offset: np.ndarray
    low: float
    high: float


class CompiledRows(Protocol):
    """Rows that a loss couples, as kernels for refits take them."""

    @property
    def order(self) -> np.ndarray:
        """Places among the data of the rows as kernels see them."""
        ...

    def data(self, columns: np.ndarray, scores: np.ndarray) -> Any:
        """What kernels are given of columns (q, n) and scores (n,) in this order."""
        ...

    def keep(self, data: Any) -> bool:
        """Keep what is known after a kernel has used it; False where it failed, and what it computed is void."""
        ...


class Loss(ABC):
    """A convex loss ``L(y, a) >= 0`` of a target y and a linear score a.

    A custom loss needs three methods, ``value``, ``derivative`` and ``curvature``: all take arrays of targets and
    scores of one shape and work elementwise. All else is optional: it makes the search faster or adds to reports.

    Conventions
    -----------
    y, a : arrays of one shape, (n,) or (C, n) for C outputs; classification losses of one score have y in {-1, 1}
    smoothness  : beta with ``L'' <= beta`` everywhere, or None
    lipschitz   : rho with ``|L'| <= rho`` everywhere, or None
    self_concordance : M with ``|L'''| <= M L''`` everywhere, or None; it bounds how fast the curvature can change

    Examples
    --------
    >>> import numpy as np
    >>> from pauca.losses import Loss
    >>> class LogCosh(Loss):
    ...     def value(self, y, a):
    ...         return np.logaddexp(a - y, y - a) - np.log(2)
    ...     def derivative(self, y, a):
    ...         return np.tanh(a - y)
    ...     def curvature(self, y, a):
    ...         return 1 - np.tanh(a - y) ** 2
    >>> LogCosh().value(np.array([1.0]), np.array([1.0]))
    array([0.])
    """

    classifies: ClassVar[bool] = False
    """Whether targets are classes; then y is coded as -1 and 1."""
    smoothness: float | None = None
    lipschitz: float | None = None
    self_concordance: float | None = None
    joint: ClassVar[bool] = False
    """Whether all scores of a row share one loss; then y holds classes coded as 0, 1, 2, ..., shape (n,)."""
    coupled: ClassVar[bool] = False
    """Whether the loss of a row depends on the scores of other rows, as in a partial likelihood. Then ``tuned`` binds
    the loss to all rows, with and without weight, and it takes scores of shape (..., n) from then on. The derivatives
    are those of the weighted mean over all rows, divided by the weight of the row."""
    shift_invariant: ClassVar[bool] = False
    """Whether a constant added to all scores changes nothing; then there is no intercept."""
    may_diverge: ClassVar[bool] = False
    """Whether the infimum may lie at infinite scores, as with separable classes."""
    undecided: ClassVar[float] = 0.0
    """Of classes: the loss of a row between two of them. Where no row has a larger one, the classes are separable, and
    the infimum is zero."""
    flat: ClassVar[bool] = False
    """Whether the curvature is zero over whole intervals, so that it says little about longer steps."""
    narrow: ClassVar[bool] = False
    """Whether there is curvature in narrow bands about kinks alone, so that next to no row has any."""
    of_residuals: ClassVar[bool] = False
    """Whether this is a loss of ``a - y``; then an offset of the score may be taken from the target instead."""
    has_lines: ClassVar[bool] = False
    """Whether this is a piecewise linear loss, for which ``lines`` is implemented."""
    quadratic: ClassVar[bool] = False
    """Whether this is squared loss, for which there are closed forms."""
    has_estimated: bool = False
    """Whether parameters are unset that ``tuned_at`` estimates together with the model."""
    free_dispersion: ClassVar[bool | None] = None
    """For likelihoods of exponential families, whose curvature is linear in the target: whether the variance has a
    factor that is estimated. None for all others, which have no standard errors in closed form."""
    explains: ClassVar[str] = "loss"
    """What it is that a model explains a share of, in a word."""
    ratio: ClassVar[str] = ""
    """What the exponential of a coefficient is, such as "odds ratio"; empty where it means nothing."""
    link: ClassVar[str | None] = "identity"
    """The inverse link that ``prediction`` or ``probabilities`` applies to scores, for exports to other languages:
    "identity", "exp", "inverse", "log_hazard", "log_loss" or "softmax". It must be set in the same class as that
    method."""

    @abstractmethod
    def value(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        """The loss of each score; not negative."""

    @abstractmethod
    def derivative(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Its derivative in the score."""

    @abstractmethod
    def curvature(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Its second derivative in the score; not negative."""

    def slopes(self, y: np.ndarray, a: np.ndarray) -> Slopes:
        """Derivative and curvature together, for losses where they share work."""
        return Slopes(self.derivative(y, a), self.curvature(y, a))

    def diverges_for(self, y: np.ndarray) -> bool:
        """Whether the infimum may lie at infinite scores for these targets; all of them have weight."""
        return self.may_diverge

    def coupling(self, curvature: np.ndarray) -> np.ndarray | None:
        """For joint losses: u of shape (C, n) with the Hessian ``diag(curvature) - u u'`` of each row."""
        return None

    def row_coupling(self, a: np.ndarray, columns: np.ndarray) -> np.ndarray | None:
        """For coupled rows: R with the Hessian ``Z diag(v curvature) Z' - R R'`` of the mean loss.

        Z has the columns, shape (..., n); R has shape (..., m). Scores and columns are broadcast against each other.
        """
        return None

    def coupled_image(self, a: np.ndarray, columns: np.ndarray) -> np.ndarray | None:
        """For coupled rows: P of shape (..., n) with ``Z diag(v curvature) X' - Z P'``, the Hessian's part for columns.

        X has the columns, and Z is any others. It takes as long as a few gradients for every column of X, and no time
        for those of Z.
        """
        return None

    def concordance_at(self, a: np.ndarray) -> float | None:
        """M such that from scores ``a`` the curvature falls no faster than by ``e^(-M |change|)``; None if unknown."""
        return self.self_concordance

    def likely_concordance_at(self, a: np.ndarray) -> float | None:
        """About the same, for estimates: where rows are coupled, that of single rows will do."""
        return self.concordance_at(a)

    def held_out_losses(
        self, y: np.ndarray, weights: np.ndarray, test: np.ndarray
    ) -> Callable[[np.ndarray], np.ndarray]:
        """For coupled rows, of a loss bound to the rows of a fit: takes scores (R, n) to losses of ``test``, (R, t).

        ``weights`` are those of all rows, and ``test`` the indices of those held out.
        """
        raise NotImplementedError(f"{type(self).__name__} has no losses of held-out rows.")

    def compiled_rows(self) -> CompiledRows | None:
        """For coupled rows, of a loss bound to the rows of a fit: what kernels need of them; None without kernels."""
        return None

    def broad_curvature(self, y: np.ndarray, a: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """A curvature for steps as large as those of adding a feature, not only for infinitesimal ones."""
        return self.curvature(y, a)

    def for_classes(self, n_classes: int) -> Loss:
        """The loss for ``n_classes`` classes: by default this one, one class against the rest."""
        return self

    def typical_curvature(self, y: np.ndarray, a: np.ndarray, weights: np.ndarray) -> float:
        """The mean curvature over the scores, one number."""
        return float(np.mean(self.broad_curvature(y, a, weights) @ weights))

    def conjugate(self, y: np.ndarray, t: np.ndarray) -> np.ndarray:
        """``sup_a t a - L(y, a)``, infinite outside its domain."""
        raise NotImplementedError(f"{type(self).__name__} has no conjugate; implement the method conjugate(y, t).")

    def held_out(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        """The loss by which models are scored on held-out rows."""
        return self.value(y, a)

    def mislabelled(self, y: np.ndarray, a: np.ndarray) -> np.ndarray | None:
        """The loss by which held-out rows would be scored if their labels were others; None where that says nothing."""
        return None

    def minus_twice_log_likelihood(self, losses: np.ndarray, n_rows: int) -> float:
        """``-2 log L`` up to a constant, from the mean losses of all outputs; for losses that are a likelihood."""
        raise ValueError(
            f"{type(self).__name__} is not a likelihood, so there is no information criterion for it; leave out "
            "criterion to choose by cross-validation."
        )

    @property
    def has_likelihood(self) -> bool:
        """Whether there are information criteria for it."""
        return type(self).minus_twice_log_likelihood is not Loss.minus_twice_log_likelihood

    def n_parameters(self, n_coefficients: int, n_outputs: int, *, center: bool) -> int:
        """How many parameters of a model information criteria count; ``n_coefficients`` are those of each output.

        ``center`` says whether there are intercepts.
        """
        return n_outputs * (n_coefficients + int(center))

    def check_target(self, y: np.ndarray) -> None:  # noqa: B027 - any y is valid by default
        """Raise ``ValueError`` if the loss is not defined for some y."""

    def prediction(self, a: np.ndarray) -> np.ndarray:
        """The predicted target of a score: the mean, median or quantile that is modelled."""
        return a

    def constant(self, y: np.ndarray, weights: np.ndarray) -> float:
        """A constant score near the best one, to start from; infinite if that is, as for a class without weight.

        That is 0, unless a Newton step from there does not bring the mean slope near zero: a loss that is all but
        linear far from its target has no curvature to step by. A loss that no constant changes has no slope at all.
        """
        if self.shift_invariant:
            return 0.0

        def mean(found: Any) -> float:
            # What has another shape is refused elsewhere, with the name of the method.
            return float(np.ravel(weights) @ np.ravel(found)) if np.shape(found) == np.shape(y) else np.nan

        def slope(score: float) -> float:
            return mean(self.derivative(y, np.full(np.shape(y), score)))

        at_zero, bend = slope(0.0), mean(self.curvature(y, np.zeros(np.shape(y))))
        step = -at_zero / bend if bend > 0 else np.inf
        if not np.isfinite(at_zero) or (np.isfinite(step) and abs(slope(step)) <= NEAR_ZERO * abs(at_zero)):
            return 0.0
        return _root(slope, upwards=at_zero < 0)

    def constants(self, y: np.ndarray, weights: np.ndarray, n_outputs: int) -> np.ndarray:
        """Constant scores for all outputs, shape (C,)."""
        return np.array([self.constant(output, weights) for output in y])

    def tuned(self, y: np.ndarray, weights: np.ndarray) -> Loss:
        """The loss with unset parameters set from the targets of all outputs, shape (C, n)."""
        return self

    def tuned_at(self, y: np.ndarray, a: np.ndarray, weights: np.ndarray) -> Loss:
        """The loss with unset parameters set from a fitted model with scores ``a``, shape (C, n).

        A loss that has such parameters is fitted again with them, until the two agree.
        """
        return self.tuned(y, weights)

    def smoothed(self, y: np.ndarray, weights: np.ndarray, *, center: bool) -> Loss:
        """A smooth loss to minimise instead of this one, for targets of shape (C, n); a smooth loss itself."""
        return self

    def envelope(self, beta: float) -> Loss:
        """A loss of curvature at most ``beta`` that lies at most ``lipschitz^2 / (2 beta)`` below this one.

        A smooth loss returns itself.
        """
        return self

    def lines(self, y: np.ndarray) -> Lines | None:
        """The two lines of every row of a piecewise linear loss; None for any other loss."""
        return None

    def easier(self) -> Loss | None:
        """A smoother loss whose minimiser is a good warm start for this one; None if there is none."""
        return None

    def link_of(self, method: str) -> str | None:
        """The link of ``prediction`` or ``probabilities``; None if the class of that method does not set it."""
        # A class that overrides the method does not inherit the link of another formula.
        attributes: Mapping[str, Any] = next((vars(one) for one in type(self).__mro__ if method in vars(one)), {})
        return attributes.get("link")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *sorted(vars(self).items())))

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({options})"


def _root(slope: Callable[[float], float], *, upwards: bool) -> float:
    """Where a rising function is zero, on one side of 0; 0 if that is beyond all but the largest numbers."""
    near, far = 0.0, 1.0 if upwards else -1.0
    while (slope(far) < 0) is upwards:
        near, far = far, 2 * far
        if abs(far) > LARGEST_SCORE:
            return 0.0
    for _ in range(BISECTIONS):
        middle = (near + far) / 2
        near, far = (middle, far) if (slope(middle) < 0) is upwards else (near, middle)
    return (near + far) / 2
