"""How targets are coded for the two stages; objects, so that a stream can be pickled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pauca.estimators.classification import coded
from pauca.losses import Loss
from pauca.search.problem import Target


def one_output(y: np.ndarray) -> np.ndarray:
    """Numbers are their own code, shape (1, n)."""
    return y[None]


@dataclass(frozen=True)
class EachAgainstOthers:
    """Codes of classes as -1 and 1: a single output for two, else one for each class against all others."""

    n_classes: int

    def __call__(self, y: np.ndarray) -> np.ndarray:
        """Codes of shape (n,) to targets of shape (C, n)."""
        return coded(y, self.n_classes, joint=False)


@dataclass(frozen=True)
class Numbers:
    """Numbers as the second stage wants them."""

    loss: Loss

    def __call__(self, y: np.ndarray) -> Target:
        """Numbers of shape (n,) to a target."""
        return Target(one_output(y), self.loss, 1)


@dataclass(frozen=True)
class Classes:
    """Classes as the second stage wants them: all of them at once, if the loss can."""

    loss: Loss
    n_classes: int

    def __call__(self, y: np.ndarray) -> Target:
        """Codes of shape (n,) to a target."""
        outputs = 1 if self.n_classes == 2 else self.n_classes
        return Target(coded(y, self.n_classes, joint=self.loss.joint), self.loss, outputs)
