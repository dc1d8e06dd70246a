"""What a loss is: a convex function of one score, and what it knows of itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np


class Slopes(NamedTuple):
    """First and second derivative of a loss at given scores, elementwise."""

    derivative: np.ndarray
    curvature: np.ndarray


class Loss(ABC):
    """A convex loss ``L(y, a) >= 0`` of a target y and a linear score a.

    A loss of your own needs three methods, ``value``, ``derivative`` and ``curvature``: all take arrays of targets and
    scores of one shape and work elementwise. What else is known of it makes the search faster or its reports richer,
    and may be left out.

    Conventions
    -----------
    y, a : arrays of one shape, (n,) or (C, n) for C outputs; classification losses of one score have y in {-1, 1}
    smoothness  : beta with ``L'' <= beta`` everywhere, or None
    lipschitz   : rho with ``|L'| <= rho`` everywhere, or None
    steepness   : M with ``|L'''| <= M L''`` everywhere, or None; it bounds how fast the curvature can change

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
    steepness: float | None = None
    joint: ClassVar[bool] = False
    """Whether all scores of a row share one loss; then y holds classes coded as 0, 1, 2, ..., shape (n,)."""
    may_diverge: ClassVar[bool] = False
    """Whether the infimum may lie at infinite scores, as with classes that can be separated."""
    flat: ClassVar[bool] = False
    """Whether the curvature is zero over whole intervals, so that it says little of longer steps."""
    quadratic: ClassVar[bool] = False
    """Whether this is squared loss, for which there are closed forms."""
    link: ClassVar[str | None] = "identity"
    """What ``prediction`` makes of a score, or ``probabilities`` of scores, for those who write it in other languages:
    "identity", "exp", "log_loss" or "softmax". It counts where it stands in the same class as that method."""

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

    def coupling(self, curvature: np.ndarray) -> np.ndarray | None:
        """Where the scores of a row share a loss: u of shape (C, n) with Hessian ``diag(curvature) - u u'`` per row."""
        return None

    def broad_curvature(self, y: np.ndarray, a: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """A curvature that serves for steps of the size a further feature makes, not for tiny ones alone."""
        return self.curvature(y, a)

    def for_classes(self, n_classes: int) -> Loss:
        """The loss for so many classes: by default each class is told from all others by this one."""
        return self

    def typical_curvature(self, y: np.ndarray, a: np.ndarray, weights: np.ndarray) -> float:
        """One number for the size of the curvature over the range of scores that matter."""
        return float(np.mean(self.broad_curvature(y, a, weights) @ weights))

    def conjugate(self, y: np.ndarray, t: np.ndarray) -> np.ndarray:
        """``sup_a t a - L(y, a)``, infinite outside its domain."""
        raise NotImplementedError(f"{type(self).__name__} does not say what its conjugate is.")

    def held_out(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        """The loss by which models are scored on rows they have not seen."""
        return self.value(y, a)

    def minus_twice_log_likelihood(self, losses: np.ndarray, n_rows: int) -> float:
        """``-2 log L`` up to a constant, from the mean losses of all outputs; for losses that are a likelihood."""
        raise ValueError(
            f"{type(self).__name__} is not a likelihood, so there is no information criterion for it; leave out "
            "criterion to choose by cross-validation."
        )

    def check_target(self, y: np.ndarray) -> None:  # noqa: B027 - every y will do unless a loss says otherwise
        """Raise ``ValueError`` with a sentence if the loss has no meaning for some y."""

    def prediction(self, a: np.ndarray) -> np.ndarray:
        """The target a score stands for: the mean, median or quantile that is modelled."""
        return a

    def constant(self, y: np.ndarray, weights: np.ndarray) -> float:
        """A constant score to start from, near the best one; infinite if that is, as for a class without weight."""
        return 0.0

    def constants(self, y: np.ndarray, weights: np.ndarray, n_outputs: int) -> np.ndarray:
        """Constant scores for all outputs, shape (C,)."""
        return np.array([self.constant(output, weights) for output in y])

    def tuned(self, y: np.ndarray, weights: np.ndarray) -> Loss:
        """The loss with whatever it leaves open set from the targets of all outputs, shape (C, n)."""
        return self

    def smoothed(self, y: np.ndarray, weights: np.ndarray, *, center: bool) -> Loss:
        """A smooth loss to minimise in this one's place, for targets of shape (C, n); smooth losses are their own."""
        return self

    def envelope(self, beta: float) -> Loss:
        """A loss of curvature at most ``beta`` that lies at most ``lipschitz^2 / (2 beta)`` below this one.

        Smooth losses are their own.
        """
        return self

    def easier(self) -> Loss | None:
        """A smoother loss whose minimiser is a good start for this one, if refits may need it."""
        return None

    def link_of(self, verb: str) -> str | None:
        """The link of ``prediction`` or ``probabilities``; None where it is not stated beside that method."""
        # A class that says anew what a score stands for does not inherit what was said of another formula.
        said: Mapping[str, Any] = next((vars(one) for one in type(self).__mro__ if verb in vars(one)), {})
        return said.get("link")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *sorted(vars(self).items())))

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({options})"
