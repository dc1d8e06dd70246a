"""An objective of the user's own is tried at a few sparse points before any work: what it says must agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from pauca.custom.objective import CustomProblem, described

# So many random points are tried besides the start, each with at most so many units that differ from zero.
POINTS = 6
UNITS_EACH = 4

# Steps of central differences; a gradient is right if it agrees at one of them.
STEPS = (1e-4, 1e-3, 1e-5, 1e-2, 1e-6, 1e-1, 1e-8)

# Slopes along so many coordinates are followed over these distances from the start.
LINES = 16
ALONG = np.array([-3.0, -1.0, -0.3, 0.0, 0.3, 1.0, 3.0])

# A slope may be off by this share; optional hooks, which rank and need not be exact, by the second.
LOOSE = 1e-3
LOOSE_HOOK = 1e-2

# Roundings that a value may be off by, and what a chord is given: it is a sum of many terms. A slope that such rounding
# makes up more than this share of is not looked at.
ROUNDINGS = 20.0
ROUNDINGS_OF_CHORDS = 1000.0
DROWNED_ABOVE = 0.02

# A step across zero that no smooth function feels, in double precision and in single: its square is still a number.
NO_STEP = 1e-100
NO_STEP_IN_SINGLE = 1e-15
SINGLE_ABOVE = 1e-10

# How often a random point is brought closer to the start, by half, until it lies in the domain.
MOST_HALVINGS = 40


def inspect(problem: CustomProblem, rng: np.random.Generator) -> None:
    """Raise ``ValueError`` with a sentence if an objective cannot be what it says it is.

    Tried are shapes, the gradient against central differences of the value (all coordinates at once along a random
    direction; if that fails, the coordinate is searched for by halving), kinks where coordinates are zero, and
    convexity, at the start and at random sparse points of the domain. What is right there may still be wrong elsewhere.
    """
    trial = _Trial(problem, rng)
    trial.has_right_shapes()
    problem.check_scale()
    points = [problem.start, *(trial.point() for _ in range(POINTS))]
    trial.leaves_alone(points[-1])
    trial.says_the_same_again(points[-1])
    for w in points:
        trial.is_above_its_floor(w)
        trial.is_smooth_across_zero_at(w)
        trial.agrees_with_differences_at(w)
    trial.is_convex_among(points)
    trial.is_convex_along_coordinates()
    trial.has_right_hooks_at(points[1])


class _Trial:
    """An objective under trial; each method looks at one thing and refuses the objective if that is wrong."""

    def __init__(self, problem: CustomProblem, rng: np.random.Generator) -> None:
        self.problem = problem
        self.rng = rng
        self.eps = float(np.finfo(float).eps)

    def has_right_shapes(self) -> None:
        """Value and gradient at the start are numbers in the right shape."""
        problem, start = self.problem, self.problem.start.copy()
        value = self._call("value", start)
        if not problem.read_value(value) < np.inf:
            self._refuse("value", f"is {float(value):g} at the start; give a start where it is finite")
        gradient = self._call("gradient", start)
        problem.read_gradient(gradient, float(value))
        # Values in single precision are held to no more than they can keep.
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
            self._refuse("value", f"is not finite as soon as one leaves the start {where}; give a start inside")
        # The border of the domain is no place for differences.
        return np.asarray(problem.start + step * self.rng.uniform(0.3, 0.9))

    def leaves_alone(self, w: np.ndarray) -> None:
        """Value and gradient do not change what they are given."""
        for method in ("value", "gradient", "value_and_gradient"):
            given = w.copy()
            with np.errstate(all="ignore"):
                getattr(self.problem.objective, method, _nothing)(given)
            if not np.array_equal(given, w):
                self._refuse(method, "changes the array it is given; it must make a new one")

    def says_the_same_again(self, w: np.ndarray) -> None:
        """The value is a function of the point, and of nothing else."""
        first, again = self.problem.value(w), self.problem.value(w)
        if abs(first - again) > ROUNDINGS_OF_CHORDS * self.eps * abs(first):
            where = _at(w, self.problem.start)
            self._refuse("value", f"is {first:.6g} {where}, and then {again:.6g}; it must not depend on chance")

    def is_above_its_floor(self, w: np.ndarray) -> None:
        """The value is not below what is said to be its floor."""
        floor, value = self.problem.floor, self.problem.value(w)
        if floor is not None and value < floor - ROUNDINGS * self.eps * abs(floor):
            where = _at(w, self.problem.start)
            self._refuse("value", f"is {value:.6g} {where}, below floor={floor:g}; give a lower floor, or none")

    def agrees_with_differences_at(self, w: np.ndarray) -> None:
        """The gradient is what the value rises by."""
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
            self._refuse("gradient", f"does not agree with the differences of value {_at(w, self.problem.start)}")
        self._refuse(
            "gradient", f"is {claimed:.6g} {where}, where value rises by {found:.6g} per unit; they must agree"
        )

    def is_smooth_across_zero_at(self, w: np.ndarray) -> None:
        """The gradient does not jump where coordinates pass zero, as it does for ``|w|``.

        The search holds most coordinates at zero, so that is where a kink matters. All of them are moved to either side
        by far less than rounding: no smooth function can tell, however curved it is.
        """
        size = NO_STEP_IN_SINGLE if self.eps > SINGLE_ABOVE else NO_STEP
        step = np.where(w == 0, size * self.rng.normal(size=len(w)), 0.0)
        sides = [self.problem.at(w - step)[1], self.problem.at(w + step)[1]]
        below, above = sides
        if below is None or above is None:
            return
        jumps = np.where(w == 0, np.abs(above - below), 0.0)
        worst = int(jumps.argmax())
        rounding = ROUNDINGS_OF_CHORDS * self.eps * max(np.abs(below).max(), np.abs(above).max())
        # What is smooth and as curved as numbers can say changes by less than the root of the step.
        if jumps[worst] <= max(rounding, np.sqrt(size)):
            return
        between = f"between {below[worst]:.6g} and {above[worst]:.6g}"
        self._refuse(
            "gradient",
            f"jumps {between} where {self.problem.coordinate(worst)} passes zero {_at(w, self.problem.start)}: the "
            "objective has a kink there, as |w| has, and must be smooth. Leave that term out: few coordinates are what "
            "k is for",
        )

    def is_convex_among(self, points: Sequence[np.ndarray]) -> None:
        """The value lies below its chords."""
        for i, a in enumerate(points):
            for b in points[:i]:
                if not self._bulges(a, b):
                    continue
                for coord in np.flatnonzero(a != b):
                    step = a.copy()
                    step[coord] = b[coord]
                    if self._bulges(a, step):
                        self._refuse_bulge(a, step, f"along {self.problem.coordinate(int(coord))}")
                self._refuse_bulge(a, b, f"along {self.problem.coordinates(np.flatnonzero(a != b))}")

    def is_convex_along_coordinates(self) -> None:
        """The slope does not fall along some lines from the start, one coordinate each."""
        problem, usable = self.problem, np.flatnonzero(self.problem.usable)
        for unit in self.rng.choice(usable, min(LINES, len(usable)), replace=False).tolist():
            coord = int(self.rng.choice(problem.units.of([unit])))
            line = np.zeros(problem.n_coords)
            line[coord] = 1.0
            before, lowest = np.nan, -np.inf
            for length in ALONG * self.rng.uniform(0.7, 1.3, len(ALONG)):
                _, gradient = problem.at(problem.start + length * line)
                if gradient is None:
                    continue
                slope = float(gradient[coord])
                if slope < lowest - LOOSE * max(abs(slope), abs(lowest)) - ROUNDINGS_OF_CHORDS * self.eps:
                    falls = f"falls from {lowest:.6g} at {before:.3g} to {slope:.6g} at {length:.3g}"
                    self._refuse("value", f"is not convex along {problem.coordinate(coord)}: its slope {falls}")
                before, lowest = length, slope

    def has_right_hooks_at(self, w: np.ndarray) -> None:
        """What is optional has the right shape and agrees with value and gradient."""
        problem = self.problem
        value, gradient = problem.at(w)
        assert gradient is not None
        if hasattr(problem.objective, "value_and_gradient"):
            parts = problem.value(w), problem.gradient(w, value)
            if not np.allclose(parts[0], value, rtol=LOOSE_HOOK) or not np.allclose(
                parts[1], gradient, rtol=LOOSE_HOOK
            ):
                self._refuse("value_and_gradient", "gives other numbers than value and gradient do")
        if problem.curvature is not None:
            diagonal = self._shaped("curvature", problem.curvature(w), (problem.n_coords,))
            if np.any(diagonal < 0):
                where = problem.coordinate(int(diagonal.argmin()))
                self._refuse("curvature", f"is {diagonal.min():.4g} in {where}; a convex function has none below 0")
        if problem.gains is not None:
            self._shaped("gains", problem.gains(problem.start), (len(problem.units),), finite=False)
        if problem.hessian is not None:
            self._has_right_hessian_at(w, gradient)
        if problem.removal_costs is not None:
            self._has_right_costs_at(w, value)

    def _has_right_hessian_at(self, w: np.ndarray, gradient: np.ndarray) -> None:
        coords = np.flatnonzero((w != 0) | self.problem.is_free)[:8]
        assert self.problem.hessian is not None
        hessian = self._shaped("hessian", self.problem.hessian(w, coords), (len(coords), len(coords)))
        direction = _only(self.rng.normal(size=len(w)), coords)
        for step in STEPS:
            _, there = self.problem.at(w + step * direction)
            if there is None:
                continue
            bent = (there - gradient)[coords] / step
            off = np.abs(bent - hessian @ direction[coords])
            slack = LOOSE_HOOK * np.abs(bent).max() + self.eps * np.abs(gradient).max() / step
            if np.all(off <= slack):
                return
        self._refuse("hessian", f"does not agree with how the gradient changes over {self.problem.coordinates(coords)}")

    def _has_right_costs_at(self, w: np.ndarray, value: float) -> None:
        problem = self.problem
        units = [u for u in np.flatnonzero(problem.usable).tolist() if np.any(w[problem.units.of([u])])]
        assert problem.removal_costs is not None
        said = self._shaped("removal_costs", problem.removal_costs(w, np.array(units)), (len(units),), finite=False)
        for unit, cost in zip(units, said.tolist(), strict=True):
            there = w.copy()
            there[problem.units.of([unit])] = 0.0
            true = problem.value(there) - value
            slack = LOOSE_HOOK * abs(true) + ROUNDINGS * self.eps * abs(value)
            if not (cost == true or abs(cost - true) <= slack):
                who = problem.unit(unit)
                self._refuse("removal_costs", f"is {cost:.6g} for {who}, where value rises by {true:.6g}")

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
            # Where rounding is not far below the slope, the step says nothing.
            if rounding > DROWNED_ABOVE * size:
                continue
            if abs(found - claimed) <= LOOSE * size + rounding:
                return None
            if not abs(closest - claimed) <= abs(found - claimed):
                closest = found
        return None if np.isnan(closest) else (claimed, closest)

    def _bulges(self, a: np.ndarray, b: np.ndarray) -> bool:
        """Whether the value lies above the chord, half way."""
        ends = self.problem.value(a), self.problem.value(b)
        middle = self.problem.value(0.5 * (a + b))
        return middle > 0.5 * sum(ends) + ROUNDINGS_OF_CHORDS * self.eps * (abs(ends[0]) + abs(ends[1]))

    def _refuse_bulge(self, a: np.ndarray, b: np.ndarray, where: str) -> NoReturn:
        middle, mean = self.problem.value(0.5 * (a + b)), 0.5 * (self.problem.value(a) + self.problem.value(b))
        self._refuse(
            "value",
            f"is not convex {where}: half way between two points it is {middle:.6g}, above their mean {mean:.6g}",
        )

    def _shaped(self, hook: str, found: Any, shape: tuple[int, ...], *, finite: bool = True) -> np.ndarray:
        if np.shape(found) != shape:
            self._refuse(hook, f"returns {described(found)}, not an array of shape {shape}")
        array = np.asarray(found, dtype=np.float64)
        if finite and not np.all(np.isfinite(array)):
            self._refuse(hook, "returns numbers that are not finite")
        return array

    def _call(self, method: str, w: np.ndarray) -> Any:
        try:
            with np.errstate(all="ignore"):
                return getattr(self.problem.objective, method)(w)
        except Exception as error:
            raise ValueError(f"{self.problem.called(method)} fails at the start: {error}") from error

    def _refuse(self, method: str, what: str) -> NoReturn:
        raise ValueError(f"{self.problem.called(method)} {what}.")


def _only(direction: np.ndarray, coords: np.ndarray) -> np.ndarray:
    kept = np.zeros_like(direction)
    kept[coords] = direction[coords]
    return kept


def _at(w: np.ndarray, start: np.ndarray) -> str:
    """Where a point is, in a few words."""
    if np.array_equal(w, start):
        return "at the start"
    places = np.flatnonzero(w)[:4]
    shown = ", ".join(f"w[{place}] = {w[place]:.3g}" for place in places)
    return f"at {shown}{', ...' if np.count_nonzero(w) > len(places) else ''}"


def _nothing(w: np.ndarray) -> None:
    """What a function that is not there does to the array it is given."""


def _eps(found: Any) -> float:
    dtype = np.asarray(found).dtype
    return float(np.finfo(dtype).eps) if dtype.kind == "f" else float(np.finfo(float).eps)
