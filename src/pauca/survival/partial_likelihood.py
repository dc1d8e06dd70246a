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
        events = np.bincount(risk_sets.group[risk_sets.has_event], minlength=risk_sets.n_groups)
        weight = risk_sets.with_event(risk_sets.weights)
        if ties == "efron" and events.max(initial=1) > 1:
            self._term = np.repeat(np.arange(len(events)), events)
            within = np.arange(len(self._term)) - risk_sets.event_starts[self._term]
            self._left_out = within / events[self._term]
            self._share = 1.0 / events[self._term]
            self._starts = risk_sets.event_starts
        else:
            self._term, self._starts = np.arange(len(events)), np.arange(len(events))
            self._left_out, self._share = np.zeros(len(events)), np.ones(len(events))
        self._tied = bool(self._left_out.any())
        self._weight = (weight[self._term]) * self._share
        perfect = np.log(weight) + self._of_groups(self._share * np.log1p(-self._left_out))
        self._perfect = perfect
        """The mean logarithm of the terms of an event time at which only those with an event are at risk."""

    def tuned(self, y: np.ndarray, weights: np.ndarray) -> Loss:
        return self

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def value(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        risk, top = self._hazards(a)
        logs = self._of_groups(self._share * np.log(self._sums(risk))) - self._perfect
        sets = self.risk_sets
        return np.where(sets.has_event, logs[..., sets.group] + top - a, 0.0)

    def derivative(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.slopes(y, a).derivative

    def curvature(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.slopes(y, a).curvature

    def slopes(self, y: np.ndarray, a: np.ndarray) -> Slopes:
        # The derivative is minus the martingale residual: the expected events of a row less those seen.
        hazard = np.exp(a - a.max(axis=-1, keepdims=True))
        sets = self.risk_sets
        rate = self._weight / self._sums(hazard * sets.weights)
        expected = sets.while_at_risk(self._of_groups(rate))
        if self._tied:
            expected = expected - np.where(sets.has_event, self._of_groups(rate * self._left_out)[..., sets.group], 0.0)
        expected = np.maximum(expected, 0.0) * hazard
        return Slopes(expected - sets.has_event, expected)

    def row_coupling(self, a: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Means of columns over the rows at risk, times the roots of the weights of the terms."""
        risk, _ = self._hazards(a)
        return np.sqrt(self._weight) * self._sums(risk * columns, least=None) / self._sums(risk)

    def _hazards(self, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        top = a.max(axis=-1, keepdims=True)
        return np.exp(a - top) * self.risk_sets.weights, top

    def _sums(self, values: np.ndarray, least: float | None = LEAST_SUM) -> np.ndarray:
        """Sums over the rows of every term, shape (..., T)."""
        sums = self.risk_sets.at_risk(values)
        if self._tied:
            sums = sums[..., self._term] - self._left_out * self.risk_sets.with_event(values)[..., self._term]
        return sums if least is None else np.maximum(sums, least)

    def _of_groups(self, per_term: np.ndarray) -> np.ndarray:
        """Sums over the terms of every event time, shape (..., G)."""
        return np.add.reduceat(per_term, self._starts, axis=-1) if self._tied else per_term

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
