"""The objective of a conditional random field on chains, as a function of its parameters."""

from __future__ import annotations

import numpy as np

from pauca.crf.chain_inference import ChainInference
from pauca.crf.observations import Observations


class ChainCRF:
    """The mean negative log-likelihood of label sequences, and its ridges.

    With scores ``E_t = W x_t + b`` of the C labels at position t and transitions ``T``, the labels y of a sequence have
    the probability ``exp(sum_t E_t[y_t] + sum_t T[y_(t-1), y_t]) / Z``. Over all sequences and their N positions in all

        Q = (1/N) sum (log Z - sum_t E_t[y_t] - sum_t T[y_(t-1), y_t]) + (ridge/2) |W|^2 + (ridge_transitions/2) |T|^2,

    where W are the weights of columns divided by their scales (``Observations.scales``).

    Lafferty, McCallum and Pereira (2001); Liu, Fujimaki and Ye (2014), section 5 and D.2, who take the sum for the
    mean. It is convex. No transition leads from one sequence to the next.

    Coordinates are weights of columns that are centred and divided by their scale. So gradients and ridges do not
    depend on the units of columns, and binary columns stay as they are. Dividing by the standard deviation would favour
    sensors that rarely fire, whose gradients overstate what they gain; dividing by the range would disfavour those that
    rarely take their extreme values. Nothing is copied: ``(x - mean) / scale`` is absorbed by weights and biases.

    A score of the first label equals a bias of that label less all transitions to it, a score of the last label a bias
    less all transitions from it. So they add no new parameters: they are directions in which Q is nearly flat, since it
    changes at the ends of sequences only. As coordinates of their own they halve the steps that a fit takes.

    Parameters
    ----------
    observations : Observations
    labels : ndarray of int, shape (n,)
        Label of every position, from 0 to ``n_labels - 1``.
    n_labels : int
    ridge, ridge_transitions : float
    owner : ndarray of int, shape (n_columns,), default=None
        The sensor that each column belongs to. None: every column is a sensor.
    by_weight : bool, default=False
        Whether single weights are selected instead of all weights of a sensor.
    biases, standardize : bool, default=True
        Whether labels have biases, and whether columns are centred (with biases) and divided by their scale. Without
        biases there are no scores of the first and last label either, and the parameters are those of Liu et al.
    costly : bool, default=True
        Whether the search may use loose refits.
    threads : int, default=1

    Attributes
    ----------
    n_coords : int
        ``n_columns * C`` weights, those of a column next to each other, then ``C * C`` transitions, and with biases C
        of these, C scores of the first label and C of the last.
    free : ndarray
        Coordinates that are always in and never counted: transitions and biases.
    groups : ndarray of shape (n_coords,) or None
        The sensor of every coordinate, -1 for free ones; None if single weights are selected.
    start : ndarray of shape (n_coords,)
        The logarithms of smoothed frequencies for transitions, and zeros.
    floor : float
        Zero: Q is never below it.
    costly : bool
        True unless given: each value takes a pass over all sequences.
    """

    floor = 0.0

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
        biases: bool = True,
        standardize: bool = True,
        costly: bool = True,
        threads: int = 1,
    ) -> None:
        self.observations = observations
        self.n_labels = n_labels
        self.n_weights = observations.n_columns * n_labels
        self.n_coords = self.n_weights + n_labels * n_labels + (3 * n_labels if biases else 0)
        self.free = np.arange(self.n_weights, self.n_coords)
        sensors = np.arange(observations.n_columns) if owner is None else owner
        by_sensor = np.full(self.n_coords, -1, dtype=np.intp)
        by_sensor[: self.n_weights] = np.repeat(sensors, n_labels)
        self.groups = None if by_weight else by_sensor
        self.costly = costly
        self._has_biases = biases
        self._mean = np.zeros(observations.n_columns)
        if biases:
            self._mean = observations.transpose_dot(observations.row_shares[:, None])[:, 0]
        self._scale = observations.scales() if standardize else np.ones(observations.n_columns)
        self._inference = ChainInference(observations, n_labels, threads)
        self._ridge = ridge
        self._ridge_transitions = ridge_transitions
        cells = observations.rows.astype(np.intp) * n_labels + labels
        self._label_counts = _count(cells, (observations.matrix.shape[0], n_labels))
        has_next = np.ones(len(labels), dtype=bool)
        has_next[observations.bounds[1:] - 1] = False
        steps = np.flatnonzero(has_next)
        self._transition_counts = _count(labels[steps] * n_labels + labels[steps + 1], (n_labels, n_labels))
        self.start = np.zeros(self.n_coords)
        self.start[self.n_weights :][: n_labels**2] = _log_frequencies(self._transition_counts).ravel()

    def parameters(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weights of unscaled columns (n_columns, C), transitions (C, C) from row to column, and biases (C,)."""
        n = self.n_labels
        weights = w[: self.n_weights].reshape(-1, n) / self._scale[:, None]
        transitions, rest = np.split(w[self.n_weights :], [n * n])
        if not self._has_biases:
            return weights, transitions.reshape(n, n), np.zeros(n)
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
        expected = self._inference.expectations(scores, transitions - transitions.max())
        excess = expected.marginals - self._label_counts
        by_label = excess.sum(axis=0)
        by_column = self.observations.transpose_dot(excess) - np.outer(self._mean, by_label)
        steps = (expected.transitions - self._transition_counts) / n + self._ridge_transitions * transitions
        biases = by_label / n
        ends = (biases, biases - steps.sum(axis=0), biases - steps.sum(axis=1)) if self._has_biases else ()
        gradient = np.concatenate([(by_column / (n * self._scale[:, None])).ravel(), steps.ravel(), *ends])
        gradient[: self.n_weights] += self._ridge * w[: self.n_weights]
        return self._value(w, scores, transitions, expected.log_partitions), gradient

    def curvature(self, w: np.ndarray) -> np.ndarray:
        """Approximate second derivatives of Q along each coordinate: variances, as if positions were independent.

        ``sum_t P_t(s) (1 - P_t(s)) x_tj^2 / N`` for a weight of a scaled column; for a transition the same with the
        probability of the pair. Since nearby positions are dependent, this is a ranking and not a bound.
        """
        scores, transitions = self._scores(w)
        once = self._inference.expectations(scores, transitions)
        twice = self._inference.expectations(scores, transitions, squared=True)
        n = self.observations.n_positions
        variances = np.maximum(once.marginals - twice.marginals, 0.0)
        by_label, by_column = (
            variances.sum(axis=0) / n,
            self.observations.squared_transpose_dot(variances, self._mean) / n,
        )
        weights = by_column / self._scale[:, None] ** 2 + self._ridge
        steps = np.maximum(once.transitions - twice.transitions, 0.0) / n + self._ridge_transitions
        if not self._has_biases:
            return np.concatenate([weights.ravel(), steps.ravel()])
        # The first and last positions are assumed to be like all others.
        share = (len(self.observations.bounds) - 1) / n
        ends = np.tile(share * by_label + self.n_labels * self._ridge_transitions, 2)
        return np.concatenate([weights.ravel(), steps.ravel(), by_label, ends])

    def _scores(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scores of labels shifted to be at most zero, and transitions.

        A shift of scores or transitions does not change Q. With both at most zero, log partitions and the scores of
        the observed labels are near zero where the model fits well: their difference keeps its last digits, which line
        searches need.
        """
        weights, transitions, biases = self.parameters(w)
        scores = self.observations.scores(weights)
        scores += biases
        scores -= scores.max(axis=1, keepdims=True)
        return scores, transitions

    def _value(self, w: np.ndarray, scores: np.ndarray, transitions: np.ndarray, log_partitions: np.ndarray) -> float:
        """Q; the log partitions are those of transitions shifted to be at most zero."""
        steps = transitions - transitions.max()
        observed = float(np.vdot(self._label_counts, scores)) + float(np.vdot(self._transition_counts, steps))
        weights = w[: self.n_weights]
        squares = self._ridge * float(weights @ weights) + self._ridge_transitions * float(np.sum(transitions**2))
        return (float(log_partitions.sum()) - observed) / self.observations.n_positions + 0.5 * squares


def _count(cells: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """How often each cell of a table occurs."""
    return np.bincount(cells, minlength=shape[0] * shape[1]).astype(np.float64).reshape(shape)


def _log_frequencies(steps: np.ndarray) -> np.ndarray:
    """Logarithms of the smoothed frequencies of the next label, shifted to a mean of zero: only differences matter."""
    smoothed = steps + 1.0
    logarithms = np.log(smoothed / smoothed.sum(axis=1, keepdims=True))
    return logarithms - logarithms.mean()
