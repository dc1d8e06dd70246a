"""Values and derivatives of losses, compiled: loops that the processor takes several rows at a time through.

``pauca.losses.compiled_curves`` says which form is which. The exponential and the logarithm of ``1 + e`` are those of
this module, right to the last bits: those of the C library take one row at a time, four to five times as long.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, overload

from pauca.losses.compiled_curves import (
    GAMMA,
    GAMMA_INVERSE,
    HUBER,
    LOGISTIC,
    NEGATIVE_BINOMIAL,
    POISSON,
    SQUARED_HINGE,
)

# Sums may be taken in any order and fused with products.
compiled = njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"}, error_model="numpy")

# Order matters where numbers cancel.
compiled_in_order = njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")

# log 2 as the sum of a number with few bits, whose multiples are exact, and the rest.
LOG2_HIGH, LOG2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
INVERSE_LOG2 = 1.4426950408889634

# Adding this rounds to a whole number, which then stands in the last bits.
TO_WHOLE = 6755399441055744.0

# Coefficients of the series of the exponential, from the 13th on, which suffices to half of log 2, down to the second.
E13, E12, E11, E10, E9, E8 = (1.0 / math.factorial(i) for i in range(13, 7, -1))
E7, E6, E5, E4, E3, E2 = (1.0 / math.factorial(i) for i in range(7, 1, -1))


def _bitcast(to: Any, llvm_type: Any, given: Any) -> Any:
    """A function that takes the bits of one kind of number for those of another."""

    def typed(typing: Any, number: Any) -> Any:
        return to(given), lambda context, builder, signature, values: builder.bitcast(values[0], llvm_type)

    return intrinsic(typed)


_as_double = _bitcast(types.float64, ir.DoubleType(), types.int64)
_as_integer = _bitcast(types.int64, ir.IntType(64), types.float64)


@compiled_in_order
def exponential(x: float) -> float:
    """``e^x`` by ``2^k e^r`` with r within half of log 2 around zero; infinite above 709.7, and never below 3e-308."""
    near = min(max(x, -708.0), 709.7)
    shifted = near * INVERSE_LOG2 + TO_WHOLE
    k = shifted - TO_WHOLE
    r = (near - k * LOG2_HIGH) - k * LOG2_LOW
    p = E13
    p = p * r + E12
    p = p * r + E11
    p = p * r + E10
    p = p * r + E9
    p = p * r + E8
    p = p * r + E7
    p = p * r + E6
    p = p * r + E5
    p = p * r + E4
    p = p * r + E3
    p = p * r + E2
    p = p * r + 1.0
    p = p * r + 1.0
    # 2^k as 2 times 2^(k-1), which is finite up to the end.
    found = p * _as_double((_as_integer(shifted) + 1022) << 52) * 2.0
    return np.inf if x > 709.7 else found


@compiled_in_order
def is_finite(x: float) -> bool:
    """Whether a number is finite; NumPy's test takes the difference of a number from itself, which is compiled away."""
    return -np.inf < x < np.inf


@compiled_in_order
def log_of_one_more(e: float) -> float:
    """``log(1 + e)`` for e from 0 to 1: the area tangent of ``e / (2 + e)``, twice."""
    u = e / (2.0 + e)
    s = u * u
    p = 1.0 / 29.0
    p = p * s + 1.0 / 27.0
    p = p * s + 1.0 / 25.0
    p = p * s + 1.0 / 23.0
    p = p * s + 1.0 / 21.0
    p = p * s + 1.0 / 19.0
    p = p * s + 1.0 / 17.0
    p = p * s + 1.0 / 15.0
    p = p * s + 1.0 / 13.0
    p = p * s + 1.0 / 11.0
    p = p * s + 1.0 / 9.0
    p = p * s + 1.0 / 7.0
    p = p * s + 1.0 / 5.0
    p = p * s + 1.0 / 3.0
    return 2.0 * (u + u * s * p)


@compiled_in_order
def log_of_one_more_than(x: float) -> float:
    """The same for any x that is not negative and below 1e300."""
    more = 1.0 + x
    bits = _as_integer(more)
    k = _as_double(_as_integer(TO_WHOLE) + (bits >> 52) - 1023) - TO_WHOLE
    part = _as_double((bits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000) - 1.0
    # What rounding has taken from the sum.
    lost = (x - (more - 1.0)) / more
    return k * LOG2_HIGH + (log_of_one_more(part) + (k * LOG2_LOW + lost))


@compiled
def find_slopes(
    form: int, number: float, y: np.ndarray, scores: np.ndarray, derivative: np.ndarray, curvature: np.ndarray
) -> None:
    """First and second derivative of every row."""
    n = len(scores)
    if form == LOGISTIC:
        for i in range(n):
            odds = exponential(min(y[i] * scores[i], 700.0))
            wrong = 1.0 / (1.0 + odds)
            derivative[i] = -y[i] * wrong
            curvature[i] = odds * wrong * wrong
    elif form == POISSON:
        for i in range(n):
            mean = exponential(scores[i])
            derivative[i] = mean - y[i]
            curvature[i] = mean
    elif form == GAMMA:
        for i in range(n):
            ratio = y[i] * exponential(-scores[i])
            derivative[i] = 1.0 - ratio
            curvature[i] = ratio
    elif form == GAMMA_INVERSE:
        for i in range(n):
            mean = 1.0 / max(scores[i], 0.0)
            derivative[i] = y[i] - mean
            curvature[i] = mean * mean
    elif form == NEGATIVE_BINOMIAL:
        shift = math.log(number)
        for i in range(n):
            odds = exponential(min(scores[i] + shift, 700.0))
            other = 1.0 / (1.0 + odds)
            share = odds * other
            derivative[i] = share / number - y[i] * other
            curvature[i] = (y[i] + 1.0 / number) * share * other
    elif form == HUBER:
        for i in range(n):
            residual = scores[i] - y[i]
            derivative[i] = min(max(residual, -number), number)
            curvature[i] = 1.0 if abs(residual) <= number else 0.0
    elif form == SQUARED_HINGE:
        for i in range(n):
            short = 1.0 - y[i] * scores[i]
            derivative[i] = -y[i] * max(short, 0.0)
            curvature[i] = 1.0 if short > 0.0 else 0.0
    else:
        up, down = 2.0 - number, number - 1.0
        for i in range(n):
            mean = exponential(up * scores[i])
            amount = y[i] * exponential(-down * scores[i]) if y[i] > 0.0 else 0.0
            derivative[i] = mean - amount
            curvature[i] = up * mean + down * amount


@compiled
def total_loss(form: int, number: float, y: np.ndarray, weights: np.ndarray, scores: np.ndarray) -> float:
    """The sum of the weighted losses of all rows."""
    n, total = len(scores), 0.0
    if form == LOGISTIC:
        for i in range(n):
            margin = y[i] * scores[i]
            total += weights[i] * (log_of_one_more(exponential(-abs(margin))) - min(margin, 0.0))
    elif form == POISSON:
        for i in range(n):
            if y[i] > 0.0:
                r = scores[i] - math.log(y[i])
                total += weights[i] * max(y[i] * (math.expm1(r) - r), 0.0)
            else:
                total += weights[i] * exponential(scores[i])
    elif form == GAMMA:
        for i in range(n):
            r = math.log(y[i]) - scores[i]
            total += weights[i] * max(math.expm1(r) - r, 0.0)
    elif form == GAMMA_INVERSE:
        for i in range(n):
            r = y[i] * scores[i] - 1.0
            total += weights[i] * (max(r - math.log1p(r), 0.0) if scores[i] > 0.0 else np.inf)
    elif form == HUBER:
        for i in range(n):
            residual = scores[i] - y[i]
            slope = min(max(residual, -number), number)
            total += weights[i] * slope * (residual - 0.5 * slope)
    elif form == SQUARED_HINGE:
        for i in range(n):
            short = max(1.0 - y[i] * scores[i], 0.0)
            total += weights[i] * 0.5 * short * short
    elif form == NEGATIVE_BINOMIAL:
        for i in range(n):
            total += weights[i] * negative_binomial(number, y[i], scores[i])
    else:
        for i in range(n):
            total += weights[i] * tweedie(number, y[i], scores[i])
    return total


@compiled_in_order
def negative_binomial(dispersion: float, y: float, score: float) -> float:
    """The loss of one row."""
    if y <= 0.0:
        a = score + math.log(dispersion)
        return (max(a, 0.0) + math.log1p(math.exp(-abs(a)))) / dispersion
    r, scaled = score - math.log(y), dispersion * y
    if r < 700.0:
        log_ratio = math.log1p(scaled / (1.0 + scaled) * math.expm1(r))
    else:
        log_ratio = score + math.log(dispersion) - math.log1p(scaled)
    return max((y + 1.0 / dispersion) * log_ratio - y * r, 0.0)


@compiled_in_order
def tweedie(power: float, y: float, score: float) -> float:
    """The loss of one row."""
    up, down = 2.0 - power, power - 1.0
    if y <= 0.0:
        return math.exp(up * score) / up
    r = score - math.log(y)
    return max(y**up * (math.expm1(up * r) / up + math.expm1(-down * r) / down), 0.0)


# What other kernels ask of rows and their loss. Rows given as a tuple with a form are those of a curve; losses that
# couple their rows have a tuple of their own, see ``pauca.ordinal.kernels``.


def slopes_of(data: Any, scores: np.ndarray, derivative: np.ndarray, curvature: np.ndarray) -> None:
    """First and second derivative of every row in its own score."""
    raise NotImplementedError


def loss_of(data: Any, scores: np.ndarray) -> float:
    """The sum of the weighted losses."""
    raise NotImplementedError


def weigh(data: Any, curved: np.ndarray, z: np.ndarray, found: np.ndarray) -> None:
    """The Hessian in all scores times a column; ``curved`` has the weighted curvatures that were found last."""
    raise NotImplementedError


def shared_bend(data: Any, z: np.ndarray) -> float:
    """By how much the curvature along a column is less than that of its rows one by one."""
    raise NotImplementedError


class Data(NamedTuple):
    """A loss, as in ``pauca.losses.compiled_curves``, and rows, each with a loss of its own."""

    form: int
    number: float
    y: np.ndarray
    """Shape (n,)."""
    weights: np.ndarray
    """Shape (n,)."""
    columns: np.ndarray
    """Shape (q, n): of a model, or those that are searched along."""
    scores: np.ndarray
    """Those of a model, shape (n,)."""


OPTIONS: Any = {"fastmath": {"contract", "reassoc", "nsz"}, "error_model": "numpy", "nogil": True}


def _is_curve(data: Any) -> bool:
    return "form" in getattr(data, "fields", ())


@overload(slopes_of, jit_options=OPTIONS)
def _slopes_of_curve(data: Any, scores: Any, derivative: Any, curvature: Any) -> Any:
    def found(data: Any, scores: Any, derivative: Any, curvature: Any) -> None:
        find_slopes(data.form, data.number, data.y, scores, derivative, curvature)

    return found if _is_curve(data) else None


@overload(loss_of, jit_options=OPTIONS)
def _loss_of_curve(data: Any, scores: Any) -> Any:
    def total(data: Any, scores: Any) -> float:
        return float(total_loss(data.form, data.number, data.y, data.weights, scores))

    return total if _is_curve(data) else None


@overload(weigh, jit_options=OPTIONS)
def _weigh_by_curve(data: Any, curved: Any, z: Any, found: Any) -> Any:
    def weighed(data: Any, curved: Any, z: Any, found: Any) -> None:
        for i in range(len(z)):
            found[i] = curved[i] * z[i]

    return weighed if _is_curve(data) else None


@overload(shared_bend, jit_options=OPTIONS)
def _shared_bend_of_curve(data: Any, z: Any) -> Any:
    def nothing(data: Any, z: Any) -> float:
        return 0.0

    return nothing if _is_curve(data) else None
