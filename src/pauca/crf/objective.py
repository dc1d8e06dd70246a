"""The conditional random field on chains, as a function of its weights."""

from __future__ import annotations

import numpy as np

from pauca.crf.observations import Observations
from pauca.crf.passes import Passes


class ChainField:
    """The mean negative log-likelihood of label sequences, and its ridges.

    With scores ``E_t = W x_t + b`` of the C labels at position t and transitions ``T``, the labels y of a sequence have
    the probability ``exp(sum_t E_t[y_t] + sum_t T[y_(t-1), y_t]) / Z``. Over all sequences and their N positions in all

        Q = (1/N) sum (log Z - sum_t E_t[y_t] - sum_t T[y_(t-1), y_t]) + (ridge/2) |W|^2 + (ridge_transitions/2) |T|^2,

    where W are the weights of columns divided by how much they move (``Observations.spreads``).

    Lafferty, McCallum and Pereira (2001); Liu, Fujimaki and Ye (2014), section 5 and D.2, who take the sum for the
    mean. It is convex. No transition leads from one sequence to the next.

    Coordinates are weights of columns that are centred and so divided. So gradients and ridges compare whatever units
    columns are in, and binary columns stay as they are. A standard deviation would favour sensors that hardly ever
    fire: their first derivatives promise far more than they keep. A range would put back those that seldom go to their
    extremes. Nothing is copied: ``(x - mean) / spread`` is a matter of weights and biases.

    A score of the first label is a bias that all transitions to the label take back, one of the last a bias that all
    transitions from it do. So these say nothing new: they are directions in which Q is all but flat, since it changes
    at the ends of sequences only. As coordinates with a curvature of their own they halve the steps that a fit takes.

    Parameters
    ----------
    observations : Observations
    labels : ndarray of int, shape (n,)
        Label of every position, from 0 to ``n_labels - 1``.
    n_labels : int
    ridge, ridge_transitions : float
    owner : ndarray of int, shape (n_columns,), default=None
        The sensor that each column belongs to. None: every column is one.
    by_weight : bool, default=False
        Whether single weights are chosen, and not all weights of a sensor.
    threads : int, default=1

    Attributes
    ----------
    n_coords : int
        ``n_columns * C`` weights, those of a column next to each other, then ``C * C`` transitions, and C biases, C
        scores of the first label and C of the last.
    free : ndarray
        Coordinates that are always in and never counted: transitions and biases.
    groups : ndarray of shape (n_coords,) or None
        What is chosen together, by sensor, -1 for what is free; None where single weights are chosen.
    start : ndarray of shape (n_coords,)
        The logarithms of smoothed frequencies for transitions, and zeros.
    floor : float
        Zero: Q is never below it.
    costly : bool
        True: a value takes a pass over all sequences.
    """

    floor = 0.0
    costly = True

    def __init__(
        self,
        observations: Observations,
        labels: np.ndarray,
        n_labels: int,
        *,
        ridge: float = 0.0,
        ridge_transitions: float = 0.0,
        owner: np.ndarray | None = None,
        by_weight: bool = False,
        threads: int = 1,
    ) -> None:
        self.observations = observations
        self.n_labels = n_labels
        self.n_weights = observations.n_columns * n_labels
        self.n_coords = self.n_weights + n_labels * n_labels + 3 * n_labels
        self.free = np.arange(self.n_weights, self.n_coords)
        sensors = np.arange(observations.n_columns) if owner is None else owner
        by_sensor = np.full(self.n_coords, -1, dtype=np.intp)
        by_sensor[: self.n_weights] = np.repeat(sensors, n_labels)
        self.groups = None if by_weight else by_sensor
        self._mean = observations.pull(observations.often[:, None])[:, 0]
        self._spread = observations.spreads()
        self._passes = Passes(observations, n_labels, threads)
        self._ridge = ridge
        self._ridge_transitions = ridge_transitions
        places = observations.rows.astype(np.intp) * n_labels + labels
        self._seen_by_row = _counted(places, (observations.matrix.shape[0], n_labels))
        goes_on = np.ones(len(labels), dtype=bool)
        goes_on[observations.bounds[1:] - 1] = False
        steps = np.flatnonzero(goes_on)
        self._seen_steps = _counted(labels[steps] * n_labels + labels[steps + 1], (n_labels, n_labels))
        self.start = np.zeros(self.n_coords)
        self.start[self.n_weights :][: n_labels**2] = _log_frequencies(self._seen_steps).ravel()

    def weights(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weights of the columns as they are (n_columns, C), transitions (C, C) from row to column, and biases (C,)."""
        n = self.n_labels
        weights = w[: self.n_weights].reshape(-1, n) / self._spread[:, None]
        transitions, rest = np.split(w[self.n_weights :], [n * n])
        biases, first, last = rest.reshape(3, n)
        steps = transitions.reshape(n, n) - first - last[:, None]
        return weights, steps, biases + first + last - self._mean @ weights

    def value(self, w: np.ndarray) -> float:
        """Q."""
        return self.value_and_gradient(w)[0]

    def gradient(self, w: np.ndarray) -> np.ndarray:
        """The gradient of Q: expected less observed counts, per position."""
        return self.value_and_gradient(w)[1]

    def value_and_gradient(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """Q and its gradient."""
        scores, transitions = self._scores(w)
        n = self.observations.n_positions
        sums = self._passes.sums(scores, transitions - transitions.max())
        excess = sums.marginals - self._seen_by_row
        by_label = excess.sum(axis=0)
        pulled = (self.observations.pull(excess) - np.outer(self._mean, by_label)) / (n * self._spread[:, None])
        steps = (sums.transitions - self._seen_steps) / n + self._ridge_transitions * transitions
        biases = by_label / n
        ends = biases - steps.sum(axis=0), biases - steps.sum(axis=1)
        gradient = np.concatenate([pulled.ravel(), steps.ravel(), biases, *ends])
        gradient[: self.n_weights] += self._ridge * w[: self.n_weights]
        return self._value(w, scores, transitions, sums.log_normalisers), gradient

    def curvature(self, w: np.ndarray) -> np.ndarray:
        """About the second derivatives of Q along each coordinate: variances, as if positions were independent.

        ``sum_t P_t(s) (1 - P_t(s)) x_tj^2 / N`` for a weight, of columns so scaled; for a transition the same with the
        probability of the pair. Positions near each other do depend on each other: this ranks, it bounds nothing.
        """
        scores, transitions = self._scores(w)
        once = self._passes.sums(scores, transitions)
        twice = self._passes.sums(scores, transitions, squared=True)
        n = self.observations.n_positions
        mass = np.maximum(once.marginals - twice.marginals, 0.0)
        by_label, pulled = mass.sum(axis=0) / n, self.observations.pull_squares(mass, self._mean) / n
        weights = pulled / self._spread[:, None] ** 2 + self._ridge
        steps = np.maximum(once.transitions - twice.transitions, 0.0) / n + self._ridge_transitions
        # The first and last positions are taken to be like all others.
        share = (len(self.observations.bounds) - 1) / n
        ends = np.tile(share * by_label + self.n_labels * self._ridge_transitions, 2)
        return np.concatenate([weights.ravel(), steps.ravel(), by_label, ends])

    def _scores(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scores of labels shifted to be at most zero, and transitions.

        A shift of scores or transitions does not change Q. With both at most zero, the logarithms of normalisers and
        the scores of the labels that were seen are near zero wherever labels fit: the difference of the two keeps its
        last digits, on which line searches depend.
        """
        weights, transitions, biases = self.weights(w)
        scores = self.observations.scores(weights)
        scores += biases
        scores -= scores.max(axis=1, keepdims=True)
        return scores, transitions

    def _value(self, w: np.ndarray, scores: np.ndarray, transitions: np.ndarray, log_normalisers: np.ndarray) -> float:
        """Q; the normalisers are those of transitions shifted to be at most zero."""
        steps = transitions - transitions.max()
        seen = float(np.vdot(self._seen_by_row, scores)) + float(np.vdot(self._seen_steps, steps))
        weights = w[: self.n_weights]
        squares = self._ridge * float(weights @ weights) + self._ridge_transitions * float(np.sum(transitions**2))
        return (float(log_normalisers.sum()) - seen) / self.observations.n_positions + 0.5 * squares


def _counted(places: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """How often each place of a table occurs."""
    return np.bincount(places, minlength=shape[0] * shape[1]).astype(np.float64).reshape(shape)


def _log_frequencies(steps: np.ndarray) -> np.ndarray:
    """Logarithms of the smoothed frequencies of the next label, shifted to a mean of zero: only differences matter."""
    smoothed = steps + 1.0
    logarithms = np.log(smoothed / smoothed.sum(axis=1, keepdims=True))
    return logarithms - logarithms.mean()
