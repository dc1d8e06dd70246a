"""Losses on the rows that folds hold out, added up over blocks of rows that are independent of each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from pauca.model import Model
from pauca.model_selection.folds import Fold
from pauca.model_selection.scoring import Scorable, Scorer, read_columns
from pauca.subsets.ridge_fits import RidgeFits

# Rows in more blocks than this are pooled: the standard error of a thousand sums is known to 2 %.
MOST_BLOCKS = 1000

# Rows held out are read in blocks of about this many numbers.
SCORED_NUMBERS = 1 << 21


@dataclass(frozen=True, eq=False)
class RowBlocks:
    """Which rows are independent of each other: every row is a block, or every group of rows."""

    block: np.ndarray
    """The block of every row, shape (n,)."""
    count: int
    share: np.ndarray
    """The weight of every row, divided by how often it is held out: repeated folds are averaged first."""
    weights: np.ndarray

    @classmethod
    def of(cls, weights: np.ndarray, groups: Any, folds: Sequence[Fold]) -> RowBlocks:
        """Blocks of the rows, or of the ``groups`` of rows where there are any."""
        n_rows = len(weights)
        block = np.arange(n_rows) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
        held_out = sum(np.bincount(fold.test, minlength=n_rows) for fold in folds)
        return cls(
            block % MOST_BLOCKS, min(int(block.max()) + 1, MOST_BLOCKS), weights / np.maximum(held_out, 1), weights
        )


class FoldLosses:
    """Losses of models on the rows that one fold holds out."""

    def __init__(self, problem: Scorable, fold: Fold, blocks: RowBlocks) -> None:
        self._problem = problem
        self._rows = fold.test
        self._share = blocks.share[fold.test]
        self.blocks, self._position = np.unique(blocks.block[fold.test], return_inverse=True)
        self.weight = np.bincount(self._position, weights=self._share)

    def sums(self, models: Sequence[RidgeFits]) -> list[np.ndarray]:
        """Sums of the losses of models over every block, each of shape (R, blocks of this fold)."""
        columns = np.unique(np.concatenate([model.columns for model in models])).astype(np.intp)
        places = [np.searchsorted(columns, model.columns) for model in models]
        found = [np.zeros((len(model.intercept), len(self.blocks))) for model in models]
        step = max(1, SCORED_NUMBERS // max(1, len(columns)))
        for start in range(0, len(self._rows), step):
            here = slice(start, start + step)
            block = read_columns(self._problem.X, columns, self._rows[here])
            adding = self._adding(here)
            for total, model, place in zip(found, models, places, strict=True):
                np.add(total, (adding @ self._losses(model, block[:, place], here).T).T, out=total)
        return found

    def _adding(self, here: slice) -> Any:
        """The matrix that adds up rows to blocks, shape (blocks, rows)."""
        position, share = self._position[here], self._share[here]
        shape = len(self.blocks), len(position)
        return sparse.csr_array((share, (position, np.arange(len(position)))), shape=shape)

    def _losses(self, model: RidgeFits, block: np.ndarray, here: slice) -> np.ndarray:
        """Losses of every row at every ridge, added up over outputs, shape (R, rows)."""
        target, measure, rows = self._problem.target, self._problem.measure, self._rows[here]
        y = target.y[rows] if target.loss.joint else target.y[:, rows]
        found = np.empty((len(model.intercept), len(rows)))
        with np.errstate(over="ignore", invalid="ignore"):
            for position, (coef, intercept) in enumerate(zip(model.coef, model.intercept, strict=True)):
                losses = measure.held_out(y, intercept[:, None] + coef @ block.T)
                found[position] = losses.sum(axis=0) if losses.ndim == 2 else losses
        return found


class CoupledFoldLosses(FoldLosses):
    """The same where the loss of a row depends on the scores of others: those of all rows are computed."""

    def __init__(self, problem: Scorable, fold: Fold, blocks: RowBlocks) -> None:
        super().__init__(problem, fold, blocks)
        loss, y = problem.target.loss, problem.target.y
        self._of_rows = loss.tuned(y, fold.weights).held_out_losses(y, blocks.weights, fold.test)

    def sums(self, models: Sequence[RidgeFits]) -> list[np.ndarray]:
        """Sums of the losses of models over every block, each of shape (R, blocks of this fold)."""
        adding, every = self._adding(slice(None)), np.arange(self._problem.target.y.shape[-1])
        found = []
        for model in models:
            block = read_columns(self._problem.X, model.columns, every)
            scores = model.intercept[:, 0, None] + model.coef[:, 0] @ block.T
            found.append((adding @ self._of_rows(scores).T).T)
        return found


class FoldScores:
    """Scores of models by a scorer, which has no score for a single row: every fold is one block."""

    def __init__(self, scorer: Scorer, problem: Scorable, y: np.ndarray, fold: Fold, number: int) -> None:
        self._scorer, self._X, self._y, self._fold = scorer, problem.X, y, fold
        self._single = problem.target.n_outputs == 1
        self.blocks = np.array([number])
        self.weight = np.ones(1)

    def sums(self, models: Sequence[RidgeFits]) -> list[np.ndarray]:
        """Minus the scores of models, each of shape (R, 1)."""
        every = [self._model(one, ridge) for one in models for ridge in range(len(one.intercept))]
        scores = -np.array(self._scorer.scores(self._X, self._y, self._fold, every))
        ends = np.cumsum([len(one.intercept) for one in models])[:-1]
        return [part[:, None] for part in np.split(scores, ends)]

    def _model(self, refits: RidgeFits, ridge: int) -> Model:
        coef, intercept = refits.coef[ridge], refits.intercept[ridge]
        nothing = np.zeros(0)
        if self._single:
            return Model(refits.columns, coef[0], float(intercept[0]), np.nan, nothing, refits.columns)
        return Model(refits.columns, coef, intercept, np.nan, nothing, refits.columns)


def as_refits(model: Model) -> RidgeFits:
    """One model as refits at a single ridge."""
    return RidgeFits(model.support, np.atleast_2d(model.coef)[None], np.atleast_1d(model.intercept)[None])


def at_most(known: Mapping[int, Any], size: int) -> Any:
    """What there is of a size, or of the next smaller one: a path that ended early has no better to offer."""
    return known[max(one for one in known if one <= size)]
