"""Limits on which units may be chosen together: always, never, a budget, the most of a kind, and heredity."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from pauca.constraints.heredity import Heredity

# A budget is kept to this share of it, so that prices such as 0.1 add up as people expect.
BUDGET_SLACK = 1e-9

# A unit without a price is ranked as if it cost this share of the most expensive.
FREE_COST_SHARE = 1e-9


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits on the choice of units, in arrays over all units; None where there is no such limit.

    Candidates are ranked by gain per price where there are prices, and removals by what they cost per price.
    """

    always: tuple[int, ...] = ()
    never: tuple[int, ...] = ()
    price: np.ndarray | None = None
    budget: float | None = None
    kind: np.ndarray | None = None
    """Units of one kind compete for ``most`` places."""
    most: int | None = None
    heredity: Heredity | None = None
    """Which units need others."""

    @cached_property
    def trivial(self) -> bool:
        """Whether anything may be chosen with anything."""
        return not (self.always or self.never or self.heredity) and self.price is None and self.kind is None

    @property
    def can_be_relaxed(self) -> bool:
        """Whether a search may pass through models that are not within the limits."""
        return self.budget is not None or self.kind is not None or self.heredity is not None

    def relaxed(self) -> Limits:
        """The same without budget, places and heredity: what a search may pass through on its way."""
        return Limits(self.always, self.never, self.price)

    def addable(self, support: Sequence[int], n_units: int) -> np.ndarray:
        """Mask of the units that may be added to ``support``."""
        mask = np.ones(n_units, dtype=bool)
        mask[[*self.never, *support]] = False
        if self.budget is not None and self.price is not None:
            mask &= self.price <= self._left(support)
        if self.kind is not None and self.most is not None:
            mask &= (self._counts(support) < self.most)[self.kind]
        if self.heredity is not None:
            mask[self.heredity.closed_to(support)] = False
        return mask

    def startable(self, n_units: int) -> np.ndarray:
        """Mask of the units that some model within the limits holds."""
        limits = self if self.heredity is None else replace(self, heredity=None)
        mask = limits.addable(self.always, n_units)
        mask[list(self.always)] = True
        return mask if self.heredity is None else self.heredity.reachable(mask)

    def missing_parents(self, support: Sequence[int]) -> list[int]:
        """The units that others in ``support`` need and that are not in it."""
        return [] if self.heredity is None else self.heredity.missing_parents(support)

    def candidates(self, usable: np.ndarray) -> np.ndarray:
        """Indices of the ``usable`` units that some model within the limits holds; ``usable`` is a mask."""
        return (usable if self.trivial else usable & self.startable(len(usable))).nonzero()[0]

    def exchangeable(self, support: Sequence[int], out: int, n_units: int) -> np.ndarray:
        """Mask of the units that may take the place of ``out``."""
        if out in self.always:
            return np.zeros(n_units, dtype=bool)
        rest = [unit for unit in support if unit != out]
        mask = self.addable(rest, n_units)
        mask[out] = False
        if self.heredity is not None:
            # A unit that has lost a parent may find another in the one that comes, where one is enough.
            for orphan in self.heredity.orphans(rest):
                parents = np.zeros(n_units, dtype=bool)
                parents[[] if self.heredity.strong else list(self.heredity.parents[orphan])] = True
                mask &= parents
        return mask

    def exchanges(self, support: Sequence[int], n_units: int) -> np.ndarray:
        """Mask of all exchanges that are allowed: a line for each unit of ``support``, shape (k, n_units)."""
        mask = np.zeros((len(support), n_units), dtype=bool)
        for line, out in zip(mask, support, strict=True):
            line[:] = self.exchangeable(support, out, n_units)
        return mask

    def removable(self, support: Sequence[int]) -> np.ndarray:
        """Mask over ``support`` of what may be removed; while a kind has too many units, only those of such kinds.

        While some unit lacks parents, only such units; and never one that another needs.
        """
        mask = np.array([unit not in self.always for unit in support], dtype=bool)
        if self.kind is not None and self.most is not None and len(support):
            crowded = (self._counts(support) > self.most)[self.kind[list(support)]]
            if np.any(crowded & mask):
                mask &= crowded
        if self.heredity is not None:
            orphans, needed = self.heredity.orphans(support), self.heredity.needed(support)
            mask &= np.array([unit in orphans if orphans else unit not in needed for unit in support], dtype=bool)
        return mask

    def allows(self, support: Collection[int]) -> bool:
        """Whether a model of exactly these units keeps all limits."""
        if self.trivial:
            return True
        chosen = list(support)
        if not set(self.always) <= set(chosen) or set(self.never) & set(chosen):
            return False
        if self.budget is not None and self.price is not None and self._left(chosen) < 0:
            return False
        if self.heredity is not None and self.heredity.orphans(chosen):
            return False
        return self.kind is None or self.most is None or bool(np.all(self._counts(chosen) <= self.most))

    @property
    def divisors(self) -> np.ndarray | None:
        """What gains are divided by to compare them: prices, none of them zero; None without prices."""
        if self.price is None:
            return None
        floor = FREE_COST_SHARE * float(self.price.max()) or 1.0
        return np.maximum(self.price, floor)

    def per_price(self, gains: np.ndarray, units: Sequence[int] | slice = slice(None)) -> np.ndarray:
        """Gains, or losses, divided by the prices of their ``units``."""
        divisors = self.divisors
        return gains if divisors is None else gains / divisors[units]

    def key(self) -> tuple[Any, ...]:
        """A key that differs between different limits."""
        arrays = tuple(None if array is None else array.tobytes() for array in (self.price, self.kind))
        heredity = None if self.heredity is None else self.heredity.key()
        return (self.always, self.never, self.budget, self.most, heredity, *arrays)

    def _left(self, support: Sequence[int]) -> float:
        assert self.price is not None
        assert self.budget is not None
        return self.budget * (1 + BUDGET_SLACK) - float(self.price[list(support)].sum())

    def _counts(self, support: Sequence[int]) -> np.ndarray:
        assert self.kind is not None
        return np.bincount(self.kind[list(support)], minlength=int(self.kind.max()) + 1)
