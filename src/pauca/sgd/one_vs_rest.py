"""One learner for every output, fed with the same rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pauca.losses import Loss
from pauca.sgd.epoch_sgd import EpochSGD
from pauca.sgd.reservoir import Rows

ANSWERS = ("average", "last")


@dataclass(frozen=True)
class Settings:
    """What epoch SGD must be told."""

    bound: float
    """Radius of the l1 ball."""
    step: float
    """Step of the first epoch."""
    first_epoch: int
    """Number of rows of the first epoch."""


class Learners:
    """Learners of all outputs: a single one, or for several classes one for each against all others."""

    def __init__(
        self,
        n_features: int,
        loss: Loss,
        settings: Settings,
        code: Callable[[np.ndarray], np.ndarray],
        answer: str,
        start: np.ndarray,
        *,
        fit_intercept: bool,
        intercept_scale: float,
    ) -> None:
        self.coded = code
        """Targets as they came, shape (n,), to targets of every output, shape (C, n)."""
        self._answer = answer
        self._each = [
            EpochSGD(
                n_features,
                loss,
                settings.bound,
                step=settings.step,
                first_epoch=settings.first_epoch,
                intercept=float(intercept),
                fit_intercept=fit_intercept,
                intercept_scale=intercept_scale,
            )
            for intercept in start
        ]

    def learn(self, rows: Rows, order: np.ndarray | None = None) -> None:
        """Learn rows, in the order given."""
        for learner, y in zip(self._each, self.coded(rows.y), strict=True):
            learner.learn(rows.X, y, rows.weights, order=order)

    def answer(self) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients (C, d) and intercepts (C,) by the iterate that was asked for."""
        return self.average() if self._answer == "average" else self.last()

    def average(self) -> tuple[np.ndarray, np.ndarray]:
        """Averages of the iterates, as Li, Yang, Zhang and Jin (2017) return them."""
        return _stacked([learner.average for learner in self._each])

    def last(self) -> tuple[np.ndarray, np.ndarray]:
        """The last iterates: sparser, and in practice often better."""
        return _stacked([learner.last for learner in self._each])

    @property
    def norm(self) -> float:
        """l1 norm of the last iterates, the largest over the outputs."""
        return max(learner.norm for learner in self._each)

    @property
    def moments(self) -> np.ndarray:
        """Mean squares of the features over all rows seen."""
        return self._each[0].moments


def _stacked(models: list[tuple[np.ndarray, float]]) -> tuple[np.ndarray, np.ndarray]:
    return np.stack([coef for coef, _ in models]), np.array([intercept for _, intercept in models])
