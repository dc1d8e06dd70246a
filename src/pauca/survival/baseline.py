"""Breslow's (1974) estimate of the cumulative hazard that belongs to a score of zero, and survival curves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pauca.survival.risk_sets import RiskSets


@dataclass(frozen=True, eq=False)
class Baseline:
    """A step function for every stratum.

    Conventions
    -----------
    times, hazard, stratum : shape (G,), sorted by stratum and time; hazard is cumulative within its stratum
    """

    times: np.ndarray
    hazard: np.ndarray
    stratum: np.ndarray

    @classmethod
    def of(cls, y: np.ndarray, weights: np.ndarray, scores: np.ndarray) -> Baseline:
        """Events over the sum of hazards at risk, added up over time."""
        sets = RiskSets(y, weights)
        top = float(scores.max())
        steps = sets.with_event(weights) / (sets.at_risk(weights * np.exp(scores - top)) * np.exp(top))
        hazard = np.concatenate(
            [np.cumsum(steps[low:high]) for low, high in zip(sets.bounds[:-1], sets.bounds[1:], strict=True)]
        )
        return cls(sets.times, hazard, sets.strata)

    def at(self, times: np.ndarray, stratum: int) -> np.ndarray:
        """The cumulative hazard at some times, shape (len(times),)."""
        here = self.stratum == stratum
        steps = np.concatenate([[0.0], self.hazard[here]])
        return np.asarray(steps[np.searchsorted(self.times[here], times, side="right")])


def kaplan_meier(y: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Times and the share that is free of the event after each (Kaplan and Meier 1958), whatever the strata."""
    pooled = y.copy()
    pooled["stratum"] = 0
    sets = RiskSets(pooled, weights)
    share = 1.0 - sets.with_event(weights) / sets.at_risk(weights)
    return sets.times, np.cumprod(np.clip(share, 0.0, 1.0))
