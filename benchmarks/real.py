"""Two classes on real tables: the wait and the objective of every size, against abess on the same data in one run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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

SIZES = 20
TEXTS, LEAST_COUNT = 2000, 20

# A path may take this many times as long as the rival's, and choosing the size by five folds this many times.
PATH_GOAL = {"spambase": 1.1, "breast cancer": 1.1, "golub": 1.1, "a1a": 1.1, "w1a": 0.6}
TEXT_GOAL = 0.8
FORWARD_GOAL = 0.5
AUTO_GOAL = 1.0

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
        "text, counts": lambda: _words(data),
        "text, binary": lambda: _binary(*_words(data)),
        "text, standardised": lambda: _standardised(*_words(data)),
    }


def _figures(name: str, X: Matrix, y: np.ndarray, rounds: int) -> Iterator[Figure]:
    dense = X.toarray() if sparse.issparse(X) else X
    fit_rival = module("abess.linear").LogisticRegression
    contenders = {
        "abess": lambda: fit_rival(support_size=range(SIZES + 1), ic_type="loss").fit(dense, y),
        "exchange": lambda: SparseClassifier(SIZES).fit(X, y),
        "forward": lambda: SparseClassifier(SIZES, method="forward").fit(X, y),
        "abess, five folds": lambda: fit_rival(support_size=range(SIZES + 1), cv=5).fit(dense, y),
        "auto": lambda: SparseClassifier(range(SIZES + 1)).fit(X, y),
    }
    seconds, fitted = _race(contenders, rounds)
    title = f"{name}, {X.shape[0]} x {X.shape[1]}"
    goal = PATH_GOAL.get(name, TEXT_GOAL)
    yield Figure(title, "abess, path", seconds["abess"], unit=" s", digits=3)
    yield Figure(title, "exchange / abess", seconds["exchange"] / seconds["abess"], goal, digits=2)
    yield Figure(title, "forward / abess", seconds["forward"] / seconds["abess"], FORWARD_GOAL, digits=2)
    yield Figure(title, "auto / abess, five folds", seconds["auto"] / seconds["abess, five folds"], AUTO_GOAL, digits=2)
    worse = _sizes_above(fitted["exchange"], X, dense, y, fit_rival)
    yield Figure(title, "sizes at which exchange is above abess", worse, 0, digits=0)


def _race(contenders: dict[str, Callable[[], Any]], rounds: int) -> tuple[dict[str, float], dict[str, Any]]:
    """The least processor time of each contender, who take turns, and what each returned."""
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
    return above


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


def _words(data: Path) -> Table:
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
