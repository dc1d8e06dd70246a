"""What can be projected, and onto what: everything else is refused with a sentence before any work."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

# Beyond this ratio the squares of weights no longer fit into floats side by side.
WIDEST_WEIGHTS = 1e100


def vector(name: str, values: Any) -> np.ndarray:
    """A finite vector, as float32 if it is that and as float64 otherwise; never a copy of one that is."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers; got an array of dtype {array.dtype}.")
    if array.ndim != 1:
        raise ValueError(f"{name} must be a vector; got an array of shape {array.shape}.")
    array = array if array.dtype == np.float32 else array.astype(np.float64, copy=False)
    if not np.isfinite(array).all():
        bad = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ValueError(f"{name} must be finite; entry {bad} is {array[bad]}.")
    return array


def radius_of(name: str, value: Any) -> float:
    """A finite radius that is not negative; a ball of radius zero is its center alone."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number of at least zero; got {value!r}.")
    if not 0 <= float(value) < np.inf:
        raise ValueError(f"{name} must be at least zero and finite; got {value!r}.")
    return float(value)


def weights_for(values: Any, length: int) -> np.ndarray:
    """Positive weights, one for each entry, not so different in size that their squares overflow."""
    weights = vector("weights", values).astype(np.float64, copy=False)
    if len(weights) != length:
        raise ValueError(f"There must be one weight for each entry: got {len(weights)} weights for {length} entries.")
    if length and weights.min() <= 0:
        bad = int(np.argmin(weights))
        raise ValueError(f"weights must be positive; that of entry {bad} is {weights[bad]}.")
    if length and weights.min() < weights.max() / WIDEST_WEIGHTS:
        raise ValueError(f"weights must lie within a factor of {WIDEST_WEIGHTS:g} of one another; rescale the entries.")
    return weights


def indices_for(name: str, values: Any, length: int) -> np.ndarray:
    """Indices that differ from one another, one for each value."""
    indices = np.asarray(values)
    if indices.ndim != 1 or len(indices) != length:
        raise ValueError(f"The indices and values of {name} must be vectors of one length.")
    if not length:
        return indices.astype(np.intp)
    if indices.dtype.kind not in "iu":
        raise TypeError(f"The indices of {name} must be integers; got an array of dtype {indices.dtype}.")
    if indices.dtype.kind == "u":
        indices = indices.astype(np.intp)  # beside signed ones, NumPy would make floats of them
    if indices.min() < 0:
        raise ValueError(f"The indices of {name} must not be negative; got {indices.min()}.")
    if not (indices[1:] > indices[:-1]).all() and len(np.unique(indices)) < length:
        raise ValueError(f"The indices of {name} must differ from one another; add up values of the same entry first.")
    return indices
