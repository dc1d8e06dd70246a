"""How targets are coded for the first stage; objects, so that a stream can be pickled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pauca.estimators.classes import coded


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
