"""What units that a search did not see would have brought to the models it visited, to second order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from pauca.subsets.base import highest_scores
from pauca.subsets.local_quadratic import LocalQuadratic, feasible_slope
from pauca.subsets.smooth import SmoothSubset


@dataclass(frozen=True)
class VisitedModel:
    """A model that a search visited."""

    support: frozenset[int]
    added: int | None
    """The unit that was added next; None if none was."""
    settled: bool
    """Whether this is the best model of its size."""
    ran_out: bool = False
    """Whether the search ended here because nothing was left to choose."""


@dataclass(frozen=True, eq=False)
class Unseen:
    """What is known of all columns at a model of a search that saw only some of them."""

    slope: np.ndarray
    """Minus the gradient in standardised coordinates, shape (C, d)."""
    cross: Mapping[int, np.ndarray]
    """Products of the model's columns with all, shape (d,) each."""
    spread: np.ndarray
    """Spreads of all columns."""
    units: np.ndarray
    """Mask of the units that the search did not see and that may be used, shape (U,)."""
    calibration: np.ndarray
    """What each unit gains over what the quadratic predicts, by a sample, shape (U,)."""

    def each(self, features: np.ndarray) -> list[np.ndarray]:
        """The products of each of some columns with all."""
        return [self.cross[int(j)] for j in features]


def likely_additions(subset: SmoothSubset, count: int) -> list[int]:
    """The units that are likely to gain most when they are added, the likeliest first."""
    gains = subset.cache.calibration * subset.cache.quadratic(subset.fit).refit_gains
    addable = subset.usable & subset.limits.addable(subset.support, len(subset.usable))
    return highest_scores(np.where(addable, subset.limits.per_price(gains), -np.inf), count)


def centred_model(subset: SmoothSubset) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns of a model, its coefficients in the units of X, shape (C, q), and its scores at the means, shape (C,)."""
    objective, fit = subset.objective, subset.fit
    features, free = objective.units.of(fit.units), objective.free
    constant = fit.coef[:, 0] if free else np.zeros(objective.n_outputs)
    return features, fit.coef[:, free:] / objective.design.spread[features], constant


def rivals(
    subset: SmoothSubset, visited: VisitedModel, unseen: Unseen, *, rule: str, slack: float, swaps: bool
) -> Iterator[tuple[int, float]]:
    """Units outside that the search would have looked at, and how far their estimates are above what was chosen.

    As in memory, units are looked at whose estimated gain is above the best gain when it is multiplied by ``slack``.
    """
    limits, n_units = subset.limits, len(subset.usable)
    own, refit = _gains(subset, unseen)
    if visited.added is not None or visited.ran_out:
        scores = _scores(subset, unseen, rule, slack * own, slack * refit)
        beat = subset.negligible
        if visited.added is not None:
            beat = max(beat, _gain_of(subset, visited.added, unseen, rule))
            beat = float(limits.per_price(np.array([beat]), [visited.added])[0])
        open_ = unseen.units & limits.addable(subset.support, n_units)
        yield from _above(np.where(open_, limits.per_price(scores), 0.0), beat)
    if swaps and visited.settled and subset.support:
        cheapest = float(subset.cache.fits.removal_costs(subset.fit).min())
        open_ = unseen.units & limits.startable(n_units)
        yield from _above(np.where(open_, slack * refit, 0.0), max(cheapest, subset.negligible))


def _above(scores: np.ndarray, beat: float) -> Iterator[tuple[int, float]]:
    for unit in np.flatnonzero(scores >= beat):
        yield int(unit), float(scores[unit] / beat)


def _scores(subset: SmoothSubset, unseen: Unseen, rule: str, own: np.ndarray, refit: np.ndarray) -> np.ndarray:
    """Scores of all units by a rule: estimates, or the rule's own."""
    if rule in {"objective", "refit"}:
        return own if rule == "objective" else refit
    scale = unseen.spread if rule == "gradient" else np.ones_like(unseen.spread)
    slope = feasible_slope(unseen.slope, subset.objective.bounds) * scale
    return np.asarray(subset.objective.units.totals(np.einsum("cj,cj->j", slope, slope)))


def _gain_of(subset: SmoothSubset, unit: int, unseen: Unseen, rule: str) -> float:
    """What the unit that was added has gained, by the rule that chose it."""
    if rule == "objective":
        return subset.gain_alone(unit)
    if rule == "refit":
        return subset.decrease(unit)
    return float(_scores(subset, unseen, rule, np.zeros(0), np.zeros(0))[unit])


def _gains(subset: SmoothSubset, unseen: Unseen) -> tuple[np.ndarray, np.ndarray]:
    """Estimated gains of all units, alone and when the chosen ones move with them, shape (U,) each."""
    cache, objective = subset.cache, subset.objective
    quadratic = LocalQuadratic(cache.fits, subset.fit, cache.blocks, unseen, cache.columns)
    if objective.units.single:
        quadratic.slope = unseen.slope
        return unseen.calibration * quadratic.own_gains(), unseen.calibration * quadratic.refit_gains
    # Of groups outside nothing is known but their slopes: their columns are taken for uncorrelated.
    curvature = quadratic.mean_curvature[:, None] + objective.penalty
    slope = feasible_slope(unseen.slope, objective.bounds)
    gains = objective.units.totals(0.5 * np.sum(slope * slope / curvature, axis=0))
    return gains, gains
