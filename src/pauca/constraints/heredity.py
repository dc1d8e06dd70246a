"""Heredity: an interaction is chosen only together with its parents, the terms that it is made of.

Strong heredity asks for all parents, weak heredity for one of them (Chipman 1996; Bien, Taylor and Tibshirani 2013).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

POWER = re.compile(r"(?s)(.+)\^(\d+)")
"""A column of scikit-learn's PolynomialFeatures: ``age^2``."""

SEPARATORS = (" ", ":")
"""What is between the factors of a product: ``age dose`` in scikit-learn, ``age:dose`` in formulas."""


@dataclass(frozen=True)
class Heredity:
    """Which units need others.

    Attributes
    ----------
    parents : mapping of int to tuple of int
        The parents of every unit that has some.
    strong : bool
        Whether a unit needs all of its parents, or one.
    """

    parents: Mapping[int, tuple[int, ...]]
    strong: bool = True

    def holds(self, unit: int, chosen: Collection[int]) -> bool:
        """Whether a unit may be in a model that holds the ``chosen`` units."""
        found = (parent in chosen for parent in self.parents.get(unit, ()))
        return unit not in self.parents or (all(found) if self.strong else any(found))

    def orphans(self, chosen: Collection[int]) -> set[int]:
        """The chosen units that lack parents."""
        among = set(chosen)
        return {unit for unit in among if not self.holds(unit, among)}

    def closed_to(self, chosen: Collection[int]) -> list[int]:
        """The units that may not be added to the chosen ones."""
        among = set(chosen)
        return [unit for unit in self.parents if not self.holds(unit, among)]

    def needed(self, chosen: Collection[int]) -> set[int]:
        """The chosen units without which another chosen one would lack parents."""
        among = set(chosen)
        found: set[int] = set()
        for unit in among.intersection(self.parents):
            there = [parent for parent in self.parents[unit] if parent in among]
            if self.strong or len(there) == 1:
                found.update(there)
        return found

    def missing_parents(self, chosen: Collection[int]) -> list[int]:
        """Parents to be added until no unit lacks any; of weak heredity too all of them, as any may be the best."""
        among, added = set(chosen), []
        while orphans := self.orphans(among):
            new = sorted({parent for unit in orphans for parent in self.parents[unit]} - among)
            added += new
            among.update(new)
        return added

    def reachable(self, open_: np.ndarray) -> np.ndarray:
        """Mask of the units that some model holds, if it may hold those that are ``open_``."""
        mask = open_.copy()
        while True:
            chosen = set(np.flatnonzero(mask).tolist())
            lost = [unit for unit in self.parents if mask[unit] and not self.holds(unit, chosen)]
            if not lost:
                return mask
            mask[lost] = False

    def key(self) -> tuple[object, ...]:
        """A key that differs between different ones."""
        return (self.strong, *sorted(self.parents.items()))


def parents_from_names(names: Sequence[str]) -> dict[int, tuple[int, ...]]:
    """The parents of columns that are products of others by name: ``a b``, ``a:b``, ``a^2``, ``a^2 b``.

    The parents of a product are those there are of the products of one factor less; if there are none, its factors.
    """
    place = {name: j for j, name in enumerate(names)}
    factors = {j: found for j, name in enumerate(names) if (found := factors_of(name, place)) is not None}
    by_factors = {_key(found): j for j, found in factors.items()}
    by_factors |= {_key(Counter([name])): j for name, j in place.items() if j not in factors}
    parents: dict[int, tuple[int, ...]] = {}
    for j, found in factors.items():
        smaller = [_key(found - Counter([one])) for one in found]
        there = [by_factors[key] for key in smaller if key in by_factors]
        parents[j] = tuple(sorted(there or (place[one] for one in found)))
    return parents


def factors_of(name: str, known: Collection[str]) -> Counter[str] | None:
    """The columns that a name is the product of; None if it is not one of ``known`` columns."""
    for separator in SEPARATORS:
        for found in _products(name.split(separator), separator, name, known):
            if found.total() > 1:
                return found
    return None


def _products(parts: list[str], separator: str, whole: str, known: Collection[str]) -> Iterator[Counter[str]]:
    """Every way to read parts as factors; names may hold the separator themselves, so the longest come first."""
    if not parts:
        yield Counter()
        return
    for end in range(len(parts), 0, -1):
        word = separator.join(parts[:end])
        power = POWER.fullmatch(word)
        base, times = (power[1], int(power[2])) if power is not None and power[1] in known else (word, 1)
        if base in known and base != whole and times > 0:
            once = factors_of(base, known) or Counter([base])
            for rest in _products(parts[end:], separator, whole, known):
                yield rest + Counter({factor: count * times for factor, count in once.items()})


def check_cycles(parents: Mapping[int, Iterable[int]]) -> list[int]:
    """Units that are among their own ancestors; none if all is well."""
    left = {unit: set(of) for unit, of in parents.items()}
    while True:
        roots = [unit for unit, of in left.items() if not of.intersection(left)]
        if not roots:
            return sorted(left)
        for unit in roots:
            del left[unit]


def _key(factors: Counter[str]) -> frozenset[tuple[str, int]]:
    return frozenset(factors.items())
