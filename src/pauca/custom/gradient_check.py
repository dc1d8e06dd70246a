"""Checks of an objective that a user wrote, at a few sparse points: value, gradient and all else must agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from pauca.custom.objective import CustomProblem
from pauca.derivative_check import FunctionCheck, falls

# Random points that are checked besides the start, and the most units in each that differ from zero.
POINTS = 6
UNITS_EACH = 4

# Steps of central differences; a gradient is right if it agrees at one of them.
STEPS = (1e-4, 1e-3, 1e-5, 1e-2, 1e-6, 1e-1, 1e-8)

# Convexity is checked along so many coordinates, by slopes at these distances from the start.
LINES = 16
DISTANCES = np.array([-3.0, -1.0, -0.3, 0.0, 0.3, 1.0, 3.0])

# A slope may be off by this share; optional functions, which rank and need not be exact, by the second.
SLOPE_TOLERANCE = 1e-3
OPTIONAL_TOLERANCE = 1e-2

# A value may be off by so many units in the last place, and a chord by more: it is a sum of many terms. A slope is
# not compared if more than this share of it may be rounding.
ROUNDINGS = 20.0
ROUNDINGS_OF_CHORDS = 1000.0
MOSTLY_ROUNDING = 0.02

# A step across zero that changes no smooth function, in double precision and in single: its square is still a number.
TINY_STEP = 1e-100
TINY_STEP_SINGLE = 1e-15
SINGLE_ABOVE = 1e-10

# How often a random point is brought closer to the start, by half, until it lies in the domain.
MOST_HALVINGS = 40


def check_objective(problem: CustomProblem, rng: np.random.Generator) -> None:
    """Raise ``ValueError`` if an objective is not smooth and convex or its gradient is wrong.

    Checked are shapes, the gradient against central differences of the value (all coordinates at once along a random
    direction; if that fails, the coordinate is searched for by halving), kinks where coordinates are zero, and
    convexity, at the start and at random sparse points of the domain. What is right there may still be wrong elsewhere.
    """
    check = _ObjectiveCheck(problem, rng)
    check.has_right_shapes()
    problem.check_scale()
    points = [problem.start, *(check.point() for _ in range(POINTS))]
    check.leaves_arguments_unchanged(points[-1])
    check.is_deterministic_at(points[-1])
    for w in points:
        check.is_above_its_floor_at(w)
        check.is_smooth_across_zero_at(w)
        check.has_right_gradient_at(w)
    check.is_convex_among(points)
    check.is_convex_along_coordinates()
    check.has_right_options_at(points[1])


class _ObjectiveCheck:
    """Each method checks one property of an objective and raises ``ValueError`` if it does not hold."""

    def __init__(self, problem: CustomProblem, rng: np.random.Generator) -> None:
        self.problem = problem
        self.rng = rng
        self.eps = float(np.finfo(float).eps)
        self._check = FunctionCheck(problem.objective, problem.called)

    def has_right_shapes(self) -> None:
        """Value and gradient at the start are numbers in the right shape."""
        problem, start = self.problem, self.problem.start.copy()
        value = self._check.call("value", start, where="at the start")
        if not problem.read_value(value) < np.inf:
            self._check.reject("value", f"is {float(value):g} at the start; give a start where it is finite")
        gradient = self._check.call("gradient", start, where="at the start")
        problem.read_gradient(gradient, float(value))
        # Values in single precision need agree no closer than that.
        self.eps = max(_eps(value), _eps(gradient))

    def point(self) -> np.ndarray:
        """A random point of the domain with few units that differ from zero."""
        problem, usable = self.problem, np.flatnonzero(self.problem.usable)
        units = self.rng.choice(usable, min(UNITS_EACH, len(usable)), replace=False)
        coords = problem.coords(units.tolist())
        step = np.zeros(problem.n_coords)
        step[coords] = self.rng.normal(size=len(coords))
        for _ in range(MOST_HALVINGS):
            if problem.value(problem.start + step) < np.inf:
                break
            step *= 0.5
        else:
            where = f"along {problem.coordinates(coords)}"
            self._check.reject("value", f"is not finite as soon as one leaves the start {where}; give a start inside")
        # Differences need a distance from the border of the domain.
        return np.asarray(problem.start + step * self.rng.uniform(0.3, 0.9))

    def leaves_arguments_unchanged(self, w: np.ndarray) -> None:
        """Value and gradient do not change what they are given."""
        for method in ("value", "gradient", "value_and_gradient"):
            if hasattr(self.problem.objective, method):
                self._check.call(method, w.copy(), where=_at(w, self.problem.start))

    def is_deterministic_at(self, w: np.ndarray) -> None:
        """The value is a function of the point, and of nothing else."""
        first, again = self.problem.value(w), self.problem.value(w)
        if abs(first - again) > ROUNDINGS_OF_CHORDS * self.eps * abs(first):
            where = _at(w, self.problem.start)
            self._check.reject("value", f"is {first:.6g} {where}, and then {again:.6g}; it must not depend on chance")

    def is_above_its_floor_at(self, w: np.ndarray) -> None:
        """The value is not below its floor."""
        floor, value = self.problem.floor, self.problem.value(w)
        if floor is not None and value < floor - ROUNDINGS * self.eps * abs(floor):
            where = _at(w, self.problem.start)
            self._check.reject("value", f"is {value:.6g} {where}, below floor={floor:g}; give a lower floor, or none")

    def has_right_gradient_at(self, w: np.ndarray) -> None:
        """The gradient agrees with central differences of the value."""
        gradient = self.problem.gradient(w, self.problem.value(w))
        every = np.arange(self.problem.n_coords)
        direction = self.rng.normal(size=len(every))
        if self._agrees(w, gradient, direction) is None:
            return
        while len(every) > 1:
            half = every[: len(every) // 2]
            wrong = self._agrees(w, gradient, _only(direction, half)) is not None
            every = half if wrong else every[len(every) // 2 :]
        claimed, found = self._agrees(w, gradient, _only(np.ones(len(w)), every)) or (np.nan, np.nan)
        where = f"in {self.problem.coordinate(int(every[0]))} {_at(w, self.problem.start)}"
        if np.isnan(claimed):
            self._check.reject("gradient", f"does not agree with the differences of value {_at(w, self.problem.start)}")
        self._check.reject(
            "gradient", f"is {claimed:.6g} {where}, where value rises by {found:.6g} per unit; they must agree"
        )

    def is_smooth_across_zero_at(self, w: np.ndarray) -> None:
        """The gradient does not jump where coordinates pass zero, as it does for ``|w|``.

        The search holds most coordinates at zero, so that is where a kink matters. All of them are moved to either side
        by far less than rounding, which changes no smooth function, however curved it is.
        """
        size = TINY_STEP_SINGLE if self.eps > SINGLE_ABOVE else TINY_STEP
        step = np.where(w == 0, size * self.rng.normal(size=len(w)), 0.0)
        sides = [self.problem.at(w - step)[1], self.problem.at(w + step)[1]]
        below, above = sides
        if below is None or above is None:
            return
        jumps = np.where(w == 0, np.abs(above - below), 0.0)
        worst = int(jumps.argmax())
        rounding = ROUNDINGS_OF_CHORDS * self.eps * max(np.abs(below).max(), np.abs(above).max())
        # A smooth gradient, as curved as floating point allows, changes by less than the root of the step.
        if jumps[worst] <= max(rounding, np.sqrt(size)):
            return
        between = f"between {below[worst]:.6g} and {above[worst]:.6g}"
        self._check.reject(
            "gradient",
            f"jumps {between} where {self.problem.coordinate(worst)} passes zero {_at(w, self.problem.start)}: the "
            "objective has a kink there, as |w| has, and must be smooth. Leave that term out: few coordinates are what "
            "k is for",
        )

    def is_convex_among(self, points: Sequence[np.ndarray]) -> None:
        """The value lies below its chords."""
        for i, a in enumerate(points):
            for b in points[:i]:
                if not self._is_above_chord(a, b):
                    continue
                for coord in np.flatnonzero(a != b):
                    step = a.copy()
                    step[coord] = b[coord]
                    if self._is_above_chord(a, step):
                        self._reject_not_convex(a, step, f"along {self.problem.coordinate(int(coord))}")
                self._reject_not_convex(a, b, f"along {self.problem.coordinates(np.flatnonzero(a != b))}")

    def is_convex_along_coordinates(self) -> None:
        """The slope does not fall along some lines from the start, one coordinate each."""
        problem, usable = self.problem, np.flatnonzero(self.problem.usable)
        for unit in self.rng.choice(usable, min(LINES, len(usable)), replace=False).tolist():
            coord = int(self.rng.choice(problem.units.of([unit])))
            line = np.zeros(problem.n_coords)
            line[coord] = 1.0
            before, lowest = np.nan, -np.inf
            for length in DISTANCES * self.rng.uniform(0.7, 1.3, len(DISTANCES)):
                _, gradient = problem.at(problem.start + length * line)
                if gradient is None:
                    continue
                slope = float(gradient[coord])
                if lowest > -np.inf and falls(lowest, slope, SLOPE_TOLERANCE, ROUNDINGS_OF_CHORDS * self.eps):
                    change = f"falls from {lowest:.6g} at {before:.3g} to {slope:.6g} at {length:.3g}"
                    self._check.reject("value", f"is not convex along {problem.coordinate(coord)}: its slope {change}")
                before, lowest = length, slope

    def has_right_options_at(self, w: np.ndarray) -> None:
        """What is optional has the right shape and agrees with value and gradient."""
        problem = self.problem
        value, gradient = problem.at(w)
        assert gradient is not None
        if hasattr(problem.objective, "value_and_gradient"):
            parts = problem.value(w), problem.gradient(w, value)
            if not np.allclose(parts[0], value, rtol=OPTIONAL_TOLERANCE) or not np.allclose(
                parts[1], gradient, rtol=OPTIONAL_TOLERANCE
            ):
                self._check.reject("value_and_gradient", "gives other numbers than value and gradient do")
        if problem.curvature is not None:
            diagonal = self._array("curvature", problem.curvature(w), (problem.n_coords,))
            if np.any(diagonal < 0):
                where = problem.coordinate(int(diagonal.argmin()))
                self._check.reject(
                    "curvature", f"is {diagonal.min():.4g} in {where}; a convex function has none below 0"
                )
        if problem.gains is not None:
            self._array("gains", problem.gains(problem.start), (len(problem.units),), finite=False)
        if problem.hessian is not None:
            self._has_right_hessian_at(w, gradient)
        if problem.removal_costs is not None:
            self._has_right_costs_at(w, value)

    def _has_right_hessian_at(self, w: np.ndarray, gradient: np.ndarray) -> None:
        coords = np.flatnonzero((w != 0) | self.problem.is_free)[:8]
        assert self.problem.hessian is not None
        hessian = self._array("hessian", self.problem.hessian(w, coords), (len(coords), len(coords)))
        direction = _only(self.rng.normal(size=len(w)), coords)
        for step in STEPS:
            _, there = self.problem.at(w + step * direction)
            if there is None:
                continue
            product = (there - gradient)[coords] / step
            off = np.abs(product - hessian @ direction[coords])
            slack = OPTIONAL_TOLERANCE * np.abs(product).max() + self.eps * np.abs(gradient).max() / step
            if np.all(off <= slack):
                return
        self._check.reject(
            "hessian", f"does not agree with how the gradient changes over {self.problem.coordinates(coords)}"
        )

    def _has_right_costs_at(self, w: np.ndarray, value: float) -> None:
        problem = self.problem
        units = [u for u in np.flatnonzero(problem.usable).tolist() if np.any(w[problem.units.of([u])])]
        assert problem.removal_costs is not None
        claimed = self._array("removal_costs", problem.removal_costs(w, np.array(units)), (len(units),), finite=False)
        for unit, cost in zip(units, claimed.tolist(), strict=True):
            there = w.copy()
            there[problem.units.of([unit])] = 0.0
            true = problem.value(there) - value
            slack = OPTIONAL_TOLERANCE * abs(true) + ROUNDINGS * self.eps * abs(value)
            if not (cost == true or abs(cost - true) <= slack):
                who = problem.unit(unit)
                self._check.reject("removal_costs", f"is {cost:.6g} for {who}, where value rises by {true:.6g}")

    def _agrees(self, w: np.ndarray, gradient: np.ndarray, direction: np.ndarray) -> tuple[float, float] | None:
        """None if slope and differences along a direction agree, else both."""
        claimed = float(gradient @ direction)
        typical = float(np.linalg.norm(gradient * direction))
        closest = np.nan
        for step in STEPS:
            above, below = self.problem.value(w + step * direction), self.problem.value(w - step * direction)
            if not (above < np.inf and below < np.inf):
                continue
            found = (above - below) / (2 * step)
            size = max(abs(found), abs(claimed), typical)
            rounding = ROUNDINGS * self.eps * (abs(above) + abs(below)) / step
            # Where rounding is not far below the slope, the step is too short.
            if rounding > MOSTLY_ROUNDING * size:
                continue
            if abs(found - claimed) <= SLOPE_TOLERANCE * size + rounding:
                return None
            if not abs(closest - claimed) <= abs(found - claimed):
                closest = found
        return None if np.isnan(closest) else (claimed, closest)

    def _is_above_chord(self, a: np.ndarray, b: np.ndarray) -> bool:
        """Whether the value lies above the chord, half way."""
        ends = self.problem.value(a), self.problem.value(b)
        middle = self.problem.value(0.5 * (a + b))
        return middle > 0.5 * sum(ends) + ROUNDINGS_OF_CHORDS * self.eps * (abs(ends[0]) + abs(ends[1]))

    def _reject_not_convex(self, a: np.ndarray, b: np.ndarray, where: str) -> NoReturn:
        middle, mean = self.problem.value(0.5 * (a + b)), 0.5 * (self.problem.value(a) + self.problem.value(b))
        self._check.reject(
            "value",
            f"is not convex {where}: half way between two points it is {middle:.6g}, above their mean {mean:.6g}",
        )

    def _array(self, function: str, found: Any, shape: tuple[int, ...], *, finite: bool = True) -> np.ndarray:
        array = self._check.array(function, found, shape)
        if finite and not np.all(np.isfinite(array)):
            self._check.reject(function, "returns numbers that are not finite")
        return array


def _only(direction: np.ndarray, coords: np.ndarray) -> np.ndarray:
    kept = np.zeros_like(direction)
    kept[coords] = direction[coords]
    return kept


def _at(w: np.ndarray, start: np.ndarray) -> str:
    """Where a point is, in a few words."""
    if np.array_equal(w, start):
        return "at the start"
    coords = np.flatnonzero(w)[:4]
    shown = ", ".join(f"w[{coord}] = {w[coord]:.3g}" for coord in coords)
    return f"at {shown}{', ...' if np.count_nonzero(w) > len(coords) else ''}"


def _eps(found: Any) -> float:
    dtype = np.asarray(found).dtype
    return float(np.finfo(dtype).eps) if dtype.kind == "f" else float(np.finfo(float).eps)
