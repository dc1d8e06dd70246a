"""What all subsets of one smooth objective share: fits, the quadratics around them, and how far these are off."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from pauca.constraints.limits import Limits
from pauca.model import Snapshot
from pauca.objectives import SmoothObjective
from pauca.objectives.least_squares import GramRows
from pauca.subsets.base import SLACK
from pauca.subsets.column_entries import ColumnEntries
from pauca.subsets.coordinate_gains import VAGUE_GAIN_TOLERANCE, CoordinateSearch, WholeColumnSearch
from pauca.subsets.explained_shares import ExplainedShares
from pauca.subsets.fit_cache import FitCache, RecentTable
from pauca.subsets.fit_records import Fit
from pauca.subsets.local_quadratic import LocalQuadratic, UnitBlocks, feasible_slope
from pauca.subsets.refitted_subset import SubsetCache
from pauca.tolerances import TINY

# Local quadratics kept: that of the run's own model, and those of its scouts and look-ahead.
KEPT_QUADRATICS = 6

# The range of the calibration of a column: what it alone gains from the empty model over what the quadratic predicts.
CALIBRATION_RANGE = (1e-3, 1e6)


class SmoothCache(SubsetCache):
    """What all subsets of one smooth objective share: fits and the quadratics around them."""

    def __init__(self, objective: SmoothObjective, limits: Limits) -> None:
        super().__init__(limits)
        self.objective = objective
        self.fits = FitCache(objective)
        self.gram = GramRows(objective.design)
        self.blocks = UnitBlocks(objective.units, objective.design)
        self.columns = ColumnEntries(objective.design)
        self._quadratics = RecentTable[LocalQuadratic]()
        self.likely_gains = RecentTable[dict[bytes, dict[int, float]]]()
        """By support and the mask of units, estimates of what the likeliest of them gain, highest first."""
        self.snapshots = RecentTable[Snapshot]()
        """The latest snapshots: a search that goes on from its moves meets all its models again."""
        self.importances = RecentTable[np.ndarray]()
        """The latest estimates of importances: they are there when the time is up before exact ones are found."""

    def quadratic(self, fit: Fit) -> LocalQuadratic:
        """The quadratic around a fit."""
        key = frozenset(fit.units)
        found = self._quadratics.get(key)
        if found is None:
            shares = self._shares if fit.units else None
            found = LocalQuadratic(self.fits, fit, self.blocks, self.gram, self.columns, shares)
        self._quadratics.keep(key, found, KEPT_QUADRATICS)
        return found

    @cached_property
    def _shares(self) -> ExplainedShares:
        """The ridge counts as beside the curvature of the empty model, so that shares depend on the units alone."""
        curvature = float(self.quadratic(self.fits.null).mean_curvature[0])
        return ExplainedShares(self.gram, self.objective.penalty / max(curvature, TINY))

    def coordinate_search(self, fit: Fit) -> CoordinateSearch:
        """Searches along single columns from a fit of one output."""
        kind = WholeColumnSearch if self.objective.smooth.coupled else CoordinateSearch
        rows, scores = self.fits.on_rows(fit)
        return kind(self.objective, self.columns, rows, scores[0])

    @cached_property
    def calibration(self) -> np.ndarray:
        """What each unit gains from the empty model over what the quadratic predicts, shape (U,).

        Of rare or skewed columns the quadratic knows little. Their ratio is found once, by a search along each column
        that may gain more than estimates are trusted to.
        """
        objective, null = self.objective, self.fits.null
        ratio = np.ones(len(objective.units))
        if not objective.units.single or objective.n_outputs > 1 or objective.smooth.quadratic:
            return ratio
        quadratic, search = self.quadratic(null), self.coordinate_search(null)
        slope, curvature = feasible_slope(quadratic.slope, objective.bounds)[0], quadratic.own[0][0, :, 0, 0]
        features = np.flatnonzero(self.blocks.usable & (slope != 0))
        ceiling = search.likely_ceiling(slope[features], curvature[features], features)
        features = features[~(ceiling <= SLACK * 0.5 * slope[features] ** 2 / curvature[features])]
        gains = search.gains(features, slope[features], curvature[features], VAGUE_GAIN_TOLERANCE)
        ratio[features] = np.clip(gains * curvature[features] / (0.5 * slope[features] ** 2), *CALIBRATION_RANGE)
        return ratio

    def calibration_near(self, fit: Fit) -> np.ndarray:
        """The same for a fit: of narrow kinks the empty model, where half of all rows are at one, tells nothing."""
        return np.ones(len(self.objective.units)) if self.objective.smooth.narrow and fit.units else self.calibration
