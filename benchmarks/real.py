"""Two classes on real tables: the wait and the objective of every size, against abess on the same data in one run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_svmlight_files
from sklearn.feature_extraction.text import CountVectorizer

from benchmarks.problems import Matrix
from benchmarks.report import Figure
from benchmarks.reviews import ARCHIVE, texts
from benchmarks.rivals import module
from pauca import SparseClassifier
from pauca.compiled import kernels_used

SIZES = 20
TEXTS, LEAST_COUNT = 2000, 20

# A path may take this many times as long as the rival's, by NumPy alone and with compiled kernels; of other tables,
# which are text, TEXT_GOAL times.
PATH_GOAL = {
    "spambase": (1.1, 0.4),
    "breast cancer": (1.1, 0.4),
    "golub": (1.1, 1.0),
    "a1a": (1.1, 0.4),
    "w1a": (0.6, 0.25),
}
TEXT_GOAL = (0.8, 0.35)
FORWARD_GOAL = (0.5, 0.25)

# Choosing the size by five folds may take this many times as long as the rival's.
AUTO_GOAL = (1.0, 0.6)

# How fits are computed, and the mode of kernels for it.
WAYS = {"NumPy": "never", "compiled": "always"}

# Objectives are equal if they differ by no more than this share.
SAME = 1e-6

Table = tuple[Matrix, np.ndarray]


def real(quick: bool, data: Path) -> Iterator[Figure]:
    """Logistic loss, sizes 1 to 20; processor time, best of several; abess fits the path 0..20 and takes one thread."""
    for name, load in tables(data).items():
        if not quick or name in {"breast cancer", "spambase"}:
            X, y = load()
            yield from _figures(name, X, y, rounds=1 if quick else 3)


def tables(data: Path) -> dict[str, Callable[[], Table]]:
    """Tables by name, each made when it is needed; columns that do not vary are left out, since abess refuses them."""
    return {
        "breast cancer": lambda: load_breast_cancer(return_X_y=True),
        "spambase": lambda: _first_column(data / "risk" / "spambase_data.csv.gz"),
        "golub": lambda: _golub(data / "highdim" / "golub.npz"),
        "a1a": lambda: _varying(*_libsvm(data, ["a1a.gz"], 123)),
        "w1a": lambda: _varying(*_libsvm(data, ["w1a.gz", "w1a.t.gz"], 300)),
        "text, counts": lambda: words(data),
        "text, binary": lambda: _binary(*words(data)),
        "text, standardised": lambda: _standardised(*words(data)),
    }


def _figures(name: str, X: Matrix, y: np.ndarray, rounds: int) -> Iterator[Figure]:
    dense = X.toarray() if sparse.issparse(X) else X
    fit_rival = module("abess.linear").LogisticRegression
    ours: dict[str, Callable[[], SparseClassifier]] = {
        "exchange": lambda: SparseClassifier(SIZES).fit(X, y),
        "forward": lambda: SparseClassifier(SIZES, method="forward").fit(X, y),
        "auto": lambda: SparseClassifier(range(SIZES + 1)).fit(X, y),
    }
    contenders: dict[str, Callable[[], Any]] = {
        "abess": lambda: fit_rival(support_size=range(SIZES + 1), ic_type="loss").fit(dense, y),
        "abess, five folds": lambda: fit_rival(support_size=range(SIZES + 1), cv=5).fit(dense, y),
    }
    ways = WAYS if find_spec("numba") else {"NumPy": "never"}
    contenders |= {f"{what}, {way}": _in_mode(mode, fit) for what, fit in ours.items() for way, mode in ways.items()}
    seconds, fitted = _race(contenders, rounds)
    title = f"{name}, {X.shape[0]} x {X.shape[1]}"
    yield Figure(title, "abess, path", seconds["abess"], unit=" s", digits=3)
    goals = {"exchange": PATH_GOAL.get(name, TEXT_GOAL), "forward": FORWARD_GOAL, "auto": AUTO_GOAL}
    for what, both in goals.items():
        rival = "abess, five folds" if what == "auto" else "abess"
        for way, goal in zip(ways, both, strict=False):
            figure = seconds[f"{what}, {way}"] / seconds[rival]
            yield Figure(title, f"{what} / {rival}: {way}", figure, goal, digits=2)
    for way in ways:
        worse = _sizes_above(fitted[f"exchange, {way}"], X, dense, y, fit_rival)
        yield Figure(title, f"sizes at which exchange is above abess: {way}", worse, 0, digits=0)


def _in_mode(mode: str, fit: Callable[[], SparseClassifier]) -> Callable[[], SparseClassifier]:
    """A fit with compiled kernels or without."""

    def run() -> SparseClassifier:
        with kernels_used(mode):
            return fit()

    return run


def _race(contenders: dict[str, Callable[[], Any]], rounds: int) -> tuple[dict[str, float], dict[str, Any]]:
    """The least processor time of each contender, who take turns, and what each returned.

    The first round is not counted: in it kernels are loaded, or compiled.
    """
    for run in contenders.values():
        run()
    seconds: dict[str, float] = {}
    fitted: dict[str, Any] = {}
    for _ in range(rounds):
        for name, run in contenders.items():
            start = process_time()
            fitted[name] = run()
            seconds[name] = min(seconds.get(name, np.inf), process_time() - start)
    return seconds, fitted


def _sizes_above(ours: SparseClassifier, X: Matrix, dense: np.ndarray, y: np.ndarray, fit_rival: Any) -> int:
    """At how many sizes our objective is above the rival's, whose path returns one model at a time."""
    above = 0
    for size in ours.path_.sizes[1:]:
        rival = fit_rival(support_size=range(size + 1), ic_type="loss").fit(dense, y)
        scores = X @ np.ravel(rival.coef_) + float(np.ravel(rival.intercept_)[0])
        theirs = float(np.mean(np.logaddexp(0.0, scores) - y * scores))
        found = np.count_nonzero(rival.coef_)
        above += found == size and ours.path_[size].objective > theirs * (1 + SAME)
    return int(above)


def _first_column(file: Path) -> Table:
    """A table whose first column is the label."""
    table = np.loadtxt(_there(file), delimiter=",", skiprows=1)
    return np.ascontiguousarray(table[:, 1:]), (table[:, 0] > 0).astype(int)


def _golub(file: Path) -> Table:
    arrays = np.load(_there(file), allow_pickle=False)
    return arrays["X"].astype(float), np.unique(arrays["y"], return_inverse=True)[1]


def _libsvm(data: Path, files: list[str], n_features: int) -> Table:
    paths = [str(_there(data / "libsvm" / file)) for file in files]
    parts = load_svmlight_files(paths, n_features=n_features)
    return sparse.vstack(parts[0::2]).tocsc(), (np.concatenate(parts[1::2]) > 0).astype(int)


def words(data: Path) -> Table:
    """Counts of the words that are in several of some reviews, and whether the rating is good."""
    documents, ratings = zip(*texts(data / ARCHIVE, "train"), strict=True)
    some = np.random.default_rng(0).permutation(len(ratings))[:TEXTS]
    X = CountVectorizer(min_df=LEAST_COUNT).fit_transform([documents[i] for i in some])
    return X.tocsc().astype(float), (np.array(ratings)[some] > 5).astype(int)


def _binary(X: Matrix, y: np.ndarray) -> Table:
    return (X > 0).astype(float).tocsc(), y


def _standardised(X: Matrix, y: np.ndarray) -> Table:
    dense = X.toarray()
    return (dense - dense.mean(axis=0)) / dense.std(axis=0), y


def _varying(X: Matrix, y: np.ndarray) -> Table:
    spread = X.multiply(X).mean(axis=0) - np.square(X.mean(axis=0))
    return X[:, np.flatnonzero(np.asarray(spread).ravel() > 0)], y


def _there(file: Path) -> Path:
    if not file.exists():
        raise SystemExit(f"{file} is missing: --data takes a folder that holds it.")
    return file
