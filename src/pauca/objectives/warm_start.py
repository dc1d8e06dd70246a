"""What the minimum on one set of columns says of that on a similar set."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pauca.solvers.newton import Minimum


@dataclass(frozen=True, eq=False)
class WarmStart:
    """Where to look for a minimum, and what is known there."""

    coef: np.ndarray
    """Shape (C, q), that of the intercept first."""
    scores: np.ndarray | None = None
    """Their scores, if they are known."""
    about: float | None = None
    """The value there, if it is known. Otherwise the start may be a bad one, and is to be held against others."""
    known: np.ndarray | None = None
    """The Hessian among some coefficients, from nearby."""
    known_at: np.ndarray | None = None
    """The scores it was computed at."""
    places: np.ndarray | None = None
    """The places of those coefficients."""

    def of_output(self, output: int) -> WarmStart:
        """The guess for one of several outputs that do not share a loss."""
        here = slice(output, output + 1)
        return replace(
            self,
            coef=self.coef[here],
            scores=None if self.scores is None else self.scores[here],
            about=None if self.about is None else self.about / len(self.coef),
            known=None if self.known is None else self.known[here],
            known_at=None if self.known_at is None else self.known_at[here],
        )


def warm_start_near(
    minimum: Minimum, before: np.ndarray, features: np.ndarray, *, free: int, curved: bool, joint: bool
) -> WarmStart:
    """A guess for the columns ``features`` from the minimum on the columns ``before``.

    Coefficients of columns that come in start at zero. Where columns leave, the others take over what the quadratic
    around the minimum says, if the loss is ``curved``; ``joint`` says that all outputs share one Hessian.
    """
    places, old = _shared(before, features, free)
    gone = np.delete(np.arange(minimum.coef.shape[1]), old)
    coef = np.zeros((len(minimum.coef), free + len(features)))
    coef[:, places] = minimum.coef[:, old]
    if not curved:
        return WarmStart(coef)
    known = _piece(minimum.hessian, old, old, minimum.coef.shape)
    if len(gone):
        taken_over = _taken_over(known, _piece(minimum.hessian, old, gone, minimum.coef.shape), minimum.coef[:, gone])
        coef[:, places] += taken_over.reshape(len(coef), -1)
    guess = WarmStart(coef) if len(gone) else WarmStart(coef, minimum.scores, minimum.value)
    # Where outputs are coupled, a piece is of no use unless all coefficients stay.
    coupled = joint and len(places) < coef.shape[1]
    return guess if coupled else replace(guess, known=known, known_at=minimum.scores, places=places)


def _shared(before: np.ndarray, features: np.ndarray, free: int) -> tuple[np.ndarray, np.ndarray]:
    """Places of what both sets share: among the coefficients on ``features``, and among those on ``before``."""
    where = {int(j): place for place, j in enumerate(before, free)}
    pairs = [(place, where[j]) for place, j in enumerate(features.tolist(), free) if j in where]
    pairs = [(place, place) for place in range(free)] + pairs
    return np.array([new for new, _ in pairs], dtype=np.intp), np.array([old for _, old in pairs], dtype=np.intp)


def _piece(hessian: np.ndarray, rows: np.ndarray, columns: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """A piece of every block of a Hessian, given by places within one output."""
    outputs, size = shape
    if len(hessian) < outputs:
        steps = np.arange(outputs)[:, None] * size
        rows, columns = (steps + rows).ravel(), (steps + columns).ravel()
    return hessian[:, rows[:, None], columns]


def _taken_over(known: np.ndarray, across: np.ndarray, gone: np.ndarray) -> np.ndarray:
    """By how much the coefficients that stay change when others go: ``H_kk^-1 H_kg w_g``."""
    pull = across @ gone.reshape(len(known), -1, 1)
    try:
        return np.linalg.solve(known, pull)[:, :, 0]
    except np.linalg.LinAlgError:
        return np.zeros(pull.shape[:2])
