"""Figures of textbooks for every size of a path: adjusted R^2, Mallows' Cp, AIC and BIC."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pauca.losses import Loss
from pauca.model import Model
from pauca.statistics.criteria import CRITERIA, ModelCounts, adjusted_r2, mallows_cp

Statistics = Mapping[int, dict[str, float]]
"""Figures by size and name."""


@dataclass(frozen=True, eq=False)
class FitStatistics(Mapping[int, dict[str, float]]):
    """The figures that there are for a likelihood, computed when they are first needed.

    The first two are for squared error. Coefficients count in full, also where a ridge shrinks them. Cp needs the least
    squares fit of all columns. There are none for several outputs that are not the classes of one target.
    """

    models: Mapping[int, Model]
    loss: Loss
    ridge: float
    n_rows: int
    """Rows that have weight."""
    n_columns: int
    """Columns that vary, of which the largest possible model holds all."""
    n_outputs: int
    center: bool
    """Whether there is an intercept."""
    full: Callable[[], tuple[float, int] | None] | None = None
    """Loss and rank of the least squares fit of all columns, for Cp; None where there is none, or it takes too long.

    It may answer None: the data of the fit are the user's own arrays, and may have changed since."""

    def __getitem__(self, size: int) -> dict[str, float]:
        return self._figures[size]

    def __iter__(self) -> Iterator[int]:
        return iter(self._figures)

    def __len__(self) -> int:
        return len(self._figures)

    def __reduce__(self) -> tuple[Any, ...]:
        # The figures travel, without the loss, which may know the rows of the fit.
        return dict, (self._figures,)

    @cached_property
    def _figures(self) -> dict[int, dict[str, float]]:
        if not self.loss.has_likelihood or (self.n_outputs > 1 and not self.loss.joint):
            return {}
        full = self._full_fit() if self.loss.quadratic and not self.ridge else None
        return {size: self._of(model, full) for size, model in self.models.items()}

    def _full_fit(self) -> tuple[float, int] | None:
        """Loss and number of coefficients of the model of all columns: the path's, or else one that is fitted now."""
        whole = next((model for model in self.models.values() if len(model.support) == self.n_columns), None)
        if whole is not None:
            return whole.loss, self.n_columns
        return None if self.full is None else self.full()

    def _of(self, model: Model, full: tuple[float, int] | None) -> dict[str, float]:
        """The figures of a model; ``full`` is loss and size of that of all columns, where there is one."""
        q, n_rows, null, figures = int(np.size(model.coef)), self.n_rows, self.models[0].loss, {}
        if self.loss.quadratic:
            r2 = 1.0 - model.loss / null if null > 0 else 0.0
            figures["adjusted_r2"] = adjusted_r2(r2, n_rows, q, center=self.center)
            if full is not None:
                figures["cp"] = mallows_cp(model.loss, full[0], n_rows, q, full[1], center=self.center)
        fit = self.loss.minus_twice_log_likelihood(np.array([model.loss]), n_rows)
        n_parameters = self.loss.n_parameters(len(model.support), self.n_outputs, center=self.center)
        counts = ModelCounts(n_parameters, len(model.support), n_rows, self.n_columns)
        return figures | {name: float(CRITERIA[name](fit, counts)) for name in ("aic", "bic")}
