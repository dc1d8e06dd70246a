"""Choosing by squared error on a table in chunks: held-out losses from sums of folds, then from rows in one pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pauca.design import ChunkedDesign, Chunks, Design
from pauca.design.chunks.moments import PartSums
from pauca.design.fold_grams import parts_of_folds
from pauca.losses import Loss
from pauca.model_selection.comparison import ScoredFold
from pauca.model_selection.folds import Fold, FoldWeights
from pauca.model_selection.grids import SizeRange
from pauca.model_selection.held_out import LOSS_NUMBERS, FoldMeasure, HeldOutModel, Measure, RowBlocks, packed
from pauca.model_selection.ridge_fits import RidgeFits
from pauca.model_selection.size_and_ridge import SurfaceSelection
from pauca.results.choice import Choice, standard_errors
from pauca.runs.parallel import ParallelRuns
from pauca.runs.problem import LinearProblem


class FoldMoments:
    """Squared losses of models on the rows that a fold holds out, from sums over them: all rows are one block."""

    def __init__(self, sums: PartSums, parts: np.ndarray, intercept: float, number: int) -> None:
        self._sums, self._parts, self._intercept = sums, parts, intercept
        total, weight = sums.weight.sum(), sums.weight[parts].sum()
        self._share = 1.0 / total
        self.blocks = np.array([number])
        self.weight = np.array([weight * self._share])

    def sums(self, models: Sequence[RidgeFits]) -> list[np.ndarray]:
        """Sums of the losses of models, each of shape (R, 1)."""
        return [self._sum(model) for model in models]

    def _sum(self, model: RidgeFits) -> np.ndarray:
        """``sum v (y - b - x w)^2 / 2``: with u = (-w, 1) and rows about a point it is quadratic in u."""
        weight, first, second = (part[self._parts].sum(axis=0) for part in self._sums.sums(model.columns))
        u = np.column_stack([-model.coef[:, 0], np.ones(len(model.intercept))])
        # The target that the sums are of is y less its mean on all rows.
        point = self._sums.point[model.columns]
        constant = self._intercept - model.intercept[:, 0] - model.coef[:, 0] @ point
        squares = np.einsum("ri,ij,rj->r", u, second, u) + constant * (2 * u @ first + constant * weight)
        return 0.5 * self._share * np.maximum(squares, 0.0)[:, None]


@dataclass(frozen=True, eq=False)
class MomentsMeasure(Measure):
    """Models are compared by their squared loss on the rows of every fold, without reading them again."""

    sums: PartSums
    intercept: float
    """The mean of y on all rows."""
    held_out: np.ndarray
    """Which parts every fold holds out, shape (folds, parts)."""

    def of_fold(self, fold: Fold, number: int) -> FoldMeasure:
        """What scores the models of one fold."""
        return FoldMoments(self.sums, np.flatnonzero(self.held_out[number]), self.intercept, number)


@dataclass(eq=False)
class BlockWeights:
    """The blocks of rows that a fold holds out, and their weights."""

    blocks: np.ndarray
    weight: np.ndarray


class StreamedSelection(SurfaceSelection):
    """The search for a size and two ridges in one pass over a table, and one more if rows are compared in pairs.

    Sizes are compared by their mean losses until the best is well within them. Then all models are scored on the rows
    of blocks at once, and the sizes compared again as they would have been in memory.
    """

    measure: MomentsMeasure
    _by_rows: list[ScoredFold] | None = None
    _searched = 0
    """The size that the searches went to, or tried to."""

    def choose(self, size_range: SizeRange, runs: ParallelRuns, design: Design) -> Choice:
        """Compare more and more sizes until the chosen one is well within them."""
        rule, first = self.rule, size_range
        while True:
            self.rule, self._by_rows = "best", None
            by_means = super().choose(size_range, runs, design)
            self.rule = rule
            if not (standard_errors(rule) and by_means.scored):
                return replace(by_means, rule=rule)
            self._by_rows = self._scored_by_rows()
            choice = self._choose_again(first, runs)
            if isinstance(choice, Choice):
                return choice
            size_range = choice

    def _choose_again(self, size_range: SizeRange, runs: ParallelRuns) -> Choice | SizeRange:
        """The choice by rows from models that are there, or the range to search if they do not suffice."""
        while True:
            choice = self.compared(size_range, runs)
            if isinstance(choice, Choice) or choice.largest > self._searched:
                return choice
            size_range = choice

    def held_out_models(self, choice: Choice) -> list[HeldOutModel]:
        """None: rows are not read once more for what they would say."""
        return []

    def advance(self, size_range: SizeRange, design: Design | None, runs: ParallelRuns) -> None:
        """Continue all runs to the largest size in the range."""
        self._searched = size_range.largest
        super().advance(size_range, design, runs)

    def scored_folds(self) -> list[ScoredFold]:
        """What the finished folds say of the models of every search."""
        return super().scored_folds() if self._by_rows is None else self._by_rows

    def _scored_by_rows(self) -> list[ScoredFold]:
        """Losses of all models of the finished folds by blocks of rows, in one pass over their columns."""
        numbers = self._finished()
        models = [[self._refitters[number](sorted(support)) for support in self._known[number]] for number in numbers]
        X, blocks = self.problem.X, self.measure.blocks
        fold_of_row = np.full(X.n_rows, -1, dtype=np.int16)
        for place, number in enumerate(numbers):
            fold_of_row[self.folds[number - 1].test] = place
        losses, weight = losses_by_blocks(
            X, self.problem.target.y[0], self.problem.measure, models, fold_of_row, blocks
        )
        found = []
        for place, number in enumerate(numbers):
            own: Any = np.flatnonzero(weight[place])
            own = slice(None) if len(own) == blocks.count else own
            known = dict(zip(self._known[number], (sums[:, own] for sums in losses[place]), strict=True))
            tables = [self._table(run, known) for run in self._runs[number]]
            found.append(ScoredFold(BlockWeights(np.arange(blocks.count)[own], weight[place][own]), tables))
        return found


def losses_by_blocks(
    X: Chunks,
    y: np.ndarray,
    loss: Loss,
    models: Sequence[Sequence[RidgeFits]],
    fold_of_row: np.ndarray,
    blocks: RowBlocks,
) -> tuple[list[list[np.ndarray]], np.ndarray]:
    """Sums of the losses of the models of every fold over every block of its rows, each of shape (R, blocks).

    With them the weights of the blocks, shape (folds, blocks). Rows belong to one fold, or to none (-1).
    """
    columns = np.unique(np.concatenate([one.columns for fold in models for one in fold])).astype(np.intp)
    fits = [packed(fold, columns) for fold in models]
    sums = [np.zeros((blocks.count, len(intercept))) for _, intercept in fits]
    weight = np.zeros((len(models), blocks.count))
    beside = (y, fold_of_row, blocks.block, blocks.share)
    for _, parts in X.map(_block_losses, loss, fits, blocks.count, beside=beside, features=columns):
        for fold, (losses, own) in enumerate(parts):
            sums[fold] += losses
            weight[fold] += own
    ends = [np.cumsum([len(one.intercept) for one in fold])[:-1] for fold in models]
    return [np.split(one.T, end) for one, end in zip(sums, ends, strict=True)], weight


def _block_losses(
    chunk: np.ndarray,
    y: np.ndarray,
    fold_of_row: np.ndarray,
    block: np.ndarray,
    share: np.ndarray,
    loss: Loss,
    fits: Sequence[tuple[np.ndarray, np.ndarray]],
    n_blocks: int,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Fold after fold, sums of the losses of a chunk's rows by blocks, shape (blocks, M), and weights of the blocks."""
    for fold, (coef, intercept) in enumerate(fits):
        rows = np.flatnonzero(fold_of_row == fold)
        rows = rows[np.argsort(block[rows], kind="stable")]
        found = np.zeros((n_blocks, len(intercept)))
        step = max(1, LOSS_NUMBERS // len(intercept))
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            scores = chunk[some].astype(np.float64, copy=False) @ coef
            scores += intercept
            losses = loss.held_out(np.broadcast_to(y[some, None], scores.shape), scores) * share[some, None]
            first = np.flatnonzero(np.diff(block[some], prepend=-1))
            found[block[some[first]]] += np.add.reduceat(losses, first, axis=0)
        yield found, np.bincount(block[rows], weights=share[rows], minlength=n_blocks)


def measure_by_moments(
    design: Design, problem: LinearProblem, folds: list[Fold], measure: Measure
) -> MomentsMeasure | None:
    """The measure from sums of folds, where the design has them and nothing but squared error is needed."""
    if measure.scorer is not None or not isinstance(design, ChunkedDesign) or not problem.closed_form:
        return None
    held_out = _held_out_parts(design, folds)
    if held_out is None:
        return None
    intercept = float(problem.target.y[0, 0] - design.sums.target[0])  # type: ignore[index]
    return MomentsMeasure(measure.problem, None, measure.y, measure.blocks, design.sums, intercept, held_out)


def _held_out_parts(design: ChunkedDesign, folds: list[Fold]) -> np.ndarray | None:
    """Which parts of the rows each fold holds out; None unless every row is held out by one fold at most."""
    found = parts_of_folds(design.weights, FoldWeights(folds))
    if found is None or design.sums.n_parts != found[1].shape[1]:
        return None
    part, shares = found
    held_out = shares == 0
    if np.any(held_out[:, design.sums.weight > 0].sum(axis=0) > 1):  # rows without weight are in no fold
        return None
    counted = design.weights > 0
    for fold, parts in zip(folds, held_out, strict=True):
        expected = np.count_nonzero(counted & parts[part])
        if np.count_nonzero(counted[fold.test] & parts[part[fold.test]]) != expected:
            return None
    return held_out
