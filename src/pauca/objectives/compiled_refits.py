"""Refits and previews of models of one output by compiled kernels, where there are some for their loss."""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from pauca.compiled import Kernels, count_missed, plain
from pauca.losses import Loss
from pauca.losses.base import CompiledRows
from pauca.losses.compiled_curves import CompiledCurve, compiled_curve
from pauca.objectives.merged_rows import Rows
from pauca.solvers.newton import EXACT, Accuracy, Minimum

# Refits of more numbers than this are products that NumPy's BLAS computes as fast; and they are not to be interrupted.
# Systems of more columns LAPACK solves in less time: text to 200 words took longer with kernels than without.
MOST_NUMBERS = 1 << 19
MOST_COLUMNS = 64

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


PREVIEWS, COUPLED_PREVIEWS = Kernels(_load_previews, "preview", "Data("), Kernels(_load_previews, "preview", "Ordered(")
REFITS, COUPLED_REFITS = Kernels(_load_refits, "minimise", "Data("), Kernels(_load_refits, "minimise", "Ordered(")


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
    if not has_kernels(loss):
        return None
    columns, penalty, coef, scores, value, inverse = model
    added = len(new) > 0
    b, (q, n) = len(new) if added else len(removed), columns.shape
    kernels = (COUPLED_PREVIEWS if loss.coupled else PREVIEWS).module
    given = None if kernels is None or not q else given_rows(loss, rows.y, rows.weights, columns, scores)
    if kernels is None or given is None:
        count_missed(0.0 if loss.coupled else SAVED_BY_CALL + SAVED_BY_ROW * b * n)
        return None
    p = q + added
    found = np.empty((b, 1, p)), np.empty((b, 1, n)), np.empty(b), np.empty((b, p, p)), np.empty(b)
    kernels.preview(
        given.data,
        plain(penalty),
        plain(coef),
        given.scores,
        float(value),
        plain(inverse),
        plain(given.in_order(new) if added else new),
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
    if not has_kernels(loss) or not q or q > MOST_COLUMNS or columns.size > MOST_NUMBERS:
        return False
    kernels = (COUPLED_REFITS if loss.coupled else REFITS).module
    given = None if kernels is None else given_rows(loss, y[None], weights, columns, scores)
    if kernels is None or given is None:
        count_missed(0.0 if loss.coupled else SAVED_BY_CALL + SAVED_BY_ROW * n)
        return False
    coef, moved, found = np.array(start), np.array(given.scores), np.empty(2)
    known = hessian is not None
    about_hessian = np.array(hessian) if known else np.empty((q, q))
    ended = kernels.minimise(
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
    if ended == kernels.NOWHERE:
        return None
    at_minimum = ended == kernels.AT_MINIMUM
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
    curve, (q, n) = _usable(loss), columns.shape
    if curve is None or not q or q > MOST_COLUMNS or columns.size > MOST_NUMBERS:
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


class GivenRows(NamedTuple):
    """What kernels are given of rows, and scores as they see them."""

    data: Any
    scores: np.ndarray
    rows: CompiledRows | None = None
    """Those that are coupled, and have an order of their own."""

    def in_order(self, columns: np.ndarray) -> np.ndarray:
        """Columns as kernels see them."""
        return columns if self.rows is None else columns.take(self.rows.order, axis=-1)

    def of_data(self, scores: np.ndarray) -> np.ndarray:
        """Scores that kernels have found in the order of the data."""
        if self.rows is None:
            return scores
        found = np.empty_like(scores)
        found[..., self.rows.order] = scores
        return found

    def kept(self) -> bool:
        """Whether the answers of a kernel are good."""
        return self.rows is None or self.rows.keep(self.data)


def given_rows(
    loss: Loss, y: np.ndarray, weights: np.ndarray, columns: np.ndarray, scores: np.ndarray
) -> GivenRows | None:
    """What kernels, which are loaded, are given of rows; None where there are none for the loss."""
    if loss.coupled:
        rows = loss.compiled_rows()
        if rows is None:
            return None
        in_order = scores.take(rows.order)
        return GivenRows(rows.data(columns.take(rows.order, axis=1), in_order), in_order, rows)
    curve = compiled_curve(loss)
    if curve is None:
        return None
    from pauca.objectives.kernels import Data

    return GivenRows(Data(*curve, plain(y[0]), plain(weights), plain(columns)), plain(scores))


def has_kernels(loss: Loss) -> bool:
    """Whether there may be kernels for a loss; what coupled ones would save is counted where their rows are."""
    return loss.coupled or _usable(loss) is not None


def _usable(loss: Loss) -> CompiledCurve | None:
    return None if loss.coupled or loss.joint else compiled_curve(loss)
