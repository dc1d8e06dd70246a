"""The scores of all sizes and ridges that were compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pandas import DataFrame

# Scores below this are those of candidates that have no model: the lowest number there is, or a share of it.
NO_SCORE = -1e300

# Scores are sums over rows: those of the same models differ by rounding only.
SAME_SCORE = 1e-9


@dataclass(frozen=True, eq=False)
class Surface:
    """The scores of every size at every ridge of the search and of the fit.

    Attributes
    ----------
    search_ridges : ndarray of shape (s,)
        The ridges that columns were searched with, ascending.
    ridges : ndarray of shape (r,)
        The ridges that the chosen columns were fitted with, ascending.
    sizes : ndarray of shape (m,)
    mean : ndarray of shape (s, r, m)
        The mean score on held-out rows, higher being better.
    standard_error : ndarray of shape (s, r, m)
        The standard error of the difference to the best score, which all candidates share rows with.
    ridge, search_ridge : float
        Those of the chosen model.
    score_error : ndarray of shape (s, r, m)
        The standard error of the mean score itself.
    """

    search_ridges: np.ndarray
    ridges: np.ndarray
    sizes: np.ndarray
    mean: np.ndarray
    standard_error: np.ndarray
    ridge: float
    search_ridge: float
    score_error: np.ndarray

    @property
    def best(self) -> tuple[float, float, int]:
        """Search ridge, ridge and size with the best mean score."""
        return self._at(np.unravel_index(int(np.argmax(self.mean)), self.mean.shape))

    def gained_by_lightest(self, size: int) -> float:
        """If the lightest ridge was chosen: the share of what the next heavier one left unexplained that it explains.

        Zero if another ridge was chosen.
        """
        if self.ridge != self.ridges[0] or len(self.ridges) < 2:
            return 0.0
        of_size = self.mean[:, :2, np.flatnonzero(self.sizes == size)[0]]
        lightest, next_one = 1.0 - of_size[np.flatnonzero(self.search_ridges == self.search_ridge)[0]]
        return float(1.0 - lightest / next_one) if next_one > 0 else 0.0

    @property
    def reference(self) -> tuple[float, float, int]:
        """Search ridge, ridge and size of the candidate that all others were compared with.

        That is the best, but for a caution against models that are too sure of themselves, and against sizes that are
        good by chance: the one that does not differ from itself.
        """
        itself = np.where(self.standard_error == 0, self.mean, -np.inf)
        return self._at(np.unravel_index(int(np.argmax(itself)), itself.shape))

    def best_of(self, size: int) -> tuple[float, float]:
        """Search ridge and ridge that score best for one size; of equal ones those of the chosen model."""
        position = np.flatnonzero(self.sizes == size)
        if not len(position):
            raise KeyError(f"size {size!r} was not scored; the sizes compared are {self.sizes.tolist()}")
        of_size = self.mean[:, :, position[0]]
        chosen = of_size[np.ix_(self.search_ridges == self.search_ridge, self.ridges == self.ridge)]
        # Ridges that lead to the same features score the same to rounding: a model that the path has needs no other.
        if chosen.size and of_size.max() - chosen.max() <= SAME_SCORE * max(1.0, abs(of_size.max())):
            return self.search_ridge, self.ridge
        found = self._at((*np.unravel_index(int(np.argmax(of_size)), of_size.shape), int(position[0])))
        return found[:2]

    def error_at(self, search_ridge: float, ridge: float, size: int) -> float:
        """The standard error of the difference between a candidate and the best."""
        place = (self.search_ridges == search_ridge, self.ridges == ridge, self.sizes == size)
        return float(self.standard_error[np.ix_(*place)].max())

    def _at(self, place: Any) -> tuple[float, float, int]:
        search, fit, size = place
        return float(self.search_ridges[search]), float(self.ridges[fit]), int(self.sizes[size])

    def table(self) -> list[dict[str, float]]:
        """A record for every candidate, with the keys search_ridge, ridge, size, score and standard_error.

        Candidates that have no model, as dependent columns without a ridge have none, have no score: not a number.
        """
        scored = self.mean > NO_SCORE
        return [
            {
                "search_ridge": float(self.search_ridges[s]),
                "ridge": float(self.ridges[r]),
                "size": int(self.sizes[k]),
                "score": float(self.mean[s, r, k]) if scored[s, r, k] else float("nan"),
                "standard_error": float(self.standard_error[s, r, k]) if scored[s, r, k] else float("nan"),
            }
            for s, r, k in np.ndindex(*self.mean.shape)
        ]

    def to_frame(self) -> DataFrame:
        """The table as a pandas frame.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from pauca import SparseRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> surface = SparseRegressor(k=range(9), ridge=[0, 0.1]).fit(X, y).path_.choice.surface
        >>> surface.to_frame().shape
        (36, 5)
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install pandas, or pauca with its extra [frames]") from error
        return pd.DataFrame(self.table())
