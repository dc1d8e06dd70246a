"""Epoch SGD as in the paper, on whole vectors: slow and plain, to compare the compiled one with."""

import numpy as np


def soft(z, threshold):
    return np.sign(z) * np.maximum(np.abs(z) - threshold, 0.0)


def onto_l1_ball(z, radius):
    """Duchi et al. (2008), by sorting."""
    if np.abs(z).sum() <= radius:
        return z
    sizes = np.sort(np.abs(z))[::-1]
    thresholds = (np.cumsum(sizes) - radius) / np.arange(1, len(sizes) + 1)
    return soft(z, thresholds[np.flatnonzero(sizes > thresholds)[-1]])


def onto_both_balls(z, center, radius, center_radius):
    """Li et al. (2017), Algorithm 3: bisection, until the interval is one of rounding."""
    w = onto_l1_ball(z, radius)
    if np.linalg.norm(w - center) <= center_radius:
        return w, False
    low, high = 0.0, 1.0
    for _ in range(52):
        alpha = (low + high) / 2
        w = onto_l1_ball(alpha * z + (1 - alpha) * center, radius)
        low, high = (alpha, high) if np.linalg.norm(w - center) <= center_radius else (low, alpha)
    return onto_l1_ball(low * z + (1 - low) * center, radius), True


class EagerSGD:
    """The same interface as EpochSGD, dense X only; it keeps every iterate of the epoch and counts active balls."""

    def __init__(
        self,
        n_features,
        loss,
        radius,
        *,
        learning_rate,
        first_epoch,
        center_radius=None,
        intercept=0.0,
        fit_intercept=True,
        intercept_scale=1.0,
    ):
        self.loss, self.radius, self.learning_rate, self.length = loss, radius, learning_rate, first_epoch
        self.center_radius = radius if center_radius is None else center_radius
        self.intercept_rate = intercept_scale**2 * fit_intercept
        self.w, self.b = np.zeros(n_features), intercept
        self.center = self.w, self.b
        self.iterates = []
        self.l1_active = self.l2_active = self.n_epochs = self.n_samples_seen = 0

    def learn(self, X, y, weights=None):
        weights = np.ones(len(y)) if weights is None else weights
        for x, target, weight in zip(X, y, weights, strict=True):
            if weight > 0:
                self._step(x, target, weight)

    def _step(self, x, target, weight):
        self.n_samples_seen += 1
        self.iterates.append((self.w, self.b))
        score = np.array([x @ self.w + self.b])
        g = self.learning_rate * weight * self.loss.derivative(np.array([target]), score)[0]
        z = self.w - g * x
        self.l1_active += np.abs(z).sum() > self.radius
        self.w, outside = onto_both_balls(z, self.center[0], self.radius, self.center_radius)
        self.l2_active += outside
        self.b -= g * self.intercept_rate
        if len(self.iterates) == self.length:
            self.center = self.w, self.b = self._mean(self.iterates)
            self.iterates = []
            self.length, self.learning_rate = 2 * self.length, self.learning_rate / 2
            self.center_radius /= np.sqrt(2)
            self.n_epochs += 1

    @property
    def average(self):
        lacking = max(0, self.length // 2 - len(self.iterates)) if self.n_epochs else int(not self.iterates)
        return self._mean(self.iterates + [self.center] * lacking)

    @property
    def last(self):
        return self.w, self.b

    @staticmethod
    def _mean(iterates):
        return sum(w for w, _ in iterates) / len(iterates), sum(b for _, b in iterates) / len(iterates)
