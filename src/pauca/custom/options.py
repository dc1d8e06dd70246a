"""What a call of ``select`` asks for, checked before any work."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from pauca.constraints.limits import Limits
from pauca.custom.objective import HOOKS, NAMES_SHOWN, CustomProblem, FunctionObjective, Objective, called


def posed(objective: Any, gradient: Any, n_coords: Any) -> Objective:
    """An object that is an objective, from itself or from two functions."""
    if gradient is None and n_coords is None:
        if isinstance(objective, type):
            raise TypeError(f"objective is the class {objective.__name__}; make an object of it first.")
        missing = [name for name in ("n_coords", "value", "gradient") if getattr(objective, name, None) is None]
        if missing:
            raise TypeError(
                f"objective must have n_coords, value(w) and gradient(w); {type(objective).__name__} has no "
                f"{' and no '.join(missing)}. A function goes with gradient= and n_coords=."
            )
        _check_count("objective.n_coords", objective.n_coords)
        for name in ("value", "gradient", *HOOKS):
            check_callable(f"objective.{name}", getattr(objective, name, None))
        return objective
    if not callable(objective) or not callable(gradient) or n_coords is None:
        raise TypeError("Two functions are given as select(value, gradient=..., n_coords=...): all three are needed.")
    return FunctionObjective(objective, gradient, _check_count("n_coords", n_coords))


def check_number(name: str, value: Any, *, positive: bool = False) -> float:
    """A finite number that is not negative, or positive if asked."""
    wanted = f"a finite number {'above 0' if positive else 'of at least 0'}"
    if not _is_number(value):
        raise TypeError(f"{name} must be {wanted}; got {value!r}.")
    if not math.isfinite(value) or value < 0 or (positive and value == 0):
        raise ValueError(f"{name} must be {wanted}; got {value!r}.")
    return float(value)


def check_flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False; got {value!r}.")
    return bool(value)


def check_generator(random_state: Any) -> np.random.Generator:
    """Where random points come from."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        wanted = "an integer of at least 0, a Generator or None"
        raise TypeError(f"random_state must be {wanted}; got {random_state!r}.") from None


def check_callable(name: str, value: Any) -> None:
    """A function, or None."""
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be a function or None; got {value!r}.")


class Said:
    """Free coordinates, groups, a start, a floor and names, as arrays that fit the objective.

    What is given in the call goes before what the objective says.
    """

    def __init__(self, objective: Objective, **given: Any) -> None:
        self._objective = objective
        self.n_coords = int(objective.n_coords)
        self._given = given
        self.names = self._names()
        self.free = self._free()
        self.groups = self._groups()
        self.start = self._start()
        self.floor = self._floor()

    def _said(self, name: str) -> Any:
        given = self._given.get(name)
        return getattr(self._objective, name, None) if given is None else given

    def _names(self) -> np.ndarray | None:
        names = self._said("names")
        if names is None:
            return None
        found = [str(name) for name in self.listed("names", names)]
        if len(found) != self.n_coords:
            raise ValueError(f"names must hold a name for each of the {self.n_coords} coordinates; got {len(found)}.")
        twice = {name for name in found if found.count(name) > 1} if len(set(found)) < len(found) else set()
        if twice:
            raise ValueError(f"names holds {min(twice)!r} more than once.")
        return np.array(found, dtype=object)

    def coordinate(self, wish: str, one: Any) -> int:
        """A coordinate by its index or name."""
        if isinstance(one, str):
            if self.names is None or one not in self.names:
                raise ValueError(f"{wish} names the coordinate {one!r}, which is not among the names.")
            return int(np.flatnonzero(self.names == one)[0])
        if isinstance(one, bool | np.bool_) or not isinstance(one, numbers.Integral):
            raise TypeError(f"{wish} must name coordinates by index or name; got {one!r}.")
        if not 0 <= int(one) < self.n_coords:
            raise ValueError(f"{wish} names coordinate {one}; there are coordinates 0 to {self.n_coords - 1}.")
        return int(one)

    def listed(self, wish: str, wanted: Any) -> list[Any]:
        """What a wish lists, as a list."""
        if isinstance(wanted, np.ndarray) and wanted.ndim:
            return list(wanted.tolist())
        if isinstance(wanted, str | Mapping | np.ndarray) or not isinstance(wanted, Iterable):
            raise TypeError(f"{wish} must be a list; got {wanted!r}.")
        return list(wanted)

    def _free(self) -> np.ndarray:
        free = self._said("free")
        if free is None:
            return np.zeros(0, dtype=np.intp)
        found = sorted({self.coordinate("free", one) for one in self.listed("free", free)})
        if len(found) == self.n_coords:
            raise ValueError("free holds all coordinates: there is nothing to choose from.")
        return np.array(found, dtype=np.intp)

    def _groups(self) -> np.ndarray | None:
        groups = self._said("groups")
        if groups is None:
            return None
        given = self.listed("groups", groups)
        labels = np.asarray(given) if all(np.shape(label) == () for label in given) else np.zeros((0, 0))
        if labels.shape != (self.n_coords,):
            raise ValueError(
                f"groups must hold a label for each of the {self.n_coords} coordinates (those of free ones are "
                f"ignored); got {len(given)}{' lists' if labels.ndim > 1 else ''}."
            )
        for coord, label in enumerate(given):
            if coord not in self.free and (label is None or (isinstance(label, float) and math.isnan(label))):
                raise ValueError(f"groups holds no label for {self._called(coord)}; it holds {label!r}.")
        return labels if labels.dtype != object else np.array([str(label) for label in labels])

    def _start(self) -> np.ndarray | None:
        start = self._said("start")
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
        floor = self._said("floor")
        if floor is None:
            return None
        if not _is_number(floor) or not math.isfinite(floor):
            raise TypeError(f"floor must be a finite number or None; got {floor!r}.")
        return float(floor)


def limits(said: Said, problem: CustomProblem, k: int | None, **wishes: Any) -> Limits:
    """Limits on the choice of units, from always, never, costs and budget."""
    units = {wish: _wanted(said, problem, wish, wishes[wish]) for wish in ("always", "never")}
    both = sorted(set(units["always"]) & set(units["never"]))
    if both:
        raise ValueError(f"always and never overlap: {_named(problem, both)} cannot be both.")
    if k is not None and len(units["always"]) > k:
        raise ValueError(f"always holds {len(units['always'])} {_noun(problem)}, more than k={k}.")
    price = _price(said, problem, wishes["costs"])
    budget = wishes["budget"]
    if budget is not None:
        budget = check_number("budget", budget)
        if price is None:
            raise ValueError("budget needs costs, which says what everything costs.")
        if not Limits(price=price, budget=budget).allows(units["always"]):
            raise ValueError(
                f"always alone costs {price[units['always']].sum():g}, more than the budget of {budget:g}."
            )
        _check_cheapest(problem, price, budget, units["never"])
    return Limits(tuple(units["always"]), tuple(units["never"]), price, budget)


def _check_cheapest(problem: CustomProblem, price: np.ndarray, budget: float, never: list[int]) -> None:
    left = np.setdiff1d(np.flatnonzero(problem.usable), never)
    if len(left) and not Limits(price=price, budget=budget).allows([int(left[price[left].argmin()])]):
        cheapest = f"the cheapest of the {_noun(problem)}, which costs {price[left].min():g}"
        raise ValueError(f"The budget of {budget:g} is below {cheapest}.")


def check_size(k: Any) -> int | None:
    """A number of units to choose, or None for as many as help. As everywhere, it may be more than there are."""
    if k is None:
        return None
    if isinstance(k, Iterable):
        raise TypeError(f"k must be an integer of at least 1, or None; got {k!r}. The path holds all sizes up to k.")
    return _check_count("k", k)


def _wanted(said: Said, problem: CustomProblem, wish: str, wanted: Any) -> list[int]:
    """Units of the coordinates, or labels of groups, that a wish names; ascending."""
    if wanted is None:
        return []
    found = set()
    labels = problem.units.labels
    for one in said.listed(wish, wanted):
        if labels is None:
            unit = said.coordinate(wish, one)
            if problem.is_free[unit]:
                raise ValueError(
                    f"{wish} names {problem.coordinate(unit)}, which is free: always in and never counted."
                )
            found.add(unit)
        else:
            same = np.flatnonzero(np.asarray(labels == one))
            if not len(same):
                raise ValueError(f"{wish} names {one!r}, which is no group.")
            found.add(int(same[0]))
    return sorted(found)


def _price(said: Said, problem: CustomProblem, costs: Any) -> np.ndarray | None:
    if costs is None:
        return None
    if isinstance(costs, Mapping):
        costs = _by_unit(said, problem, costs)
    values = said.listed("costs", costs)
    if len(values) != len(problem.units):
        raise ValueError(
            f"costs must hold a number for each of the {len(problem.units)} {_noun(problem)}; got {len(values)}."
        )
    bad = [unit for unit, value in enumerate(values) if not (_is_number(value) and 0 <= value < math.inf)]
    if bad:
        raise ValueError(
            f"costs must be finite and not negative; that of {problem.unit(bad[0])} is {values[bad[0]]!r}."
        )
    return np.array(values, dtype=np.float64)


def _by_unit(said: Said, problem: CustomProblem, costs: Mapping[Any, Any]) -> list[Any]:
    """Prices from a dict: of all groups by label, or of all coordinates by index or name; free ones may be left out."""
    labels = problem.units.labels
    if labels is None:
        found = {said.coordinate("costs", one): price for one, price in costs.items()}
        needed = np.flatnonzero(~problem.is_free).tolist()
    else:
        known = {label: unit for unit, label in enumerate(labels.tolist())}
        stranger = next((one for one in costs if one not in known), None)
        if stranger is not None:
            raise ValueError(f"costs names {stranger!r}, which is no group.")
        found = {known[one]: price for one, price in costs.items()}
        needed = list(range(len(labels)))
    missing = [unit for unit in needed if unit not in found]
    if missing:
        raise ValueError(f"costs must hold a price for all {_noun(problem)}; missing: {_named(problem, missing)}.")
    return [found.get(unit, 0.0) for unit in range(len(problem.units))]


def _noun(problem: CustomProblem) -> str:
    return "coordinates" if problem.units.single else "groups"


def _named(problem: CustomProblem, units: list[int]) -> str:
    """The first few of some units."""
    more = ", ..." if len(units) > NAMES_SHOWN else ""
    return ", ".join(problem.unit(unit) for unit in units[:NAMES_SHOWN]) + more


def _check_count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer of at least 1; got {value!r}.")
    if value < 1:
        raise ValueError(f"{name} must be an integer of at least 1; got {value!r}.")
    return int(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
