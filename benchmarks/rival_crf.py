"""CRFsuite: what it reaches, how long it takes, and which sensors an L1 penalty leaves."""

from __future__ import annotations

import os
import tempfile
from typing import Any, NamedTuple

import numpy as np
import pycrfsuite  # type: ignore[import-untyped]

from benchmarks.activities import Home

# How many penalties are tried for a number of sensors, beyond those that were tried for others.
TRIALS = 8

# The first penalty, as a share of the number of positions, and the factor by which the next goes beyond all before.
FIRST = 1e-2
BEYOND = 4.0


class Fitted(NamedTuple):
    """What a training has come to."""

    losses: list[float]
    """Sum of the losses, and the penalty, after each iteration."""
    seconds: float
    """Of all iterations, without reading the data."""
    per_evaluation: float
    """The least seconds of a value and gradient."""


def train(home: Home, *, c2: float = 0.0, iterations: int = 300) -> Fitted:
    """Train CRFsuite with all weights of sensors and labels, all transitions, and a bias for each label."""
    # All iterations are made: nothing else ends the run.
    trainer = _trainer(home, c2=c2, max_iterations=iterations, epsilon=1e-12, delta=1e-12)
    _state_weights(trainer)
    log = trainer.logparser.iterations
    return Fitted(
        [one["loss"] for one in log],
        sum(one["time"] for one in log),
        min(one["time"] / max(1, one.get("linesearch_trials", 1)) for one in log),
    )


class Penalised:
    """CRFsuite with an L1 penalty, on the same sequences with many a strength of it.

    It penalises transitions and biases as well. A hundred iterations are enough: which sensors are left hardly changes
    from there on.
    """

    def __init__(self, home: Home) -> None:
        self._labels = [str(label) for label in np.unique(np.concatenate(home.y))]
        self._shape = home.X[0].shape[1], len(self._labels)
        self._first = float(np.log(FIRST * sum(map(len, home.y))))
        self._trainer = _trainer(home, max_iterations=100)
        self._tried: dict[float, np.ndarray] = {}

    def weights(self, size: int) -> np.ndarray:
        """Weights of shape (sensors, labels), of which so many sensors have some that are not zero.

        The penalty is found by bisection of its logarithm, between those that left more and fewer sensors. Where none
        of a few leaves as many, those with the largest weights (in the 2-norm) stay of the smallest model that is
        larger.
        """
        for _ in range(TRIALS):
            if size in map(_count, self._tried.values()):
                break
            self._try(self._next(size))
        found = sorted(self._tried.values(), key=_count)
        weights = next((one for one in found if _count(one) >= size), found[-1])
        ranked = np.argsort(-np.linalg.norm(weights, axis=1), kind="stable")
        kept = np.zeros_like(weights)
        kept[ranked[:size]] = weights[ranked[:size]]
        return kept

    def _next(self, size: int) -> float:
        """The logarithm of the penalty to try next."""
        if not self._tried:
            return self._first
        more = [strength for strength, weights in self._tried.items() if _count(weights) > size]
        if not more:
            return min(self._tried) - float(np.log(BEYOND))
        above = [strength for strength in self._tried if strength > max(more)]
        return 0.5 * (max(more) + min(above)) if above else max(more) + float(np.log(BEYOND))

    def _try(self, strength: float) -> None:
        self._trainer.set_params({"c1": float(np.exp(strength))})
        weights = np.zeros(self._shape)
        for (name, label), weight in _state_weights(self._trainer).items():
            if name != "bias":
                weights[int(name[1:]), self._labels.index(label)] = weight
        self._tried[strength] = weights


def _count(weights: np.ndarray) -> int:
    """How many sensors have a weight."""
    return int(np.any(weights, axis=1).sum())


def _trainer(home: Home, **settings: float) -> Any:
    """A trainer that has read the sequences."""
    trainer = pycrfsuite.Trainer(verbose=False, algorithm="lbfgs")
    trainer.set_params(
        {"c1": 0.0, "c2": 0.0, "feature.possible_states": True, "feature.possible_transitions": True, **settings}
    )
    for X, y in zip(home.X, home.y, strict=True):
        rows = [["bias", *(f"s{j}" for j in np.flatnonzero(row))] for row in X]
        trainer.append(pycrfsuite.ItemSequence(rows), [str(label) for label in y])
    return trainer


def _state_weights(trainer: Any) -> dict[tuple[str, str], float]:
    """Weights by sensor and label after a training, those that are not zero."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "model")
        trainer.train(file)
        tagger = pycrfsuite.Tagger()
        with tagger.open(file):
            return dict(tagger.info().state_features)
