"""Swaps by add-then-drop: previews of the model with one unit more, and what each of the others would cost there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pauca.subsets.fit_cache import FitCache
from pauca.subsets.fit_records import Fit, Preview, Solution
from pauca.tolerances import TINY

# Swaps that are refitted before none is taken to help.
MOST_REFITTED = 4

# Removals that cost more than so many times what any addition gains need not be known more closely. Of 1170 of them on
# text, where 170 words nearly separate the classes, 1114 did, and half cost more than 170 times as much.
FAR_ABOVE = 4.0

# A removal is expected to cost at least this share of what its calibrated estimate says.
LEAST_COST_SHARE = 0.8


class SwapSearch:
    """Estimates of all swaps between the units of a fit and a few others.

    With unit j added, dropping i costs about ``w_i' (A_ii)^-1 w_i / 2``, with A the inverse Hessian there. Second order
    may be far off for strong units, so it is calibrated by what dropping i from the fit itself costs in truth.
    """

    def __init__(self, fits: FitCache, fit: Fit) -> None:
        self._fits = fits
        self._fit = fit
        self._costs = np.maximum(fits.removal_costs(fit), TINY)
        self._factor = np.ones(len(fit.units))
        self._calibrated = np.zeros(len(fit.units), dtype=bool)
        self.cheapest = float(self._costs.min())
        """What dropping a unit costs at least, to second order."""
        self.previews: dict[int, Preview | Solution] = {}
        """Previews of the fit with one more unit, by that unit."""

    def swapped(self, out: int, into: int) -> frozenset[int]:
        """The support after a swap."""
        return frozenset(self._fit.units) - {out} | {into}

    def likely(self, allowed: Callable[[list[int]], np.ndarray]) -> list[tuple[int, int]]:
        """The swaps (out, into) that are likely to lower the value, the likeliest first, to be refitted.

        ``allowed`` takes units that come in to a mask with a line for each, and the units of the fit across.
        """
        units, value = self._fit.units, self._fit.value
        added = {into: preview.value for into, preview in self.previews.items() if preview.value < value}
        mask = allowed(list(added))
        if not mask.any():
            return []
        costs = np.array([self._fits.costs_beside(self._fit, self.previews[into]) for into in added])
        gains = np.array([value - there for there in added.values()])
        known: set[int] = set()
        looked_at = MOST_REFITTED
        while True:
            left = np.where(mask, gains[:, None] - costs * self._factor, -np.inf)
            best = np.argsort(-left, axis=None, kind="stable")[:looked_at]
            pairs = [divmod(int(place), len(units)) for place in best]
            pairs = [(into, out) for into, out in pairs if self._may_help(gains[into], left[into, out])]
            if known.issuperset(out for _, out in pairs[:MOST_REFITTED]):
                names = list(added)
                return [(units[out], names[into]) for into, out in pairs[:MOST_REFITTED]]
            unknown = {out for _, out in pairs} - known
            known |= unknown
            self._calibrate(sorted(unknown))
            # Where estimates are far off, one calibration after the other would have to be repeated.
            looked_at *= 4

    def _calibrate(self, positions: list[int]) -> None:
        """Compare the estimates of removals with previews of the model without the units."""
        units, value = [self._fit.units[position] for position in positions], self._fit.value
        far = value + FAR_ABOVE * (value - min(preview.value for preview in self.previews.values()))
        previews = self._fits.preview_removals(self._fit, units, far)
        costs = np.maximum([preview.value - self._fit.value for preview in previews], 0.0)
        self._factor[positions] = costs / self._costs[positions]
        self._calibrated[positions] = True
        if self._fits.objective.smooth.joint:
            # Second order is off by much the same factor for all units: from 1.6 to 4.2 for 12 pixels of digits, from 4
            # to 60 for 20 of them, which nearly separate the classes. Of words that is not so: with the same rule the
            # swaps missed cost up to 0.3 %.
            self._factor[~self._calibrated] = max(1.0, float(self._factor[self._calibrated].min()))

    def _may_help(self, gain: float, left: float) -> bool:
        return left > -np.inf and gain - LEAST_COST_SHARE * (gain - left) > 0
