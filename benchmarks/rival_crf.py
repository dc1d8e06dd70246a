"""CRFsuite: what it reaches, how long it takes, and which sensors an L1 penalty leaves."""

from __future__ import annotations

import os
import tempfile
from typing import NamedTuple

import numpy as np
import pycrfsuite

from benchmarks.activities import Home


class Fitted(NamedTuple):
    """What a training has come to."""

    losses: list[float]
    """Sum of the losses, and the penalty, after each iteration."""
    seconds: float
    """Of all iterations, without reading the data."""
    per_evaluation: float
    """The least seconds of a value and gradient."""
    sensors: np.ndarray
    """Sensors that have a weight."""


def train(home: Home, *, c1: float = 0.0, c2: float = 0.0, iterations: int = 300) -> Fitted:
    """Train CRFsuite with all weights of sensors and labels, all transitions, and a bias for each label."""
    trainer = pycrfsuite.Trainer(verbose=False, algorithm="lbfgs")
    trainer.set_params(
        {
            "c1": c1,
            "c2": c2,
            "max_iterations": iterations,
            "feature.possible_states": True,
            "feature.possible_transitions": True,
            # All iterations are made: nothing else ends the run.
            "epsilon": 1e-12,
            "delta": 1e-12,
        }
    )
    for X, y in zip(home.X, home.y, strict=True):
        rows = [["bias", *(f"s{j}" for j in np.flatnonzero(row))] for row in X]
        trainer.append(pycrfsuite.ItemSequence(rows), [str(label) for label in y])
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "model")
        trainer.train(file)
        tagger = pycrfsuite.Tagger()
        with tagger.open(file):
            weights = tagger.info().state_features
    log = trainer.logparser.iterations
    sensors = {int(name[1:]) for (name, _), weight in weights.items() if name != "bias" and weight}
    return Fitted(
        [one["loss"] for one in log],
        sum(one["time"] for one in log),
        min(one["time"] / max(1, one.get("linesearch_trials", 1)) for one in log),
        np.array(sorted(sensors), dtype=int),
    )
