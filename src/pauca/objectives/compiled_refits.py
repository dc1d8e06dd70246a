"""Refits and previews of models of one output by compiled kernels, where there are some for their loss."""

from __future__ import annotations

import numpy as np

from pauca.compiled import plain
from pauca.losses import Loss
from pauca.losses.compiled_curves import LossKernels
from pauca.objectives.merged_rows import Rows
from pauca.solvers.newton import EXACT, Accuracy, Minimum

# Refits of more numbers than this are products that NumPy's BLAS computes as fast; and they are not to be interrupted.
# Systems of more columns LAPACK solves in less time: text to 200 words took longer with kernels than without.
MOST_NUMBERS = 1 << 19
MOST_COLUMNS = 64

PREVIEWS = LossKernels("pauca.objectives.kernels", "preview")
REFITS = LossKernels("pauca.objectives.newton_kernels", "minimise")


def preview_compiled(
    loss: Loss,
    rows: Rows,
    model: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float, np.ndarray],
    new: np.ndarray,
    new_penalty: np.ndarray,
    removed: np.ndarray,
    accuracy: Accuracy,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
    """The fields of ``Previews`` with each of some new columns, or else without each of some; None without a kernel.

    ``model`` has columns, penalty, coefficients (q,), scores (G,), value and inverse Hessian.
    """
    columns, penalty, coef, scores, value, inverse = model
    added = len(new) > 0
    b, (q, n) = len(new) if added else len(removed), columns.shape
    given = PREVIEWS.given(loss, rows.y[0], rows.weights, columns, scores, instead_of=b * n) if q else None
    if given is None:
        return None
    p = q + added
    found = np.empty((b, 1, p)), np.empty((b, 1, n)), np.empty(b), np.empty((b, p, p)), np.empty(b)
    given.kernels.preview(
        given.data,
        plain(penalty),
        plain(coef),
        float(value),
        plain(inverse),
        given.in_order(new) if added else plain(new),
        plain(new_penalty),
        removed,
        float(accuracy.within),
        accuracy.most_steps,
        accuracy.renewed,
        found[0][:, 0],
        found[1][:, 0],
        *found[2:],
    )
    return (found[0], given.of_data(found[1]), *found[2:]) if given.kept() else None


def minimise_compiled(
    loss: Loss,
    y: np.ndarray,
    weights: np.ndarray,
    columns: np.ndarray,
    penalty: np.ndarray,
    start: np.ndarray,
    scores: np.ndarray,
    hessian: np.ndarray | None,
    about: float,
    accuracy: Accuracy,
    most_steps: int,
    *,
    cheap: bool,
) -> Minimum | bool | None:
    """The minimum as ``OneOutput.minimise`` returns it; False without a kernel."""
    q, n = columns.shape
    given = REFITS.given(loss, y, weights, columns, scores, instead_of=n) if _suit(columns) else None
    if given is None:
        return False
    coef, moved, found = np.array(start), np.array(given.data.scores), np.empty(2)
    known = hessian is not None
    about_hessian = np.array(hessian) if known else np.empty((q, q))
    ended = given.kernels.minimise(
        given.data,
        plain(penalty),
        coef,
        moved,
        about_hessian,
        known,
        cheap,
        float(about),
        float(accuracy.within),
        accuracy.most_steps,
        most_steps,
        accuracy.renewed,
        float(accuracy.unless_above),
        found,
    )
    if not given.kept():
        return False
    if ended == given.kernels.NOWHERE:
        return None
    at_minimum = ended == given.kernels.AT_MINIMUM
    value, left = found.tolist()
    exactly = at_minimum and cheap
    return Minimum(
        coef[None], given.of_data(moved)[None], value, about_hessian[None], at_minimum, left, exactly=exactly
    )


def minima_compiled(
    loss: Loss,
    y: np.ndarray,
    weights: np.ndarray,
    columns: np.ndarray,
    penalties: np.ndarray,
    start: np.ndarray,
    within: float,
    most_steps: int,
    *,
    cheap: bool,
) -> tuple[np.ndarray, np.ndarray] | bool | None:
    """Coefficients and Hessians of the minima for several penalties, one to a row.

    None where one of them does not converge, False without a kernel. Steps are those of a single refit, so minima agree
    with NumPy's, which takes steps at all ridges together, as closely as both are within their tolerance.
    """
    several, (q, n) = len(start), columns.shape
    if loss.coupled or not _suit(columns):
        return False
    given = REFITS.given(loss, y, weights, columns, np.zeros(n), instead_of=several * n, calls=several)
    if given is None:
        return False
    coef, hessians = np.array(start), np.empty((several, q, q))
    found = given.kernels.minimise_each(
        given.data, plain(penalties), coef, hessians, cheap, float(within), EXACT.most_steps, most_steps
    )
    return (coef, hessians) if found else None


def _suit(columns: np.ndarray) -> bool:
    """Whether there are few enough columns and numbers for kernels."""
    return 0 < len(columns) <= MOST_COLUMNS and columns.size <= MOST_NUMBERS
