"""Figures of textbooks by which models of several sizes are compared on the data of the fit."""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np

Number = TypeVar("Number", float, np.ndarray)


def adjusted_r2(r2: float, n_rows: int, n_coefficients: int, *, center: bool = True) -> float:
    """R^2 with variances in place of sums of squares; not a number unless there are more rows than coefficients.

    ``n_coefficients`` is without the intercept, which ``center`` says there is.
    """
    left = n_rows - n_coefficients - int(center)
    return 1.0 - (1.0 - r2) * (n_rows - int(center)) / left if left > 0 else float("nan")


def mallows_cp(loss: float, full_loss: float, n_rows: int, n_coefficients: int, n_full: int, *, center: bool) -> float:
    """``RSS / s^2 - n + 2 q`` with the variance s^2 that the model of all columns leaves (Mallows 1973).

    Losses are half mean squared errors; ``n_coefficients`` and ``n_full`` are without the intercept. Not a number
    unless the model of all columns leaves something.
    """
    left = n_rows - n_full - int(center)
    if left <= 0 or full_loss <= 0:
        return float("nan")
    variance = 2.0 * n_rows * full_loss / left
    return float(2.0 * n_rows * loss / variance - n_rows + 2 * (n_coefficients + int(center)))


def akaike(minus_twice_log_likelihood: Number, n_parameters: Number) -> Number:
    """``-2 log L + 2 q`` (Akaike 1974), of one model or of several."""
    return minus_twice_log_likelihood + 2.0 * n_parameters


def schwarz(minus_twice_log_likelihood: Number, n_parameters: Number, n_rows: int) -> Number:
    """``-2 log L + q log n`` (Schwarz 1978), of one model or of several."""
    return minus_twice_log_likelihood + math.log(n_rows) * n_parameters
