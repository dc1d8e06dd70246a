"""Which model to take: losses on held-out rows, compared pair by pair, and information criteria."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pauca.design.base import row_blocks
from pauca.results.choice import Choice, Rule, standard_errors
from pauca.statistics.criteria import CRITERIA, ModelCounts

# Scores that differ by less are the same, and the smaller size is taken.
SAME_WITHIN = 1e-12

# Features are chosen at all only if the best model beats the constant by so many standard errors: with fewer, models of
# pure noise are taken too often, with one whole error weak signals in few rows are lost (docs/choosing_k.md).
BEATS_CONSTANT_BY = 0.75

# How many sizes ahead are looked at before a size counts as good, by whether classes are predicted. On 24 real tables
# with two classes, several splits each, the loss on new rows was 4 % lower with four than with none, and the largest
# excess over l1 fell from 1.8 to 1.4 times; for numbers nothing was gained (docs/choosing_k.md).
SIZES_AHEAD = {False: 0, True: 4}

# How much they are held against it: at most so many standard errors of the difference, as more is no chance. Two true
# features may leave half the loss of one, while overfitting raises it again at three. On 48 simulated tables of two in
# 60 x 2,000 that chose nothing the loss is 16 % lower (se 4 %) than with the full average, on 60 splits of 30 tables of
# genes and words 1.8 % (1.7 %); of 340 tables of noise 225 have no feature, 230 with the full average.
LOW_BY_CHANCE = 1.5

# Sizes at the end of a range that are within one standard error of the best are a reason to compare larger ones if that
# error is at least this share of the loss: with less there is little to gain. On 62 splits of 13 tables of numbers with
# more rows than columns, nine of them real, the loss fell by 1.9 % on average (se 0.8 %; docs/choosing_k.md) and rose
# nowhere; without this share ranges grew by a third more, and the loss did not fall further. On fresh tables of classes
# it fell by 12 % (se 4 %) for four of words and not at all for 53 others; within two errors of 1 % it fell no further,
# in twice the time.
WORTH_A_LOOK = 0.02

# Differences of candidates are computed in blocks of about this many numbers, which stay in the cache.
DIFFERENCES = 1 << 15


@dataclass(frozen=True, eq=False)
class HeldOutLosses:
    """Losses of candidates on held-out rows, by blocks of rows that are independent of each other."""

    sums: np.ndarray
    """Weighted sums over the rows of every block, shape (..., blocks)."""
    weight: np.ndarray
    """What the weights of every block add up to, shape (blocks,); blocks without weight are added for caution."""

    @cached_property
    def mean(self) -> np.ndarray:
        """Mean loss of every candidate, by which they are compared; infinite where it overflows."""
        return self._mean(self.sums)

    @property
    def observed(self) -> np.ndarray:
        """The same on the rows themselves, without what is added for caution."""
        counted = self.weight > 0
        return self.mean if counted.all() else self._mean(self.sums[..., counted])

    def _mean(self, sums: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            mean = sums.sum(axis=-1) / self.weight.sum()
        return np.where(np.isnan(mean), np.inf, mean)

    def error(self, reference: np.ndarray | float = 0.0) -> np.ndarray:
        """Standard errors of the mean differences to a reference with sums of shape (blocks,).

        Candidates are scored on the same rows, whose difficulty they share: what separates them is the spread of
        their differences, not that of their losses.
        """
        counted = np.flatnonzero(self.weight > 0)
        count, total = len(counted), self.weight.sum()
        error = np.zeros(self.sums.shape[:-1])
        if count < 2:
            return error
        weight, reference = self.weight[counted], np.broadcast_to(reference, len(self.weight))[counted]
        every = self.sums.reshape(-1, len(self.weight))
        with np.errstate(over="ignore", invalid="ignore"):
            for some in row_blocks(len(every), count, DIFFERENCES):
                difference = every[some].take(counted, axis=1)
                difference -= reference
                difference -= (difference.sum(axis=1, keepdims=True) / total) * weight
                error.flat[some] = np.vecdot(difference, difference)
            error = np.sqrt(count / (count - 1) * error) / total
        return np.where(np.isfinite(error), error, 0.0)


@dataclass(frozen=True)
class Chosen:
    """What a rule has chosen among candidates of shape (searches, ridges, sizes)."""

    place: tuple[int, int, int]
    best: tuple[int, int, int]
    error: np.ndarray
    """Standard error of every candidate's difference to the best."""
    leading: int
    """Position of the smallest size that is as good as the best, before it is compared with a constant."""
    within_one_error: int
    """Position of the smallest size within one standard error of the best."""
    promising: int
    """Position of the largest size that may be as good as the best."""


def choose(losses: HeldOutLosses, sizes: np.ndarray, rule: Rule, *, ahead: int = 0) -> Chosen:
    """The smallest size, then the largest ridge, whose loss is within some standard errors of the best.

    The empty model is taken unless the best beats it by ``BEATS_CONSTANT_BY``. With "best" it is the least loss. Losses
    are compared ``without_isolated_minima`` among so many sizes ``ahead``.
    """
    mean = without_isolated_minima(losses, sizes, ahead)
    finite = np.abs(mean[np.isfinite(mean)])
    same = SAME_WITHIN * max(1.0, float(finite.max(initial=0.0)))
    best = _preferred(mean <= mean.min() + same, mean)
    error = losses.error(losses.sums[best])
    allowed = standard_errors(rule)
    good = mean <= mean[best] + allowed * error + same
    place = _preferred(good, mean)
    leading = place[2]
    if sizes[0] == 0 and allowed > 0 and place[2] > 0:
        needed = max(allowed, BEATS_CONSTANT_BY) * error[0, 0, 0]
        if mean[0, 0, 0] <= mean[best] + needed + same:
            place = (*best[:2], 0)
    near = mean <= mean[best] + error + same
    within_one_error = _preferred(near, mean)[2]
    uncertain = (near & (error >= WORTH_A_LOOK * mean[best])).any(axis=(0, 1))
    promising = max(leading, int(np.flatnonzero(uncertain).max(initial=0)))
    return Chosen(place, best, error, leading, within_one_error, promising)


def without_isolated_minima(losses: HeldOutLosses, sizes: np.ndarray, ahead: int) -> np.ndarray:
    """Mean losses, none below the mean of its own and those of the next sizes up to ``ahead`` more.

    None is raised by more than ``LOW_BY_CHANCE`` standard errors of its difference to that mean.
    In few rows the loss of a single size is noisy. One that is low while the next sizes are worse is low by
    chance: a model that is good stays good when a feature more is allowed. Smaller sizes say nothing of the kind.
    """
    mean, found = losses.mean, losses.mean.copy()
    finite = np.isfinite(mean)
    for place in np.flatnonzero(sizes > 0) if ahead else ():
        near = slice(place, int(np.searchsorted(sizes, sizes[place] + ahead, side="right")))
        count = np.maximum(1, finite[..., near].sum(axis=-1))
        average = np.where(finite[..., near], mean[..., near], 0.0).sum(axis=-1) / count
        low = np.nonzero(average > mean[..., place])
        sums = np.where(finite[..., near, None][low], losses.sums[..., near, :][low], 0.0).sum(axis=1)
        sums /= count[low][:, None]
        own = losses.sums[..., place, :][low]
        most = LOW_BY_CHANCE * HeldOutLosses(sums - own, losses.weight).error()
        found[..., place][low] += np.minimum(average[low] - mean[..., place][low], most)
    return found


def _preferred(good: np.ndarray, mean: np.ndarray) -> tuple[int, int, int]:
    """Of the good candidates: the smallest size, of these the largest ridge, of these the best search."""
    size = int(np.flatnonzero(good.any(axis=(0, 1)))[0])
    ridge = int(np.flatnonzero(good[:, :, size].any(axis=0))[-1])
    search = int(np.argmin(np.where(good[:, ridge, size], mean[:, ridge, size], np.inf)))
    return search, ridge, size


def choose_by_folds(sizes: np.ndarray, fold_scores: np.ndarray, rule: Rule, scoring: str) -> Choice:
    """The choice by scores of shape (folds, sizes), higher being better, where rows have no score of their own.

    The smallest size whose mean is within some standard errors of the best, which are those of the differences to it
    over the folds; "best" takes the highest mean.
    """
    losses = HeldOutLosses(-fold_scores.T[None, None], np.ones(len(fold_scores)))
    found = choose(losses, sizes, rule)
    error = losses.error()[0, 0]
    return Choice(
        rule,
        scoring,
        sizes,
        -losses.mean[0, 0],
        error,
        fold_scores,
        int(sizes[found.place[2]]),
        best_size=int(sizes[found.best[2]]),
        n_folds=len(fold_scores),
        difference_error=losses.error(losses.sums[found.place])[0, 0],
        one_error_size=int(sizes[found.within_one_error]),
    )


def choose_by_criterion(
    criterion: str, fits: Sequence[float], parameters: Sequence[int], sizes: Sequence[int], n_rows: int, n_units: int
) -> Choice:
    """The size with the lowest information criterion, the smallest among equals; ``fits`` are ``-2 log L``."""
    compared = np.array(sizes)
    values = CRITERIA[criterion](np.array(fits), ModelCounts(np.array(parameters), compared, n_rows, n_units))
    return Choice(criterion, criterion, compared, values, None, None, int(compared[np.argmin(values)]))


def nothing_scored(size: int, rule: Rule, scoring: str) -> Choice:
    """The choice where the run was stopped before any fold had a model: it keeps what it has."""
    return Choice(rule, scoring, np.array([size]), np.zeros(1), np.zeros(1), np.zeros((0, 1)), size)
