"""The diagonal D of the perspective relaxation: as large as ``H - D`` positive semidefinite allows.

The bound V(D) is concave in D with the gradient ``u_j^2 (1 / z_j - 1) / 2``, so D is improved by a few ascent steps.
Each nearly maximises the gradient's linear function with a log-determinant barrier, one coordinate at a time.
"""

from __future__ import annotations

import numpy as np

from pauca.clock import OutOfTime, check_time
from pauca.relaxations.backends import Backend
from pauca.relaxations.perspective import MOST_STEPS, OUT, Quadratic, Relaxed, inverse_regular

EPS = float(np.finfo(float).eps)

# Ascent steps; more gain next to nothing.
ROUNDS = 5

# An ascent that closes less than this share of the gap is the last.
LEAST_SHARE_CLOSED = 0.03

# Weight of the barrier, as a share of the mean of H's diagonal; gradients are scaled to a largest entry of one, and
# none is below the floor: columns without a gradient today may have one at the next D.
BARRIER = 1e-3
FLOOR = 0.03
SWEEPS = 2

LINE_STEPS = (1.0, 0.4)


def is_safe(hessian: np.ndarray, diagonal: np.ndarray) -> bool:
    """Whether ``H - D`` is positive definite, with a margin for the rounding of H and of the factorisation."""
    left = hessian - np.diag(diagonal + 10 * len(diagonal) * EPS * np.diag(hessian))
    try:
        np.linalg.cholesky(left)
    except np.linalg.LinAlgError:
        return False
    return True


def base_diagonal(hessian: np.ndarray, penalty: np.ndarray) -> np.ndarray | None:
    """A diagonal for any size: the penalty, or what the inverse of H suggests if that is larger; None if there is none.

    ``1 / (H^-1)_jj`` is what all others leave of column j. These, times the largest factor allowed, respect that some
    columns are nearly dependent and others are not.
    """
    found = _scaled_shift(hessian)
    if np.all(penalty > 0) and (found is None or np.median(found) < np.median(penalty)):
        return penalty * (1 - 1e-12)
    return found


def _scaled_shift(hessian: np.ndarray) -> np.ndarray | None:
    try:
        own = np.diag(np.linalg.inv(hessian))
    except np.linalg.LinAlgError:
        return None
    if not np.all(own > 0) or not np.all(np.isfinite(own)):
        return None
    roots = np.sqrt(own)
    smallest = float(np.linalg.eigvalsh(hessian * roots * roots[:, None])[0])
    shift = smallest * (1 - 1e-6) / own
    return shift if smallest > 0 and is_safe(hessian, shift) else None


def rounding_share(n_columns: int, n_rows: int) -> float:
    """The relative error of products of columns and of what is computed from them."""
    return float(4 * (n_columns + np.sqrt(n_rows)) * EPS)


def rounding_slack(problem: Quadratic, diagonal: np.ndarray, n_rows: int) -> float:
    """What rounding of H and of all that is computed from it can add to a bound.

    An error of size ``delta`` in H, relative to its diagonal, changes the value of a model by at most
    ``delta max(H_jj w_j^2)``, where ``D w^2`` is at most twice the constant. Without it two prototypes had 2 and 3
    bounds above the optimum in 6,000 small problems, all with a ridge of 1e-12 and columns alike to 1e-8.
    """
    delta = rounding_share(len(diagonal), n_rows)
    return float(delta * problem.constant * np.max(np.diag(problem.hessian) / diagonal, initial=1.0))


def improve(
    problem: Quadratic,
    diagonal: np.ndarray,
    relaxed: Relaxed,
    left: np.ndarray,
    cut: np.ndarray,
    backend: Backend | None = None,
) -> tuple[np.ndarray, Relaxed]:
    """Better diagonals for the roots of several trees, one to a line, and the relaxation with them.

    ``H - D`` is positive semidefinite on the columns that are not out: where columns were screened, D can be larger.
    """
    diagonal, open_ = diagonal.copy(), relaxed.bound < cut
    for _ in range(ROUNDS):
        rows = np.flatnonzero(open_)
        if not len(rows):
            break
        gradient = _gradient(relaxed.take(rows), diagonal[rows])
        flat = gradient.max(axis=1) <= 0
        open_[rows[flat]] = False
        rows, gradient = rows[~flat], gradient[~flat]
        if not len(rows):
            break
        try:
            target = _ascend(problem.hessian, diagonal[rows], gradient, relaxed.pieces[rows] == OUT)
        except OutOfTime:
            break  # the diagonals as they are prove what they prove
        before = relaxed.bound[rows]
        _search_line(problem, diagonal, target, relaxed, rows, left, backend or Backend())
        gained = relaxed.bound[rows] - before
        open_[rows] = (gained > LEAST_SHARE_CLOSED * (cut[rows] - before)) & (relaxed.bound[rows] < cut[rows])
    return diagonal, relaxed


def _gradient(relaxed: Relaxed, diagonal: np.ndarray) -> np.ndarray:
    """Gradient of the bound in D."""
    z = relaxed.shares(np.sqrt(diagonal))
    middle = (z > 0) & (z < 1 - 1e-9)
    return np.where(middle, 0.5 * relaxed.u**2 * (1 / np.where(middle, z, 1.0) - 1), 0.0)


def _ascend(hessian: np.ndarray, diagonal: np.ndarray, gradient: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Diagonals that nearly maximise the linear function plus the barrier, one to a line.

    With ``P = (H - D)^-1`` the best change of D_j alone is ``1 / P_jj - barrier / gradient_j``, and P follows by a
    rank-one update.
    """
    width, kept, each = len(hessian), ~out, np.arange(len(hessian))
    hessians = np.where(kept[:, :, None] & kept[:, None, :], hessian, 0.0)
    weight = np.maximum(gradient / gradient.max(axis=1, keepdims=True), FLOOR) / (BARRIER * np.trace(hessian) / width)
    point = diagonal * (1 - 1e-3)
    least = 1e-3 * np.median(diagonal, axis=1)
    hessians[:, each, each] += np.where(out, 1.0, 0.0) - point * kept
    inverse = inverse_regular(hessians)
    for j in np.tile(each, SWEEPS):
        check_time()
        column = inverse[:, j].copy()
        own = column[:, j]
        change = np.maximum(1 / own - 1 / weight[:, j], least - point[:, j])
        # Columns that are out, and changes that matter to none, are passed over.
        change[out[:, j] | (np.abs(change) * own < 1e-2)] = 0.0
        if not change.any():
            continue
        point[:, j] += change
        factor = change / (1 - change * own)
        inverse += (factor[:, None] * column)[:, :, None] * column[:, None, :]
    return np.where(out, diagonal, point)


def _search_line(
    problem: Quadratic,
    diagonal: np.ndarray,
    target: np.ndarray,
    relaxed: Relaxed,
    rows: np.ndarray,
    left: np.ndarray,
    backend: Backend,
) -> None:
    """Move ``rows`` of the diagonal towards the target as far as the bound rises; in place."""
    safe = np.array(
        [_shrunk(problem.hessian, line, relaxed.pieces[row] != OUT) for row, line in zip(rows, target, strict=True)]
    )
    usable = safe > 0
    rows, target = rows[usable], target[usable] * safe[usable, None]
    if not len(rows):
        return
    tries = np.concatenate([diagonal[rows] + step * (target - diagonal[rows]) for step in LINE_STEPS])
    again = np.tile(rows, len(LINE_STEPS))
    found = backend.relax(problem, tries, relaxed.pieces[again], left[again], np.full(len(again), np.inf), MOST_STEPS)
    best = found.bound.reshape(len(LINE_STEPS), -1).argmax(axis=0) * len(rows) + np.arange(len(rows))
    better = found.bound[best] > relaxed.bound[rows]
    diagonal[rows[better]] = tries[best[better]]
    relaxed.replace(rows[better], found, best[better])


def _shrunk(hessian: np.ndarray, diagonal: np.ndarray, kept: np.ndarray) -> float:
    """The largest of some factors at which the diagonal is safe; 0 if none is."""
    part, block = diagonal[kept], hessian[np.ix_(kept, kept)]
    for factor in (1.0, 1 - 1e-6, 1 - 1e-4, 0.99, 0.9, 0.7):
        if is_safe(block, factor * part):
            return factor
    return 0.0
