"""What is proved of one size."""

from __future__ import annotations

from dataclasses import dataclass

# A model is proved to be best if no other is better by more than this share of its objective. Closed trees prove 1e-9
# less what rounding can add; where rounding can add more than this, it is no proof.
PROVED_WITHIN = 1e-6


@dataclass(frozen=True)
class SizeProof:
    """A model's objective, and a bound that no model of its size is below; minus infinity where there is none."""

    objective: float
    lower_bound: float
    nodes: int = 0
    """Nodes of the search tree that were looked at."""
    always_in: tuple[int, ...] = ()
    """Units that every best model of this size has, beyond those that were forced in."""
    never_in: tuple[int, ...] = ()
    """Units that no best model of this size has, beyond those that were forced out."""

    @property
    def gap(self) -> float:
        """By how much another model may be better."""
        return max(0.0, self.objective - self.lower_bound)

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the objective."""
        if self.objective > 0:
            return self.gap / self.objective
        return float("inf") if self.gap > 0 else 0.0

    @property
    def proved(self) -> bool:
        """Whether the model is proved to be best."""
        return self.relative_gap <= PROVED_WITHIN
