"""Whether the minimum of a fit is a finite one, or its parameters would grow on."""

from __future__ import annotations

import numpy as np

from pauca.custom.fits import Fit, Fits

# The slope is looked at so far before and behind the place where the steps ended, as a share of the parameters.
AWAY = 0.25

# What a slope behind that place may be, as a share of the one before: around a minimum they are alike in size.
FADED = 0.02


def diverged(fits: Fits, found: list[Fit]) -> list[bool]:
    """Which of some fits have their minimum at infinity.

    A model within one that has a finite minimum has one too: what would run away there could do so in the larger one.
    So of a path few are looked at, the largest first.
    """
    finite: list[frozenset[int]] = []
    runs_away = {}
    for place in sorted(range(len(found)), key=lambda place: -len(found[place].units)):
        units = frozenset(found[place].units)
        runs_away[place] = not any(units <= other for other in finite) and _runs_away(fits, found[place])
        if not runs_away[place]:
            finite.append(units)
    return [runs_away[place] for place in range(len(found))]


def _runs_away(fits: Fits, fit: Fit) -> bool:
    """Whether the steps ended where there was next to nothing left to gain, and not where the objective rises again.

    It is followed along the parameters, along each alone, and where it is flattest in parts of the parameters. A slope
    of zero does not count: many objectives are flat at their least.
    """
    coef, inverse = fit.coef, fits.inverse(fit)
    live = np.flatnonzero(coef)
    with np.errstate(all="ignore"):
        relative = inverse[np.ix_(live, live)] / np.outer(coef[live], coef[live])
    if not len(live) or not np.isfinite(relative).all():
        return False
    share = np.linalg.eigh(relative)[1][:, -1]
    flattest = np.zeros_like(coef)
    flattest[live] = share / np.abs(share).max() * coef[live]
    if fits.gradient(fit)[fit.coords] @ flattest > 0:
        flattest = -flattest
    return any(_fades(fits, fit, direction) for direction in (coef, flattest, *np.diag(coef)[live]))


def _fades(fits: Fits, fit: Fit, direction: np.ndarray) -> bool:
    """Whether the slope along a direction is negative all the way, and next to nothing in the end."""
    line = np.zeros(fits.problem.n_coords)
    line[fit.coords] = direction
    w, slopes = fits.point(fit), []
    for length in (-AWAY, 0.5 * AWAY, AWAY):
        try:
            gradient = fits.problem.at(w + length * line)[1]
        except (ArithmeticError, ValueError):  # what goes wrong where no step has led must not spoil the answer
            return False
        if gradient is None or not gradient @ line < 0:
            return False
        slopes.append(float(gradient @ line))
    return slopes[0] * FADED < slopes[2]
