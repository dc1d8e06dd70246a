"""Fits of models in an l1 ball, and the best model in it by a general solver."""

import numpy as np
from judges import LOSSES, PIECEWISE, Kind, LogCosh, shares
from l1_judges import best_in_ball, best_in_ball_by_lp

from pauca import L1Classifier, L1Regressor
from pauca.losses import SquaredError

ALL = {**LOSSES, "squared_error": Kind(SquaredError(), "numbers"), "own": Kind(LogCosh(), "numbers")}


def estimator(kind, **options):
    made = L1Classifier if kind.target in ("signs", "classes") else L1Regressor
    return made(loss=kind.loss, **options)


def best(kind, X, y, radius, options, weights=None):
    center = options.get("fit_intercept", True)
    v = shares(weights, len(X))
    spread = np.sqrt(v @ (X - center * (v @ X)) ** 2) if "standardize" in options else None
    if kind in PIECEWISE.values():
        return best_in_ball_by_lp(kind.loss, X, kind.coded(y)[0], radius, weights=weights, center=center, scale=spread)
    ridge = options.get("ridge", 0.0)
    return best_in_ball(kind, X, y, radius, weights=weights, ridge=ridge, center=center, scale=spread)
