"""The share of rows that is free of the event over time, and how certain it is (Kaplan and Meier 1958)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pauca.survival.risk_sets import RiskSets

# Where all who are at risk have their event, rounding leaves no more than this share of them.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class KaplanMeier:
    """The estimate for rows of any strata.

    Attributes
    ----------
    times : ndarray of shape (n_times,)
        Those at which events happen, ascending.
    left : ndarray of shape (n_times,)
        The share of the rows at risk that have no event then.
    free : ndarray of shape (n_times,)
        The share of all rows that is free of the event after each time.
    n_effective : ndarray of shape (n_times,)
        How many rows of equal weight would say as much as those at risk.
    """

    times: np.ndarray
    left: np.ndarray
    free: np.ndarray
    n_effective: np.ndarray

    @classmethod
    def of(cls, y: np.ndarray, weights: np.ndarray) -> KaplanMeier:
        """The estimate of rows of which at least one has an event."""
        pooled = y.copy()
        pooled["stratum"] = 0
        sets = RiskSets(pooled, weights)
        at_risk = sets.at_risk(weights)
        left = 1.0 - sets.with_event(weights) / at_risk
        left[left < ROUNDING] = 0.0
        return cls(sets.times, left, np.cumprod(left), at_risk**2 / sets.at_risk(weights**2))

    def free_at(self, times: np.ndarray) -> np.ndarray:
        """The share that is free of the event at some times."""
        return np.asarray(np.concatenate([[1.0], self.free])[np.searchsorted(self.times, times, side="right")])
