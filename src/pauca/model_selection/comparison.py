"""All candidates of a choice on the rows that folds hold out: their losses, scores, and what is chosen among them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pauca.model_selection.folds import Fold
from pauca.model_selection.grids import RidgeGrid
from pauca.model_selection.held_out import FoldBlocks, Measure, as_refits, at_most
from pauca.model_selection.rules import Chosen, HeldOutLosses, choose, nothing_scored
from pauca.model_selection.scoring import Models
from pauca.results.choice import EXPLAINED, Choice, Rule
from pauca.results.surface import Surface

# Ridges lighter than those of the grid are compared with so many times the part of a row with a wrong label: half a
# row. On seven tables whose classes are separated, or nearly so, ten splits each, the loss on new rows fell to 0.04 to
# 0.14 of what it was where a column of 560 rows gives the classes away, and rose nowhere. With a whole row it fell in
# one table instead of two; with the quarter that all ridges have it rose by a tenth on 133 wines.
CAUTION = 2.0

Table = dict[int, np.ndarray]
"""Sums over blocks by size, each of shape (R, blocks of the fold); there is always a size 0."""


@dataclass(frozen=True, eq=False)
class ScoredFold:
    """What a fold says of the models of every search."""

    measure: FoldBlocks
    tables: list[Table]

    def losses(self, sizes: Sequence[int]) -> np.ndarray:
        """Sums of shape (searches, ridges, sizes, blocks of the fold)."""
        found = [np.stack([at_most(table, size) for size in sizes], axis=1) for table in self.tables]
        return np.stack(found)

    def observed(self, search: int, ridge: int, sizes: Sequence[int]) -> np.ndarray:
        """Mean losses of the sizes at one pair of ridges."""
        sums = np.stack([at_most(self.tables[search], size)[ridge] for size in sizes])
        with np.errstate(over="ignore", invalid="ignore"):
            return HeldOutLosses(sums, self.measure.weight).observed


class Comparison:
    """All candidates on the rows that the folds hold out."""

    def __init__(self, folds: Sequence[ScoredFold], sizes: Sequence[int]) -> None:
        self.sizes = np.array(sizes)
        blocks = 1 + max(int(fold.measure.blocks.max()) for fold in folds)
        weight = np.zeros(blocks)
        shape = len(folds[0].tables), len(folds[0].tables[0][0]), 1 + len(sizes), blocks
        total = np.zeros(shape)
        lines = total.reshape(-1, blocks)  # columns of a matrix are found three times as fast
        for fold in folds:
            own: Any = fold.measure.blocks if len(fold.measure.blocks) < blocks else slice(None)
            lines[:, own] += fold.losses((0, *sizes)).reshape(len(lines), -1)
            weight[own] += fold.measure.weight
        self.losses = HeldOutLosses(total[:, :, 1:], weight)
        self.constant = HeldOutLosses(total[0, 0, 0], weight)
        """The model without features."""
        self._folds = folds

    def bar(self, places: Iterable[tuple[int, int, int]]) -> None:
        """Leave out candidates, which have no model on all rows."""
        sums = self.losses.sums.copy()
        for place in places:
            sums[place] = np.inf
        self.losses = replace(self.losses, sums=sums)

    def be_careful(self, n_lightest: int) -> None:
        """Give wrong labels more weight at the lightest ridges, whose models are the surest of themselves."""
        sums = self.losses.sums.copy()
        sums[:, :n_lightest, :, self.losses.weight == 0] *= CAUTION
        self.losses = replace(self.losses, sums=sums)

    def scores(self, scoring: str) -> tuple[np.ndarray, np.ndarray]:
        """Mean scores of all candidates, higher being better, and their standard errors."""
        if scoring != EXPLAINED:
            return -self.losses.observed, self.losses.error()
        null = float(self.constant.observed)
        if not null > 0:
            return np.zeros(self.losses.observed.shape), np.zeros(self.losses.observed.shape)
        lowest = -np.finfo(float).max / 2
        with np.errstate(over="ignore", invalid="ignore"):
            left = self.losses.observed / null
            mean = 1.0 - left
            error = self._error_of_shares(left) / null
        # Nothing is explained by a model that is the constant itself, whatever rounding says.
        mean = np.where(np.isfinite(mean), np.where(error > 0, mean, np.where(mean > 1e-12, mean, 0.0)), lowest)
        mean[..., self.sizes == 0] = 0.0
        error[..., self.sizes == 0] = 0.0
        return mean, error

    def _error_of_shares(self, left: np.ndarray) -> np.ndarray:
        """Standard errors of the losses, less the shares ``left`` of the constant's loss of the same rows.

        Rows that are far from the mean raise the loss of the constant as they raise what is explained of it: the
        error of a ratio is that of what is left once the denominator's own spread is taken out (the delta method).
        """
        finite = np.where(np.isfinite(left), left, 0.0)
        residual = HeldOutLosses(self.losses.sums - finite[..., None] * self.constant.sums, self.losses.weight)
        return residual.error()

    def fold_scores(self, scoring: str, search: int, ridge: int) -> np.ndarray:
        """Scores of every fold at one pair of ridges, shape (folds, sizes).

        What is explained is a share of the constant's loss on the rows of the fold: as a share of its mean loss over
        all folds it would be above one where these rows are hard for a constant.
        """
        losses = np.stack([fold.observed(search, ridge, self.sizes.tolist()) for fold in self._folds])
        if scoring != EXPLAINED:
            return -losses
        overall = float(self.constant.observed)
        if not overall > 0:
            return np.zeros(losses.shape)
        null = np.stack([fold.observed(0, 0, [0]) for fold in self._folds])
        with np.errstate(over="ignore", invalid="ignore"):
            scores = (null - losses) / np.where(null > 0, null, overall)
        scores = np.where(np.isfinite(scores), scores, -np.finfo(float).max / 2 / len(scores))
        scores[:, self.sizes == 0] = 0.0
        return scores

    def choice(self, found: Chosen, rule: Rule, scoring: str, grid: RidgeGrid | None = None) -> Choice:
        """The choice as a user sees it; ``grid`` has the ridges, where there were several."""
        search, ridge, size = found.place
        mean, error = self.scores(scoring)
        surface, null = (
            None,
            float(self.constant.observed) if scoring == EXPLAINED and self.constant.observed > 0 else 1.0,
        )
        if grid is not None:
            surface = Surface(
                np.array(grid.search),
                np.array(grid.fit),
                self.sizes,
                mean,
                found.error / null,
                grid.fit[ridge],
                grid.search[search],
                error,
            )
        return Choice(
            rule,
            scoring,
            self.sizes,
            mean[search, ridge],
            error[search, ridge],
            self.fold_scores(scoring, search, ridge),
            int(self.sizes[size]),
            surface,
            int(self.sizes[found.best[2]]),
            n_folds=len(self._folds),
            one_error_size=int(self.sizes[found.within_one_error]),
            difference_error=self.losses.error(self.losses.sums[found.place])[search, ridge] / null,
        )


def weigh_folds(rule: Rule, measure: Measure, found: Sequence[tuple[Fold, Models]], sizes: Sequence[int]) -> Choice:
    """The choice among ``sizes`` by the models of every fold."""
    if not found:
        return nothing_scored(sizes[-1], rule, measure.scoring)
    folds = []
    for number, (fold, models) in enumerate(found):
        scored, needed = measure.of_fold(fold, number), sorted(models)
        sums = scored.sums([as_refits(models[size]) for size in needed])
        folds.append(ScoredFold(scored, [dict(zip(needed, sums, strict=True))]))
    comparison = Comparison(folds, sizes)
    return comparison.choice(choose(comparison.losses, comparison.sizes, rule), rule, measure.scoring)
