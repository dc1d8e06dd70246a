"""Closed forms along single edges, elementwise: what one edge does to the likelihood.

Throughout ``a = Sigma_ij``, ``s = S_ij`` and ``determinant = Sigma_ii Sigma_jj - a^2``, where ``Sigma`` is the inverse
of the precision matrix ``Theta``, S has a diagonal of ones, and ``Q = -logdet Theta + tr(S Theta)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def edge_gain(
    a: np.ndarray, s: np.ndarray, determinant: np.ndarray, trace: np.ndarray, log_left: np.ndarray
) -> np.ndarray:
    """By how much Q falls at most if an edge moves, and with it the two diagonal entries of its ends.

    The best step makes ``Sigma`` equal S on the two nodes (iterative proportional scaling, Speed and Kiiveri 1986) and
    gains ``tr(S Sigma^-1) - logdet(S Sigma^-1) - 2`` of the two-by-two blocks. That is at least what the entry gains
    alone, at most what a refit of all entries gains, and equal to the latter where no path joins the two nodes.

    Parameters
    ----------
    trace : ``Sigma_ii + Sigma_jj``
    log_left : ``log(1 - s^2)``
    """
    return (trace - 2.0 * s * a) / determinant - 2.0 - log_left + np.log(determinant)


def entry_change(t: np.ndarray, a: np.ndarray, s: np.ndarray, determinant: np.ndarray) -> np.ndarray:
    """By how much Q changes if t is added to the entries (i, j) and (j, i); infinite where Theta is definite no longer.

    ``-log((1 + t a)^2 - t^2 Sigma_ii Sigma_jj) + 2 t s``.
    """
    grown = t * (2.0 * a - t * determinant)
    # The determinant of Theta is positive once more where two eigenvalues have changed their signs.
    definite = (grown > -1.0) & (t * a > -1.0)
    return np.where(definite, 2.0 * t * s - np.log1p(np.where(definite, grown, 0.0)), np.inf)


def least_cost(estimate: Any) -> Any:
    """The least that leaving out an edge can cost if it costs ``estimate`` to second order; a rising function.

    An entry that becomes zero moves Theta by at least ``l = sqrt(2 estimate)`` in the norm of the Hessian at the
    optimum, and Q, being self-concordant, rises by at least ``l - log(1 + l)`` (Nesterov and Nemirovskii 1994).
    """
    length = np.sqrt(2.0 * estimate)
    return length - np.log1p(length)
