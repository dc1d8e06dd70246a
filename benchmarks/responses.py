"""Survival, counts, amounts and ordered classes: coefficients against other packages, paths against abess, points."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from benchmarks.kept_runs import kept_run
from benchmarks.report import Figure
from benchmarks.rivals import module
from pauca import SparseClassifier, SparseCox, SparseOrdinalClassifier, SparseRegressor
from pauca.compiled import kernels_used
from pauca.losses import Gamma, GammaInverseLink, Loss, NegativeBinomial, Tweedie
from pauca.ordinal.cumulative_logit import CumulativeLogit
from pauca.survival.partial_likelihood import PartialLikelihood
from pauca.survival.target import survival_target

RHO = 0.5
EQUAL = 1e-6
# Objectives that differ by less are the same: abess stops its own steps at about this.
NOT_ABOVE = 1 + 1e-6

# Rows, columns, the size to which the path goes, and that of the rival: none for Cox on 20,000 rows, where abess
# had not found the model of size 1 after 200 seconds.
COX_SHAPES = ((500, 2000, 20, 20), (20_000, 500, 20, 0))
OTHER_SHAPES = ((500, 2000, 20, 20), (20_000, 500, 20, 20))
QUICK_SHAPES = ((300, 200, 5, 5),)


def responses(quick: bool) -> Iterator[Figure]:
    """Coefficients on a given support, then paths against abess, which takes one thread; processor time.

    Kernels are loaded before the clock starts, as C++ code is.
    """
    with warnings.catch_warnings(), kernels_used("always"):
        warnings.simplefilter("ignore")
        yield from _coefficients()
        for n, d, k, rival in QUICK_SHAPES if quick else COX_SHAPES:
            yield from _against_abess("Cox", n, d, k, rival)
        for kind in ("gamma", "ordinal"):
            for n, d, k, rival in QUICK_SHAPES if quick else OTHER_SHAPES:
                yield from _against_abess(kind, n, d, k, rival)


def _rows(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    """AR(0.5) columns and a score of ten of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = RHO * X[:, j - 1] + np.sqrt(1 - RHO**2) * X[:, j]
    w = np.zeros(d)
    w[rng.choice(d, 10, replace=False)] = rng.choice([-1, 1], 10) * rng.uniform(0.2, 0.8, 10)
    return X, X @ w, rng


def _survival(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    X, score, rng = _rows(n, d)
    time = rng.exponential(np.exp(-score))
    end = rng.exponential(3 * np.median(time), n)
    y = np.empty(n, dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = time <= end, np.minimum(time, end) + 1e-3
    return X, y


def _coefficients() -> Iterator[Figure]:
    yield from _cox_coefficients()
    sm, ordered = module("statsmodels.api"), module("statsmodels.miscmodels.ordinal_model")
    X, score, rng = _rows(1000, 30)
    exposure, mean, log = rng.uniform(0.2, 5.0, 1000), np.exp(0.4 * score), sm.families.links.Log()
    counts = rng.negative_binomial(2.0, 2.0 / (2.0 + mean * exposure)).astype(float)
    families: dict[str, tuple[Loss | str, np.ndarray, Any]] = {
        "Poisson": ("poisson", counts, sm.families.Poisson()),
        "negative binomial": (NegativeBinomial(0.5), counts, sm.families.NegativeBinomial(alpha=0.5)),
        "gamma": (Gamma(), rng.gamma(2.0, mean * exposure / 2), sm.families.Gamma(log)),
        "Tweedie": (Tweedie(1.5), np.where(counts > 0, counts * mean, 0.0), sm.families.Tweedie(log, var_power=1.5)),
    }
    for name, (loss, y, family) in families.items():
        model = SparseRegressor(k=5, loss=loss).fit(X, y, exposure=exposure)
        judge = sm.GLM(y, sm.add_constant(X[:, model.support_]), family=family, offset=np.log(exposure))
        params = judge.fit(tol=1e-14, maxiter=300).params
        yield _difference(f"{name} with exposure", "statsmodels", model.coef_[model.support_], params[1:])
    grades = np.digitize(score + rng.logistic(size=1000), [-1.0, 0.0, 1.5])
    ordinal = SparseOrdinalClassifier(k=5).fit(X, grades)
    fitted = ordered.OrderedModel(grades, X[:, ordinal.support_], distr="logit").fit(method="newton", disp=0, tol=1e-14)
    yield _difference("ordinal", "statsmodels", ordinal.coef_[ordinal.support_], fitted.params[:5])


def _cox_coefficients() -> Iterator[Figure]:
    X, y = _survival(1000, 30)
    y["time"] = np.round(y["time"], 1) + 0.1
    model = SparseCox(k=5).fit(X, y)
    frame = module("pandas").DataFrame(X[:, model.support_]).assign(time=y["time"], event=y["event"])
    judge = module("lifelines").CoxPHFitter().fit(frame, "time", "event", fit_options={"precision": 1e-13})
    yield _difference("Cox, ties by efron", "lifelines", model.coef_[model.support_], judge.params_.to_numpy())
    for ties in ("efron", "breslow"):
        model = SparseCox(k=5, ties=ties).fit(X, y)
        judge = module("sksurv.linear_model").CoxPHSurvivalAnalysis(ties=ties, tol=1e-13, n_iter=300)
        fitted = judge.fit(X[:, model.support_], y)
        yield _difference(f"Cox, ties by {ties}", "scikit-survival", model.coef_[model.support_], fitted.coef_)


def _difference(problem: str, judge: str, ours: np.ndarray, theirs: np.ndarray) -> Figure:
    worst = float(np.abs(ours / theirs - 1).max())
    return Figure(f"{problem}, 1000 x 30", f"largest relative difference to {judge}", worst, EQUAL, digits=9)


Fit = Callable[[int], tuple[float, float]]
"""Fits a path up to a size: processor time, and the objective of that size."""


def _against_abess(kind: str, n: int, d: int, k: int, rival_k: int) -> Iterator[Figure]:
    """Times of the whole path, and objectives of some sizes; both by our own loss."""
    ours, theirs = {"Cox": _cox_fits, "gamma": _gamma_fits, "ordinal": _ordinal_fits}[kind](n, d)
    name = f"{kind}, {n} x {d}"
    ours(k)  # whatever is done once in a process, such as loading kernels
    time, _ = ours(k)
    yield Figure(name, f"time of the path to k={k}", time, unit=" s")
    if not rival_k:
        return
    rival_time, _ = theirs(rival_k)
    yield Figure(name, f"abess's to k={rival_k}", rival_time, unit=" s")
    yield Figure(name, "our time over abess's", time / rival_time, 1.0)
    for size in sorted({size for size in (1, 2, 5, 10, 20) if size <= rival_k}):
        yield Figure(
            name, f"objective of size {size} over abess's", ours(size)[1] / theirs(size)[1], NOT_ABOVE, digits=7
        )


def _fits(
    make: Callable[[int], Any], X: np.ndarray, y: Any, rival: str, rival_y: Any, loss: Callable[[Any], float]
) -> tuple[Fit, Fit]:
    def ours(size: int) -> tuple[float, float]:
        start = process_time()
        model = make(size).fit(X, y)
        return process_time() - start, float(model.objective_)

    def theirs(size: int) -> tuple[float, float]:
        linear = module("abess.linear")
        options = {"path_type": "seq", "ic_type": "aic", "ic_coef": 0, "cv": 1, "thread": 1}
        start = process_time()
        model = getattr(linear, rival)(support_size=range(size + 1), **options).fit(X, rival_y)
        return process_time() - start, loss(model)

    return ours, theirs


def _cox_fits(n: int, d: int) -> tuple[Fit, Fit]:
    X, y = _survival(n, d)
    v = np.full(n, 1 / n)
    bound = PartialLikelihood("breslow").tuned(survival_target(y)[None], v)
    return _fits(
        lambda size: SparseCox(k=size, ties="breslow"),
        X,
        y,
        "CoxPHSurvivalAnalysis",
        np.column_stack([y["time"], y["event"]]),
        lambda model: float(bound.value(y, X @ model.coef_) @ v),
    )


def _gamma_fits(n: int, d: int) -> tuple[Fit, Fit]:
    """Both with the inverse link, which abess takes, of minus the score."""
    X, score, rng = _rows(n, d)
    y = rng.gamma(2.0, 1.0 / (2.0 * (2.0 + np.tanh(score))))
    loss = GammaInverseLink()
    return _fits(
        lambda size: SparseRegressor(k=size, loss=loss),
        X,
        y,
        "GammaRegression",
        y,
        lambda model: float(np.mean(loss.value(y, -(X @ model.coef_ + model.intercept_)))),
    )


def _ordinal_fits(n: int, d: int) -> tuple[Fit, Fit]:
    X, score, rng = _rows(n, d)
    y = np.digitize(score + rng.logistic(size=n), np.quantile(score, [0.25, 0.5, 0.75])).astype(float)
    v = np.full(n, 1 / n)
    bound = CumulativeLogit().tuned(y[None], v)

    def loss(model: Any) -> float:
        coef = np.asarray(model.coef_).reshape(d, -1)[:, 0]
        return min(float(bound.value(y, sign * (X @ coef)) @ v) for sign in (-1, 1))

    return _fits(lambda size: SparseOrdinalClassifier(k=size), X, y, "OrdinalRegression", y, loss)


# FasterRisk keeps coefficients within bounds; the ridge that the warning about separable classes names does so here.
POINTS_RIDGE = 1e-3

FASTERRISK = "FASTERRISK_PYTHON"

# How often the rows are divided into five folds. Sheets of one division differ by more than those of the two programs;
# on spambase FasterRisk takes minutes for a fold.
TABLES = {"mammo": 3, "breastcancer": 3, "spambase": 1}

PROBE = """
import json, sys, time
import numpy as np
from fasterrisk.fasterrisk import RiskScoreOptimizer
with np.load(sys.argv[1]) as fold:
    X, y, new = fold["X"], fold["y"], fold["new"]
start = time.process_time()
search = RiskScoreOptimizer(X=X, y=y, k=5)
search.optimize()
multiplier, constant, coef = search.get_models(model_index=0)
print(json.dumps([time.process_time() - start, ((new @ coef + constant) / multiplier).tolist()]))
"""

Fold = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""X and y to fit, X and y held out."""


def points(quick: bool, data: Path) -> Iterator[Figure]:
    """Sheets of five features with at most five points against FasterRisk, mean of five folds; processor time.

    FasterRisk needs older versions of NumPy and scikit-learn: FASTERRISK_PYTHON names a Python that has it.
    """
    differences = []
    for name, splits in TABLES.items():
        folds = _folds(data / "risk" / f"{name}_data.csv.gz", 1 if quick else splits)
        ours = np.array([_our_points(fold) for fold in folds.values()])
        yield from _points_figures(f"{name}, pauca", ours)
        if FASTERRISK not in os.environ:
            continue
        theirs = np.array([_kept_fasterrisk(f"{name} {key}", fold) for key, fold in folds.items()])
        yield from _points_figures(f"{name}, FasterRisk", theirs)
        differences.append((ours - theirs).mean(axis=0))
        noise = 2 * (ours - theirs)[:, 1].std(ddof=1) / np.sqrt(len(ours))
        yield Figure(name, "our time over FasterRisk's", float(ours[:, 0].sum() / theirs[:, 0].sum()), 0.2)
        yield Figure(name, "our deviance less FasterRisk's", float(differences[-1][1]), digits=4)
        yield Figure(name, "two standard errors of that", float(noise), digits=4)
        yield Figure(name, "our AUC less FasterRisk's", float(differences[-1][2]), digits=4)
    if differences:
        _, deviance, auc = np.mean(differences, axis=0).tolist()
        yield Figure("mean of the tables", "our deviance less FasterRisk's", deviance, 0.0, digits=4)
        yield Figure("mean of the tables", "our AUC less FasterRisk's", auc, 0.0, True, digits=4)


def _folds(file: Path, splits: int) -> dict[str, Fold]:
    """Five folds of the rows of a table, by the number of the division and their own."""
    rows = np.genfromtxt(file, delimiter=",", skip_header=1)
    X, y = rows[:, 1:], np.where(rows[:, 0] > 0, 1.0, -1.0)
    return {
        f"{seed} {number}": (X[train], y[train], X[test], y[test])
        for seed in range(splits)
        for number, (train, test) in enumerate(StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y))
    }


def _points_figures(name: str, found: np.ndarray) -> Iterator[Figure]:
    seconds, deviance, auc = found.mean(axis=0).tolist()
    yield Figure(name, "time of a fold", seconds, unit=" s", digits=3)
    yield Figure(name, "deviance on rows held out", deviance, digits=4)
    yield Figure(name, "AUC on rows held out", auc, digits=4)


def _our_points(fold: Fold) -> tuple[float, float, float]:
    X, y, new, new_y = fold
    start = process_time()
    sheet = SparseClassifier(k=5, ridge=POINTS_RIDGE).fit(X, y).to_points(cv=None)
    seconds = process_time() - start
    return (seconds, *_judged(new_y, sheet.constant + sheet.scale * sheet.total(new)))


def _kept_fasterrisk(key: str, fold: Fold) -> tuple[float, ...]:
    return kept_run("FasterRisk", key, lambda: _fasterrisk(fold))


def _fasterrisk(fold: Fold) -> tuple[float, float, float]:
    X, y, new, new_y = fold
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "fold.npz"
        np.savez(file, X=X, y=y, new=new)
        command = [os.environ[FASTERRISK], "-c", PROBE, str(file)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    seconds, scores = json.loads(output.strip().splitlines()[-1])
    return (seconds, *_judged(new_y, np.array(scores)))


def _judged(y: np.ndarray, scores: np.ndarray) -> tuple[float, float]:
    """Twice the mean log loss, no probability below 0.001, and the area under the curve."""
    losses = np.minimum(np.logaddexp(0.0, -y * scores), -np.log(1e-3))
    return 2.0 * float(losses.mean()), float(roc_auc_score(y, scores))
