"""Units that say nothing new beside others."""

from __future__ import annotations

import numpy as np

from pauca.subsets.fits import Fits
from pauca.tolerances import COPY_ABOVE, DEPENDENT_BELOW


def says_nothing_new(fits: Fits, unit: int, others: list[int]) -> bool:
    """Whether a unit is a combination of others or, with a ridge, a copy of one."""
    if not others:
        return False
    if fits.objective.ridge:
        return fits.objective.units.single and is_copy(fits, unit, others)
    return depends(fits, unit, others)


def is_copy(fits: Fits, unit: int, others: list[int]) -> bool:
    """Whether a unit of one column has the same column as another, up to its sign."""
    z = _scaled(fits, [*others, unit])
    return bool(np.abs(z[:-1] @ z[-1]).max() >= COPY_ABOVE)


def depends(fits: Fits, unit: int, others: list[int]) -> bool:
    """Whether all columns of a unit are linear combinations of those of others."""
    z = _scaled(fits, [*others, unit])
    new = len(fits.objective.units.of([unit]))
    chosen, own = z[:-new], z[-new:]
    left = own - np.linalg.lstsq(chosen.T, own.T)[0].T @ chosen
    return bool(np.all(np.einsum("jn,jn->j", left, left) <= DEPENDENT_BELOW))


def independent(fits: Fits, units: list[int]) -> list[int]:
    """Units without those all of whose columns depend linearly on columns before them."""
    features = fits.objective.units.of(units)
    left = np.zeros(len(features))
    triangle: np.ndarray = np.linalg.qr(_scaled(fits, units).T, mode="r")  # type: ignore[assignment]
    left[: len(triangle)] = np.diag(triangle) ** 2
    says_more = set(fits.objective.units.owner[features[left > DEPENDENT_BELOW]].tolist())
    return [unit for unit in units if unit in says_more]


def without_copies(fits: Fits, units: list[int]) -> list[int]:
    """Units of one column without those that are copies of a column before them."""
    z = _scaled(fits, units)
    copies = np.any(np.triu(np.abs(z @ z.T) >= COPY_ABOVE, 1), axis=0)
    return [unit for unit, copy in zip(units, copies, strict=True) if not copy]


def _scaled(fits: Fits, units: list[int]) -> np.ndarray:
    """Columns whose plain products are the weighted ones, shape (q, n)."""
    return fits.pool.gather(units)[fits.objective.free :] * np.sqrt(fits.objective.design.weights)
