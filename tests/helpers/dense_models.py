"""Dense coefficients and data for draws of sparse ones."""

import numpy as np

from pauca.losses import AbsoluteError, Hinge, Huber, LogLoss, Multinomial, SquaredHinge

DRAWN = ["magnitude", "moments", "systematic"]


def correlated(seed=0, n=60, d=14, outputs=1):
    """Columns of unequal scale with correlations of either sign, one constant; targets near a dense linear model."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) * np.exp(rng.normal(size=d)) + rng.normal(size=d)
    X[:, 4] = 2.0
    coef = rng.normal(size=(outputs, d)) * np.exp(rng.normal(size=d)) / X.std(axis=0).clip(1)
    coef[:, 2] = 0.0
    scores = coef @ X.T
    return X, scores + rng.normal(size=scores.shape) * scores.std(), coef


def weights_of(n, weighted):
    return np.arange(n) % 4.0 if weighted else np.ones(n)


LOSSES = {
    "log_loss": (LogLoss(), 1),
    "hinge": (Hinge(), 1),
    "squared_hinge": (SquaredHinge(), 1),
    "multinomial": (Multinomial(), 3),
    "hinge of three": (Hinge(), 3),
    "huber": (Huber(1.0), 1),
    "absolute_error": (AbsoluteError(), 2),
}


def targets_of(loss, outputs, scores):
    if loss.joint:
        return scores.argmax(axis=0).astype(float)
    return np.where(scores > 0, 1.0, -1.0) if loss.classifies else scores[:outputs]
