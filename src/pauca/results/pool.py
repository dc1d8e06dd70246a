"""All good models of a size: what they share, and where they differ."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from pauca.results.instructions import IN_PYTHON, stopped_in_words
from pauca.wording import aligned, printable

# So many models are listed in a summary.
MODELS_SHOWN = 20


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
    stopped_after : float or None
        The time limit in seconds, where it ended the search.
    interrupted : bool
        Whether Ctrl-C ended it.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from pauca import SparseRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> pool = SparseRegressor(k=4).fit(X, y).pool(within=0.01)
    >>> len(pool), pool.complete, pool.common
    (2, True, ['bmi', 'bp', 's5'])
    >>> print(pool)
    2 models of 4 features within 1 % of the best objective; there are no others.
    All have bmi, bp, s5.
    <BLANKLINE>
    objective  worse by  with
    -------------------------
      1506.14       0 %  s1
      1507.68     0.1 %  s3
    """

    size: int
    supports: list[tuple[str, ...]]
    objectives: list[float]
    complete: bool
    within: float | None = None
    n_best: int | None = None
    search_ridge: float | None = None
    stopped_after: float | None = None
    interrupted: bool = False

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
        if self.complete:
            return f"{found}; there are no {others}."
        stopped = stopped_in_words(self.stopped_after, IN_PYTHON, interrupted=self.interrupted)
        return f"{found} found; there may be {others}.{stopped}"

    def summary(self) -> str:
        """The models as text: what all of them have, and for each what else it has."""
        shared = set(self.common) if len(self) > 1 else set()
        rows = [["objective", "worse by"]]
        rows += [[f"{record['objective']:.6g}", f"{100 * record['worse_by']:.2g} %"] for record in self.table()]
        names = [
            "with",
            *(", ".join(map(printable, sorted(set(one) - shared, key=one.index))) for one in self.supports),
        ]
        lines = [f"{line}  {name}" for line, name in zip(aligned(rows, left=0), names, strict=True)]
        common = [f"All have {', '.join(map(printable, self.common))}."] if shared else []
        more = [f"... and {len(self) - MODELS_SHOWN:,} more"] if len(self) > MODELS_SHOWN else []
        body = [lines[0], "-" * len(lines[0]), *lines[1 : MODELS_SHOWN + 1], *more]
        return "\n".join([self.message, *common, "", *body])

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<Pool of {len(self)} models of size {self.size}, {'complete' if self.complete else 'not complete'}>"

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
