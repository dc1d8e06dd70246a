"""Root bounds of every size on tables with so many columns that their Gram matrix is not formed.

With a ridge, D is the penalty itself, and ``r = slope - Mu`` are the correlations of the columns with the residual of
u: one pass over X for all sizes. The relaxation is solved on a working set of columns, to which those are added whose
correlation is too large, until there are none. As the bound takes the largest scores of all columns, it holds after
every round.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pauca.relaxations.perspective import IN, MOST_SQUARES, Quadratic, Relaxed, relax
from pauca.relaxations.tree import Incumbent

# The working set begins with the incumbents and at least this many columns by their correlation with the target; each
# round adds at most as many for every size.
FIRST_COLUMNS = 200
ADDED_COLUMNS = 200

# No round goes beyond this many columns: their systems would cost more than the bound is worth.
MOST_COLUMNS = 1500

# Products of so many columns are kept (128 MB); with more, those of earlier nodes are forgotten.
MOST_KNOWN = 4000

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


class Products:
    """Products of the columns that were needed so far, with what else a table has to say of its columns.

    ``slope`` and ``penalty`` are of all columns, and the penalty is positive.
    """

    def __init__(self, columns: Columns, slope: np.ndarray, penalty: np.ndarray, constant: float) -> None:
        self.columns, self.slope, self.penalty, self.constant = columns, slope, penalty, constant
        self._known = np.zeros(0, dtype=np.intp)
        self._place = np.full(len(slope), -1, dtype=np.intp)
        self._gram = np.zeros((0, 0))

    @property
    def n_bytes(self) -> int:
        """What is kept."""
        return self._gram.nbytes

    def problem(self, columns: np.ndarray) -> Quadratic:
        """The objective as a function of the coefficients of some columns."""
        new = columns[self._place[columns] < 0]
        if len(self._known) + len(new) > MOST_KNOWN:
            self._known, new = np.zeros(0, dtype=np.intp), columns
            self._place[:] = -1
        self._add(new)
        places = self._place[columns]
        hessian = self._gram.take(places, axis=0).take(places, axis=1)
        each = np.arange(len(columns))
        hessian[each, each] += self.penalty[columns]
        return Quadratic(hessian, self.slope[columns], self.constant)

    def _add(self, new: np.ndarray) -> None:
        if not len(new):
            return
        before, count = len(self._known), len(self._known) + len(new)
        if count > len(self._gram):
            # Room for as many again: nodes of a tree come with few new columns each.
            room = max(count, min(2 * count, MOST_KNOWN))
            gram = np.empty((room, room))
            gram[:before, :before] = self._gram[:before, :before]
            self._gram = gram
        self._known = np.concatenate([self._known, new])
        self._place[new] = np.arange(before, count)
        found = self.columns.products(new, self._known)
        self._gram[before:count, :count], self._gram[:count, before:count] = found, found.T


@dataclass(frozen=True, eq=False)
class RootBound:
    """The bound of one size, the columns that a better model can have, and where the relaxation ended."""

    bound: float
    kept: np.ndarray
    working: np.ndarray
    """The columns over which the relaxation was solved."""
    relaxed: Relaxed

    @property
    def start(self) -> dict[int, int]:
        """The columns that are not zero, with their pieces."""
        pieces = self.relaxed.pieces[0]
        return dict(zip(self.working[pieces != 0].tolist(), pieces[pieces != 0].tolist(), strict=True))


def root_bounds(
    products: Products,
    incumbents: Sequence[Incumbent],
    *,
    always: Sequence[int],
    usable: np.ndarray,
    slack: float,
    start: Mapping[int, int] | None = None,
) -> dict[int, RootBound]:
    """Bounds of some sizes over all ``usable`` columns, of which ``always`` are in.

    The relaxation starts from the incumbents, or from the pieces of some columns.
    """
    incumbents = sorted(incumbents, key=lambda one: one.size)
    if start is None:
        working = _first(products, incumbents, always, usable)
    else:
        working = _started(products, start, incumbents, always, usable)
    left = np.array([one.size - len(always) for one in incumbents], dtype=np.intp)
    pieces = _pieces(working, incumbents, always, start)
    best = np.full(len(left), -np.inf)
    kept = np.tile(usable, (len(left), 1))
    todo = np.arange(len(left))
    last: dict[int, tuple[np.ndarray, Relaxed]] = {}
    for _ in range(ROUNDS):
        found = _relax(products, working, pieces[todo], left[todo])
        pieces[todo] = found.pieces
        last |= {row: (working, found.take(np.array([line]))) for line, row in enumerate(todo.tolist())}
        rest, squares = products.columns.residual_products(working, found.u)
        bound, scores = _dual(rest, squares, found.u, working, products, always, usable, left[todo])
        for line, row in enumerate(todo):
            best[row] = max(best[row], bound[line])
            kept[row] &= ~_ruled_out(scores[line], bound[line], int(left[row]), incumbents[row], slack)
        pressing = _pressing(np.sqrt(np.maximum(2 * scores, 0.0)), found.theta, working, kept[todo])
        # A size is done that no column presses on, or whose bound has little left to gain: over the working set alone
        # it is what more columns can only lower. The others go on with a larger working set.
        gap = np.array([incumbents[row].value for row in todo]) - found.bound
        wants = np.array([len(some) > 0 for some in pressing]) & (found.bound - bound > SOLVED_SHARE * gap)
        todo = todo[wants]
        entering = np.unique(np.concatenate([np.zeros(0, dtype=np.intp), *itertools.compress(pressing, wants)]))
        if not len(todo) or len(working) + len(entering) > MOST_COLUMNS:
            break
        working = np.concatenate([working, entering])
        pieces = np.hstack([pieces, np.zeros((len(left), len(entering)), dtype=np.int8)])
    return {one.size: RootBound(float(best[row]), kept[row], *last[row]) for row, one in enumerate(incumbents)}


def _relax(products: Products, working: np.ndarray, pieces: np.ndarray, left: np.ndarray) -> Relaxed:
    """The relaxations of several sizes, ascending: each begins where the one before has ended."""
    problem = products.problem(working)
    diagonal, never = products.penalty[working][None], np.full(1, np.inf)
    found: list[Relaxed] = []
    for line, count in zip(pieces, left, strict=True):
        start = found[-1].pieces if found else line[None]
        found.append(relax(problem, diagonal, start, np.array([count]), never, STEPS))
    return Relaxed(*(np.concatenate(parts) for parts in zip(*(vars(one).values() for one in found), strict=True)))


def _first(
    products: Products, incumbents: Sequence[Incumbent], always: Sequence[int], usable: np.ndarray
) -> np.ndarray:
    """The columns to begin with."""
    pressure = np.abs(products.slope) / np.sqrt(products.penalty)
    count = max(FIRST_COLUMNS, 1 + max(one.size for one in incumbents))
    ranked = np.argsort(-np.where(usable, pressure, -1.0), kind="stable")[:count]
    known = [j for one in incumbents for j in one.support]
    first = np.unique(np.concatenate([ranked, np.array([*known, *always], dtype=np.intp)]))
    return np.asarray(first[usable[first]])


def _started(
    products: Products,
    start: Mapping[int, int],
    incumbents: Sequence[Incumbent],
    always: Sequence[int],
    usable: np.ndarray,
) -> np.ndarray:
    """The columns to begin with where there are pieces, and more where these are too few to choose from."""
    first = np.union1d(np.array(list(start), dtype=np.intp), np.array(always, dtype=np.intp))
    first = first[usable[first]]
    enough = len(first) > max(one.size for one in incumbents)
    return first if enough else np.union1d(first, _first(products, incumbents, always, usable))


def _pieces(
    working: np.ndarray, incumbents: Sequence[Incumbent], always: Sequence[int], start: Mapping[int, int] | None
) -> np.ndarray:
    pieces = np.zeros((len(incumbents), len(working)), dtype=np.int8)
    for line, one in zip(pieces, incumbents, strict=True):
        if start is None:
            line[np.isin(working, one.support)] = 2
        else:
            line[:] = [start.get(j, 0) for j in working.tolist()]
            line[np.abs(line) == IN] = 0
        line[np.isin(working, always)] = IN
    return pieces


def _dual(
    rest: np.ndarray,
    squares: np.ndarray,
    u: np.ndarray,
    working: np.ndarray,
    products: Products,
    always: Sequence[int],
    usable: np.ndarray,
    left: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds, and scores of the columns that may be chosen; -1 for others."""
    penalty, constant = products.penalty, products.constant
    inside = np.zeros(len(penalty), dtype=bool)
    inside[list(always)] = True
    own = u[:, inside[working]]
    forced = working[inside[working]]
    # On columns that are in, e = slope - Hu is what is missed; rest = slope - Mu.
    missed = rest[:, forced] - penalty[forced] * own
    charge = np.sum(missed * own + 0.5 * missed**2 / penalty[forced], axis=1)
    inner = 0.5 * (squares + np.sum(penalty[forced] * own**2, axis=1))
    scores = np.where(usable & ~inside, 0.5 * rest * rest / penalty, -1.0)
    top = np.array(
        [np.partition(line, len(line) - k)[len(line) - k :].sum() for line, k in zip(scores, left, strict=True)]
    )
    credible = (u * u) @ penalty[working] <= MOST_SQUARES * constant
    return np.where(credible, constant - inner - charge - top, -np.inf), scores


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
