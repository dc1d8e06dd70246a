"""Survival curves: the baseline hazard of a model, and curves of groups of predicted risk, as seen and predicted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pauca.survival.kaplan_meier import KaplanMeier
from pauca.survival.risk_sets import RiskSets

# Curves are given at no more than so many times: enough for any drawing, and too few to show single rows.
MOST_TIMES = 200

# Curves end where fewer than this share of the rows are still under observation: beyond, single rows make the steps.
LEAST_AT_RISK = 0.05

# Predicted curves are averaged over no more than so many rows of a group, evenly spaced by their risk.
MOST_ROWS = 500


@dataclass(frozen=True, eq=False)
class Baseline:
    """Breslow's (1974) estimate of the cumulative hazard of a score of zero: a step function for every stratum.

    Conventions
    -----------
    times, hazard, stratum : shape (G,), sorted by stratum and time; hazard is cumulative within its stratum
    """

    times: np.ndarray
    hazard: np.ndarray
    stratum: np.ndarray

    @classmethod
    def of(cls, y: np.ndarray, weights: np.ndarray, scores: np.ndarray) -> Baseline:
        """Events over the sum of hazards at risk, added up over time."""
        sets = RiskSets(y, weights)
        top = float(scores.max())
        steps = sets.with_event(weights) / (sets.at_risk(weights * np.exp(scores - top)) * np.exp(top))
        hazard = np.concatenate(
            [np.cumsum(steps[low:high]) for low, high in zip(sets.bounds[:-1], sets.bounds[1:], strict=True)]
        )
        return cls(sets.times, hazard, sets.strata)

    def at(self, times: np.ndarray, stratum: int) -> np.ndarray:
        """The cumulative hazard at some times, shape (len(times),)."""
        here = self.stratum == stratum
        steps = np.concatenate([[0.0], self.hazard[here]])
        return np.asarray(steps[np.searchsorted(self.times[here], times, side="right")])


@dataclass(frozen=True, eq=False)
class RiskGroups:
    """Survival curves of groups of rows, from low to high risk.

    Attributes
    ----------
    times : ndarray of shape (n_times,)
    seen : ndarray of shape (n_groups, n_times)
        The share of the group that is free of the event, by Kaplan and Meier's estimate.
    predicted : ndarray of shape (n_groups, n_times)
        The mean of the survival that the model predicts for its rows.
    n_rows, events : ndarray of shape (n_groups,)
        Number of rows of each group, and of events seen in it.
    """

    times: np.ndarray
    seen: np.ndarray
    predicted: np.ndarray
    n_rows: np.ndarray
    events: np.ndarray

    @property
    def labels(self) -> list[str]:
        """A name for every group."""
        count = len(self.n_rows)
        names = {2: ["lower risk", "higher risk"], 3: ["low risk", "medium risk", "high risk"]}
        return names.get(count, [f"risk group {number} of {count}" for number in range(1, count + 1)])


def risk_groups(y: np.ndarray, weights: np.ndarray, scores: np.ndarray, baseline: Baseline, count: int) -> RiskGroups:
    """Rows in ``count`` groups by their scores, of equal size but for equal scores, which stay together."""
    used = np.flatnonzero(weights > 0)
    cuts = np.unique(np.quantile(scores[used], np.arange(1, count) / count, method="inverted_cdf"))
    group = np.searchsorted(cuts, scores[used], side="left")
    members = [used[group == number] for number in np.unique(group)]
    events = np.unique(baseline.times)
    events = events[events <= max(np.quantile(y["time"][used], 1 - LEAST_AT_RISK), events[0])]
    times = np.unique(np.concatenate([[0.0], np.quantile(events, np.linspace(0, 1, MOST_TIMES - 1))]))
    return RiskGroups(
        times,
        np.stack([_seen(y[rows], weights[rows], times) for rows in members]),
        np.stack([_predicted(y["stratum"][rows], weights[rows], scores[rows], baseline, times) for rows in members]),
        np.array([len(rows) for rows in members]),
        np.array([int(y["event"][rows].sum()) for rows in members]),
    )


def _seen(y: np.ndarray, weights: np.ndarray, times: np.ndarray) -> np.ndarray:
    if not y["event"].any():
        return np.ones(len(times))
    return KaplanMeier.of(y, weights).free_at(times)


def _predicted(
    stratum: np.ndarray, weights: np.ndarray, scores: np.ndarray, baseline: Baseline, times: np.ndarray
) -> np.ndarray:
    order = np.argsort(scores, kind="stable")
    some = order[np.unique(np.linspace(0, len(order) - 1, MOST_ROWS).astype(np.intp))]
    curves = np.stack([np.exp(-np.exp(scores[row]) * baseline.at(times, int(stratum[row]))) for row in some])
    return np.asarray(np.average(curves, axis=0, weights=weights[some]))


def plot_risk_groups(groups: RiskGroups, ax: Any = None) -> Any:
    """Steps for what was seen, dashed lines for what is predicted."""
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.subplots()[1]
    for number, label in enumerate(groups.labels):
        name = f"{label} ({groups.events[number]} of {groups.n_rows[number]} with event)"
        (line,) = ax.plot(groups.times, groups.seen[number], drawstyle="steps-post", label=name)
        ax.plot(groups.times, groups.predicted[number], "--", color=line.get_color(), linewidth=1)
    ax.set_xlabel("time")
    ax.set_ylabel("free of the event")
    ax.set_ylim(0, 1.02)
    ax.set_xlim(left=0)
    ax.legend(framealpha=0.85, edgecolor="none")
    ax.set_title("Survival by predicted risk: seen (steps) and predicted (dashed)", fontsize="medium")
    return ax
