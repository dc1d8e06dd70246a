"""How well probabilities or scores separate classes, and how they do at a threshold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

Interval = tuple[float, float]


@dataclass(frozen=True)
class Share:
    """A share of some rows.

    Attributes
    ----------
    count : int
        Rows that have the property.
    of : int
        All rows that might have it; the share is not a number where there are none.
    """

    count: int
    of: int

    @property
    def value(self) -> float:
        """The share itself."""
        return self.count / self.of if self.of else float("nan")

    def interval(self, confidence: float = 0.95) -> Interval:
        """Wilson's interval (1927), which stays between 0 and 1 and is not empty at either."""
        if not self.of:
            return float("nan"), float("nan")
        z, n, share = float(ndtri(0.5 + confidence / 2)), self.of, self.value
        middle = (share + z * z / (2 * n)) / (1 + z * z / n)
        half = z * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        return max(0.0, min(share, float(middle - half))), min(1.0, max(share, float(middle + half)))


@dataclass(frozen=True)
class Confusion:
    """Rows by their class and by what is predicted at a threshold."""

    true_positive: int
    false_negative: int
    false_positive: int
    true_negative: int

    @property
    def accuracy(self) -> Share:
        """Rows that are predicted right."""
        of = self.true_positive + self.false_negative + self.false_positive + self.true_negative
        return Share(self.true_positive + self.true_negative, of)

    @property
    def sensitivity(self) -> Share:
        """Of the rows of the positive class, those predicted so."""
        return Share(self.true_positive, self.true_positive + self.false_negative)

    @property
    def specificity(self) -> Share:
        """Of the rows of the negative class, those predicted so."""
        return Share(self.true_negative, self.true_negative + self.false_positive)

    @property
    def predictive_value(self) -> Share:
        """Of the rows predicted to be positive, those that are."""
        return Share(self.true_positive, self.true_positive + self.false_positive)

    @property
    def negative_predictive_value(self) -> Share:
        """Of the rows predicted to be negative, those that are."""
        return Share(self.true_negative, self.true_negative + self.false_negative)


def confusion(positive: np.ndarray, predicted: np.ndarray) -> Confusion:
    """Counts from two masks of rows: those of the positive class, and those predicted to be."""
    right, flagged = np.asarray(positive, dtype=bool), np.asarray(predicted, dtype=bool)
    counts = [(right & flagged).sum(), (right & ~flagged).sum(), (~right & flagged).sum(), (~right & ~flagged).sum()]
    return Confusion(*map(int, counts))


@dataclass(frozen=True, eq=False)
class ClassConfusion:
    """Rows by their class and by the class that is predicted, of any number of classes.

    Attributes
    ----------
    counts : ndarray of shape (classes, classes)
        Rows of the table are the classes of rows, columns the predicted ones.
    """

    counts: np.ndarray

    @classmethod
    def of(cls, codes: np.ndarray, predicted: np.ndarray, n_classes: int) -> ClassConfusion:
        """The table of classes that are counted from 0."""
        counts = np.zeros((n_classes, n_classes), dtype=np.int64)
        np.add.at(counts, (codes, predicted), 1)
        return cls(counts)

    @property
    def accuracy(self) -> Share:
        """Rows that are predicted right."""
        return Share(int(np.trace(self.counts)), int(self.counts.sum()))

    def recall(self, code: int) -> Share:
        """Of the rows of a class, those predicted so."""
        return Share(int(self.counts[code, code]), int(self.counts[code].sum()))

    def precision(self, code: int) -> Share:
        """Of the rows predicted to be of a class, those that are."""
        return Share(int(self.counts[code, code]), int(self.counts[:, code].sum()))

    def mistaken_for(self, code: int) -> tuple[int, int] | None:
        """The class that rows of a class are most often mistaken for, and how many are; None if none is."""
        wrong = self.counts[code].copy()
        wrong[code] = 0
        return (int(wrong.argmax()), int(wrong.max())) if wrong.any() else None


@dataclass(frozen=True)
class Ranking:
    """The area under the ROC curve and its standard error."""

    auc: float
    """The chance that a row of the positive class scores above one of the other; ties count half."""
    standard_error: float

    def interval(self, confidence: float = 0.95) -> Interval:
        """A normal interval, cut at 0 and 1."""
        half = float(ndtri(0.5 + confidence / 2)) * self.standard_error
        return max(0.0, self.auc - half), min(1.0, self.auc + half)


def ranking(positive: np.ndarray, score: np.ndarray) -> Ranking:
    """The area under the ROC curve, with the standard error of DeLong, DeLong and Clarke-Pearson (1988).

    Not a number unless both classes have rows; the error needs two rows of each.
    """
    positive = np.asarray(positive, dtype=bool)
    ups, downs = np.asarray(score)[positive], np.asarray(score)[~positive]
    n_ups, n_downs = len(ups), len(downs)
    if not n_ups or not n_downs:
        return Ranking(float("nan"), float("nan"))
    # The share of the other class that each row is ranked right against, from ranks among all and among its own.
    ranks = rankdata(np.concatenate([ups, downs]))
    above = (ranks[:n_ups] - rankdata(ups)) / n_downs
    below = 1.0 - (ranks[n_ups:] - rankdata(downs)) / n_ups
    if min(n_ups, n_downs) < 2:
        return Ranking(float(above.mean()), float("nan"))
    variance = above.var(ddof=1) / n_ups + below.var(ddof=1) / n_downs
    return Ranking(float(above.mean()), float(np.sqrt(variance)))


def brier_score(positive: np.ndarray, probability: np.ndarray) -> float:
    """Mean squared difference between probability and outcome (Brier 1950): 0 is perfect."""
    return float(np.mean((np.asarray(probability) - np.asarray(positive, dtype=np.float64)) ** 2))


def log_loss(codes: np.ndarray, probabilities: np.ndarray) -> float:
    """Minus the mean logarithm of the probability of each row's class, shape (n, classes): 0 is perfect.

    A probability of nothing counts as the smallest that differs from it beside one, as in scikit-learn.
    """
    of_class = np.take_along_axis(np.asarray(probabilities), np.asarray(codes)[:, None], axis=1)
    return float(-np.mean(np.log(np.maximum(of_class, np.finfo(np.float64).eps))))


@dataclass(frozen=True, eq=False)
class Calibration:
    """Predicted probabilities against what happened, in bins of rows from low to high.

    Attributes
    ----------
    predicted, observed : ndarray of shape (bins,)
        Mean probability of the rows of a bin, and the share of them that is of the positive class.
    n_rows, n_events : ndarray of shape (bins,)
        How many rows a bin has, and how many of them are of the positive class.
    """

    predicted: np.ndarray
    observed: np.ndarray
    n_rows: np.ndarray
    n_events: np.ndarray

    def intervals(self, confidence: float = 0.95) -> list[Interval]:
        """Wilson's interval of each observed share."""
        pairs = zip(self.n_events.tolist(), self.n_rows.tolist(), strict=True)
        return [Share(events, rows).interval(confidence) for events, rows in pairs]


def calibration(positive: np.ndarray, probability: np.ndarray, n_bins: int = 10) -> Calibration:
    """The calibration curve in at most ``n_bins`` bins with about as many rows each."""
    positive, probability = np.asarray(positive, dtype=bool), np.asarray(probability, dtype=np.float64)
    edges = np.unique(np.quantile(probability, np.linspace(0, 1, n_bins + 1)))
    place = np.searchsorted(edges[1:-1], probability)
    n_rows = np.bincount(place, minlength=max(1, len(edges) - 1))
    kept = n_rows > 0
    n_events = np.bincount(place, weights=positive, minlength=len(n_rows)).astype(np.intp)[kept]
    total, n_rows = np.bincount(place, weights=probability, minlength=len(n_rows))[kept], n_rows[kept]
    return Calibration(total / n_rows, n_events / n_rows, n_rows, n_events)
