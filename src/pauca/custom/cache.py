"""What all subsets of one objective of any kind share."""

from __future__ import annotations

from pauca.constraints.limits import Limits
from pauca.custom.fits import Fit, Fits
from pauca.custom.local_quadratic import LocalQuadratic
from pauca.custom.objective import CustomProblem
from pauca.subsets.base import Swap

# Quadratics kept: the run's own and those of its scouts.
KEPT_AROUNDS = 6


class SubsetCache:
    """What all subsets of one objective share: fits, quadratics and the answers that depend on the support alone."""

    def __init__(self, problem: CustomProblem, limits: Limits) -> None:
        self.problem = problem
        self.limits = limits
        self.fits = Fits(problem)
        self.additions: dict[tuple[frozenset[int], str, bool], int | None] = {}
        self.swaps: dict[frozenset[int], Swap | None] = {}
        self._arounds: dict[frozenset[int], LocalQuadratic] = {}

    def around(self, fit: Fit) -> LocalQuadratic:
        """The quadratic around a fit."""
        key = frozenset(fit.units)
        found = self._arounds.pop(key, None)
        if found is None:
            found = LocalQuadratic(self.fits, fit)
        self._arounds[key] = found
        while len(self._arounds) > KEPT_AROUNDS:
            self._arounds.pop(next(iter(self._arounds)))
        return found
