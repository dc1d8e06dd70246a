"""Forward greedy selection with full correction: Shalev-Shwartz, Srebro and Zhang (2010), Algorithm 3, Theorem 2.7."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from pauca.checks import ParameterChecks
from pauca.methods.base import GrowingMethod, check_shortlist, next_addition
from pauca.search.driver import Goal
from pauca.search.history import History, Move, Stop
from pauca.subsets.base import RULES, SLACK, Subset


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
    shortlist : float or None, default=2.0
        Where a score takes a search of its own, as by the rule "objective" for losses other than squared loss,
        candidates are scored in the order of estimates, until this many times the next estimate is below the best.
        None scores every candidate but those that a proved ceiling rules out: the rule as printed.

    Examples
    --------
    >>> from pauca.methods import Forward
    >>> Forward(rule="refit")
    Forward(rule='refit', shortlist=2.0)
    """

    rule: str = "objective"
    shortlist: float | None = SLACK

    def __post_init__(self) -> None:
        check = ParameterChecks("Forward")
        check.one_of("rule", self.rule, RULES)
        check_shortlist(check, self.shortlist)

    def moves(self, subset: Subset, history: History, goal: Goal) -> Generator[Move | None, None, Stop]:
        """Additions until the goal is reached or no feature lowers Q."""
        while not goal.reached(subset.size):
            step = next_addition(subset, self.rule, goal.tol, self.shortlist)
            if isinstance(step, Stop):
                return step
            yield ("add", step)
        return Stop.SIZE
