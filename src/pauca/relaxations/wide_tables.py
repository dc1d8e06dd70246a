"""Root bounds of every size on tables with so many columns that their Gram matrix is not formed.

With a ridge, D is the penalty itself, and ``r = slope - Mu`` are the correlations of the columns with the residual of
u: one pass over X for all sizes. The relaxation is solved on a working set of columns, to which those are added whose
correlation is too large, until there are none. As the bound takes the largest scores of all columns, it holds after
every round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pauca.relaxations.perspective import IN, Quadratic, relax
from pauca.relaxations.tree import Incumbent

# The working set begins with the incumbents and this many columns by their correlation with the target; each round
# adds at most as many for every size.
FIRST_COLUMNS = 200
ADDED_COLUMNS = 100

# No round goes beyond this many columns: their systems would cost more than the bound is worth.
MOST_COLUMNS = 1500

ROUNDS = 20

# Steps of the relaxation in a round: the next round goes on from its pieces.
STEPS = 5


class Columns(Protocol):
    """Products of standardised columns."""

    def gram(self, columns: np.ndarray) -> np.ndarray:
        """Products of some columns with each other."""
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
    root = np.sqrt(penalty)
    working = _first(slope / root, incumbents, always, usable)
    left = np.array([one.size - len(always) for one in incumbents], dtype=np.intp)
    pieces = _pieces(working, incumbents, always)
    best = np.full(len(left), -np.inf)
    kept = np.tile(usable, (len(left), 1))
    for _ in range(ROUNDS):
        hessian = columns.gram(working)
        hessian[np.diag_indices_from(hessian)] += penalty[working]
        problem = Quadratic(hessian, slope[working], constant)
        diagonal = np.tile(penalty[working], (len(left), 1))
        found = relax(problem, diagonal, pieces, left, np.full(len(left), np.inf), STEPS)
        rest, squares = columns.residual_products(working, found.u)
        bound, scores, inside = _dual(rest, squares, found.u, working, penalty, constant, always, left)
        candidates = usable & ~inside
        scores = np.where(candidates, scores, -1.0)
        _screen(kept, best, bound, scores, left, incumbents, slack)
        entering = _entering(np.sqrt(np.maximum(2 * scores, 0.0)), found.theta, working, kept)
        if not len(entering) or len(working) + len(entering) > MOST_COLUMNS:
            break
        grown = np.union1d(working, entering)
        wider = np.zeros((len(left), len(grown)), dtype=np.int8)
        wider[:, np.searchsorted(grown, working)] = found.pieces
        working, pieces = grown, wider
    return {one.size: RootBound(float(best[row]), kept[row]) for row, one in enumerate(incumbents)}


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
        line[np.searchsorted(working, one.support)] = 2
        line[np.searchsorted(working, list(always))] = IN
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
    return constant - inner - charge - top, scores, inside


def _screen(
    kept: np.ndarray,
    best: np.ndarray,
    bound: np.ndarray,
    scores: np.ndarray,
    left: np.ndarray,
    incumbents: Sequence[Incumbent],
    slack: float,
) -> None:
    """Take over better bounds, and the columns that they put out; in place."""
    for row, one in enumerate(incumbents):
        best[row] = max(best[row], bound[row])
        last = np.partition(scores[row], -left[row])[-left[row]]
        gap = one.value * (1 + 1e-9) + 2 * slack - bound[row]
        kept[row] &= ~((scores[row] >= 0) & (last - scores[row] > gap))


def _entering(pressure: np.ndarray, theta: np.ndarray, working: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Columns outside the working set that press to leave zero, the strongest of every size."""
    pressure = np.where(kept, pressure, 0.0)
    pressure[:, working] = 0.0
    chosen: set[int] = set()
    for line, threshold in zip(pressure, theta, strict=True):
        over = np.flatnonzero(line > threshold * (1 + 1e-6))
        chosen.update(over[np.argsort(-line[over], kind="stable")[:ADDED_COLUMNS]].tolist())
    return np.array(sorted(chosen), dtype=np.intp)
