"""Bookkeeping that subsets share whose models are refits: copies, trials, and removals one after the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

import numpy as np

from pauca.constraints.limits import Limits


class RefitSubset(ABC):
    """A support within limits; whatever else a subset holds is replaced, never changed, when units come and go."""

    support: list[int]
    limits: Limits

    @property
    def size(self) -> int:
        """Number of chosen units."""
        return len(self.support)

    @abstractmethod
    def cheapest_removal(self, removal: str, at_most: float = np.inf) -> tuple[int, float] | None:
        """The unit whose removal costs least, and what it costs."""

    @abstractmethod
    def drop(self, unit: int) -> None:
        """Leave a unit out and refit."""

    def expect(self, size: int | None) -> None:  # noqa: B027 - refits need no room laid out
        """Nothing to lay out."""

    def allow_until(self, deadline: float) -> None:  # noqa: B027 - answers that take long are for objectives of any kind
        """No answer takes long."""

    def cheapest_removals(self, size: int | None, limits: Limits) -> list[int]:
        """The units that would go if the one that costs least were left out again and again."""
        twin = self.copy()
        twin.limits = limits
        while (size is not None and twin.size > size) or not limits.allows(twin.support):
            found = twin.cheapest_removal("refit")
            if found is None:
                break
            twin.drop(found[0])
        return [unit for unit in self.support if unit not in twin.support]

    def copy(self) -> Self:
        """An independent subset on the same objective."""
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__, support=list(self.support))
        return twin

    @contextmanager
    def trial(self) -> Iterator[None]:
        """A context in which units may be added, whatever budget and places are left; then all is as it was."""
        before = self.__dict__ | {"support": list(self.support)}
        if self.limits.budget is not None or self.limits.kind is not None:
            self.limits = self.limits.relaxed()
        try:
            yield
        finally:
            self.__dict__.update(before)

    def _per_price(self, gain: float, unit: int) -> float:
        return float(self.limits.per_price(np.array([gain]), [unit])[0])
