"""Any smooth convex function of a parameter vector as an objective, with defaults for all that is optional."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from pauca.checks import users_function
from pauca.clock import check_time
from pauca.constraints.units import Units
from pauca.derivative_check import NUMBERS, described

HOOKS = ("value_and_gradient", "curvature", "gains", "removal_costs", "refit", "hessian")
"""What an objective may offer beyond its value and gradient."""

NAMES_SHOWN = 5

# Steps of differences of gradients, as a share of the parameters.
DIFFERENCE = 1e-5

# Fourth powers of slopes turn up.
LARGEST_SLOPE = 1e70


class Objective(Protocol):
    """A smooth convex function Q of a parameter vector ``w`` of shape (n_coords,).

    ``value`` and ``gradient`` must be there; both must leave ``w`` as it is. A value of infinity, or one that is not a
    number, means that ``w`` lies outside of Q's domain. All else is optional and is found by name.

    Attributes
    ----------
    n_coords : int
        Length of the parameter vector.
    free : array of int, optional
        Coordinates that are always in and never counted, such as an intercept. Default: none.
    groups : array of shape (n_coords,), optional
        Labels; coordinates of one label are chosen together. Labels of free coordinates are ignored. Default:
        every coordinate is chosen on its own.
    start : array of shape (n_coords,), optional
        Where the search for the empty model begins; zero outside of ``free``. Default: zeros.
    floor : float, optional
        A value that Q is never below, such as 0 for a loss. With it the path has the share of Q that is explained, and
        a search ends where nothing is left. Default: nothing is known.
    names : list of str, optional
        Names of the coordinates. Default: numbers.
    costly : bool, optional
        Whether values take so long that as few as possible should be computed. Models of the search then leave up to a
        few per cent of the step that led to them to be gained, the last step towards those that are returned predicts
        a millionth of their value, and importances are estimates. Default: False.

    A **unit** is what is chosen: a coordinate, numbered as in ``w`` (free ones have a number, and are never chosen), or
    a group, numbered in the order of the sorted labels of the coordinates that are not free. So there are ``n_coords``
    units, or as many as labels.

    Optional methods
    ----------------
    value_and_gradient(w) -> (float, ndarray)
        Both at once, where they share work.
    curvature(w) -> ndarray of shape (n_coords,)
        The diagonal of the Hessian, or an estimate. It ranks candidates and scales the first steps of refits.
    gains(w) -> ndarray of shape (n_units,)
        By how much Q falls at most if one unit alone moves. Only entries of units that are not chosen are used.
    removal_costs(w, units) -> ndarray of shape (len(units),)
        By how much Q rises if the coordinates of one unit are set to zero and all others stay.
    refit(coords, start, tol) -> ndarray of shape (n_coords,)
        The minimiser over some coordinates (free and chosen), all others being zero, from a start at which Q is
        finite. It may end where no more than ``tol`` of the value is left to gain.
    hessian(w, coords) -> ndarray of shape (q, q)
        Second derivatives in some coordinates: refits then take Newton's steps.
    """

    n_coords: int

    def value(self, w: np.ndarray) -> float:
        """``Q(w)``."""
        ...

    def gradient(self, w: np.ndarray) -> np.ndarray:
        """Its gradient, shape (n_coords,)."""
        ...


class CustomProblem:
    """An objective with all that is optional filled in or known to be missing.

    What its functions return is checked each time, and gradients are copied: a function may return the same array at
    every call, changed. ``curvature``, ``gains``, ``removal_costs``, ``refit`` and ``hessian`` are the objective's own,
    or None.
    """

    def __init__(
        self,
        objective: Objective,
        *,
        free: Any = None,
        groups: Any = None,
        start: Any = None,
        floor: float | None = None,
        curvature: Callable[[np.ndarray], np.ndarray] | None = None,
        names: np.ndarray | None = None,
    ) -> None:
        self.objective = objective
        self.names = names
        self.n_coords = int(objective.n_coords)
        self.free = np.unique(np.asarray(_option(objective, "free", free, ()), dtype=np.intp))
        self.start = np.zeros(self.n_coords)
        self.start[:] = _option(objective, "start", start, 0.0)
        self.floor: float | None = _option(objective, "floor", floor, None)
        self.costly = bool(getattr(objective, "costly", False))
        self.is_free = np.zeros(self.n_coords, dtype=bool)
        self.is_free[self.free] = True
        self.units, self.usable = _units(_option(objective, "groups", groups, None), self.is_free)
        self.curvature = _quiet(curvature or getattr(objective, "curvature", None))
        self.gains = _quiet(getattr(objective, "gains", None))
        self.removal_costs = _quiet(getattr(objective, "removal_costs", None))
        self.refit = _quiet(getattr(objective, "refit", None))
        self.hessian = _quiet(getattr(objective, "hessian", None))
        self._both = getattr(objective, "value_and_gradient", None)
        self._functions: dict[str, Any] = {"curvature": curvature} if curvature is not None else {}
        if isinstance(objective, FunctionObjective):
            self._functions |= {"value": objective.value, "gradient": objective.gradient}

    def coords(self, units: Iterable[int]) -> np.ndarray:
        """The coordinates that a model of some units may move: the free ones, then those of the units."""
        return np.concatenate([self.free, self.units.of(units)])

    def totals(self, per_coord: np.ndarray) -> np.ndarray:
        """Sums over the coordinates of every unit, shape (n_units,)."""
        if self.units.single:
            return per_coord
        return np.bincount(self.units.owner, weights=per_coord, minlength=len(self.units) + 1)[: len(self.units)]

    def value(self, w: np.ndarray) -> float:
        """``Q(w)``; infinite outside of its domain."""
        check_time()
        with users_function():
            return self.read_value(self.objective.value(w))

    def at(self, w: np.ndarray) -> tuple[float, np.ndarray | None]:
        """Value and gradient; no gradient outside of the domain."""
        if self._both is None:
            value = self.value(w)
            return value, self.gradient(w, value) if value < np.inf else None
        check_time()
        with users_function():
            found = self._both(w)
        if not isinstance(found, tuple | list) or len(found) != 2:
            method = "value_and_gradient"
            raise ValueError(f"{self.called(method)} returns {described(found)}, not a value and a gradient.")
        value = self.read_value(found[0], "value_and_gradient")
        return value, self.read_gradient(found[1], value, "value_and_gradient") if value < np.inf else None

    def gradient(self, w: np.ndarray, value: float) -> np.ndarray:
        """The gradient at a point whose value is known to be finite."""
        with users_function():
            return self.read_gradient(self.objective.gradient(w), value)

    def read_value(self, found: Any, method: str = "value") -> float:
        """What a function has returned as a value: a number, or infinity for what is not finite."""
        if np.shape(found) != () or np.asarray(found).dtype.kind not in NUMBERS:
            raise ValueError(f"{self.called(method)} returns {described(found)}, not a number.")
        value = float(found)
        return value if np.isfinite(value) else np.inf

    def read_gradient(self, found: Any, value: float, method: str = "gradient") -> np.ndarray:
        """What a function has returned as the gradient where the value is finite; a new array."""
        if np.shape(found) != (self.n_coords,) or np.asarray(found).dtype.kind not in NUMBERS:
            expected = f"not an array of shape ({self.n_coords},), a number for each coordinate"
            raise ValueError(f"{self.called(method)} returns {described(found)}, {expected}.")
        gradient = np.array(found, dtype=np.float64)
        if not np.isfinite(gradient).all():
            bad = int(np.flatnonzero(~np.isfinite(gradient))[0])
            raise ValueError(
                f"{self.called(method)} is {gradient[bad]:g} in {self.coordinate(bad)} at a point where the value is "
                f"{value:g}; where a value is finite, the gradient must be."
            )
        return gradient

    def called(self, method: str) -> str:
        """What to call one of the functions in a message: ``Cox.gradient``, or its own name if it was given."""
        if method not in self._functions:
            return f"{self.name}.{method}"
        own = function_name(self._functions[method])
        if own is None:
            return f"The {method}"
        return own if own == method else f"{own} (the {method})"

    def coordinate(self, coord: int) -> str:
        """What to call a coordinate: by its number, and by its name if it has one."""
        return called(coord, self.names)

    def unit(self, unit: int) -> str:
        """What to call a unit."""
        labels = self.units.labels
        return self.coordinate(unit) if labels is None else f"group {str(labels[unit])!r}"

    def coordinates(self, coords: np.ndarray) -> str:
        """What to call several coordinates, of which the first few are named."""
        if len(coords) == 1:
            return self.coordinate(int(coords[0]))
        shown = coords[:NAMES_SHOWN].tolist()
        more = ", ..." if len(coords) > len(shown) else ""
        names = "" if self.names is None else f" ({', '.join(repr(str(self.names[j])) for j in shown)}{more})"
        return f"coordinates {', '.join(map(str, shown))}{more}{names}"

    def hessian_product(self, w: np.ndarray, gradient: np.ndarray, direction: np.ndarray) -> np.ndarray | None:
        """The Hessian times a direction, by a difference of gradients; None if the domain ends at once."""
        size = float(np.abs(direction).max(initial=0.0))
        if not size > 0:
            return None
        length = DIFFERENCE * (1.0 + float(np.abs(w).max(initial=0.0))) / size
        for _ in range(4):
            _, there = self.at(w + length * direction)
            if there is not None:
                return np.asarray((there - gradient) / length)
            length *= 1e-2
        return None

    def check_scale(self) -> None:
        """Refuse slopes at the start whose powers no float holds."""
        _, gradient = self.at(self.start)
        steepest = 0.0 if gradient is None else float(np.abs(gradient).max(initial=0.0))
        if steepest and not 1.0 / LARGEST_SLOPE < steepest < LARGEST_SLOPE:
            coord = int(np.argmax(np.abs(gradient)))  # type: ignore[arg-type]
            raise ValueError(
                f"{self.called('gradient')} has entries of at most {steepest:.0e} at the start, in "
                f"{self.coordinate(coord)}: powers of such numbers are lost. Divide the objective by {steepest:.0e}."
            )

    @cached_property
    def magnitude(self) -> float:
        """The size of the numbers that a value is made of, as far as the start shows; rounding is relative to it.

        That is the value there, or what a step along the gradient would gain if that is more.
        """
        value, gradient = self.at(self.start)
        product = None if gradient is None else self.hessian_product(self.start, gradient, gradient)
        if gradient is None or product is None:
            return abs(value)
        curved, squares = float(gradient @ product), float(gradient @ gradient)
        return max(abs(value), 0.5 * squares**2 / curved if curved > 0 else 0.0)

    @cached_property
    def name(self) -> str:
        """What to call the objective."""
        return str(getattr(self.objective, "name", type(self.objective).__name__))


class FunctionObjective:
    """Two functions as an objective."""

    def __init__(
        self, value: Callable[[np.ndarray], float], gradient: Callable[[np.ndarray], np.ndarray], n_coords: int
    ) -> None:
        self.n_coords = n_coords
        self.value = value
        self.gradient = gradient
        self.name = function_name(value) or "The objective"


def _option(objective: Objective, name: str, given: Any, otherwise: Any) -> Any:
    """The argument of the call, else the attribute of the objective, else a default."""
    if given is not None:
        return given
    found = getattr(objective, name, None)
    return otherwise if found is None else found


def _quiet(hook: Any) -> Any:
    """A function that may overflow far out without NumPy's warnings, as value and gradient may."""
    return None if hook is None else users_function()(hook)


def called(coord: int, names: np.ndarray | None) -> str:
    """What to call a coordinate: by its number, and by its name if it has one."""
    return f"coordinate {coord}" if names is None else f"coordinate {coord} ({str(names[coord])!r})"


def function_name(function: Any) -> str | None:
    """The name a function was defined by; None if it has none."""
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) and name.isidentifier() else None


def _units(labels: Any, is_free: np.ndarray) -> tuple[Units, np.ndarray]:
    """The units, and which of them may be chosen at all. Free coordinates of grouped ones have no owner."""
    if labels is None:
        return Units.columns(len(is_free)), ~is_free
    chosen_from = np.flatnonzero(~is_free)
    groups = Units.groups(np.asarray(labels)[chosen_from])
    members = tuple(chosen_from[columns] for columns in groups.members)
    owner = np.full(len(is_free), len(members), dtype=np.intp)
    owner[chosen_from] = groups.owner
    return Units(members, groups.labels, owner), np.ones(len(members), dtype=bool)
