"""Predicted risks of an event by some time against what was seen, where some rows were not seen to the end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from pauca.statistics.classification_metrics import Calibration, Interval


@dataclass(frozen=True, eq=False)
class EventCalibration(Calibration):
    """Predicted risks at a time against Kaplan and Meier's estimates, in groups of rows from low to high risk.

    Attributes
    ----------
    predicted, observed : ndarray of shape (groups,)
        Mean predicted probability of an event by that time, and the estimate of its share.
    n_rows, n_events : ndarray of shape (groups,)
        How many rows a group has, and how many events were seen in it by that time.
    variance : ndarray of shape (groups,)
        Greenwood's sum: the variance of the logarithm of the share without an event.
    n_effective : ndarray of shape (groups,)
        How many rows, seen to the end, would say as much; it makes the interval where all or none have an event.
    """

    variance: np.ndarray
    n_effective: np.ndarray

    def intervals(self, confidence: float = 0.95) -> list[Interval]:
        """The interval of each observed share; it is symmetric for ``log(-log(1 - share))``, as R's survival has it.

        Where all or none have an event it is Wilson's, of the effective rows; not a number if there are none of these.
        """
        return [
            _interval(1.0 - float(observed), float(variance), float(rows), float(ndtri(0.5 + confidence / 2)))
            for observed, variance, rows in zip(self.observed, self.variance, self.n_effective, strict=True)
        ]


def _interval(free: float, variance: float, n_effective: float, z: float) -> Interval:
    if not 0.0 < free < 1.0:
        reach = z * z / (n_effective + z * z) if n_effective > 0 else float("nan")
        return (0.0 * reach, reach) if free else (1.0 - reach, 1.0 + 0.0 * reach)
    half = z * np.sqrt(variance) / abs(np.log(free))
    return float(1.0 - free ** np.exp(-half)), float(1.0 - free ** np.exp(half))
