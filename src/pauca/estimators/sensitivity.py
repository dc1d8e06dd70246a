"""How sure a choice is: what else could have been chosen, and how often it is chosen again."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import cpu_count, effective_n_jobs
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from pauca.results.path import Path
from pauca.results.stability import Stability, count_choices, halves
from pauca.search.driver import Budget, Goal
from pauca.search.parallel import Watch
from pauca.search.problem import LinearProblem


@dataclass(frozen=True, eq=False)
class FitData:
    """What a fit was made from: references to the user's own arrays, never copies, and never in a file."""

    problem: LinearProblem
    weights: np.ndarray
    y: np.ndarray


class SensitivityMixin:
    """A fitted model that can be questioned as long as the data of the fit are at hand."""

    _fit_data: FitData | None
    path_: Path
    k_: int

    def alternatives(self, count: int = 3) -> list[dict[str, Any]]:
        """For each chosen feature the best others in its place, and what each would cost.

        Every exchange is refitted. The data of the fit are looked at once more: a fitted model refers to them (it never
        copies them) until it is saved, pickled or fitted again.

        Parameters
        ----------
        count : int, default=3
            So many replacements for each.

        Returns
        -------
        list of dict
            With the keys feature, replacement, objective (after the exchange) and explained_lost, the share explained
            that the exchange would cost. The most valuable features come first. The list is kept as ``alternatives_``.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from pauca import SparseRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> first = SparseRegressor(k=3).fit(X, y).alternatives(count=1)[0]
        >>> first["feature"], first["replacement"], round(first["explained_lost"], 3)
        ('bmi', 's3', 0.071)
        """
        _check_count("count", count)
        evidence, path = self._at_hand("alternatives"), self.path_
        subset = evidence.problem.begin(evidence.weights).subset
        model, null = path[self.k_], path[0].objective
        for unit in model.units.tolist():
            if unit not in subset.support:
                subset.add(unit)
        found = subset.replacements(count) if subset.support else {}
        order = model.units[np.argsort(-model.importance, kind="stable")]
        self.alternatives_ = [
            {
                "feature": path.unit_name(int(unit)),
                "replacement": path.unit_name(swap.into),
                "objective": model.objective - swap.decrease,
                "explained_lost": -swap.decrease / null if null > 0 else 0.0,
            }
            for unit in order
            for swap in found.get(int(unit), [])
        ]
        return self.alternatives_

    def stability(self, n_resamples: int = 50, *, random_state: int | None = 0, n_jobs: int | None = None) -> Stability:
        """How often each feature is chosen when as many are chosen on random halves of the rows.

        Halves come in pairs that make up the whole (Shah and Samworth 2013), and keep the shares of classes. A feature
        that is chosen in nearly all of them does not hang on a few rows; where two are chosen about half of the time,
        they stand for the same thing. The data of the fit are looked at once more, as by ``alternatives``.

        Parameters
        ----------
        n_resamples : int, default=50
        random_state : int or None, default=0
            The same number gives the same halves.
        n_jobs : int or None, default=None
            How many searches run at a time, as in scikit-learn.

        Returns
        -------
        Stability
            Kept as ``stability_``; ``plot_stability()`` draws it.
        """
        _check_count("n_resamples", n_resamples)
        evidence, path = self._at_hand("stability"), self.path_
        strata = evidence.y if is_classifier(self) else np.zeros(len(evidence.weights))
        resamples = halves(n_resamples, evidence.weights, strata, random_state)
        supports: list[list[str]] = [[] for _ in resamples]

        def job(place: int) -> Callable[[Budget], None]:
            def work(budget: Budget) -> None:
                run = evidence.problem.begin(resamples[place])
                history = run.advance(Goal(max(1, self.k_)), budget)
                best = history.best[max(size for size in history.best if size <= self.k_)]
                supports[place] = [path.unit_name(unit) for unit in best.support]

            return work

        watch = Watch(Budget(), effective_n_jobs(n_jobs), cpu_count())
        watch.run([job(place) for place in range(len(resamples))])
        noun = "feature" if path.group_labels is None else "group"
        chosen = [path.unit_name(int(unit)) for unit in path[self.k_].units]
        self.stability_ = count_choices(supports, chosen, self.k_, noun)
        return self.stability_

    def plot_stability(self, ax: Any = None, most: int = 20) -> Any:
        """Draw what ``stability`` has found.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.
        most : int, default=20
            No more than this many bars.

        Returns
        -------
        matplotlib.axes.Axes
        """
        check_is_fitted(self)
        if not hasattr(self, "stability_"):
            raise ValueError("Nothing to draw yet: call stability() first.")
        return self.stability_.plot(ax, most)

    def _at_hand(self, what: str) -> FitData:
        check_is_fitted(self)
        evidence = getattr(self, "_fit_data", None)
        if evidence is None:
            raise ValueError(
                f"{what}() needs the data of the fit, which are not kept in files or pickles: fit the model again."
            )
        return evidence

    def __getstate__(self) -> Any:
        # Data do not travel with a model.
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_fit_data"}


def _check_count(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1; got {value!r}.")
