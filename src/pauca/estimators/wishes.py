"""What users wish for besides few features, said in their words: groups, forced columns, prices, signs."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from pauca.estimators.checks import listed
from pauca.units import Limits, Units


class Wishes:
    """Parameters such as ``groups`` or ``costs``, read against the columns there are.

    Everything that cannot be meant is refused with a sentence that names it.
    """

    def __init__(self, estimator: Any, n_features: int, names: np.ndarray | None) -> None:
        self._estimator = estimator
        self._n_features = n_features
        self._names = names
        self._index = {} if names is None else {str(name): j for j, name in enumerate(names)}
        self._labels = self._group_labels()
        if self._labels is not None and estimator.max_per_group is None:
            self.units = Units.groups(self._labels)
        else:
            self.units = Units.columns(n_features)

    def limits(self, k: int | None, usable: np.ndarray) -> Limits:
        """Limits on the choice of units; ``usable`` says which columns vary at all."""
        always, never = self._units("always"), self._units("never")
        both = sorted(set(always) & set(never))
        if both:
            raise ValueError(f"'always' and 'never' overlap: {self._unit_names(both)} cannot be both.")
        idle = [unit for unit in always if not self.units.any(usable)[unit]]
        if idle:
            raise ValueError(f"'always' holds constant columns, which cannot be fitted: {self._unit_names(idle)}.")
        if k is not None and len(always) > k:
            raise ValueError(f"'always' holds {len(always)} {self._noun}, more than k={k}.")
        price, budget = self._price(), self._budget()
        if budget is not None:
            self._check_budget(price, budget, always, never)
        kind, most = self._kinds(always)
        return Limits(tuple(always), tuple(never), price, budget, kind, most)

    def bounds(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Lower and upper bounds of every coefficient, in the user's units."""
        bounds = self._estimator.bounds
        if bounds is None:
            return None
        lower, upper = np.full(self._n_features, -np.inf), np.full(self._n_features, np.inf)
        if isinstance(bounds, Mapping):
            for column, pair in bounds.items():
                j = self._column(column, "bounds")
                lower[j], upper[j] = _pair(pair, f"bounds[{column!r}]")
        else:
            lower[:], upper[:] = _pair(bounds, "bounds")
        return None if np.all(np.isinf(lower) & np.isinf(upper)) else (lower, upper)

    @property
    def _noun(self) -> str:
        return "columns" if self.units.single else "groups"

    def _group_labels(self) -> np.ndarray | None:
        groups, most = self._estimator.groups, self._estimator.max_per_group
        if groups is None:
            if most is not None:
                raise ValueError("'max_per_group' needs 'groups', which says the group of every column.")
            return None
        if isinstance(groups, Mapping):
            found: list[Any] = [None] * self._n_features
            for column, label in groups.items():
                found[self._column(column, "groups")] = label
            missing = [j for j, label in enumerate(found) if label is None]
            if missing:
                raise ValueError(
                    f"'groups' must name the group of every column; missing: {listed(self._names, missing)}."
                )
            groups = found
        labels = np.asarray(groups)
        if labels.dtype == object:
            labels = np.array([str(label) for label in labels])
        if labels.shape != (self._n_features,):
            raise ValueError(
                f"'groups' must hold one label for each of the {self._n_features} columns; got shape {labels.shape}."
            )
        if labels.dtype.kind == "f" and not np.all(np.isfinite(labels)):
            raise ValueError("'groups' holds labels that are not finite.")
        return labels

    def _units(self, wish: str) -> list[int]:
        """Units of the columns, or groups, that a wish names; ascending."""
        wanted = getattr(self._estimator, wish)
        if wanted is None:
            return []
        if isinstance(wanted, str | numbers.Integral) or not isinstance(wanted, Iterable):
            raise TypeError(f"{wish!r} must be a list of column names or indices; got {wanted!r}. Write [{wanted!r}].")
        return sorted({self._unit(one, wish) for one in wanted})

    def _unit(self, one: Any, wish: str) -> int:
        labels = self.units.labels
        if labels is None:
            return self._column(one, wish)
        same = labels == one
        if np.ndim(one) == 0 and np.any(same):
            return int(np.argmax(same))
        if isinstance(one, str) and one in self._index:
            return int(self.units.owner[self._index[one]])
        raise ValueError(f"{wish!r} names {one!r}, which is neither a group nor a column.")

    def _column(self, column: Any, wish: str) -> int:
        """Index of a column given by name or index."""
        if isinstance(column, str):
            if column in self._index:
                return self._index[column]
            if self._names is None:
                raise ValueError(f"{wish!r} names the column {column!r}, but X has no column names; give its index.")
            raise ValueError(f"{wish!r} names the column {column!r}, which X does not have.")
        if isinstance(column, bool) or not isinstance(column, numbers.Integral):
            raise TypeError(f"{wish!r} must name columns by name or index; got {column!r}.")
        if not 0 <= int(column) < self._n_features:
            raise ValueError(f"{wish!r} names column {column}; X has columns 0 to {self._n_features - 1}.")
        return int(column)

    def _price(self) -> np.ndarray | None:
        costs = self._estimator.costs
        if costs is None:
            return None
        price = self._price_by_name(costs) if isinstance(costs, Mapping) else self._price_by_column(costs)
        bad = np.flatnonzero(~(np.isfinite(price) & (price >= 0)))
        if len(bad):
            raise ValueError(f"'costs' must be finite and not negative; those of {self._unit_names(bad)} are not.")
        return price

    def _price_by_column(self, costs: Any) -> np.ndarray:
        try:
            values = np.asarray(costs, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(f"'costs' must hold a number for every column; got {costs!r}.") from error
        if values.shape != (self._n_features,):
            raise ValueError(
                f"'costs' must hold one number for each of the {self._n_features} columns; got shape {values.shape}."
            )
        return self.units.totals(values)

    def _price_by_name(self, costs: Mapping[Any, Any]) -> np.ndarray:
        price = np.full(len(self.units), np.nan)
        for one, value in costs.items():
            if isinstance(value, bool) or not isinstance(value, numbers.Real):
                raise TypeError(f"'costs' must hold numbers; that of {one!r} is {value!r}.")
            if np.isnan(float(value)):
                raise ValueError(f"'costs' must be finite and not negative; that of {one!r} is not.")
            price[self._unit(one, "costs")] = float(value)
        missing = np.flatnonzero(np.isnan(price))
        if len(missing):
            raise ValueError(f"'costs' must hold a price for all {self._noun}; missing: {self._unit_names(missing)}.")
        return price

    def _budget(self) -> float | None:
        budget = self._estimator.budget
        if budget is None:
            return None
        if isinstance(budget, bool) or not isinstance(budget, numbers.Real):
            raise TypeError(f"'budget' must be a number or None; got {budget!r}.")
        if not 0 <= float(budget) < np.inf:
            raise ValueError(f"'budget' must be finite and not negative; got {budget!r}.")
        if self._estimator.costs is None:
            raise ValueError("'budget' needs 'costs', which says what every column costs.")
        return float(budget)

    def _check_budget(self, price: np.ndarray | None, budget: float, always: list[int], never: list[int]) -> None:
        assert price is not None
        alone = Limits(price=price, budget=budget)
        if not alone.allows(always):
            raise ValueError(f"'always' alone costs {price[always].sum():g}, more than the budget of {budget:g}.")
        open_to_choice = np.setdiff1d(np.arange(len(price)), never)
        if len(open_to_choice) and not alone.allows([int(open_to_choice[np.argmin(price[open_to_choice])])]):
            cheapest = price[open_to_choice].min()
            raise ValueError(
                f"The budget of {budget:g} is below the cheapest of the {self._noun}, which costs {cheapest:g}."
            )

    def _kinds(self, always: list[int]) -> tuple[np.ndarray | None, int | None]:
        most = self._estimator.max_per_group
        if most is None or self._labels is None:
            return None, None
        if isinstance(most, bool) or not isinstance(most, numbers.Integral) or int(most) < 1:
            raise ValueError(f"'max_per_group' must be an integer of at least 1; got {most!r}.")
        labels, kind = np.unique(self._labels, return_inverse=True)
        counts = np.bincount(kind[always], minlength=len(labels))
        if np.any(counts > most):
            crowded = labels[int(np.argmax(counts))]
            raise ValueError(
                f"'always' holds {counts.max()} columns of the group {crowded!r}, max_per_group is {most}."
            )
        return kind, int(most)

    def _unit_names(self, units: Any) -> str:
        labels = self.units.labels
        names = self._names if labels is None else labels
        return listed(names, list(units))


def _pair(pair: Any, name: str) -> tuple[float, float]:
    """A lower and an upper bound; None stands for no bound."""
    try:
        low, high = pair
        low = -np.inf if low is None else float(low)
        high = np.inf if high is None else float(high)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be a pair (lower, upper) of numbers, None for no bound; got {pair!r}.") from error
    if np.isnan(low) or np.isnan(high):
        raise ValueError(f"{name} holds a bound that is not a number.")
    if low > high:
        raise ValueError(f"{name} is crossed: the lower bound {low:g} is above the upper bound {high:g}.")
    if low > 0 or high < 0:
        raise ValueError(f"{name} must leave room for 0, the coefficient of a column that is not chosen; got {pair!r}.")
    return low, high
