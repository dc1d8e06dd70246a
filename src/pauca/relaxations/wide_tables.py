"""Root bounds of every size on tables with so many columns that their Gram matrix is not formed.

With a ridge, D is the penalty itself, and ``r = slope - Mu`` are the correlations of the columns with the residual of
u: one pass over X for all sizes. The relaxation is solved on a working set of columns, to which those are added whose
correlation is too large, until there are none. As the bound takes the largest scores of all columns, it holds after
every round.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pauca.relaxations.perspective import IN, MOST_SQUARES, Quadratic, Relaxed, relax
from pauca.relaxations.tree import Incumbent

# The working set begins with the incumbents and this many columns by their correlation with the target; each round
# adds at most as many for every size.
FIRST_COLUMNS = 200
ADDED_COLUMNS = 200

# No round goes beyond this many columns: their systems would cost more than the bound is worth.
MOST_COLUMNS = 1500

ROUNDS = 20

# A bound is as good as solved when it can gain no more than this share of the gap.
SOLVED_SHARE = 0.01

# Steps of the relaxation in a round: the next round goes on from its pieces. With 200 columns and 4 steps all sizes to
# 50 of a table with 10,000 columns take half the time of 100 columns and 5 steps from the pieces of each size.
STEPS = 4


class Columns(Protocol):
    """Products of standardised columns."""

    def products(self, columns: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Products of some columns with others, which they are among."""
        ...

    def residual_products(self, columns: np.ndarray, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Products of all columns with the residuals of models on some columns, and the squares of their fits."""
        ...


@dataclass(frozen=True, eq=False)
class RootBound:
    """The bound of one size, and the columns that a better model can have."""

    bound: float
    kept: np.ndarray


def root_bounds(
    columns: Columns,
    slope: np.ndarray,
    penalty: np.ndarray,
    constant: float,
    incumbents: Sequence[Incumbent],
    *,
    always: Sequence[int],
    usable: np.ndarray,
    slack: float,
) -> dict[int, RootBound]:
    """Bounds of some sizes over all ``usable`` columns; ``penalty`` must be positive."""
    incumbents = sorted(incumbents, key=lambda one: one.size)
    working = _WorkingSet(columns, slope, penalty, constant)
    working.add(_first(slope / np.sqrt(penalty), incumbents, always, usable))
    left = np.array([one.size - len(always) for one in incumbents], dtype=np.intp)
    pieces = _pieces(working.members, incumbents, always)
    best = np.full(len(left), -np.inf)
    kept = np.tile(usable, (len(left), 1))
    todo = np.arange(len(left))
    for _ in range(ROUNDS):
        found = working.relax(pieces[todo], left[todo])
        pieces[todo] = found.pieces
        rest, squares = columns.residual_products(working.members, found.u)
        bound, scores, inside = _dual(rest, squares, found.u, working.members, penalty, constant, always, left[todo])
        scores = np.where(usable & ~inside, scores, -1.0)
        for line, row in enumerate(todo):
            best[row] = max(best[row], bound[line])
            kept[row] &= ~_ruled_out(scores[line], bound[line], int(left[row]), incumbents[row], slack)
        pressing = _pressing(np.sqrt(np.maximum(2 * scores, 0.0)), found.theta, working.members, kept[todo])
        # A size is done that no column presses on, or whose bound has little left to gain: over the working set alone
        # it is what more columns can only lower. The others go on with a larger working set.
        gap = np.array([incumbents[row].value for row in todo]) - found.bound
        wants = np.array([len(some) > 0 for some in pressing]) & (found.bound - bound > SOLVED_SHARE * gap)
        todo = todo[wants]
        entering = np.unique(np.concatenate([np.zeros(0, dtype=np.intp), *itertools.compress(pressing, wants)]))
        if not len(todo) or len(working.members) + len(entering) > MOST_COLUMNS:
            break
        working.add(entering)
        pieces = np.hstack([pieces, np.zeros((len(left), len(entering)), dtype=np.int8)])
    return {one.size: RootBound(float(best[row]), kept[row]) for row, one in enumerate(incumbents)}


class _WorkingSet:
    """The columns over which the relaxations are solved, in the order they came, and their products."""

    def __init__(self, columns: Columns, slope: np.ndarray, penalty: np.ndarray, constant: float) -> None:
        self._columns, self._slope, self._penalty, self._constant = columns, slope, penalty, constant
        self.members = np.zeros(0, dtype=np.intp)
        self._hessian = np.zeros((0, 0))

    def add(self, entering: np.ndarray) -> None:
        """More columns; only their own products are computed."""
        before = len(self.members)
        self.members = np.concatenate([self.members, entering])
        hessian = np.empty((len(self.members), len(self.members)))
        hessian[:before, :before] = self._hessian
        new = self._columns.products(entering, self.members)
        hessian[before:], hessian[:, before:] = new, new.T
        each = np.arange(before, len(self.members))
        hessian[each, each] += self._penalty[entering]
        self._hessian = hessian

    def relax(self, pieces: np.ndarray, left: np.ndarray) -> Relaxed:
        """The relaxations of several sizes, ascending: each begins where the one before has ended."""
        problem = Quadratic(self._hessian, self._slope[self.members], self._constant)
        diagonal, never = self._penalty[self.members][None], np.full(1, np.inf)
        found: list[Relaxed] = []
        for line, count in zip(pieces, left, strict=True):
            start = found[-1].pieces if found else line[None]
            found.append(relax(problem, diagonal, start, np.array([count]), never, STEPS))
        return Relaxed(*(np.concatenate(parts) for parts in zip(*(vars(one).values() for one in found), strict=True)))


def _first(
    pressure: np.ndarray, incumbents: Sequence[Incumbent], always: Sequence[int], usable: np.ndarray
) -> np.ndarray:
    """The columns to begin with."""
    ranked = np.argsort(-np.where(usable, np.abs(pressure), -1.0), kind="stable")[:FIRST_COLUMNS]
    known = [j for one in incumbents for j in one.support]
    first = np.unique(np.concatenate([ranked, np.array([*known, *always], dtype=np.intp)]))
    return first[usable[first]]


def _pieces(working: np.ndarray, incumbents: Sequence[Incumbent], always: Sequence[int]) -> np.ndarray:
    pieces = np.zeros((len(incumbents), len(working)), dtype=np.int8)
    for line, one in zip(pieces, incumbents, strict=True):
        line[np.isin(working, one.support)] = 2
        line[np.isin(working, always)] = IN
    return pieces


def _dual(
    rest: np.ndarray,
    squares: np.ndarray,
    u: np.ndarray,
    working: np.ndarray,
    penalty: np.ndarray,
    constant: float,
    always: Sequence[int],
    left: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bounds, scores of all columns, and the mask of those always in."""
    inside = np.zeros(len(penalty), dtype=bool)
    inside[list(always)] = True
    own = u[:, inside[working]]
    forced = working[inside[working]]
    # On columns that are in, e = slope - Hu is what is missed; rest = slope - Mu.
    missed = rest[:, forced] - penalty[forced] * own
    charge = np.sum(missed * own + 0.5 * missed**2 / penalty[forced], axis=1)
    inner = 0.5 * (squares + np.sum(penalty[forced] * own**2, axis=1))
    scores = 0.5 * rest * rest / penalty
    free = np.where(inside, 0.0, scores)
    top = np.array(
        [np.partition(line, len(line) - k)[len(line) - k :].sum() for line, k in zip(free, left, strict=True)]
    )
    credible = (u * u) @ penalty[working] <= MOST_SQUARES * constant
    return np.where(credible, constant - inner - charge - top, -np.inf), scores, inside


def _ruled_out(scores: np.ndarray, bound: float, left: int, incumbent: Incumbent, slack: float) -> np.ndarray:
    """The columns that no better model can have: to force one of them in costs more than the gap."""
    last = np.partition(scores, -left)[-left]
    gap = incumbent.value * (1 + 1e-9) + 2 * slack - bound
    return np.asarray((scores >= 0) & (last - scores > gap))


def _pressing(pressure: np.ndarray, theta: np.ndarray, working: np.ndarray, kept: np.ndarray) -> list[np.ndarray]:
    """For each size the columns outside the working set that press to leave zero, the strongest of them."""
    pressure = np.where(kept, pressure, 0.0)
    pressure[:, working] = 0.0
    over = [np.flatnonzero(line > threshold * (1 + 1e-6)) for line, threshold in zip(pressure, theta, strict=True)]
    return [
        some[np.argsort(-line[some], kind="stable")[:ADDED_COLUMNS]] for line, some in zip(pressure, over, strict=True)
    ]
