"""The best model in an l1 ball, by solvers that know nothing of the library's own ways."""

import numpy as np
from judges import shares
from scipy.optimize import linprog, minimize


def best_in_ball(kind, X, y, bound, *, weights=None, ridge=0.0, center=True, scale=None):
    """The least Q with ``sum_j scale_j |w_j| <= bound`` by sequential quadratic programming; for smooth losses."""
    v, loss = shares(weights, len(X)), kind.tuned(y, weights)[0]
    y, X, v = kind.coded(y)[..., v > 0], X[v > 0], v[v > 0]
    d, outputs = X.shape[1], kind.outputs
    scale = np.ones(d) if scale is None else scale
    Z, penalty = (X - center * (v @ X)) / scale, ridge / scale**2

    def both(flat):
        up, down, b = np.split(flat.reshape(outputs, -1), [d, 2 * d], axis=1)
        u = up - down
        a = u @ Z.T + b
        slopes = loss.derivative(y, a) * v
        along = slopes @ Z + penalty * u
        value = float(np.sum(loss.value(y, a) @ v)) + 0.5 * float(np.sum(penalty * u * u))
        return value, np.hstack([along, -along, center * slopes.sum(axis=1)[:, None]]).ravel()

    used = np.tile(np.append(np.ones(2 * d), 0.0), outputs)
    constants = center * loss.constants(y, v, outputs)
    start = np.column_stack([np.full((outputs, 2 * d), bound / (4 * d * outputs)), constants]).ravel()
    found = minimize(
        both,
        start,
        jac=True,
        method="SLSQP",
        bounds=([(0, None)] * (2 * d) + [(None, None) if center else (0, 0)]) * outputs,
        constraints=[{"type": "ineq", "fun": lambda flat: bound - used @ flat, "jac": lambda flat: -used}],
        options={"ftol": 1e-14, "maxiter": 2000},
    )
    return found.fun


def best_in_ball_by_lp(loss, X, y, bound, *, weights=None, center=True, scale=None):
    """The same for a piecewise linear loss, exactly, by a linear program."""
    n, d = X.shape
    v = shares(weights, n)
    scale = np.ones(d) if scale is None else scale
    direction = np.broadcast_to(loss.direction(y), n)[:, None]
    Z = direction * (X - v @ X) / scale if center else direction * X / scale
    # r = up - down, both not negative; value = highest up - lowest down.
    rows = np.hstack([Z, -Z, float(center) * direction, -np.eye(n), np.eye(n)])
    cost = np.concatenate([np.zeros(2 * d + 1), loss.highest * v, -loss.lowest * v])
    used = np.append(np.ones(2 * d), np.zeros(1 + 2 * n))
    found = linprog(
        cost,
        A_ub=used[None],
        b_ub=[bound],
        A_eq=rows,
        b_eq=-loss.residual(y, np.zeros(n)),
        bounds=[(0, None)] * (2 * d) + [(None, None)] + [(0, None)] * (2 * n),
    )
    assert found.success
    return found.fun


def best_in_ball_by_gradients(loss, X, y, outputs, bound, steps=500):
    """The same for smooth losses of many coefficients and curvature at most one, by accelerated projected gradients."""
    n, d = X.shape
    Z = np.column_stack([X - X.mean(axis=0), np.ones(n)])
    length = n / np.linalg.norm(Z, 2) ** 2
    w = ahead = np.zeros((outputs, d + 1))
    momentum = 1.0
    for _ in range(steps):
        slopes = loss.derivative(y, ahead @ Z.T) @ Z / n
        there = ahead - length * slopes
        there[:, :d] = _into_ball(there[:, :d], bound)
        if np.sum((ahead - there) * (there - w)) > 0:  # O'Donoghue and Candes 2015
            momentum = 1.0
        following = 0.5 + np.sqrt(0.25 + momentum**2)
        ahead = there + (momentum - 1) / following * (there - w)
        w, momentum = there, following
    return float(np.sum(loss.value(y, w @ Z.T))) / n


def _into_ball(w, bound):
    """The nearest point whose absolute entries sum to at most ``bound``."""
    if np.abs(w).sum() <= bound:
        return w
    falling = np.sort(np.abs(w), axis=None)[::-1]
    levels = (np.cumsum(falling) - bound) / np.arange(1, falling.size + 1)
    return np.sign(w) * np.maximum(np.abs(w) - levels[np.flatnonzero(falling > levels)[-1]], 0.0)
