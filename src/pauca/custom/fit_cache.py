"""Refits of an objective of any kind: each support is fitted once, as closely as its use needs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from pauca.custom.objective import CustomProblem
from pauca.solvers.quasi_newton import SolverState, inverse_diagonal, inverse_of, inverse_without, minimise
from pauca.subsets.fit_cache import RecentTable
from pauca.subsets.fit_records import Fit

# A trial may leave this share of its distance in value from the model it is compared with.
TRIAL_WITHIN = 0.03


@dataclass(frozen=True)
class FitTolerances:
    """How close to their minimum models are taken."""

    accurate: float
    """Those that the search moves to: what is left as a share of the step that led to them."""
    polished: float
    """Those that are returned: what is left as a share of the value."""
    negligible: float
    """Gains of less than this share of the value are taken for none."""


# What quasi-Newton steps promise is too little by a factor of ten to a hundred where the objective is much flatter in
# some directions than in others; these numbers allow for that. On a chain of labels whose 56 transitions are free, the
# models of a path took 129 gradients to come within 1e-3 by what steps promise, 155 within 1e-4, 226 within 1e-5, 358
# within 1e-6, and were really within 6e-3, 3e-3, 6e-4 and 4e-5; to polish them all to 1e-9 took 400, 360, 230 and 20
# more. So a search whose models are to be close is best done tightly from the first.
TIGHT = FitTolerances(1e-6, 1e-11, 1e-10)
NEWTON = FitTolerances(1e-6, 1e-14, 1e-13)
COSTLY = FitTolerances(TRIAL_WITHIN, 1e-6, 1e-6)

# Gradients and inverse Hessians are kept for as many fits as take this many bytes, or at least so many.
KEPT_BYTES = 1 << 28
LEAST_KEPT = 8

# A Hessian of up to this many coordinates is formed where no quasi-Newton steps have built one up.
LARGEST_HESSIAN = 1000

# Divergence: slopes are evaluated so far before and beyond the point where the steps ended, as a share of the
# parameters. A slope beyond it that is less than the second share of the one before has faded: around a minimum they
# are alike in size.
PROBE_DISTANCE = 0.25
VANISHED_SLOPE = 0.02


@dataclass(frozen=True, eq=False, kw_only=True)
class PartialFit(Fit):
    """A model on a set of units, as close to the minimum as ``left``; ``coef`` has shape (q,)."""

    coords: np.ndarray
    """Free coordinates, then those of the units, shape (q,)."""
    left: float
    """About how much lower the minimum is."""
    step: float
    """By how much the value differs from that of the model it was made from."""
    polished: bool = False
    """Whether there is nothing left to gain but rounding."""


class FitCache:
    """Minimisers by support.

    Values of different supports are compared in one of two ways. Models that the search moves to are all converged
    alike: what they leave is a small share of the step that led to them. A trial is compared with such a model, and
    both are refined until what they leave is a few per cent of the difference between the two; see ``difference``.
    """

    def __init__(self, problem: CustomProblem) -> None:
        self.problem = problem
        exact = problem.hessian is not None or problem.refit is not None
        self.closeness = COSTLY if problem.costly else NEWTON if exact else TIGHT
        self._known = RecentTable[PartialFit]()
        self._states = RecentTable[SolverState]()
        self.null = self._first()
        self._anchor = self.point(self.null)

    def accurate(self, support: frozenset[int], near: PartialFit) -> PartialFit:
        """The minimiser on ``support``, as close as the search needs it to go on from."""
        fit = self.trial(support, near)
        return self.refined(fit, self.closeness.accurate * fit.step)

    def trial(self, support: frozenset[int], near: PartialFit) -> PartialFit:
        """The minimiser on ``support`` to a few per cent of its distance from ``near``, where the steps start."""
        found = self._known.get(support)
        if found is None:
            found = self._fit(tuple(sorted(support)), near)
        return found

    def polished(self, fit: PartialFit) -> PartialFit:
        """A fit with nothing left to gain but rounding."""
        fit = self.latest(fit)
        return fit if fit.polished else self.refined(fit, self._rounding(fit.value))

    def with_inverse_of(self, fit: PartialFit, larger: PartialFit) -> PartialFit:
        """A fit with the inverse Hessian of a larger one that holds its units, where more steps have been taken."""
        stays = np.isin(larger.coords, fit.coords)
        inverse = self._state(larger).inverse
        if inverse is not None and int(stays.sum()) == len(fit.coords):
            smaller, _ = inverse_without(inverse, np.flatnonzero(stays), np.flatnonzero(~stays))
            self._states[frozenset(fit.units)] = replace(self._state(fit), inverse=smaller)
        return fit

    def latest(self, fit: PartialFit) -> PartialFit:
        """The fit on the same units, as far as it has been refined."""
        return self._known.get(frozenset(fit.units), fit)

    def difference(self, a: PartialFit, b: PartialFit, within: float = TRIAL_WITHIN) -> float:
        """By how much the least value on the units of ``a`` lies above that of ``b``.

        Both are refined until what they leave is no more than the share ``within`` of it, or nothing but rounding: fits
        that are converged unequally are never compared.
        """
        while True:
            a, b = self.latest(a), self.latest(b)
            found = a.value - b.value
            may_leave = 0.5 * within * abs(found)
            rough = [fit for fit in (a, b) if fit.left > may_leave and not fit.polished]
            if not rough:
                return found
            for fit in rough:
                self.refined(fit, min(may_leave, 0.1 * fit.left))

    def refined(self, fit: PartialFit, left: float) -> PartialFit:
        """The fit, with no more than ``left`` left to gain."""
        fit = self.latest(fit)
        if fit.polished or fit.left <= left:
            return fit
        left = max(left, self._rounding(fit.value))
        state = self._minimised(fit.coords, self._state(fit), lambda _: left)
        # Where the steps ended before they came so close, rounding hides the rest.
        closest = left <= self._rounding(fit.value) or state.left > left
        return self._keep(fit.units, fit.coords, state, fit.step, polished=closest)

    def point(self, fit: PartialFit) -> np.ndarray:
        """The whole parameter vector of a fit; a new array."""
        w = np.zeros(self.problem.n_coords)
        w[fit.coords] = fit.coef
        return w

    def gradient(self, fit: PartialFit) -> np.ndarray:
        """The gradient at a fit, shape (n_coords,)."""
        return self._state(fit).gradient

    def inverse(self, fit: PartialFit) -> np.ndarray:
        """About the inverse of the Hessian on the coordinates of a fit."""
        state = self._state(fit)
        if state.inverse is None:
            made = self._inverse(state.w, state.gradient, fit.coords)
            state = self._states[frozenset(fit.units)] = replace(state, inverse=made)
            assert state.inverse is not None
        return state.inverse

    def dropped(self, fit: PartialFit, units: frozenset[int]) -> SolverState:
        """The objective where the quadratic around a fit has its minimum once some units are held at zero."""
        needed = self.problem.coords(sorted(set(fit.units) - units))
        return self._dropped(replace(self._state(fit), inverse=self.inverse(fit)), fit.coords, needed)[0]

    def aside(self, fit: PartialFit, coords: np.ndarray) -> SolverState:
        """A fit as the point from which other coordinates start to move alone."""
        state = self._state(fit)
        return replace(state, inverse=np.diag(self._diagonal(state.w, state.gradient, coords)), left=np.inf)

    def _first(self) -> PartialFit:
        """The empty model, from the objective's own start."""
        problem = self.problem
        value, gradient = problem.at(problem.start)
        if gradient is None:
            raise ValueError(f"{problem.called('value')} is not finite at the start; give a start where it is.")
        coords = problem.free
        diagonal = self._diagonal(problem.start, gradient, coords)
        begin = SolverState(problem.start, value, gradient, np.diag(diagonal), np.inf)
        state = self._minimised(coords, begin, lambda at: TRIAL_WITHIN * abs(value - at))
        fit = self._keep((), coords, state, abs(value - state.value))
        return self.refined(fit, self._rounding(fit.value))

    def _fit(self, units: tuple[int, ...], near: PartialFit) -> PartialFit:
        coords = self.problem.coords(units)
        near = self.latest(near)
        begin = self._bordered(*self._dropped(self._state(near), near.coords, coords), coords)
        state = self._minimised(coords, begin, lambda at: TRIAL_WITHIN * abs(near.value - at) + self._rounding(at))
        return self._keep(units, coords, state, abs(near.value - state.value))

    def _minimised(self, coords: np.ndarray, begin: SolverState, enough: Callable[[float], float]) -> SolverState:
        """The minimum over some coordinates, by the objective's own ``refit`` if that lowers the value."""
        if self.problem.refit is not None and len(coords):
            state = self._by_hook(coords, begin, max(enough(begin.value), self._rounding(begin.value)))
            if state.value < begin.value:
                return state
        if begin.inverse is None:
            begin = replace(begin, inverse=self._inverse(begin.w, begin.gradient, coords))
        return minimise(self.problem, coords, begin, enough)

    def _by_hook(self, coords: np.ndarray, begin: SolverState, tol: float) -> SolverState:
        assert self.problem.refit is not None
        w = np.array(self.problem.refit(coords, begin.w.copy(), tol), dtype=np.float64)
        moved = w.copy() if w.shape == begin.w.shape else np.ones_like(begin.w)
        moved[coords] = 0.0
        if np.any(moved):
            first = self.problem.coordinate(int(np.flatnonzero(moved)[0]))
            raise ValueError(
                f"{self.problem.name}.refit must return an array of shape {begin.w.shape} that is zero outside of the "
                f"coordinates it is given; got shape {w.shape}, or {first} is not zero."
            )
        value, gradient = self.problem.at(w)
        return replace(begin, value=np.inf) if gradient is None else SolverState(w, value, gradient, None, tol)

    def _dropped(self, state: SolverState, coords: np.ndarray, needed: np.ndarray) -> tuple[SolverState, np.ndarray]:
        """The point to go on from with those of ``coords`` that are in ``needed``, and which they are."""
        stays = np.isin(coords, needed)
        if stays.all():
            return state, coords
        kept, lost = np.flatnonzero(stays), np.flatnonzero(~stays)
        w = state.w.copy()
        w[coords[lost]] = 0.0
        moved, inverse = w.copy(), None
        if state.inverse is not None:
            inverse, pull = inverse_without(state.inverse, kept, lost)
            moved[coords[kept]] -= pull @ state.w[coords[lost]]
        # Of the minimum of the quadratic and of the point with nothing but zeros put in, one may lie outside of the
        # domain; on the way to the empty model, which does not, there are others.
        trials = [moved] + [self._anchor + share * (w - self._anchor) for share in (1.0, 0.5, 0.25, 0.1, 0.0)]
        for there in trials:
            value, gradient = self.problem.at(there)
            if gradient is not None:
                return SolverState(there, value, gradient, inverse, np.inf), coords[kept]
        raise FloatingPointError(f"{self.problem.called('value')} was finite at the empty model, and is no more.")

    def _bordered(self, state: SolverState, coords: np.ndarray, needed: np.ndarray) -> SolverState:
        """The same point with further coordinates, which are zero there, in the order of ``needed``."""
        if state.inverse is None:
            return state
        position_of = {coord: position for position, coord in enumerate(coords.tolist())}
        old = np.array(
            [position for position, coord in enumerate(needed.tolist()) if coord in position_of], dtype=np.intp
        )
        new = np.array(
            [position for position, coord in enumerate(needed.tolist()) if coord not in position_of], np.intp
        )
        inverse = np.zeros((len(needed), len(needed)))
        source = [position_of[coord] for coord in needed[old].tolist()]
        inverse[np.ix_(old, old)] = state.inverse[np.ix_(source, source)]
        inverse[new, new] = self._diagonal(state.w, state.gradient, needed[new])
        return replace(state, inverse=inverse, left=np.inf)

    def _inverse(self, w: np.ndarray, gradient: np.ndarray, coords: np.ndarray) -> np.ndarray:
        """An inverse Hessian where no steps have made one."""
        if self.problem.hessian is not None and len(coords) <= LARGEST_HESSIAN:
            return inverse_of(self.problem.hessian(w, coords))
        return np.diag(self._diagonal(w, gradient, coords))

    def _diagonal(self, w: np.ndarray, gradient: np.ndarray, coords: np.ndarray) -> np.ndarray:
        """An estimate of the inverse curvature in some coordinates."""
        if not len(coords):
            return np.zeros(0)
        if self.problem.curvature is not None:
            own = np.asarray(self.problem.curvature(w), dtype=np.float64)[coords]
        else:
            direction = np.zeros_like(w)
            direction[coords] = gradient[coords]
            product = self.problem.hessian_product(w, gradient, direction)
            size = float(direction @ direction)  # zero where the squares of a tiny gradient are
            own = np.full(len(coords), float(product @ direction) / size if product is not None and size > 0 else 0.0)
        return inverse_diagonal(own)

    def _state(self, fit: PartialFit) -> SolverState:
        """Gradient and inverse Hessian of a fit: computed again if they are no longer kept."""
        key = frozenset(fit.units)
        found = self._states.get(key)
        if found is None:
            fit = self.latest(fit)
            w = self.point(fit)
            value, gradient = self.problem.at(w)
            assert gradient is not None
            own = self.problem.refit is not None
            inverse = None if own else self._inverse(w, gradient, fit.coords)
            found = self._states[key] = SolverState(w, value, gradient, inverse, fit.left)
        return found

    def _keep(
        self, units: tuple[int, ...], coords: np.ndarray, state: SolverState, step: float, *, polished: bool = False
    ) -> PartialFit:
        key = frozenset(units)
        fit = PartialFit(
            units,
            state.w[coords],
            state.value,
            state.converged,
            coords=coords,
            left=state.left,
            step=step,
            polished=polished or not state.converged,
        )
        each = 8 * len(coords) ** 2 + 2 * state.gradient.nbytes
        self._states.keep(key, state, max(LEAST_KEPT, KEPT_BYTES // each))
        return self._known.remember(key, fit)

    def _rounding(self, value: float) -> float:
        return self.closeness.polished * max(abs(value), self.problem.magnitude)


def diverged(fits: FitCache, found: list[PartialFit]) -> list[bool]:
    """Which of some fits have their minimum at infinity.

    A model within one that has a finite minimum has one too: what diverges there could diverge in the larger one. So of
    a path few are tested, the largest first.
    """
    finite: list[frozenset[int]] = []
    diverges: dict[int, bool] = {}
    for index in sorted(range(len(found)), key=lambda index: -len(found[index].units)):
        units = frozenset(found[index].units)
        diverges[index] = not any(units <= other for other in finite) and _diverges(fits, found[index])
        if not diverges[index]:
            finite.append(units)
    return [diverges[index] for index in range(len(found))]


def _diverges(fits: FitCache, fit: PartialFit) -> bool:
    """Whether the steps ended where there was next to nothing left to gain, and not where the objective rises again.

    It is followed along the parameters, along each alone, and where it is flattest in parts of the parameters. A slope
    of zero does not count: many objectives are flat at their least.
    """
    coef, inverse = fit.coef, fits.inverse(fit)
    live = np.flatnonzero(coef)
    with np.errstate(all="ignore"):
        relative = inverse[np.ix_(live, live)] / np.outer(coef[live], coef[live])
    if not len(live) or not np.isfinite(relative).all():
        return False
    share = np.linalg.eigh(relative)[1][:, -1]
    flattest = np.zeros_like(coef)
    flattest[live] = share / np.abs(share).max() * coef[live]
    if fits.gradient(fit)[fit.coords] @ flattest > 0:
        flattest = -flattest
    return any(_fades(fits, fit, direction) for direction in (coef, flattest, *np.diag(coef)[live]))


def _fades(fits: FitCache, fit: PartialFit, direction: np.ndarray) -> bool:
    """Whether the slope along a direction is negative all the way, and next to nothing in the end."""
    line = np.zeros(fits.problem.n_coords)
    line[fit.coords] = direction
    w, slopes = fits.point(fit), []
    for length in (-PROBE_DISTANCE, 0.5 * PROBE_DISTANCE, PROBE_DISTANCE):
        try:
            gradient = fits.problem.at(w + length * line)[1]
        except (ArithmeticError, ValueError):  # a failure where no step has led must not fail the fit
            return False
        if gradient is None or not gradient @ line < 0:
            return False
        slopes.append(float(gradient @ line))
    return slopes[0] * VANISHED_SLOPE < slopes[2]
