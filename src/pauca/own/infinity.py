"""Whether the minimum of a fit is a finite one, or its parameters would grow on."""

from __future__ import annotations

import numpy as np

from pauca.own.fits import Fit, Fits

# The slope is looked at so far before and behind the place where the steps ended, as a share of the parameters.
AWAY = 0.25

# What a slope behind that place may be, as a share of the one before: around a minimum they are alike in size.
FADED = 0.02


def at_infinity(fits: Fits, fit: Fit) -> bool:
    """Whether the steps ended where there was next to nothing left to gain, and not where the objective rises again.

    It is followed along the parameters, along the next step ``-B g``, in which those that grow lead, and where it is
    flattest in parts of the parameters. A slope of zero does not count: many objectives are flat at their least.
    """
    coef, slope = fit.coef, fits.gradient(fit)[fit.coords]
    inverse = fits.inverse(fit)
    if not np.any(coef) or not np.isfinite(inverse).all():
        return False
    step = -(inverse @ slope)
    leads = int(np.abs(slope * step).argmax())
    directions = [coef, step * abs(coef[leads] / step[leads])] if step[leads] else [coef]
    parts = np.where(coef == 0, 0.0, 1.0 / np.where(coef == 0, 1.0, coef))
    flattest = np.linalg.eigh(inverse * np.outer(parts, parts))[1][:, -1] * coef
    flattest /= np.abs(flattest * parts).max()
    directions.append(-flattest if slope @ flattest > 0 else flattest)
    return any(_fades(fits, fit, direction) for direction in directions)


def _fades(fits: Fits, fit: Fit, direction: np.ndarray) -> bool:
    """Whether the slope along a direction is negative all the way, and next to nothing in the end."""
    line = np.zeros(fits.problem.n_coords)
    line[fit.coords] = direction
    w, slopes = fits.point(fit), []
    for length in (-AWAY, 0.5 * AWAY, AWAY):
        gradient = fits.problem.at(w + length * line)[1]
        if gradient is None or not gradient @ line < 0:
            return False
        slopes.append(float(gradient @ line))
    return slopes[0] * FADED < slopes[2]
