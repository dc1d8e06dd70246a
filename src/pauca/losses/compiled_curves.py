"""Losses as a form and a number, and rows with them, for compiled code that cannot call Python objects."""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from pauca.compiled import Kernels, plain
from pauca.losses.base import CompiledRows, Loss
from pauca.losses.classification import LogLoss, SquaredHinge
from pauca.losses.log_link import Gamma, GammaInverseLink, NegativeBinomial, Poisson, Tweedie
from pauca.losses.regression import Huber

# Forms; what their number is stands beside them.
LOGISTIC = 0
POISSON = 1
GAMMA = 2
GAMMA_INVERSE = 3
TWEEDIE = 4  # the power
NEGATIVE_BINOMIAL = 5  # the dispersion
HUBER = 6  # the threshold
SQUARED_HINGE = 7

FORMS: dict[type[Loss], tuple[int, str]] = {
    LogLoss: (LOGISTIC, ""),
    Poisson: (POISSON, ""),
    Gamma: (GAMMA, ""),
    GammaInverseLink: (GAMMA_INVERSE, ""),
    Tweedie: (TWEEDIE, "power"),
    NegativeBinomial: (NEGATIVE_BINOMIAL, "dispersion"),
    Huber: (HUBER, "threshold"),
    SquaredHinge: (SQUARED_HINGE, ""),
}
"""By class, not by subclass, which may have another value: the form, and the name of its number."""


class CompiledCurve(NamedTuple):
    """A form and its number, which is 0 where it has none."""

    form: int
    number: float = 0.0


def compiled_curve(loss: Loss) -> CompiledCurve | None:
    """The form of a loss for compiled code; None if there is none, or its number is not set yet.

    Examples
    --------
    >>> from pauca.losses import Tweedie
    >>> compiled_curve(Tweedie(1.3))
    CompiledCurve(form=4, number=1.3)
    """
    form, name = FORMS.get(type(loss), (-1, ""))
    number = getattr(loss, name) if name else 0.0
    return None if form < 0 or number is None else CompiledCurve(form, float(number))


class GivenRows(NamedTuple):
    """Kernels, and what they are given of rows."""

    kernels: ModuleType
    data: Any
    coupled: CompiledRows | None = None
    """Rows that are coupled, and have an order of their own."""

    def in_order(self, columns: np.ndarray) -> np.ndarray:
        """Columns as kernels see them."""
        return plain(columns) if self.coupled is None else columns.take(self.coupled.order, axis=-1)

    def of_data(self, scores: np.ndarray) -> np.ndarray:
        """Scores that kernels have found in the order of the data."""
        if self.coupled is None:
            return scores
        found = np.empty_like(scores)
        found[..., self.coupled.order] = scores
        return found

    def kept(self) -> bool:
        """Whether the answers of a kernel are good."""
        return self.coupled is None or self.coupled.keep(self.data)


class LossKernels:
    """Kernels of a module for losses of single rows and, compiled apart from these, for losses that couple rows."""

    def __init__(self, name: str, longest: str) -> None:
        self.single = Kernels(name, longest, "Data(")
        self.coupled = Kernels(name, longest, "Ordered(")

    def given(
        self,
        loss: Loss,
        y: np.ndarray,
        weights: np.ndarray,
        columns: np.ndarray,
        scores: np.ndarray,
        instead_of: int,
        calls: int = 1,
    ) -> GivenRows | None:
        """What kernels are given of rows; None where they are not used now, or there are none for the loss.

        Targets, ``weights`` and ``scores`` have shape (n,), ``columns`` (q, n). Kernels are used ``instead_of`` so many
        numbers, but for coupled rows, whose losses count them.
        """
        if loss.coupled:
            rows = loss.compiled_rows()
            kernels = None if rows is None else self.coupled.module
            if rows is None or kernels is None:
                return None
            data = rows.data(columns.take(rows.order, axis=1), scores.take(rows.order))
            return GivenRows(kernels, data, rows)
        curve = compiled_curve(loss)
        kernels = None if curve is None else self.single.instead_of(instead_of, calls)
        if curve is None or kernels is None:
            return None
        return GivenRows(kernels, kernels.Data(*curve, *map(plain, (y, weights, columns, scores))))
