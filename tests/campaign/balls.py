"""Models in an l1 ball against projected gradient steps: what these find must not be below what was proved."""

from __future__ import annotations

import numpy as np
from references import coded_target, linear_objective, row_shares
from scipy.special import expit, softmax

STEPS = 60
LARGE = 1e-2
"""A share of the empty model's objective that a search which has ended by itself does not leave."""

SLOPES = {
    "squared_error": lambda y, a: a - y,
    "Huber(1.0)": lambda y, a: np.clip(a - y, -1, 1),
    "poisson": lambda y, a: np.exp(a) - y,
    "log_loss": lambda y, a: -y * expit(-y * a),
    "squared_hinge": lambda y, a: -y * np.maximum(0, 1 - y * a),
}


def judge_ball_by_steps(case, model, X, verdict):
    """Steps from the model itself: of several outputs too."""
    loss = case.parameters.get("loss", "log_loss" if "Classifier" in case.family else "squared_error")
    if loss not in SLOPES or case.parameters.get("standardize") or case.parameters.get("ridge"):
        return
    if np.abs(X).max() > 1e3 or not np.all(np.isfinite(np.asarray(case.y, dtype=float))):
        return
    value, best = _lowest_by_steps(case, model, X, loss)
    null = abs(model.path_[0].objective)
    # Scores and targets far from zero are known to their last digit only: of 1e10 that is 2e-6.
    rounding = 1e-9 * null + float(np.spacing(np.abs(model.intercept_)).max())
    if best < model.lower_bound_ - rounding:
        verdict.found("false bound", f"steps in the ball reach {best!r}, below {model.lower_bound_!r}")
    ended_early = case.parameters.get("time_limit") or model.stop_ in ("steps", "time", "interrupted")
    promised = max(LARGE, case.parameters.get("tol", 0.0)) * null
    if "k" not in case.parameters and not ended_early and value - best > promised and value - best > model.gap_:
        verdict.found("not optimal", f"Q is {value!r}, steps in the ball reach {best!r} (gap {model.gap_!r})")


def _lowest_by_steps(case, model, X, loss):
    """The value of the model, and the lowest value of some steps from there."""
    classes, v = getattr(model, "classes_", None), row_shares(case)
    y = coded_target(case, classes)
    u, b = np.atleast_2d(model.coef_).astype(float), np.atleast_1d(model.intercept_).astype(float)

    def value_at(coef, constants):
        return linear_objective(case, X, coef, constants, ridge=0.0, classes=classes)[0]

    first = best = value_at(u, b)
    length, has_intercept = 1.0, case.parameters.get("fit_intercept", True)
    for _ in range(STEPS):
        scores = (X @ u.T).T + b[:, None]
        if y.ndim == 1:
            slope = softmax(scores, axis=0) - (y == np.arange(len(scores))[:, None])
        else:
            slope = SLOPES[loss](y, scores)
        slope = slope * v
        for _ in range(40):
            new = _projected(u - length * slope @ X, model.radius_)
            constants = b - length * slope.sum(axis=1) if has_intercept else b
            there = value_at(new, constants)
            if there <= best:
                break
            length *= 0.5
        else:
            break
        u, b, best, length = new, constants, there, 2 * length
    return first, best


def _projected(u, radius):
    """The nearest point of the ball (Duchi et al. 2008)."""
    sizes = np.abs(u).ravel()
    if not np.all(np.isfinite(sizes)) or sizes.sum() <= radius:
        return u
    ordered = np.sort(sizes)[::-1]
    excess = (np.cumsum(ordered) - radius) / np.arange(1, len(ordered) + 1)
    above = np.flatnonzero(ordered > excess)
    if not len(above):  # a radius that is rounding next to the sizes
        return np.zeros_like(u)
    level = excess[above[-1]]
    return np.sign(u) * np.maximum(np.abs(u) - level, 0.0)
