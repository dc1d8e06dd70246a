"""Held-out rows: which are independent of each other, the losses of models on them, and models that have not seen them.

Losses are added up over blocks of rows, so that models can be compared pair by pair on the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from pauca.design.base import row_blocks
from pauca.model import Model
from pauca.model_selection.folds import Fold, times_named
from pauca.model_selection.ridge_fits import RidgeFits
from pauca.model_selection.scoring import Scorable, Scorer, read_columns
from pauca.results.choice import EXPLAINED

# Rows in more blocks than this are pooled: the standard error of a thousand sums is known to 2 %.
MOST_BLOCKS = 1000

# Held-out rows are read in blocks of about this many numbers.
SCORED_NUMBERS = 1 << 21

# Losses of so many rows and models are held at a time (half a megabyte).
LOSS_NUMBERS = 1 << 16

# How much of a row with a wrong label is added to the held-out rows. With a whole row models are not sure enough of
# themselves where classes are easily separated; with none they are too sure in few rows (docs/choosing_k.md).
WRONG_LABEL = 0.25


@dataclass(frozen=True, eq=False)
class RowBlocks:
    """Which rows are independent of each other: every row is a block, or every group of rows."""

    block: np.ndarray
    """The block of every row, shape (n,)."""
    count: int
    share: np.ndarray
    """The weight of every row, divided by how often it is held out: repeated folds are averaged first."""
    weights: np.ndarray
    n_held_out: int
    """How many rows with weight any fold holds out."""

    @classmethod
    def of(cls, weights: np.ndarray, groups: Any, folds: Sequence[Fold]) -> RowBlocks:
        """Blocks of the rows, or of the ``groups`` of rows where there are any."""
        n_rows = len(weights)
        # Of many rows two bytes each are less than eight.
        if groups is None:
            block, n_blocks = np.resize(np.arange(MOST_BLOCKS, dtype=np.int16), n_rows), n_rows
        else:
            labels, codes = np.unique(np.asarray(groups), return_inverse=True)
            block, n_blocks = (codes % MOST_BLOCKS).astype(np.int16), len(labels)
        held_out = np.zeros(n_rows, dtype=np.int32)
        for fold in folds:
            held_out += times_named(fold.test, n_rows)
        share = weights if held_out.max() <= 1 else weights / np.maximum(held_out, 1)
        n_held_out = int(np.count_nonzero((held_out > 0) & (weights > 0)))
        return cls(block, min(n_blocks, MOST_BLOCKS), share, weights, n_held_out)


class SortedRows(NamedTuple):
    """Held-out rows, sorted by their blocks."""

    order: np.ndarray
    """Where they were before."""
    rows: np.ndarray
    position: np.ndarray
    """Which of the blocks of the fold every row is in."""
    share: np.ndarray

    def only(self, some: slice) -> SortedRows:
        """Some of the rows."""
        return SortedRows(*(part[some] for part in self))

    def added_up(self, losses: np.ndarray) -> tuple[slice, np.ndarray]:
        """The blocks that the rows are in, and weighted sums of their losses of shape (rows, M) over each."""
        first, last = int(self.position[0]), int(self.position[-1]) + 1
        ends = np.searchsorted(self.position, np.arange(first, last + 1))
        shape = last - first, len(self.rows)
        return slice(first, last), sparse.csr_array((self.share, np.arange(shape[1]), ends), shape=shape) @ losses


class FoldLosses:
    """Losses of models on the rows that one fold holds out.

    Of classes there is a block without weight: what a part of one row more would add, with a wrong label. Few rows held
    out may all be predicted well by chance, and then the model that is surest of itself would be the best; with many
    rows it makes no difference.
    """

    def __init__(self, problem: Scorable, fold: Fold, blocks: RowBlocks) -> None:
        self._problem = problem
        self._rows = fold.test
        self._share = blocks.share[fold.test]
        self._n_rows = blocks.n_held_out
        own, self._position = np.unique(blocks.block[fold.test], return_inverse=True)
        extra = int(problem.target.loss.classifies)
        self.blocks = np.append(own, [blocks.count] * extra).astype(np.intp)
        self.weight = np.bincount(self._position, weights=self._share, minlength=len(self.blocks))

    def sums(self, models: Sequence[RidgeFits]) -> list[np.ndarray]:
        """Sums of the losses of models over every block, each of shape (R, blocks of this fold)."""
        columns = np.unique(np.concatenate([model.columns for model in models])).astype(np.intp)
        simple = self._problem.target.n_outputs == 1 and not self._problem.target.loss.joint
        coef, intercept = packed(models, columns) if simple else (np.zeros((0, 0)), np.zeros(0))
        ends = np.cumsum([len(model.intercept) for model in models])
        found = np.zeros((len(self.blocks), ends[-1]))
        for here in row_blocks(len(self._rows), max(len(columns), ends[-1]), SCORED_NUMBERS):
            held = self._sorted(here)
            block = read_columns(self._problem.X, columns, self._rows[here])[held.order]
            if not simple:
                places = [np.searchsorted(columns, model.columns) for model in models]
                parts = [self._losses(one, block[:, at], held.rows) for one, at in zip(models, places, strict=True)]
                self._add(found, held, *(np.concatenate(part).T for part in zip(*parts, strict=True)))
                continue
            # All models at once: of few rows each call takes longer than its sums.
            for some in row_blocks(len(block), ends[-1], LOSS_NUMBERS):
                scores = block[some] @ coef
                scores += intercept
                self._add(found, held.only(some), *self._losses_at_once(scores, held.rows[some]))
        return np.split(np.ascontiguousarray(found.T), ends[:-1])

    def _sorted(self, here: slice) -> SortedRows:
        order = np.argsort(self._position[here], kind="stable")
        return SortedRows(order, self._rows[here][order], self._position[here][order], self._share[here][order])

    def _add(self, found: np.ndarray, held: SortedRows, losses: np.ndarray, mislabelled: np.ndarray) -> None:
        """Add the losses of some rows, one column to a model, to the sums of their blocks."""
        blocks, sums = held.added_up(losses)
        found[blocks] += sums
        if mislabelled.size:
            found[-1] += WRONG_LABEL * (held.share @ mislabelled) / self._n_rows

    def _losses_at_once(self, scores: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Losses of rows at the scores of several models of one output, and those of wrong labels, if there are any."""
        measure = self._problem.measure
        y = np.broadcast_to(self._problem.target.y[0, rows, None], scores.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            losses = measure.held_out(y, scores)
            # As one line of rows: several lines would be several classes, and the labels those of other classes.
            wrong = measure.mislabelled(y.ravel(), scores.ravel())
        return losses, np.zeros(0) if wrong is None else wrong.reshape(scores.shape)

    def _losses(self, model: RidgeFits, block: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Losses of every row at every ridge, added up over outputs, shape (R, rows), and those of wrong labels."""
        target, measure = self._problem.target, self._problem.measure
        y = target.y[rows] if target.loss.joint else target.y[:, rows]
        found, wrong = [], []
        with np.errstate(over="ignore", invalid="ignore"):
            for coef, intercept in zip(model.coef, model.intercept, strict=True):
                scores = intercept[:, None] + coef @ block.T
                found.append(_over_outputs(measure.held_out(y, scores)))
                mislabelled = measure.mislabelled(y, scores)
                if mislabelled is not None:
                    wrong.append(_over_outputs(mislabelled))
        return np.array(found), np.array(wrong)


def _over_outputs(losses: np.ndarray) -> np.ndarray:
    return losses.sum(axis=0) if losses.ndim == 2 else losses


class CoupledFoldLosses(FoldLosses):
    """The same where the loss of a row depends on the scores of others: those of all rows are computed."""

    def __init__(self, problem: Scorable, fold: Fold, blocks: RowBlocks) -> None:
        super().__init__(problem, fold, blocks)
        loss, y = problem.target.loss, problem.target.y
        self._of_rows = loss.tuned(y, fold.weights).held_out_losses(y, blocks.weights, fold.test)

    def sums(self, models: Sequence[RidgeFits]) -> list[np.ndarray]:
        """Sums of the losses of models over every block, each of shape (R, blocks of this fold)."""
        held, every = self._sorted(slice(None)), np.arange(self._problem.target.y.shape[-1])
        found = []
        for model in models:
            block = read_columns(self._problem.X, model.columns, every)
            scores = model.intercept[:, 0, None] + model.coef[:, 0] @ block.T
            sums = np.zeros((len(self.blocks), len(scores)))
            self._add(sums, held, self._of_rows(scores).T[held.order], np.zeros(0))
            found.append(sums.T)
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


class FoldBlocks(Protocol):
    """The blocks of rows that a fold holds out, and their weights."""

    blocks: np.ndarray
    weight: np.ndarray


class FoldMeasure(FoldBlocks, Protocol):
    """What scores models on the rows that a fold holds out."""

    def sums(self, models: Sequence[RidgeFits]) -> list[np.ndarray]:
        """Sums of the losses of models over every block, each of shape (R, blocks of this fold)."""
        ...


@dataclass(frozen=True, eq=False)
class Measure:
    """How models are compared on held-out rows: by their loss, row by row, or by a scorer, fold by fold."""

    problem: Scorable
    scorer: Scorer | None
    y: np.ndarray
    blocks: RowBlocks

    @property
    def scoring(self) -> str:
        """The name of the score."""
        return EXPLAINED if self.scorer is None else self.scorer.name

    def of_fold(self, fold: Fold, number: int) -> FoldMeasure:
        """What scores the models of one fold."""
        problem = fold.problem(self.problem)
        if self.scorer is None:
            kind = CoupledFoldLosses if problem.measure.coupled else FoldLosses
            return kind(problem, fold, self.blocks)
        return FoldScores(self.scorer, problem, self.y, fold, number)


def packed(models: Sequence[RidgeFits], columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of models of one output at all ridges on all columns, shape (q, M), and intercepts, shape (M,)."""
    coef = np.zeros((len(columns), sum(len(one.intercept) for one in models)))
    start = 0
    for one in models:
        stop = start + len(one.intercept)
        coef[np.searchsorted(columns, one.columns), start:stop] = one.coef[:, 0].T
        start = stop
    return coef, np.concatenate([one.intercept[:, 0] for one in models])


def as_refits(model: Model) -> RidgeFits:
    """One model as refits at a single ridge."""
    return RidgeFits(model.support, np.atleast_2d(model.coef)[None], np.atleast_1d(model.intercept)[None])


def at_most(known: Mapping[int, Any], size: int) -> Any:
    """What there is of a size, or of the next smaller one: a path that ended early has no better to offer."""
    return known[max(one for one in known if one <= size)]


class HeldOutModel(NamedTuple):
    """A linear model and the rows that it has not seen."""

    rows: np.ndarray
    units: tuple[int, ...]
    """What was chosen without these rows."""
    columns: np.ndarray
    coef: np.ndarray
    """Shape (C, q)."""
    intercept: np.ndarray
    """Shape (C,)."""
    X: Any = None
    """The table as its fold sees it, where what is filled in differs."""


def held_out_scores(X: Any, n_rows: int, models: Sequence[HeldOutModel]) -> np.ndarray:
    """Scores of rows by the models that have not seen them, shape (n, C).

    NaN for rows that all have seen; the mean for those that several have not.
    """
    total, count = np.zeros((n_rows, len(models[0].intercept))), np.zeros(n_rows)
    for model in models:
        block = read_columns(X if model.X is None else model.X, model.columns, model.rows)
        np.add.at(total, model.rows, block @ model.coef.T + model.intercept)
        np.add.at(count, model.rows, 1)
    with np.errstate(invalid="ignore"):
        return total / count[:, None]
