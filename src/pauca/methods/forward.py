"""Forward greedy selection with full correction: Shalev-Shwartz, Srebro and Zhang (2010), Algorithm 3, Theorem 2.7."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from pauca.checks import ParameterChecks
from pauca.methods.base import GrowingMethod, next_addition
from pauca.search.driver import Goal
from pauca.search.history import History, Move, Stop
from pauca.subsets.base import RULES, Subset


@dataclass(frozen=True)
class Forward(GrowingMethod):
    """Add one feature at a time and refit all coefficients each time.

    Shalev-Shwartz, Srebro and Zhang (2010), Algorithm 3; Zhang (2011), Figure 1; known for squared loss as
    orthogonal matching pursuit. It is fast, and never removes a feature.

    Guarantee (Theorem 2.7 of Shalev-Shwartz et al., for the rules "objective" and "gradient"): with
    ``k >= 2 beta |w|_1^2 / eps`` features, Q is within ``eps`` of ``Q(w)``, for any w; beta is the largest curvature
    of Q along a coordinate.

    Parameters
    ----------
    rule : {"objective", "gradient", "refit"}, default="objective"
        How candidates are ranked: by the decrease of Q along the new coordinate alone, by the size of the gradient
        (which depends on the units of columns), or by the decrease once all coefficients are refitted.

    Examples
    --------
    >>> from pauca.methods import Forward
    >>> Forward(rule="refit")
    Forward(rule='refit')
    """

    rule: str = "objective"

    def __post_init__(self) -> None:
        ParameterChecks("Forward").one_of("rule", self.rule, RULES)

    def moves(self, subset: Subset, history: History, goal: Goal) -> Generator[Move | None, None, Stop]:
        """Additions until the goal is reached or no feature lowers Q."""
        while not goal.reached(subset.size):
            step = next_addition(subset, self.rule, goal.tol)
            if isinstance(step, Stop):
                return step
            yield ("add", step)
        return Stop.SIZE
