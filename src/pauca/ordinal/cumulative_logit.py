"""Proportional odds as a loss of one score: the thresholds between classes are minimised out, which couples rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pauca.losses import Loss, Slopes
from pauca.losses.base import CompiledRows
from pauca.losses.classification import LEAST_PROBABILITY
from pauca.ordinal.compiled_lines import NARROW, CompiledLines, Lines, OrderedRows
from pauca.ordinal.probabilities import LARGEST_EXPONENT
from pauca.ordinal.tridiagonal import Tridiagonal, solve_one
from pauca.tolerances import LINE_SEARCH_SLACK, SUFFICIENT_DECREASE

# Newton's method ends with a step predicted to gain less than this: it leaves about the square of that. Where a class
# has less than this share of the weight, all that it changes is as small, and the last step gains less in proportion.
LAST_STEP_BELOW = 1e-12
RARE_BELOW = 1e-3

# Steps predicted to gain less than this share of the weight of the rarest class are taken as they are.
TRUSTED_SHARE = 1e-3
MOST_STEPS = 100
MOST_HALVINGS = 40

# A step leaves at least this share of the distance between two thresholds.
LEAST_LEFT = 0.1


def _softplus(x: np.ndarray) -> np.ndarray:
    """``log(1 + e^x)``, several times faster than ``logaddexp``."""
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0.0)


def _is_wide(thresholds: np.ndarray) -> bool:
    return max(float(thresholds.max(initial=0.0)), -float(thresholds.min(initial=0.0))) > NARROW


class CumulativeLogit(Loss):
    """Minus the log-likelihood of ordered classes with ``P(class <= c) = 1 / (1 + e^(a - threshold_c))``.

    McCullagh (1980). The thresholds are free: they are those of the highest likelihood for the scores of all rows, so
    the loss is bound to its rows by ``tuned``. A constant in all scores moves them along and changes nothing.
    """

    explains = "deviance"
    ratio = "odds ratio"
    classifies = True
    coupled = True
    shift_invariant = True
    may_diverge = True
    smoothness = 0.5
    lipschitz = 1.0

    def tuned(self, y: np.ndarray, weights: np.ndarray) -> Loss:
        return BoundCumulativeLogit(y[0], weights)

    def minus_twice_log_likelihood(self, losses: np.ndarray, n_rows: int) -> float:
        return 2.0 * n_rows * float(np.sum(losses))

    def value(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        raise ValueError("The loss of ordered classes has no value before it knows all rows: call tuned(y, weights).")

    def derivative(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.value(y, a)

    def curvature(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.value(y, a)


class BoundCumulativeLogit(CumulativeLogit):
    """The loss of given rows; scores always have shape (..., n), and targets are not looked at again.

    Conventions
    -----------
    m = C - 1 thresholds between the C classes that have weight; u = threshold above a row's class less its score, l the
    same for the threshold below: infinite for the last class and minus infinity for the first
    The loss of a row is ``log(1 + e^-u) + log(1 + e^l) - log(1 - e^-(u - l))``; the last term is its class's.
    Lines are scores in the order of classes, shape (B, n), around their middle. Sides are the rows below every
    threshold, class after class, then the rows above every threshold: shape (B, N), each row once or twice. The odds of
    a side are those of a class beyond the threshold: ``e^-u`` and ``e^l``.
    """

    def __init__(self, codes: np.ndarray, weights: np.ndarray) -> None:
        self.weights = weights
        weighted = weights > 0
        self.present = np.unique(codes[weighted])
        """The classes that have weight."""
        code = np.clip(np.searchsorted(self.present, codes), 0, len(self.present) - 1)
        self._known = np.isin(codes, self.present)
        self._order = np.argsort(code, kind="stable")
        self._place = np.argsort(self._order)
        self._share = np.bincount(code[weighted], weights=weights[weighted]) / weights[weighted].sum()
        self._least_curvature = 1e-12 * float(self._share.min())
        self._between_share = self._share[1:-1] * weights.sum()
        self._between_shares: list[float] = self._between_share.tolist()
        self._set_sides(code[self._order])
        # Each side is summed by itself: next to the others' a class may have less weight than rounding.
        below, above = np.cumsum(self._share)[:-1], np.cumsum(self._share[::-1])[-2::-1]
        self._start = np.log(below) - np.log(above)
        self._starts = self._start.tolist()
        self._trusted_below = TRUSTED_SHARE * float(self._share.min())
        self._last_below = LAST_STEP_BELOW * min(1.0, float(self._share.min()) / RARE_BELOW)
        self._last: _Fitted | None = None
        self._base: _Curved | None = None
        self._compiled = CompiledLines(self._ordered_rows(), lambda lines: self._best_thresholds(self._scores(lines)))

    def _ordered_rows(self) -> OrderedRows:
        ends = np.searchsorted(self._line_code, np.arange(len(self.present) + 1))
        tolerances = self._least_curvature, self._trusted_below, self._last_below
        return OrderedRows(
            self._order, self._line_weights, ends, self._between_share, self._start, *tolerances, MOST_STEPS
        )

    def _set_sides(self, code: np.ndarray) -> None:
        v, m = self.weights[self._order], len(self.present) - 1
        self._line_weights, self._line_code = v, code
        self._weighted: slice | np.ndarray = slice(None) if v.all() else np.flatnonzero(self.weights)
        self._middle_weights = self.weights[self._weighted] / self.weights[self._weighted].sum()
        first, self._n_below = int(np.sum(code == 0)), int(np.sum(code < m))
        self._above = slice(first, None)
        """The lines above a threshold; the first ``_n_below`` are below one."""
        self._side = np.concatenate([code[: self._n_below], code[self._above] - 1 + m])
        self._side_starts = np.searchsorted(self._side, np.arange(2 * m))
        self._side_row = np.concatenate([self._order[: self._n_below], self._order[self._above]])
        self._side_weights = self._sides(v)
        self._sign = np.where(self._side < m, 1.0, -1.0)

    def n_parameters(self, n_coefficients: int, n_outputs: int, *, center: bool) -> int:
        return n_coefficients + len(self.present) - 1  # the thresholds

    def tuned(self, y: np.ndarray, weights: np.ndarray) -> Loss:
        return self

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def value(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        lines = self._lines(a)
        if lines is not None:
            return lines.losses()
        at = self._fitted(a)
        return self._in_order(self._losses(at.scores, at.thresholds), a)

    def derivative(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.slopes(y, a).derivative

    def curvature(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.slopes(y, a).curvature

    def slopes(self, y: np.ndarray, a: np.ndarray) -> Slopes:
        lines = self._lines(a, curved=True)
        if lines is not None:
            return lines.slopes()
        at = self._curved(a)
        sides = np.stack([at.beyond, at.bent])
        sides[0] *= self._sign
        derivative, curvature = self._to_lines(sides).take(self._place, axis=-1).reshape(2, *a.shape)
        return Slopes(derivative, curvature)

    def row_coupling(self, a: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """How the slopes along columns change with the thresholds, in units of their own curvature."""
        hessian, across = self._across(a, columns)
        return -hessian.half_solve(across)

    def coupled_image(self, a: np.ndarray, columns: np.ndarray) -> np.ndarray:
        hessian, across = self._across(a, columns)
        moved = hessian.solve(across)
        lines = self._lines(a, curved=True)
        if lines is not None:
            return lines.image(moved)
        sides = np.concatenate([moved, moved], axis=-1).take(self._side, axis=-1) * self._weighted_bent(a)
        return self._to_lines(sides).take(self._place, axis=-1)

    def _across(self, a: np.ndarray, columns: np.ndarray) -> tuple[Tridiagonal, np.ndarray]:
        """Second derivatives in the thresholds, and in thresholds and columns."""
        lines = self._lines(a, curved=True)
        if lines is not None:
            return lines.hessian.reshaped(a.shape[:-1]), lines.across(columns)
        hessian = self._curved(a).hessian.reshaped(a.shape[:-1])
        below, above = self._sums(self._sides(columns.take(self._order, axis=-1)) * self._weighted_bent(a))
        return hessian, below + above

    def _weighted_bent(self, a: np.ndarray) -> np.ndarray:
        return (self._curved(a).bent * self._side_weights).reshape(*a.shape[:-1], -1)

    def likely_concordance_at(self, a: np.ndarray) -> float:
        """That of ``log(1 + e^x)``: thresholds that move along would make it larger, and hardly ever do."""
        return 1.0

    def thresholds(self, a: np.ndarray) -> np.ndarray:
        """The best thresholds for scores of shape (..., n): shape (..., m)."""
        lines = self._lines(a)
        if lines is not None:
            return lines.thresholds()
        at = self._fitted(a)
        return (at.thresholds + at.scores.middle).reshape(*a.shape[:-1], -1)

    def _lines(self, a: np.ndarray, *, curved: bool = False) -> Lines | None:
        """The scores in compiled code; None where it is not used, or numbers could overflow in it."""
        return self._compiled.at(a, curved=curved) if len(self.present) > 1 else None

    def compiled_rows(self) -> CompiledRows | None:
        return self._compiled.rows() if len(self.present) > 1 else None

    def _fitted(self, a: np.ndarray) -> _Fitted:
        """Scores with their best thresholds; those of the last scores are kept."""
        if self._last is None or self._last.of is not a:
            scores = self._scores(a)
            self._last = _Fitted(a, scores, self._best_thresholds(scores))
        return self._last

    def _curved(self, a: np.ndarray) -> _Curved:
        """What the best thresholds leave of slopes and curvatures; that of the last scores is kept."""
        if self._base is None or self._base.of is not a:
            at = self._fitted(a)
            beyond, bent = self._slopes_at(at.scores, at.thresholds)
            hessian = self._newton(beyond, bent, at.thresholds)[1]
            pull = self._sign * self._side_weights * bent[0]
            self._base = _Curved(a, at.scores.sides, at.thresholds, beyond, bent, hessian, pull)
        return self._base

    def _scores(self, a: np.ndarray) -> _Scores:
        lines = a.reshape(-1, a.shape[-1])
        middle = (lines[:, self._weighted] @ self._middle_weights)[:, None]
        sides = lines.take(self._side_row, axis=1)
        sides -= middle
        sides *= self._sign
        # The rows of a fold may be of one class: then there is no threshold.
        extent = max(float(sides.max(initial=0.0)), -float(sides.min(initial=0.0)))
        return _Scores(middle, sides, np.exp(sides) if extent <= NARROW else None, extent)

    def _sides(self, lines: np.ndarray) -> np.ndarray:
        """Values of lines, shape (..., n), at the sides, shape (..., N)."""
        return np.concatenate([lines[..., : self._n_below], lines[..., self._above]], axis=-1)

    def _to_lines(self, sides: np.ndarray) -> np.ndarray:
        """Sums over the one or two sides of every row, shape (..., n)."""
        found = np.zeros((*sides.shape[:-1], len(self.weights)))
        found[..., : self._n_below] = sides[..., : self._n_below]
        found[..., self._above] += sides[..., self._n_below :]
        return found

    def _sums(self, sides: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sums over the rows below every threshold, and over those above, shape (..., m) each."""
        sums = np.add.reduceat(sides, self._side_starts, axis=-1)
        return sums[..., : len(self._share) - 1], sums[..., len(self._share) - 1 :]

    def _in_order(self, lines: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Values of lines as those of rows."""
        return lines.take(self._place, axis=1).reshape(a.shape)

    def _best_thresholds(self, scores: _Scores) -> np.ndarray:
        found = self._within_reach(scores, self._likely_thresholds(scores))
        if found.size and len(found) == 1 and scores.exponentials is not None:
            quick = self._best_of_one(scores.exponentials[0], found[0].tolist(), scores.extent)
            if quick is not None:
                return np.array([quick])
        open_ = np.arange(len(found))
        for _ in range(MOST_STEPS):
            start = found[open_]
            gradient, hessian = self._newton(*self._slopes_at(scores, start), start)
            step = -hessian.solve(gradient)
            predicted = -0.5 * np.einsum("bm,bm->b", gradient, step)
            # Where there is next to no curvature, a step is of any length.
            step = self._within_reach(scores, start + step) - start
            # Thresholds far apart have next to no curvature in their distance: a step that gains little may swap them.
            swapped = np.any(np.diff(start + step, axis=1) <= 0, axis=1)
            doubted = swapped | (predicted > self._trusted_below)
            if doubted.any():
                expected = np.clip(-0.5 * np.einsum("bm,bm->b", gradient, step), 0.0, predicted)
                step = self._shortened(scores, start, step, expected, doubted)
            found[open_] = start + step
            going_on = predicted > self._last_below
            if not going_on.any():
                break
            if not going_on.all():
                open_, scores = open_[going_on], scores.only(going_on)
        return found

    def _within_reach(self, scores: _Scores, thresholds: np.ndarray) -> np.ndarray:
        """Thresholds no further out than the best ones can be; they keep their order.

        Every second derivative in two thresholds, or in a threshold and a score, is at most zero: the best thresholds
        rise with every score. So they lie between those of scores that are all the lowest, and all the highest.
        """
        return np.clip(thresholds, self._start - scores.extent, self._start + scores.extent)

    def _best_of_one(self, exponentials: np.ndarray, thresholds: list[float], extent: float) -> list[float] | None:
        """The best thresholds of one line near given ones, by numbers instead of short arrays: refits ask for one.

        None where a step must be shortened, swaps thresholds, or leads beyond where the best ones can be.
        """
        for _ in range(MOST_STEPS):
            if not -NARROW <= thresholds[0] <= thresholds[-1] <= NARROW:
                return None
            beyond, bent = self._slopes_of_one(exponentials, thresholds)
            gradient, diagonal, off = self._newton_of_one(beyond, bent, thresholds)
            step = solve_one(diagonal, off, gradient)
            predicted = 0.5 * sum(g * by for g, by in zip(gradient, step, strict=True))
            if not predicted <= self._trusted_below:
                return None
            thresholds = [t - by for t, by in zip(thresholds, step, strict=True)]
            if not all(abs(t - alike) <= extent for t, alike in zip(thresholds, self._starts, strict=True)):
                return None
            if not all(t < above for t, above in pairwise(thresholds)):
                return None
            if predicted <= self._last_below:
                return thresholds
        return None

    def _slopes_of_one(self, exponentials: np.ndarray, thresholds: list[float]) -> tuple[np.ndarray, np.ndarray]:
        """``_slopes_at`` for one line, shape (N,) each."""
        factors = [math.exp(-t) for t in thresholds] + [math.exp(t) for t in thresholds]
        odds = np.array(factors).take(self._side)
        odds *= exponentials
        return _beyond_and_bent(odds)

    def _newton_of_one(
        self, beyond: np.ndarray, bent: np.ndarray, thresholds: list[float]
    ) -> tuple[list[float], list[float], list[float]]:
        """``_newton`` for one line: gradient, and diagonal and off-diagonal of the Hessian."""
        m = len(thresholds)
        first = np.add.reduceat(beyond * self._side_weights, self._side_starts).tolist()
        second = np.add.reduceat(bent * self._side_weights, self._side_starts).tolist()
        gradient = [first[m + j] - first[j] for j in range(m)]
        diagonal = [second[j] + second[m + j] + self._least_curvature for j in range(m)]
        off = []
        for j, share in enumerate(self._between_shares):
            gap = thresholds[j + 1] - thresholds[j]
            left = -math.expm1(-gap)
            slope = share * math.exp(-gap) / left
            bend = slope / left
            gradient[j] += slope
            gradient[j + 1] -= slope
            diagonal[j] += bend
            diagonal[j + 1] += bend
            off.append(-bend)
        return gradient, diagonal, off

    def _likely_thresholds(self, scores: _Scores) -> np.ndarray:
        """Where those of other scores go to first order: scores change little from call to call."""
        base = self._base
        if base is None:
            return np.repeat(self._start[None], len(scores.sides), axis=0)
        changes = scores.sides - base.sides[0]
        changes *= base.pull
        below, above = self._sums(changes)
        found = base.thresholds[0] + base.hessian.only(0).solve(below + above)
        if len(self._start) == 1:
            return found
        ascending = np.all(found[:, 1:] > found[:, :-1], axis=1)
        return found if ascending.all() else np.where(ascending[:, None], found, base.thresholds[0])

    def _shortened(
        self, scores: _Scores, start: np.ndarray, step: np.ndarray, expected: np.ndarray, doubted: np.ndarray
    ) -> np.ndarray:
        """Newton's steps: ``doubted`` ones are halved until the thresholds keep their order and the value falls."""
        value = self._losses(scores, start) @ self._line_weights
        gaps, change = np.diff(start, axis=1), np.diff(step, axis=1)
        closing = np.where(change < 0, -change / gaps, 0.0).max(axis=1, initial=0.0)
        length = np.minimum(1.0, (1.0 - LEAST_LEFT) / np.maximum(closing, 1e-300))
        for _ in range(MOST_HALVINGS):
            there = self._losses(scores, start + length[:, None] * step) @ self._line_weights
            fallen = there <= value - SUFFICIENT_DECREASE * length * expected + LINE_SEARCH_SLACK * value
            risen = ~fallen & doubted
            if not risen.any():
                break
            length = np.where(risen, 0.5 * length, length)
        return np.asarray(length[:, None] * step)

    def _newton(self, beyond: np.ndarray, bent: np.ndarray, thresholds: np.ndarray) -> tuple[np.ndarray, Tridiagonal]:
        """Gradient and Hessian in the thresholds."""
        below, above = self._sums(beyond * self._side_weights)
        gradient = above - below
        below, above = self._sums(bent * self._side_weights)
        # Classes that are separated without error leave thresholds without curvature.
        diagonal = below + above + self._least_curvature
        # What the distances between thresholds add.
        gaps = thresholds[:, 1:] - thresholds[:, :-1]
        left = -np.expm1(-gaps)
        first = self._between_share * np.exp(-gaps) / left
        second = first / left
        gradient[:, :-1] += first
        gradient[:, 1:] -= first
        diagonal[:, :-1] += second
        diagonal[:, 1:] += second
        return gradient, Tridiagonal.of(diagonal, -second)

    def _slopes_at(self, scores: _Scores, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities of a class beyond the threshold of every side, and their derivatives, shape (B, N) each."""
        return _beyond_and_bent(self._odds(scores, thresholds))

    def _odds(self, scores: _Scores, thresholds: np.ndarray) -> np.ndarray:
        if scores.exponentials is None or _is_wide(thresholds):
            return np.exp(np.clip(self._distances(scores, thresholds), -LARGEST_EXPONENT, LARGEST_EXPONENT))
        factors = np.exp(np.concatenate([-thresholds, thresholds], axis=1))
        found = factors.take(self._side, axis=1)
        found *= scores.exponentials
        return found

    def _distances(self, scores: _Scores, thresholds: np.ndarray) -> np.ndarray:
        """How far the scores of every side lie beyond its threshold."""
        return scores.sides + np.concatenate([-thresholds, thresholds], axis=1).take(self._side, axis=1)

    def _losses(self, scores: _Scores, thresholds: np.ndarray) -> np.ndarray:
        """Losses of all lines, shape (B, n)."""
        if scores.exponentials is None or _is_wide(thresholds):
            sides = _softplus(self._distances(scores, thresholds))
        else:
            sides = np.log1p(self._odds(scores, thresholds))
        found = self._to_lines(sides)
        inner = slice(self._above.start, self._n_below)
        found[:, inner] -= np.log(-np.expm1(-np.diff(thresholds, axis=1))).take(self._line_code[inner] - 1, axis=1)
        return found

    def losses(self, a: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        """Losses of all rows at given thresholds, shape (..., n)."""
        scores = self._scores(a)
        return self._in_order(self._losses(scores, thresholds.reshape(len(scores.sides), -1) - scores.middle), a)

    def held_out_losses(
        self, y: np.ndarray, weights: np.ndarray, test: np.ndarray
    ) -> Callable[[np.ndarray], np.ndarray]:
        """Losses at the thresholds of the rows of the fit; no probability counts as less than the least one."""
        most, known = -np.log(LEAST_PROBABILITY), self._known[test]

        def losses(a: np.ndarray) -> np.ndarray:
            return np.where(known, np.minimum(self.value(y, a)[..., test], most), most)

        return losses


def _beyond_and_bent(odds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of given odds, in whose place they are written, and their derivatives."""
    within = odds + 1.0
    np.reciprocal(within, out=within)
    # With all digits where it is small: a heavy row may have a tiny probability.
    odds *= within
    within *= odds
    return odds, within


@dataclass(frozen=True, eq=False)
class _Scores:
    """Scores of rows: one exponential for every side of a row, whatever the thresholds."""

    middle: np.ndarray
    sides: np.ndarray
    """Scores around their middle: those below thresholds, and minus those above."""
    exponentials: np.ndarray | None
    """Of ``sides``; None where scores are so far apart that products of exponentials could overflow."""
    extent: float
    """The largest distance of a score from its middle."""

    def only(self, some: np.ndarray) -> _Scores:
        """Some of the lines."""
        exponentials = None if self.exponentials is None else self.exponentials[some]
        return _Scores(self.middle[some], self.sides[some], exponentials, self.extent)


@dataclass(frozen=True, eq=False)
class _Fitted:
    """Scores with their best thresholds, shape (B, m)."""

    of: np.ndarray
    scores: _Scores
    thresholds: np.ndarray


@dataclass(frozen=True, eq=False)
class _Curved:
    """Best thresholds of scores, the probabilities beyond them with their derivatives, and the Hessian there."""

    of: np.ndarray
    sides: np.ndarray
    thresholds: np.ndarray
    beyond: np.ndarray
    bent: np.ndarray
    hessian: Tridiagonal
    """In the thresholds."""
    pull: np.ndarray
    """How a change of the first line's sides moves the slopes in the thresholds, shape (N,)."""
