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
    step = _step_without_ridge(fit, fits.exact_hessian(fit), _small_ridge(objective, fit))
    return fits.largest_change(fit, step) > DIVERGING_STEP


def _at_a_bound(objective: SmoothObjective, fit: Fit) -> bool:
    if objective.bounds is None:
        return False
    lower, upper = (bound[objective.units.of(fit.units)] for bound in objective.bounds)
    coef = fit.coef[:, objective.free :]
    return bool(np.any((coef <= lower) | (coef >= upper)))


def _small_ridge(objective: SmoothObjective, fit: Fit) -> np.ndarray:
    """The ridge of every coefficient, of one output after the other where they share a block of the Hessian."""
    penalty = np.zeros(fit.coef.shape[1])
    penalty[objective.free :] = objective.penalty[objective.units.of(fit.units)]
    return np.concatenate([penalty] * len(fit.coef)) if objective.smooth.joint else penalty


def _step_without_ridge(fit: Fit, hessian: np.ndarray, ridge: np.ndarray) -> np.ndarray:
    """How the coefficients would move if there were next to no ridge, shape (C, q)."""
    # A thousandth of the ridge stays, so that the Hessian remains positive definite.
    loose = hessian - (1 - 1e-3) * np.diag(ridge)
    pull = ridge * fit.coef.reshape(len(hessian), -1)
    step: np.ndarray = solve_or_nearest(loose, pull[:, :, None]).reshape(fit.coef.shape)
    return step
