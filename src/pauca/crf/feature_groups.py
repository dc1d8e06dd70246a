"""Sensors: which columns each of them has, and which of them tell nothing that another does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pauca.constraints.limits import Limits
from pauca.constraints.parsing import Columns
from pauca.constraints.units import Units
from pauca.crf.observations import Observations
from pauca.wording import column_names

# What stands in a column's name between an attribute and what it holds.
SEPARATORS = "=:"


def sensor_labels(groups: Any, n_columns: int, names: np.ndarray | None) -> Any:
    """The label of every column's sensor, where they are given by a function or a dict; all else goes through as it is.

    A function is given the name of a column, or its index where it has none. A dict may name columns, and attributes:
    "word" stands for "word=the" and "word:length" too, and of several that fit the longest counts. Columns of which
    nothing is said, or for which the function returns None, are sensors of their own.
    """
    own = column_names(names, range(n_columns))
    if isinstance(groups, Mapping):
        return _by_key(groups, Columns(n_columns, names), own)
    if not callable(groups):
        return groups
    said = [groups(j if names is None else own[j]) for j in range(n_columns)]
    return [own[j] if label is None else label for j, label in enumerate(said)]


@dataclass(frozen=True)
class Idle:
    """Sensors that are left out because they tell nothing new."""

    constant: list[int]
    """Those none of whose columns varies."""
    copies: dict[int, int]
    """Those that have the columns of another, and which that is."""

    def left_out(self, limits: Limits) -> Limits:
        """Limits that leave them out."""
        return replace(limits, never=tuple(sorted({*limits.never, *self.constant, *self.copies})))

    def weights(self, n_labels: int) -> Limits:
        """Limits on single weights, ``n_labels`` to a sensor, that leave theirs out."""
        sensors = np.array([*self.constant, *self.copies], dtype=np.intp)
        return Limits(never=tuple(sorted((sensors[:, None] * n_labels + np.arange(n_labels)).ravel().tolist())))


def idle_sensors(observations: Observations, units: Units, limits: Limits, varies: np.ndarray) -> Idle:
    """Constant sensors, and copies; of those that are the same, the cheapest stays, and what is always in."""
    constant = np.flatnonzero(~units.any(varies)).tolist()
    first = observations.twins()
    price = np.zeros(len(units)) if limits.price is None else limits.price
    alike: dict[tuple[int, ...], list[int]] = {}
    for unit in np.setdiff1d(np.arange(len(units)), [*constant, *limits.never]).tolist():
        columns = units.of([unit])
        alike.setdefault(tuple(sorted(set(first[columns[varies[columns]]].tolist()))), []).append(unit)
    copies: dict[int, int] = {}
    for same in alike.values():
        if len(same) > 1:
            kept = min(same, key=lambda unit: (unit not in limits.always, price[unit], unit))
            copies |= {unit: kept for unit in same if unit != kept and unit not in limits.always}
    return Idle(constant, copies)


def _by_key(groups: Mapping[Any, Any], columns: Columns, own: list[str]) -> list[Any]:
    exact = {key: label for key, label in groups.items() if not isinstance(key, str) or columns.has(key)}
    said = columns.by_index(exact, "feature_groups")
    labels, known = [], set(exact)
    for j, name in enumerate(own):
        attributes = list(_attributes(name))
        known.update(attributes)
        longest = next((one for one in attributes if one in groups), None)
        labels.append(said[j] if j in said else name if longest is None else groups[longest])
    for key in groups:
        if key not in known:
            columns.index(key, "feature_groups")  # says which column is meant, perhaps
    return labels


def _attributes(name: str) -> Iterator[str]:
    """The attributes that a column of this name may come from, the longest first."""
    for end in range(len(name) - 1, 0, -1):
        if name[end] in SEPARATORS:
            yield name[:end]
