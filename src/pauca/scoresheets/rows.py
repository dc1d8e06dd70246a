"""What points are given for: every unit of a feature, or a value at or above a threshold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Thresholds are sought near these shares of the rows.
CUT_SHARES = (0.25, 0.5, 0.75)

# A feature with no more different values than this is cut between all of them.
FEW_VALUES = 4


@dataclass(frozen=True)
class SheetRow:
    """A line of a sheet.

    Attributes
    ----------
    feature : str
    column : int
        The index of the feature.
    unit : float or None
        Points are given for every so much of the feature; None where there is a threshold, or the feature is 0 or 1.
    threshold : float or None
        Points are given if the feature is at least this.
    points : int
    """

    feature: str
    column: int
    unit: float | None
    threshold: float | None
    points: int = 0

    @property
    def condition(self) -> str:
        """When the points are given, in words."""
        if self.threshold is not None:
            return f"at least {self.threshold:.6g}"
        return "if 1" if self.unit is None else f"for every {self.unit:.6g}"

    def values(self, column: np.ndarray) -> np.ndarray:
        """What the points are multiplied by."""
        if self.threshold is not None:
            return (column >= self.threshold).astype(np.float64)
        return np.asarray(column / (self.unit or 1.0), dtype=np.float64)


def cuts_of(column: np.ndarray) -> list[float]:
    """Up to three readable thresholds that split a column into about equal parts; none if it has no two values."""
    values = np.unique(column)
    if len(values) < 2:
        return []
    if len(values) <= FEW_VALUES:
        return [float(value) for value in values[1:]]
    common = column == values[0]
    if np.mean(common) >= CUT_SHARES[0]:
        # Many rows have the least value, as counts of zero: the first threshold is next above it.
        rest = cuts_of(column[~common])
        return [float(values[1]), *(cut for cut in rest[-1:] if cut > values[1])]
    wanted = np.quantile(column, CUT_SHARES)
    digits = 10.0 ** np.floor(np.log10(max(float(np.diff(np.quantile(column, (0.1, 0.9)))[0]), 1e-300)))
    steps = [digits, digits / 2, digits / 5, digits / 10]
    for step in steps:  # the coarsest grid on which the thresholds differ
        found = np.unique(np.round(wanted / step) * step)
        found = found[(found > values[0]) & (found <= values[-1])]
        if len(found) == len(np.unique(wanted)):
            break
    return [float(f"{value:.6g}") for value in found]
