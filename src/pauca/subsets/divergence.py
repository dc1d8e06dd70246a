"""Whether the coefficients of a fit grow without end, but for the small ridge that keeps them."""

from __future__ import annotations

import numpy as np

from pauca.objectives import SmoothObjective
from pauca.solvers.factorisation import solve_or_nearest
from pauca.subsets.fit_cache import FitCache
from pauca.subsets.fit_records import Fit

# Where the coefficients, without the small ridge that is always there, would move a score by more than this, the
# optimum is at infinity.
DIVERGING_STEP = 0.1

# Scores of coupled rows that are further apart than this leave nothing of e^a at one end: they diverge.
LARGEST_SCORE_RANGE = 500.0

# Standardised entries are taken to be below this, so that most scores need not be computed for that.
LARGEST_ENTRY = 1e3


def diverged(fits: FitCache, fit: Fit) -> bool:
    """Whether the coefficients would diverge without the small ridge that is there even where ``ridge=0``."""
    objective = fits.objective
    if objective.ridge or not objective.may_diverge or not fit.units:
        return False
    if objective.smooth.joint and _at_a_bound(objective, fit):
        # Coefficients that all classes share have curvature only as long as none is at a bound.
        return False
    if objective.smooth.coupled and np.ptp(fits.scores(fit)) > LARGEST_SCORE_RANGE:
        return True
    step = _step_without_ridge(objective, fit, fits.exact_hessian(fit))
    if np.abs(step).max() < DIVERGING_STEP / LARGEST_ENTRY:
        return False
    return fits.largest_change(fit, step) > DIVERGING_STEP


def _at_a_bound(objective: SmoothObjective, fit: Fit) -> bool:
    if objective.bounds is None:
        return False
    lower, upper = (bound[objective.units.of(fit.units)] for bound in objective.bounds)
    coef = fit.coef[:, objective.free :]
    return bool(np.any((coef <= lower) | (coef >= upper)))


def _step_without_ridge(objective: SmoothObjective, fit: Fit, hessian: np.ndarray) -> np.ndarray:
    """How the coefficients would move if there were next to no ridge, shape (C, q)."""
    penalty = np.concatenate([np.zeros(objective.free), objective.penalty[objective.units.of(fit.units)]])
    blocks = fit.coef.reshape(len(hessian), -1)
    ridge = np.tile(penalty, blocks.shape[1] // len(penalty))
    # A thousandth of the ridge stays, so that the Hessian remains positive definite.
    loose = hessian - (1 - 1e-3) * np.diag(ridge)
    step: np.ndarray = solve_or_nearest(loose, (ridge * blocks)[:, :, None]).reshape(fit.coef.shape)
    return step
