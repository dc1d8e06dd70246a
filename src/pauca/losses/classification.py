"""Smooth losses for classification: logistic, squared hinge, multinomial."""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from pauca.losses.base import Loss, Slopes

# Probabilities of held-out rows are at least this: with separable classes a model without a ridge predicts zeros and
# ones, and a single wrong row would outweigh all others.
LEAST_PROBABILITY = 1e-6


def check_binary_target(y: np.ndarray) -> None:
    """Refuse classes that are not coded as -1 and 1."""
    if not np.all(np.abs(y) == 1):
        raise ValueError("The two classes must be coded as -1 and 1; SparseClassifier does this itself.")


def of_wrong_labels(loss: Loss, y: np.ndarray, a: np.ndarray) -> np.ndarray:
    """The loss of held-out rows if their labels were others: the other of two, or the mean over those of several.

    Several classes are one output each, 1 for the class of the row and -1 for the others, shape (C, n).
    """
    flipped = loss.held_out(-y, a)
    if y.ndim == 1 or len(y) == 1:
        return flipped
    share = 1.0 / (len(y) - 1)
    return np.where(y > 0, flipped, share * flipped + (1.0 - share) * loss.held_out(y, a))


def _odds(y: np.ndarray, a: np.ndarray) -> np.ndarray:
    """``e^(y a)``, where that does not overflow."""
    # In place: allocating arrays of this size costs as much as filling them. exp overflows beyond 709.
    odds = y * a
    return np.exp(np.minimum(odds, 700.0, out=odds), out=odds)


class LogLoss(Loss):
    """``log(1 + e^(-y a))``: minus the log-likelihood of two classes with log-odds a."""

    explains = "deviance"
    free_dispersion = False
    classifies = True
    smoothness = 0.25
    lipschitz = 1.0
    self_concordance = 1.0
    may_diverge = True
    undecided = float(np.log(2.0))
    link = "log_loss"
    ratio = "odds ratio"

    def check_target(self, y: np.ndarray) -> None:
        check_binary_target(y)

    def value(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        margin = y * a
        return np.log1p(np.exp(-np.abs(margin))) - np.minimum(margin, 0.0)

    def derivative(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        wrong = _odds(y, a)
        wrong += 1.0
        np.divide(y, wrong, out=wrong)
        return np.negative(wrong, out=wrong)

    def curvature(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.slopes(y, a).curvature

    def slopes(self, y: np.ndarray, a: np.ndarray) -> Slopes:
        odds = _odds(y, a)
        wrong = 1.0 + odds
        np.divide(1.0, wrong, out=wrong)
        odds *= wrong
        curvature = np.multiply(odds, wrong, out=odds)
        wrong *= y
        return Slopes(np.negative(wrong, out=wrong), curvature)

    def conjugate(self, y: np.ndarray, t: np.ndarray) -> np.ndarray:
        p = -t * y
        inside = (p >= 0) & (p <= 1)
        q = np.where(inside, p, 0.0)
        return np.where(inside, xlogy(q, q) + xlogy(1 - q, 1 - q), np.inf)

    def constant(self, y: np.ndarray, weights: np.ndarray) -> float:
        # Not from the share of one class: where the other has next to no weight, rounding makes it one.
        of_class, of_other = float(weights @ (y > 0)), float(weights @ (y <= 0))
        if not (of_class and of_other):
            return np.inf if of_class else -np.inf
        return float(np.log(of_class) - np.log(of_other))

    def held_out(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return np.minimum(self.value(y, a), -np.log(LEAST_PROBABILITY))

    def mislabelled(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return of_wrong_labels(self, y, a)

    def minus_twice_log_likelihood(self, losses: np.ndarray, n_rows: int) -> float:
        return 2.0 * n_rows * float(np.sum(losses))

    def for_classes(self, n_classes: int) -> Loss:
        return self if n_classes == 2 else Multinomial()

    def probabilities(self, a: np.ndarray) -> np.ndarray:
        """Probabilities of both classes, shape (2, n), for scores of shape (1, n)."""
        upper = 1.0 / (1.0 + np.exp(-np.clip(a[0], -700, 700)))
        return np.stack([1.0 - upper, upper])


class SquaredHinge(Loss):
    """``max(0, 1 - y a)^2 / 2``: half the square of the shortfall from a margin of one."""

    classifies = True
    smoothness = 1.0
    flat = True

    def check_target(self, y: np.ndarray) -> None:
        check_binary_target(y)

    def value(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return 0.5 * np.maximum(0.0, 1.0 - y * a) ** 2

    def derivative(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return -y * np.maximum(0.0, 1.0 - y * a)

    def curvature(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return (y * a < 1.0).astype(np.float64)

    def conjugate(self, y: np.ndarray, t: np.ndarray) -> np.ndarray:
        return np.where(t * y <= 0, t * y + 0.5 * t * t, np.inf)

    def constant(self, y: np.ndarray, weights: np.ndarray) -> float:
        return float(weights @ y)

    def mislabelled(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return of_wrong_labels(self, y, a)


class Multinomial(Loss):
    """``log(sum_c e^(a_c)) - a_y`` for scores of shape (C, n) and classes y of shape (n,): one loss per row.

    The Hessian of a row is ``diag(p) - p p'`` with p the probabilities, so the scores are coupled.
    """

    explains = "deviance"
    classifies = True
    joint = True
    smoothness = 0.5
    lipschitz = float(np.sqrt(2.0))
    may_diverge = True
    undecided = float(np.log(2.0))
    link = "softmax"

    def check_target(self, y: np.ndarray) -> None:
        if np.any(y < 0) or np.any(y != np.floor(y)):
            raise ValueError("The classes must be coded as 0, 1, 2, ...; SparseClassifier does this itself.")

    def value(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        highest = a.max(axis=0)
        return highest + np.log(np.exp(a - highest).sum(axis=0)) - self._own(y, a)

    def derivative(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        slope = _softmax(a)
        slope[y.astype(np.intp), np.arange(len(y))] -= 1.0
        return slope

    def curvature(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return _softmax(a)

    def slopes(self, y: np.ndarray, a: np.ndarray) -> Slopes:
        p = _softmax(a)
        slope = p.copy()
        slope[y.astype(np.intp), np.arange(len(y))] -= 1.0
        return Slopes(slope, p)

    def coupling(self, curvature: np.ndarray) -> np.ndarray:
        return curvature

    def broad_curvature(self, y: np.ndarray, a: np.ndarray, weights: np.ndarray) -> np.ndarray:
        p = _softmax(a)
        return p * (1.0 - p)

    def conjugate(self, y: np.ndarray, t: np.ndarray) -> np.ndarray:
        u = t.copy()
        u[y.astype(np.intp), np.arange(len(y))] += 1.0
        inside = np.all(u >= -1e-12, axis=0) & (np.abs(u.sum(axis=0) - 1.0) <= 1e-9)
        u = np.clip(u, 0.0, 1.0)
        return np.where(inside, xlogy(u, u).sum(axis=0), np.inf)

    def constants(self, y: np.ndarray, weights: np.ndarray, n_outputs: int) -> np.ndarray:
        shares = np.bincount(y.astype(np.intp), weights=weights, minlength=n_outputs)
        logs = np.log(shares, out=np.full(n_outputs, -np.inf), where=shares > 0)
        return logs - logs[shares > 0].mean()

    def held_out(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return np.minimum(self.value(y, a), -np.log(LEAST_PROBABILITY))

    def mislabelled(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        highest = a.max(axis=0)
        of_labels = np.minimum(highest + np.log(np.exp(a - highest).sum(axis=0)) - a, -np.log(LEAST_PROBABILITY))
        return (of_labels.sum(axis=0) - self._own(y, of_labels)) / (len(a) - 1)

    def minus_twice_log_likelihood(self, losses: np.ndarray, n_rows: int) -> float:
        return 2.0 * n_rows * float(np.sum(losses))

    def n_parameters(self, n_coefficients: int, n_outputs: int, *, center: bool) -> int:
        # The same added to the scores of all classes changes nothing: those of one may be zero.
        return super().n_parameters(n_coefficients, n_outputs - 1, center=center)

    def for_classes(self, n_classes: int) -> Loss:
        return self if n_classes > 2 else LogLoss()

    def probabilities(self, a: np.ndarray) -> np.ndarray:
        """Probabilities of the classes, shape (C, n)."""
        return _softmax(a)

    @staticmethod
    def _own(y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return a[y.astype(np.intp), np.arange(len(y))]


def _softmax(a: np.ndarray) -> np.ndarray:
    """Probabilities of classes with scores of shape (C, n)."""
    p = a - a.max(axis=0)
    np.exp(p, out=p)
    p /= p.sum(axis=0)
    return p
