"""Columns as users name them: by name where there are names, by index always."""

from __future__ import annotations

import numbers
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np

from pauca.estimators.checks import listed


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
        by_letters = {known.casefold(): known for known in self._index}
        near = get_close_matches(name.casefold(), by_letters, n=1)
        return f" Did you mean {by_letters[near[0]]!r}?" if near else ""

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
                raise ValueError(f"{wish!r} names the column {listed(self.names, [j])} twice, by name and by index.")
            found[j] = value
        return found

    def listed(self, columns: Iterable[int]) -> str:
        """Names of the first few of some columns."""
        return listed(self.names, list(columns))


def plain(value: Any) -> Any:
    """A value as people write it: ``1.0``, not ``np.float64(1.0)``."""
    return value.item() if isinstance(value, np.generic) else value


def is_number(value: Any) -> bool:
    """Whether something is a real number; True and False are not."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
