"""Constraints as users write them: feature groups, always, never, costs, budget and bounds, checked and made arrays."""

from __future__ import annotations

import numbers
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pauca.constraints.heredity import Heredity, check_cycles, parents_from_names
from pauca.constraints.limits import Limits
from pauca.constraints.units import Units
from pauca.design import Design
from pauca.tolerances import DEPENDENT_BELOW
from pauca.wording import closest_name, column_names, plain, quoted_columns


@dataclass(frozen=True, eq=False)
class Spread:
    """The columns of numbers that the columns of a raw table became."""

    owner: np.ndarray
    """The raw column of every column of numbers, ascending."""
    names: Sequence[str]
    """Names of the columns of numbers."""


DEFAULT_COST = 1.0
"""The price of what a dict of costs does not name; the key None sets another."""


class Columns:
    """The columns of X, looked up by name or index; an unknown one raises an error that names the parameter.

    The columns of a raw table are looked up as they are called there; ``spread`` says what they became. Subclasses look
    up other things that can be chosen: coordinates of an objective, edges of a graph.
    """

    noun = "column"
    table = "X"
    listing = "column names or indices"

    def __init__(self, n_features: int, names: Any, spread: Spread | None = None) -> None:
        self.n_features = n_features
        self.names = names
        self.spread = spread
        self._index = {} if names is None else {str(name): j for j, name in enumerate(names)}

    def has(self, name: object) -> bool:
        """Whether there is a column of this name."""
        return isinstance(name, str) and name in self._index

    def covered_by(self, keys: Collection[Any]) -> bool:
        """Whether keys name every column once, all by name or all by index, and nothing else."""
        return set(keys) in (set(self._index), set(range(self.n_features)))

    def index(self, column: Any, parameter: str) -> int:
        """Index of a column given by name or index."""
        if isinstance(column, str):
            return self._index_of_name(column, parameter)
        if isinstance(column, bool | np.bool_) or not isinstance(column, numbers.Integral):
            raise TypeError(f"{parameter!r} must name {self.noun}s by name or index; got {plain(column)!r}.")
        if not 0 <= int(column) < self.n_features:
            raise ValueError(
                f"{parameter!r} names {self.noun} {column}; {self.table} has {self.noun}s 0 to {self.n_features - 1}."
            )
        return int(column)

    def by_index(self, values: Mapping[Any, Any], parameter: str) -> dict[int, Any]:
        """The values of a dict by index of their column; no column may be named twice."""
        found: dict[int, Any] = {}
        for column, value in values.items():
            j = self.index(column, parameter)
            if j in found:
                raise ValueError(f"{parameter!r} names the {self.noun} {self.quoted([j])} twice, by name and by index.")
            found[j] = value
        return found

    def numbers_of(self, column: Any, parameter: str) -> list[int]:
        """The columns of numbers of a column of a raw table, or the one of a level; elsewhere the column itself."""
        if self.spread is None:
            return [self.index(column, parameter)]
        if column in self.spread.names and not self.has(column):
            return [list(self.spread.names).index(column)]
        return np.flatnonzero(self.spread.owner == self.index(column, parameter)).tolist()

    def quoted(self, columns: Sequence[int] | np.ndarray) -> str:
        """Names of the first few of some columns."""
        return quoted_columns(self.names, columns)

    def _index_of_name(self, name: str, parameter: str) -> int:
        if name in self._index:
            return self._index[name]
        if self.spread is not None and name in self.spread.names:
            return int(self.spread.owner[list(self.spread.names).index(name)])
        named = f"{parameter!r} names the {self.noun} {name!r}"
        if self.names is None:
            raise ValueError(f"{named}, but {self.table} has no {self.noun} names; give its index.")
        near = closest_name(name, self._index)
        hint = f" Did you mean {near!r}?" if near else ""
        raise ValueError(f"{named}, which {self.table} does not have.{hint}")


class ConstraintParser:
    """Constraints on the choice, read as arrays over the columns there are; invalid ones raise an error.

    Parameters
    ----------
    columns : Columns
        What can be chosen.
    feature_groups, max_per_group, always, never, costs, budget, bounds, heredity
        As given to an estimator.
    noun : str or None
        What ``k`` counts, where that is neither features nor groups.
    units : Units or None
        The units of choice where they are known already; ``feature_groups`` is not read then.
    free : ndarray of bool or None
        Columns that are in every model and never counted; they cannot be constrained.
    """

    def __init__(
        self,
        columns: Columns,
        *,
        feature_groups: Any = None,
        max_per_group: Any = None,
        always: Any = None,
        never: Any = None,
        costs: Any = None,
        budget: Any = None,
        bounds: Any = None,
        heredity: Any = None,
        noun: str | None = None,
        units: Units | None = None,
        free: np.ndarray | None = None,
    ) -> None:
        self._columns = columns
        self._labels = None if feature_groups is None else parse_groups(feature_groups, columns)
        if max_per_group is not None and self._labels is None:
            raise ValueError("'max_per_group' needs 'feature_groups', which says the group of every column.")
        if units is not None:
            self._given = units
        elif self._labels is not None and max_per_group is None:
            self._given = Units.groups(self._labels)
        else:
            self._given = Units.columns(columns.n_features)
        self.units = self._given
        """The units of choice, of columns of numbers where those of a raw table became such."""
        if columns.spread is not None:
            self.units = self._given.spread(columns.spread.owner, columns.names)
        self.noun = noun or (f"{columns.noun}s".replace("column", "feature") if self._given.single else "groups")
        self._max_per_group = max_per_group
        self._always, self._never = always, never
        self._costs, self._budget, self._bounds, self._heredity = costs, budget, bounds, heredity
        self._free = np.zeros(columns.n_features, dtype=bool) if free is None else free

    @property
    def counts_columns(self) -> bool:
        """Whether a size counts columns as they were given, whatever they became."""
        return self._given.single

    def limits(self, k: int | None, usable: np.ndarray) -> Limits:
        """Limits on the choice of units; ``usable`` marks the columns that are not constant."""
        always, never = self._units_named(self._always, "always"), self._units_named(self._never, "never")
        both = sorted(set(always) & set(never))
        if both:
            raise ValueError(f"'always' and 'never' overlap: {self._quoted(both)} cannot be both.")
        can_be_chosen = self.units.any(usable)
        constant = [unit for unit in always if not can_be_chosen[unit]]
        if constant:
            raise ValueError(f"'always' holds constant columns, which cannot be fitted: {self._quoted(constant)}.")
        if k is not None and len(always) > k:
            raise ValueError(f"'always' holds {len(always)} {self.noun}, more than k={k}.")
        price, budget = self._parse_costs(), self._parse_budget()
        if price is not None and budget is not None:
            open_to_choice = np.setdiff1d(np.flatnonzero(can_be_chosen), never)
            self._check_budget(price, budget, always, open_to_choice)
        kind, most = self._parse_max_per_group(always)
        return Limits(tuple(always), tuple(never), price, budget, kind, most, self._parse_heredity(always))

    def bounds(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Lower and upper bounds of every coefficient, in the user's units."""
        bounds = self._bounds
        if bounds is None:
            return None
        columns = self._columns
        n_columns = columns.n_features if columns.spread is None else len(columns.spread.owner)
        lower, upper = np.full(n_columns, -np.inf), np.full(n_columns, np.inf)
        if isinstance(bounds, Mapping):
            if columns.spread is None:
                columns.by_index(bounds, "bounds")
            for column, pair in bounds.items():
                every = columns.numbers_of(column, "bounds")
                j = columns.index(column, "bounds")
                lower[every], upper[every] = _parse_bound(pair, f"bounds[{columns.quoted([j])}]")
        else:
            lower[:], upper[:] = _parse_bound(bounds, "bounds")
        return None if np.all(np.isinf(lower) & np.isinf(upper)) else (lower, upper)

    def _units_named(self, listed: Any, parameter: str) -> list[int]:
        """The units that ``always`` or ``never`` lists; ascending."""
        if listed is None:
            return []
        if isinstance(listed, str | Mapping) or not isinstance(listed, Iterable) or _is_scalar(listed):
            hint = f" Write [{plain(listed)!r}]." if isinstance(listed, str | numbers.Integral) else ""
            raise TypeError(f"{parameter!r} must be a list of {self._columns.listing}; got {plain(listed)!r}.{hint}")
        return sorted({self._unit(one, parameter) for one in listed})

    def _unit(self, one: Any, parameter: str) -> int:
        """The unit of a group's label, or of a column's name or index."""
        if self._given.labels is None:
            column = self._columns.index(one, parameter)
            if self._free[column]:
                raise ValueError(
                    f"{parameter!r} names {self._columns.quoted([column])}, which is free: always in, never counted."
                )
            return column
        if isinstance(one, bool | np.bool_):
            raise TypeError(f"{parameter!r} must name groups by label; got {plain(one)!r}.")
        group = self._group(one)
        if group is not None:
            return group
        if self._columns.has(one) and not self._free[self._columns.index(one, parameter)]:
            return int(self._given.owner[self._columns.index(one, parameter)])
        raise ValueError(
            f"{parameter!r} names {plain(one)!r}, which is no group; give labels of groups or names of "
            f"{self._columns.noun}s."
        )

    def _group(self, label: Any) -> int | None:
        """The group of a label, if there is one."""
        labels = self._given.labels
        if labels is None or np.ndim(label) or isinstance(label, bool | np.bool_):
            return None
        # Labels of columns that are in no group are text, and so is then what was a number in the others.
        same = np.asarray(labels == (str(plain(label)) if labels.dtype.kind == "U" else label))
        return int(np.argmax(same)) if same.any() else None

    def _parse_costs(self) -> np.ndarray | None:
        costs, columns = self._costs, self._columns
        if costs is None:
            return None
        if isinstance(costs, Mapping):
            groups = {unit: one for one in costs if (unit := self._group(one)) is not None}
            if groups:
                return self._costs_by_group(costs, groups)
            costs = self._costs_by_column(costs)
        if isinstance(costs, str) or not isinstance(costs, Iterable) or _is_scalar(costs):
            raise TypeError(f"'costs' must hold a number for every {columns.noun}; got {costs!r}.")
        values = list(costs)
        if len(values) != columns.n_features:
            raise ValueError(
                f"'costs' must hold one number for each of the {columns.n_features} {columns.noun}s; got {len(values)}."
            )
        no_number = [j for j, value in enumerate(values) if not is_number(value)]
        if no_number:
            raise TypeError(f"'costs' must hold numbers; those of {columns.quoted(no_number)} are not.")
        price = np.array(values, dtype=np.float64)
        bad = np.flatnonzero(~(np.isfinite(price) & (price >= 0)))
        if len(bad):
            raise ValueError(
                f"'costs' must be finite and not negative; those of {columns.quoted(bad.tolist())} are not."
            )
        return self._given.totals(price)

    def _costs_by_column(self, costs: Mapping[Any, Any]) -> list[Any]:
        found = self._columns.by_index({one: price for one, price in costs.items() if one is not None}, "costs")
        other = costs.get(None, DEFAULT_COST)
        return [found.get(j, 0.0 if self._free[j] else other) for j in range(self._columns.n_features)]

    def _costs_by_group(self, costs: Mapping[Any, Any], groups: dict[int, Any]) -> np.ndarray:
        """Prices from a dict with a key that is the label of a group: then all its keys must be, but None."""
        if len(groups) < len(costs) - (None in costs):
            other = next(one for one in costs if one is not None and one not in groups.values())
            raise ValueError(
                f"'costs' names {plain(other)!r}, which is not the label of a group as the others are. "
                f"To give the price of every {self._columns.noun}, write a list."
            )
        other = costs.get(None, DEFAULT_COST)
        values = [costs[groups[unit]] if unit in groups else other for unit in range(len(self.units))]
        bad = [unit for unit, value in enumerate(values) if not (is_number(value) and 0 <= float(value) < np.inf)]
        if bad:
            raise ValueError(f"'costs' must be finite and not negative; those of {self._quoted(bad)} are not.")
        price = np.array(values, dtype=np.float64)
        if self._columns.covered_by(costs):
            by_column = np.array(self._costs_by_column(costs), dtype=np.float64)
            if not np.array_equal(price, self._given.totals(by_column)):
                raise ValueError(
                    "'costs' can be read in two ways: its keys are labels of groups, and columns too. "
                    "Write a list with the price of every column, or give the groups other labels."
                )
        return price

    def _parse_budget(self) -> float | None:
        budget = self._budget
        if budget is None:
            return None
        if not is_number(budget):
            raise TypeError(f"'budget' must be a number or None; got {plain(budget)!r}.")
        if not 0 <= float(budget) < np.inf:
            raise ValueError(f"'budget' must be finite and not negative; got {plain(budget)!r}.")
        if self._costs is None:
            raise ValueError(
                f"'budget' needs 'costs': what every {self._columns.noun} costs, or a dict for some; others cost 1."
            )
        return float(budget)

    def _check_budget(self, price: np.ndarray, budget: float, always: list[int], open_to_choice: np.ndarray) -> None:
        alone = Limits(price=price, budget=budget)
        if not alone.allows(always):
            raise ValueError(f"'always' alone costs {price[always].sum():g}, more than the budget of {budget:g}.")
        if len(open_to_choice) and not alone.allows([int(open_to_choice[np.argmin(price[open_to_choice])])]):
            cheapest = price[open_to_choice].min()
            noun = f"{self._columns.noun}s" if self._given.single else "groups"
            raise ValueError(f"The budget of {budget:g} is below the cheapest of the {noun}, which costs {cheapest:g}.")

    def _parse_max_per_group(self, always: list[int]) -> tuple[np.ndarray | None, int | None]:
        """The group of every column as a number, and how many of each may be chosen."""
        most = self._max_per_group
        if most is None or self._labels is None:
            return None, None
        if isinstance(most, bool | np.bool_) or not isinstance(most, numbers.Integral) or int(most) < 1:
            raise ValueError(f"'max_per_group' must be an integer of at least 1; got {plain(most)!r}.")
        labels, kind = np.unique(self._labels, return_inverse=True)
        counts = np.bincount(kind[always], minlength=len(labels))
        if np.any(counts > int(most)):
            crowded = plain(labels[int(np.argmax(counts))])
            raise ValueError(
                f"'always' holds {counts.max()} columns of the group {crowded!r}, max_per_group is {most}."
            )
        return kind, int(most)

    def _parse_heredity(self, always: list[int]) -> Heredity | None:
        """Which units need others: "strong" or "weak" by the names of columns, a dict of parents, or both in a pair."""
        given, strong = self._heredity, True
        if given is None:
            return None
        pair = list(given) if isinstance(given, tuple | list) else [given]
        if isinstance(pair[0], str) and pair[0] in {"strong", "weak"} and len(pair) <= 2:
            strong, pair = pair[0] == "strong", pair[1:] or [None]
        if len(pair) != 1 or not (pair[0] is None or isinstance(pair[0], Mapping)):
            raise ValueError(
                "'heredity' must be 'strong' or 'weak', a dict of parents such as {'a:b': ('a', 'b')}, or a pair such "
                f"as ('weak', {{'a:b': ('a', 'b')}}); got {plain(given)!r}."
            )
        parents = self._parents_by_name() if pair[0] is None else self._parents_given(pair[0])
        circle = check_cycles(parents)
        if circle:
            raise ValueError(f"'heredity' goes round in a circle: {self._quoted(circle)}.")
        found = Heredity(parents, strong)
        orphans = sorted(found.orphans(always))
        if orphans:
            raise ValueError(f"'always' holds {self._quoted(orphans)} without what 'heredity' says it needs.")
        return found

    def _parents_by_name(self) -> dict[int, tuple[int, ...]]:
        names, parents = self._columns.names, {}
        if names is not None:
            parents = parents_from_names([str(name) for name in names])
        if not parents:
            raise ValueError(
                "'heredity' found no interaction among the names of columns, such as 'a b', 'a:b' or 'a^2' beside 'a' "
                "and 'b' (scikit-learn's PolynomialFeatures names them so); give a dict of parents."
            )
        owner = self._given.owner
        found: dict[int, set[int]] = {}
        for child, of in parents.items():
            found.setdefault(int(owner[child]), set()).update(int(owner[one]) for one in of)
        return {child: tuple(sorted(of - {child})) for child, of in found.items() if of - {child}}

    def _parents_given(self, given: Mapping[Any, Any]) -> dict[int, tuple[int, ...]]:
        parents: dict[int, tuple[int, ...]] = {}
        for child, of in given.items():
            listed = [of] if isinstance(of, str | numbers.Integral) else of
            units = tuple(self._units_named(listed, "heredity"))
            if not units:
                raise ValueError(f"'heredity' names no parents of {plain(child)!r}.")
            parents[self._unit(child, "heredity")] = units
        return parents

    def _quoted(self, units: Sequence[int]) -> str:
        """Names of the first few of some units."""
        return self._columns.quoted(units) if self._given.single else quoted_columns(self._given.labels, units)


def parse_groups(
    groups: Any, columns: Columns, parameter: str = "feature_groups", free: np.ndarray | None = None
) -> np.ndarray:
    """The label of every column's group, from a list or a dict; those of ``free`` columns may be missing.

    A dict has the label of every column, or the columns of every label. A column that it does not name is a group of
    its own, with the name of the column.
    """
    if isinstance(groups, Mapping):
        by_label = groups and all(map(_holds_columns, groups.values()))
        by_column = _label_by_column(groups, columns, parameter) if by_label else columns.by_index(groups, parameter)
        groups = _labels_of_all(by_column, columns, parameter)
    if isinstance(groups, set | frozenset):
        raise TypeError(
            f"{parameter!r} must be a list of labels, one for each {columns.noun}, or a dict; got {groups!r}."
        )
    try:
        labels = np.asarray(groups)
    except ValueError:  # lists of different lengths
        labels = np.empty((len(list(groups)), 0))
    if labels.shape != (columns.n_features,):
        raise ValueError(
            f"{parameter!r} must hold one label for each of the {columns.n_features} {columns.noun}s; got shape "
            f"{labels.shape}."
        )
    required = np.ones(columns.n_features, dtype=bool) if free is None else ~free
    missing = [j for j, label in enumerate(groups) if required[j] and _is_missing(label)]
    if missing:
        raise ValueError(f"{parameter!r} holds no label for some {columns.noun}s: {columns.quoted(missing)}.")
    return labels if labels.dtype != object else np.array([str(label) for label in labels])


def _holds_columns(members: Any) -> bool:
    """Whether it is a collection of columns of any library, and no label."""
    return isinstance(members, Collection) and not isinstance(members, str | bytes | Mapping)


def _label_by_column(groups: Mapping[Any, Any], columns: Columns, parameter: str) -> dict[int, Any]:
    """Labels by index of their columns, from lists of columns by label."""
    found: dict[int, Any] = {}
    for label, members in groups.items():
        if not len(members):
            raise ValueError(f"{parameter!r} has no {columns.noun}s in the group {plain(label)!r}.")
        for column in members.tolist() if hasattr(members, "tolist") else members:
            j = columns.index(column, parameter)
            if found.setdefault(j, label) != label:
                raise ValueError(
                    f"{parameter!r} has the {columns.noun} {columns.quoted([j])} in two groups, {found[j]!r} and "
                    f"{label!r}; each {columns.noun} belongs to one."
                )
    return found


def _labels_of_all(found: Mapping[int, Any], columns: Columns, parameter: str) -> list[Any]:
    alone = [j for j in range(columns.n_features) if j not in found]
    names = dict(zip(alone, column_names(columns.names, alone), strict=True))
    labels = {str(label) for label in found.values()}
    taken = [j for j, name in names.items() if name in labels]
    if taken:
        raise ValueError(
            f"{parameter!r} has a group with the name of a {columns.noun} that is not in it: {columns.quoted(taken)}. "
            "Rename the group."
        )
    return [found.get(j, names.get(j)) for j in range(columns.n_features)]


def check_independent(design: Design, columns: np.ndarray, names: np.ndarray | None) -> None:
    """Raise an error if one of the columns that are always in depends linearly on those before it."""
    if not len(columns):
        return
    z = design.columns(columns) * np.sqrt(design.weights)
    triangle: np.ndarray = np.linalg.qr(z.T, mode="r")  # type: ignore[assignment]
    left = np.zeros(len(columns))
    left[: len(triangle)] = np.diag(triangle) ** 2
    dependent = columns[left < DEPENDENT_BELOW]
    if len(dependent):
        raise ValueError(
            f"'always' holds columns that are linear combinations of others in it: {quoted_columns(names, dependent)}. "
            "Leave them out, or add a ridge."
        )


def is_number(value: Any) -> bool:
    """Whether a value is a real number; True and False are not."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


def _is_missing(label: Any) -> bool:
    """Whether a label is None, not a number, or another library's missing value."""
    return label is None or (not isinstance(label, str) and str(label) in {"nan", "<NA>", "NaT", "inf", "-inf"})


def _is_scalar(value: Any) -> bool:
    """Whether an array, iterable by its type, has no dimension to iterate over."""
    return isinstance(value, np.ndarray) and value.ndim == 0


def _parse_bound(pair: Any, name: str) -> tuple[float, float]:
    """A lower and an upper bound; None stands for no bound."""
    ends = list(pair) if isinstance(pair, Iterable) and not isinstance(pair, str) else []
    if len(ends) != 2 or not all(end is None or is_number(end) for end in ends):
        hint = " Bounds by column are a dict, such as {'dose': (0, 3)}." if name == "bounds" else ""
        raise TypeError(f"{name} must be a pair (lower, upper) of numbers, None for no bound; got {pair!r}.{hint}")
    low, high = (infinite if end is None else float(end) for end, infinite in zip(ends, (-np.inf, np.inf), strict=True))
    if np.isnan(low) or np.isnan(high):
        raise ValueError(f"{name} holds a bound that is not a number; got {pair!r}.")
    if low > high:
        raise ValueError(f"{name} is crossed: the lower bound {low:g} is above the upper bound {high:g}.")
    if low > 0 or high < 0:
        raise ValueError(f"{name} must include 0, the coefficient of a column that is not chosen; got {pair!r}.")
    return low, high
