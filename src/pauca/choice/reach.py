"""How far a search for a size looks."""

from __future__ import annotations

from dataclasses import dataclass

# Without sizes to compare, so many are looked at first, twice as many while the best is not well within them, but never
# more than this.
FIRST_LOOK = 10
MOST_SIZES = 100
WELL_WITHIN = 0.7


@dataclass(frozen=True)
class Reach:
    """The sizes to compare: those that were given, or as many as it takes.

    Attributes
    ----------
    largest : int
        The largest size to go to now.
    sizes : tuple of int or None
        The sizes to compare; None for all up to the largest.
    most : int
        The largest size to ever go to.
    """

    largest: int
    sizes: tuple[int, ...] | None
    most: int

    @classmethod
    def given(cls, sizes: tuple[int, ...]) -> Reach:
        """These sizes and no others."""
        return cls(max(sizes), sizes, max(sizes))

    @classmethod
    def open(cls, n_units: int) -> Reach:
        """As many sizes as it takes."""
        most = max(1, min(n_units, MOST_SIZES))
        return cls(min(FIRST_LOOK, most), None, most)

    def further(self, best: int, reached: int) -> Reach | None:
        """Where to look next, with the best so far and the largest size that could be reached; None if not further."""
        if self.largest >= self.most or reached < self.largest or best <= WELL_WITHIN * self.largest:
            return None
        return Reach(min(2 * self.largest, self.most), self.sizes, self.most)

    def compared(self, size: int) -> bool:
        """Whether a size is among those to compare."""
        return size <= self.largest and (self.sizes is None or size in self.sizes)
