"""How far the objective falls if a single coefficient moves, for many candidates at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pauca.clock import check_time
from pauca.design import Entries
from pauca.losses import Loss, Slopes
from pauca.objectives import Rows, SmoothObjective
from pauca.subsets.base import highest_scores
from pauca.subsets.column_entries import ColumnEntries
from pauca.subsets.compiled_gains import Lines, gains_of_columns, gains_of_entries
from pauca.tolerances import TIED_WITHIN, TINY

# Candidates are taken in blocks of about this many numbers, which stay in the cache.
BLOCK_NUMBERS = 1 << 17

# The first block has about so many numbers, and no fewer and no more candidates than this.
FIRST_NUMBERS = 1 << 14
FIRST_BLOCK = 8
LARGEST_FIRST_BLOCK = 32

# Of losses with narrow kinks all candidates are looked at where they are no more numbers than this: by estimates from
# the empty model forward search by hinge loss was up to 20 % above what it finds now (spambase, 12 to 20 features).
ALL_NUMBERS = 1 << 20

MOST_STEPS = 40

# A gain is known when what is left of it is below this share: one that is compared with others, a rough one, and one
# of which only the order of magnitude is needed.
GAIN_TOLERANCE = 1e-10
ROUGH_GAIN_TOLERANCE = 1e-4
VAGUE_GAIN_TOLERANCE = 1e-2

# The same where every step looks at all rows.
COUPLED_GAIN_TOLERANCE = 1e-6

# Newton steps are trusted as long as they leave no more than this share of the slope.
TRUSTED_BELOW = 0.3

# Without a bound on how fast the curvature changes, candidates are passed over if even this many times what the local
# quadratic predicts would not make them the best.
SAFETY_FACTOR = 4.0


class CoordinateSearch:
    """The functions ``t -> Q(w + t e_j)`` around one model of one output.

    Conventions
    -----------
    scores : linear scores of the model, shape (n,); ``of_rows`` the same on the rows that it was fitted on, shape (G,)
    slope, curvature : minus the first and the second derivative at t = 0, shape (d,)
    """

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
        self,
        slope: np.ndarray,
        curvature: np.ndarray,
        price: np.ndarray | None,
        likely: np.ndarray | None = None,
        count: int = 1,
    ) -> np.ndarray:
        """``Q(w) - min_t Q(w + t e_j)`` for every feature j that may be among the ``count`` best per price, else zero.

        Liu, Fujimaki and Ye (2014), Algorithm 1 with the objective rule, where this takes a solve per feature. Here
        features are looked at in the order of the most that each is ``likely`` to gain, until that is below the best
        gains found; if it is not given, in that of a proved ceiling. ``slope`` is not a number for columns that may not
        be chosen.
        """
        # To find the best of all, rough gains will do but for those that come close to it.
        within = ROUGH_GAIN_TOLERANCE if count == 1 else GAIN_TOLERANCE
        if likely is None:
            most = self.ceiling(slope, curvature, slice(None))
        else:
            most = np.minimum(likely, self._ridge_ceiling(slope))
        most = _per_price(most, price)
        most[~np.isfinite(slope)] = -np.inf
        gains, best = np.zeros(len(slope)), 0.0
        width, seen = min(max(FIRST_BLOCK, FIRST_NUMBERS // len(self._scores)), LARGEST_FIRST_BLOCK), np.zeros(0)
        # About narrow kinks next to no row has curvature, and how far estimates are off is seen only on the way.
        raised = np.inf if self._loss.narrow and len(slope) * len(self._scores) <= ALL_NUMBERS else 1.0
        while True:
            some = np.array(highest_scores(most, width), dtype=np.intp)
            at_most = np.searchsorted(self._columns.numbers(some).cumsum(), BLOCK_NUMBERS)
            some = some[: max(FIRST_BLOCK, int(at_most))]
            some = some[most[some] >= max(best * (1 - TIED_WITHIN) / raised, TINY)]
            if not len(some):
                return self._with_exact_best(gains, slope, curvature, price) if count == 1 else gains
            gains[some] = self.gains(some, slope[some], curvature[some], within)
            estimated, found = most[some], _per_price(gains[some], price, some)
            most[some] = -np.inf
            seen = np.concatenate([seen, found])
            if self._loss.narrow:
                raised = max(raised, float((found / estimated).max()))
            best = float(np.sort(seen)[-count]) if len(seen) >= count else 0.0
            width *= 2

    def _with_exact_best(
        self, gains: np.ndarray, slope: np.ndarray, curvature: np.ndarray, price: np.ndarray | None
    ) -> np.ndarray:
        """Rough gains of which those that may be the highest per price, if there are several, are found exactly."""
        (close,) = gains.nonzero()
        per_price, slopes = _per_price(gains[close], price, close), slope[close]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            missed = _per_price(ROUGH_GAIN_TOLERANCE * 0.5 * slopes * slopes / curvature[close], price, close)
        close = close[~(per_price + missed < per_price.max(initial=0.0))]
        if len(close) > 1:
            gains[close] = self.gains(close, slope[close], curvature[close])
        return gains

    def ceiling(self, slope: np.ndarray, curvature: np.ndarray, features: np.ndarray | slice) -> np.ndarray:
        """An upper bound of what is left to gain where slope and curvature are known.

        The curvature falls no faster than by ``e^(-M |z t|)``, see ``Loss.concordance_at``. With ``R = M max |z|`` and
        ``x = |slope| R / curvature`` the gain is at most ``curvature / R^2 (x + (1 - x) log(1 - x))`` for x < 1. The
        ridge alone keeps it to ``slope^2 / (2 ridge)``.
        """
        return self._ceiling_by(self._loss.concordance_at(self._of_rows), slope, curvature, features)

    def likely_ceiling(self, slope: np.ndarray, curvature: np.ndarray, features: np.ndarray) -> np.ndarray:
        """The same for estimates."""
        return self._ceiling_by(self._loss.likely_concordance_at(self._of_rows), slope, curvature, features)

    def _ceiling_by(
        self, concordance: float | None, slope: np.ndarray, curvature: np.ndarray, features: np.ndarray | slice
    ) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            rate = self._rate(features, concordance)
            return self._ceiling(slope, curvature, rate, self._objective.penalty[features])

    def _rate(self, features: np.ndarray | slice, concordance: float | None) -> np.ndarray:
        """How fast curvatures along some columns may change; not numbers where there is no bound."""
        extent = self._objective.design.extent()[features]
        return np.full(len(extent), np.nan) if concordance is None else concordance * extent

    def _ceiling(self, slope: np.ndarray, curvature: np.ndarray, rate: np.ndarray, penalty: np.ndarray) -> np.ndarray:
        half = 0.5 * slope * slope
        quadratic, by_ridge = half / curvature, half / penalty
        x = np.abs(slope) * rate / curvature
        # The series x^2 (1/2 + x/6 + ...) where the logarithm would lose its digits.
        exact = np.where(x < 1e-4, x * x * (0.5 + x / 5), x + (1 - x) * np.log1p(-x))
        found = np.where(x < 1, np.minimum(curvature / (rate * rate) * exact, by_ridge), by_ridge)
        found = np.where(rate == 0, quadratic, found)
        found = np.where(np.isnan(rate), np.minimum(SAFETY_FACTOR * quadratic, by_ridge), found)
        return np.where(slope == 0, 0.0, found)

    def _ridge_ceiling(self, slope: np.ndarray) -> np.ndarray:
        """An upper bound of what is left to gain along every column, whatever the curvature of the loss."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            found = 0.5 * slope * slope / self._objective.penalty
        found[slope == 0] = 0.0
        return np.asarray(found)

    def gains(
        self, features: np.ndarray, slope: np.ndarray, curvature: np.ndarray, within: float = GAIN_TOLERANCE
    ) -> np.ndarray:
        """Gains of some features, in blocks; ``slope`` and ``curvature`` are theirs."""
        numbers = self._columns.numbers(features) + len(self._of_rows)
        block = np.cumsum(np.minimum(numbers, BLOCK_NUMBERS // FIRST_BLOCK)) // BLOCK_NUMBERS
        gains = np.zeros(len(features))
        for some in np.split(np.arange(len(features)), np.flatnonzero(np.diff(block)) + 1) if len(features) else []:
            gains[some] = self._gains_of_some(features[some], slope[some], curvature[some], within)
        return gains

    def _gains_of_some(
        self, features: np.ndarray, slope: np.ndarray, curvature: np.ndarray, within: float
    ) -> np.ndarray:
        """Those with mostly one value are looked at by their entries, the others as whole columns."""
        gains = np.empty(len(features))
        for places, columns in self._columns.parts(features):
            lines = self._known(features[places], slope[places], curvature[places])
            if isinstance(columns, Entries):
                gains[places] = self._listed_gains(columns, lines, within)
            else:
                z = self._columns.columns(features[places]) if columns is None else columns
                gains[places] = self._whole_gains(z, lines, within)
        return gains

    def _listed_gains(self, columns: Entries, lines: Lines, within: float) -> np.ndarray:
        rows, merged = (self._y, self._weights, self._scores), self._rows
        of_merged = merged.y[0], merged.weights, self._of_rows
        gains = gains_of_entries(self._loss, rows, of_merged, columns, lines, within, self._before)
        return self._line_gains(self._listed(columns), lines, within) if gains is None else gains

    def _whole_gains(self, z: np.ndarray, lines: Lines, within: float) -> np.ndarray:
        block = self._whole_columns(z)
        rows = block.y, block.weights, block.scores
        gains = gains_of_columns(self._loss, rows, block.z, lines, within, self._before)
        return self._line_gains(block, lines, within) if gains is None else gains

    def _known(self, features: np.ndarray, slope: np.ndarray, curvature: np.ndarray) -> Lines:
        """What is known of some columns before they are looked at."""
        objective, rate = self._objective, self._rate(features, self._loss.self_concordance)
        bounds = np.array([[-np.inf], [np.inf]]).repeat(len(features), axis=1)
        if objective.bounds is not None:
            bounds = np.stack(objective.bounds)[:, features]
        return Lines(slope, curvature, objective.penalty[features], rate, *bounds)

    def _line_gains(self, columns: _Listed | _WholeColumns, lines: Lines, within: float) -> np.ndarray:
        """Gains along some columns by safeguarded Newton steps."""
        slope, curvature, penalty, rate, low, high = lines
        bracket = _Bracket(low.copy(), high.copy())
        active, left_in = np.arange(len(slope)), columns
        t, here, open_penalty = np.zeros(len(slope)), np.zeros(len(slope)), penalty
        shrunk, enough = np.ones(len(slope), dtype=bool), np.zeros(len(slope))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for iteration in range(MOST_STEPS):
                check_time()
                bracket.narrow(active, here, slope)
                if iteration == 0:
                    here = np.clip(slope / curvature, low, high)
                    enough = within * 0.5 * here * slope
                else:
                    # Where the last step was no good, as on an exponential, the next would not be either.
                    here = bracket.inside(active, np.where(shrunk, here + slope / curvature, np.nan), iteration)
                t[active], slope_before = here, slope
                slope, curvature = left_in.slopes(here, open_penalty)
                shrunk = np.abs(slope) <= TRUSTED_BELOW * np.abs(slope_before)
                # Where numbers have overflowed, the search goes on.
                left = self._ceiling(slope, curvature, rate, open_penalty)
                open_ = ~(np.isfinite(slope) & (left <= enough))
                if open_.any():
                    # By convexity no more is left than the slope over the rest of the bracket.
                    open_ &= ~(bracket.most_gain(active, here, slope) <= enough)
                if not open_.any():
                    break
                if not open_.all():
                    left_in, active, rate = left_in.only(open_), active[open_], rate[open_]
                    here, slope, curvature, shrunk = here[open_], slope[open_], curvature[open_], shrunk[open_]
                    open_penalty, enough = open_penalty[open_], enough[open_]
            gains = self._before - columns.values(t) - 0.5 * penalty * t * t
        # Where scores have overflowed nothing is known.
        return np.where((gains > 0) & np.isfinite(gains), gains, 0.0)

    def _whole_columns(self, z: np.ndarray) -> _WholeColumns:
        weighted = self._weights > 0
        if self._loss.coupled or weighted.all():
            return _WholeColumns(self._loss, self._y, self._weights, self._scores, z)
        # Rows without weight may hold anything.
        rows = np.flatnonzero(weighted)
        return _WholeColumns(self._loss, self._y[rows], self._weights[rows], self._scores[rows], z[:, rows])

    def _listed(self, columns: Entries) -> _Listed:
        rows = columns.rows
        of_entries = columns.column, columns.values, self._scores[rows], self._y[rows], self._weights[rows]
        return _Listed(self._loss, self._rows, self._of_rows, *of_entries, columns.base)


@dataclass(frozen=True, eq=False)
class _Listed:
    """Columns with mostly one value each, as lists of the other entries.

    The five arrays from ``column`` on have one item for each entry, in the order of the columns, and ``base`` one for
    each column. All rows that are not listed share one shift of their scores: for them the merged rows are looked at.
    """

    loss: Loss
    merged: Rows
    of_merged: np.ndarray
    """Scores of the merged rows."""
    column: np.ndarray
    z: np.ndarray
    scores: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    base: np.ndarray

    def only(self, mask: np.ndarray) -> _Listed:
        """Some of the columns."""
        kept = mask[self.column]
        place = np.cumsum(mask) - 1
        z, scores, y, weights = (part[kept] for part in (self.z, self.scores, self.y, self.weights))
        return replace(
            self, column=place[self.column[kept]], z=z, scores=scores, y=y, weights=weights, base=self.base[mask]
        )

    def values(self, t: np.ndarray) -> np.ndarray:
        """Mean losses at steps t, shape (b,)."""
        there = self.loss.value(self.y, self.scores + t[self.column] * self.z)
        instead = self.loss.value(self.y, self.scores + (t * self.base)[self.column])
        moved, y = self._shifted(t * self.base)
        return self._sums(self.weights * (there - instead)) + self.loss.value(y, moved) @ self.merged.weights

    def slopes(self, t: np.ndarray, penalty: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Slope and curvature at steps t, shape (b,) each."""
        z0 = self.base[self.column]
        there = self.loss.slopes(self.y, self.scores + t[self.column] * self.z)
        instead = self.loss.slopes(self.y, self.scores + (t * self.base)[self.column])
        slope = self._sums(self.weights * (there.derivative * self.z - instead.derivative * z0))
        bent = self._sums(self.weights * (there.curvature * self.z**2 - instead.curvature * z0**2))
        moved, y = self._shifted(t * self.base)
        whole = Slopes(*(part @ self.merged.weights for part in self.loss.slopes(y, moved)))
        slope, bent = slope + self.base * whole.derivative, bent + self.base**2 * whole.curvature
        return -slope - penalty * t, np.maximum(bent, 0.0) + penalty

    def _sums(self, values: np.ndarray) -> np.ndarray:
        """Sums over the entries of each column, shape (b,)."""
        return np.bincount(self.column, weights=values, minlength=len(self.base))

    def _shifted(self, shift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scores and targets of the merged rows, all scores shifted: shape (b, G) each."""
        moved = self.of_merged + shift[:, None]
        return moved, np.broadcast_to(self.merged.y[0], moved.shape)


@dataclass(frozen=True, eq=False)
class _WholeColumns:
    """Columns with many values, shape (b, n)."""

    loss: Loss
    y: np.ndarray
    weights: np.ndarray
    scores: np.ndarray
    z: np.ndarray

    def only(self, mask: np.ndarray) -> _WholeColumns:
        """Some of the columns."""
        return replace(self, z=self.z[mask])

    def values(self, t: np.ndarray) -> np.ndarray:
        """Mean losses at steps t, shape (b,)."""
        a = self._moved(t)
        return np.asarray(self.loss.value(np.broadcast_to(self.y, a.shape), a) @ self.weights)

    def slopes(self, t: np.ndarray, penalty: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Slope and curvature at steps t, shape (b,) each."""
        a = self._moved(t)
        derivative, curvature = self.loss.slopes(np.broadcast_to(self.y, a.shape), a)
        weighted = self.z * self.weights
        slope = np.vecdot(derivative, weighted)
        bent = np.vecdot(curvature, np.multiply(weighted, self.z, out=weighted))
        shared = self.loss.row_coupling(a, self.z)
        if shared is not None:
            bent -= np.vecdot(shared, shared)
        return -slope - penalty * t, np.maximum(bent, 0.0) + penalty

    def _moved(self, t: np.ndarray) -> np.ndarray:
        moved = t[:, None] * self.z
        moved += self.scores
        return moved


class WholeColumnSearch(CoordinateSearch):
    """The same for a loss that couples rows, so that all of them are looked at for every column."""

    def _gains_of_some(
        self, features: np.ndarray, slope: np.ndarray, curvature: np.ndarray, within: float
    ) -> np.ndarray:
        lines = self._known(features, slope, curvature)
        return self._whole_gains(self._columns.columns(features), lines, max(within, COUPLED_GAIN_TOLERANCE))


def _per_price(gains: np.ndarray, price: np.ndarray | None, features: np.ndarray | slice = slice(None)) -> np.ndarray:
    return gains if price is None else gains / price[features]


class _Bracket:
    """Where minima lie: between the last points with a slope up and a slope down."""

    def __init__(self, low: np.ndarray, high: np.ndarray) -> None:
        self.low, self.high = low, high
        self._slope_low, self._slope_high = np.full(len(low), np.nan), np.full(len(low), np.nan)

    def narrow(self, positions: np.ndarray, t: np.ndarray, slope: np.ndarray) -> None:
        """Take in slopes (minus the derivative) at points t."""
        up = slope > 0
        below, above = positions[up], positions[~up]
        self.low[below], self._slope_low[below] = t[up], slope[up]
        self.high[above], self._slope_high[above] = t[~up], slope[~up]

    def inside(self, positions: np.ndarray, proposed: np.ndarray, iteration: int) -> np.ndarray:
        """Proposed points, or by false position and bisection others where those leave the bracket or are none."""
        low, high = self.low[positions], self.high[positions]
        inside = (proposed > low) & (proposed < high)
        if inside.all():
            return proposed
        rise, fall = self._slope_low[positions], self._slope_high[positions]
        middle = 0.5 * (low + high)
        straight = low + (high - low) * rise / (rise - fall)
        within = straight if iteration % 3 else middle
        within = np.where(np.isnan(proposed), middle, within)
        # An end that has overflowed would draw the line to the other.
        within = np.where((within > low) & (within < high), within, middle)
        outward = np.where(np.isfinite(low), low + 2 * np.abs(low) + 1e-3, high - 2 * np.abs(high) - 1e-3)
        fallback = np.where(np.isfinite(middle), within, outward)
        return np.where(inside, proposed, fallback)

    def most_gain(self, positions: np.ndarray, t: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """The slope times the way to the end of the bracket it points to."""
        way = np.where(slope > 0, self.high[positions] - t, t - self.low[positions])
        return np.where(slope == 0, 0.0, np.abs(slope) * way)
