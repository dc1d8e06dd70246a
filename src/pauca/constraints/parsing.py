"""Columns as users name them: by name where there are names, by index always."""

from __future__ import annotations

import numbers
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

from pauca.constraints.limits import Limits
from pauca.constraints.units import Units
from pauca.design import Design
from pauca.tolerances import DEPENDENT_BELOW
from pauca.wording import closest_name, plain, quoted_columns


class Columns:
    """The columns of X, looked up for a wish such as ``always``; what is not there is refused with a sentence."""

    def __init__(self, n_features: int, names: np.ndarray | None) -> None:
        self.n_features = n_features
        self.names = names
        self._index = {} if names is None else {str(name): j for j, name in enumerate(names)}

    def has(self, name: object) -> bool:
        """Whether there is a column of this name."""
        return isinstance(name, str) and name in self._index

    def covered_by(self, keys: Collection[Any]) -> bool:
        """Whether keys name every column once, all by name or all by index, and nothing else."""
        return set(keys) in (set(self._index), set(range(self.n_features)))

    def _like(self, name: str) -> str:
        """The name that was meant, perhaps."""
        near = closest_name(name, self._index)
        return f" Did you mean {near!r}?" if near else ""

    def index(self, column: Any, wish: str) -> int:
        """Index of a column given by name or index."""
        if isinstance(column, str):
            if column in self._index:
                return self._index[column]
            if self.names is None:
                raise ValueError(f"{wish!r} names the column {column!r}, but X has no column names; give its index.")
            raise ValueError(f"{wish!r} names the column {column!r}, which X does not have.{self._like(column)}")
        if isinstance(column, bool | np.bool_) or not isinstance(column, numbers.Integral):
            raise TypeError(f"{wish!r} must name columns by name or index; got {plain(column)!r}.")
        if not 0 <= int(column) < self.n_features:
            raise ValueError(f"{wish!r} names column {column}; X has columns 0 to {self.n_features - 1}.")
        return int(column)

    def by_index(self, wanted: Mapping[Any, Any], wish: str) -> dict[int, Any]:
        """What a dict says of columns, by index; a column must not be named twice."""
        found: dict[int, Any] = {}
        for column, value in wanted.items():
            j = self.index(column, wish)
            if j in found:
                raise ValueError(
                    f"{wish!r} names the column {quoted_columns(self.names, [j])} twice, by name and by index."
                )
            found[j] = value
        return found

    def quoted(self, columns: Iterable[int]) -> str:
        """Names of the first few of some columns."""
        return quoted_columns(self.names, list(columns))


def is_number(value: Any) -> bool:
    """Whether something is a real number; True and False are not."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


class ConstraintParser:
    """Parameters such as ``feature_groups`` or ``costs``, read against the columns there are.

    Everything that cannot be meant is refused with a sentence that names it. ``noun`` is what ``k`` counts, where that
    is neither features nor groups.
    """

    def __init__(self, estimator: Any, n_features: int, names: np.ndarray | None, noun: str | None = None) -> None:
        self._estimator = estimator
        self._noun = noun
        self._columns = Columns(n_features, names)
        self._labels = self._group_labels()
        if self._labels is not None and estimator.max_per_group is None:
            self.units = Units.groups(self._labels)
        else:
            self.units = Units.columns(n_features)

    @property
    def noun(self) -> str:
        """What ``k`` counts."""
        return self._noun or ("features" if self.units.single else "groups")

    def limits(self, k: int | None, usable: np.ndarray) -> Limits:
        """Limits on the choice of units; ``usable`` says which columns vary at all."""
        always, never = self._wanted("always"), self._wanted("never")
        both = sorted(set(always) & set(never))
        if both:
            raise ValueError(f"'always' and 'never' overlap: {self._named(both)} cannot be both.")
        idle = [unit for unit in always if not self.units.any(usable)[unit]]
        if idle:
            raise ValueError(f"'always' holds constant columns, which cannot be fitted: {self._named(idle)}.")
        if k is not None and len(always) > k:
            raise ValueError(f"'always' holds {len(always)} {self.noun}, more than k={k}.")
        price, budget = self._price(), self._budget()
        if price is not None and budget is not None:
            self._check_budget(price, budget, always, never)
        kind, most = self._kinds(always)
        return Limits(tuple(always), tuple(never), price, budget, kind, most)

    def bounds(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Lower and upper bounds of every coefficient, in the user's units."""
        bounds = self._estimator.bounds
        if bounds is None:
            return None
        lower, upper = np.full(self._columns.n_features, -np.inf), np.full(self._columns.n_features, np.inf)
        if isinstance(bounds, Mapping):
            for j, pair in self._columns.by_index(bounds, "bounds").items():
                lower[j], upper[j] = _pair(pair, f"bounds[{self._columns.quoted([j])}]")
        else:
            lower[:], upper[:] = _pair(bounds, "bounds")
        return None if np.all(np.isinf(lower) & np.isinf(upper)) else (lower, upper)

    def _group_labels(self) -> np.ndarray | None:
        groups, most, columns = self._estimator.feature_groups, self._estimator.max_per_group, self._columns
        if groups is None:
            if most is not None:
                raise ValueError("'max_per_group' needs 'feature_groups', which says the group of every column.")
            return None
        if isinstance(groups, Mapping):
            found = columns.by_index(groups, "feature_groups")
            missing = [j for j in range(columns.n_features) if j not in found]
            if missing:
                raise ValueError(
                    f"'feature_groups' must name the group of every column; missing: {columns.quoted(missing)}."
                )
            groups = [found[j] for j in range(columns.n_features)]
        if isinstance(groups, set | frozenset):
            raise TypeError(
                f"'feature_groups' must be a list of labels, one for each column, or a dict; got {groups!r}."
            )
        labels = np.asarray(groups)
        if labels.shape != (columns.n_features,):
            raise ValueError(
                f"'feature_groups' must hold one label for each of the {columns.n_features} columns; got shape "
                f"{labels.shape}."
            )
        missing = [j for j, label in enumerate(groups) if _is_missing(label)]
        if missing:
            raise ValueError(f"'feature_groups' holds no label for some columns: {columns.quoted(missing)}.")
        return labels if labels.dtype != object else np.array([str(label) for label in labels])

    def _wanted(self, wish: str) -> list[int]:
        """Units of the columns, or groups, that a wish names; ascending."""
        wanted = getattr(self._estimator, wish)
        if wanted is None:
            return []
        if isinstance(wanted, str | Mapping) or not isinstance(wanted, Iterable) or _is_scalar(wanted):
            hint = f" Write [{plain(wanted)!r}]." if isinstance(wanted, str | numbers.Integral) else ""
            raise TypeError(f"{wish!r} must be a list of column names or indices; got {plain(wanted)!r}.{hint}")
        return sorted({self._unit(one, wish) for one in wanted})

    def _unit(self, one: Any, wish: str) -> int:
        """The unit that a label of a group, or a name or index of a column, stands for."""
        labels = self.units.labels
        if labels is None:
            return self._columns.index(one, wish)
        if isinstance(one, bool | np.bool_):
            raise TypeError(f"{wish!r} must name groups by label; got {plain(one)!r}.")
        place = self._group(one)
        if place is not None:
            return place
        if self._columns.has(one):
            return int(self.units.owner[self._columns.index(one, wish)])
        raise ValueError(
            f"{wish!r} names {plain(one)!r}, which is no group; give labels of groups or names of columns."
        )

    def _group(self, label: Any) -> int | None:
        """The group of a label, if there is one."""
        labels = self.units.labels
        if labels is None or np.ndim(label) or isinstance(label, bool | np.bool_):
            return None
        same = np.asarray(labels == label)
        return int(np.argmax(same)) if same.any() else None

    def _price(self) -> np.ndarray | None:
        costs = self._estimator.costs
        if costs is None:
            return None
        if isinstance(costs, Mapping):
            groups = {unit: one for one in costs if (unit := self._group(one)) is not None}
            if groups:
                return self._price_by_group(costs, groups)
            costs = self._prices_by_name(costs)
        if isinstance(costs, str) or not isinstance(costs, Iterable) or _is_scalar(costs):
            raise TypeError(f"'costs' must hold a number for every column; got {costs!r}.")
        values = list(costs)
        if len(values) != self._columns.n_features:
            raise ValueError(
                f"'costs' must hold one number for each of the {self._columns.n_features} columns; got {len(values)}."
            )
        strange = [j for j, value in enumerate(values) if not is_number(value)]
        if strange:
            raise TypeError(f"'costs' must hold numbers; those of {self._columns.quoted(strange)} are not.")
        price = np.array(values, dtype=np.float64)
        bad = np.flatnonzero(~(np.isfinite(price) & (price >= 0)))
        if len(bad):
            raise ValueError(
                f"'costs' must be finite and not negative; those of {self._columns.quoted(bad.tolist())} are not."
            )
        return self.units.totals(price)

    def _prices_by_name(self, costs: Mapping[Any, Any]) -> list[Any]:
        found = self._columns.by_index(costs, "costs")
        missing = [j for j in range(self._columns.n_features) if j not in found]
        if missing:
            raise ValueError(f"'costs' must hold a price for every column; missing: {self._columns.quoted(missing)}.")
        return [found[j] for j in range(self._columns.n_features)]

    def _price_by_group(self, costs: Mapping[Any, Any], groups: dict[int, Any]) -> np.ndarray:
        """Prices from a dict with a key that is the label of a group: then all its keys must be."""
        if len(groups) < len(costs):
            stranger = next(one for one in costs if one not in groups.values())
            raise ValueError(
                f"'costs' names {plain(stranger)!r}, which is not the label of a group as the others are. "
                "To give the price of every column, write a list."
            )
        missing = [unit for unit in range(len(self.units)) if unit not in groups]
        if missing:
            raise ValueError(f"'costs' must hold a price for all groups; missing: {self._named(missing)}.")
        values = [costs[groups[unit]] for unit in range(len(self.units))]
        bad = [unit for unit, value in enumerate(values) if not (is_number(value) and 0 <= float(value) < np.inf)]
        if bad:
            raise ValueError(f"'costs' must be finite and not negative; those of {self._named(bad)} are not.")
        price = np.array(values, dtype=np.float64)
        if self._columns.covered_by(costs) and not np.array_equal(price, self._totals_by_column(costs)):
            raise ValueError(
                "'costs' can be read in two ways: its keys are labels of groups, and columns too. "
                "Write a list with the price of every column, or give the groups other labels."
            )
        return price

    def _totals_by_column(self, costs: Mapping[Any, Any]) -> np.ndarray:
        """What every group costs if keys are columns."""
        return self.units.totals(np.array(self._prices_by_name(costs), dtype=np.float64))

    def _budget(self) -> float | None:
        budget = self._estimator.budget
        if budget is None:
            return None
        if not is_number(budget):
            raise TypeError(f"'budget' must be a number or None; got {plain(budget)!r}.")
        if not 0 <= float(budget) < np.inf:
            raise ValueError(f"'budget' must be finite and not negative; got {plain(budget)!r}.")
        if self._estimator.costs is None:
            raise ValueError("'budget' needs 'costs', which says what every column costs.")
        return float(budget)

    def _check_budget(self, price: np.ndarray, budget: float, always: list[int], never: list[int]) -> None:
        alone = Limits(price=price, budget=budget)
        if not alone.allows(always):
            raise ValueError(f"'always' alone costs {price[always].sum():g}, more than the budget of {budget:g}.")
        open_to_choice = np.setdiff1d(np.arange(len(price)), never)
        if len(open_to_choice) and not alone.allows([int(open_to_choice[np.argmin(price[open_to_choice])])]):
            cheapest = price[open_to_choice].min()
            noun = "columns" if self.units.single else "groups"
            raise ValueError(f"The budget of {budget:g} is below the cheapest of the {noun}, which costs {cheapest:g}.")

    def _kinds(self, always: list[int]) -> tuple[np.ndarray | None, int | None]:
        most = self._estimator.max_per_group
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

    def _named(self, units: Iterable[int]) -> str:
        """Names of the first few of some units."""
        return self._columns.quoted(units) if self.units.single else quoted_columns(self.units.labels, list(units))


def _is_missing(label: Any) -> bool:
    """Whether a label is None, not a number, or another library's word for a missing value."""
    return label is None or (not isinstance(label, str) and str(label) in {"nan", "<NA>", "NaT", "inf", "-inf"})


def _is_scalar(value: Any) -> bool:
    """Whether an array that can be iterated over by its type has no dimension to iterate over."""
    return isinstance(value, np.ndarray) and value.ndim == 0


def _pair(pair: Any, name: str) -> tuple[float, float]:
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
        raise ValueError(f"{name} must leave room for 0, the coefficient of a column that is not chosen; got {pair!r}.")
    return low, high


def check_independent(design: Design, columns: np.ndarray, names: np.ndarray | None) -> None:
    """Refuse columns that are wanted together although one depends linearly on those before it."""
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
