"""Cox's partial likelihood as a loss whose rows are coupled by the risk sets they share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pauca.losses import Loss, Slopes
from pauca.survival.risk_sets import RiskSets

TIES = ("efron", "breslow")

LEAST_SUM = 1e-300
"""Sums over risk sets are at least this; where scores are so far apart that they may be less, logarithms are summed."""


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

    explains = "deviance"
    coupled = True
    shift_invariant = True
    may_diverge = True
    # Along a column z the third derivative is a third central moment, at most 2 max |z| times the second.
    self_concordance = 2.0

    # Losses are compared and written by their options; what is remembered is none.
    __slots__ = ("_last",)

    def __init__(self, ties: str = "efron") -> None:
        if ties not in TIES:
            raise ValueError(f"ties must be 'efron' or 'breslow'; got {ties!r}.")
        self.ties = ties
        self._last: tuple[np.ndarray, np.ndarray, BoundPartialLikelihood] | None = None

    def tuned(self, y: np.ndarray, weights: np.ndarray) -> Loss:
        # A fold asks several times for its own; with late entries the risk sets take longer than many gradients.
        last = self._last  # looked up once: folds in other threads may replace it at any time
        if last is None or last[0] is not y or not np.array_equal(last[1], weights):
            last = self._last = y, weights.copy(), BoundPartialLikelihood(RiskSets(y[0], weights), self.ties)
        return last[2]

    link = "log_hazard"
    ratio = "hazard ratio"

    def prediction(self, a: np.ndarray) -> np.ndarray:
        return a

    def minus_twice_log_likelihood(self, losses: np.ndarray, n_rows: int) -> float:
        return 2.0 * n_rows * float(np.sum(losses))

    def n_parameters(self, n_coefficients: int, n_outputs: int, *, center: bool) -> int:
        return n_coefficients  # no constant changes it

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
        self._set_weights(counts)

    def _set_weights(self, counts: np.ndarray) -> None:
        """Weights of rows and of terms, and what logarithms need; ``counts`` are the events of each tie."""
        risk_sets = self.risk_sets
        weight = risk_sets.with_event(risk_sets.weights)
        self._share = np.concatenate([np.ones(len(self._single)), 1.0 / counts[self._tie]])
        self._weight = weight[self._term] * self._share
        self._root_weight = np.sqrt(self._weight)
        left = np.concatenate([np.zeros(len(self._single)), np.log1p(-self._left_out)])
        self._perfect = np.log(weight) + self._of_times(self._share * left)
        """The mean logarithm of the terms of an event time at which only those with an event are at risk."""
        self._log_weights, self._log_left_out = _log(risk_sets.weights), _log(self._left_out)
        # Efron's ties divide sums by as much as their number of events.
        least = np.min(risk_sets.weights, where=risk_sets.weights > 0, initial=1.0) / counts.max(initial=1)
        self._far = np.log(LEAST_SUM) - np.log(least)
        """Scores that are so far below the largest have hazards that a double cannot hold."""
        self._idle = np.flatnonzero(risk_sets.weights == 0)

    def tuned(self, y: np.ndarray, weights: np.ndarray) -> Loss:
        return self

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def value(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        if not self.risk_sets.n_groups:  # rows of a fold without any event
            return np.zeros_like(a)
        relative, top, far = self.relative_scores(a)
        logs = self._of_times(self._share * self._log_sums(relative, far)) - self._perfect
        sets = self.risk_sets
        return np.where(sets.has_event, logs.take(sets.group, axis=-1) + top - a, 0.0)

    def derivative(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.slopes(y, a).derivative

    def curvature(self, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.slopes(y, a).curvature

    def slopes(self, y: np.ndarray, a: np.ndarray) -> Slopes:
        # The derivative is minus the martingale residual: the expected events of a row less those seen.
        relative, _, far = self.relative_scores(a)
        of_far = self._expected_of_far(relative[far]) if np.any(far) else None
        hazard = np.exp(relative, out=relative)
        expected = self._while_at_risk(self._weight / self._sums(hazard * self.risk_sets.weights))
        np.maximum(expected, 0.0, out=expected)
        expected *= hazard
        if of_far is not None:
            expected[far] = of_far
        return Slopes(expected - self._seen, expected)

    def row_coupling(self, a: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Means of columns over the rows at risk, times the roots of the weights of the terms."""
        relative, _, far = self.relative_scores(a)
        if np.any(far):
            means = self._means_of_far(relative + self._log_weights, columns)
        else:
            risk = np.exp(relative) * self.risk_sets.weights
            means = self._sums(risk * columns, least=None)
            means /= self._sums(risk)
        means *= self._root_weight
        return means

    def coupled_image(self, a: np.ndarray, columns: np.ndarray) -> np.ndarray:
        relative, _, far = self.relative_scores(a)
        if np.any(far):
            logs = relative + self._log_weights
            log_rates = np.log(self._weight) - self._sums_of_logs(logs)
            return _signed(self._means_of_far(logs, columns), log_rates, self._logs_while_at_risk, logs)
        risk = np.exp(relative) * self.risk_sets.weights
        rates, sums = self._sums(risk * columns, least=None), self._sums(risk)
        rates /= sums
        rates *= self._weight / sums
        image = self._while_at_risk(rates)
        image *= risk
        return image

    def relative_scores(self, a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scores relative to the largest, the largest, and which are so far apart that only logarithms can be summed.

        Those of rows without weight do not count, and may be beyond all others.
        """
        top = a.max(axis=-1, keepdims=True)
        relative = a - top
        far = np.asarray(relative.min(axis=-1) < self._far)
        if len(self._idle) and np.any(far):
            top = np.max(a, axis=-1, keepdims=True, where=self.risk_sets.weights > 0, initial=-np.inf)
            relative = a - top
            relative[..., self._idle] = 0.0
            far = np.asarray(relative.min(axis=-1) < self._far)
        return relative, top, far

    def _log_sums(self, relative: np.ndarray, far: np.ndarray) -> np.ndarray:
        """Logarithms of the sums of hazards over the rows of every term, shape (..., T); changes ``relative``."""
        logs = self._sums_of_logs(relative[far] + self._log_weights) if np.any(far) else None
        # In place: on long tables new arrays take longer than what is computed in them.
        risk = np.exp(relative, out=relative)
        risk *= self.risk_sets.weights
        found = self._sums(risk)
        np.log(found, out=found)
        if logs is not None:
            found[far] = logs
        return found

    def _means_of_far(self, logs: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Means of columns over the rows of every term, by logarithms of their hazards: shape (..., T)."""
        return _signed(columns, logs, self._sums_of_logs, -self._sums_of_logs(logs))

    def _expected_of_far(self, relative: np.ndarray) -> np.ndarray:
        rates = np.log(self._weight) - self._sums_of_logs(relative + self._log_weights)
        # Rows without weight may be beyond all others, and do not count.
        return np.exp(np.minimum(relative + self._logs_while_at_risk(rates), -np.log(LEAST_SUM)))

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

    def _sums_of_logs(self, logs: np.ndarray) -> np.ndarray:
        """As ``_sums``, of numbers that are given, and summed, as logarithms."""
        sums = self.risk_sets.at_risk(logs, np.logaddexp)
        if len(self._tie):
            sums = sums.take(self._term, axis=-1)
            own = np.logaddexp.reduceat(logs.take(self._tied_events, axis=-1), self._tie_starts, axis=-1)
            tied = sums[..., len(self._single) :]
            tied += _log_of_rest(tied, own.take(self._tie, axis=-1) + self._log_left_out)
        return sums

    def _logs_while_at_risk(self, per_term: np.ndarray) -> np.ndarray:
        """As ``_while_at_risk``, of numbers that are given, and summed, as logarithms."""
        found = self.risk_sets.while_at_risk(self._of_times(per_term, np.logaddexp), np.logaddexp)
        if len(self._tie):
            less = np.logaddexp.reduceat(
                per_term[..., len(self._single) :] + self._log_left_out, self._tie_starts, axis=-1
            )
            tied = found.take(self._tied_events, axis=-1)
            found[..., self._tied_events] = tied + _log_of_rest(tied, less.take(self._tie, axis=-1))
        return found

    def _of_times(self, per_term: np.ndarray, add: np.ufunc = np.add) -> np.ndarray:
        """Sums over the terms of every event time, shape (..., G)."""
        if not len(self._tie):
            return per_term
        found = np.empty((*per_term.shape[:-1], self.risk_sets.n_groups))
        found[..., self._single] = per_term[..., : len(self._single)]
        found[..., self._tied] = add.reduceat(per_term[..., len(self._single) :], self._tie_starts, axis=-1)
        return found

    def held_out_losses(
        self, y: np.ndarray, weights: np.ndarray, test: np.ndarray
    ) -> Callable[[np.ndarray], np.ndarray]:
        """By how much held-out rows add to the loss of the rows of the fit, shared out among them.

        The sum over rows is the cross-validated partial likelihood of Verweij and van Houwelingen (1993): that of all
        rows, less that of the rows of the fit. A held-out row bears its own event, and its part, by its hazard, in what
        the events of the fit lose because it and others are now at risk with them.
        """
        fitted, all_weights = self.risk_sets.weights, weights.copy()
        rows = np.flatnonzero(fitted > 0)
        # Rows that a fold has drawn several times count as often here.
        all_weights[rows] = fitted[rows] * (weights[rows] / fitted[rows]).max()
        return _AddedLosses(self, BoundPartialLikelihood(RiskSets(y[0], all_weights), self.ties), test)


def _log(values: np.ndarray) -> np.ndarray:
    """Logarithms; of zero, minus infinity."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(values))


def _log_of_rest(logs: np.ndarray, less: np.ndarray) -> np.ndarray:
    """What is left of numbers after others that are smaller are subtracted: the logarithm of its share."""
    share = np.subtract(less, logs, out=np.full_like(logs, -np.inf), where=logs > -np.inf)
    return _log(-np.expm1(np.minimum(share, 0.0)))


def _signed(
    values: np.ndarray, logs: np.ndarray, sums: Callable[[np.ndarray], np.ndarray], factor: np.ndarray
) -> np.ndarray:
    """Sums of ``values * e^logs``, times ``e^factor``: those of positive values less those of negative ones."""
    above, below = (np.exp(sums(logs + _log(np.maximum(part, 0.0))) + factor) for part in (values, -values))
    return np.asarray(above - below)


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
        relative, _, far = self._whole.relative_scores(a)
        hazard = np.exp(relative)
        among = sets.at_risk(hazard * self._added)
        # Where nobody was added nothing is lost.
        share = np.divide(lost, among, out=np.zeros_like(lost), where=among > LEAST_SUM)
        theirs = (sets.while_at_risk(share) * hazard)[..., self._test]
        if np.any(far):
            theirs[far] = self._shares_of_far(relative[far], lost[far])
        return np.asarray(own[..., self._test] + theirs)

    def _shares_of_far(self, relative: np.ndarray, lost: np.ndarray) -> np.ndarray:
        """What rows bear of the losses of events of the fit, where scores are far apart."""
        among = self._whole.risk_sets.at_risk(relative + _log(self._added), np.logaddexp)
        inverse = np.where(among > -np.inf, -among, -np.inf)
        return _signed(lost, inverse, self._test_rows_while_at_risk, relative[..., self._test])

    def _test_rows_while_at_risk(self, logs: np.ndarray) -> np.ndarray:
        return self._whole.risk_sets.while_at_risk(logs, np.logaddexp)[..., self._test]
