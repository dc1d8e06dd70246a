"""Round numbers near a given one: steps of a feature that people would use."""

from __future__ import annotations

import numpy as np


def round_number(value: float) -> float:
    """The nearest of 1, 2 and 5 times a power of ten."""
    power = 10.0 ** np.floor(np.log10(abs(value)))
    best = min((1.0, 2.0, 5.0, 10.0), key=lambda factor: abs(np.log(factor * power / abs(value))))
    return float(f"{best * power:.6g}")


def round_step(column: np.ndarray) -> float:
    """One for columns of zeros and ones, and for small whole numbers; else a round number near the spread."""
    span, spread = float(np.ptp(column)), float(np.std(column))
    whole = np.all(column == np.round(column))
    if not spread or (whole and span <= 10):
        return 1.0
    return round_number(spread)
