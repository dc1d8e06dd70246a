"""Shalev-Shwartz, Srebro and Zhang (2010): the separations of section 4, and the bounds of Table 2.1."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.stats import binom

from benchmarks.papers.page import DEFAULT, Claim, Item, Panel, Result, Table
from pauca import L1Classifier, L1Regressor, SparseClassifier, SparseRegressor, theory
from pauca.losses import AbsoluteError
from pauca.methods import Exchange, Forward, Replacement
from pauca.sparsification import draw

RADIUS = 2.5
PROVED = 0.1
"""The lower bounds are proved for errors up to this."""
LOWER, PRINTED, EXACT = "lower bound", "lower bound as printed", "least of all models"
UPPER_FORWARD, UPPER_SAMPLING = "enough: Theorem 2.7", "enough: Theorem 2.1"
FORWARD = "forward, measured"


def separations(quick: bool, data: Path) -> Result:
    """Section 4: how many features the tight distributions take, beside the theorems."""
    squared, square_rows = _squared(quick)
    absolute, absolute_rows = _absolute(quick)
    text = (
        "The distribution of appendix A.8 with B = 2.5. By symmetry the best model of k features has equal weights, so "
        "that its error is known exactly. Measured sizes are those whose models, fitted to a sample, have the error "
        "for new rows. Theorem 4.1 prints B^2/(45 eps^2); its proof gives B^2/(200 eps^2), which is also drawn. For "
        "absolute loss both searches run on its envelope (Lemma 2.5, beta = 4): on the loss itself a second feature "
        "gains nothing, as no even number of them does, and a search by single steps ends."
    )
    claims = []
    for panel, theorem, power in ((squared, "4.2", 1), (absolute, "4.1", 2)):
        errors, least = panel.curves[EXACT]
        low, enough = (panel.curves[name][1] for name in (LOWER, UPPER_FORWARD))
        between = all(a <= b <= c for a, b, c in zip(low, least, enough, strict=True) if not np.isnan(a))
        slope = -np.polyfit(np.log(errors), np.log(least), 1)[0]
        published = f"Theorem {theorem}: {panel.title} takes features of the order B^2/eps{'^2' if power == 2 else ''}"
        where = "within the bounds" if between else "outside of the bounds"
        found = f"the least number is {where}, and grows as eps^-{slope:.2f}"
        claims.append(Claim(published, found, bool(between and abs(slope - power) < 0.25)))
    return Result(text, claims, [square_rows, absolute_rows], [squared, absolute])


def _squared(quick: bool) -> tuple[Panel, Table]:
    errors = (0.3, 0.2) if quick else (0.1, 0.09, 0.08, 0.07, 0.06, 0.05)
    n, d = (2000, 100) if quick else (10_000, 200)
    X, y = theory.tight_distribution(n, d, radius=RADIUS, random_state=0)
    largest = min(theory.tight_features(errors[-1], RADIUS) + 20, d - 10)
    measured = {
        FORWARD: SparseRegressor(largest, method=Forward(), fit_intercept=False).fit(X, y).path_,
        DEFAULT: SparseRegressor(largest, fit_intercept=False).fit(X, y).path_,
    }
    found: dict[str, list[float]] = {
        LOWER: [float(np.ceil(RADIUS**2 / (8 * e))) for e in errors],
        EXACT: [theory.tight_features(e, RADIUS) for e in errors],
        UPPER_SAMPLING: [theory.sampling_features("squared_error", norm=RADIUS, accuracy=e / 2) for e in errors],
        UPPER_FORWARD: [theory.forward_features("squared_error", norm=RADIUS, accuracy=e / 2) for e in errors],
    }
    for name, path in measured.items():
        found[name] = [
            min((k for k in path.sizes if _expected_error(path[k].coef) <= e), default=np.nan) for e in errors
        ]
    return _separation("squared loss", "mean squared error eps", list(errors), found)


def _expected_error(coef: np.ndarray) -> float:
    """The mean squared error of coefficients for new rows of the distribution; a sample flatters them."""
    return float((1 - coef.sum() / RADIUS) ** 2 + (coef @ coef) * (1 - 1 / RADIUS**2))


def _absolute(quick: bool) -> tuple[Panel, Table]:
    errors = (0.5, 0.4) if quick else (0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1, 0.07, 0.05)
    found: dict[str, list[float]] = {
        LOWER: [theory.least_features_absolute(radius=RADIUS, accuracy=e) if e <= PROVED else np.nan for e in errors],
        PRINTED: [float(np.ceil(RADIUS**2 / (45 * e**2))) if e <= PROVED else np.nan for e in errors],
        EXACT: [_absolute_features(e) for e in errors],
        UPPER_SAMPLING: [theory.sampling_features("absolute_error", norm=RADIUS, accuracy=e) for e in errors],
        UPPER_FORWARD: [theory.forward_features("absolute_error", norm=RADIUS, accuracy=e) for e in errors],
    }
    n, d, largest = (200, 12, 8) if quick else (3000, 60, 55)
    X, y = theory.tight_distribution(n, d, radius=RADIUS, random_state=0)
    new, target = theory.tight_distribution(50_000, d, radius=RADIUS, random_state=1)
    for name, method in ((FORWARD, Forward()), (DEFAULT, Exchange())):
        loss = AbsoluteError().envelope(4.0)
        path = SparseRegressor(largest, loss=loss, method=method, fit_intercept=False).fit(X, y).path_
        reached = {k: np.mean(np.abs(new[:, path[k].support] @ path[k].coef - target)) for k in path.sizes}
        found[name] = [min((k for k in path.sizes if reached[k] <= e), default=np.nan) for e in errors]
    return _separation("absolute loss", "mean absolute error eps", list(errors), found)


def _separation(title: str, x: str, errors: list[float], found: dict[str, list[float]]) -> tuple[Panel, Table]:
    curves = {name: (errors, [float(value) for value in values]) for name, values in found.items()}
    rows = [
        [f"{e:g}", *("" if np.isnan(values[i]) else f"{values[i]:g}" for values in found.values())]
        for i, e in enumerate(errors)
    ]
    bounds = [LOWER, PRINTED, UPPER_FORWARD, UPPER_SAMPLING]
    return Panel(title, x, "features", curves, "xy", bounds), Table(f"Features for {title}", [x, *found], rows)


def absolute_error(k: int) -> float:
    """The least mean absolute error with k features: equal weights, and the best of all slopes."""
    ones = np.arange(k + 1)
    chance = binom.pmf(ones, k, (1 + 1 / RADIUS) / 2)
    sums = 2 * ones - k
    slopes = 1 / sums[sums > 0]  # the error is piecewise linear in the slope, and bends where a sum is fitted exactly
    slopes = slopes[:: max(1, len(slopes) // 400)]
    return float(min(np.abs(np.outer(slopes, sums) - 1) @ chance))


def _absolute_features(error: float) -> int:
    low, high = 1, 2
    while absolute_error(high) > error:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if absolute_error(middle) <= error else (middle, high)
    return high


ALGORITHMS = (
    "Algorithm 1, sampling",
    "Algorithm 2, in the ball",
    "Algorithm 3, forward",
    "Algorithms 3 and 4",
    DEFAULT,
)


def table21(quick: bool, data: Path) -> Result:
    """Table 2.1: features that reach an excess, measured, beside what the theorems say is enough."""
    panels, tables, within = [], [], True
    for loss in ("squared_error", "log_loss"):
        panel, table, holds = _measured(loss, quick)
        panels.append(panel)
        tables.append(table)
        within = within and holds
    text = (
        "400 rows of 60 columns uniform in [-1, 1], a target made from 5 of them, with noise; the model to compare "
        "with is the best on these 5. Features with which each algorithm is first within eps of it. The bounds that "
        "depend on curvature take the smallest eigenvalue of the Hessian along all directions; for logistic loss there "
        "is a ridge of 0.05."
    )
    found = f"{'all' if within else 'not all'} are within their bounds, most of them far below"
    claim = Claim("Table 2.1: features that are enough for each algorithm", found, within)
    return Result(text, [claim], tables, panels)


def _measured(loss: str, quick: bool) -> tuple[Panel, Table, bool]:
    n, d = (100, 20) if quick else (400, 60)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, d))
    true = np.zeros(d)
    true[:5] = [1.0, -1.0, 0.8, 0.6, -0.5]
    score = X @ true + 0.3 * rng.standard_normal(n)
    ridge = 0.0 if loss == "squared_error" else 0.05
    y = score if loss == "squared_error" else np.where(score > 0, 1, -1)
    options = {"ridge": ridge, "fit_intercept": False, "standardize": False}
    estimator = SparseRegressor if loss == "squared_error" else SparseClassifier
    ball = L1Regressor if loss == "squared_error" else L1Classifier
    reference = estimator(5, always=list(range(5)), **options).fit(X, y)
    norm, least = float(np.abs(reference.coef_).sum()), reference.objective_
    curvature = ridge + (np.linalg.eigvalsh(X.T @ X / n)[0] if loss == "squared_error" else 0.0)
    start = reference.path_[0].objective
    accuracies = [0.2 * start * 2.0**-i for i in range(2 if quick else 6)]

    def value(w: np.ndarray) -> float:
        loss_of = 0.5 * (X @ w - y) ** 2 if loss == "squared_error" else np.logaddexp(0, -y * (X @ w))
        return float(np.mean(loss_of) + ridge / 2 * w @ w)

    paths = {
        "Algorithm 3, forward": estimator(d // 2, method=Forward(), **options).fit(X, y).path_,
        "Algorithms 3 and 4": None,
        DEFAULT: estimator(d // 2, **options).fit(X, y).path_,
    }
    replaced = [estimator(k, method=Replacement(), **options).fit(X, y).objective_ for k in range(1, d // 2)]
    dense = np.ravel(ball(norm, gap_tol=1e-7, **options).fit(X, y).coef_)
    printed = {"solver": "forward", "step_rule": "closed", "stopping": "gap", "smoothness": 1.0}
    rows, holds, curves = [], True, {name: ([], []) for name in (*ALGORITHMS, "enough: Theorem 2.7")}
    for accuracy in accuracies:
        model = ball(norm, gap_tol=accuracy, max_iter=10**6, **printed, **options).fit(X, y)
        found = {
            "Algorithm 1, sampling": _draws_needed(dense, value, least + accuracy, rng),
            "Algorithm 2, in the ball": model.k_,
            "Algorithms 3 and 4": 1 + next(i for i, q in enumerate(replaced) if q <= least + accuracy),
        }
        for name, path in paths.items():
            if path is not None:
                found[name] = min(size for size in path.sizes if path[size].objective <= least + accuracy)
        bound = theory.forward_features(loss, norm=norm, accuracy=accuracy, ridge=ridge)
        curved = theory.forward_features_if_curved(
            loss, n_reference=5, curvature=curvature, decrease=start - least, accuracy=accuracy, ridge=ridge
        )
        steps = theory.ball_steps(loss, radius=norm, accuracy=accuracy, ridge=ridge, stop="gap")
        enough = theory.sampling_features(loss, norm=norm, accuracy=accuracy, ridge=ridge)
        fixed = theory.replacement_features(loss, n_reference=5, curvature=curvature, ridge=ridge)
        allowed = (enough, steps, min(bound, curved), fixed)
        holds = holds and all(found[name] <= most for name, most in zip(ALGORITHMS, allowed, strict=False))
        bounds = [f" (≤ {b})" for b in (enough, steps, min(bound, curved), fixed)] + [""]
        rows.append([f"{accuracy:.2g}", *(f"{found[name]}{b}" for name, b in zip(ALGORITHMS, bounds, strict=True))])
        for name in ALGORITHMS:
            curves[name][0].append(1 / accuracy)
            curves[name][1].append(float(found[name]))
        curves["enough: Theorem 2.7"][0].append(1 / accuracy)
        curves["enough: Theorem 2.7"][1].append(float(bound))
    words = "squared loss" if loss == "squared_error" else "logistic loss"
    panel = Panel(words, "1 / eps", "features", curves, "xy", ["enough: Theorem 2.7"])
    title = f"Features for an excess of eps, {words} (enough by the theorem)"
    return panel, Table(title, ["eps", *ALGORITHMS], rows), holds


def _draws_needed(dense: np.ndarray, value: object, enough: float, rng: np.random.Generator) -> int:
    """The median, over 21 sequences, of the number of draws by magnitude that is enough; doubled until it is."""
    assert callable(value)
    needed = []
    for _ in range(21):
        k = 1
        while True:
            drawn = draw(dense, np.ones(len(dense)), k, "magnitude", rng)
            w = np.zeros(len(dense))
            w[drawn.support] = drawn.values
            if value(w) <= enough:
                break
            k = int(np.ceil(1.25 * k))
        needed.append(len(drawn.support))
    return int(np.median(needed))


ITEMS = {
    "shalev-section4": Item("Shalev-Shwartz, Srebro and Zhang (2010), section 4: separations", separations),
    "shalev-table21": Item("Shalev-Shwartz, Srebro and Zhang (2010), Table 2.1: bounds and measured sizes", table21),
}
