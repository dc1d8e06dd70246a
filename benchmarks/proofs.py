"""Proofs of optimality: how many, how fast, and on real tables. Processor seconds, with numba where it is installed."""

from __future__ import annotations

import csv
import gzip
import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import process_time
from types import SimpleNamespace
from unittest.mock import patch
from zlib import crc32

import numpy as np
from scipy.sparse import issparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.preprocessing import PolynomialFeatures

from benchmarks.kept_runs import kept_run
from benchmarks.problems import Problem
from benchmarks.real import tables
from benchmarks.report import Figure
from pauca import SparseClassifier, SparseRegressor, clock
from pauca.estimators import certify
from pauca.relaxations.size_proof import SizeProof

SECONDS = 10.0

# James, Witten, Hastie and Tibshirani, An Introduction to Statistical Learning, best subsets of the table Hitters: the
# share explained of sizes 1 to 19.
BOOK = (0.3215, 0.4252, 0.4514, 0.4754, 0.4908, 0.5087, 0.5141, 0.5286, 0.5346, 0.5405)
BOOK += (0.5426, 0.5436, 0.5445, 0.5452, 0.5455, 0.5458, 0.5460, 0.5461, 0.5461)


def proofs(quick: bool) -> Iterator[Figure]:
    """Columns with correlations ``rho^|i - j|``, 1000 rows, ten true features, ridge 1e-3; and no ridge, every size.

    Time is that of the proof of one size, or of all, after the fit and one small proof to load compiled code.
    """
    warm_up()
    yield from _grid(100, range(1 if quick else 5), share=0.95)
    if not quick:
        yield from _grid(300, range(2), share=0.65)
    for d, limit in ((40, 0.5), (50, 3.0)) if quick else ((40, 0.5), (50, 3.0), (60, 8.0)):
        for n, rho in itertools.product((200, 500), (0.5, 0.9)):
            yield from _every_size(n, d, rho, limit)
    for rho, (ridge, limit) in itertools.product((0.5, 0.9), ((0.01, 5.0), (0.03, 1.0))):
        proof, seconds = prove_size(autoregressive(1000, 1000, rho, 5.0, 0), 10, ridge)
        yield _time(f"1000 x 1000, rho {rho}, k = 10, ridge {ridge}", proof, seconds, limit)
    for rho, (ridge, limit) in itertools.product((0.5, 0.9), ((0.1, 5.0), (0.03, 60.0))):
        proof, seconds = prove_size(autoregressive(1000, 10_000, rho, 5.0, 0), 10, ridge, limit=max(limit, SECONDS))
        yield _time(f"1000 x 10,000, rho {rho}, k = 10, ridge {ridge}", proof, seconds, limit)
    for rho in (0.5,) if quick else (0.5, 0.9):
        yield _roots(rho)


def real_proofs(quick: bool, data: Path) -> Iterator[Figure]:
    """Real tables, standardised: Hitters beside the book, and tables with and without squared terms.

    Hitters is fitted and proved by ``SparseRegressor(k=19).fit(X, y)``, without numba.
    """
    warm_up()
    yield from _hitters(data / "small" / "Hitters.csv")
    yield from _default("Hitters", *_read_hitters(data / "small" / "Hitters.csv"))
    for name, (X, y) in {"diabetes": load_diabetes(return_X_y=True), "wine": load_wine(return_X_y=True)}.items():
        yield from _default(name, X, y)
    yield from _default("breast cancer", *load_breast_cancer(return_X_y=True))
    for name, problem, ridge, sizes in _tables(data / "small"):
        for k in sizes:
            proof, seconds = prove_size(problem, k, ridge)
            yield _time(f"{name}, k = {k}, ridge {ridge:g}", proof, seconds, 5.0)
    if not quick:
        problem = _standardised(*_riboflavin(data / "highdim" / "riboflavin.npz"))
        for k, ridge in itertools.product((3, 5), (0.1, 0.01)):
            proof, seconds = prove_size(problem, k, ridge)
            yield _time(f"riboflavin, k = {k}, ridge {ridge}", proof, seconds)
    for name in ("breast cancer", "spambase", "a1a"):
        X, y = tables(data)[name]()
        problem = Problem(_standardised(np.asarray(X.toarray() if issparse(X) else X), y).X, y)
        for k, ridge in itertools.product((5, 10), (0.1, 0.01)):
            proof, seconds = prove_size(problem, k, ridge, classes=True)
            limit = 1.0 if ridge == 0.1 or name == "breast cancer" else None
            yield _time(f"{name}, log loss, k = {k}, ridge {ridge}", proof, seconds, limit)


def autoregressive(n: int, d: int, rho: float, snr: float, seed: int) -> Problem:
    """Columns with correlations ``rho^|i - j|``; ten equally spaced coefficients of one; all standardised."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    signal = X[:, np.linspace(0, d - 1, 10).astype(int)].sum(axis=1)
    return _standardised(X, signal + rng.standard_normal(n) * np.sqrt(signal.var() / snr))


def _grid(d: int, seeds: Iterable[int], share: float) -> Iterator[Figure]:
    found: dict[int, list[tuple[SizeProof, float]]] = {5: [], 10: [], 20: []}
    for seed, rho, snr in itertools.product(seeds, (0.1, 0.5, 0.9), (1.0, 5.0)):
        problem = autoregressive(1000, d, rho, snr, seed)
        for k, proofs_of_size in found.items():
            proofs_of_size.append(prove_size(problem, k, 1e-3))
    every = [one for some in found.values() for one in some]
    name = f"1000 x {d}"
    yield Figure(name, f"proved within {SECONDS:g} s", 100 * _share(every), 100 * share, True, " %", 0)
    yield Figure(
        name, "median time", median(seconds for _, seconds in every), 0.1 if d == 100 else None, False, " s", 3
    )
    for k, some in found.items():
        yield Figure(f"{name}, k = {k}", "proved", 100 * _share(some), None, False, " %", 0)
        yield Figure(f"{name}, k = {k}", "largest gap", 100 * max(proof.relative_gap for proof, _ in some), unit=" %")


def _roots(rho: float) -> Figure:
    """Bounds of sizes 1 to 50 over all columns, without trees, against the time of the fit."""
    problem = autoregressive(2000, 10_000, rho, 5.0, 0)
    start = process_time()
    model = SparseRegressor(k=50, ridge=0.1).fit(*problem)
    fit = process_time() - start
    start = process_time()
    model.certify(time_limit=1e-3)  # the bounds of the roots are never left out
    seconds = process_time() - start
    return Figure(
        f"2000 x 10,000, rho {rho}, ridge 0.1, k = 1 to 50", "root bounds / fit", seconds / fit, 3.0, False, "x"
    )


def _default(name: str, X: np.ndarray, y: np.ndarray) -> Iterator[Figure]:
    """What a fit on few columns proves by itself, and what that costs."""
    narrow, sizes = certify.NARROW, X.shape[1]
    times: dict[int, list[float]] = {0: [], narrow: []}
    for _, certify.NARROW in itertools.product(range(3), times):
        start = process_time()
        model = SparseRegressor(k=sizes).fit(X, y)
        times[certify.NARROW].append(process_time() - start)
    proved = sum(model.certificate_.proved.values())
    name = f"{name}, {X.shape[1]} columns, every size"
    yield Figure(name, "proved by default", 100 * proved / sizes, 100, True, " %", 0)
    yield Figure(name, "fit with proof / without", min(times[narrow]) / min(times[0]), 2.0, False, "x", 1)


def _share(found: list[tuple[SizeProof, float]]) -> float:
    return sum(proof.proved for proof, _ in found) / len(found)


def _every_size(n: int, d: int, rho: float, limit: float) -> Iterator[Figure]:
    X, y = autoregressive(n, d, rho, 1.0, 0)
    model = SparseRegressor(k=d - 1).fit(X, y)
    start = process_time()
    with processor_clock():
        certificate = model.certify(time_limit=60.0)
    seconds = process_time() - start
    name = f"{n} x {d}, rho {rho}, no ridge, every size"
    yield Figure(name, "proved", 100 * np.mean(list(certificate.proved.values())), 100, True, " %", 0)
    yield Figure(name, "time", seconds, limit, False, " s")


def prove_size(
    problem: Problem, k: int, ridge: float, *, classes: bool = False, limit: float = SECONDS
) -> tuple[SizeProof, float]:
    """The proof of one size, and its time; or those of a run that was kept."""
    content = crc32(problem.y.tobytes()) ^ crc32(problem.X[:, :50].tobytes())
    key = f"{problem.X.shape} {content:08x} k={k} ridge={ridge} classes={classes} limit={limit}"
    objective, bound, nodes, seconds = kept_run("proofs", key, lambda: _prove_size(problem, k, ridge, classes, limit))
    return SizeProof(objective, bound, int(nodes)), seconds


def _prove_size(
    problem: Problem, k: int, ridge: float, classes: bool, limit: float
) -> tuple[float, float, float, float]:
    """Objective, bound, number of nodes and time."""
    estimator = (SparseClassifier if classes else SparseRegressor)(k=k, ridge=ridge).fit(problem.X, problem.y)
    only = estimator.at(k)
    only.path_ = type(only.path_)(
        {size: only.path_[size] for size in (0, k)}, only.path_.moves, only.path_.stop, only.path_.n_features
    )
    start = process_time()
    with processor_clock():
        proof = only.certify(time_limit=limit).proofs[k]
    return proof.objective, proof.lower_bound, proof.nodes, process_time() - start


@contextmanager
def processor_clock() -> Iterator[None]:
    """Time limits in processor seconds: what is proved within one must not depend on who else is at work."""
    processor = SimpleNamespace(monotonic=process_time)
    with patch.object(certify, "time", processor), patch.object(clock, "time", processor):
        yield


def _time(name: str, proof: SizeProof, seconds: float, limit: float | None = None) -> Figure:
    """The time of a proof; infinite where it was not found, with the gap in the name."""
    if proof.proved:
        return Figure(name, f"time to proof ({proof.nodes:,} nodes)", seconds, limit, False, " s")
    return Figure(name, f"time to proof ({100 * proof.relative_gap:.2g} % left)", np.inf, limit, False, " s")


def warm_up() -> None:
    """Load what is compiled, and compile what is not: within a limit of some seconds nothing would be."""
    SparseRegressor(k=6, ridge=1e-3).fit(*autoregressive(200, 60, 0.9, 1.0, 3)).certify(time_limit=None)
    SparseRegressor(k=12).fit(*autoregressive(100, 45, 0.5, 1.0, 0)).certify(time_limit=None)


def _hitters(file: Path) -> Iterator[Figure]:
    X, y = _read_hitters(file)
    SparseRegressor(k=19).fit(X, y)
    start = process_time()
    model = SparseRegressor(k=19).fit(X, y)
    seconds = process_time() - start
    for size, book in enumerate(BOOK, start=1):
        explained = model.path_.explained(size)
        verdict = "proved" if model.certificate_.proved[size] else "open"
        yield Figure(f"Hitters, size {size}", f"R^2 ({verdict}; book {book:.4f})", explained, book - 6e-5, True, "", 4)
    yield Figure("Hitters", "sizes proved", sum(model.certificate_.proved.values()), 19, True, "", 0)
    yield Figure("Hitters", "fit and proof of all sizes", seconds, 0.3, False, " s")


def _read_hitters(file: Path) -> tuple[np.ndarray, np.ndarray]:
    with file.open(encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if row["Salary"] not in {"NA", ""}]
    names = [name for name in rows[0] if name and name.lower() not in {"salary", "names", "name", "rownames"}]
    columns = []
    for name in names:
        values = [row[name] for row in rows]
        try:
            columns.append([float(value) for value in values])
        except ValueError:
            columns.append([float(value == max(values)) for value in values])
    return np.array(columns).T, np.array([float(row["Salary"]) for row in rows])


def _tables(folder: Path) -> Iterator[tuple[str, Problem, float, tuple[int, ...]]]:
    X, y = load_diabetes(return_X_y=True)
    terms = PolynomialFeatures(2, include_bias=False).fit_transform(X)
    yield "diabetes with 64 terms", _standardised(terms, y), 1e-3, (5, 7, 10)
    with gzip.open(folder / "communities.data.gz", "rt") as lines:
        rows = [row[5:] for row in csv.reader(lines)]
    table = np.array([[float(cell) if cell not in {"?", ""} else np.nan for cell in row] for row in rows])
    table = table[:, ~np.isnan(table).any(axis=0)]
    yield "communities and crime", _standardised(table[:, :-1], table[:, -1]), 1e-2, (5, 8, 10)
    table = np.loadtxt(folder / "boston_house_prices.csv", delimiter=",", skiprows=2)
    terms = _standardised(table[:, :-1], table[:, -1]).X
    terms = PolynomialFeatures(2, include_bias=False).fit_transform(terms)
    yield "Boston with 103 terms", _standardised(terms, table[:, -1]), 1e-3, (5, 8)


def _riboflavin(file: Path) -> tuple[np.ndarray, np.ndarray]:
    with np.load(file, allow_pickle=False) as arrays:
        return arrays["X"], arrays["y"].ravel()


def _standardised(X: np.ndarray, y: np.ndarray) -> Problem:
    """Columns and target with mean zero and mean square one; constant columns and copies are left out."""
    X = X - X.mean(axis=0)
    spread = np.sqrt(np.mean(X**2, axis=0))
    X = X[:, spread > 1e-10] / spread[spread > 1e-10]
    copies = (
        np.any(np.triu(np.abs(X.T @ X) / len(X) > 1 - 1e-9, 1), axis=0) if X.shape[1] <= 1000 else np.zeros(X.shape[1])
    )
    y = y - y.mean()
    return Problem(np.asfortranarray(X[:, copies == 0]), y / np.sqrt(np.mean(y**2)))
