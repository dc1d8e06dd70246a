"""Figures of textbooks for every size of a path: adjusted R^2, Mallows' Cp, AIC and BIC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pauca.inference.criteria import adjusted_r2, akaike, mallows_cp, schwarz
from pauca.losses import Loss
from pauca.model import Model

Statistics = dict[int, dict[str, float]]
"""Figures by size and name."""


@dataclass(frozen=True)
class SampleSize:
    """What the figures count."""

    n_rows: int
    """Rows that have weight."""
    n_columns: int
    """Columns that vary, of which the largest possible model holds all."""
    n_outputs: int
    center: bool
    """Whether there is an intercept."""


def fit_statistics(models: Mapping[int, Model], loss: Loss, sample: SampleSize, *, ridge: float) -> Statistics:
    """The figures that there are for a loss: the first two for squared error, the others for likelihoods.

    Coefficients count in full, also where a ridge shrinks them. Cp needs the least squares fit of all columns on the
    path. There are none for several outputs or classes.
    """
    if loss.free_dispersion is None or sample.n_outputs > 1:
        return {}
    null, found = models[0].loss, {}
    full = next((model for model in models.values() if len(model.support) == sample.n_columns), None)
    for size, model in models.items():
        q = int(np.size(model.coef))
        figures = {}
        if loss.quadratic:
            r2 = 1.0 - model.loss / null if null > 0 else 0.0
            figures["adjusted_r2"] = adjusted_r2(r2, sample.n_rows, q, center=sample.center)
            if full is not None and not ridge:
                figures["cp"] = mallows_cp(
                    model.loss, full.loss, sample.n_rows, q, sample.n_columns, center=sample.center
                )
        fit = loss.minus_twice_log_likelihood(np.array([model.loss]), sample.n_rows)
        parameters = q + int(sample.center)
        figures |= {"aic": akaike(fit, parameters), "bic": schwarz(fit, parameters, sample.n_rows)}
        found[size] = figures
    return found
