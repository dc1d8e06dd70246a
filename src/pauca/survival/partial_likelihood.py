"""Cox's partial likelihood as a loss whose rows are coupled by the risk sets they share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pauca.losses import Loss, Slopes
from pauca.survival.risk_sets import RiskSets

TIES = ("efron", "breslow")

# Sums over risk sets are at least this: scores so far apart that e^a vanishes are those of a perfect order.
LEAST_SUM = 1e-300


class PartialLikelihood(Loss):
    """Minus Cox's (1972) log partial likelihood of scores that are log-hazards.

    Of a row i whose event was seen, ``log sum_j v_j e^(a_j) - a_i`` over the rows j at risk at its time; of all others
    zero. The constant that makes a perfect order zero is subtracted. The loss is bound to its rows by ``tuned``, which
    finds their risk sets.

    Parameters
    ----------
    ties : {"efron", "breslow"}, default="efron"
        What is done about events at the same time: Efron (1977) takes the tied rows out of the risk set in equal parts
        one after the other, Breslow (1974) leaves all of them in.
    """

    coupled = True
    shift_invariant = True
    may_diverge = True
    # Along a column z the third derivative is a third central moment, at most 2 max |z| times the second.
    self_concordance = 2.0

    def __init__(self, ties: str = "efron") -> None:
        if ties not in TIES:
            raise ValueError(f"ties must be 'efron' or 'breslow'; got {ties!r}.")
        self.ties = ties

    def tuned(self, y: np.ndarray, weights: np.ndarray) -> Loss:
        return BoundPartialLikelihood(RiskSets(y[0], weights), self.ties)

    link = "log_hazard"

    def prediction(self, a: np.ndarray) -> np.ndarray:
        return a

    def minus_twice_log_likelihood(self, losses: np.ndarray, n_rows: int) -> float:
        return 2.0 * n_rows * float(np.sum(losses))

    def value(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        raise ValueError("A partial likelihood has no value before it knows all rows: call tuned(y, weights) first.")

    def derivative(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.value(y, a)

    def curvature(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.value(y, a)


class BoundPartialLikelihood(PartialLikelihood):
    """The partial likelihood of given rows; scores always have shape (..., n), and targets are not looked at again.

    Conventions
    -----------
    G event times; T terms ``log Z_t`` of the likelihood, one for each event time, or for each event where ties are
    taken out one by one
    v_k e^(a_k), the hazards, are relative to the largest: a constant in all scores changes nothing
    """

    def __init__(self, risk_sets: RiskSets, ties: str) -> None:
        super().__init__(ties)
        self.risk_sets = risk_sets
        self._seen = risk_sets.has_event.astype(np.float64)
        events = np.bincount(risk_sets.group[risk_sets.has_event], minlength=risk_sets.n_groups)
        tied = (events > 1) & (ties == "efron")
        self._single, self._tied = np.flatnonzero(~tied), np.flatnonzero(tied)
        counts = events[tied]
        self._tie = np.repeat(np.arange(len(counts)), counts)
        """The tie that each of the terms after the single ones belongs to."""
        self._tie_starts = np.cumsum(counts) - counts
        self._left_out = (np.arange(len(self._tie)) - self._tie_starts[self._tie]) / counts[self._tie]
        self._term = np.concatenate([self._single, self._tied[self._tie]])
        """The event time of each term: first those of a single term, then those of ties."""
        self._tied_events = risk_sets.events[tied[risk_sets.group[risk_sets.events]]]
        weight = risk_sets.with_event(risk_sets.weights)
        self._share = np.concatenate([np.ones(len(self._single)), 1.0 / counts[self._tie]])
        self._weight = weight[self._term] * self._share
        self._root_weight = np.sqrt(self._weight)
        left = np.concatenate([np.zeros(len(self._single)), np.log1p(-self._left_out)])
        self._perfect = np.log(weight) + self._of_times(self._share * left)
        """The mean logarithm of the terms of an event time at which only those with an event are at risk."""

    def tuned(self, y: np.ndarray, weights: np.ndarray) -> Loss:
        return self

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def value(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        if not self.risk_sets.n_groups:  # rows of a fold without any event
            return np.zeros_like(a)
        risk, top = self._hazards(a)
        logs = self._of_times(self._share * np.log(self._sums(risk))) - self._perfect
        sets = self.risk_sets
        return np.where(sets.has_event, logs.take(sets.group, axis=-1) + top - a, 0.0)

    def derivative(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.slopes(y, a).derivative

    def curvature(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.slopes(y, a).curvature

    def slopes(self, y: np.ndarray, a: np.ndarray) -> Slopes:
        # The derivative is minus the martingale residual: the expected events of a row less those seen.
        hazard = np.exp(a - a.max(axis=-1, keepdims=True))
        expected = self._while_at_risk(self._weight / self._sums(hazard * self.risk_sets.weights))
        np.maximum(expected, 0.0, out=expected)
        expected *= hazard
        return Slopes(expected - self._seen, expected)

    def row_coupling(self, a: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Means of columns over the rows at risk, times the roots of the weights of the terms."""
        risk, _ = self._hazards(a)
        means = self._sums(risk * columns, least=None)
        means *= self._root_weight / self._sums(risk)
        return means

    def coupled_image(self, a: np.ndarray, columns: np.ndarray) -> np.ndarray:
        risk, _ = self._hazards(a)
        rates, sums = self._sums(risk * columns, least=None), self._sums(risk)
        rates /= sums
        rates *= self._weight / sums
        image = self._while_at_risk(rates)
        image *= risk
        return image

    def _hazards(self, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        top = a.max(axis=-1, keepdims=True)
        return np.exp(a - top) * self.risk_sets.weights, top

    def _sums(self, values: np.ndarray, least: float | None = LEAST_SUM) -> np.ndarray:
        """Sums over the rows of every term, shape (..., T)."""
        sums = self.risk_sets.at_risk(values)
        if len(self._tie):
            sums = sums.take(self._term, axis=-1)
            own = np.add.reduceat(values.take(self._tied_events, axis=-1), self._tie_starts, axis=-1)
            sums[..., len(self._single) :] -= self._left_out * own.take(self._tie, axis=-1)
        return sums if least is None else np.maximum(sums, least, out=sums)

    def _while_at_risk(self, per_term: np.ndarray) -> np.ndarray:
        """For every row the sum over the terms in which it counts, by its part in each: shape (..., n)."""
        found = self.risk_sets.while_at_risk(self._of_times(per_term))
        if len(self._tie):
            less = np.add.reduceat(per_term[..., len(self._single) :] * self._left_out, self._tie_starts, axis=-1)
            found[..., self._tied_events] -= less.take(self._tie, axis=-1)
        return found

    def _of_times(self, per_term: np.ndarray) -> np.ndarray:
        """Sums over the terms of every event time, shape (..., G)."""
        if not len(self._tie):
            return per_term
        found = np.empty((*per_term.shape[:-1], self.risk_sets.n_groups))
        found[..., self._single] = per_term[..., : len(self._single)]
        found[..., self._tied] = np.add.reduceat(per_term[..., len(self._single) :], self._tie_starts, axis=-1)
        return found

    def held_out_losses(
        self, y: np.ndarray, weights: np.ndarray, test: np.ndarray
    ) -> Callable[[np.ndarray], np.ndarray]:
        """By how much rows held out add to the loss of the rows of the fit, shared out among them.

        The sum over rows is the cross-validated partial likelihood of Verweij and van Houwelingen (1993): that of all
        rows, less that of the rows of the fit. A row held out bears its own event, and its part, by its hazard, in what
        the events of the fit lose because it and others are now at risk with them.
        """
        fitted, all_weights = self.risk_sets.weights, weights.copy()
        rows = np.flatnonzero(fitted > 0)
        # Rows that a fold has drawn several times count as often here.
        all_weights[rows] = fitted[rows] * (weights[rows] / fitted[rows]).max()
        return _AddedLosses(self, BoundPartialLikelihood(RiskSets(y[0], all_weights), self.ties), test)


class _AddedLosses:
    """What some rows add to a partial likelihood."""

    def __init__(self, fitted: BoundPartialLikelihood, whole: BoundPartialLikelihood, test: np.ndarray) -> None:
        self._fitted, self._whole, self._test = fitted, whole, test
        self._added = np.zeros(len(whole.risk_sets.weights))
        self._added[test] = whole.risk_sets.weights[test]
        self._old_events = fitted.risk_sets.has_event * whole.risk_sets.weights

    def __call__(self, a: np.ndarray) -> np.ndarray:
        """Losses of the rows, shape (R, t), at scores of shape (R, n)."""
        sets, nothing = self._whole.risk_sets, np.zeros(0)
        own = self._whole.value(nothing, a)
        lost = sets.with_event((own - self._fitted.value(nothing, a)) * self._old_events)
        hazard = np.exp(a - a.max(axis=-1, keepdims=True))
        among = sets.at_risk(hazard * self._added)
        # Where nobody was added nothing is lost.
        share = np.divide(lost, among, out=np.zeros_like(lost), where=among > LEAST_SUM)
        found = own + sets.while_at_risk(share) * hazard
        return np.asarray(found[..., self._test])
