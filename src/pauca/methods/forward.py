"""Forward greedy selection with full correction."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from pauca.methods.base import check_rule, next_addition
from pauca.search.driver import Goal
from pauca.search.history import History, Move, Stop
from pauca.subsets.base import Subset


@dataclass(frozen=True)
class Forward:
    """Add one feature at a time and refit all coefficients each time.

    Shalev-Shwartz, Srebro and Zhang (2010), Algorithm 3; Zhang (2011), Figure 1; known for squared loss as
    orthogonal matching pursuit. Fast, and never corrects a mistake.

    Guarantee (Theorem 2.7 there, for the rules "objective" and "gradient"): with ``k >= 2 beta |w|_1^2 / eps``
    features, Q is within ``eps`` of ``Q(w)``, for any w; beta is the largest curvature of Q along a coordinate.

    Parameters
    ----------
    rule : {"objective", "gradient", "refit"}, default="objective"
        How candidates are ranked: by the decrease of Q along the new coordinate alone, by the size of the gradient
        (depends on the columns' units), or by the decrease once all coefficients are refitted.

    Examples
    --------
    >>> from pauca.methods import Forward
    >>> Forward(rule="refit")
    Forward(rule='refit')
    """

    rule: str = "objective"

    def __post_init__(self) -> None:
        check_rule(self.rule)

    def begin(self, subset: Subset) -> None:
        """Start from the empty model."""

    def moves(self, subset: Subset, history: History, goal: Goal) -> Generator[Move | None, None, Stop]:
        """Additions until the goal is reached or no feature is left that helps."""
        while not goal.reached(subset.size):
            step = next_addition(subset, self.rule, goal.tol)
            if isinstance(step, Stop):
                return step
            yield ("add", step)
        return Stop.SIZE

    def answer(self, history: History, goal: Goal) -> int:
        """The size the run ended at."""
        return history.size
