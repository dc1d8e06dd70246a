"""Warm starts: the minimum on one set of columns as a start for a similar set."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pauca.solvers.newton import Minimum


@dataclass(frozen=True, eq=False)
class WarmStart:
    """A start for the search of a minimum, and what is known there."""

    coef: np.ndarray
    """Shape (C, q), the intercept first."""
    scores: np.ndarray | None = None
    """Their scores, if they are known."""
    value: float | None = None
    """The value there, if it is known. Otherwise the start may be a bad one, and is compared with others."""
    hessian: np.ndarray | None = None
    """The Hessian among some coefficients, at a nearby point."""
    hessian_scores: np.ndarray | None = None
    """The scores of that point."""
    positions: np.ndarray | None = None
    """The positions of those coefficients."""

    def of_output(self, output: int) -> WarmStart:
        """The start for one of several outputs without a joint loss."""
        here = slice(output, output + 1)
        return replace(
            self,
            coef=self.coef[here],
            scores=None if self.scores is None else self.scores[here],
            value=None if self.value is None else self.value / len(self.coef),
            hessian=None if self.hessian is None else self.hessian[here],
            hessian_scores=None if self.hessian_scores is None else self.hessian_scores[here],
        )


def warm_start_near(
    minimum: Minimum, before: np.ndarray, features: np.ndarray, *, free: int, curved: bool, joint: bool
) -> WarmStart:
    """A start for the columns ``features`` from the minimum on the columns ``before``.

    Coefficients of added columns start at zero. Where columns are removed, the others change as in the quadratic around
    the minimum, if the loss is ``curved``; ``joint`` says that all outputs share one Hessian.
    """
    positions, old = _shared(before, features, free)
    removed = np.delete(np.arange(minimum.coef.shape[1]), old)
    coef = np.zeros((len(minimum.coef), free + len(features)))
    coef[:, positions] = minimum.coef[:, old]
    if not curved:
        return WarmStart(coef)
    hessian = _part(minimum.hessian, old, old, minimum.coef.shape)
    if len(removed):
        change = _change_after_removal(
            hessian, _part(minimum.hessian, old, removed, minimum.coef.shape), minimum.coef[:, removed]
        )
        coef[:, positions] += change.reshape(len(coef), -1)
    start = WarmStart(coef) if len(removed) else WarmStart(coef, minimum.scores, minimum.value)
    # With a joint Hessian, a block of it is useless unless all coefficients stay.
    coupled = joint and len(positions) < coef.shape[1]
    if coupled:
        return start
    return replace(start, hessian=hessian, hessian_scores=minimum.scores, positions=positions)


def _shared(before: np.ndarray, features: np.ndarray, free: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the shared columns among the coefficients on ``features``, and among those on ``before``."""
    position = {int(j): i for i, j in enumerate(before, free)}
    pairs = [(i, position[j]) for i, j in enumerate(features.tolist(), free) if j in position]
    pairs = [(i, i) for i in range(free)] + pairs
    return np.array([new for new, _ in pairs], dtype=np.intp), np.array([old for _, old in pairs], dtype=np.intp)


def _part(hessian: np.ndarray, rows: np.ndarray, columns: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """A part of every block of a Hessian, by positions within one output."""
    outputs, size = shape
    if len(hessian) < outputs:
        steps = np.arange(outputs)[:, None] * size
        rows, columns = (steps + rows).ravel(), (steps + columns).ravel()
    return hessian[:, rows[:, None], columns]


def _change_after_removal(hessian: np.ndarray, across: np.ndarray, removed: np.ndarray) -> np.ndarray:
    """The change of the coefficients that stay when others are removed: ``H_kk^-1 H_kr w_r``."""
    gradient = across @ removed.reshape(len(hessian), -1, 1)
    try:
        return np.linalg.solve(hessian, gradient)[:, :, 0]
    except np.linalg.LinAlgError:
        return np.zeros(gradient.shape[:2])
