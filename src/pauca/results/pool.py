"""All good models of a size: what they share, and where they differ."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Pool:
    """Good models of one size.

    Attributes
    ----------
    size : int
    supports : list of tuple of str
        The features of each model, best model first.
    objectives : list of float
        Their objectives.
    complete : bool
        Whether these are proved to be all such models.
    within : float or None
        The share of the best objective by which the models may be worse.
    n_best : int or None
        How many models were requested.
    search_ridge : float or None
        Where ridges were chosen: objectives are those of the search, which had this ridge.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from pauca import SparseRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> pool = SparseRegressor(k=4).fit(X, y).pool(within=0.01)
    >>> len(pool), pool.complete, pool.common
    (2, True, ['bmi', 'bp', 's5'])
    """

    size: int
    supports: list[tuple[str, ...]]
    objectives: list[float]
    complete: bool
    within: float | None = None
    n_best: int | None = None
    search_ridge: float | None = None

    def __len__(self) -> int:
        return len(self.supports)

    @property
    def frequency(self) -> dict[str, float]:
        """For each feature, the share of the models that have it; the most frequent first."""
        counts = Counter(name for support in self.supports for name in support)
        return {name: count / len(self) for name, count in sorted(counts.items(), key=lambda one: (-one[1], one[0]))}

    @property
    def common(self) -> list[str]:
        """Features that all models have."""
        return [name for name, share in self.frequency.items() if share == 1.0]

    @property
    def message(self) -> str:
        """The pool in words."""
        found = "1 model" if len(self) == 1 else f"{len(self):,} models"
        found += f" of {self.size} feature{'' if self.size == 1 else 's'}"
        if self.within is not None:
            found += f" within {100 * self.within:g} % of the best objective"
        if self.search_ridge is not None:
            found += f" at ridge {self.search_ridge:.3g}, the ridge of the search"
        others = "others" if self.n_best is None or len(self) < self.n_best else "better ones"
        return f"{found}; there are no {others}." if self.complete else f"{found} found; there may be {others}."

    def table(self) -> list[dict[str, Any]]:
        """The pool as a list of records, best model first.

        Returns
        -------
        list of dict
            With the keys objective, worse_by (the share of the best objective) and features.
        """
        best = self.objectives[0]
        return [
            {"objective": value, "worse_by": value / best - 1 if best > 0 else 0.0, "features": list(names)}
            for value, names in zip(self.objectives, self.supports, strict=True)
        ]
