"""Options of ``select``, checked before any value is computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pauca.checks import ParameterChecks
from pauca.constraints.limits import Limits
from pauca.constraints.parsing import Columns, ConstraintParser, is_number, parse_groups
from pauca.custom.objective import HOOKS, CustomProblem, FunctionObjective, Objective, called
from pauca.wording import NAMES_SHOWN

CHECK = ParameterChecks("select")


def as_objective(objective: Any, gradient: Any, n_coords: Any) -> Objective:
    """An objective, from an object that is one or from two functions."""
    if gradient is None and n_coords is None:
        if isinstance(objective, type):
            raise TypeError(f"objective is the class {objective.__name__}; make an object of it first.")
        missing = [name for name in ("n_coords", "value", "gradient") if getattr(objective, name, None) is None]
        if missing:
            raise TypeError(
                f"objective must have n_coords, value(w) and gradient(w); {type(objective).__name__} has no "
                f"{' and no '.join(missing)}. A function goes with gradient= and n_coords=."
            )
        CHECK.count("objective.n_coords", objective.n_coords)
        for name in ("value", "gradient", *HOOKS):
            CHECK.optional_callable(f"objective.{name}", getattr(objective, name, None))
        return objective
    if not callable(objective) or not callable(gradient) or n_coords is None:
        raise TypeError("Two functions are given as select(value, gradient=..., n_coords=...): all three are needed.")
    return FunctionObjective(objective, gradient, CHECK.count("n_coords", n_coords))


def check_generator(random_state: Any) -> np.random.Generator:
    """Where random points come from."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        allowed = "an int in the range [0, inf), a Generator or None"
        raise TypeError(CHECK.message("random_state", allowed, random_state)) from None


class Coordinates(Columns):
    """The coordinates of an objective, looked up by name or index."""

    noun = "coordinate"
    table = "the objective"
    listing = "coordinate names or indices"

    def quoted(self, coords: Sequence[int] | np.ndarray) -> str:
        """The first few of some coordinates, each with its number and its name, if it has one."""
        shown = ", ".join(called(int(coord), self.names) for coord in coords[:NAMES_SHOWN])
        return f"{shown} and {len(coords) - NAMES_SHOWN} more" if len(coords) > NAMES_SHOWN else shown


class ObjectiveOptions:
    """Free coordinates, groups, a start, a floor and names, as arrays that fit the objective.

    Arguments of the call override attributes of the objective.
    """

    def __init__(self, objective: Objective, **given: Any) -> None:
        self._objective = objective
        self.n_coords = int(objective.n_coords)
        self._given = given
        self.names = self._names()
        self.coordinates = Coordinates(self.n_coords, self.names)
        self.free = self._free()
        self.groups = self._groups()
        self.start = self._start()
        self.floor = self._floor()

    def problem(self, curvature: Callable[[np.ndarray], np.ndarray] | None) -> CustomProblem:
        """The objective with these options."""
        return CustomProblem(
            self._objective,
            free=self.free,
            groups=self.groups,
            start=self.start,
            floor=self.floor,
            curvature=curvature,
            names=self.names,
        )

    def _option(self, name: str) -> Any:
        given = self._given.get(name)
        return getattr(self._objective, name, None) if given is None else given

    def _names(self) -> np.ndarray | None:
        names = self._option("names")
        if names is None:
            return None
        found = [str(name) for name in self._as_list("names", names)]
        if len(found) != self.n_coords:
            raise ValueError(f"names must hold a name for each of the {self.n_coords} coordinates; got {len(found)}.")
        twice = {name for name in found if found.count(name) > 1} if len(set(found)) < len(found) else set()
        if twice:
            raise ValueError(f"names holds {min(twice)!r} more than once.")
        return np.array(found, dtype=object)

    def _as_list(self, name: str, value: Any) -> list[Any]:
        """An option that must be a list, array or other iterable, as a list."""
        if isinstance(value, np.ndarray) and value.ndim:
            return list(value.tolist())
        if isinstance(value, str | Mapping | np.ndarray) or not isinstance(value, Iterable):
            raise TypeError(f"{name} must be a list; got {value!r}.")
        return list(value)

    def _free(self) -> np.ndarray:
        free = self._option("free")
        if free is None:
            return np.zeros(0, dtype=np.intp)
        found = sorted({self.coordinates.index(one, "free") for one in self._as_list("free", free)})
        if len(found) == self.n_coords:
            raise ValueError("free holds all coordinates: there is nothing to choose from.")
        return np.array(found, dtype=np.intp)

    def _groups(self) -> np.ndarray | None:
        groups = self._option("groups")
        if groups is None:
            return None
        free = np.isin(np.arange(self.n_coords), self.free)
        return parse_groups(groups, self.coordinates, "groups", free)

    def _start(self) -> np.ndarray | None:
        start = self._option("start")
        if start is None:
            return None
        try:
            found = np.asarray(start, dtype=np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"start must be an array of {self.n_coords} numbers; got {start!r}.") from None
        if found.shape != (self.n_coords,):
            raise ValueError(f"start must have shape ({self.n_coords},); got {found.shape}.")
        off = np.flatnonzero(~np.isin(np.arange(self.n_coords), self.free) & (found != 0))
        if not np.all(np.isfinite(found)):
            raise ValueError(f"start is not finite in {self._called(int(np.flatnonzero(~np.isfinite(found))[0]))}.")
        if len(off):
            raise ValueError(
                f"start must be zero outside of the free coordinates: the empty model has none. It is "
                f"{found[off[0]]:g} in {self._called(int(off[0]))}."
            )
        return found

    def _called(self, coord: int) -> str:
        return called(coord, self.names)

    def _floor(self) -> float | None:
        floor = self._option("floor")
        if floor is None:
            return None
        if not is_number(floor) or not math.isfinite(floor):
            raise TypeError(f"floor must be a finite number or None; got {floor!r}.")
        return float(floor)


def parse_limits(options: ObjectiveOptions, problem: CustomProblem, k: int | None, **constraints: Any) -> Limits:
    """Limits on the choice of units, from always, never, costs and budget."""
    parser = ConstraintParser(options.coordinates, units=problem.units, free=problem.is_free, **constraints)
    return parser.limits(k, ~problem.is_free)


def check_size(k: Any) -> int | None:
    """A number of units to choose, or None for as many as help; it may be more than there are."""
    if k is None:
        return None
    if isinstance(k, Iterable):
        message = CHECK.message("k", "an int in the range [1, inf) or None", k)
        raise TypeError(f"{message} The path holds all sizes up to k.")
    return CHECK.count("k", k, "or None")
