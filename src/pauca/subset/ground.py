"""What all subsets of one smooth objective share."""

from __future__ import annotations

from pauca.objectives import GramRows, SmoothObjective
from pauca.subset.base import Swap
from pauca.subset.fits import Fit, Fits
from pauca.subset.local import LocalQuadratic
from pauca.subset.unit_blocks import Blocks, UnitBlocks
from pauca.units import Limits

# Local quadratics kept: the run's own and those of its scouts.
KEPT_LOCALS = 6


class Ground:
    """What all subsets of one objective share: fits, quadratics and the answers that depend on the support alone."""

    def __init__(self, objective: SmoothObjective, limits: Limits) -> None:
        self.objective = objective
        self.limits = limits
        self.fits = Fits(objective)
        self.gram = GramRows(objective.design)
        self.blocks = UnitBlocks(objective.units, objective.design.usable)
        self.additions: dict[tuple[frozenset[int], str, bool], int | None] = {}
        self.swaps: dict[frozenset[int], Swap | None] = {}
        self.copies: set[int] = set()
        self._locals: dict[frozenset[int], LocalQuadratic] = {}
        self._own: Blocks | None = None

    def local(self, fit: Fit) -> LocalQuadratic:
        """The quadratic around a fit."""
        key = frozenset(fit.units)
        found = self._locals.pop(key, None) or LocalQuadratic(self.fits, fit, self.blocks, self.gram)
        self._locals[key] = found
        if self.objective.smooth.quadratic:
            # The Hessian is the same everywhere.
            if self._own is None:
                self._own = found.own
            found.own = self._own
        while len(self._locals) > KEPT_LOCALS:
            self._locals.pop(next(iter(self._locals)))
        return found
