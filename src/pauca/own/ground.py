"""What all subsets of one objective of any kind share."""

from __future__ import annotations

from pauca.own.fits import Fit, Fits
from pauca.own.objective import Problem
from pauca.own.second_order import Around
from pauca.subset.base import Swap
from pauca.units import Limits

# Quadratics kept: the run's own and those of its scouts.
KEPT_AROUNDS = 6


class Ground:
    """What all subsets of one objective share: fits, quadratics and the answers that depend on the support alone."""

    def __init__(self, problem: Problem, limits: Limits) -> None:
        self.problem = problem
        self.limits = limits
        self.fits = Fits(problem)
        self.additions: dict[tuple[frozenset[int], str, bool], int | None] = {}
        self.swaps: dict[frozenset[int], Swap | None] = {}
        self._arounds: dict[frozenset[int], Around] = {}

    def around(self, fit: Fit) -> Around:
        """The quadratic around a fit."""
        key = frozenset(fit.units)
        found = self._arounds.pop(key, None)
        if found is None:
            found = Around(self.fits, fit)
        self._arounds[key] = found
        while len(self._arounds) > KEPT_AROUNDS:
            self._arounds.pop(next(iter(self._arounds)))
        return found
