"""Refits and previews of models of one output by compiled kernels, where there are some for their loss."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from pauca.compiled import Kernels, count_missed, plain
from pauca.losses import Loss
from pauca.losses.compiled_curves import CompiledCurve, compiled_curve
from pauca.objectives.merged_rows import Rows
from pauca.solvers.newton import EXACT, Accuracy, Minimum

# Refits of more numbers than this are products that NumPy's BLAS computes as fast; and they are not to be interrupted.
MOST_NUMBERS = 1 << 19

# About what a kernel saves of a call, of one at several ridges, and for each row of each model, in seconds.
SAVED_BY_CALL = 2e-4
SAVED_BY_RIDGES = 1e-3
SAVED_BY_ROW = 3e-8


def _load_previews() -> ModuleType:
    from pauca.objectives import kernels

    return kernels


def _load_refits() -> ModuleType:
    from pauca.objectives import newton_kernels

    return newton_kernels


PREVIEWS = Kernels(_load_previews, "preview")
REFITS = Kernels(_load_refits, "minimise")


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
    curve = _usable(loss)
    if curve is None:
        return None
    columns, penalty, coef, scores, value, inverse = model
    added = len(new) > 0
    b, (q, n) = len(new) if added else len(removed), columns.shape
    kernels = PREVIEWS.module
    if kernels is None or not q:
        count_missed(SAVED_BY_CALL + SAVED_BY_ROW * b * n)
        return None
    p = q + added
    found = np.empty((b, 1, p)), np.empty((b, 1, n)), np.empty(b), np.empty((b, p, p)), np.empty(b)
    kernels.preview(
        kernels.Data(*curve, plain(rows.y[0]), plain(rows.weights), plain(columns)),
        plain(penalty),
        plain(coef),
        plain(scores),
        float(value),
        plain(inverse),
        plain(new),
        plain(new_penalty),
        removed,
        float(accuracy.within),
        accuracy.most_steps,
        accuracy.renewed,
        found[0][:, 0],
        found[1][:, 0],
        *found[2:],
    )
    return found


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
    curve, (q, n) = _usable(loss), columns.shape
    if curve is None or not q or columns.size > MOST_NUMBERS:
        return False
    kernels = REFITS.module
    if kernels is None:
        count_missed(SAVED_BY_CALL + SAVED_BY_ROW * n)
        return False
    coef, scores, found = np.array(start), np.array(scores), np.empty(2)
    known = hessian is not None
    about_hessian = np.array(hessian) if known else np.empty((q, q))
    ended = kernels.minimise(
        kernels.Data(*curve, plain(y), plain(weights), plain(columns)),
        plain(penalty),
        coef,
        scores,
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
    if ended == kernels.NOWHERE:
        return None
    at_minimum = ended == kernels.AT_MINIMUM
    value, left = found.tolist()
    exactly = at_minimum and cheap
    return Minimum(coef[None], scores[None], value, about_hessian[None], at_minimum, left, exactly=exactly)


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
    curve, (q, n) = _usable(loss), columns.shape
    if curve is None or not q or columns.size > MOST_NUMBERS:
        return False
    kernels = REFITS.module
    if kernels is None:
        count_missed(SAVED_BY_RIDGES + SAVED_BY_ROW * n * len(start))
        return False
    coef, hessians = np.array(start), np.empty((len(start), q, q))
    data = kernels.Data(*curve, plain(y), plain(weights), plain(columns))
    found = kernels.minimise_each(
        data, plain(penalties), coef, hessians, cheap, float(within), EXACT.most_steps, most_steps
    )
    return (coef, hessians) if found else None


def _usable(loss: Loss) -> CompiledCurve | None:
    return None if loss.coupled or loss.joint else compiled_curve(loss)
