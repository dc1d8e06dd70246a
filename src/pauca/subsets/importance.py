"""What every unit of a fitted model is worth, and whether its optimum is a finite one."""

from __future__ import annotations

import numpy as np

from pauca.objectives import SmoothObjective
from pauca.subsets.fits import Fit, Fits

# Where leaving out the ridge that is always there would move a score by more than this, the optimum lies at infinity.
RUNAWAY_STEP = 0.1

# Standardised entries beyond this are not reckoned with when scores need not be looked at.
FAR_OUT = 1e3


def worth(fits: Fits, fit: Fit) -> np.ndarray:
    """By how much the value would rise without each unit, to second order, in the order of the fit.

    That is ``w_u' (A_uu)^-1 w_u / 2`` with A the inverse Hessian on the model.
    """
    try:
        inverse = np.linalg.inv(fits.exact_hessian(fit))
    except np.linalg.LinAlgError:
        inverse = np.linalg.pinv(fits.exact_hessian(fit), hermitian=True)
    objective = fits.objective
    if objective.units.single and len(inverse) == objective.n_outputs:
        variance = np.einsum("cii->ci", inverse)[:, objective.free :]
        return 0.5 * np.sum(fit.coef[:, objective.free :] ** 2 / np.maximum(variance, np.finfo(float).tiny), axis=0)
    return np.array([_worth(inverse, fit.coef, places) for places in _places(objective, fit)])


def diverged(fits: Fits, fit: Fit) -> bool:
    """Whether the coefficients would run away without the ridge that is there even where none is wanted."""
    objective = fits.objective
    if objective.ridge or not objective.smooth.may_diverge or not fit.units:
        return False
    if objective.smooth.joint and _at_a_bound(objective, fit):
        # There is curvature along what all classes share only as long as no bound holds it.
        return False
    step = _runaway_step(objective, fit, fits.exact_hessian(fit))
    if np.abs(step).max() < RUNAWAY_STEP / FAR_OUT:
        return False
    return bool(np.abs(step @ fits.pool.gather(fit.units)).max() > RUNAWAY_STEP)


def _at_a_bound(objective: SmoothObjective, fit: Fit) -> bool:
    if objective.bounds is None:
        return False
    lower, upper = (bound[objective.units.of(fit.units)] for bound in objective.bounds)
    coef = fit.coef[:, objective.free :]
    return bool(np.any((coef <= lower) | (coef >= upper)))


def _runaway_step(objective: SmoothObjective, fit: Fit, hessian: np.ndarray) -> np.ndarray:
    """How the coefficients would move if there were next to no ridge, shape (C, q)."""
    penalty = np.concatenate([np.zeros(objective.free), objective.penalty[objective.units.of(fit.units)]])
    blocks = fit.coef.reshape(len(hessian), -1)
    ridge = np.tile(penalty, blocks.shape[1] // len(penalty))
    # A thousandth of the ridge is left in, so that there is a step.
    loose = hessian - (1 - 1e-3) * np.diag(ridge)
    step: np.ndarray = np.linalg.solve(loose, (ridge * blocks)[:, :, None]).reshape(fit.coef.shape)
    return step


def _places(objective: SmoothObjective, fit: Fit) -> list[np.ndarray]:
    """Places of every unit's coefficients in those of the fit."""
    owner = objective.units.owner[objective.units.of(fit.units)]
    return [objective.free + np.flatnonzero(owner == unit) for unit in fit.units]


def _worth(inverse: np.ndarray, coef: np.ndarray, places: np.ndarray) -> float:
    """One unit's worth, from the blocks of the inverse and coefficients of shape (C, q)."""
    outputs, size = coef.shape
    if len(inverse) < outputs:
        # One block for all outputs: the unit has places in the part of each.
        everywhere = (np.arange(outputs)[:, None] * size + places).ravel()
        inverse, coef = inverse[:, everywhere[:, None], everywhere], coef[:, places].reshape(1, -1)
    else:
        inverse, coef = inverse[:, places[:, None], places], coef[:, places]
    return 0.5 * float(np.sum(coef * np.linalg.solve(inverse, coef[:, :, None])[:, :, 0]))
