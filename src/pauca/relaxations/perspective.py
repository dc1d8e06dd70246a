"""The perspective relaxation of best subset selection, for many nodes of a search tree at a time.

Conventions
-----------
``f(w) = constant - slope'w + w'Hw/2`` is to be minimised over models of k of m columns. ``H = M + D``, where D > 0 is
diagonal and M positive semidefinite. At a node some columns are in, some are out, and ``left`` of the free ones may
still be chosen. For **any** vector u that is zero on the columns out, with ``e = slope - Hu`` on the columns in and
``r = slope - Hu + Du`` on the free ones,

    f(w) >= constant - (u'Hu - sum_free D u^2) / 2 - sum_in (e u + e^2 / (2 D)) - top_left{r_j^2 / (2 D_j)}

for every w the node allows (Pilanci, Wainwright and El Ghaoui 2015; Bertsimas and Van Parys 2020; with a diagonal split
as in Dong, Chen and Linderoth 2015). Its largest value over u is that of the perspective relaxation

    min_u constant - slope'u + u'Mu/2 + min{sum_j D_j u_j^2 / (2 z_j) : sum_j z_j <= left, 0 <= z <= 1}.

With ``t_j = |u_j| sqrt(D_j)`` the best z is ``min(1, t_j / theta)``: a column is zero, middle (z < 1) or big (z = 1),
and given these pieces u solves one linear system. So the relaxation is solved by pivoting: solve, put every column on
the piece where its solution lies, repeat (block principal pivoting, Judice and Pires 1994). A child starts from the
pieces of its parent and takes a step or two. As the bound holds for any u, neither the rounding of u nor an early end
makes it wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dposv

IN, OUT = np.int8(3), np.int8(-3)
"""Codes of columns that are in or out; 0, 1 and 2 with the sign of u are the pieces of free ones."""

# Pivoting takes one or two steps from the parent's pieces, and about seven from an incumbent. Where it takes more, the
# bound so far does as well: with 40 steps trees of nearly dependent columns had as many nodes and took longer.
MOST_STEPS = 12

# At roots it pays to go to the end.
ROOT_STEPS = 40

# After so many steps in which no fewer columns changed their piece, only those change that are beyond its end by this
# share of the largest violation; after more such steps, one by one.
BLOCK_STEPS = 1
SOME_SHARE = 0.5
SINGLE_AFTER = 6

# At most this many times the active columns leave zero in one step: with many more columns than rows thousands press to
# do so at first, few of them stay, and their systems are singular and large.
ADMITTED = 2
LEAST_ADMITTED = 20

# Middle columns keep this share of D in the linear system, so that it stays regular where H - D is singular.
KEPT_SHARE = 1e-9

# Columns change their piece where they are beyond its end by this share: closer is rounding.
PIECE_TOLERANCE = 1e-10

# Solutions have ``sum_j D_j u_j^2`` of at most twice the constant. A u far beyond it comes from a system that is
# singular but for rounding, and its bound is made of rounding: with 3e8 in the place of 1 it was twice the constant, on
# two columns alike to 1e-8 with a ridge of 1e-8.
MOST_SQUARES = 4.0

# Systems of more columns are solved one by one, as what they are: positive definite.
LARGE_SYSTEM = 64

# Linear systems are solved in blocks of about this many numbers (16 MB).
SYSTEM_NUMBERS = 1 << 21


@dataclass(frozen=True, eq=False)
class Quadratic:
    """``constant - slope'w + w'Hw/2``, a least-squares objective with the intercept minimised out."""

    hessian: np.ndarray
    slope: np.ndarray
    constant: float

    def restricted(self, columns: np.ndarray) -> Quadratic:
        """The same function of some coefficients only, the others zero."""
        return Quadratic(
            np.ascontiguousarray(self.hessian[np.ix_(columns, columns)]), self.slope[columns], self.constant
        )

    def values(self, supports: np.ndarray) -> np.ndarray:
        """The least values on several supports of one size, shape (b, k): shape (b,)."""
        if not supports.shape[1]:
            return np.full(len(supports), self.constant)
        slope = self.slope[supports]
        system = self.hessian[supports[:, :, None], supports[:, None, :]]
        coef = np.linalg.solve(system, slope[:, :, None])[:, :, 0]
        # The value of the coefficients as they are, whatever the error of the solution: an upper bound.
        fitted = np.einsum("bij,bj->bi", system, coef)
        return self.constant + np.einsum("bi,bi->b", coef, 0.5 * fitted - slope)


@dataclass(eq=False)
class Relaxed:
    """Solutions of the relaxation at several nodes, one to a line."""

    u: np.ndarray
    bound: np.ndarray
    """The lower bound of every node."""
    scores: np.ndarray
    """``r^2 / (2 D)`` of every free column: what forcing it in or out would change in the bound; else zero."""
    theta: np.ndarray
    pieces: np.ndarray

    def keep_better(self, rows: np.ndarray, step: Step) -> None:
        """Take over the nodes ``rows`` where a step has a better bound."""
        better = step.bound > self.bound[rows]
        rows = rows[better]
        self.u[rows], self.bound[rows], self.scores[rows] = step.u[better], step.bound[better], step.scores[better]
        self.theta[rows], self.pieces[rows] = step.theta[better], step.pieces[better]

    def take(self, rows: np.ndarray) -> Relaxed:
        """Some of the nodes."""
        return Relaxed(self.u[rows], self.bound[rows], self.scores[rows], self.theta[rows], self.pieces[rows])

    def replace(self, rows: np.ndarray, other: Relaxed, lines: np.ndarray) -> None:
        """Put the ``lines`` of other solutions in the place of some nodes."""
        self.u[rows], self.bound[rows], self.scores[rows] = other.u[lines], other.bound[lines], other.scores[lines]
        self.theta[rows], self.pieces[rows] = other.theta[lines], other.pieces[lines]

    def keep_columns(self, kept: np.ndarray) -> None:
        """Forget columns that are zero in every solution."""
        self.u, self.scores, self.pieces = self.u[:, kept], self.scores[:, kept], self.pieces[:, kept]

    def shares(self, roots: np.ndarray) -> np.ndarray:
        """z: how much of every free column the relaxation takes; ``roots`` are those of the diagonal."""
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.minimum(np.abs(self.u) * roots / self.theta[:, None], 1.0)
        return np.where((np.abs(self.pieces) == IN) | ~np.isfinite(z), 0.0, z)


def relax(
    problem: Quadratic,
    diagonal: np.ndarray,
    pieces: np.ndarray,
    left: np.ndarray,
    cut: np.ndarray,
    most_steps: int = ROOT_STEPS,
) -> Relaxed:
    """Solve the relaxation at b nodes, each until it is solved or its bound reaches ``cut``.

    ``diagonal`` and ``pieces`` (the codes to start from) have shape (b, m); ``left`` and ``cut`` shape (b,). Every node
    must have more free columns than are left to choose, and at least one of these.
    """
    b, m = pieces.shape
    found = Relaxed(np.zeros((b, m)), np.full(b, -np.inf), np.zeros((b, m)), np.zeros(b), pieces.copy())
    nodes = _Nodes(problem, diagonal, pieces, left)
    current, todo = pieces.copy(), np.arange(b)
    fewest, stalled = np.full(b, m + 1), np.zeros(b, dtype=np.intp)
    for _ in range(most_steps):
        part = nodes.take(todo)
        step = part.step(current[todo])
        found.keep_better(todo, step)
        changes = np.count_nonzero(step.pieces != step.before, axis=1)
        stalled[todo] += changes >= fewest[todo]
        fewest[todo] = np.minimum(fewest[todo], changes)
        hold_back(step, stalled[todo])
        current[todo] = step.pieces
        todo = todo[(changes > 0) & (found.bound[todo] < cut[todo])]
        if not len(todo):
            break
    return found


@dataclass(eq=False)
class Step:
    """A solution on given pieces, its bound, and the pieces it leads to."""

    u: np.ndarray
    bound: np.ndarray
    scores: np.ndarray
    theta: np.ndarray
    before: np.ndarray
    """The pieces that were solved on: those given, with fewer big columns where there were too many."""
    pieces: np.ndarray
    violation: np.ndarray
    """By how much every column is beyond the end of its piece."""


def hold_back(step: Step, stalled: np.ndarray) -> None:
    """Where pivoting has stalled, let only columns change that are farthest beyond the end of their piece."""
    share = np.where(stalled >= SINGLE_AFTER, 1.0, SOME_SHARE)
    for row in np.flatnonzero(stalled >= BLOCK_STEPS):
        largest = step.violation[row].max()
        held = step.violation[row] < share[row] * largest
        step.pieces[row, held] = step.before[row, held]


class _Nodes:
    """Some nodes of a tree: which columns are free, and how many of them are left to choose."""

    def __init__(self, problem: Quadratic, diagonal: np.ndarray, pieces: np.ndarray, left: np.ndarray) -> None:
        self.problem, self.diagonal, self.left = problem, diagonal, left
        self.codes = pieces
        self.free, self.inside = np.abs(pieces) < IN, pieces == IN
        self.root = np.sqrt(diagonal)

    def take(self, rows: np.ndarray) -> _Nodes:
        if len(rows) == len(self.left):
            return self
        return _Nodes(self.problem, self.diagonal[rows], self.codes[rows], self.left[rows])

    def step(self, pieces: np.ndarray) -> Step:
        """Solve on the pieces, and find the pieces of the solution."""
        crowded = np.count_nonzero(np.abs(pieces) == 2, axis=1) > self.left
        pieces = np.where(crowded[:, None] & (np.abs(pieces) == 2), np.sign(pieces), pieces)
        u, theta = self.solve(pieces)
        bound, scores, slack = self.dual(u, u @ self.problem.hessian)
        size, pressure = np.abs(u) * self.root, np.where(self.free, np.abs(slack) / self.root, 0.0)
        alone = ~np.any(np.abs(pieces) == 1, axis=1)
        if alone.any():
            theta[alone] = _threshold_without_middle(pieces[alone], size[alone], pressure[alone], self.left[alone])
        new, violation = _pivot(pieces, u, slack, size, pressure, theta[:, None])
        _admit_few(pieces, new, violation)
        return Step(u, bound, scores, theta, pieces, new, np.where(self.free, violation, 0.0))

    def solve(self, pieces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """U and theta where the columns are on the given pieces."""
        u, theta = np.zeros(pieces.shape), np.zeros(len(pieces))
        big = np.count_nonzero(np.abs(pieces) == 2, axis=1)
        for rows, system in systems(self.problem, self.diagonal, pieces):
            code = np.take_along_axis(pieces[rows], system.columns, axis=1) * system.used
            root = np.take_along_axis(self.root[rows], system.columns, axis=1)
            pull = np.where(np.abs(code) == 1, code * root, 0.0)
            slope = self.problem.slope[system.columns] * system.used
            solution = solve_regular(system.matrix, np.stack([slope, pull], axis=2))
            plain, pulled = solution[:, :, 0], solution[:, :, 1]
            total, change = np.einsum("bi,bi->b", pull, plain), np.einsum("bi,bi->b", pull, pulled)
            room = self.left[rows] - big[rows] + change
            theta[rows] = np.maximum(np.where(room > 1e-12, total / np.maximum(room, 1e-12), 0.0), 0.0)
            part = (plain - theta[rows, None] * pulled) * system.used
            np.put_along_axis(u[rows], system.columns, part, axis=1)
        return u, theta

    def dual(self, u: np.ndarray, product: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The bound at u, the scores, and r."""
        rest = self.problem.slope - product
        missed = np.where(self.inside, rest, 0.0)
        charge = np.einsum("bi,bi->b", missed, u) + 0.5 * np.einsum("bi,bi->b", missed, missed / self.diagonal)
        kept = np.where(self.free, self.diagonal, 0.0)
        slack = np.where(self.free, rest + kept * u, 0.0)
        scores = 0.5 * slack * slack / self.diagonal
        inner = 0.5 * (np.einsum("bi,bi->b", u, product) - np.einsum("bi,bi->b", kept, u * u))
        bound = self.problem.constant - inner - charge - largest_sum(scores, self.left)
        credible = np.einsum("bi,bi->b", self.diagonal, u * u) <= MOST_SQUARES * self.problem.constant
        return np.where(credible & np.isfinite(bound), bound, -np.inf), scores, slack


def _pivot(
    pieces: np.ndarray, u: np.ndarray, slack: np.ndarray, size: np.ndarray, pressure: np.ndarray, theta: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The pieces where a solution lies, and by how much every column is beyond the end of the one it was on."""
    level = np.abs(pieces)
    above, below = theta * (1 + PIECE_TOLERANCE), theta * (1 - PIECE_TOLERANCE)
    enters = (level == 0) & (pressure > above)
    crosses = (level == 1) & (pieces * u < 0)
    grows = (level == 1) & ~crosses & (size > above)
    shrinks = (level == 2) & (size < below)
    signs = np.sign(u).astype(np.int8)
    new = np.where(enters, np.sign(slack).astype(np.int8), pieces)
    new = np.where(crosses, np.int8(0), new)
    new = np.where(grows | ((level == 2) & ~shrinks), 2 * signs, new)
    new = np.where(shrinks, signs, new)
    violation = np.where(enters, pressure - theta, 0.0) + np.where(crosses, size, 0.0)
    violation += np.where(grows | shrinks, np.abs(size - theta), 0.0)
    return new, violation


def _admit_few(pieces: np.ndarray, new: np.ndarray, violation: np.ndarray) -> None:
    """Let no more columns leave zero than twice the active ones: those beyond their end by most; in place."""
    entering = (pieces == 0) & (new != 0)
    active = np.count_nonzero((pieces != 0) & (pieces != OUT), axis=1)
    admitted = np.maximum(ADMITTED * active, LEAST_ADMITTED)
    for row in np.flatnonzero(np.count_nonzero(entering, axis=1) > admitted):
        waiting = np.where(entering[row], violation[row], 0.0)
        least = np.partition(waiting, -admitted[row])[-admitted[row]]
        new[row, entering[row] & (waiting < least)] = 0


def _threshold_without_middle(
    pieces: np.ndarray, size: np.ndarray, pressure: np.ndarray, left: np.ndarray
) -> np.ndarray:
    """Theta where no column is in the middle: any value that keeps, or lets in, the right ones.

    With fewer big columns than are left, as many enter as are missing. Otherwise theta is between the smallest of the
    big ones and the largest pressure on a column at zero.
    """
    big = np.abs(pieces) == 2
    count = np.count_nonzero(big, axis=1)
    pressed = -np.sort(-np.where(pieces == 0, pressure, 0.0), axis=1)
    last = np.take_along_axis(pressed, np.maximum(left - count - 1, 0)[:, None], axis=1)[:, 0]
    smallest = np.where(big, size, np.inf).min(axis=1)
    with np.errstate(invalid="ignore"):
        return np.where(count < left, last * (1 - 10 * PIECE_TOLERANCE), 0.5 * (smallest + pressed[:, 0]))


def largest_sum(scores: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Sum of the ``count`` largest scores of every line."""
    ordered = -np.sort(-scores, axis=1)
    return np.take_along_axis(np.cumsum(ordered, axis=1), count[:, None] - 1, axis=1)[:, 0]


def solve_regular(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve several systems; those of a block with an exactly singular one get zeros, which any bound allows."""
    if matrix.shape[1] > LARGE_SYSTEM:
        # Transposed, a symmetric matrix is itself, in the order that LAPACK wants.
        solved = [dposv(one.T, other, lower=1)[1:] for one, other in zip(matrix, right, strict=True)]
        if not any(failed for _, failed in solved):
            return np.stack([solution for solution, _ in solved])
    try:
        return np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        return np.zeros(right.shape)


@dataclass(frozen=True, eq=False)
class _System:
    """Linear systems of several nodes, padded to one size."""

    columns: np.ndarray
    used: np.ndarray
    matrix: np.ndarray


def systems(problem: Quadratic, diagonal: np.ndarray, pieces: np.ndarray) -> Iterator[tuple[slice, _System]]:
    """``H - D on the middle columns`` over the columns that are not zero, for blocks of nodes."""
    active = (pieces != 0) & (pieces != OUT)
    width = max(1, int(np.count_nonzero(active, axis=1).max(initial=0)))
    step = max(1, SYSTEM_NUMBERS // width**2)
    for start in range(0, len(pieces), step):
        rows = slice(start, start + step)
        yield rows, _padded(problem, diagonal[rows], pieces[rows], active[rows])


def _padded(problem: Quadratic, diagonal: np.ndarray, pieces: np.ndarray, active: np.ndarray) -> _System:
    counts = np.count_nonzero(active, axis=1)
    width = max(1, int(counts.max(initial=0)))
    columns = np.argsort(~active, axis=1, kind="stable")[:, :width]
    used = np.arange(width) < counts[:, None]
    if len(columns) == 1:
        matrix = problem.hessian.take(columns[0], axis=0).take(columns[0], axis=1)[None]
    else:
        matrix = problem.hessian[columns[:, :, None], columns[:, None, :]]
    if not used.all():
        matrix *= used[:, :, None]
        matrix *= used[:, None, :]
    middle = np.abs(np.take_along_axis(pieces, columns, axis=1)) == 1
    shift = np.where(middle, (1 - KEPT_SHARE) * np.take_along_axis(diagonal, columns, axis=1), 0.0)
    each = np.arange(width)
    matrix[:, each, each] += np.where(used, -shift, 1.0)
    return _System(columns, used, matrix)


def inverse_regular(matrix: np.ndarray) -> np.ndarray:
    """Inverses of several matrices; those of a block with an exactly singular one are taken for the identity."""
    try:
        return np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        return np.broadcast_to(np.eye(matrix.shape[1]), matrix.shape)


def removal_estimates(problem: Quadratic, diagonal: np.ndarray, relaxed: Relaxed) -> np.ndarray:
    """For every free column what the relaxation would lose to first order without it, ``u^2 / (2 K^-1_jj)``."""
    estimates = np.zeros(relaxed.u.shape)
    for rows, system in systems(problem, diagonal, relaxed.pieces):
        inverse = inverse_regular(system.matrix)
        own = np.einsum("bii->bi", inverse)
        u = np.take_along_axis(relaxed.u[rows], system.columns, axis=1) * system.used
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.where(own > 0, 0.5 * u * u / own, 0.0)
        np.put_along_axis(estimates[rows], system.columns, part, axis=1)
    return np.where(np.abs(relaxed.pieces) < IN, estimates, 0.0)
