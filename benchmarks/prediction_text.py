"""How well few words predict: film reviews as counts of words, against l1 tuned on the same folds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from benchmarks.kept_runs import kept_run
from benchmarks.prediction import L1, OURS, STRATIFIED, Linear, linear, log_loss_of, logistic_model
from benchmarks.problems import Matrix
from benchmarks.real import LEAST_COUNT, TEXTS, words
from benchmarks.report import Figure
from pauca import SparseClassifier

SIZES = (10, 20, 50, 100, 200)
PENALTIES = np.logspace(-2.5, 0, 60)
"""Of the l1 path, as scikit-learn's C: from no word to several hundred."""

SHARE_OF_WORDS = 1 / 3


def prediction_text(quick: bool, data: Path) -> Iterator[Figure]:
    """Log loss on a quarter of the reviews over that of l1, and at given numbers of words over l1's words refitted."""
    X, y = words(data)
    y = y > 0
    splits = range(1 if quick else 5)
    title = f"reviews, {TEXTS} x {X.shape[1]}, words in {LEAST_COUNT} or more"
    found = {who: np.array([_run(who, split, X, y) for split in splits]) for who in (OURS, L1)}
    ours, rival = found[OURS].mean(axis=0), found[L1].mean(axis=0)
    yield Figure(title, f"log loss / l1's ({rival[0]:.3f})", float(ours[0] / rival[0]), 1.0, digits=3)
    yield Figure(title, f"words (l1: {rival[1]:.0f})", float(ours[1]), SHARE_OF_WORDS * float(rival[1]), digits=0)
    for place, size in enumerate(SIZES, 2):
        ratio = float(ours[place] / rival[place])
        yield Figure(title, f"{size} words: log loss / that of l1's words, refitted", ratio, 1.0, digits=3)


def _run(who: str, split: int, X: Matrix, y: np.ndarray) -> tuple[float, ...]:
    """Loss and number of words of the tuned model, and the losses at the given numbers of words."""

    def run() -> tuple[float, ...]:
        train, test = train_test_split(np.arange(len(y)), test_size=0.25, random_state=split, stratify=y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tuned, of_size = (_ours if who == OURS else _l1)(X[train], y[train])
            sizes = [log_loss_of(of_size(size), X[test], y[test]) for size in SIZES]
        return (log_loss_of(tuned, X[test], y[test]), tuned.size, *sizes)

    return kept_run(who, f"reviews split={split}", run)


def _ours(X: Matrix, y: np.ndarray) -> tuple[Linear, Callable[[int], Linear]]:
    """The default, and models of given sizes, each at the ridges that scored best for it."""
    sizes = SparseClassifier(k=list(SIZES), cv=STRATIFIED).fit(X, y)
    return linear(SparseClassifier(cv=STRATIFIED).fit(X, y)), lambda size: linear(sizes.at(size, ridge="best"))


def _l1(X: Matrix, y: np.ndarray) -> tuple[Linear, Callable[[int], Linear]]:
    """Cross-validated l1, and the words of its path refitted with a ridge that is tuned in the same way."""
    models = [LogisticRegression(C=C, l1_ratio=1.0, solver="liblinear", tol=1e-3) for C in PENALTIES]
    paths = [linear(model.fit(X, y)) for model in models]

    def of_size(size: int) -> Linear:
        largest = max((one for one in paths if one.size <= size), key=lambda one: one.size)
        chosen = np.flatnonzero(largest.coef)
        refitted = linear(logistic_model("lbfgs", 0.0).fit(X[:, chosen].toarray(), y))
        coef = np.zeros(X.shape[1])
        coef[chosen] = refitted.coef
        return Linear(coef, refitted.intercept)

    return linear(logistic_model("liblinear", 1.0).fit(X, y)), of_size
