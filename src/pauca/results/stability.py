"""How often a choice comes out the same when the rows change."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pauca.wording import FORCED_IN, aligned

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Beside those of the model, so many of the most frequent are shown.
MOST_SHOWN = 20


@dataclass(frozen=True, eq=False, repr=False)
class Stability:
    """How often each feature, or group, was chosen on random halves of the rows.

    Attributes
    ----------
    frequency : dict of str to float
        Share of the resamples in which it was chosen, the most frequent first; those never chosen are left out.
    chosen : list of str
        What the model itself holds.
    size : int
        How many were chosen each time.
    n_resamples : int
    noun : str
        "feature" or "group".
    forced : list of str
        What ``always`` forces into every model: its frequency of one says nothing.
    """

    frequency: dict[str, float]
    chosen: list[str]
    size: int
    n_resamples: int
    noun: str = "feature"
    forced: list[str] = field(default_factory=list)

    def table(self) -> list[dict[str, Any]]:
        """Records with the keys name, frequency and chosen."""
        names = [*self.frequency, *(name for name in self.chosen if name not in self.frequency)]
        return [
            {"name": name, "frequency": self.frequency.get(name, 0.0), "chosen": name in self.chosen} for name in names
        ]

    def summary(self) -> str:
        """The most frequent as a table, those of the model all of them, as text."""
        records = self.table()
        shown = [one for place, one in enumerate(records) if one["chosen"] or place < MOST_SHOWN]
        body = [[one["name"], self._share(one["name"]), "yes" if one["chosen"] else ""] for one in shown]
        lines = aligned([[self.noun, "chosen on", "in the model"], *body], left=1)
        left = len(records) - len(shown)
        more = [f"and {left} more {self.noun}s, chosen less often"] if left else []
        note = (
            f"How often each was among the {self.size} chosen on {self.n_resamples} random halves of the rows. "
            "Near 100 %: the choice does not depend on a few rows."
        )
        return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:], *more, "", note])

    def _share(self, name: str) -> str:
        return FORCED_IN if name in self.forced else f"{100 * self.frequency.get(name, 0.0):.0f} %"

    def __repr__(self) -> str:
        return self.summary()

    def plot(self, ax: Axes | None = None, most: int = 20) -> Axes:
        """Draw the frequencies as bars, those in the model filled.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.
        most : int, default=20
            No more than this many bars.
        """
        from pauca.results.plots import plot_stability

        return plot_stability(self, ax, most)


def count_choices(supports: list[list[str]], chosen: list[str], size: int, noun: str, forced: list[str]) -> Stability:
    """The stability that the names chosen on every resample amount to."""
    counts: dict[str, int] = {}
    for support in supports:
        for name in support:
            counts[name] = counts.get(name, 0) + 1
    order = sorted(counts, key=lambda name: (-counts[name], name not in chosen, name))
    shares = {name: counts[name] / len(supports) for name in order}
    return Stability(shares, chosen, size, len(supports), noun, forced)


def halves(n_resamples: int, weights: np.ndarray, strata: np.ndarray, random_state: Any) -> list[np.ndarray]:
    """Row weights of random halves, in pairs that make up the whole; within each stratum half of what has weight."""
    rng = np.random.default_rng(random_state)
    found: list[np.ndarray] = []
    while len(found) < n_resamples:
        first = np.zeros(len(weights), dtype=bool)
        for stratum in np.unique(strata[weights > 0]):
            members = rng.permutation(np.flatnonzero((strata == stratum) & (weights > 0)))
            # Of an odd number the one in the middle goes to either side by chance.
            first[members[: (len(members) + rng.integers(2)) // 2]] = True
        for half in (first, ~first):
            total = weights[half].sum()
            if total > 0:
                found.append(np.where(half, weights, 0.0) / total)
    return found[:n_resamples]
