"""Ten classes and few pixels: handwritten digits classified by pauca and by an L1 penalty."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from benchmarks.report import Figure
from pauca import SparseClassifier

PIXELS = 20
QUICK_PIXELS = 6
TEST_SHARE = 0.3
RIDGES = (1e-4, 1e-3, 1e-2)

# Strengths of the L1 penalty: from one that leaves nothing to one that leaves far more than is wanted.
STRENGTHS = np.geomspace(1e-3, 1, 200)

# Points of accuracy: less than one row of one split makes, so that equal is not above.
ABOVE = 0.01

L1, RELAXED = "L1", "L1, refitted"


class Split(NamedTuple):
    """Pixels in [0, 1] and digits, to learn from and to be tested on."""

    X: np.ndarray
    X_test: np.ndarray
    y: np.ndarray
    y_test: np.ndarray


def digits(quick: bool) -> Iterator[Figure]:
    """Multinomial likelihood with intercept, 70 % of the rows to learn from: accuracy on the others.

    L1: scikit-learn's penalised likelihood, at the largest C on a fine path that leaves at most as many pixels. A pixel
    is used if any class has a weight for it. Refitted: the pixels L1 chose, fitted again with our ridge instead of L1.
    """
    pixels = QUICK_PIXELS if quick else PIXELS
    seeds = 1 if quick else 10
    splits = [_split(seed) for seed in range(seeds)]
    chosen = [_l1(split, pixels) for split in splits]
    whole = f"{pixels} pixels, {seeds} split{'s' * (seeds > 1)}"
    l1 = np.array([accuracy for accuracy, _ in chosen])
    yield Figure(whole, f"mean test accuracy of {L1}", float(l1.mean()), digits=4)
    for ridge in RIDGES[1:2] if quick else RIDGES:
        name = f"{whole}, ridge {ridge:g}"
        relaxed = np.array([_refitted(split, used, ridge) for split, (_, used) in zip(splits, chosen, strict=True)])
        yield Figure(name, f"mean test accuracy of {RELAXED}", float(relaxed.mean()), digits=4)
        for method in ("forward", "exchange"):
            ours = np.array([_ours(split, pixels, method, ridge) for split in splits])
            yield Figure(name, f"mean test accuracy of {method}", float(ours.mean()), digits=4)
            for rival, theirs, limit in ((L1, l1, ABOVE), (RELAXED, relaxed, None)):
                above = 100 * float(np.mean(ours - theirs))
                yield Figure(name, f"{method} above {rival}, points", above, limit, at_least=True)
            below = int(np.sum(ours < relaxed))
            yield Figure(name, f"splits where {method} is below {RELAXED}", below, digits=0)


def _split(seed: int) -> Split:
    X, y = load_digits(return_X_y=True)
    return Split(*train_test_split(X / 16, y, test_size=TEST_SHARE, random_state=seed, stratify=y))


def _ours(split: Split, pixels: int, method: str, ridge: float) -> float:
    model = SparseClassifier(pixels, method=method, ridge=ridge).fit(split.X, split.y)
    return float(model.score(split.X_test, split.y_test))


def _l1(split: Split, pixels: int) -> tuple[float, np.ndarray]:
    """Accuracy with an L1 penalty, and the mask of the pixels it leaves."""
    model = LogisticRegression(l1_ratio=1.0, solver="saga", tol=1e-3, max_iter=5000, warm_start=True, random_state=0)
    accuracy, chosen = 0.0, np.zeros(split.X.shape[1], dtype=bool)
    for strength in STRENGTHS:
        model.set_params(C=strength).fit(split.X, split.y)
        used = model.coef_.any(axis=0)
        if used.sum() <= pixels:
            accuracy, chosen = float(model.score(split.X_test, split.y_test)), used
        elif used.sum() > 1.5 * pixels:
            break
    return accuracy, chosen


def _refitted(split: Split, used: np.ndarray, ridge: float) -> float:
    refit = LogisticRegression(C=1 / (ridge * len(split.y)), max_iter=5000).fit(split.X[:, used], split.y)
    return float(refit.score(split.X_test[:, used], split.y_test))
