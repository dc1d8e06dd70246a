"""What all subsets of one smooth objective share."""

from __future__ import annotations

from pauca.objectives import GramRows, SmoothObjective
from pauca.subset.base import Swap
from pauca.subset.fits import Fit, Fits
from pauca.subset.local import LocalQuadratic
from pauca.subset.unit_blocks import Blocks, UnitBlocks
from pauca.units import Limits

# Local quadratics kept, the run's own and those of its scouts: so many, but no more than take this many bytes beyond
# the run's own. Each holds up to three arrays of the size of the chosen rows of the Gram matrix.
KEPT_LOCALS = 6
KEPT_BYTES = 1 << 28
ARRAYS_EACH = 3


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
        each = ARRAYS_EACH * 8 * max(1, fit.coef.size) * self.objective.design.n_features
        while len(self._locals) > min(KEPT_LOCALS, 1 + KEPT_BYTES // each):
            self._locals.pop(next(iter(self._locals)))
        return found
