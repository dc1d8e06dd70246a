"""Constants in theorems: their checks, those of a loss (largest curvature and slope), and rates that follow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from pauca.checks import ParameterChecks
from pauca.losses import CLASSIFICATION_LOSSES, REGRESSION_LOSSES, Loss

check = ParameterChecks("this function")

# A count that is a whole number but for rounding is that number.
COUNT_ROUNDING = 1e-9

# Products of powers of numbers in this range do not overflow.
SMALLEST, LARGEST = 1e-30, 1e30


def number(name: str, value: Any, *, above: float = 0.0) -> float:
    """A number above a limit, mostly zero, and neither tiny nor huge."""
    found = check.number(name, value, positive=True)
    if not max(above, SMALLEST) <= found <= LARGEST or found == above:
        lowest = f"({above:g}" if above else f"[{SMALLEST:g}"
        raise ValueError(check.message(name, f"a float in the range {lowest}, {LARGEST:g}]", value))
    return found


def not_negative(name: str, value: Any) -> float:
    """A number that is not negative and not huge."""
    return check.number(name, value, below=LARGEST)


def share(name: str, value: Any) -> float:
    """A number strictly between 0 and 1."""
    return check.number(name, value, positive=True, below=1.0)


def count(name: str, value: Any, least: int = 1) -> int:
    """An integer of at least ``least``."""
    return check.count(name, value, least=least)


def at_least(value: float) -> int:
    """The smallest integer that is not below a number."""
    nearest = round(value)
    return nearest if abs(value - nearest) <= COUNT_ROUNDING * max(nearest, 1) else math.ceil(value)


def at_most(value: float) -> int:
    """The largest integer that is not above a number."""
    nearest = round(value)
    return nearest if abs(value - nearest) <= COUNT_ROUNDING * max(nearest, 1) else math.floor(value)


@dataclass(frozen=True)
class Constants:
    """A loss given by its constants, in place of its name.

    Parameters
    ----------
    smoothness : float or None, default=None
        The largest second derivative of the loss in the score; None if there is none.
    lipschitz : float or None, default=None
        The largest absolute first derivative; None if there is none.

    Examples
    --------
    >>> from pauca.theory import Constants, forward_features
    >>> forward_features(Constants(smoothness=0.25), norm=10.0, accuracy=0.5)
    100
    >>> forward_features("log_loss", norm=10.0, accuracy=0.5)
    100
    """

    smoothness: float | None = None
    lipschitz: float | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None:
                number(name, value)

    @classmethod
    def of(cls, loss: Any) -> Constants:
        """The constants of a loss, given by its name or as an object."""
        if isinstance(loss, cls):
            return loss
        if isinstance(loss, str) and loss in (named := {**REGRESSION_LOSSES, **CLASSIFICATION_LOSSES}):
            loss = named[loss]()
        if not isinstance(loss, Loss):
            names = ", ".join(repr(name) for name in sorted({**REGRESSION_LOSSES, **CLASSIFICATION_LOSSES}))
            raise ValueError(f"loss must be one of {names}, an object of pauca.losses or Constants; got {loss!r}.")
        known = cls(loss.smoothness, loss.lipschitz)
        if known == cls():
            raise ValueError(
                f"{loss!r} has no bound on its curvature or its slope that is known, so these theorems do not apply "
                "to it. If a loss of yours has one, set its attribute 'smoothness' (of the curvature) or "
                "'lipschitz' (of the slope), or give Constants(smoothness=..., lipschitz=...) in its place."
            )
        return known


def smoothness_of(loss: Any, scale: float, ridge: float) -> float:
    """The largest curvature of Q along one coordinate: ``smoothness * scale + ridge``."""
    known = Constants.of(loss)
    if known.smoothness is None:
        raise ValueError(f"This theorem is for losses of bounded curvature, and {loss!r} has a kink.")
    return known.smoothness * number("scale", scale) + not_negative("ridge", ridge)


def check_curvature(curvature: float, smoothness: float) -> float:
    """The smallest curvature along sparse directions, which no coordinate's own can be below."""
    if number("curvature", curvature) > smoothness * (1.0 + COUNT_ROUNDING):
        raise ValueError(
            f"curvature is the smallest along sparse directions and cannot be above the largest along a coordinate, "
            f"{smoothness:g}; got {curvature!r}."
        )
    return float(curvature)


def steps_at_rate(factor: float, loss: Any, norm: float, accuracy: float, scale: float, ridge: float) -> float:
    """Steps after which the excess is ``accuracy``, for methods that need ``factor smoothness norm^2 / accuracy``.

    A loss with a kink is smoothed to curvature ``lipschitz^2 / accuracy``, which costs half of the accuracy, and the
    other half is left for the steps. Where both forms apply it is the smaller number.
    """
    known, accuracy, square = Constants.of(loss), number("accuracy", accuracy), number("norm", norm) ** 2
    scale, ridge = number("scale", scale), not_negative("ridge", ridge)
    steps = math.inf
    if known.smoothness is not None:
        steps = factor * (known.smoothness * scale + ridge) * square / accuracy
    if known.lipschitz is not None:
        smoothed = known.lipschitz**2 * scale / accuracy + ridge
        steps = min(steps, 2.0 * factor * smoothed * square / accuracy)
    return steps


def accuracy_at_rate(factor: float, loss: Any, norm: float, steps: int, scale: float, ridge: float) -> float:
    """The inverse of ``steps_at_rate``: the excess that is left after so many steps."""
    known, square = Constants.of(loss), number("norm", norm) ** 2
    scale, ridge = number("scale", scale), not_negative("ridge", ridge)
    accuracy = math.inf
    if known.smoothness is not None:
        accuracy = factor * (known.smoothness * scale + ridge) * square / steps
    if known.lipschitz is not None:
        # steps accuracy^2 = 2 factor square (ridge accuracy + lipschitz^2 scale)
        half, rest = factor * square * ridge / steps, 2.0 * factor * square * known.lipschitz**2 * scale / steps
        accuracy = min(accuracy, half + math.sqrt(half * half + rest))
    return accuracy
