"""How far the objective falls if a single coefficient moves, for many candidates at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pauca.design import Design
from pauca.losses import Slopes
from pauca.objectives import Rows, SmoothObjective
from pauca.tolerances import TIED_WITHIN

# Candidates are taken in blocks of about this many numbers, which stay in the cache.
BLOCK_NUMBERS = 1 << 17
FIRST_BLOCK = 4

MOST_STEPS = 40

# A gain is known when what is left of it is below this share; where every step looks at all rows, below the second.
KNOWN_WITHIN = 1e-10
KNOWN_OF_COUPLED = 1e-6

# Newton steps are trusted as long as they leave no more than this share of the slope.
TRUSTED_BELOW = 0.3

# Without a bound on how fast the curvature changes, candidates are passed over if even this many times what the local
# quadratic promises would not make them the best.
CAUTION = 4.0

# Rows of which the middle value of a column is taken. Where it is that of at least half of all rows, only the others
# are looked at one by one.
SAMPLED_ROWS = 31
MOSTLY = 0.5


# Columns that were looked at are kept: this many bytes.
KEPT_BYTES = 1 << 26


class Entries(NamedTuple):
    """One column: its rows with weight that differ from its base value, or all of them."""

    rows: np.ndarray
    values: np.ndarray
    base: float
    """The value of all rows that are not listed; zero where all are."""
    based: bool
    """Whether only some rows are listed."""


class ColumnEntries:
    """Standardised columns as lists of entries; those that are looked at again and again are kept."""

    def __init__(self, design: Design) -> None:
        self._design = design
        self._kept: dict[int, Entries] = {}
        self._left = KEPT_BYTES

    def of(self, features: np.ndarray) -> list[Entries]:
        """The entries of some columns."""
        wanted = features.tolist()
        missing = [j for j in wanted if j not in self._kept]
        if not missing:
            return [self._kept[j] for j in wanted]
        new = dict(zip(missing, self._read(missing), strict=True))
        found = [new[j] if j in new else self._kept[j] for j in wanted]
        needed = sum(16 * len(column.rows) for column in new.values())
        if needed > self._left:
            self._kept, self._left = {}, KEPT_BYTES
        if needed <= self._left:
            self._kept |= new
            self._left -= needed
        return found

    def _read(self, features: list[int]) -> list[Entries]:
        z, weighted = self._design.columns(features), self._design.weights > 0
        n_rows = z.shape[1]
        sample = np.unique(np.linspace(0, n_rows - 1, SAMPLED_ROWS).astype(np.intp))
        base = np.sort(z[:, sample], axis=1)[:, len(sample) // 2]
        differs = z != base[:, None]
        based = differs.sum(axis=1) <= MOSTLY * n_rows
        differs[~based] = True
        # Rows without weight may hold anything.
        column, row = np.nonzero(differs & weighted)
        ends = np.cumsum(np.bincount(column, minlength=len(features)))[:-1]
        parts = zip(np.split(row, ends), np.split(z[column, row], ends), base.tolist(), based.tolist(), strict=True)
        return [Entries(rows, values, value if few else 0.0, few) for rows, values, value, few in parts]


class CoordinateSearch:
    """The functions ``t -> Q(w + t e_j)`` around one model of one output.

    Conventions
    -----------
    scores : linear scores of the model, shape (n,); ``of_rows`` the same on the rows that it was fitted on, shape (G,)
    slope, curvature : minus the first and the second derivative at t = 0, shape (d,)
    """

    known_within = KNOWN_WITHIN

    def __init__(self, objective: SmoothObjective, columns: ColumnEntries, rows: Rows, of_rows: np.ndarray) -> None:
        self._objective = objective
        self._columns = columns
        self._loss = objective.smooth
        self._y = objective.y[0]
        self._rows = rows
        self._of_rows = of_rows
        self._scores = rows.to_data(of_rows[None])[0]
        self._weights = objective.design.weights
        self._before = float(rows.weights @ self._loss.value(rows.y[0], of_rows))

    def best_gains(
        self, slope: np.ndarray, curvature: np.ndarray, price: np.ndarray, likely: np.ndarray | None = None
    ) -> np.ndarray:
        """``Q(w) - min_t Q(w + t e_j)`` for every feature j that may be the best per price, and zero for the others.

        Liu, Fujimaki and Ye (2014), Algorithm 1 with the objective rule, where this takes a solve per feature. Here
        features are looked at in the order of the most that each is ``likely`` to gain, until that is below the best
        gain found; if it is not given, in that of a proved ceiling. ``slope`` is not a number for columns that may not
        be chosen.
        """
        every = np.arange(len(slope))
        if likely is None:
            most = self.ceiling(slope, curvature, every)
        else:
            most = np.minimum(likely, self._ridge_ceiling(slope, every))
        most = np.where(np.isfinite(slope), most / price, -np.inf)
        order = np.argsort(-most, kind="stable")
        order = order[most[order] > 0]
        gains = np.zeros(len(slope))
        best = 0.0
        start, width = 0, FIRST_BLOCK
        while start < len(order) and most[order[start]] >= best * (1 - TIED_WITHIN):
            some = order[start : start + width]
            gains[some] = self.gains(some, slope[some], curvature[some])
            best = max(best, float((gains[some] / price[some]).max()))
            start += width
            width = min(2 * width, max(FIRST_BLOCK, BLOCK_NUMBERS // len(self._scores)))
        return gains

    def ceiling(self, slope: np.ndarray, curvature: np.ndarray, features: np.ndarray) -> np.ndarray:
        """An upper bound of what is left to gain where slope and curvature are known.

        With ``|L'''| <= M L''`` the curvature falls no faster than by ``e^(-M |z t|)``. With ``R = M max |z|`` and
        ``x = |slope| R / curvature`` the gain is at most ``curvature / R^2 (x + (1 - x) log(1 - x))`` for x < 1. The
        ridge alone keeps it to ``slope^2 / (2 ridge)``.
        """
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            quadratic = np.where(slope == 0, 0.0, 0.5 * slope * slope / curvature)
            if self._loss.self_concordance is None:
                return np.minimum(CAUTION * quadratic, self._ridge_ceiling(slope, features))
            if self._loss.self_concordance == 0:
                return quadratic
            rate = self._loss.self_concordance * self._objective.design.extent()[features]
            x = np.abs(slope) * rate / curvature
            # The series x^2 (1/2 + x/6 + ...) where the logarithm would lose its digits.
            exact = np.where(x < 1e-4, x * x * (0.5 + x / 5), x + (1 - x) * np.log1p(-x))
            bound = curvature / (rate * rate) * exact
        by_ridge = self._ridge_ceiling(slope, features)
        return np.where(slope == 0, 0.0, np.where(x < 1, np.minimum(bound, by_ridge), by_ridge))

    def _ridge_ceiling(self, slope: np.ndarray, features: np.ndarray) -> np.ndarray:
        """An upper bound of what is left to gain, whatever the curvature of the loss."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return np.where(slope == 0, 0.0, 0.5 * slope * slope / self._objective.penalty[features])

    def all_gains(self, features: np.ndarray, slope: np.ndarray, curvature: np.ndarray) -> np.ndarray:
        """Gains of many features, in blocks; ``slope`` and ``curvature`` are theirs."""
        width = max(FIRST_BLOCK, BLOCK_NUMBERS // len(self._scores))
        parts = [slice(start, start + width) for start in range(0, len(features), width)]
        return np.concatenate([np.zeros(0), *(self.gains(features[p], slope[p], curvature[p]) for p in parts)])

    def gains(self, features: np.ndarray, slope: np.ndarray, curvature: np.ndarray) -> np.ndarray:
        """Gains of some features by safeguarded Newton steps."""
        objective = self._objective
        entries = self._entries(features)
        penalty = objective.penalty[features]
        bracket = _Bracket(len(features))
        if objective.bounds is not None:
            bracket.low, bracket.high = (bound[features].copy() for bound in objective.bounds)
        limits = bracket.low.copy(), bracket.high.copy()
        t = np.zeros(len(features))
        active, left_in = np.arange(len(features)), entries
        shrunk, promised = np.ones(len(features), dtype=bool), np.zeros(len(features))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for iteration in range(MOST_STEPS):
                bracket.narrow(active, t[active], slope)
                if iteration == 0:
                    t = np.clip(slope / curvature, *limits)
                    promised = 0.5 * t * slope
                else:
                    # Where the last step was no good, as on an exponential, the next would not be either.
                    proposed = np.where(shrunk, t[active] + slope / curvature, np.nan)
                    t[active] = bracket.inside(active, proposed, iteration)
                slope_before = slope
                slope, curvature = self._slopes(left_in, t[active], penalty[active])
                shrunk = np.abs(slope) <= TRUSTED_BELOW * np.abs(slope_before)
                # By convexity no more is left than the slope over the rest of the bracket.
                left = np.fmin(
                    self.ceiling(slope, curvature, features[active]), bracket.most_gain(active, t[active], slope)
                )
                # Where numbers have overflowed, the search goes on.
                open_ = ~(np.isfinite(slope) & (left <= self.known_within * promised[active]))
                if not open_.any():
                    break
                if not open_.all():
                    left_in = left_in.only(open_)
                    active, slope, curvature, shrunk = active[open_], slope[open_], curvature[open_], shrunk[open_]
            gains = self._before - self._values(entries, t) - 0.5 * penalty * t * t
        return np.where(gains > 0, gains, 0.0)

    def _entries(self, features: np.ndarray) -> _Entries:
        columns = self._columns.of(features)
        row = np.concatenate([column.rows for column in columns])
        return _Entries(
            np.repeat(np.arange(len(columns)), [len(column.rows) for column in columns]),
            np.concatenate([column.values for column in columns]),
            self._scores[row],
            self._y[row],
            self._weights[row],
            np.array([column.base for column in columns]),
            np.array([column.based for column in columns]),
        )

    def _values(self, entries: _Entries, t: np.ndarray) -> np.ndarray:
        """Mean losses at steps t, shape (b,)."""
        loss, own = self._loss, entries
        there = loss.value(own.y, own.scores + t[own.column] * own.z)
        instead = np.where(own.based[own.column], loss.value(own.y, own.scores + (t * own.base)[own.column]), 0.0)
        sums = own.sums(own.weights * (there - instead))
        moved, y = self._shifted(t * own.base)
        return sums + np.where(own.based, loss.value(y, moved) @ self._rows.weights, 0.0)

    def _slopes(self, entries: _Entries, t: np.ndarray, penalty: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Slope and curvature at steps t, shape (b,) each."""
        own, base = entries, entries.base
        there = self._loss.slopes(own.y, own.scores + t[own.column] * own.z)
        derivative, curvature = there.derivative * own.z, there.curvature * own.z**2
        if own.based.any():
            z0 = base[own.column]
            instead = self._loss.slopes(own.y, own.scores + (t * base)[own.column])
            derivative = derivative - instead.derivative * z0
            curvature = curvature - instead.curvature * z0**2
        slope, bent = own.sums(own.weights * derivative), own.sums(own.weights * curvature)
        if own.based.any():
            moved, y = self._shifted(t * base)
            whole = Slopes(*(part @ self._rows.weights for part in self._loss.slopes(y, moved)))
            slope, bent = slope + base * whole.derivative, bent + base**2 * whole.curvature
        return -slope - penalty * t, np.maximum(bent, 0.0) + penalty

    def _shifted(self, shift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scores and targets of the merged rows, all scores shifted: shape (b, G) each."""
        moved = self._of_rows + shift[:, None]
        return moved, np.broadcast_to(self._rows.y[0], moved.shape)


@dataclass(frozen=True, eq=False)
class _Entries:
    """Columns as lists of entries: those that differ from the column's base value, or all.

    The first five arrays have one item for each entry, in the order of the columns; the last two one for each column.
    """

    column: np.ndarray
    z: np.ndarray
    scores: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    base: np.ndarray
    """The value of all rows that are not listed; zero where all are."""
    based: np.ndarray
    """Whether only some rows are listed."""

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sums over the entries of each column, shape (b,)."""
        return np.bincount(self.column, weights=values, minlength=len(self.base))

    def only(self, mask: np.ndarray) -> _Entries:
        """The entries of some columns."""
        kept = mask[self.column]
        place = np.cumsum(mask) - 1
        z, scores, y, weights = (part[kept] for part in (self.z, self.scores, self.y, self.weights))
        return _Entries(place[self.column[kept]], z, scores, y, weights, self.base[mask], self.based[mask])


class WholeColumnSearch(CoordinateSearch):
    """The same for a loss that couples rows, so that all of them are looked at for every column."""

    known_within = KNOWN_OF_COUPLED

    def _entries(self, features: np.ndarray) -> Any:
        return _WholeColumns(self._objective.design.columns(features))

    def _values(self, entries: Any, t: np.ndarray) -> np.ndarray:
        return self._loss.value(self._y, self._scores + t[:, None] * entries.z) @ self._weights

    def _slopes(self, entries: Any, t: np.ndarray, penalty: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        z, a = entries.z, self._scores + t[:, None] * entries.z
        derivative, curvature = self._loss.slopes(self._y, a)
        slope = np.einsum("bn,bn,n->b", derivative, z, self._weights)
        bent = np.einsum("bn,bn,bn,n->b", curvature, z, z, self._weights, optimize=True)
        shared = self._loss.row_coupling(a, z)
        assert shared is not None
        bent -= np.einsum("bt,bt->b", shared, shared)
        return -slope - penalty * t, np.maximum(bent, 0.0) + penalty


@dataclass(frozen=True, eq=False)
class _WholeColumns:
    z: np.ndarray
    """Shape (b, n)."""

    def only(self, mask: np.ndarray) -> _WholeColumns:
        """Some of the columns."""
        return _WholeColumns(self.z[mask])


class _Bracket:
    """Where minima lie: between the last points with a slope up and a slope down."""

    def __init__(self, size: int) -> None:
        self.low, self.high = np.full(size, -np.inf), np.full(size, np.inf)
        self._slope_low, self._slope_high = np.full(size, np.nan), np.full(size, np.nan)

    def narrow(self, positions: np.ndarray, t: np.ndarray, slope: np.ndarray) -> None:
        """Take in slopes (minus the derivative) at points t."""
        up = slope > 0
        below, above = positions[up], positions[~up]
        self.low[below], self._slope_low[below] = t[up], slope[up]
        self.high[above], self._slope_high[above] = t[~up], slope[~up]

    def inside(self, positions: np.ndarray, proposed: np.ndarray, iteration: int) -> np.ndarray:
        """Proposed points, or by false position and bisection others where those leave the bracket or are none."""
        low, high = self.low[positions], self.high[positions]
        rise, fall = self._slope_low[positions], self._slope_high[positions]
        middle = 0.5 * (low + high)
        straight = low + (high - low) * rise / (rise - fall)
        within = straight if iteration % 3 else middle
        within = np.where(np.isnan(proposed), middle, within)
        # An end that has overflowed would draw the line to the other.
        within = np.where((within > low) & (within < high), within, middle)
        outward = np.where(np.isfinite(low), low + 2 * np.abs(low) + 1e-3, high - 2 * np.abs(high) - 1e-3)
        fallback = np.where(np.isfinite(middle), within, outward)
        return np.where((proposed > low) & (proposed < high), proposed, fallback)

    def most_gain(self, positions: np.ndarray, t: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """The slope times the way to the end of the bracket it points to."""
        way = np.where(slope > 0, self.high[positions] - t, t - self.low[positions])
        return np.where(slope == 0, 0.0, np.abs(slope) * way)
