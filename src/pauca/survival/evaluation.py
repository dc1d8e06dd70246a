"""How good the predictions of times to an event are: concordance, calibration slope, and calibration at a time."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from pauca.checks import ParameterChecks
from pauca.estimators.evaluation_and_inference import EvaluationMixin, check_test_rows
from pauca.estimators.fitted_base import shows_progress
from pauca.estimators.row_origin import origin
from pauca.estimators.training_data import TrainingData
from pauca.model_selection.held_out import HeldOutModel
from pauca.model_selection.scoring import read_columns
from pauca.results.evaluation import Evaluation
from pauca.runs.problem import LinearProblem
from pauca.statistics.concordance import Concordance, NothingToCompare, concordance
from pauca.statistics.event_calibration import EventCalibration
from pauca.survival.curves import Baseline, RiskGroups, risk_groups
from pauca.survival.kaplan_meier import KaplanMeier
from pauca.survival.partial_likelihood import PartialLikelihood
from pauca.survival.target import split_frame, survival_target, with_entry

# Groups of a calibration have at least so many events on average, and there are at most so many.
EVENTS_OF_A_GROUP = 10
MOST_GROUPS = 5

# Groups by risk in a report, as ``risk_groups`` has them by default.
N_GROUPS = 3

# Newton steps for the calibration slope; a handful suffices where it is finite.
MOST_STEPS = 50
LARGEST_SLOPE = 1e3

NO_CONCORDANCE = (
    "concordance: not measured, since no event was seen while another row was at risk that the same model predicts"
)


class Predicted(NamedTuple):
    """Rows with their predictions; only rows of the same stratum are compared."""

    y: np.ndarray
    weights: np.ndarray
    scores: np.ndarray
    event_probability: np.ndarray
    """That the event happens by the time of the calibration; not a number where the model cannot tell."""
    row: np.ndarray
    """The observation that each belongs to, where one is predicted several times."""


class SurvivalEvaluationMixin(EvaluationMixin):
    """``evaluate``, ``inference`` and ``report`` of models of times to an event."""

    event_times_: np.ndarray
    ties: str
    predict: Any
    _baseline: Any
    _stratum_codes: Any

    @shows_progress
    def evaluate(  # type: ignore[override]
        self,
        X: Any = None,
        y: Any = None,
        *,
        event: str | None = None,
        time: str | None = None,
        entry: Any = None,
        strata: Any = None,
        horizon: float | None = None,
        nested: bool = False,
    ) -> Evaluation:
        """How good the predictions are: on test rows, or on rows that cross-validation holds out.

        Parameters
        ----------
        X, y : array-like or frame, default=None
            Test rows that had no part in the fit, y as in ``fit``. None: the rows of the fit are predicted by models
            that were fitted without them.
        event, time : str, default=None
            Names of columns of y, where it is a frame.
        entry, strata : array-like of shape (n_samples,), default=None
            Of the test rows, as in ``fit``.
        horizon : float or None, default=None
            The time at which predicted and observed risks are compared. None: the median of ``event_times_``.
        nested : bool, default=False
            Without test rows: whether size and ridge are chosen again for every fold. It takes as many fits as there
            are folds. False is fast, but optimistic where size or ridge were chosen.
            With a size or ridge that was chosen, reckon with five times as long as ``fit``: ``verbose=1`` on the
            estimator shows how far it is.

        Returns
        -------
        Evaluation
            Harrell's concordance with an interval; the calibration slope, which is below 1 if predictions are too
            extreme; and ``calibration``: predicted risks at the horizon against Kaplan and Meier's estimates.

        Examples
        --------
        >>> import numpy as np
        >>> from pauca import SparseCox
        >>> rng = np.random.default_rng(0)
        >>> X = rng.standard_normal((300, 5))
        >>> time = rng.exponential(np.exp(-X[:, 1]))
        >>> y = np.array(list(zip(time < 2, np.minimum(time, 2))), dtype=[("event", bool), ("time", float)])
        >>> round(SparseCox(k=1).fit(X, y).evaluate().concordance.value, 2)
        0.73
        """
        check_is_fitted(self)
        at = self._horizon(horizon)
        X, y = split_frame(X, y, event, time)
        check_test_rows(X, y, nested=nested)
        if X is None:
            if any(given is not None for given in (event, time, entry, strata)):
                raise ValueError("event, time, entry and strata are those of test rows: give X and y too.")
            return self._evaluate_fit({"horizon": at}, nested=nested)
        target, scores = self._test_rows(X, y, event, time, entry, strata)
        risk = event_probabilities(self._baseline(), target["stratum"], scores, at)
        rows = Predicted(target, np.ones(len(target)), scores, risk, np.arange(len(target)))
        return evaluate_survival(rows, origin(self, X, target), at, self.ties)

    @shows_progress
    def report(  # type: ignore[override]
        self,
        path: str | os.PathLike[str],
        X: Any = None,
        y: Any = None,
        *,
        title: str | None = None,
        event: str | None = None,
        time: str | None = None,
        entry: Any = None,
        strata: Any = None,
        horizon: float | None = None,
        nested: bool = False,
        n_resamples: int = 200,
        event_name: str | None = None,
    ) -> None:
        """Write the fitted model as one HTML page, to be opened in any browser; see ``SparseRegressor.report``.

        Parameters
        ----------
        path : str or path-like
            The file, such as ``"report.html"``.
        X, y, event, time, entry, strata, horizon, nested
            How the predictions are measured, as in ``evaluate``.
        title : str or None, default=None
            The title of the page. None: made from the model.
        n_resamples : int, default=200
            Resamples for the intervals of hazard ratios; 0 for no intervals.
        event_name : str or None, default=None
            What to call the event on the page, such as "death".
        """
        given = {"X": X, "y": y, "event": event, "time": time, "entry": entry, "strata": strata, "horizon": horizon}
        self._write_report(path, title, given, nested=nested, n_resamples=n_resamples, event=event_name)

    def _test_rows(
        self,
        X: Any,
        y: Any = None,
        event: str | None = None,
        time: str | None = None,
        entry: Any = None,
        strata: Any = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Test rows, checked, and their scores."""
        X, y = split_frame(X, y, event, time)
        target = with_entry(survival_target(y, event, time), entry)
        scores = np.asarray(self.predict(X))
        if len(scores) != len(target):
            raise ValueError(f"X and y must have the same number of rows: {len(scores)} and {len(target)}.")
        target["stratum"] = self._stratum_codes(strata, len(target))
        return target, scores

    def _test_survival(self, given: Mapping[str, Any]) -> RiskGroups | None:
        if "X" not in given:
            return None
        target, scores = self._test_rows(**{name: value for name, value in given.items() if name != "horizon"})
        return risk_groups(target, np.ones(len(target)), scores, self._baseline(), N_GROUPS)

    def _horizon(self, horizon: float | None) -> float:
        if horizon is not None:
            return ParameterChecks("evaluate").number("horizon", horizon, positive=True)
        return float(np.median(np.unique(self.event_times_))) if len(self.event_times_) else float("nan")

    def _measured(
        self, data: TrainingData, models: Sequence[HeldOutModel], rows: str, options: Mapping[str, Any]
    ) -> Evaluation:
        found = held_out_predictions(data.problem, data.y, data.weights, models, options["horizon"])
        return evaluate_survival(found, rows, options["horizon"], self.ties, len(models))

    def _held_out_figures(
        self, problem: LinearProblem, y: np.ndarray, weights: np.ndarray, models: Sequence[HeldOutModel]
    ) -> dict[str, float]:
        found = _concordance(held_out_predictions(problem, y, weights, models, float("nan")))
        return {} if found is None else {"concordance": found.value}

    def _outcomes(self, y: np.ndarray) -> list[np.ndarray]:
        return [y["event"]]


def event_probabilities(baseline: Baseline, stratum: np.ndarray, scores: np.ndarray, horizon: float) -> np.ndarray:
    """The probability of every row that its event happens by the horizon.

    Not a number in strata without an event, whose hazard is unknown.
    """
    found = np.full(len(scores), np.nan)
    for code in np.intersect1d(stratum, baseline.stratum):
        rows = stratum == code
        found[rows] = -np.expm1(-np.exp(scores[rows]) * baseline.at(np.array([horizon]), int(code))[0])
    return found


def held_out_predictions(
    problem: LinearProblem, y: np.ndarray, weights: np.ndarray, models: Sequence[HeldOutModel], horizon: float
) -> Predicted:
    """Rows predicted by the models that have not seen them; those of different folds are different strata.

    Scores of different folds are relative to different baselines, so they are compared within folds only.
    """
    parts, every, n_strata = [], np.arange(len(y)), int(y["stratum"].max()) + 1
    for number, model in enumerate(models):
        block = read_columns(problem.X if model.X is None else model.X, model.columns, every)
        scores, fitted = block @ model.coef[0], weights.copy()
        fitted[model.rows] = 0.0
        rows = model.rows[weights[model.rows] > 0]
        stratum = y["stratum"][rows]
        risk = np.full(len(rows), np.nan)
        if np.isfinite(horizon):
            risk = event_probabilities(Baseline.of(y, fitted, scores), stratum, scores[rows], horizon)
        target = y[rows].copy()
        target["stratum"] = number * n_strata + stratum
        parts.append(Predicted(target, weights[rows], scores[rows], risk, rows))
    return Predicted(*(np.concatenate(same) for same in zip(*parts, strict=True)))


def evaluate_survival(found: Predicted, rows: str, horizon: float, ties: str, n_folds: int = 0) -> Evaluation:
    """The evaluation of rows by their scores and their risks at the horizon."""
    first = np.unique(found.row, return_index=True)[1]
    y, risk = found.y[first], _risk_of_rows(found)
    known, order = np.isfinite(risk), _concordance(found)
    curve = event_calibration(y[known], found.weights[first][known], risk[known], horizon)
    reasons = [] if order is not None else [NO_CONCORDANCE]
    if np.isfinite(horizon):
        reasons += _why_not_compared(int(np.count_nonzero(~known)), curve, horizon)
    return Evaluation(
        rows,
        len(first),
        n_folds,
        concordance=order,
        calibration_slope=calibration_slope(found, ties),
        horizon=horizon,
        n_events=int(np.count_nonzero(y["event"])),
        calibration=curve,
        not_measured=reasons,
    )


def _risk_of_rows(found: Predicted) -> np.ndarray:
    """One risk for every row, the mean where several models predict it; not a number where none can."""
    place = np.unique(found.row, return_inverse=True)[1].ravel()
    known = np.isfinite(found.event_probability)
    sums = np.bincount(place, weights=np.where(known, found.event_probability, 0.0))
    with np.errstate(invalid="ignore"):
        return np.asarray(sums / np.bincount(place, weights=known))


def _why_not_compared(n_unknown: int, curve: EventCalibration | None, horizon: float) -> list[str]:
    """Why predicted and observed risks are compared for some of the rows only, or for none."""
    reasons = []
    if n_unknown:
        reasons.append(
            f"risks of an event by time {horizon:g}: {n_unknown} rows are left out, since no event of their stratum "
            "was seen in the rows of the fit that predicts them"
        )
    if curve is None:
        among = " among the others" if n_unknown else ""
        reasons.append(
            f"risks of an event by time {horizon:g}: not compared, since too few events were seen by then{among}"
        )
    return reasons


def _concordance(found: Predicted) -> Concordance | None:
    y = found.y
    try:
        return concordance(
            y["event"], y["time"], found.scores, found.weights, entry=y["entry"], stratum=y["stratum"], row=found.row
        )
    except NothingToCompare:
        return None


def calibration_slope(found: Predicted, ties: str) -> float | None:
    """The coefficient of the scores in a model of their own: 1 if they are right, less if they are too extreme.

    None where it is not finite, or where all scores are equal.
    """
    loss, nothing = PartialLikelihood(ties).tuned(found.y[None], found.weights), np.zeros(0)
    centred = found.scores - np.average(found.scores, weights=found.weights)
    slope = 1.0

    def value(at: float) -> float:
        return float(found.weights @ loss.value(nothing, at * centred))

    for _ in range(MOST_STEPS):
        slopes, shared = loss.slopes(nothing, slope * centred), loss.row_coupling(slope * centred, centred)
        assert shared is not None
        curvature = float((found.weights * slopes.curvature) @ centred**2 - shared @ shared)
        if not curvature > 1e-12 * float(found.weights @ centred**2):
            return None
        step = -float((found.weights * slopes.derivative) @ centred) / curvature
        while value(slope + step) > value(slope) + 1e-12 * abs(value(slope)):
            step /= 2
        slope += step
        if abs(slope) > LARGEST_SLOPE:
            return None
        if abs(step) < 1e-8 * max(1.0, abs(slope)):
            return slope
    return None


def event_calibration(y: np.ndarray, weights: np.ndarray, risk: np.ndarray, horizon: float) -> EventCalibration | None:
    """Predicted risks at the horizon against what was seen, in groups of rows from low to high risk."""
    seen = y["event"] & (y["time"] <= horizon)
    count = min(MOST_GROUPS, int(np.count_nonzero(seen)) // EVENTS_OF_A_GROUP)
    if count < 2:
        return None
    cuts = np.unique(np.quantile(risk, np.arange(1, count) / count))
    group = np.searchsorted(cuts, risk, side="left")
    parts = [np.flatnonzero(group == one) for one in np.unique(group)]
    shares = [_share_with_event(y[rows], weights[rows], horizon) for rows in parts]
    observed, variance, effective = np.array(shares).T
    return EventCalibration(
        np.array([np.average(risk[rows], weights=weights[rows]) for rows in parts]),
        observed,
        np.array([len(rows) for rows in parts]),
        np.array([int(np.count_nonzero(seen[rows])) for rows in parts]),
        variance,
        effective,
    )


def _share_with_event(y: np.ndarray, weights: np.ndarray, horizon: float) -> tuple[float, float, float]:
    """Kaplan and Meier's estimate of the share with an event by the horizon, Greenwood's sum, and the effective rows.

    The sum has squares of weights, so that unequal weights make it larger. The effective rows are those at risk over
    the share that is free until then (Dorey and Korn 1987): at the horizon, or where the last ones have their event.
    """
    squares = weights**2
    if not np.any(y["event"] & (y["time"] <= horizon)):
        there = (y["entry"] < horizon) & (y["time"] >= horizon)
        total = weights[there].sum()
        return 0.0, 0.0, float(total**2 / squares[there].sum()) if total else 0.0
    seen = KaplanMeier.of(y, weights)
    here = seen.times <= horizon
    left, free, rows = seen.left[here], seen.free[here], seen.n_effective[here]
    with np.errstate(divide="ignore"):
        variance = float(np.sum((1.0 - left) / left / rows))
    last = int(np.argmax(free == 0.0)) if not free[-1] else len(free) - 1
    return float(1.0 - free[-1]), variance, float(rows[last] / np.concatenate([[1.0], free])[last])
