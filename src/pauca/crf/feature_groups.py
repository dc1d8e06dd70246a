"""Sensors: which columns belong to each of them, and which sensors are redundant."""

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

# Characters between an attribute and its value, or its inner attribute, in the name of a column.
SEPARATORS = "=:"


def column_sensors(feature_groups: Any, columns: Columns) -> Any:
    """The sensor of every column, where they are given by a function or a dict; anything else is returned unchanged.

    A function is given the name of a column, or its index where it has none. A dict may name columns, and attributes:
    "word" stands for "word=the" and "word:length" too, and of several that match the longest counts. Columns that the
    dict does not have, or for which the function returns None, are sensors of their own.
    """
    own_names = column_names(columns.names, range(columns.n_features))
    if isinstance(feature_groups, Mapping):
        return _sensors_from_dict(feature_groups, columns, own_names)
    if not callable(feature_groups):
        return feature_groups
    sensors = [feature_groups(j if columns.names is None else name) for j, name in enumerate(own_names)]
    return [name if sensor is None else sensor for name, sensor in zip(own_names, sensors, strict=True)]


@dataclass(frozen=True)
class RedundantSensors:
    """Sensors that are left out because they carry no information beyond the others."""

    constant: list[int]
    """Sensors none of whose columns varies."""
    copies: dict[int, int]
    """Sensors that have the columns of another one, with the index of that one."""

    def excluded(self, limits: Limits) -> Limits:
        """Limits that leave them out as well."""
        return replace(limits, never=tuple(sorted({*limits.never, *self.constant, *self.copies})))

    def excluded_weights(self, n_labels: int) -> Limits:
        """Limits on single weights, ``n_labels`` to a sensor, that leave theirs out."""
        sensors = np.array([*self.constant, *self.copies], dtype=np.intp)
        return Limits(never=tuple(sorted((sensors[:, None] * n_labels + np.arange(n_labels)).ravel().tolist())))


def find_redundant(observations: Observations, units: Units, limits: Limits, varies: np.ndarray) -> RedundantSensors:
    """Constant sensors, and copies; of equal sensors the cheapest stays, and those that are always in."""
    constant = np.flatnonzero(~units.any(varies)).tolist()
    first = observations.first_copies()
    price = np.zeros(len(units)) if limits.price is None else limits.price
    by_content: dict[tuple[int, ...], list[int]] = {}
    for unit in np.setdiff1d(np.arange(len(units)), [*constant, *limits.never]).tolist():
        columns = units.of([unit])
        by_content.setdefault(tuple(sorted(set(first[columns[varies[columns]]].tolist()))), []).append(unit)
    copies: dict[int, int] = {}
    for equal in by_content.values():
        if len(equal) > 1:
            kept = min(equal, key=lambda unit: (unit not in limits.always, price[unit], unit))
            copies |= {unit: kept for unit in equal if unit != kept and unit not in limits.always}
    return RedundantSensors(constant, copies)


def _sensors_from_dict(groups: Mapping[Any, Any], columns: Columns, own_names: list[str]) -> list[Any]:
    exact = {key: sensor for key, sensor in groups.items() if not isinstance(key, str) or columns.has(key)}
    by_column = columns.by_index(exact, "feature_groups")
    sensors, known = [], set(exact)
    for j, name in enumerate(own_names):
        attributes = list(_possible_attributes(name))
        known.update(attributes)
        longest = next((one for one in attributes if one in groups), None)
        sensors.append(by_column[j] if j in by_column else name if longest is None else groups[longest])
    for key in groups:
        if key not in known:
            columns.index(key, "feature_groups")  # raises an error that suggests a column
    return sensors


def _possible_attributes(name: str) -> Iterator[str]:
    """The attributes that a column of this name may come from, the longest first."""
    for end in range(len(name) - 1, 0, -1):
        if name[end] in SEPARATORS:
            yield name[:end]
